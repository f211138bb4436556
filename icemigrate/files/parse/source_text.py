"""Decodes the bytes of a file to text, or reports why they are not text."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from icemigrate.diagnostics import Diagnostic, FilePosition, Severity
from icemigrate.errors import os_error_reason
from icemigrate.hidden_characters import HIDDEN, REORDERING, escape_hidden_characters
from icemigrate.system.file_reads import InsideFolder, open_inside
from icemigrate.system.repository_boundary import OutsideRepository

SIZE_LIMIT = 4 * 1024 * 1024
"""Bytes. A migration is read by people; a larger file is a data file that went astray."""

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""Characters that YAML does not allow in a file (YAML 1.1, section 5.1), and a byte order mark inside one."""

_MOST_HIDDEN = 100
"""The number of lines with hidden characters that get a diagnostic each."""
_ODD_BREAK = re.compile("[\x85\u2028\u2029]")
"""Line breaks to YAML 1.1 (section 5.4), and to hardly anything else."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's text: no byte order mark, and every line break is one ``\\n``.

    :param path: as shown to the user.
    """

    path: str
    text: str = field(repr=False)

    @property
    def has_odd_breaks(self) -> bool:
        """Whether YAML 1.1 counts lines here that editors and version control do not."""
        return _ODD_BREAK.search(self.text) is not None

    def line_starts(self) -> list[int]:
        """Where each line begins, as editors count them."""
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def place_at(self, index: int, starts: Sequence[int] | None = None) -> FilePosition:
        """The position of a character, or of the end of the text.

        :param starts: the result of :meth:`line_starts`, for callers with many offsets.
        """
        starts = starts or self.line_starts()
        line = bisect_right(starts, min(index, len(self.text)))
        return FilePosition(self.path, line, min(index, len(self.text)) - starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The line with a 1-based number; empty beyond the end."""
        lines = self.text.split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else ""


def shown_path(path: Path) -> str:
    """A path as a user would type it: relative to the working directory if it is inside it."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def read_source(path: Path, shown: str | None = None, *, top: Path) -> SourceText | Diagnostic:
    """Read a YAML file of a repository.

    :param top: the top of the repository.
    """
    shown = shown_path(path) if shown is None else shown
    data = read_bytes(path, shown, top)
    return decode_source(data, shown) if isinstance(data, bytes) else data


def read_text(path: Path, *, top: Path) -> SourceText | Diagnostic:
    """Read a file of a repository that is not YAML, or whose YAML another program reads: any characters pass.

    :param top: the top of the repository.
    """
    shown = shown_path(path)
    data = read_bytes(path, shown, top)
    return decode_text(data, shown) if isinstance(data, bytes) else data


def read_bytes(path: Path, shown: str, top: Path, limit: int = SIZE_LIMIT) -> bytes | Diagnostic:
    """The bytes of a file of a repository; of one that is larger than the limit no more than shows that."""
    return _read_bytes(lambda: open_inside(path, top), shown, limit)


def read_bytes_in(folder: InsideFolder, name: str, shown: str) -> bytes | Diagnostic:
    """As :func:`read_bytes`, of a file in a folder that is open."""
    return _read_bytes(lambda: folder.open_file(name), shown, SIZE_LIMIT)


def _read_bytes(open_: Callable[[], BinaryIO], shown: str, limit: int) -> bytes | Diagnostic:
    try:
        with open_() as stream:
            return stream.read(limit + 1)
    except OutsideRepository as error:
        message = f"the file is not read: {os_error_reason(error)}"
        return Diagnostic("outside-repository", message, FilePosition(shown), "replace it by a regular file")
    except OSError as error:
        return Diagnostic(
            "unreadable-file", f"the file cannot be read: {os_error_reason(error)}", FilePosition(shown)
        )


def _wide(data: bytes) -> str | None:
    """The encoding that a byte order mark names, other than UTF-8."""
    # UTF-32's mark begins as one of UTF-16 does.
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    return "UTF-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def decode_source(data: bytes, shown: str) -> SourceText | Diagnostic:
    """Turn the bytes of a YAML file into a :class:`SourceText`, as :func:`decode_text` does.

    A character that YAML does not allow is a :class:`~icemigrate.diagnostics.Diagnostic`.
    """
    source = decode_text(data, shown)
    if isinstance(source, Diagnostic) or (bad := _UNPRINTABLE.search(source.text)) is None:
        return source
    return Diagnostic(
        "control-character",
        f"a character that YAML does not allow: U+{ord(bad.group()):04X}",
        source.place_at(bad.start()),
        'remove it, or write it as an escape in double quotes, such as "\\u0007"',
    )


def decode_text(data: bytes, shown: str) -> SourceText | Diagnostic:
    """Turn bytes into a :class:`SourceText`: UTF-8, with or without a byte order mark, any line breaks."""
    if len(data) > SIZE_LIMIT:
        limit = f"{SIZE_LIMIT // (1024 * 1024)} MiB"
        return Diagnostic(
            "too-large",
            f"the file is larger than {limit}",
            FilePosition(shown),
            "split it into several files",
        )
    if (wide := _wide(data)) is not None:
        return Diagnostic(
            "not-utf8", f"the file is {wide}, not UTF-8", FilePosition(shown), "save it as UTF-8"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig")
        return Diagnostic(
            "not-utf8",
            f"the file is not UTF-8: the byte 0x{data[error.start]:02x} does not belong here",
            _position_after(before, shown),
            "save it as UTF-8",
        )
    return SourceText(shown, _one_kind_of_break(text))


def hidden_characters(source: SourceText) -> Iterator[Diagnostic]:
    """One diagnostic for each line with invisible characters; after many lines, one for the rest.

    Marks that change the direction of text, and tag characters, are an error: the line shows another text
    than it contains ("Trojan Source", CVE-2021-42574). Others are a warning.
    """
    if source.text.isascii():
        return
    lines = enumerate(source.text.split("\n"), start=1)
    hidden = [(number, found) for number, line in lines if (found := _worst_hidden(line)) is not None]
    for number, found in hidden[:_MOST_HIDDEN]:
        yield Diagnostic(
            "hidden-character",
            f"the line contains an invisible character: U+{ord(found[0]):04X}",
            FilePosition(source.path, number, found.start() + 1),
            f'remove it, or write it as an escape in double quotes: "{escape_hidden_characters(found[0])}"',
            _weight(found),
        )
    if rest := hidden[_MOST_HIDDEN:]:
        worst = next((one for one in rest if _weight(one[1]) is Severity.ERROR), rest[0])
        yield Diagnostic(
            "hidden-character",
            f"{len(rest):,} more lines contain invisible characters, including this one",
            FilePosition(source.path, worst[0], worst[1].start() + 1),
            "remove them, or write them as escapes in double quotes",
            _weight(worst[1]),
        )


def hidden_in_name(shown: str) -> Iterator[Diagnostic]:
    """A diagnostic for the name of a file with an invisible character.

    :param shown: the file as diagnostics show it.
    """
    if (found := _worst_hidden(shown)) is not None or (found := HIDDEN.search(shown)) is not None:
        yield Diagnostic(
            "hidden-character",
            f"the name of the file contains an invisible character: U+{ord(found[0]):04X}",
            FilePosition(shown),
            "rename the file",
            _weight(found),
        )


def _worst_hidden(line: str) -> re.Match[str] | None:
    """A hidden character of a line, one that turns the direction of writing before any other."""
    # A line may have megabytes of them: report one.
    worst = REORDERING.search(line)
    return worst or next((one for one in HIDDEN.finditer(line) if one[0] not in "\t\ufeff"), None)


def _weight(found: re.Match[str]) -> Severity:
    return Severity.ERROR if REORDERING.match(found[0]) else Severity.WARNING


def _one_kind_of_break(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _position_after(before: str, shown: str) -> FilePosition:
    lines = _one_kind_of_break(before).split("\n")
    return FilePosition(shown, len(lines), len(lines[-1]) + 1)
