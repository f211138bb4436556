"""The result of `generate` for people."""

from __future__ import annotations

from icemigrate.diagnostics import format_count
from icemigrate.render import display
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.generate_results import GenerateResult

_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_GENERATORS = {
    "native": "with the native module",
    "arrow": "with Arrow; the native module gives the same rows faster",
}


def generate_text(result: GenerateResult, style: TerminalStyle) -> str:
    """The file or the snapshot, and which generator made the rows."""
    rows = format_count(result.rows, "row")
    table, size = display.visible_text(result.table), _size(result.file_bytes)
    if result.path is None:
        files = format_count(result.files, "file")
        made = f"{style.good('inserted')} {rows} into `{table}`: snapshot {result.snapshot_id}, {files}"
    else:
        columns = " as the migration files declare it" if result.schema_from == "files" else ""
        made = f"{style.good('wrote')} {display.path_text(result.path)}: {rows} of `{table}`{columns}"
    generator = _GENERATORS.get(result.generator, display.one_line(result.generator))
    how = f"generated in {display.elapsed_text(result.elapsed_ms)} {generator}"
    return f"{made}, {size}, seed {result.seed}\n{how}\n"


def _size(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{count} bytes" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"
