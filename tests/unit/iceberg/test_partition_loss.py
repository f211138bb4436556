"""What a plan says of partition values that manifests have lost."""

from __future__ import annotations

from icemigrate.iceberg.partition_evolution import PartitionLoss, UnrecordedValues


def test_what_comes_back_and_what_does_not_is_said_with_files_rows_and_field() -> None:
    loss = PartitionLoss(2, 1, {"s": UnrecordedValues(1, 3, True), "s_trunc": UnrecordedValues(2, 4, False)})
    assert list(loss.notes("a.s")) == [
        "manifests written while a.s was dropped have null for its partition values in 2 files (1 row): the "
        "commit rewrites these manifests with the right values",
        "values of partition field `s` that are not recorded anywhere: 1 file (3 rows); a.s reads null there",
        "values of partition field `s_trunc` that are not recorded anywhere: 2 files (4 rows); filters on "
        "a.s miss them",
    ]
    assert list(PartitionLoss().notes("a.s")) == []
