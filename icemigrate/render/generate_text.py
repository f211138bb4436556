"""The result of `generate` for people."""

from __future__ import annotations

from icemigrate.diagnostics import format_count, format_size
from icemigrate.render import display
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.generate_results import GenerateResult

_GENERATORS = {
    "native": "with the native module",
    "arrow": "with Arrow; `pip install ./rust/python '.[native]'` in a clone, which needs Rust, "
    "adds a faster generator of the same rows",
}


def generate_text(result: GenerateResult, style: TerminalStyle) -> str:
    """The file or the snapshot, and which generator made the rows."""
    rows = format_count(result.rows, "row")
    table, size = display.visible_text(result.table), format_size(result.file_bytes)
    if result.path is None:
        files = format_count(result.files, "file")
        made = f"{style.good('inserted')} {rows} into `{table}`: snapshot {result.snapshot_id}, {files}"
    else:
        columns = " as the migration files declare it" if result.schema_from == "files" else ""
        made = f"{style.good('wrote')} {display.path_text(result.path)}: {rows} of `{table}`{columns}"
    generator = _GENERATORS.get(result.generator, display.one_line(result.generator))
    how = f"generated in {display.elapsed_text(result.elapsed_ms)} {generator}"
    return f"{made}, {size}, seed {result.seed}\n{how}\n"
