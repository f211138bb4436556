"""The matrix of what each kind of catalog can do, held against real servers.

A row may promise less than one server of its kind does, never more.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier
from typing import Any

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.catalog.capabilities import SPARK_ADDS, Capabilities
from icemigrate.execution.environment_session import open_environment
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.iceberg.views import ViewQuery
from tests.servers.lake import Lake
from tests.servers.seaweedfs import SeaweedFS
from tests.support.metadata_samples import VIEW, sample


@pytest.fixture
def capabilities(lake: Lake) -> Capabilities:
    """The row of the kind, made exact by what the server says of itself."""
    lake.engine.create_namespace((lake.namespace,))
    with open_environment(lake.project, None) as world:
        return world.catalog.capabilities


def make(lake: Lake, name: str = "trades", version: int = 2, namespace: str | None = None) -> Table:
    schema = Schema((Field(1, "id", Primitive("long")),))
    return lake.engine.create(Table(lake.name(name, namespace), schema, format_version=version))


def succeeds(act: Callable[[], Any]) -> bool:
    try:
        act()
    except Exception:  # whatever the server, Java or Spark say, it was a no
        return False
    return True


def test_a_table_moves_to_another_namespace(lake: Lake, capabilities: Capabilities) -> None:
    before = make(lake)
    moved = lake.name("trades", f"{lake.namespace}_archive")
    assert succeeds(lambda: lake.engine.rename(before.name, moved)) is capabilities.renames_across_namespaces
    there = lake.find(moved)
    assert there is not None
    assert there.uuid == before.uuid


def test_a_stale_commit_is_refused(lake: Lake, capabilities: Capabilities) -> None:
    make(lake)
    table = lake.engine.java.table(lake.name())
    operations = table.operations()
    base = operations.current()
    builder = lake.engine.java.iceberg.TableMetadata.buildFrom
    lake.sql("ALTER TABLE {t} ADD COLUMN theirs int")
    schema = table.schema()
    ours = builder(base).setCurrentSchema(schema, 7).build()
    assert succeeds(lambda: operations.commit(base, ours)) is not capabilities.compare_and_swap
    assert lake.table().schema.find(("theirs",)) is not None


def test_of_two_that_rename_onto_one_name_one_wins_where_it_is_promised(
    lake: Lake, capabilities: Capabilities
) -> None:
    for name in ("a", "b"):
        make(lake, name)
    start = Barrier(2)

    def rename(name: str) -> bool:
        start.wait(30)
        return succeeds(lambda: lake.engine.rename(lake.name(name), lake.name("one")))

    with ThreadPoolExecutor(2) as pool:
        won = list(pool.map(rename, ("a", "b")))
    if capabilities.atomic_rename:
        assert sorted(won) == [False, True]
        assert len(lake.tables()) == 2, "the one that lost keeps its name"
    else:
        assert any(won)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_format_versions(lake: Lake, capabilities: Capabilities, version: int) -> None:
    assert (version in capabilities.format_versions) <= succeeds(lambda: make(lake, version=version))
    assert lake.table().format_version == version


def test_what_a_dropped_table_leaves(lake: Lake, capabilities: Capabilities) -> None:
    make(lake)
    location = lake.engine.metadata_location(lake.name())
    lake.sql("DROP TABLE {t}")
    call = f"CALL {lake.kind.catalog}.system.register_table('{lake.namespace}.trades', '{location}')"
    back = succeeds(lambda: lake.sql(call))
    assert back is (capabilities.registers and capabilities.drop_keeps_files)


def test_what_a_dropped_namespace_leaves(lake: Lake, capabilities: Capabilities) -> None:
    lake.sql(f"CREATE TABLE {lake.sql_name()} USING iceberg AS SELECT 1 AS id")
    away = lake.name("trades", f"{lake.namespace}_archive")
    lake.engine.rename(lake.name(), away)
    assert lake.engine.drop_namespace((lake.namespace,))
    is_read = succeeds(lambda: lake.engine.ask(f"SELECT * FROM {lake.kind.catalog}.{away}"))
    assert is_read is capabilities.namespace_drop_keeps_files
    assert not lake.engine.drop_namespace(away.namespace), "something is in it"
    # `doctor` reads some table of the server, and this one may have lost its files.
    with closing(lake.pyiceberg()) as catalog:
        catalog.drop_table((*away.namespace, away.name))


def test_a_metadata_file_is_registered(lake: Lake, capabilities: Capabilities) -> None:
    made = make(lake)
    location = lake.engine.metadata_location(lake.name())
    call = f"CALL {lake.kind.catalog}.system.register_table('{lake.namespace}.again', '{location}')"
    assert succeeds(lambda: lake.sql(call)) is capabilities.registers
    kept = lake.table("again").uuid == made.uuid
    assert kept is capabilities.registering_keeps_uuid


def test_namespaces_in_namespaces(lake: Lake, capabilities: Capabilities) -> None:
    deep = (lake.namespace, "deep")
    made = succeeds(lambda: lake.engine.create_namespace(deep))
    assert capabilities.nested_namespaces <= made
    with open_environment(lake.project, None) as world:
        assert (deep in world.catalog.namespaces()) is made


def test_properties_that_nobody_asked_for(lake: Lake, capabilities: Capabilities) -> None:
    lake.sql("CREATE TABLE {t} (id bigint) USING iceberg")
    asked = {"format-version"}
    unasked = lake.table().properties.keys() - SPARK_ADDS - asked
    assert unasked <= capabilities.adds_properties


def test_a_table_is_partitioned_by_its_first_column_at_once(lake: Lake, capabilities: Capabilities) -> None:
    create = "CREATE TABLE {t} (id bigint, x int) USING iceberg PARTITIONED BY (bucket(4, id))"
    assert succeeds(lambda: lake.sql(create)) is capabilities.partitions_by_first_column
    # By any other column each of them takes it.
    lake.sql("DROP TABLE IF EXISTS {t}")
    lake.sql("CREATE TABLE {t} (id bigint, x int) USING iceberg PARTITIONED BY (bucket(4, x))")


def test_names_keep_their_case(lake: Lake, capabilities: Capabilities) -> None:
    # One of the servers refuses capital letters; none of them may make small ones of them in silence.
    made = succeeds(lambda: make(lake, "Trades"))
    assert not capabilities.lowercases_names
    assert lake.tables() == ((lake.name("Trades"),) if made else ())
    assert made or lake.kind.name == "rest"


def test_sql_catalogs_commit_several_tables_at_once(lake: Lake, capabilities: Capabilities) -> None:
    # Of REST servers it is promised where they list the endpoint, and this one does not.
    assert capabilities.multi_table_commit == (lake.kind.name != "rest")


def test_a_view_of_spark_is_read_where_it_is_promised(lake: Lake, capabilities: Capabilities) -> None:
    make(lake)
    query = f"SELECT id FROM {lake.sql_name()}"
    is_created = succeeds(lambda: lake.session.sql(f"CREATE VIEW {lake.sql_name('seen')} AS {query}"))
    with open_environment(lake.project, None) as world:
        views = world.catalog.load_views(world.catalog.views((lake.namespace,)))
    assert is_created is capabilities.views
    assert [(view.name, [q.sql for q in view.queries]) for view in views] == (
        [(lake.name("seen"), [query])] if capabilities.views else []
    )


def test_views_of_a_rest_server_are_read_where_the_settings_say_so(seaweedfs_server: SeaweedFS) -> None:
    """The server has views, and its configuration lists no endpoints."""
    server, name = seaweedfs_server, TableName(("with_views",), "seen")
    settings = CatalogSettings(
        "lake",
        "rest",
        server.catalog,
        server.warehouse,
        {"credential": f"{server.access_key}:{server.secret_key}", "view-endpoints-supported": "true"},
    )
    from pyiceberg.catalog.rest import RestCatalog

    address = {"uri": server.catalog, "warehouse": server.warehouse, **settings.properties}
    with closing(RestCatalog("lake", **address)) as theirs:
        theirs.create_namespace(name.namespace)
        stored = sample(VIEW)
        view = {"name": name.name, "schema": stored["schemas"][0], "view-version": stored["versions"][0]}
        url = theirs.url("namespaces/with_views/views")
        theirs._session.post(url, json={**view, "properties": {}}).raise_for_status()
    with closing(open_catalog(settings)) as catalog:
        assert catalog.capabilities.views
        assert catalog.views(name.namespace) == (name,)
        query = ViewQuery("spark", "SELECT 1 AS one")
        (found,) = catalog.load_views([name])
        assert (found.name, found.queries, found.namespace) == (name, (query,), ("default",))
        assert catalog.views(("nowhere",)) == ()
