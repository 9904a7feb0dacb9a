"""The texts a Python source can print: templates of logger calls, raised errors, and other strings, by AST.

Nothing is imported or run. A placeholder is `HOLE`, whatever wrote it: `%s`, an f-string's braces, `.format`, a
variable that no constant could be found for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

HOLE = "\0"
_LEVELS = {
    "debug": "DEBUG",
    "info": "INFO",
    "warning": "WARNING",
    "warn": "WARNING",
    "error": "ERROR",
    "exception": "ERROR",
    "critical": "CRITICAL",
    "fatal": "CRITICAL",
}
_PERCENT = re.compile(r"%(?:\(\w+\))?[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[sdifrgexXcaouGEF%]")
_DOLLAR = re.compile(r"\$\{\w+\}")  # string.Template: vLLM's banner, whose placeholders are colours
_BRACES = re.compile(r"\{\{|\}\}|\{[^{}]*\}")
_MOST = 24  # alternatives kept of one expression
_SHORT = 8  # a bare string with less literal text says nothing

_Bindings = Mapping[str, list[ast.expr]]
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Template(NamedTuple):
    """A text with holes, and who says it how.

    `level`: a logger's level; `raise`, `assert`, `print`; `text` for any other string of the source.
    """

    text: str
    level: str
    function: str  # dotted: `Fp8LinearMethod.create_weights`, `<module>`
    line: int


def templates(data: bytes) -> list[Template]:
    """The templates of one Python file; a file that this Python cannot parse has none."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return []
    return _Reader(tree.body).found


class _Scope:
    """One function, class body or module: what it binds, what may speak in it, and the scopes inside it."""

    def __init__(self, names: tuple[str, ...], body: Iterable[ast.stmt], outer: _Bindings) -> None:
        self.function = ".".join(names) or "<module>"
        self.bound: dict[str, list[ast.expr]] = {}
        self.speakers: list[ast.Call | ast.Raise | ast.Assert] = []
        self.strings: list[ast.Constant | ast.JoinedStr] = []
        self.returns: list[ast.expr] = []
        self.inner: list[tuple[tuple[str, ...], list[ast.stmt]]] = []
        todo: list[ast.AST] = list[ast.AST](body)[::-1]
        while todo:  # in the order of the source, each node once
            node = todo.pop()
            if isinstance(node, _DEFS):
                self.inner.append(((*names, node.name), node.body))
                todo += node.decorator_list
            elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):  # a docstring is not said
                self._note(node)
                todo += _children(node)
        self.known: _Bindings = {**outer, **self.bound}

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            if isinstance(node, ast.JoinedStr) or isinstance(node.value, str):
                self.strings.append(node)
        elif isinstance(node, (ast.Call, ast.Raise, ast.Assert)):
            self.speakers.append(node)
        elif isinstance(node, ast.Return):
            if node.value is not None:
                self.returns.append(node.value)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self._bind(node)

    def _bind(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        """`x = y` binds another value; `x += y` binds what the earlier values and `y` make."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.bound.setdefault(target.id, []).append(node.value)
        elif isinstance(node.target, ast.Name) and node.value is not None:
            values = self.bound.setdefault(node.target.id, [])
            if isinstance(node, ast.AnnAssign):
                values.append(node.value)
            elif isinstance(node.op, ast.Add):
                values += [ast.BinOp(v, ast.Add(), node.value) for v in values[:4]]


class _Reader:
    def __init__(self, body: list[ast.stmt]) -> None:
        self.found: list[Template] = []
        self.functions: dict[str, list[_Scope]] = {}
        module = _Scope((), body, {})
        scopes, at = [module], 0
        while at < len(scopes):
            scope = scopes[at]
            for names, inner in scope.inner:
                scopes.append(_Scope(names, inner, scope.known))
                self.functions.setdefault(names[-1], []).append(scopes[-1])
            at += 1
        self.spoken: set[int] = set()  # ids of the nodes that a call or raise already speaks
        for scope in scopes:
            for node in scope.speakers:
                self._speak(node, scope.function, scope.known)
            for string in scope.strings:
                if id(string) not in self.spoken:
                    self._say(string, "text", scope.function, scope.known, percent=False)

    def _speak(self, node: ast.AST, function: str, scope: _Bindings) -> None:
        if isinstance(node, ast.Call):
            level = _level(node)
            if level and node.args:
                first = node.args[1] if level == "log" and len(node.args) > 1 else node.args[0]
                level = "INFO" if level == "log" else level
                self._say(first, level, function, scope, percent=len(node.args) > 1 and level != "print")
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for arg in [*node.exc.args, *(k.value for k in node.exc.keywords)]:
                self._say(arg, "raise", function, scope, percent=False)
            if len(node.exc.args) > 1:  # several arguments are shown as a tuple
                shown = [[f"'{t}'" for t in self._texts(a, scope, 0)] for a in node.exc.args]
                for text in _product([["("], *_between(shown, [", "]), [")"]]):
                    self.found.append(Template(text, "raise", function, node.lineno))
        elif isinstance(node, ast.Assert) and node.msg is not None:
            self._say(node.msg, "assert", function, scope, percent=False)

    def _say(self, node: ast.expr, level: str, function: str, scope: _Bindings, *, percent: bool) -> None:
        self.spoken.update(id(n) for n in ast.walk(node))
        for text in dict.fromkeys(self._texts(node, scope, 0)):
            # A bare string may be a format that is filled elsewhere.
            text = _PERCENT.sub(_percent, text) if percent or level == "text" else text
            text = _DOLLAR.sub("", text) if level == "text" else text
            if level != "text" or len(text.replace(HOLE, "")) >= _SHORT:
                self.found.append(Template(text, level, function, node.lineno))

    def _texts(self, node: ast.expr, scope: _Bindings, depth: int) -> list[str]:
        """What the expression may evaluate to, at most `_MOST` texts."""
        if depth > 8:
            return [HOLE]
        if isinstance(node, ast.Constant):
            return [node.value] if isinstance(node.value, str) else [HOLE]
        if isinstance(node, ast.JoinedStr):
            parts = [[HOLE] if isinstance(v, ast.FormattedValue) else self._texts(v, scope, depth) for v in node.values]
            return _product(parts)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return _product([self._texts(node.left, scope, depth), self._texts(node.right, scope, depth)])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return [_PERCENT.sub(_percent, t) for t in self._texts(node.left, scope, depth)]
        if isinstance(node, ast.IfExp):
            return (self._texts(node.body, scope, depth) + self._texts(node.orelse, scope, depth))[:_MOST]
        if isinstance(node, ast.Name):
            known = scope.get(node.id, ())
            texts = [t for value in known for t in self._texts(value, scope, depth + 1)]
            return [t for t in texts if t.strip(HOLE)][:_MOST] or [HOLE]
        if isinstance(node, ast.Call):
            return self._call_texts(node, scope, depth)
        return [HOLE]

    def _call_texts(self, node: ast.Call, scope: _Bindings, depth: int) -> list[str]:
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in ("format", "strip", "rstrip", "lstrip"):
            texts = self._texts(func.value, scope, depth)
            return [_BRACES.sub(_brace, t) for t in texts] if func.attr == "format" else texts
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        if name in self.functions:
            texts = [
                t for s in self.functions[name] for value in s.returns for t in self._texts(value, s.known, depth + 1)
            ]
            return [t for t in texts if t.strip(HOLE)][:_MOST] or [HOLE]
        return [HOLE]


def _percent(m: re.Match[str]) -> str:
    return "%" if m[0] == "%%" else HOLE


def _between(parts: list[list[str]], comma: list[str]) -> list[list[str]]:
    return [x for part in parts for x in (comma, part)][1:]


def _brace(m: re.Match[str]) -> str:
    return {"{{": "{", "}}": "}"}.get(m[0], HOLE)


def _product(parts: Iterable[list[str]]) -> list[str]:
    out = [""]
    for part in parts:
        out = [a + b for a in out for b in part][:_MOST]
    return out


def _level(call: ast.Call) -> str:
    func = call.func
    if isinstance(func, ast.Name):
        named = {
            "print_warning_once": "WARNING",
            "print_info_once": "INFO",
            "log_info_on_rank0": "log",
            "print": "print",
        }
        return named.get(func.id, "")
    if not isinstance(func, ast.Attribute):
        return ""
    method = func.attr.removesuffix("_once")
    owner = func.value
    name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
    if name == "warnings" and method == "warn":
        return "print"
    if "log" not in name.lower():
        return ""
    return "log" if method == "log" else _LEVELS.get(method, "")


def _children(node: ast.AST) -> list[ast.AST]:
    """Child nodes, the last one first; `ast.iter_child_nodes` takes three times as long."""
    out: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if value.__class__ is list:
            out += [v for v in value if isinstance(v, ast.AST)]
        elif isinstance(value, ast.AST) and value._fields:
            out.append(value)
    out.reverse()
    return out
