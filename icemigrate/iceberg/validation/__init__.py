"""Rules about the table that a migration produces.

Rules look at the finished table and not at the changes, so the same rules serve every kind of change.
A violation that the table had before the migration is not reported again.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.iceberg.table import Table
from icemigrate.iceberg.validation.column_rules import (
    defaults_of_rows_in_orc,
    defaults_of_the_format,
    defaults_of_the_type,
    identifiers_are_comparable,
    identifiers_are_required,
    identifiers_are_there_in_every_row,
    identifiers_exist,
    sizes_in_range,
    types_of_the_format,
    unknown_is_optional,
    unknown_is_written_beside_others,
)
from icemigrate.iceberg.validation.name_rules import (
    names_are_printable,
    names_have_no_blank_edges,
    names_of_tables_are_no_paths,
    names_of_tables_fit,
    no_ambiguous_paths,
    no_duplicate_names,
    no_empty_structs,
    no_metadata_names,
    no_names_equal_in_nfc,
    no_names_that_differ_in_case,
    some_column,
)
from icemigrate.iceberg.validation.partition_rules import (
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
from icemigrate.iceberg.validation.table_rules import (
    branches_follow_the_schema,
    branches_hold_required_fields,
    distribution_is_known,
    no_identity_partition_in_optional_struct,
    no_reserved_properties,
    properties_name_columns,
    rows_are_retained_by_a_time,
    sort_sources_can_be_sorted,
    sort_sources_exist,
    variants_are_known_to_the_rows,
)
from icemigrate.iceberg.validation.violation import ValidationContext, ValidationRule, Violation

__all__ = ["VALIDATION_RULES", "Violation", "duplicate_names", "find_violations"]

VALIDATION_RULES: tuple[ValidationRule, ...] = (
    some_column,
    no_duplicate_names,
    no_names_that_differ_in_case,
    no_names_equal_in_nfc,
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
    no_identity_partition_in_optional_struct,
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

_RULES_OF_PROPERTIES: tuple[ValidationRule, ...] = (
    defaults_of_rows_in_orc,
    earlier_sources_exist,
    no_reserved_properties,
    properties_name_columns,
    distribution_is_known,
    rows_are_retained_by_a_time,
)
"""The rules that read properties: where only these differ, the others report what the table had before."""


def find_violations(table: Table, before: Table | None, written: Table | None = None) -> Iterator[Violation]:
    """The violations of a table that a migration produces.

    :param before: the table that the migration starts from; ``None`` where it creates the table.
    :param written: the table when the migration writes its rows; ``None`` where it writes none.
    """
    found = list(_find_violations(ValidationContext(table, before, written)))
    old = (
        set(_find_violations(ValidationContext(before, before, is_whole=True))) if found and before else set()
    )
    return (violation for violation in found if violation not in old)


def duplicate_names(table: Table, before: Table) -> tuple[Violation, ...]:
    """Names that two fields of one parent have, which not even an intermediate table may have.

    :param before: the existing table, which has none.
    """
    if table.schema.fields is before.schema.fields:
        return ()
    return tuple(no_duplicate_names(ValidationContext(table, before)))


def _find_violations(view: ValidationContext) -> Iterator[Violation]:
    for rule in _RULES_OF_PROPERTIES if view.differs_in_properties else VALIDATION_RULES:
        yield from rule(view)
