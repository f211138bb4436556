"""Those who write a table while a migration is applied to it, in words."""

from __future__ import annotations

from datetime import datetime, timezone

from icemigrate.model.writers import WATCHED_DAYS, Writer
from icemigrate.plan import LiveWriter
from icemigrate.render.words import count, moment, note_line, one_line

_ENGINES = {"spark": "Spark", "flink": "Flink", "kafka-connect": "Kafka Connect", "trino": "Trino"}
_NAMES = {"flink": "operator", "kafka-connect": "group", "trino": "user"}
_IDS = {"flink": "job ", "trino": "query "}


def writer_lines(live: LiveWriter) -> list[str]:
    """Who it is and how often it writes; below, what happens to it."""
    writer = live.writer
    who = one_line(f"writer: {_who(writer)}; {_how_often(writer)}, last {_last(writer)}")
    if not live.breaks:
        return [f"{who}; goes on as it is"]
    duty = "must be restarted" if live.must_restart else "look after it"
    return [f"{who}; {duty}:", *(f"  {note_line(reason)}" for reason in live.breaks)]


def _who(writer: Writer) -> str:
    """``Flink 1.20 stream, operator 7df3 (job ab12)``."""
    if writer.engine is None:
        return "one that does not say who it is, as PyIceberg does not"
    engine = _ENGINES.get(writer.engine, writer.engine)
    about = " ".join(filter(None, (engine, writer.version, "stream" if writer.stream else None)))
    name = "query" if writer.stream and writer.engine == "spark" else _NAMES.get(writer.engine, "application")
    named = f", {name} {writer.name}" if writer.name else ""
    run = f" ({_IDS.get(writer.engine, '')}{writer.id})" if writer.id else ""
    return f"{about}{named}{run}"


def _how_often(writer: Writer) -> str:
    if writer.commits > WATCHED_DAYS and writer.a_day >= 2:
        return f"about {round(writer.a_day)} commits a day"
    return f"{count(writer.commits, 'commit')} in {WATCHED_DAYS} days"


def _last(writer: Writer) -> str:
    return moment(datetime.fromtimestamp(writer.last_ms / 1000, timezone.utc))
