"""Checksums of migrations, computed from the parsed content of a file and not from its bytes.

Comments, layout, the order of keys and of tables, quoting, anchors, byte order marks and line breaks do not
count, nor do the file's name and its ``description`` and ``because``.  A value equal to its default does not
count either, so ``drop_columns: [a]`` equals ``[{name: a, purge: false}]``, and a key that a later release
adds changes no checksum of existing files.  ``for_each`` counts as the entries that it expands to; for a list
whose values are not in the project file, it counts as one entry and the source of the values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from icemigrate.files.read.list_sources import ListSource
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen, compared_fields

_NOT_COUNTED = frozenset({"version", "path", "name", "description", "because"})
_WITHOUT_ORDER = ("allow", "namespaces", "tables", "templates")
"""Fields whose order does not count: a file declares each table once, and consents are a set."""

SHORT_LENGTH = 12


def checksum(migration: Frozen) -> str:
    """SHA-256 in hex.

    :param migration: a :class:`~icemigrate.files.read.migration_file.MigrationFile`.
    """
    content = {
        name: _plain(_counted(name, getattr(migration, name)))
        for name in compared_fields(type(migration))
        if name not in _NOT_COUNTED
    }
    # Releases without these keys computed the checksums of applied files.
    if content["time_zone"] is None:
        del content["time_zone"]
    for name in _WITHOUT_ORDER:
        content[name] = sorted(map(_written, content[name]))
    if not content["templates"]:
        del content["templates"]
    text = _written(content)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _counted(name: str, value: Any) -> Any:
    """The part of a field that counts: not the copies of templates."""
    return tuple(entry for entry in value if not entry.sources) if name == "tables" else value


def fingerprint(content: bytes, lists: Mapping[str, tuple[str, ...] | ListSource]) -> str:
    """SHA-256 in hex of a file's bytes and of the project's lists, which its ``for_each`` may name.

    Equal fingerprints mean equal checksums, so a comparison needs no parsing.
    """
    named = _written(
        {name: one.counted if isinstance(one, ListSource) else list(one) for name, one in lists.items()}
    )
    return hashlib.sha256(named.encode("utf-8", "surrogatepass") + b"\n" + content).hexdigest()


def short_checksum(checksum_hex: str) -> str:
    """A checksum for people."""
    return checksum_hex[:SHORT_LENGTH]


def _written(content: Any) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, tuple):
        # ``renames`` is a mapping whose order does not matter; it is the only tuple of pairs.
        pairs = bool(value) and all(isinstance(one, tuple) for one in value)
        return [_plain(one) for one in (sorted(value) if pairs else value)]
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, timedelta):
        return f"{value.days * 86400 + value.seconds}s"
    if isinstance(value, Version):
        return value.number
    counted = (
        (name, getattr(value, name), default) for name, default in compared_fields(value.__class__).items()
    )
    return {name: _plain(one) for name, one, default in counted if one != default}
