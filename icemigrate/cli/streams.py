"""Standard output and standard error, as a shell's user expects them to be written to."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from icemigrate.errors import IcemigrateError
from icemigrate.hidden_characters import escaped_lines
from icemigrate.redaction import redact


def write(text: str, stream: TextIO | None = None, *, is_rendered: bool = False) -> None:
    """Write to standard output (or to ``stream``), secrets masked and hidden characters as escapes.

    :param is_rendered: the text comes from :func:`icemigrate.render.formats.render`, which has done both.

    A reader that closed the pipe (``| head``) has seen what it wanted: the command ends as it would have.

    :raises IcemigrateError: standard output takes nothing, as on a full disk.  What standard error does not
        take is lost: there is no place left to say so.
    """
    stream = stream or sys.stdout
    try:
        text = text if is_rendered else escaped_lines(redact(text), painted=True)
        stream.write(_encodable(text, stream))
        stream.flush()
    except OSError as error:
        # What is still buffered would fail again while Python shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError) and stream is sys.stdout:
            reason = error.strerror or str(error)
            raise IcemigrateError(f"standard output cannot be written to: {reason}") from error


def _encodable(text: str, stream: TextIO) -> str:
    """The text with what the stream's encoding lacks written as JSON's strings have it, ``\\u8868``."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        import json

        return "".join(c if _has(encoding, c) else json.dumps(c)[1:-1] for c in text)
    return text


def _has(encoding: str, character: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
