"""The three sides of a table made into one target; see :mod:`icemigrate.planning.merge.merge_tables`."""

from __future__ import annotations

from icemigrate.planning.merge.field_ids import (
    complete_adopted_table,
    rebind_by_path,
    rebind_field_ids,
    with_catalog_ids,
    with_catalog_order,
)
from icemigrate.planning.merge.footprint import FootprintFact, migration_footprint, overlapping_facts
from icemigrate.planning.merge.merge_fields import match_new_fields
from icemigrate.planning.merge.merge_outcome import (
    NO_TABLE,
    OTHER_TABLE,
    RECREATED_TABLE,
    UNKNOWN_BASE,
    Conflict,
    Fact,
)
from icemigrate.planning.merge.merge_tables import (
    MergedTable,
    done_notes,
    group_facts_by_column,
    merge_tables,
    undone_notes,
)

__all__ = [
    "NO_TABLE",
    "OTHER_TABLE",
    "RECREATED_TABLE",
    "UNKNOWN_BASE",
    "Conflict",
    "Fact",
    "FootprintFact",
    "MergedTable",
    "complete_adopted_table",
    "done_notes",
    "group_facts_by_column",
    "match_new_fields",
    "merge_tables",
    "migration_footprint",
    "overlapping_facts",
    "rebind_by_path",
    "rebind_field_ids",
    "undone_notes",
    "with_catalog_ids",
    "with_catalog_order",
]
