"""The objects of a JSON file: one on each line, or the elements of one array, whatever its lines are.

A file is read in parts, so that a load has one element of an array in memory, and not the whole array.
"""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen
from icemigrate.system.inflate import MIB
from icemigrate.table_data.input_files import InputFile

MOST_ELEMENT_CHARACTERS = 256 * MIB
"""The longest element of an array; a reader has it in memory several times."""
_START = 1 << 20
_BLANKS = re.compile(r"[ \t\r\n]*")
_LONGEST_WORD = 16
"""No word of JSON that the end of a part can cut has as many characters."""
_BREAKS = str.maketrans("\r\n", "  ")


class JsonNumber(str):
    """A number as it is written, so that no digit is lost."""

    __slots__ = ()


class JsonRow(Frozen):
    """What should be an object.

    :param line: where it begins.
    :param text: of it, on one line.
    :param value: an error where it is no object.
    :param problem: why the object cannot be a row; ``None`` without a reason.
    """

    line: int
    text: str
    value: dict[str, Any] | ValueError
    problem: str | None


class _Reader:
    """Reads values, and finds keys that an object has twice; JSON readers differ in which value they take."""

    def __init__(self) -> None:
        self._repeated = list[str]()
        self._json = json.JSONDecoder(
            parse_float=JsonNumber, parse_int=JsonNumber, object_pairs_hook=self._object
        )

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            keys = [key for key, _ in pairs]
            self._repeated.append(next(key for key in keys if keys.count(key) > 1))
        return value

    def value(self, text: str) -> Any:
        """The value of a text.

        :raises ValueError: it is not one value of JSON.
        """
        self._repeated.clear()
        return self._json.decode(text)

    def first_value(self, text: str, start: int) -> tuple[Any, int]:
        """The value that begins at a position, and its end.

        :raises ValueError: there is no value of JSON.
        """
        self._repeated.clear()
        return self._json.raw_decode(text, start)

    def row(self, line: int, text: str, value: Any) -> JsonRow:
        """The row of a value that was read just now."""
        if not isinstance(value, (dict, ValueError)):
            value = ValueError("it is not an object")
        problem = f"an object has the key `{self._repeated[0]}` twice" if self._repeated else None
        return JsonRow(line, text, value, problem)


def is_array(file: InputFile) -> bool:
    """Whether a JSON file is an array, and not lines with objects.

    :raises UsageError: it is an object that has several lines.
    """
    with file.content() as stream:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(stream.read(_START))
    text = text.lstrip()
    if text.startswith("{"):
        _require_one_line(file, text)
    return text.startswith("[")


def _require_one_line(file: InputFile, text: str) -> None:
    """Check that the first object of a file does not go on after its line, so that a line is no part of one.

    :raises UsageError: it goes on.
    """
    try:
        _, end = _Reader().first_value(text, 0)
    except (ValueError, RecursionError):
        return
    if "\n" in text[:end]:
        raise file.error(
            "its first JSON object has several lines",
            "write one object on each line, or write all of them in one array",
        )


def json_rows(file: InputFile) -> Iterator[JsonRow]:
    """The rows of a file in UTF-8; a line without text is passed over.

    :raises UsageError: the file is an array with an error, or an object that has several lines.
    """
    found = _elements if is_array(file) else _lines
    with file.content() as stream:
        yield from found(file, stream)


def _lines(_file: InputFile, stream: BinaryIO) -> Iterator[JsonRow]:
    reader = _Reader()
    # A decompressing stream of Arrow has no lines.
    for number, line in enumerate(io.BufferedReader(cast("io.RawIOBase", stream)), 1):
        if not line.strip():
            continue
        text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        value: Any
        try:
            value = reader.value(text)
        except (ValueError, RecursionError) as error:
            value = ValueError(f"it is not JSON: {getattr(error, 'msg', error)}")
        yield reader.row(number, text, value)


def _elements(file: InputFile, stream: BinaryIO) -> Iterator[JsonRow]:
    array = _Array(file, stream)
    array.next_character()
    array.take()
    if array.next_character() != "]":
        yield array.element()
        while array.next_character() == ",":
            array.take()
            array.next_character()
            yield array.element()
        if array.next_character() != "]":
            raise array.error("an element is not followed by `,` or `]`", array.position)
    array.take()
    if array.next_character():
        raise array.error("something follows the end of the array", array.position)


class _Array:
    """The text of an array, of which a part is in memory.

    :ivar position: in this part.
    """

    PART = 1 << 20
    """How many bytes are read at once, if no element is longer."""

    def __init__(self, file: InputFile, stream: BinaryIO) -> None:
        self._file, self._stream, self._reader = file, stream, _Reader()
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._line, self._is_end = "", 1, False
        self.position = 0

    def _read_on(self) -> None:
        """Read as much again as is left, so that a long element is not read anew for each part."""
        self._text, self.position = self._text[self.position :], 0
        if len(self._text) > MOST_ELEMENT_CHARACTERS:
            most = f"{MOST_ELEMENT_CHARACTERS // MIB} MiB"
            raise self.error(f"an element has more than {most}, or does not end", 0)
        part = self._stream.read(max(self.PART, len(self._text)))
        self._is_end = not part
        self._text += self._decoder.decode(part, final=self._is_end)

    def next_character(self) -> str:
        """The next character that is not blank; empty at the end of the file."""
        while True:
            blanks = _BLANKS.match(self._text, self.position)
            assert blanks is not None, "the pattern matches an empty text"
            self._line += self._text.count("\n", self.position, blanks.end())
            self.position = blanks.end()
            if self.position < len(self._text) or self._is_end:
                return self._text[self.position : self.position + 1]
            self._read_on()

    def take(self) -> None:
        """Go on by one character."""
        self.position += 1

    def element(self) -> JsonRow:
        """The value that begins here."""
        while True:
            try:
                value, end = self._reader.first_value(self._text, self.position)
            except json.JSONDecodeError as error:
                if self._is_end or self._is_certain(error):
                    raise self.error(error.msg, error.pos) from error
            except RecursionError as error:
                raise self.error(str(error), self.position) from error
            else:
                # The next part may go on with a number.
                if end < len(self._text) or self._is_end:
                    break
            self._read_on()
        text, line = self._text[self.position : end], self._line
        self._line += text.count("\n")
        self.position = end
        return self._reader.row(line, text.translate(_BREAKS), value)

    def _is_certain(self, error: json.JSONDecodeError) -> bool:
        """Whether it is an error whatever follows the part that is in memory."""
        is_open = error.msg.startswith("Unterminated string")
        return not is_open and error.pos < len(self._text.rstrip()) - _LONGEST_WORD

    def error(self, problem: str, position: int) -> UsageError:
        """An error that names a line.

        :param position: in the part.
        """
        line = self._line + self._text.count("\n", self.position, position)
        return UsageError(
            f"{self._file.shown}:{line}: it is not a JSON array: {problem}",
            "correct the array, or write one object on each line without brackets and commas around it",
        )
