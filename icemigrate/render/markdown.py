"""Markdown for a pull request's comment: harmless text, and as much as a comment can hold.

GitHub refuses a comment of more than 65,536 characters; it counts as UTF-16 does at worst.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.render import words

LIMIT = 65_000
"""What one text may hold; the rest is left for the comment's own mark."""
_NOTE_SPACE = 200
"""Kept free for closing what is open, and for the note that not all is there."""
_MARKS = {Severity.ERROR: "❌", Severity.WARNING: "⚠️", Severity.NOTE: "ℹ️"}


def size(text: str) -> int:
    """Length in UTF-16's units."""
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def cut(whole: str, limit: int = LIMIT) -> str:
    """The text up to the last whole line that fits, with what it opens closed and with a word about it."""
    if size(whole) <= limit:
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
    where = f"{code(str(d.place))}: " if d.place else ""
    hint = f" <br>{text(d.hint)}" if d.hint else ""
    return f"- {_MARKS[d.severity]} {where}{text(d.message)} <sub>{d.code}</sub>{hint}"


def fenced(block: str) -> tuple[str, str, str]:
    """A code block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall(r"`+", block)), default=0)
    fence = "`" * max(3, longest + 1)
    return (f"{fence}sql", block, fence)


def code(name: str) -> str:
    """Code that may hold backticks; HTML, since it also stands in a summary."""
    return f"<code>{_harmless(words.one_line(name))}</code>"


def text(said: str) -> str:
    """Running text: `code` stays code, all else that markdown or HTML would act on is made harmless."""
    parts = re.split(r"(`[^`]+`)", words.one_line(said))
    return "".join(code(p[1:-1]) if i % 2 else _harmless(p) for i, p in enumerate(parts))


def _harmless(said: str) -> str:
    # Entities rather than backslashes: they work inside HTML tags too.  `@` would call people.
    harmless = escape(said, quote=False)
    for character in "\\`*_[]@|~":
        harmless = harmless.replace(character, f"&#{ord(character)};")
    return harmless
