"""Bounds in the manifests of a real table decide whether rows can be older than a moment."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from icemigrate.catalog.older_values import may_have_older_values

FIRST = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
LATER = timedelta(days=1)


@pytest.mark.parametrize(
    ("values", "before", "expected"),
    [
        ([FIRST, FIRST + LATER], FIRST, False),
        ([FIRST, FIRST + LATER], FIRST + timedelta(microseconds=1), True),
        ([None, None], FIRST + LATER, False),
        ([None, FIRST], FIRST, False),
        ([None, FIRST], FIRST + LATER, True),
    ],
)
def test_only_files_whose_bounds_allow_older_values_count(
    tmp_path: Path, values: list[datetime | None], before: datetime, expected: bool
) -> None:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/c.db", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    rows = pa.table({"id": [1, 2], "at": pa.array(values, pa.timestamp("us", "UTC"))})
    table = catalog.create_table("db.t", rows.schema)
    metadata = table.metadata.model_dump(by_alias=True)

    def read(location: str) -> bytes:
        return Path(location.removeprefix("file://")).read_bytes()

    assert not may_have_older_values(metadata, read, 2, "timestamptz", before), "no snapshot"
    table.append(rows)
    metadata = table.metadata.model_dump(by_alias=True)
    assert may_have_older_values(metadata, read, 2, "timestamptz", before) is expected
    assert may_have_older_values(metadata, lambda _: b"", 2, "timestamptz", before), "a file is damaged"
    if any(values):
        assert may_have_older_values(metadata, read, 2, "date", before), "the bounds are of another type"
