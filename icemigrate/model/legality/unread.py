"""Rules about tables that Spark does not read as they are, until somebody writes to them otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.model.legality.breach import Breach, View, column
from icemigrate.model.names import format_path
from icemigrate.model.partitioning import IDENTITY
from icemigrate.model.schema import Entry
from icemigrate.model.types import Primitive, Struct

_VARIANT = Primitive("variant")


def null_structs_stay_null(view: View) -> Iterator[Breach]:
    """A field that the table is partitioned by as it is stands in no struct that may be null.

    Readers take its value from the partition and not from the file, so nothing is left to say that the struct
    itself is null: Iceberg 1.12 makes a struct of nulls of it wherever a query asks for nothing of the struct
    but such fields, and Spark asks for what it needs alone.  Where a struct has no other fields, whatever
    rewrites the files writes that down.  Other transforms leave the value in the file to be read.
    """
    for field in view.table.spec.live:
        entry = view.fields.get(field.source_ids[0])
        if entry is None or field.transform != IDENTITY or view.in_container(entry):
            continue
        around = [e for e in view.above(entry) if not e.field.required]
        if not around:
            continue
        path, struct = format_path(entry.path), format_path(around[0].path)
        yield Breach(
            "identity-partition-in-optional-struct",
            ("partition_by",),
            f"the table is partitioned by `{path}` as it is, and `{struct}` may be null: where a query reads "
            f"nothing else of `{struct}`, Spark takes one that is null for one whose fields are null"
            + _for_good(view, around[0]),
            f"partition by another transform of it (`truncate`, `bucket`, `day`), or by a column outside "
            f"`{struct}`",
            is_warning=True,
        )


def _for_good(view: View, struct: Entry) -> str:
    """What comes of it where all fields of a struct are such."""
    constant = {f.source_ids[0] for f in view.table.spec.live if f.transform == IDENTITY}

    def is_constant(entry: Entry) -> bool:
        type_ = entry.field.type
        if isinstance(type_, Struct):
            return all(is_constant(view.fields[f.id]) for f in type_.fields)
        return entry.field.id in constant

    return ", and whatever rewrites a row writes it so" if is_constant(struct) else ""


def variants_are_known_to_the_rows(view: View) -> Iterator[Breach]:
    """A column of type variant has its name in the schema of the newest snapshot.

    Spark asks Iceberg 1.12 for the values of such a column by its name in that schema
    (``BaseScan.includeColumnStats``), and every query that reads the column fails with a
    ``NullPointerException`` where it is not there: after an ``ALTER``, which makes no snapshot, or an undo
    that brings the column back.  So do updates by copy-on-write.  Variants inside of structs, lists and maps
    are read.
    """
    rows = view.written or view.before
    if view.before is None or view.before.snapshot is None or rows is None:
        return
    known = {f.name for f in rows.schema.fields}
    for field in view.table.schema.fields:
        if field.type == _VARIANT and field.name not in known:
            name = format_path((field.name,))
            yield Breach(
                "variant-unknown-to-rows",
                column((field.name,)),
                f"Spark cannot read `{name}`, nor update rows, until somebody writes to the table: its "
                "newest snapshot knows no such variant, and neither a migration nor an undo makes one",
                f"when it is done, append no rows: `INSERT INTO {view.table.name} SELECT * FROM "
                f"{view.table.name} WHERE false`",
                is_warning=True,
            )
