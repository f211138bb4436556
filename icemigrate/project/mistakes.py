"""What can be wrong with a project file beyond its shape."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from icemigrate.declare.nodes import Mapping, Node, Scalar, Sequence
from icemigrate.declare.values import entries, mapping, text
from icemigrate.diagnostics import Diagnostic, Severity, did_you_mean
from icemigrate.model.makers import TRASH_NAMESPACE
from icemigrate.model.names import BadName, Path, TableName, parse_path
from icemigrate.redaction import is_secret_setting, redact

_NEEDS_URI = frozenset({"sql", "jdbc", "rest", "hive"})
_MEANT_FOR = {
    "user": frozenset({"sql", "jdbc"}),
    "password": frozenset({"sql", "jdbc"}),
    "credential": frozenset({"rest"}),
    "token": frozenset({"rest"}),
}
_SECRETS = frozenset({"password", "credential", "token", "secret_key", "session_token"})


def project_mistakes(content: Mapping) -> Iterator[Diagnostic]:
    """What no schema says about a project file that fits it."""
    names = [key.text for key, _ in entries(content.get("environments"))] or ["local"]
    yield from _history_mistakes(content.get("history"))
    chosen = content.get("default_environment")
    if chosen is not None and text(chosen) not in names:
        hint = did_you_mean(text(chosen), names) or "known here: " + ", ".join(names)
        yield Diagnostic(
            "unknown-environment", f"there is no environment `{text(chosen)}`", chosen.place, hint
        )
    for _, environment in entries(content.get("environments")):
        yield from catalog_mistakes(mapping(mapping(environment).get("catalog")))
        spark = mapping(environment).get("spark")
        if isinstance(spark, Mapping) and spark.get("master") is not None and spark.get("remote") is not None:
            message = "Spark is reached by only one of `master` and `remote`"
            yield Diagnostic("conflicting-keys", message, spark.key_place("remote"))
        yield from _namespace_mistakes(mapping(environment).get("namespaces"))
        yield from _plain_secrets(environment)
    yield from _without_end(content)


def _history_mistakes(node: Node | None) -> Iterator[Diagnostic]:
    """Whether the history can be called what it is called."""
    if node is None:
        return
    try:
        name = TableName.parse(text(node))
    except BadName as error:
        yield Diagnostic("bad-name", f"`history`: {error}", node.place, "for example `icemigrate.history`")
        return
    if name.namespace[:1] == (TRASH_NAMESPACE,):
        message = f"`history`: `{name}` would lie in the trash for dropped tables"
        yield Diagnostic("reserved-table", message, node.place, "for example `icemigrate.history`")


def _namespace_mistakes(node: Node | None) -> Iterator[Diagnostic]:
    """Whether declared namespaces can have the names that they are given; a variable's value comes later."""
    taken: dict[Path, str] = {}
    for key, value in entries(node):
        ways = [_namespace(key), _namespace(value)]
        yield from (way for way in ways if isinstance(way, Diagnostic))
        there = ways[1]
        if isinstance(there, tuple):
            first = taken.setdefault(there, key.text)
            if first != key.text:
                message = f"`{first}` and `{key.text}` cannot both be called `{text(value)}`"
                yield Diagnostic("bad-name", message, value.place, "give each a name of its own")


def _namespace(node: Node) -> Path | Diagnostic | None:
    if "${" in text(node):
        return None
    try:
        return parse_path(text(node))
    except BadName as error:
        return Diagnostic("bad-name", f"`namespaces`: {error}", node.place)


def catalog_mistakes(catalog: Mapping) -> Iterator[Diagnostic]:
    """Whether a catalog's keys fit its type."""
    kind = text(catalog.get("type"))
    uri = catalog.get("uri")
    if uri is None and kind in _NEEDS_URI:
        yield Diagnostic("missing-key", f"`uri` is missing: a `{kind}` catalog needs it", catalog.place)
    for key, kinds in _MEANT_FOR.items():
        if catalog.get(key) is not None and kind not in kinds:
            message = f"`{key}` has no meaning for a `{kind}` catalog"
            yield Diagnostic("conflicting-keys", message, catalog.key_place(key))
    is_written = uri is not None and "${" not in text(uri)
    if uri is not None and is_written and kind in ("sql", "jdbc") and not _is_database_url(text(uri)):
        hint = "for example `postgresql://db.example.com/lake`"
        yield Diagnostic("bad-format", "`uri` is not the URL of a database", uri.place, hint)


def _is_database_url(uri: str) -> bool:
    try:
        parts = urlsplit(uri.removeprefix("jdbc:"))
    except ValueError:
        return False
    return bool(parts.scheme and "://" in uri)


def _without_end(node: Node) -> Iterator[Diagnostic]:
    """A NUL, at which paths and addresses end for the operating system."""
    if isinstance(node, Scalar):
        if "\0" in node.text or (isinstance(node.value, str) and "\0" in node.value):
            yield Diagnostic("bad-format", "a NUL character cannot stand in a setting", node.place)
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _without_end(item)
    else:
        for _, value in entries(node):
            yield from _without_end(value)


def _plain_secrets(node: Node) -> Iterator[Diagnostic]:
    if isinstance(node, Sequence):
        for item in node.items:
            yield from _plain_secrets(item)
    elif isinstance(node, Mapping):
        for key, value in node.entries:
            if not isinstance(value, Scalar):
                yield from _plain_secrets(value)
            elif "${" not in value.text and _is_secret(key.text, value):
                yield Diagnostic(
                    "secret-in-file",
                    f"`{key.text}` stands in the project file for all to read",
                    value.place,
                    "write `${NAME}` and set NAME in the process environment",
                    Severity.WARNING,
                )


def _is_secret(key: str, value: Scalar) -> bool:
    """A setting's name alone convicts too many: a flag, a number or a short word is no secret."""
    if key in _SECRETS:
        return True
    if key == "uri":
        return redact(value.text) != value.text
    return is_secret_setting(key) and isinstance(value.value, str) and len(value.text) >= 8
