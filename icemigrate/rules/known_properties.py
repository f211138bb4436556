"""The table properties that Iceberg has, and what their values are.

Source: the constants of ``org.apache.iceberg.TableProperties`` in Iceberg 1.12.0 (a value's kind is that of
its default there), with https://iceberg.apache.org/docs/latest/configuration/ for the words that are
allowed and the enumerations that read them (``Avro.Codec``, ``CompressionCodecName``, ``CompressionKind``,
``TableMetadataParser.Codec``, ``DeleteGranularity``, ``PlanningMode``, ``IsolationLevel``,
``RowLevelOperationMode``, ``FileFormat``); and one property of PyIceberg
(https://py.iceberg.apache.org/configuration/).  Keys of icemigrate itself begin with ``icemigrate.``.
Reserved properties are in :mod:`icemigrate.iceberg.table_properties`.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from icemigrate.iceberg.table_properties import (
    ATTRIBUTE_PREFIX,
    COPY_ON_WRITE,
    DELETE_MODE,
    MERGE_MODE,
    MERGE_ON_READ,
    UPDATE_MODE,
)
from icemigrate.otlp.attribute_columns import ATTRIBUTE_MAPS, parse_source

PropertyKind: TypeAlias = (
    "Literal['attribute', 'boolean', 'int', 'long', 'double', 'metrics', 'text'] | tuple[str, ...]"
)
"""The type of a value; a tuple lists the allowed words, in any case."""

FILE_FORMATS = ("parquet", "avro", "orc")
PARQUET_CODECS = ("zstd", "brotli", "lz4", "gzip", "snappy", "uncompressed", "lzo", "lz4_raw")
AVRO_CODECS = ("gzip", "zstd", "snappy", "uncompressed")
ORC_CODECS = ("zstd", "lz4", "lzo", "zlib", "snappy", "none")
METADATA_CODECS = ("none", "gzip")
ORC_STRATEGIES = ("speed", "compression")
PAGE_VERSIONS = ("v1", "v2")
DISTRIBUTIONS = ("none", "hash", "range")
ISOLATIONS = ("serializable", "snapshot")
ROW_MODES = (COPY_ON_WRITE, MERGE_ON_READ)
GRANULARITIES = ("partition", "file")
PLANNING = ("auto", "local", "distributed")

FAMILIES = (
    "commit.",
    "compatibility.",
    "encryption.",
    "engine.hive.",
    "gc.",
    "history.",
    "read.",
    "schema.name-mapping.",
    "write.",
)
"""Prefixes of Iceberg's own keys."""

PROPERTIES: dict[str, PropertyKind] = {
    "commit.manifest-merge.enabled": "boolean",
    "commit.manifest.min-count-to-merge": "int",
    "commit.manifest.target-size-bytes": "long",
    "commit.retry.max-wait-ms": "int",
    "commit.retry.min-wait-ms": "int",
    "commit.retry.num-retries": "int",
    "commit.retry.total-timeout-ms": "int",
    "commit.status-check.max-wait-ms": "long",
    "commit.status-check.min-wait-ms": "long",
    "commit.status-check.num-retries": "int",
    "commit.status-check.total-timeout-ms": "long",
    "compatibility.snapshot-id-inheritance.enabled": "boolean",
    "encryption.data-key-length": "int",
    "encryption.key-id": "text",
    "engine.hive.enabled": "boolean",
    "engine.hive.lock-enabled": "boolean",
    "gc.enabled": "boolean",
    "history.expire.max-ref-age-ms": "long",
    "history.expire.max-snapshot-age-ms": "long",
    "history.expire.min-snapshots-to-keep": "int",
    "identifier-fields.rely": "boolean",
    "read.data-planning-mode": PLANNING,
    "read.delete-planning-mode": PLANNING,
    "read.orc.vectorization.batch-size": "int",
    "read.orc.vectorization.enabled": "boolean",
    "read.parquet.vectorization.batch-size": "int",
    "read.parquet.vectorization.enabled": "boolean",
    "read.split.adaptive-size.enabled": "boolean",
    "read.split.metadata-target-size": "long",
    "read.split.open-file-cost": "long",
    "read.split.planning-lookback": "int",
    "read.split.target-size": "long",
    "schema.name-mapping.default": "text",
    "write.avro.compression-codec": AVRO_CODECS,
    "write.avro.compression-level": "int",
    "write.data.path": "text",
    "write.delete.avro.compression-codec": AVRO_CODECS,
    "write.delete.avro.compression-level": "int",
    "write.delete.distribution-mode": DISTRIBUTIONS,
    "write.delete.format.default": FILE_FORMATS,
    "write.delete.granularity": GRANULARITIES,
    "write.delete.isolation-level": ISOLATIONS,
    DELETE_MODE: ROW_MODES,
    "write.delete.orc.block-size-bytes": "long",
    "write.delete.orc.compression-codec": ORC_CODECS,
    "write.delete.orc.compression-strategy": ORC_STRATEGIES,
    "write.delete.orc.stripe-size-bytes": "long",
    "write.delete.orc.vectorized.batch-size": "int",
    "write.delete.parquet.compression-codec": PARQUET_CODECS,
    "write.delete.parquet.compression-level": "int",
    "write.delete.parquet.dict-size-bytes": "int",
    "write.delete.parquet.page-row-limit": "int",
    "write.delete.parquet.page-size-bytes": "int",
    "write.delete.parquet.page-version": PAGE_VERSIONS,
    "write.delete.parquet.row-group-check-max-record-count": "int",
    "write.delete.parquet.row-group-check-min-record-count": "int",
    "write.delete.parquet.row-group-size-bytes": "int",
    "write.delete.target-file-size-bytes": "long",
    "write.distribution-mode": DISTRIBUTIONS,
    "write.folder-storage.path": "text",
    "write.format.default": FILE_FORMATS,
    "write.location-provider.impl": "text",
    "write.manifest.compression-codec": AVRO_CODECS,
    "write.manifest.compression-level": "int",
    "write.merge.distribution-mode": DISTRIBUTIONS,
    "write.merge.isolation-level": ISOLATIONS,
    MERGE_MODE: ROW_MODES,
    "write.metadata.compression-codec": METADATA_CODECS,
    "write.metadata.delete-after-commit.enabled": "boolean",
    "write.metadata.metrics.default": "metrics",
    "write.metadata.metrics.max-inferred-column-defaults": "int",
    "write.metadata.path": "text",
    "write.metadata.previous-versions-max": "int",
    "write.object-storage.enabled": "boolean",
    "write.object-storage.partitioned-paths": "boolean",
    "write.object-storage.path": "text",
    "write.orc.block-size-bytes": "long",
    "write.orc.bloom.filter.columns": "text",
    "write.orc.bloom.filter.fpp": "double",
    "write.orc.compression-codec": ORC_CODECS,
    "write.orc.compression-strategy": ORC_STRATEGIES,
    "write.orc.stripe-size-bytes": "long",
    "write.orc.vectorized.batch-size": "int",
    "write.parquet.bloom-filter-adaptive-enabled": "boolean",
    "write.parquet.bloom-filter-max-bytes": "int",
    "write.parquet.compression-codec": PARQUET_CODECS,
    "write.parquet.compression-level": "int",
    "write.parquet.dict-size-bytes": "int",
    "write.parquet.page-row-limit": "int",
    "write.parquet.page-size-bytes": "int",
    "write.parquet.page-version": PAGE_VERSIONS,
    "write.parquet.row-group-check-max-record-count": "int",
    "write.parquet.row-group-check-min-record-count": "int",
    "write.parquet.row-group-size-bytes": "int",
    "write.parquet.row-group-size-track-uncompressed": "boolean",
    "write.parquet.shred-variants": "boolean",
    "write.parquet.variant-inference-buffer-size": "int",
    "write.py-location-provider.impl": "text",
    "write.spark.accept-any-schema": "boolean",
    "write.spark.advisory-partition-size-bytes": "long",
    "write.spark.auto-schema-evolution.enabled": "boolean",
    "write.spark.fanout.enabled": "boolean",
    "write.summary.partition-limit": "int",
    "write.target-file-size-bytes": "long",
    "write.update.distribution-mode": DISTRIBUTIONS,
    "write.update.isolation-level": ISOLATIONS,
    UPDATE_MODE: ROW_MODES,
    "write.upsert.enabled": "boolean",
    "write.wap.enabled": "boolean",
}

PREFIXED: dict[str, PropertyKind] = {
    ATTRIBUTE_PREFIX: "attribute",
    "write.metadata.metrics.column.": "metrics",
    "write.parquet.bloom-filter-enabled.column.": "boolean",
    "write.parquet.bloom-filter-fpp.column.": "double",
    "write.parquet.bloom-filter-ndv.column.": "long",
    "write.parquet.dict-encoding-enabled.column.": "boolean",
    "write.parquet.stats-enabled.column.": "boolean",
}
"""Prefixes that a column's name follows."""

PREFIXES = tuple(PREFIXED)

_METRICS = re.compile(r"none|counts|full|truncate\([1-9][0-9]*\)", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?[0-9]+")
_LARGEST = {"int": 2**31 - 1, "long": 2**63 - 1}


def property_value_problem(kind: PropertyKind, value: str) -> str | None:
    """The expected form of a value, such as ``true or false``; ``None`` if the value has it."""
    if isinstance(kind, tuple):
        return None if value.lower() in kind else f"one of {', '.join(kind)}"
    if kind == "boolean":
        return None if value.lower() in ("true", "false") else "`true` or `false`"
    if kind in _LARGEST:
        if not _WHOLE.fullmatch(value):
            return "a whole number, without a unit"
        # Python refuses to convert very long digit strings.
        is_small = len(value) < 25 and abs(int(value)) <= _LARGEST[kind]
        return None if is_small else f"a whole number up to {_LARGEST[kind]}"
    if kind == "double":
        return None if _is_number(value) else "a number"
    if kind == "attribute":
        maps = ", ".join(f"`{one}.`" for one in ATTRIBUTE_MAPS)
        return None if parse_source(value) else f"one of {maps}, and the name of an attribute"
    if kind == "metrics":
        return None if _METRICS.fullmatch(value) else "one of none, counts, full, truncate(16)"
    return None


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return "_" not in value
