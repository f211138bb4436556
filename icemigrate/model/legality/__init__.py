"""What a table may be: every rule over the state that a migration leads to.

Rules look at a finished table, not at the way there, so the same ones serve every kind of change.
What a table was guilty of before a migration is not held against it again.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.model.legality.breach import Breach, Rule, View
from icemigrate.model.legality.configured import (
    distribution_is_known,
    no_reserved_properties,
    properties_name_columns,
    rows_are_retained_by_a_time,
)
from icemigrate.model.legality.defaults import (
    defaults_of_rows_in_orc,
    defaults_of_the_format,
    defaults_of_the_type,
)
from icemigrate.model.legality.identifying import (
    identifiers_are_comparable,
    identifiers_are_required,
    identifiers_are_there_in_every_row,
    identifiers_exist,
)
from icemigrate.model.legality.naming import (
    names_are_printable,
    names_have_no_blank_edges,
    names_of_tables_are_no_paths,
    names_of_tables_fit,
    no_ambiguous_paths,
    no_duplicate_names,
    no_empty_structs,
    no_metadata_names,
    no_names_that_differ_in_case,
    no_names_that_look_the_same,
    some_column,
)
from icemigrate.model.legality.ordered import sort_sources_can_be_sorted, sort_sources_exist
from icemigrate.model.legality.partitioned import (
    earlier_sources_exist,
    names_are_portable,
    names_differ_from_columns,
    names_mean_one_field,
    no_double_fields,
    no_redundant_times,
    partition_sources_exist,
    sources_outside_containers,
    transforms_fit,
    void_sources_exist,
)
from icemigrate.model.legality.referring import branches_follow_the_schema, branches_hold_required_fields
from icemigrate.model.legality.sizing import (
    sizes_in_range,
    types_of_the_format,
    unknown_is_optional,
    unknown_is_written_beside_others,
)
from icemigrate.model.legality.unread import null_structs_stay_null, variants_are_known_to_the_rows
from icemigrate.model.table import Table

__all__ = ["RULES", "Breach", "duplicate_names", "problems"]

RULES: tuple[Rule, ...] = (
    some_column,
    no_duplicate_names,
    no_names_that_differ_in_case,
    no_names_that_look_the_same,
    names_are_printable,
    names_have_no_blank_edges,
    names_of_tables_are_no_paths,
    names_of_tables_fit,
    no_metadata_names,
    no_ambiguous_paths,
    no_empty_structs,
    types_of_the_format,
    unknown_is_optional,
    unknown_is_written_beside_others,
    sizes_in_range,
    defaults_of_the_format,
    defaults_of_the_type,
    defaults_of_rows_in_orc,
    identifiers_exist,
    identifiers_are_required,
    identifiers_are_comparable,
    identifiers_are_there_in_every_row,
    partition_sources_exist,
    void_sources_exist,
    earlier_sources_exist,
    transforms_fit,
    sources_outside_containers,
    no_double_fields,
    no_redundant_times,
    names_differ_from_columns,
    names_mean_one_field,
    names_are_portable,
    null_structs_stay_null,
    sort_sources_exist,
    sort_sources_can_be_sorted,
    no_reserved_properties,
    properties_name_columns,
    distribution_is_known,
    rows_are_retained_by_a_time,
    branches_follow_the_schema,
    branches_hold_required_fields,
    variants_are_known_to_the_rows,
)
"""All rules, in the order in which they report."""


def problems(table: Table, before: Table | None, written: Table | None = None) -> Iterator[Breach]:
    """What is wrong with a table that a migration leads to.

    :param before: the table that the migration starts from; ``None`` where it makes the table.
    :param written: the table as it is when the migration writes its rows; ``None`` where it writes none.
    """
    found = list(_breaches(View(table, before, written)))
    old = set(_breaches(View(before, before, is_whole=True))) if found and before else set()
    return (breach for breach in found if breach not in old)


def duplicate_names(table: Table, before: Table) -> tuple[Breach, ...]:
    """Names that two fields of one parent have: what a table must not even be on the way.

    :param before: the table that is there, which has none.
    """
    return tuple(no_duplicate_names(View(table, before)))


def _breaches(view: View) -> Iterator[Breach]:
    for rule in RULES:
        yield from rule(view)
