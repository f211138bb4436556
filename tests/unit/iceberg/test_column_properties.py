"""Properties that name a column, after a rename and a drop."""

from __future__ import annotations

from icemigrate.iceberg.names import FieldPath
from icemigrate.iceberg.table_properties import column_properties_after_drop, column_properties_after_rename

METRICS = "write.metadata.metrics.column."
BLOOM = "write.parquet.bloom-filter-enabled.column."
STATS = "write.parquet.stats-enabled.column."


def test_a_rename_moves_all_three_kinds() -> None:
    before = {
        METRICS + "a": "full",
        BLOOM + "a": "true",
        STATS + "a": "false",
        "a": "1",
        METRICS + "ab": "none",
    }
    assert column_properties_after_rename(before, {("a",): ("b",)}) == {
        METRICS + "b": "full",
        BLOOM + "b": "true",
        STATS + "b": "false",
        "a": "1",
        METRICS + "ab": "none",
    }


def test_renames_at_once_can_swap() -> None:
    before = {METRICS + "a": "1", METRICS + "b": "2"}
    assert column_properties_after_rename(before, {("a",): ("b",), ("b",): ("a",)}) == {
        METRICS + "a": "2",
        METRICS + "b": "1",
    }


def test_a_moved_property_wins_over_a_stale_one() -> None:
    before = {METRICS + "a": "1", METRICS + "b": "stale"}
    assert column_properties_after_rename(before, {("a",): ("b",)}) == {METRICS + "b": "1"}


def test_what_is_below_a_renamed_struct_keeps_its_old_path() -> None:
    before = {METRICS + "s": "1", METRICS + "s.x": "2"}
    assert column_properties_after_rename(before, {("s",): ("t",)}) == {
        METRICS + "t": "1",
        METRICS + "s.x": "2",
    }


def test_names_are_joined_by_dots_and_not_quoted() -> None:
    before = {METRICS + "l.element.zip.code": "1"}
    renamed: dict[FieldPath, FieldPath] = {("l", "element", "zip.code"): ("l", "element", "x")}
    assert column_properties_after_rename(before, renamed) == {METRICS + "l.element.x": "1"}


def test_a_drop_removes_the_properties_of_the_field_alone() -> None:
    before = {METRICS + "s": "1", BLOOM + "s": "2", STATS + "s.x": "3", "s": "4", METRICS + "default": "5"}
    assert column_properties_after_drop(before, [("s",)]) == {
        STATS + "s.x": "3",
        "s": "4",
        METRICS + "default": "5",
    }


def test_nothing_is_done_to_what_was_lent() -> None:
    before = {METRICS + "a": "1"}
    column_properties_after_rename(before, {("a",): ("b",)})
    column_properties_after_drop(before, [("a",)])
    assert before == {METRICS + "a": "1"}
