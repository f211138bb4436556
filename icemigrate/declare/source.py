"""A file's bytes → its text, or the one mistake that keeps it from being text."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from icemigrate.diagnostics import Diagnostic, Place, Severity
from icemigrate.errors import why
from icemigrate.files.boundary import OutsideRepository
from icemigrate.files.reading import open_inside
from icemigrate.hidden_characters import HIDDEN, REORDERING, escaped

SIZE_LIMIT = 4 * 1024 * 1024
"""Bytes. A migration is read by people; a larger file is a data file that went astray."""

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""What YAML does not allow in a file (YAML 1.1, section 5.1), and a byte order mark in the middle of one."""

_MOST_HIDDEN = 100
"""So many lines with hidden characters are reported one by one."""
_ODD_BREAK = re.compile("[\x85\u2028\u2029]")
"""Line breaks to YAML 1.1 (section 5.4), and to hardly anything else."""


@dataclass(frozen=True, slots=True)
class Source:
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

    def place_at(self, index: int, starts: Sequence[int] | None = None) -> Place:
        """The place of a character, or of the end of the text.

        :param starts: :meth:`line_starts`, for whoever asks for many places.
        """
        starts = starts or self.line_starts()
        line = bisect_right(starts, min(index, len(self.text)))
        return Place(self.path, line, min(index, len(self.text)) - starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The line with a 1-based number; empty beyond the end."""
        lines = self.text.split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else ""


def shown_path(path: Path) -> str:
    """A path as a user would type it: relative to the working directory when it lies below it."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def read_source(path: Path, shown: str | None = None, *, top: Path) -> Source | Diagnostic:
    """Read a file of a repository.

    :param top: the top of the repository.
    """
    shown = shown_path(path) if shown is None else shown
    data = read_bytes(path, shown, top)
    return decode(data, shown) if isinstance(data, bytes) else data


def read_bytes(path: Path, shown: str, top: Path) -> bytes | Diagnostic:
    """The bytes of a file of a repository; of one that is too large no more than shows that."""
    try:
        with open_inside(path, top) as stream:
            return stream.read(SIZE_LIMIT + 1)
    except OutsideRepository as error:
        message = f"the file is not read: {why(error)}"
        return Diagnostic("outside-repository", message, Place(shown), "put a file in its place")
    except OSError as error:
        return Diagnostic("unreadable-file", f"the file cannot be read: {why(error)}", Place(shown))


def _wide(data: bytes) -> str | None:
    """The encoding that a byte order mark tells of, other than UTF-8."""
    # UTF-32's mark begins as one of UTF-16 does.
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    return "UTF-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def decode(data: bytes, shown: str) -> Source | Diagnostic:
    """Turn bytes into a :class:`Source`: UTF-8, with or without a byte order mark, any line breaks."""
    if len(data) > SIZE_LIMIT:
        limit = f"{SIZE_LIMIT // (1024 * 1024)} MiB"
        return Diagnostic(
            "too-large", f"the file is larger than {limit}", Place(shown), "split it into several files"
        )
    if (wide := _wide(data)) is not None:
        return Diagnostic("not-utf8", f"the file is {wide}, not UTF-8", Place(shown), "save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig")
        return Diagnostic(
            "not-utf8",
            f"the file is not UTF-8: the byte 0x{data[error.start]:02x} does not belong here",
            _place_after(before, shown),
            "save it as UTF-8",
        )
    if (bad := _UNPRINTABLE.search(text)) is not None:
        return Diagnostic(
            "control-character",
            f"a character that YAML does not allow: U+{ord(bad.group()):04X}",
            _place_after(text[: bad.start()], shown),
            'remove it; in a text in double quotes it is written as an escape, such as "\\u0007"',
        )
    return Source(shown, _one_kind_of_break(text))


def hidden_characters(source: Source) -> Iterator[Diagnostic]:
    """One finding for each line with characters that a reviewer does not see; one for those after many.

    Marks that turn the direction of writing, and tag characters, are an error: the line shows other text than
    it holds ("Trojan Source", CVE-2021-42574).  Others are a warning.
    """
    if source.text.isascii():
        return
    lines = enumerate(source.text.split("\n"), start=1)
    hidden = [(number, found) for number, line in lines if (found := _worst_hidden(line)) is not None]
    for number, found in hidden[:_MOST_HIDDEN]:
        yield Diagnostic(
            "hidden-character",
            f"the line holds a character that is not seen: U+{ord(found[0]):04X}",
            Place(source.path, number, found.start() + 1),
            f'remove it, or write it as an escape in double quotes: "{escaped(found[0])}"',
            _weight(found),
        )
    if rest := hidden[_MOST_HIDDEN:]:
        worst = next((one for one in rest if _weight(one[1]) is Severity.ERROR), rest[0])
        yield Diagnostic(
            "hidden-character",
            f"more lines hold characters that are not seen: {len(rest):,}, this one among them",
            Place(source.path, worst[0], worst[1].start() + 1),
            "remove them, or write them as escapes in double quotes",
            _weight(worst[1]),
        )


def _worst_hidden(line: str) -> re.Match[str] | None:
    """A hidden character of a line, one that turns the direction of writing before any other."""
    # A line may be megabytes of them: one is enough to say so.
    worst = REORDERING.search(line)
    return worst or next((one for one in HIDDEN.finditer(line) if one[0] not in "\t\ufeff"), None)


def _weight(found: re.Match[str]) -> Severity:
    return Severity.ERROR if REORDERING.match(found[0]) else Severity.WARNING


def _one_kind_of_break(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _place_after(before: str, shown: str) -> Place:
    lines = _one_kind_of_break(before).split("\n")
    return Place(shown, len(lines), len(lines[-1]) + 1)
