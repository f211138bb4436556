"""The result of `generate` for people."""

from __future__ import annotations

from icemigrate.render import phrases
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.results.generate_results import GenerateResult

_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_GENERATORS = {
    "native": "with the native module",
    "arrow": "with Arrow; the native module gives the same rows faster",
}


def generate_text(result: GenerateResult, style: TerminalStyle) -> str:
    """The file, and which generator wrote it."""
    table, path = phrases.visible_text(result.table), phrases.path_text(result.path)
    columns = " as the migration files declare it" if result.schema_from == "files" else ""
    rows = f"{result.rows:,} row{'' if result.rows == 1 else 's'}"
    return (
        f"{style.good('wrote')} {path}: {rows} of `{table}`{columns}, "
        f"{_size(result.file_bytes)}, seed {result.seed}\n"
        f"generated in {phrases.elapsed_text(result.elapsed_ms)} {_GENERATORS[result.generator]}\n"
    )


def _size(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{count} bytes" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"
