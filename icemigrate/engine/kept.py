"""Where values of dropped fields can still be read that the files of now do not hold any more.

A tag keeps its snapshot, and with it the files from before the values were rewritten away.  Which row of then
is which row of now is told by row ids (specification, "Row Lineage", format version 3: engines carry
them over when they rewrite a row), else by the identifier fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from icemigrate.engine.manifests import File, Look, each, share
from icemigrate.model.evidence import Kept, Questions, Share
from icemigrate.model.json_form import schema_from_json
from icemigrate.model.schema import Schema, index
from icemigrate.model.table import TAG_PREFIX
from icemigrate.model.types import Struct

ROW_LINEAGE_VERSION = 3
"""The first format version whose rows have ids."""


def find_kept(
    look: Look, questions: Questions, held: Mapping[int, Share], now: Sequence[File], is_known: bool
) -> dict[int, Kept]:
    """By field, where rows may get their value back from; nothing of a field that no row misses.

    :param held: the rows of now by whether their files hold the field.
    :param now: the files of the main branch.
    :param is_known: whether it is known which of them were written when the field was gone.
    """
    found: dict[int, Kept] = {}
    versions: list[_Version] | None = None
    files: dict[str, Sequence[File]] = {}
    for field_id, leaves in questions.held.items():
        has = held[field_id]
        there = has.held + (has.unknown if is_known else 0)
        if there >= has.total:
            continue
        if versions is None:
            versions = list(_versions(look, questions.versions))
        version = next((v for v in versions if v.schema.by_id(field_id) is not None), None)
        if version is None:
            continue
        if version.name not in files:
            files[version.name] = look.files(version.snapshot)
        then = share(files[version.name], leaves, ())
        # Rows whose files hold the value came from there as well, so they are none of those that miss it.
        rows = min(has.total - there, then.held + then.unknown - there)
        if rows > 0:
            found[field_id] = _kept(look, version, field_id, rows, (*now, *files[version.name]))
    return found


@dataclass(frozen=True, slots=True)
class _Version:
    """A snapshot that is kept.

    :param name: its tag, or its id.
    """

    name: str
    schema: Schema
    snapshot: Any


def _versions(look: Look, wanted: Sequence[str]) -> Iterator[_Version]:
    """The snapshots that may keep values: those asked for that are there, then those of all our tags, the
    newest first."""
    refs = look.table.refs()
    tags = {name: refs.get(name).snapshotId() for name in each(refs.keySet()) if refs.get(name).isTag()}
    ours = [(name, look.table.snapshot(i)) for name, i in tags.items() if name.startswith(TAG_PREFIX)]
    asked = [(name, look.table.snapshot(tags.get(name, _id(name)))) for name in wanted]
    newest = sorted(ours, key=lambda pair: (pair[1].sequenceNumber(), pair[0]), reverse=True)
    seen = set[int]()
    for name, snapshot in (*asked, *newest):
        if snapshot is None or snapshot.snapshotId() in seen:
            continue
        seen.add(snapshot.snapshotId())
        schema = look.table.schemas().get(snapshot.schemaId())
        if schema is not None:
            yield _Version(name, _read(look, schema), snapshot)


def _id(name: str) -> int:
    """A snapshot's id; of a tag that is gone none that any snapshot has."""
    return int(name) if name.isdigit() else -1


def _read(look: Look, schema: Any) -> Schema:
    return schema_from_json(json.loads(look.iceberg.SchemaParser.toJson(schema)))


def _kept(look: Look, version: _Version, field_id: int, rows: int, files: Sequence[File]) -> Kept:
    then, schema = index(version.schema), _read(look, look.table.schema())
    has_ids = look.table.operations().current().formatVersion() >= ROW_LINEAGE_VERSION and all(
        file.first_row_id is not None for file in files
    )
    ids = schema.identifier_ids
    same = bool(ids) and ids == version.schema.identifier_ids and field_id not in ids
    above, in_structs = then[field_id].parent, True
    while above is not None:
        in_structs = in_structs and isinstance(then[above].field.type, Struct)
        above = then[above].parent
    return Kept(
        version=version.name,
        path=then[field_id].path,
        rows=rows,
        in_structs=in_structs,
        by_row_id=has_ids,
        identifier={i: then[i].path for i in sorted(ids)} if same else {},
    )
