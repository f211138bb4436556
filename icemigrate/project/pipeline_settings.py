"""``pipeline:`` of the project file: the log that ``ingest`` drains, and the tables of its tenants."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import UsageError
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode
from icemigrate.files.read.list_sources import VALUE_RULE
from icemigrate.files.read.node_values import (
    as_mapping,
    list_items,
    mapping_entries,
    read_duration,
    scalar_text,
)
from icemigrate.iceberg.names import BadName, TableName
from icemigrate.project.project_values import DEFAULT_QUARANTINE, PipelineSettings
from icemigrate.project.sink_choice import SinkChoice, SinkKind, parse_parquet_folder


def pipeline_mistakes(content: YamlMapping) -> Iterator[Diagnostic]:
    """Errors of ``pipeline`` that the schema allows."""
    if content.get("pipeline") is None:
        return
    # Every command reads the project file; most projects have no such key.
    from icemigrate.project.tenant_tables import may_be_equal, parse_pattern
    from icemigrate.wal.entries import is_tenant_id

    node = as_mapping(content.get("pipeline"))
    patterns = dict[str, TableName]()
    for key, value in mapping_entries(node.get("tables")):
        try:
            pattern = parse_pattern(scalar_text(value))
        except UsageError as error:
            yield Diagnostic("bad-name", error.message, value.place, error.hint)
            continue
        for other, earlier in patterns.items():
            if may_be_equal(pattern, earlier):
                message = f"a table of {key.text} can have the same name as a table of {other}"
                hint = "give the names different endings, such as `_traces` and `_logs`"
                yield Diagnostic("bad-name", message, value.place, hint)
        patterns[key.text] = pattern
    yield from _source_mistakes(node)
    if (folder := node.get("parquet_folder")) is not None:
        try:
            parse_parquet_folder(scalar_text(folder), Path("/"))
        except UsageError as error:
            yield Diagnostic("bad-format", error.message, folder.place, error.hint)
    for key, _ in mapping_entries(node.get("tenant_sinks")):
        if not is_tenant_id(key.text):
            yield Diagnostic("bad-name", f"`{key.text}` is no id of a tenant", key.place, VALUE_RULE)
    yield from _quarantine_mistakes(node.get("quarantine"), patterns.values())
    yield from _address_mistakes(node.get("metrics_address"))
    if node.get("batch_bytes") is not None and (segments := node.get("segments_per_batch")) is not None:
        message = "`segments_per_batch` and `batch_bytes` are two limits of a batch"
        yield Diagnostic("conflicting-keys", message, segments.place, "remove one of the two")
    elif node.get("min_batch_bytes") is not None and (segments := node.get("segments_per_batch")) is not None:
        message = "`segments_per_batch` limits a batch that `min_batch_bytes` starts by its bytes"
        hint = "remove `segments_per_batch`, or write `batch_bytes` instead"
        yield Diagnostic("conflicting-keys", message, segments.place, hint)
    yield from _start_mistakes(node)


def _start_mistakes(node: YamlMapping) -> Iterator[Diagnostic]:
    """Errors of what starts a batch: one that never starts, or that the health check does not wait for."""
    least, most, delay = (node.get(key) for key in ("min_batch_bytes", "batch_bytes", "max_batch_delay"))
    if least is None:
        if delay is not None:
            message = "`max_batch_delay` has no effect without `min_batch_bytes`"
            yield Diagnostic(
                "conflicting-keys", message, delay.place, "add `min_batch_bytes`, or remove the key"
            )
        return
    if most is not None and int(scalar_text(least)) > int(scalar_text(most)):
        message = "`min_batch_bytes` is more than a batch has by `batch_bytes`"
        hint = f"write at most {scalar_text(most)}"
        yield Diagnostic("conflicting-keys", message, least.place, hint)
    default, limit = PipelineSettings(), node.get("health_limit")
    waits = default.max_batch_delay if delay is None else read_duration(delay)
    fails = default.health_limit if limit is None else read_duration(limit)
    if waits >= fails:
        message = "entries wait longer by `max_batch_delay` than the health check allows by `health_limit`"
        place = next(one for one in (delay, limit) if one is not None).place
        yield Diagnostic("conflicting-keys", message, place, "give `max_batch_delay` a shorter time")


def _address_mistakes(node: YamlNode | None) -> Iterator[Diagnostic]:
    from icemigrate.project.listen_address import parse_listen_address

    if node is None:
        return
    try:
        parse_listen_address(scalar_text(node))
    except UsageError as error:
        yield Diagnostic("bad-format", error.message, node.place, error.hint)


def _source_mistakes(node: YamlMapping) -> Iterator[Diagnostic]:
    from icemigrate.project.telemetry_sources import parse_source

    for item in list_items(node.get("from")):
        try:
            parse_source(scalar_text(item), Path("/"))
        except UsageError as error:
            yield Diagnostic("bad-format", error.message, item.place, error.hint)


def _quarantine_mistakes(node: YamlNode | None, patterns: Collection[TableName]) -> Iterator[Diagnostic]:
    from icemigrate.project.tenant_tables import may_be_equal

    if node is None:
        return
    try:
        name = TableName.parse(scalar_text(node))
    except BadName as error:
        yield Diagnostic(
            "bad-name", f"`quarantine`: {error}", node.place, f"for example `{DEFAULT_QUARANTINE}`"
        )
        return
    if any(may_be_equal(pattern, name) for pattern in patterns):
        message = f"the quarantine `{name}` can be the table of a tenant"
        yield Diagnostic("bad-name", message, node.place, "give it another name")


def pipeline_settings(content: YamlMapping, root: Path) -> PipelineSettings:
    """The settings of a valid project file.

    :param root: the absolute folder to which paths are relative.
    """
    if content.get("pipeline") is None:
        return PipelineSettings()
    node = as_mapping(content.get("pipeline"))

    def folder(key: str) -> str | None:
        value = node.get(key)
        if value is None:
            return None
        text = scalar_text(value)
        # Every command reads the project file; most projects have no such key.
        from icemigrate.wal.storage_path import is_remote

        return text if is_remote(text) else str(root / text)

    default = PipelineSettings()
    parquet = node.get("parquet_folder")
    retention, segments, quarantine = (
        node.get(key) for key in ("retention", "segments_per_batch", "quarantine")
    )
    address, health_limit, size = (
        node.get(key) for key in ("metrics_address", "health_limit", "batch_bytes")
    )
    least, delay = (node.get(key) for key in ("min_batch_bytes", "max_batch_delay"))
    return PipelineSettings(
        folder("log"),
        folder("checkpoint"),
        {key.text: scalar_text(value) for key, value in mapping_entries(node.get("tables"))},
        default.quarantine if quarantine is None else scalar_text(quarantine),
        None if retention is None else read_duration(retention),
        default.segments_per_batch if segments is None else int(scalar_text(segments)),
        None if address is None else scalar_text(address),
        default.health_limit if health_limit is None else read_duration(health_limit),
        tuple(map(scalar_text, list_items(node.get("from")))),
        SinkChoice(
            SinkKind.ICEBERG if (sink := node.get("sink")) is None else SinkKind(scalar_text(sink)),
            {
                key.text: SinkKind(scalar_text(value))
                for key, value in mapping_entries(node.get("tenant_sinks"))
            },
            None if parquet is None else parse_parquet_folder(scalar_text(parquet), root),
        ),
        None if size is None else int(scalar_text(size)),
        None if least is None else int(scalar_text(least)),
        default.max_batch_delay if delay is None else read_duration(delay),
        _column_kinds(node.get("unknown_attributes")),
    )


def _column_kinds(node: YamlNode | None) -> frozenset[str]:
    """The kinds with the policy `column`."""
    if node is None:
        return frozenset()
    from icemigrate.wal.entries import EntryKind

    if isinstance(node, YamlMapping):
        return frozenset(key.text for key, value in mapping_entries(node) if scalar_text(value) == _COLUMN)
    return frozenset(kind.value for kind in EntryKind if scalar_text(node) == _COLUMN)


_COLUMN = "column"
