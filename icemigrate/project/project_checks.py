"""Checks of a project file beyond its schema."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from icemigrate.diagnostics import Diagnostic, Severity, did_you_mean
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence
from icemigrate.files.read.node_values import as_mapping, mapping_entries, scalar_text
from icemigrate.iceberg.names import BadName, FieldPath, TableName, parse_path
from icemigrate.iceberg.table import TRASH_NAMESPACE
from icemigrate.redaction import is_secret_setting, redact_secrets

_NEEDS_URI = frozenset({"sql", "jdbc", "rest", "hive"})
_MEANT_FOR = {
    "user": frozenset({"sql", "jdbc"}),
    "password": frozenset({"sql", "jdbc"}),
    "credential": frozenset({"rest"}),
    "token": frozenset({"rest"}),
}
_SECRETS = frozenset({"password", "credential", "token", "secret_key", "session_token"})


def project_mistakes(content: YamlMapping) -> Iterator[Diagnostic]:
    """Errors of a project file that its schema allows."""
    names = [key.text for key, _ in mapping_entries(content.get("environments"))] or ["local"]
    yield from _history_mistakes(content.get("history"))
    chosen = content.get("default_environment")
    if chosen is not None and scalar_text(chosen) not in names:
        hint = did_you_mean(scalar_text(chosen), names) or "known environments: " + ", ".join(names)
        yield Diagnostic(
            "unknown-environment", f"there is no environment `{scalar_text(chosen)}`", chosen.place, hint
        )
    for _, environment in mapping_entries(content.get("environments")):
        yield from catalog_mistakes(as_mapping(as_mapping(environment).get("catalog")))
        spark = as_mapping(environment).get("spark")
        if (
            isinstance(spark, YamlMapping)
            and spark.get("master") is not None
            and spark.get("remote") is not None
        ):
            message = "`master` and `remote` cannot be combined"
            yield Diagnostic("conflicting-keys", message, spark.key_place("remote"))
        if isinstance(spark, YamlMapping) and spark.get("token") is not None and spark.get("remote") is None:
            message = "`token` has no meaning without `remote`"
            yield Diagnostic("conflicting-keys", message, spark.key_place("token"))
        yield from _namespace_mistakes(as_mapping(environment).get("namespaces"))
        yield from _plain_secrets(environment)
    yield from _without_end(content)


def _history_mistakes(node: YamlNode | None) -> Iterator[Diagnostic]:
    """Errors of the history's name."""
    if node is None:
        return
    try:
        name = TableName.parse(scalar_text(node))
    except BadName as error:
        yield Diagnostic("bad-name", f"`history`: {error}", node.place, "for example `icemigrate.history`")
        return
    if name.namespace[:1] == (TRASH_NAMESPACE,):
        message = f"`history`: `{name}` is in the namespace of the trash"
        yield Diagnostic("reserved-table", message, node.place, "for example `icemigrate.history`")


def _namespace_mistakes(node: YamlNode | None) -> Iterator[Diagnostic]:
    """Errors of mapped namespaces; values of variables are checked later."""
    taken: dict[FieldPath, str] = {}
    for key, value in mapping_entries(node):
        ways = [_namespace(key), _namespace(value)]
        yield from (way for way in ways if isinstance(way, Diagnostic))
        there = ways[1]
        if isinstance(there, tuple):
            first = taken.setdefault(there, key.text)
            if first != key.text:
                message = f"`{first}` and `{key.text}` cannot both map to `{scalar_text(value)}`"
                yield Diagnostic("bad-name", message, value.place, "give each its own name")


def _namespace(node: YamlNode) -> FieldPath | Diagnostic | None:
    if "${" in scalar_text(node):
        return None
    try:
        return parse_path(scalar_text(node))
    except BadName as error:
        return Diagnostic("bad-name", f"`namespaces`: {error}", node.place)


def catalog_mistakes(catalog: YamlMapping) -> Iterator[Diagnostic]:
    """Whether a catalog's keys fit its type."""
    kind = scalar_text(catalog.get("type"))
    uri = catalog.get("uri")
    if uri is None and kind in _NEEDS_URI:
        yield Diagnostic("missing-key", f"`uri` is missing: a `{kind}` catalog needs it", catalog.place)
    for key, kinds in _MEANT_FOR.items():
        if catalog.get(key) is not None and kind not in kinds:
            message = f"`{key}` has no meaning for a `{kind}` catalog"
            yield Diagnostic("conflicting-keys", message, catalog.key_place(key))
    is_written = uri is not None and "${" not in scalar_text(uri)
    if uri is not None and is_written and kind in ("sql", "jdbc") and not _is_database_url(scalar_text(uri)):
        hint = "for example `postgresql://db.example.com/lake`"
        yield Diagnostic("bad-format", "`uri` is not the URL of a database", uri.place, hint)


def _is_database_url(uri: str) -> bool:
    try:
        parts = urlsplit(uri.removeprefix("jdbc:"))
    except ValueError:
        return False
    return bool(parts.scheme and "://" in uri)


def _without_end(node: YamlNode) -> Iterator[Diagnostic]:
    """A NUL, at which paths and addresses end for the operating system."""
    if isinstance(node, YamlScalar):
        if "\0" in node.text or (isinstance(node.value, str) and "\0" in node.value):
            yield Diagnostic("bad-format", "a setting cannot contain a NUL character", node.place)
    elif isinstance(node, YamlSequence):
        for item in node.items:
            yield from _without_end(item)
    else:
        for _, value in mapping_entries(node):
            yield from _without_end(value)


def _plain_secrets(node: YamlNode) -> Iterator[Diagnostic]:
    if isinstance(node, YamlSequence):
        for item in node.items:
            yield from _plain_secrets(item)
    elif isinstance(node, YamlMapping):
        for key, value in node.entries:
            if not isinstance(value, YamlScalar):
                yield from _plain_secrets(value)
            elif "${" not in value.text and _is_secret(key.text, value):
                yield Diagnostic(
                    "secret-in-file",
                    f"`{key.text}` is in plain text in the project file",
                    value.place,
                    "write `${NAME}` and set NAME in the process environment",
                    Severity.WARNING,
                )


def _is_secret(key: str, value: YamlScalar) -> bool:
    """Whether a value is a secret; a setting's name alone is not enough: a flag, a number or a short word is
    none.
    """
    if key in _SECRETS:
        return True
    if key == "uri":
        return redact_secrets(value.text) != value.text
    return is_secret_setting(key) and isinstance(value.value, str) and len(value.text) >= 8
