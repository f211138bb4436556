"""Every table of the shared cases, made by PyIceberg on SQLite: imported, it plans to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.files.write.migration_entries import creation_entry
from icemigrate.frozen import replace
from tests.support.case_tables import make_by_pyiceberg, table_name
from tests.support.imported_tables import imported, own
from tests.support.shared_cases import courses

COURSES = courses()
NOT_MADE = dict.fromkeys(
    (
        *("AC-10", "AC-10 after", "AC-21", "FV-03", "TY-11", "TY-16", "TY-16 after"),
        *("TY-24", "TY-24 after", "TY-26"),
    ),
    "PyIceberg writes no metadata of format version 3; a REST server writes it itself",
)
"""What cannot be made here, by the id of its course, and why."""


def test_tables_made_by_pyiceberg_are_imported_to_nothing(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'catalog.db'}"
    catalog = SqlCatalog("lake", uri=uri, warehouse=str(tmp_path))
    catalog.create_namespace("db")
    names = {id_: table_name("db", id_) for id_ in COURSES}
    for id_, name in names.items():
        if id_ not in NOT_MADE:
            make_by_pyiceberg(catalog, name, COURSES[id_])
            continue
        with pytest.raises(NotImplementedError, match="V3"):
            make_by_pyiceberg(catalog, name, COURSES[id_])
    found = open_catalog(CatalogSettings("lake", "sqlite", uri, str(tmp_path))).load(names.values())
    for id_, name in names.items():
        there = found[name]
        assert (there is None) is (id_ in NOT_MADE)
        if there is not None:
            assert creation_entry(own(there)) == creation_entry(own(replace(COURSES[id_].end, name=name))), (
                id_
            )
            assert not imported(there).unsaid
