"""Files that use every key there is."""

from __future__ import annotations

from icemigrate.files.parse.source_text import SourceText, decode_source
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.read.migration_reader import MigrationReadResult, read_migration
from icemigrate.files.version_number import Version

LISTS = {"tenants": ("acme", "globex")}

EVERYTHING = """\
description: Everything that can be said
allow: [destructive, incompatible market_data.trades, irreversible]
because: to see it all at once
namespaces:
  - market_data
  - raw
replaces: {from: "0001", to: "0004", digest: abc}
tables:
  - name: market_data.trades
    description: Trades
    renamed_from: market_data.ticks
    renames: {volume: quantity, address.zip: postcode}
    columns:
      - {name: company_id, type: long, required: true, default: 7, description: Who, after: symbol}
      - name: address
        first: true
        fields:
          - {name: city, type: string, description: null}
          - name: phones
            element: {required: true, fields: [{name: number, type: string}]}
      - {name: tags, key: string, value: {type: "decimal(18, 6)", required: false}}
    drop_columns: [qualifiers, {name: ssn, purge: true}]
    restore_columns: [venue]
    identifier: [company_id]
    partition_by: [day(exchange_timestamp) as exchange_date, "bucket(16, symbol) as symbol_bucket"]
    sort_by: [exchange_timestamp, sequence_number desc nulls last]
    write_distribution: hash
    properties: {a.text: zstd, a.number: 7, a.flag: True, a.quoted: "7", a.gone: null}
    retention:
      snapshots: {max_age: 30d, keep_at_least: 10}
      rows: {column: exchange_timestamp, max_age: 2555d}
    branches: {audit: {retention: {max_age: 1w, snapshots: {max_age: null, keep_at_least: 3}}}, old: null}
    tags: {eod: {retention: {max_age: 12h}}, forever: {}, gone: null}
    format_version: 2
    location: s3://lake/trades
    adopt: true
  - match: "bronze.*"
    properties: {write.target-file-size-bytes: "134217728"}
    retention: {snapshots: null}
  - for_each: {tenant: tenants, kind: [in, out]}
    name: ${tenant}.events_${kind}
    description: Of ${tenant}
  - {name: market_data.legacy, drop: true}
"""

PROJECT = """\
project: market
migrations: steps
history: ops.history
lists: {tenants: [acme, 7]}
environments:
  local: {catalog: {type: sqlite}}
  prod:
    catalog:
      {name: lake, type: rest, uri: "${CATALOG_URI}", warehouse: "s3://lake", credential: "${CREDENTIAL}",
       token: "${TOKEN}", properties: {header.x-token: "${TOKEN}", scope: catalog}}
    storage:
      {endpoint: "${S3}", path_style: true, region: us-east-1, access_key: "${KEY}",
       secret_key: "${SECRET}", session_token: "${TOKEN}", properties: {s3.connect-timeout: 5}}
    spark: {master: yarn, jars: jars, conf: {spark.executor.instances: 4}}
    namespaces: {market_data: prod_market_data}
    overrides:
      - tables: "market_data.*"
        properties: {a: 1, b: null}
        retention: {snapshots: {max_age: 7d}}
        location: s3://x
    record: history
    publish: direct
    keep_tags: 90d
  warehouse:
    catalog: {type: jdbc, uri: "jdbc:postgresql://db/lake", user: me, password: "${PASSWORD}"}
    spark: {remote: "sc://spark:15002"}
default_environment: local
"""


def source(text: str, path: str = "0007_all.yaml") -> SourceText:
    """A file's text as if it had been read."""
    decoded = decode_source(text.encode("utf-8", "surrogatepass"), path)
    assert isinstance(decoded, SourceText)
    return decoded


def read(text: str) -> MigrationReadResult:
    """Read a migration's text as version 7."""
    return read_migration(source(text), Version.parse("0007"), "all", LISTS)


def migration(text: str) -> MigrationFile:
    """A migration without mistakes."""
    found = read(text)
    assert found.migration is not None, found.diagnostics
    return found.migration
