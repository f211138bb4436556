"""How many rows of a data file are deleted, as far as delete files tell that by themselves."""

from __future__ import annotations

import pytest

from icemigrate.iceberg.delete_files import DataFileRows, DeletedRows, DeleteFile, DeleteKind, deleted_rows

POSITIONS, VECTOR, EQUALITY = DeleteKind.POSITIONS, DeleteKind.VECTOR, DeleteKind.EQUALITY


@pytest.mark.parametrize(
    ("deletes", "deleted"),
    [
        ([], {}),
        ([DeleteFile(POSITIONS, 2, 5, "a")], {"a": DeletedRows(2)}),
        ([DeleteFile(POSITIONS, 2, 5, "gone")], {}),
        # Two files of one data file may name the same row.
        ([DeleteFile(POSITIONS, 2, 5, "a"), DeleteFile(POSITIONS, 3, 5, "a")], {"a": DeletedRows(3, 2)}),
        ([DeleteFile(POSITIONS, 4, 5)], {"a": DeletedRows(0, 4), "b": DeletedRows(0, 4)}),
        # What was written later than a delete file keeps its rows.
        ([DeleteFile(POSITIONS, 4, 2)], {"a": DeletedRows(0, 4)}),
        ([DeleteFile(EQUALITY, 1, 3)], {"a": DeletedRows(0, 10)}),
        ([DeleteFile(EQUALITY, 1, 4)], {"a": DeletedRows(0, 10), "b": DeletedRows(0, 20)}),
        ([DeleteFile(EQUALITY, 1)], {"a": DeletedRows(0, 10), "b": DeletedRows(0, 20)}),
        # A deletion vector holds what position deletes of its file did.
        ([DeleteFile(VECTOR, 3, 5, "a"), DeleteFile(POSITIONS, 2, 4, "a")], {"a": DeletedRows(3)}),
        ([DeleteFile(VECTOR, 3, 5, "a"), DeleteFile(POSITIONS, 2, 2)], {"a": DeletedRows(3)}),
        ([DeleteFile(VECTOR, 3, 5, "a"), DeleteFile(EQUALITY, 1, 2)], {"a": DeletedRows(3, 7)}),
    ],
)
def test_deleted_rows_are_counted_where_delete_files_tell_and_bounded_elsewhere(
    deletes: list[DeleteFile], deleted: dict[str, DeletedRows]
) -> None:
    assert deleted_rows({"a": DataFileRows(10, 1), "b": DataFileRows(20, 3)}, deletes) == deleted


def test_no_more_rows_are_deleted_than_a_file_has() -> None:
    found = deleted_rows(
        {"a": DataFileRows(2, 1)}, [DeleteFile(POSITIONS, 3, 5, "a"), DeleteFile(POSITIONS, 9, 5)]
    )
    assert found == {"a": DeletedRows(2)}


def test_many_delete_files_are_not_compared_with_each_of_many_data_files() -> None:
    """Compared one by one, these would take minutes."""
    many = 30_000
    files = {str(number): DataFileRows(many, number) for number in range(many)}
    found = deleted_rows(files, [DeleteFile(POSITIONS, 1, number) for number in range(many)])
    assert found == {str(number): DeletedRows(0, many - number) for number in range(many)}
