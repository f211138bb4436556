"""Tables of the cases and the real schemas, made by PyIceberg: imported, they plan to nothing."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortOrder

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.model.json_form import order_to_json, schema_to_json, spec_to_json
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from tests.importing import imported
from tests.shared_cases import evolution_cases, real_schema_steps


def sayable_by_pyiceberg(table: Table) -> bool:
    """It writes no tables of format version 3."""
    return table.format_version < 3


def test_tables_made_by_pyiceberg_are_imported_to_nothing(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'catalog.db'}"
    catalog = SqlCatalog("lake", uri=uri, warehouse=str(tmp_path))
    catalog.create_namespace("db")
    tables = {
        c.id: c.before for c in (*evolution_cases(), *real_schema_steps()) if sayable_by_pyiceberg(c.before)
    }
    names = []
    for number, table in enumerate(tables.values()):
        if any(f.source_ids[0] not in {f.id for _, f in table.schema.walk()} for f in table.spec.fields):
            continue  # a source that is gone: it must have been there once
        names.append(TableName(("db",), f"t{number}"))
        catalog.create_table(
            ("db", names[-1].name),
            Schema.model_validate(schema_to_json(table.schema)),
            partition_spec=PartitionSpec.model_validate(spec_to_json(table.spec)),
            sort_order=SortOrder.model_validate(order_to_json(table.sort_order)),
            properties={**table.properties, "format-version": str(table.format_version)},
        )
    assert len(names) > 100
    found = open_catalog(CatalogSettings("lake", "sqlite", uri, str(tmp_path))).load(names)
    for there in found.values():
        assert there is not None
        assert not imported(there).unsaid
