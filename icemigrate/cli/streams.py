"""Standard output and standard error, as a shell's user expects them to be written to."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO

from icemigrate.errors import IcemigrateError
from icemigrate.hidden_characters import escaped_lines
from icemigrate.redaction import redact_secrets
from icemigrate.system.activity import hidden_activity


def write_stream(text: str, stream: TextIO | None = None, *, is_rendered: bool = False) -> None:
    """Write to standard output (or to ``stream``), with secrets masked and hidden characters escaped.

    If the reader of a pipe has closed it (``| head``), the command ends as usual.

    :param is_rendered: whether the text comes from :func:`icemigrate.render.formats.render`, which has done
        both.
    :raises IcemigrateError: standard output cannot be written, as on a full disk.  Text that standard error
        does not accept is lost.
    """
    stream = stream or sys.stdout
    try:
        text = text if is_rendered else escaped_lines(redact_secrets(text))
        with hidden_activity():
            stream.write(_encodable(text, stream))
            stream.flush()
    except OSError as error:
        # Buffered text would fail again while Python shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError) and stream is sys.stdout:
            reason = error.strerror or str(error)
            raise IcemigrateError(f"cannot write to standard output: {reason}") from error


def require_utf8_output() -> None:
    """Make standard output UTF-8 whatever the locale is: a program takes escapes in CSV for the text."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")


def _encodable(text: str, stream: TextIO) -> str:
    r"""The text with characters that the stream cannot encode as JSON escapes, ``\u8868``."""
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
