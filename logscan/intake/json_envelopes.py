"""Envelopes that are JSON: one object a line, or pretty-printed over many.

docker's json-file, Fluent Bit and Vector with Kubernetes metadata, journalctl -o json, logcli -o jsonl, OTLP/JSON,
Cloud Logging, CloudWatch, Kaggle, vLLM's own JSON formatter (0.32+).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from logscan.intake.envelopes import Parts
from logscan.intake.framing import Item

_TEXT_KEYS = ("log", "message", "MESSAGE", "msg", "line", "textPayload", "body", "@message")
_COMPANY = frozenset(
    ("stream", "time", "timestamp", "@timestamp", "_timestamp", "date", "ts", "kubernetes", "labels", "resource")
    + ("logStreamName", "ingestionTime", "__REALTIME_TIMESTAMP", "severity", "level", "observed_time", "severity_text")
)
_DOCKER_CUT = (16 << 10) - 4  # bytes: less what may be missing where a character was cut
_PRETTY = re.compile(
    rb'\s*"(textPayload|message|log|line|MESSAGE|body|stringValue|data|@message)": ("(?:[^"\\]|\\.)*"),?\s*$'
)
_PRETTY_NAME = re.compile(rb'\s*"(pod_name|container_name|pod|container)": "([^"\\]*)",?\s*$')
_PRETTY_KEY = re.compile(rb'\s*"[\w.@/-]+": ')
_PRETTY_LINE = re.compile(rb'\s*[\[\]{}"]')
_ELEMENT = re.compile(rb'\s*("(?:[^"\\]|\\.)*"),?\s*$')


class JsonLines:
    """One JSON object a line, the engine's line in one of its fields."""

    stateless: ClassVar[bool] = False

    def __init__(self) -> None:
        self.name = "json"
        self._parts = Parts()

    def sniff(self, lines: Sequence[bytes]) -> int:
        objects = map(_object, lines)
        return sum(next(_texts(obj), None) is not None for obj in objects if obj is not None)

    def peel(self, item: Item) -> Sequence[Item] | None:
        obj = _object(item.payload)
        if obj is None:
            return None
        out: list[Item] = []
        for name, text, source in _texts(obj):
            self.name = name
            whole = item._replace(source=f"{item.source}/{source}" if item.source and source else source or item.source)
            if name in ("docker-json", "kaggle"):
                out += self._in_parts(whole, text, str(obj.get("stream") or obj.get("stream_name")))
            else:
                out += [whole._replace(payload=_encoded(part)) for part in text.removesuffix("\n").split("\n")]
        return out

    def _in_parts(self, item: Item, text: str, stream: str) -> Iterator[Item]:
        """docker cuts lines at 16 KiB, Kaggle anywhere: a text without LF at its end goes on in the next object."""
        if self.name == "docker-json" and not _DOCKER_CUT <= len(_encoded(text)) <= 16 << 10:  # others add no LF
            text = text.removesuffix("\n") + "\n"
        *whole, rest = text.split("\n")
        for part in whole:
            yield from self._parts.add(item.source + stream, item._replace(payload=_encoded(part)), True)
        if rest:
            yield from self._parts.add(item.source + stream, item._replace(payload=_encoded(rest)), False)

    def flush(self) -> Sequence[Item]:
        return self._parts.flush()


class PrettyJson:
    """JSON over many lines: `gcloud logging read --format=json`, `aws logs get-log-events`, a notebook's outputs."""

    stateless: ClassVar[bool] = False

    def __init__(self) -> None:
        self.name = "json-pretty"
        self._names: dict[bytes, str] = {}
        self._list = False  # within a notebook's "text": [ … ]
        self._depth = 0

    def sniff(self, lines: Sequence[bytes]) -> int:
        if len(lines) < 3 or lines[0].strip() not in (b"[", b"{") or not all(map(_PRETTY_LINE.match, lines)):
            return 0
        return len(lines) if any(_PRETTY_KEY.match(line) for line in lines[:3]) else 0

    def peel(self, item: Item) -> Sequence[Item] | None:
        line = item.payload
        if not _PRETTY_LINE.match(line):
            return None
        if self._list:
            m = _ELEMENT.match(line)
            if m is None:
                self._list = False
                return ()
            return self._inside(item, m[1])
        if m := _PRETTY.match(line):
            return self._inside(item, m[2])
        if m := _PRETTY_NAME.match(line):
            self._names[m[1].removesuffix(b"_name")] = m[2].decode("utf-8", "replace")
        elif line.rstrip() in (b"{", b"  {"):  # a new entry
            self._names.clear()
        self._list = line.strip() == b'"text": ['
        return ()

    def _inside(self, item: Item, quoted: bytes) -> Sequence[Item]:
        text = _loads(quoted)
        if not isinstance(text, str):
            return ()
        if b"pod" in self._names:  # a container alone does not tell streams apart: some of its lines come without
            item = item._replace(source="/".join(["pod", *self._names.values()]))
        return [item._replace(payload=_encoded(part)) for part in text.removesuffix("\n").split("\n")]

    def flush(self) -> Sequence[Item]:
        return ()


def _loads(data: bytes) -> Any:
    import json

    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _object(line: bytes) -> Mapping[str, Any] | None:
    head = line[:2]
    if head[:1] == b"{":
        obj = _loads(line.rstrip().removesuffix(b","))
    elif head in (b"[{", b",{"):  # Kaggle writes an array, one element a line
        obj = _loads(line[1:].rstrip().removesuffix(b"]"))
    else:
        return None
    return obj if isinstance(obj, dict) else None


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _texts(obj: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(envelope, text, source) of each line that the object holds."""
    if isinstance(obj.get("resourceLogs"), list):
        yield from _otel(obj)
        return
    if "levelname" in obj and isinstance(obj.get("message"), str):
        yield "vllm-json", _rebuilt(obj), ""
        return
    if "stream_name" in obj and isinstance(obj.get("data"), str):
        yield "kaggle", obj["data"], ""
        return
    payload = obj.get("jsonPayload")
    if isinstance(payload, dict) and isinstance(payload.get("message"), str):
        yield "gcp", payload["message"], _source(obj)
        return
    if not _COMPANY & obj.keys():
        return
    for key in _TEXT_KEYS:
        value = obj.get(key)
        if isinstance(value, dict):
            value = value.get("stringValue")
        if isinstance(value, list) and key == "MESSAGE":  # journald writes what is no UTF-8 as numbers
            value = bytes(b for b in value if isinstance(b, int) and 0 <= b < 256).decode("utf-8", "replace")
        if isinstance(value, str):
            yield _name(obj, key), value, _source(obj)
            return


def _name(obj: Mapping[str, Any], key: str) -> str:
    if "kubernetes" in obj:
        return "kubernetes-json"
    if key == "log":
        return "docker-json"
    return {"MESSAGE": "journald-json", "line": "loki-json", "textPayload": "gcp", "body": "otel"}.get(key, "json")


def _source(obj: Mapping[str, Any]) -> str:
    """Pod and container, or whatever else tells the streams apart."""
    for holder in (obj.get("kubernetes"), obj.get("labels"), _dig(obj, "resource", "labels"), _dig(obj, "resource")):
        if isinstance(holder, dict):
            pod = holder.get("pod_name") or holder.get("pod") or holder.get("k8s.pod.name")
            container = holder.get("container_name") or holder.get("container") or holder.get("k8s.container.name")
            if isinstance(pod, str):
                return f"pod/{pod}" + (f"/{container}" if isinstance(container, str) else "")
    for key in ("_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER", "logStreamName", "container_name", "host"):
        value = obj.get(key)
        if isinstance(value, str):
            return value
    return ""


def _dig(obj: Any, *keys: str) -> Any:
    for key in keys:
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj


def _rebuilt(obj: Mapping[str, Any]) -> str:
    """vLLM's JSON record (0.32+, or a user's own logging config) as its plain format would print it."""
    name = obj.get("filename") or str(obj.get("name") or "").removeprefix("vllm.").replace(".", "/") + ".py"
    time = str(obj.get("asctime") or "").replace("T", " ")
    time = time if re.fullmatch(r"(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?", time) else "01-01 00:00:00"
    level = str(obj["levelname"]).upper()
    level = level if level in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL") else "INFO"
    process, pid = obj.get("processName"), obj.get("process")
    who = f"({process} pid={pid}) " if process and isinstance(pid, int) else ""
    line = obj.get("lineno") or 0
    file = re.sub(r"[^\w./]", "_", str(name))
    head = f"{who}{level} {time} [{file}:{line if isinstance(line, int) else 0}] "
    text = str(obj["message"]) + ("\n" + obj["exc_info"] if isinstance(obj.get("exc_info"), str) else "")
    return head + text.replace("\n", "\n" + head)


def _otel(obj: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """OTLP/JSON: resourceLogs[].scopeLogs[].logRecords[].body.stringValue."""
    for resource in _dicts(obj["resourceLogs"]):
        attributes = _dicts(_dig(resource, "resource", "attributes"))
        named = {str(a.get("key")): _dig(a, "value", "stringValue") for a in attributes}
        source = _source({"labels": named})
        for scope in _dicts(resource.get("scopeLogs")):
            for record in _dicts(scope.get("logRecords")):
                text = _dig(record, "body", "stringValue")
                if isinstance(text, str):
                    yield "otel", text, source


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []
