"""A table that is taken in: what its file does not say, or cannot, is as the catalog has it."""

from __future__ import annotations

from collections.abc import Collection

from icemigrate.frozen import replace
from icemigrate.merge.fields import align
from icemigrate.merge.rebind import rebind
from icemigrate.model.schema import Schema, index
from icemigrate.model.table import Table
from icemigrate.model.types import Field, Struct, map_fields


def adopted(wanted: Table, actual: Table, unsaid: Collection[str]) -> Table:
    """The declared table under the field ids of the one that is there, completed by what that one has.

    A column's first default is what older rows read; a file gives one default alone, which is the writers'.

    :param wanted: as the file says it, its fields under negative ids.
    :param unsaid: keys that the file leaves out, see :class:`~icemigrate.model.sides.Wanted`.
    """
    table = rebind(wanted, align(Schema(), wanted.schema, actual.schema))
    there = index(actual.schema)

    def completed(field: Field) -> Field:
        entry = there.get(field.id)
        return field if entry is None else replace(field, initial_default=entry.field.initial_default)

    root = map_fields(table.schema.root, completed)
    assert isinstance(root, Struct)
    ids = actual.schema.identifier_ids if "identifier" in unsaid else table.schema.identifier_ids
    return replace(
        table,
        schema=replace(table.schema, fields=root.fields, identifier_ids=ids),
        spec=actual.spec if "partition_by" in unsaid else table.spec,
        sort_order=actual.sort_order if "sort_by" in unsaid else table.sort_order,
        format_version=actual.format_version if "format_version" in unsaid else table.format_version,
    )
