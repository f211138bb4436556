"""Markdown for a pull request's comment: escaped text, limited to the size of a comment.

GitHub refuses a comment of more than 65,536 characters, counted in UTF-16 at worst.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.render import display

COMMENT_LIMIT = 65_000
"""The size limit of one text; the rest is reserved for the comment's marker."""
_NOTE_SPACE = 200
"""Reserved for closing open elements, and for the note about omitted text."""
_SEVERITY_SYMBOLS = {Severity.ERROR: "❌", Severity.WARNING: "⚠️", Severity.NOTE: "ℹ️"}


def comment_size(text: str) -> int:
    """Length in UTF-16's units."""
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def cut_to_limit(whole: str, limit: int = COMMENT_LIMIT) -> str:
    """The text up to the last complete line that fits, with open elements closed and a note."""
    if comment_size(whole) <= limit:
        return whole
    note = "The rest does not fit into a comment; the command prints all of it."
    kept = whole.encode("utf-16-le", errors="surrogatepass")[: 2 * (limit - _NOTE_SPACE)]
    lines = kept.decode("utf-16-le", errors="ignore").rpartition("\n")[0].splitlines()
    if opened := _open_fence(lines):
        lines.append(opened)
    unfinished = sum(line.count("<details>") - line.count("</details>") for line in lines)
    return "\n".join([*lines, *["", "</details>"] * unfinished, "", f"_{note}_"]) + "\n"


def _open_fence(lines: Iterable[str]) -> str:
    """The fence of a code block that is not closed; empty where all are."""
    opened = ""
    for line in lines:
        fence = re.match(r"`{3,}", line)
        if fence and not opened:
            opened = fence[0]
        elif opened and line == opened:
            opened = ""
    return opened


def diagnostic_line(d: Diagnostic) -> str:
    """A finding as an item of a list."""
    where = f"{inline_code(str(d.place))}: " if d.place else ""
    hint = f" <br>{safe_text(d.hint)}" if d.hint else ""
    return f"- {_SEVERITY_SYMBOLS[d.severity]} {where}{safe_text(d.message)} <sub>{d.code}</sub>{hint}"


def fenced_sql(block: str) -> tuple[str, str, str]:
    """A code block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall(r"`+", block)), default=0)
    fence = "`" * max(3, longest + 1)
    return (f"{fence}sql", block, fence)


def inline_code(name: str) -> str:
    """Code that may contain backticks; as HTML, because it is used in a summary too."""
    return f"<code>{_harmless(display.one_line(name))}</code>"


def safe_text(said: str) -> str:
    """Plain text: `code` stays code, all other Markdown and HTML is escaped."""
    parts = re.split(r"(`[^`]+`)", display.one_line(said))
    return "".join(inline_code(p[1:-1]) if i % 2 else _harmless(p) for i, p in enumerate(parts))


def _harmless(said: str) -> str:
    # Entities rather than backslashes: they work inside HTML tags too.  `@` would call people.
    harmless = escape(said, quote=False)
    for character in "\\`*_[]@|~":
        harmless = harmless.replace(character, f"&#{ord(character)};")
    return harmless
