"""Texts that are safe to show: secrets masked, hidden characters as escapes, names and paths on one line."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from icemigrate.diagnostics import once_quoted
from icemigrate.hidden_characters import escape_hidden_characters, escaped_lines
from icemigrate.redaction import redact_secrets

_QUOTED = re.compile("`[^`]+`")
_BREAKS = re.compile(r"[\t ]*[\r\n]\s*|\t+")


def one_line(text: str) -> str:
    """A text without line breaks, secrets masked, hidden characters as escapes.

    Blanks stay as they are: two in a name make another name than one.  A line break inside backticks is part
    of a name or a path, and becomes an escape; each other becomes a blank.
    """
    return escape_hidden_characters(redact_secrets(_BREAKS.sub(" ", _escape_quoted(text.strip()))))


def path_text(path: str) -> str:
    """The path of a file, secrets masked, hidden characters and line breaks as escapes."""
    return escape_hidden_characters(redact_secrets(path))


def note_line(text: str) -> str:
    """A note on one line, its names in backticks once."""
    return one_line(once_quoted(text))


def visible_text(text: str) -> str:
    """A text of several lines, secrets masked, hidden characters as escapes."""
    return escaped_lines(redact_secrets(text))


def message_text(text: str) -> str:
    """A message or a hint of several lines: as :func:`visible_text`, with each name and path on one line."""
    return visible_text(_escape_quoted(text))


def _escape_quoted(text: str) -> str:
    """The text with the line breaks of names and paths, which are in backticks, as escapes."""
    return _QUOTED.sub(lambda name: escape_hidden_characters(name[0]), text) if "\n" in text else text


def timestamp_text(at: datetime | None) -> str:
    """``2026-11-27 20:37:00 UTC``."""
    return "" if at is None else at.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def elapsed_text(milliseconds: int | None) -> str:
    """``0.4 s``, ``12 s``, ``3 min 5 s``, ``4 h 12 min``, ``2 d 3 h``."""
    if milliseconds is None:
        return ""
    seconds = milliseconds / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
