"""Tables of the shared cases, made in a catalog as their owners would: by Spark, or by PyIceberg."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from icemigrate.catalog.capabilities import CAPABILITY_MATRIX, server_managed_predicate
from icemigrate.changes.change import HazardKind, SqlStatement
from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.reference_sql import create_reference_sql
from icemigrate.files.write.migration_entries import entry_between, format_migration_file
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import order_to_json, schema_to_json, spec_to_json
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, Table
from icemigrate.iceberg.types import Struct, map_fields
from icemigrate.planning.adopted_entries import declarable_table
from icemigrate.project import choose_environment, pyiceberg_properties
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.publish import DirectPublisher
from icemigrate.spark.spark_engine import SparkEngine
from icemigrate.spark_sql.identifiers import table_sql
from tests.support.planned_migrations import make_plan
from tests.support.shared_cases import Course, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.catalog import Catalog

    from icemigrate.project import Project


def table_name(namespace: str, id_: str) -> TableName:
    """What the table of a course is called: no capitals, which some catalogs refuse."""
    return TableName((namespace,), "t_" + "".join(c if c.isalnum() else "_" for c in id_.lower()))


def make_by_spark(engine: SparkEngine, name: TableName, course: Course) -> None:
    """Make a table and lead it to its end, by Spark SQL and, where that has no words, by Iceberg's Java API.

    It is partitioned after it is made, which every catalog takes.
    """
    catalog = engine.catalog_name
    blank = Table(name, Schema(), format_version=course.made.format_version)
    made = CreateTable(name, replace(course.made, name=name, refs={}), partition_afterwards=True)
    for statement in made.statements(blank, catalog):
        if isinstance(statement, SqlStatement):
            engine.sql(statement.text)
        else:
            engine.create(made.apply(blank))
    for number in range(course.snapshots):
        engine.sql(f"INSERT INTO {table_sql(catalog, name)} VALUES ({number})")
    for key, ref in course.made.refs.items():
        engine.sql(create_reference_sql(catalog, name, key, replace(ref, snapshot_id=CURRENT_SNAPSHOT)).text)
    for number, step in enumerate(course.steps, 2):
        _lead(engine, name, step, f"{number:04}")


def _lead(engine: SparkEngine, name: TableName, step: Step, version: str) -> None:
    there = engine.table(name)
    assert there is not None
    # Not every catalog numbers a new table's fields as the cases do.
    before = declarable_table(there, server_managed_predicate(CAPABILITY_MATRIX["rest"]))
    text = format_migration_file(
        [entry_between(before, step.target(before))], allow=map(attrgetter("value"), HazardKind)
    )
    base = DeclaredState({name: before}, frozenset({name.namespace}))
    plan = make_plan({version: text}, {name: there}, engine.catalog_name, base, [name.namespace])
    (table,) = plan.migrations[0].tables
    marker = Marker(plan.project, version, "", "")
    DirectPublisher(engine, tags=False).publish(table, there, marker, lambda event: None)


def pyiceberg_of(project: Project, variables: Mapping[str, str]) -> Catalog:
    """PyIceberg's own catalog on the catalog of a project."""
    from pyiceberg.catalog import load_catalog

    environment = choose_environment(project, None, variables)
    return load_catalog(environment.catalog.name, **pyiceberg_properties(environment))


def make_by_pyiceberg(catalog: Catalog, name: TableName, course: Course) -> None:
    """Make a table as it is in the end."""
    import pyarrow
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema as Columns
    from pyiceberg.table.sorting import SortOrder

    end = course.end
    table = catalog.create_table(
        (*name.namespace, name.name),
        Columns.model_validate(schema_to_json(end.schema)),
        partition_spec=PartitionSpec.model_validate(spec_to_json(end.spec)),
        sort_order=SortOrder.model_validate(order_to_json(end.sort_order)),
        properties={**end.properties, "format-version": str(end.format_version)},
    )
    for number in range(course.snapshots):
        (column,) = table.schema().as_arrow()
        table.append(pyarrow.table({column.name: pyarrow.array([number], column.type)}))
    for key, ref in end.refs.items():
        snapshots = table.manage_snapshots()
        create = snapshots.create_tag if ref.kind == "tag" else snapshots.create_branch
        current = table.current_snapshot()
        assert current is not None
        create(current.snapshot_id, key, max_ref_age_ms=ref.max_ref_age_ms).commit()


def without_defaults(table: Table) -> Table:
    """The table without what its columns default to."""
    plain = map_fields(table.schema.root, lambda f: replace(f, initial_default=None, write_default=None))
    assert isinstance(plain, Struct)
    return replace(table, schema=replace(table.schema, fields=plain.fields))
