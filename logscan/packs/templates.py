"""The texts a Python source can print: templates of logger calls, raised errors, and other strings, by AST.

Nothing is imported or run. A placeholder is `HOLE`, whatever wrote it: `%s`, an f-string's braces, `.format`, a
variable that no constant could be found for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
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

_Scope = Mapping[str, list[ast.expr]]


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
    reader = _Reader(tree)
    reader.visit_body(tree.body, [], {})
    return reader.found


class _Reader:
    def __init__(self, tree: ast.Module) -> None:
        self.found: list[Template] = []
        self.globals = _assignments(tree.body)
        self.returns: dict[str, list[ast.expr]] = {}
        self.scopes: dict[str, _Scope] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                values = [n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value is not None]
                self.returns.setdefault(node.name, []).extend(values)
                self.scopes.setdefault(node.name, _assignments(node.body))
        self.spoken: set[int] = set()  # ids of nodes that a call or raise already speaks

    def visit_body(self, body: Iterable[ast.stmt], names: list[str], scope: _Scope) -> None:
        rest: list[ast.AST] = []
        for stmt in body:
            if isinstance(stmt, ast.ClassDef):
                self.visit_body(stmt.body, [*names, stmt.name], scope)
            elif isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inner = {**scope, **_assignments(stmt.body)}
                self.visit_body(stmt.body, [*names, stmt.name], inner)
            else:
                rest.append(stmt)
        function = ".".join(names) or "<module>"
        inner_defs: list[ast.stmt] = []
        nodes = list(_own_nodes(rest, inner_defs))
        for node in nodes:
            self._speak(node, function, scope)
        for node in nodes:
            if isinstance(node, (ast.Constant, ast.JoinedStr)) and id(node) not in self.spoken:
                self._say(node, "text", function, scope, percent=False)
        if inner_defs:
            self.visit_body(inner_defs, names, scope)

    def _speak(self, node: ast.AST, function: str, scope: _Scope) -> None:
        if isinstance(node, ast.Call):
            level = _level(node)
            if level and node.args:
                first = node.args[1] if level == "log" and len(node.args) > 1 else node.args[0]
                level = "INFO" if level == "log" else level
                self._say(first, level, function, scope, percent=len(node.args) > 1 and level != "print")
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            args = [*node.exc.args, *(k.value for k in node.exc.keywords)]
            for arg in args:
                self._say(arg, "raise", function, scope, percent=False)
            if len(node.exc.args) > 1:  # several arguments are shown as a tuple
                shown = [[f"'{t}'" for t in self._texts(a, scope, 0)] for a in node.exc.args]
                for text in _product([["("], *_between(shown, [", "]), [")"]]):
                    self.found.append(Template(text, "raise", function, node.lineno))
        elif isinstance(node, ast.Assert) and node.msg is not None:
            self._say(node.msg, "assert", function, scope, percent=False)

    def _say(self, node: ast.expr, level: str, function: str, scope: _Scope, *, percent: bool) -> None:
        self.spoken.update(id(n) for n in ast.walk(node))
        for text in dict.fromkeys(self._texts(node, scope, 0)):
            # A bare string may be a format that is filled elsewhere.
            text = _PERCENT.sub(_percent, text) if percent or level == "text" else text
            text = _DOLLAR.sub("", text) if level == "text" else text
            if level != "text" or len(text.replace(HOLE, "")) >= _SHORT:
                self.found.append(Template(text, level, function, node.lineno))

    def _texts(self, node: ast.expr, scope: _Scope, depth: int) -> list[str]:
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
            known = scope.get(node.id) or self.globals.get(node.id) or []
            texts = [t for value in known for t in self._texts(value, scope, depth + 1)]
            return [t for t in texts if t.strip(HOLE)][:_MOST] or [HOLE]
        if isinstance(node, ast.Call):
            return self._call_texts(node, scope, depth)
        return [HOLE]

    def _call_texts(self, node: ast.Call, scope: _Scope, depth: int) -> list[str]:
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in ("format", "strip", "rstrip", "lstrip"):
            texts = self._texts(func.value, scope, depth)
            return [_BRACES.sub(_brace, t) for t in texts] if func.attr == "format" else texts
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        if name in self.returns:
            inner = self.scopes[name]
            texts = [t for value in self.returns[name] for t in self._texts(value, inner, depth + 1)]
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
        named = {"print_warning_once": "WARNING", "print_info_once": "INFO", "print": "print"}
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


def _own_nodes(body: Iterable[ast.AST], inner: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes below `body`, without those of functions and classes defined there, which go to `inner`."""
    todo = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner.append(node)
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring is not said
        yield node
        todo.extend(ast.iter_child_nodes(node))


def _assignments(body: Iterable[ast.stmt]) -> dict[str, list[ast.expr]]:
    """Values that names of a body are bound to; `x += y` binds what the earlier values and `y` make."""
    out: dict[str, list[ast.expr]] = {}
    pending: list[ast.AST] = list(reversed(list(body)))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    out.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            out.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
            bound = out.setdefault(node.target.id, [])
            bound += [ast.BinOp(b, ast.Add(), node.value) for b in bound[:4]]
        pending.extend(reversed(list(ast.iter_child_nodes(node))))
    return out
