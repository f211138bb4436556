"""Details of a plan: what a new table is created with, and the writers that a migration affects."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from icemigrate.changes.change import Change
from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.field_changes import default_text
from icemigrate.diagnostics import format_count
from icemigrate.iceberg.names import quote_name
from icemigrate.iceberg.retention import property_text
from icemigrate.iceberg.snapshot_pins import time_text
from icemigrate.iceberg.snapshot_writers import WATCHED_DAYS, Writer
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Field
from icemigrate.planning.plan import AffectedWriter
from icemigrate.render.display import note_line, one_line

_WIDEST = 100


def new_table_lines(change: Change, width: int | None = _WIDEST) -> Iterator[str]:
    """The table that a metadata commit creates, in short form; empty for other changes.

    :param width: of a line; ``None`` for one line each.
    """
    if not isinstance(change, CreateTable) or not change.is_metadata_commit:
        return
    for label, parts in _parts(change):
        text = f"{label}: {', '.join(map(one_line, parts))}"
        if not parts:
            continue
        if width is None:
            yield text
        else:
            yield from textwrap.wrap(
                text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            )


def _parts(change: CreateTable) -> Iterator[tuple[str, list[str]]]:
    from icemigrate.files.write.migration_entries import creation_entry

    made = change.made
    declared = creation_entry(made)
    yield "columns", [_column(f) for f in made.schema.fields]
    yield "identifier", declared.get("identifier", [])
    yield "partitioned by", declared.get("partition_by", [])
    yield "sorted by", declared.get("sort_by", [])
    yield "location", [] if made.location is None else [made.location]
    yield (
        "properties",
        [f"{key} = {property_text(key, value)}" for key, value in sorted(made.properties.items())],
    )


def _column(field: Field) -> str:
    default = field.initial_default if field.initial_default is not None else field.write_default
    said = "" if default is None else f" default {default_text(default)}"
    return f"{quote_name(field.name)} {format_type(field.type)}{' required' if field.required else ''}{said}"


_ENGINES = {"spark": "Spark", "flink": "Flink", "kafka-connect": "Kafka Connect", "trino": "Trino"}
_NAMES = {"flink": "operator", "kafka-connect": "group", "trino": "user"}
_IDS = {"flink": "job ", "trino": "query "}


_MOST_WRITERS = 5


def affected_writers_lines(writers: Sequence[AffectedWriter]) -> Iterator[str]:
    """The writers that must change or be restarted, and what each must do; none where none must."""
    affected = [live for live in writers if live.breaks]
    if not affected:
        return
    verb = "is" if len(affected) == 1 else "are"
    number = format_count(len(writers), "writer")
    yield f"{len(affected)} of {number} of the last {WATCHED_DAYS} days {verb} affected:"
    for live in affected[:_MOST_WRITERS]:
        action = "restart it after the migration" if live.must_restart else "change it with the migration"
        reasons = ", and ".join(map(note_line, live.breaks))
        yield f"  {one_line(f'{_who(live.writer)}: {action}; it {reasons}')}"
    if affected[_MOST_WRITERS:]:
        more = format_count(len(affected) - _MOST_WRITERS, "more writer")
        yield f"  {more}: `--verbose` shows all"


def _duty(live: AffectedWriter) -> str:
    return "must be restarted" if live.must_restart else "needs a change"


def writer_lines(live: AffectedWriter) -> list[str]:
    """A writer and its frequency; below, the effects on it."""
    writer = live.writer
    who = one_line(f"writer: {_who(writer)}; {_how_often(writer)}, last {_last(writer)}")
    if not live.breaks:
        return [f"{who}; not affected"]
    return [f"{who}; {_duty(live)}:", *(f"  {note_line(reason)}" for reason in live.breaks)]


def _who(writer: Writer) -> str:
    """``Flink 1.20 stream, operator 7df3 (job ab12)``."""
    if writer.engine is None:
        return "an unknown client (for example PyIceberg, which does not identify itself)"
    engine = _ENGINES.get(writer.engine, writer.engine)
    about = " ".join(filter(None, (engine, writer.version, "stream" if writer.stream else None)))
    name = "query" if writer.stream and writer.engine == "spark" else _NAMES.get(writer.engine, "application")
    named = f", {name} {writer.name}" if writer.name else ""
    run = f" ({_IDS.get(writer.engine, '')}{writer.id})" if writer.id else ""
    return f"{about}{named}{run}"


def _how_often(writer: Writer) -> str:
    if writer.commits > WATCHED_DAYS and writer.a_day >= 2:
        return f"about {round(writer.a_day)} commits a day"
    return f"{format_count(writer.commits, 'commit')} in {WATCHED_DAYS} days"


def _last(writer: Writer) -> str:
    return time_text(writer.last_ms)
