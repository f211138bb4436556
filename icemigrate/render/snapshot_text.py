"""Results about the snapshots of one table for people."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.diagnostics import format_count
from icemigrate.render import display
from icemigrate.render.snapshot_graph import GraphRow, graph_rows
from icemigrate.render.table_cells import number_text, refs_text, short_text, size_text
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.render.text_columns import text_columns
from icemigrate.results.snapshot_results import CompactResult, ExpireResult, RollbackTableResult
from icemigrate.results.table_results import SnapshotInfo, SnapshotsResult

_MOST_LANES = 16
"""How many lanes of a graph are drawn; more would be wider than a terminal."""
_NAMED = 10
"""How many expired snapshots are listed by their ids."""
_REWRITTEN = (
    "Added and deleted count all rows of the files that a snapshot writes again, also unchanged ones."
)


def snapshots_text(result: SnapshotsResult, style: TerminalStyle) -> str:
    """A line for each snapshot, or the graph."""
    if not result.snapshots:
        return f"table `{short_text(result.table)}` has no snapshots\n"
    if result.is_graph:
        lines = list(_graph_lines(result, style))
    else:
        rows = [_snapshot_row(entry, style) for entry in result.snapshots]
        header = ("snapshot", "committed at", "operation", "added", "deleted", "rows", "branches and tags")
        lines = text_columns(rows, header, style)
        if any(entry.added_rows and entry.deleted_rows for entry in result.snapshots):
            lines.append(style.dim(_REWRITTEN))
    if (left := result.total - len(result.snapshots)) > 0:
        lines.append(style.dim(f"{left:,} older snapshots are not shown: `--limit 0` shows all."))
    return "\n".join(lines) + "\n"


def _snapshot_row(entry: SnapshotInfo, style: TerminalStyle) -> tuple[str, ...]:
    counts = (entry.added_rows, entry.deleted_rows, entry.rows)
    return (
        str(entry.snapshot_id),
        display.timestamp_text(entry.at),
        short_text(entry.operation or "-"),
        *map(number_text, counts),
        refs_text(entry, style),
    )


def _graph_lines(result: SnapshotsResult, style: TerminalStyle) -> Iterator[str]:
    rows = list(graph_rows(result.snapshots))
    width = 2 * min(_MOST_LANES, max(max((row.lane, *row.through, *row.joining)) for row in rows) + 1)
    for row in rows:
        if row.joining:
            yield _joining_line(row, style).rstrip()
        lanes = _lanes(row, style)
        yield f"{lanes}{' ' * (width - _cells(row))}{_label(row, style)}".rstrip()


def _cells(row: GraphRow) -> int:
    return 2 * min(_MOST_LANES, max((row.lane, *row.through)) + 1)


def _lanes(row: GraphRow, style: TerminalStyle) -> str:
    line, dot = ("|", "*") if style.is_ascii else ("│", "●" if row.entry.is_current else "○")
    last = max((row.lane, *row.through))
    shown = [dot if at == row.lane else line if at in row.through else " " for at in range(last + 1)]
    if last >= _MOST_LANES:
        # Lanes on the right share the last column.
        mark = dot if row.lane >= _MOST_LANES - 1 else ":"
        shown = [*shown[: _MOST_LANES - 1], mark]
    return "".join(f"{symbol} " for symbol in shown)


def _joining_line(row: GraphRow, style: TerminalStyle) -> str:
    """Lanes that end in the lane of the snapshot below: ``├─╯``."""
    line, start, across, end, crossed, joint = "|+-'++" if style.is_ascii else "│├─╯┼┴"
    last = min(max(row.joining), _MOST_LANES - 1)
    cells = []
    for at in range(max((last, *row.through)) + 1 if row.through else last + 1):
        is_between = row.lane < at <= last
        if at == row.lane:
            symbol = start
        elif at in row.joining or (is_between and at == last):
            symbol = end if at == last else joint
        elif at in row.through:
            symbol = crossed if is_between else line
        else:
            symbol = across if is_between else " "
        cells.append(symbol + (across if row.lane <= at < last else " "))
    return "".join(cells[:_MOST_LANES])


def _label(row: GraphRow, style: TerminalStyle) -> str:
    entry = row.entry
    changed = [
        f"{sign}{count:,}" for sign, count in (("+", entry.added_rows), ("-", entry.deleted_rows)) if count
    ]
    parts = [
        str(entry.snapshot_id),
        refs_text(entry, style, is_graph=True),
        display.timestamp_text(entry.at),
        short_text(entry.operation or "-"),
        " ".join(changed),
        "" if entry.rows is None else format_count(entry.rows, "row"),
        style.dim("(its parent is not shown)") if row.is_cut else "",
    ]
    return "  ".join(filter(None, parts))


def rollback_table_text(result: RollbackTableResult, style: TerminalStyle) -> str:
    """Where main is, where it goes, and how to go back."""
    table, after = short_text(result.table), result.after
    if result.is_unchanged:
        return f"Table `{table}` is at snapshot {after.snapshot_id} already.\n"
    verb, way = "went" if result.done else "goes", "forward" if result.is_forward else "back"
    passed = format_count(result.passed, "snapshot")
    headline = f"{style.changed('~')} {style.bold(f'table {table}')}: main {verb} {way} {passed}"
    # A user who approved has just seen both snapshots.
    lines = (
        [f"{headline}, to {_snapshot_words(after)}"]
        if result.done
        else [headline, *_side_line("from", result.before), *_side_line("to", after)]
    )
    if result.has_other_schema:
        lines.append("    note: columns stay as they are now; the snapshot was written with another schema")
    if not result.done:
        lines.append(style.dim("    Snapshots, tags and other branches stay."))
    if result.before is not None:
        number = result.before.snapshot_id
        undo = f"`icemigrate table rollback {table} --snapshot {number}`"
        lines.append(style.dim(f"    To undo it, before the next write and before {number} expires: {undo}"))
    return "\n".join(lines) + "\n"


def _side_line(word: str, entry: SnapshotInfo | None) -> Iterator[str]:
    if entry is not None:
        yield f"    {word:<4} {_snapshot_words(entry)}"


def _snapshot_words(entry: SnapshotInfo) -> str:
    rows = "" if entry.rows is None else f", {format_count(entry.rows, 'row')}"
    return f"{entry.snapshot_id} ({display.timestamp_text(entry.at)}{rows})"


def expire_text(result: ExpireResult, style: TerminalStyle) -> str:
    """The snapshots that expire, their files, and what stays."""
    table = short_text(result.table)
    kept = [
        f"    {format_count(one.snapshots, 'snapshot')} that {'is' if one.snapshots == 1 else 'are'} older "
        f"{'stays' if one.snapshots == 1 else 'stay'}: {short_text(one.reason, 200)}"
        for one in result.kept
    ]
    since = display.timestamp_text(result.older_than)
    if result.is_empty:
        nothing = f"Nothing to expire: no snapshot of table `{table}` from before {since} can go."
        return "\n".join([nothing, *kept]) + "\n"
    count, total = f"{len(result.expired):,}", f"{len(result.expired) + result.remaining:,}"
    verb, are = ("expired", "were") if result.done else ("to expire", "are")
    lines = [
        f"{style.bad('-')} {style.bold(f'table {table}')}: {count} of {total} snapshots {verb}, "
        f"older than {since}",
        *(f"    {number}" for number in result.expired[:_NAMED]),
    ]
    if len(result.expired) > _NAMED:
        lines.append(f"    and {len(result.expired) - _NAMED:,} more")
    if result.refs:
        names = ", ".join(short_text(name) for name in result.refs[:_NAMED])
        lines.append(f"    tags and branches that {are} removed: {names}")
    files = format_count(result.data_files, "data file")
    others = format_count(result.metadata_files, "metadata file")
    lines.append(f"    {files} and {others} {are} deleted ({size_text(result.size_bytes)})")
    return "\n".join([*lines, *kept]) + "\n"


def compact_text(result: CompactResult, style: TerminalStyle) -> str:
    """The files before and after a compaction, and the statement."""
    table = style.bold(f"table {short_text(result.table)}")
    before = format_count(result.data_files, "data file")
    deletes = format_count(result.delete_files, "delete file")
    if not result.data_files:
        return f"Nothing to compact: table `{short_text(result.table)}` has no data files.\n"
    if not result.done:
        lines = [
            f"{style.changed('~')} {table}: compact {before} and {deletes}",
            "    Spark rewrites small files, and files with deleted rows, in parallel; rows do not change.",
            style.dim(f"    {display.one_line(result.statement)}"),
        ]
    elif not result.rewritten_files:
        lines = [f"Table `{short_text(result.table)}` has no group of files to compact."]
    else:
        added = format_count(result.added_files, "data file")
        rewritten = f"{result.rewritten_files:,} of {before}"
        lines = [
            f"{style.changed('~')} {table}: {rewritten} ({size_text(result.rewritten_bytes)}) became {added}",
            style.dim("    The replaced files stay until their snapshots expire."),
        ]
    return "\n".join(lines) + "\n"
