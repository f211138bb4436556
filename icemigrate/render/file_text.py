"""Files, partitions and manifests of a snapshot for people."""

from __future__ import annotations

from icemigrate.diagnostics import format_count
from icemigrate.render import display
from icemigrate.render.table_cells import number_text, short_text, size_text
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.render.text_columns import text_columns
from icemigrate.results.file_results import FilesResult, ManifestsResult, PartitionsResult

_CONTENTS = {"data": "data", "position_deletes": "position deletes", "equality_deletes": "equality deletes"}


def files_text(result: FilesResult, style: TerminalStyle) -> str:
    """A line for each file, and their sum."""
    if not result.total:
        return _nothing("files", result.table)
    rows = [
        (
            _CONTENTS.get(file.content, file.content),
            short_text(file.format, 10).lower(),
            short_text(file.partition) or "-",
            number_text(file.rows),
            size_text(file.size_bytes),
            short_text(_end(file.path)),
        )
        for file in result.files
    ]
    lines = text_columns(rows, ("content", "format", "partition", "rows", "size", "file"), style)
    sums = f"{result.total:,} files, {result.rows:,} rows, {size_text(result.size_bytes)}"
    return "\n".join([*lines, "", _sum(sums, len(result.files), result.total)]) + "\n"


def partitions_text(result: PartitionsResult, style: TerminalStyle) -> str:
    """A line for each partition, the largest first."""
    if not result.total:
        return _nothing("partitions", result.table)
    rows = [
        (
            short_text(entry.partition) or "(unpartitioned)",
            str(entry.spec_id),
            number_text(entry.files),
            number_text(entry.rows),
            size_text(entry.size_bytes),
            number_text(entry.delete_files),
            number_text(entry.deletes),
            display.timestamp_text(entry.updated_at) or "-",
        )
        for entry in result.partitions
    ]
    heads = ("partition", "spec", "files", "rows", "size", "delete files", "deletes", "updated at")
    sums = format_count(result.total, "partition")
    lines = [*text_columns(rows, heads, style), "", _sum(sums, len(rows), result.total)]
    return "\n".join(lines) + "\n"


def manifests_text(result: ManifestsResult, style: TerminalStyle) -> str:
    """A line for each manifest, and their sum."""
    if not result.total:
        return _nothing("manifests", result.table)
    rows = [
        (
            entry.content,
            str(entry.spec_id),
            size_text(entry.length),
            number_text(entry.added_files),
            number_text(entry.existing_files),
            number_text(entry.deleted_files),
            "-" if entry.added_by is None else str(entry.added_by),
            short_text(_end(entry.path)),
        )
        for entry in result.manifests
    ]
    heads = ("content", "spec", "size", "added", "existing", "deleted", "snapshot", "manifest")
    sums = f"{format_count(result.total, 'manifest')}, {size_text(result.length)}"
    lines = [*text_columns(rows, heads, style), "", _sum(sums, len(rows), result.total)]
    return "\n".join(lines) + "\n"


def _end(path: str) -> str:
    """The last part of a path; JSON has the whole path."""
    return path.rstrip("/").rpartition("/")[2]


def _sum(text: str, shown: int, total: int) -> str:
    return f"{text}." if shown == total else f"{text}; {shown:,} are shown: `--limit 0` shows all."


def _nothing(what: str, table: str) -> str:
    return f"table `{short_text(table)}` has no {what}\n"
