"""Which credentials a file of a REST catalog's table is read with."""

from __future__ import annotations

from typing import Any

import pytest

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.metadata_engine.rest_files import RestFiles


def rest_files() -> RestFiles:
    return RestFiles(CatalogSettings("lake", "rest", "http://localhost:1"))


def region(files: RestFiles, location: str) -> str | None:
    """The region that a file is read with; ``None`` for the catalog's own settings."""
    value: str | None = files._files(location)._settings.properties.get("s3.region")
    return value


def answer(prefix_regions: dict[str, str]) -> dict[str, Any]:
    return {
        "storage-credentials": [
            {"prefix": prefix, "config": {"s3.region": one}} for prefix, one in prefix_regions.items()
        ]
    }


def test_the_longest_prefix_decides() -> None:
    files = rest_files()
    files.use_credentials_of(answer({"s3": "a", "s3://lake/t/data": "b"}), "s3://lake/t")
    assert region(files, "s3://lake/t/data-1/x") == "b"
    assert region(files, "s3://lake/u/x") == "a"
    assert region(files, "gs://x") is None
    assert region(files, "s") is None
    files.use_credentials_of(answer({"s3://lake/t/data": "c"}), "s3://lake/t")
    assert region(files, "s3://lake/t/data") == "c"


class CountedPrefixes(dict[str, Any]):
    """Prefixes that count how often one is compared."""

    compared = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.compared += 1
        return super().get(key, default)

    def __iter__(self) -> Any:
        for key in super().__iter__():
            self.compared += 1
            yield key


@pytest.mark.parametrize("tables", [10, 1000])
def test_a_file_is_found_without_a_look_at_every_table(tables: int) -> None:
    files = rest_files()
    for number in range(tables):
        files.use_credentials_of({"config": {"s3.region": f"r{number}"}}, f"s3://lake/t{number:06}")
    files._by_prefix = counted = CountedPrefixes(files._by_prefix)
    for number in range(tables):
        assert region(files, f"s3://lake/t{number:06}/data/x.parquet") == f"r{number}"
    assert counted.compared <= 2 * tables
