"""What a family module fills in, before it is frozen into a `Promise`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from logscan.checkpoint.fields import Node
from logscan.model import Group, KVPromise, Matcher, Note


class Draft:
    """A promise in the making. `label` overrides the label that the groups would give."""

    def __init__(self, method: str, *, producer: str | None = None, status: str | None = None) -> None:
        self.method = method
        self.groups: list[Group] = []
        self.ignore: list[Matcher] = []
        self.kv: KVPromise | None = None
        self.algo: str | None = None
        self.label: str | None = None
        self.producer = producer
        self.status = status
        self.sparsity: Mapping[str, Any] | None = None
        self.transforms: list[str] = []
        self.notes: list[Note] = []

    @property
    def kv_label(self) -> str | None:
        return self.kv.label if self.kv else None

    def note(self, code: str, message: str) -> None:
        """Add a remark once."""
        if all(n.code != code for n in self.notes):
            self.notes.append(Note(code, message))

    def skip(self, kind: Any, values: Iterable[str]) -> None:
        """Entries of a skip list, with the way this family matches them; `re:` entries are regexes everywhere."""
        for value in values:
            if value.startswith("re:"):
                self.ignore.append(Matcher("regex", value[3:]))
            else:
                self.ignore.append(Matcher(kind, value))


Family = Callable[[Node, Node], Draft]
"""A family reader: (quantization block, model config) → Draft."""
