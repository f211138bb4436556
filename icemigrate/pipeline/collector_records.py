"""The records of a file that the OpenTelemetry Collector's file exporter writes, from a position onwards.

A record is an export request.  Files differ by the exporter's settings, and their first bytes show how:

=================================  ==========================================================================
``format: json``                   lines; the exporter writes a line and its end separately, so the end can be
                                   the first byte of the next file
``format: proto``                  each record after its length (32 bits, big-endian)
``compression: zstd``              the same, and each record is a frame of Zstandard
``exporter.file.nativeCompression``  frames of Zstandard, which contain lines or records with lengths
=================================  ==========================================================================

Source: ``exporter/fileexporter`` of opentelemetry-collector-contrib, ``file_writer.go`` and
``compression_writer.go``.  What follows the last whole record of a file that grows is not read.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from functools import partial

from icemigrate.frozen import Frozen, replace
from icemigrate.otlp.export_requests import parse_protobuf
from icemigrate.otlp.payload_fields import UnreadablePayload
from icemigrate.otlp.tenant_requests import TenantRule, is_protobuf, require_kind
from icemigrate.pipeline.record_search import RecordSearch, SearchBudget
from icemigrate.pipeline.zstd_frames import (
    MAGIC,
    BadFrame,
    begins_frame,
    decompress,
    frame_end,
    frame_length,
)
from icemigrate.wal.entries import LONGEST_PAYLOAD

_READ = 1024 * 1024
_LENGTH = 4
_LARGEST_FRAME = 256 * 1024 * 1024
"""Of the content of a frame that has many records, in bytes: it is held in memory."""
_BLOCK_WORK = 64
"""What reading the size of a block takes, as bytes that are parsed."""


class Position(Frozen):
    """How far a file is read.

    :param offset: in bytes; of a frame, where it has many records.
    :param skip: how many bytes of the frame's content are read.
    """

    offset: int = 0
    skip: int = 0


class Record(Frozen):
    """A record, or bytes between records.

    :param end: the position behind it.
    :param problem: why the bytes are no record, as a clause.
    """

    data: bytes
    end: Position
    problem: str | None = None


class OpenFile(Frozen):
    """A file of the exporter, as long as it is now.

    :param number: of the open file.
    :param size: in bytes; what is appended later is not read.
    :param time_ns: when it was written last, in nanoseconds since 1970.
    :param is_complete: whether the exporter has closed the file.
    """

    number: int
    size: int
    time_ns: int
    is_complete: bool

    def read(self, offset: int, size: int) -> bytes:
        """Bytes at an offset, fewer at the end of the file."""
        return os.pread(self.number, max(0, min(size, self.size - offset)), offset)


def read_records(file: OpenFile, begin: Position, rule: TenantRule) -> Iterator[Record]:
    """The whole records from a position onwards; an empty one where there is nothing between two ends.

    :raises UsageError: records are in Protocol Buffers, and the rule names no kind.
    :raises OSError: the file cannot be read.
    """
    head = file.read(0, _LENGTH)
    if len(head) < _LENGTH and not file.is_complete:
        return
    if begins_frame(head):
        unread = _Unread(_frames(file, begin))
        while not unread.data:
            if not unread.more():
                if (damage := unread.take_damage()) is None:
                    return
                yield damage
        head = bytes(unread.data[:1])
    else:
        unread = _Unread(_stretches(file, begin))
    if head[:1] <= b"\x04":
        yield from _with_lengths(unread, file.is_complete, rule)
    else:
        yield from _lines(unread, file.is_complete)


class _Piece(Frozen):
    """Consecutive bytes.

    :param begin: the position of the first one.
    :param end: the position behind the last one.
    :param is_frame: whether they are the content of a frame.
    :param problem: why they are no content of records.
    """

    data: bytes
    begin: Position
    end: Position
    is_frame: bool = False
    problem: str | None = None

    def position(self, count: int) -> Position:
        """The position behind some of the bytes."""
        if count == len(self.data):
            return self.end
        begin = self.begin
        if self.is_frame:
            return replace(begin, skip=begin.skip + count)
        return replace(begin, offset=begin.offset + count)


class _Unread:
    """What is read of a file and belongs to no record yet.

    :ivar data: the bytes.
    """

    def __init__(self, pieces: Iterator[_Piece]) -> None:
        self._pieces = pieces
        self._read = deque[_Piece]()
        self._cut = 0
        self.data = bytearray()
        self._damage: _Piece | None = None

    @property
    def is_damaged(self) -> bool:
        """Whether bytes follow that are no content of records."""
        return self._damage is not None

    def more(self) -> bool:
        """Read the next piece; whether there is one."""
        if self._damage is None and (piece := next(self._pieces, None)) is not None:
            if piece.problem is not None:
                self._damage = piece
                return False
            self._read.append(piece)
            self.data += piece.data
            return True
        return False

    def cut(self, count: int) -> tuple[bytes, Position]:
        """Take some of the bytes, and the position behind them."""
        data = bytes(memoryview(self.data)[:count])
        del self.data[:count]
        self._cut += count
        while len(self._read) > 1 and self._cut >= len(self._read[0].data):
            self._cut -= len(self._read.popleft().data)
        return data, self._read[0].position(self._cut)

    def take_damage(self) -> Record | None:
        """The bytes behind the others that are no content of records."""
        piece, self._damage = self._damage, None
        return None if piece is None else Record(piece.data, piece.end, piece.problem)


def _lines(unread: _Unread, is_complete: bool) -> Iterator[Record]:
    searched = 0
    while True:
        end = unread.data.find(b"\n", searched)
        searched = len(unread.data)
        if end >= 0:
            data, position = unread.cut(end + 1)
            yield Record(data[:-1], position)
            searched = 0
        elif searched > LONGEST_PAYLOAD:
            problem = f"a part of a line that is longer than {LONGEST_PAYLOAD:,} bytes"
            yield Record(*unread.cut(LONGEST_PAYLOAD), problem)
            searched = 0
        elif not unread.more():
            # The last line of a closed file can be whole: its end is in the next file.
            if unread.data and (is_complete or unread.is_damaged):
                yield Record(*unread.cut(len(unread.data)))
            if (damage := unread.take_damage()) is None:
                return
            yield damage
            searched = 0


def _with_lengths(unread: _Unread, is_complete: bool, rule: TenantRule) -> Iterator[Record]:
    budget = SearchBudget()
    while True:
        found = _first_record(unread.data, rule, budget)
        if found is None and unread.more():
            continue
        is_last = is_complete or unread.is_damaged
        if isinstance(found, tuple):
            content, size = found
            budget.earn(size)
            yield Record(content, unread.cut(size)[1])
        elif found is None and not is_last:
            return
        else:
            search = RecordSearch(partial(_begins_record, unread.data, rule, budget), budget)
            while (following := search.find(unread.data)) is None and unread.more():
                pass
            is_last = is_complete or unread.is_damaged
            if following is None and not is_last and len(unread.data) <= 2 * LONGEST_PAYLOAD:
                return
            left = len(unread.data) if following is None else following
            while left > 0:
                part = min(left, LONGEST_PAYLOAD)
                left -= part
                yield Record(*unread.cut(part), found or "the file ends within a record")
        if not unread.data and not unread.more():
            if (damage := unread.take_damage()) is None:
                return
            yield damage


def _first_record(
    data: bytearray, rule: TenantRule, budget: SearchBudget, begin: int = 0
) -> tuple[bytes, int] | str | None:
    """The record with its length at an offset, and how many bytes it has there; why there is none.

    ``None`` where the bytes end before it.
    """
    if len(data) < begin + _LENGTH:
        return None
    length = int.from_bytes(data[begin : begin + _LENGTH], "big")
    if length > LONGEST_PAYLOAD:
        return f"the length {length} of a record is invalid"
    end = begin + _LENGTH + length
    if len(data) < end:
        return None
    content = bytes(memoryview(data)[begin + _LENGTH : end])
    if content[: len(MAGIC)] == MAGIC:
        try:
            if frame_length(content) != length:
                return "the frame of Zstandard has another length than the record"
            content = decompress(content, LONGEST_PAYLOAD)
        except BadFrame as error:
            budget.spend(error.work)
            return str(error)
    if is_protobuf(content):
        try:
            parse_protobuf(content, require_kind(rule))
        except UnreadablePayload as error:
            budget.spend(len(content))
            return error.message
    elif content and content[:1] != b"{":
        return "the record is neither JSON nor Protocol Buffers"
    return content, _LENGTH + length


def _begins_record(data: bytearray, rule: TenantRule, budget: SearchBudget, begin: int) -> bool:
    return isinstance(_first_record(data, rule, budget, begin), tuple)


def _stretches(file: OpenFile, begin: Position) -> Iterator[_Piece]:
    """The bytes of a file without compression."""
    at = begin.offset
    while data := file.read(at, _READ):
        yield _Piece(data, Position(at), Position(at + len(data)))
        at += len(data)


def _frames(file: OpenFile, begin: Position) -> Iterator[_Piece]:
    """The contents of frames, and what is no frame."""
    budget = SearchBudget()
    at, skip = begin.offset, begin.skip
    while at < file.size:
        try:
            end = frame_end(file.read, at)
            if end is None and not file.is_complete:
                return
            if end is None:
                raise BadFrame("the file ends within a frame of Zstandard")
            if end - at > _LARGEST_FRAME:
                raise BadFrame(f"the frame of Zstandard has more than {_LARGEST_FRAME:,} bytes")
            content = decompress(file.read(at, end - at), _LARGEST_FRAME)
        except BadFrame as error:
            budget.spend(error.work)
            end = _next_frame(file, at + 1, budget)
            if end is None and not file.is_complete:
                if file.size - at <= 2 * _LARGEST_FRAME:
                    return
                # The next frame can have begun.
                end = file.size - _LARGEST_FRAME
            end = file.size if end is None else end
            for part in range(at, end, LONGEST_PAYLOAD):
                data = file.read(part, min(LONGEST_PAYLOAD, end - part))
                yield _Piece(data, Position(part), Position(part + len(data)), problem=str(error))
        else:
            budget.earn(end - at)
            yield _Piece(content[skip:], Position(at, skip), Position(end), is_frame=True)
        at, skip = end, 0


def _next_frame(file: OpenFile, begin: int, budget: SearchBudget) -> int | None:
    """Where the next frame begins behind damaged bytes; ``None`` where there is none."""
    at = begin
    while len(data := file.read(at, _READ)) >= len(MAGIC):
        passed = len(data) - len(MAGIC) + 1
        budget.earn(passed)
        found = data.find(MAGIC)
        while found >= 0:
            if _begins_frame_at(file, at + found, budget):
                return at + found
            found = data.find(MAGIC, found + 1)
        at += passed
    return None


def _begins_frame_at(file: OpenFile, begin: int, budget: SearchBudget) -> bool:
    """Whether a whole frame begins at an offset; what cannot be decompressed is found later."""

    def read(at: int, size: int) -> bytes:
        if not budget.allows(_BLOCK_WORK):
            raise BadFrame("the frame has too many blocks")
        budget.spend(_BLOCK_WORK)
        return file.read(at, size)

    try:
        return budget.allows(_READ) and frame_end(read, begin) is not None
    except BadFrame:
        return False
