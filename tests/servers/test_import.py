"""``import`` and ``apply --baseline`` on every kind of catalog, of tables that Spark made."""

from __future__ import annotations

from icemigrate.execution.environment_session import open_environment
from icemigrate.iceberg.names import TableName
from tests.servers.lake import Lake
from tests.support.imported_tables import require_nothing_but_adoption

TABLES = {
    "trades": "(symbol STRING NOT NULL COMMENT 'of the exchange', at TIMESTAMP, price DECIMAL(18,6), "
    "venue STRUCT<mic: STRING, tags: ARRAY<STRING>>) USING iceberg "
    "COMMENT 'All of them' TBLPROPERTIES ('team' = 'markets')",
    "quotes": "(symbol STRING, v VARIANT) USING iceberg TBLPROPERTIES ('format-version' = '3')",
}
CHANGE = """
    description: Trades have a size
    tables: [{name: market_data.trades, columns: [{name: size, type: long}], tags: {later: {}}}]
"""


def locations(lake: Lake) -> dict[TableName, str | None]:
    with open_environment(lake.project, None) as world:
        return {name: world.catalog.metadata_location(name) for name in map(lake.name, TABLES)}


def test_tables_of_others_are_taken_in_without_touching_them(lake: Lake) -> None:
    lake.sql(f"CREATE NAMESPACE IF NOT EXISTS {lake.kind.catalog}.{lake.namespace}")
    for name, text in TABLES.items():
        lake.sql(f"CREATE TABLE {lake.sql_name(name)} {text}")
    lake.sql("ALTER TABLE {t} ADD PARTITION FIELD days(at) AS day")
    lake.sql("ALTER TABLE {t} WRITE ORDERED BY symbol DESC")
    lake.sql("INSERT INTO {t} VALUES ('A', TIMESTAMP '2026-01-01 00:00:00Z', 1.5, null)")
    lake.sql("ALTER TABLE {t} CREATE TAG golden RETAIN 365 DAYS")
    before = locations(lake)

    result = lake.api.import_tables("market_data")
    assert result.tables == ("market_data.quotes", "market_data.trades")
    assert not result.notes
    for word in ("partition_by: [day(at) as day]", "golden", "team: markets", "variant", "All of them"):
        assert word in result.content
    (migration,) = lake.plan().plan.migrations
    assert len(migration.tables) == len(TABLES)
    require_nothing_but_adoption(migration)

    plan = lake.api.plan(baseline=True)
    lake.api.apply(plan, spark=lake.session)
    assert lake.plan().is_empty
    assert locations(lake) == before

    lake.write("0002_size", CHANGE)
    lake.apply()
    assert lake.type_of("size") == "long"
    for _ in range(2):
        lake.api.rollback(spark=lake.session)
    assert lake.table().schema.find(("size",)) is None
    assert locations(lake)[lake.name("quotes")] == before[lake.name("quotes")]
    assert lake.sql("SELECT symbol FROM {t}") == [("A",)]
