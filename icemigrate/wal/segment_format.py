"""The bytes of a segment: a header, entries, and a footer once the segment is sealed.

======  ==============================================================================================
header  ``ICEWAL``, a zero byte, the version of the format (1), and the segment's mark: 8 random bytes
entry   the mark, ``E``, length of the body (32 bits), CRC-32 of length and body (32 bits); body: kind
        and encoding (8 bits each), time (64 bits), length of the tenant (16 bits), tenant, payload
other   the mark, ``U``, length and CRC-32 as an entry has them; body: length of the problem (16 bits),
bytes   problem, payload: bytes of a source that are no entry
footer  the mark, ``F``, number of entries and other bytes (64 bits), CRC-32 of that number (32 bits)
======  ==============================================================================================

Numbers are little-endian.  With the mark, a reader finds the next entry behind damaged bytes; it is random,
so that no payload can contain what looks like an entry of another tenant.  CRC-32 is zlib's: the standard
library has it, and CRC-32C only as slow Python or as a further dependency.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import TypeAlias
from zlib import crc32

from icemigrate.frozen import Frozen
from icemigrate.wal.entries import (
    LATEST_TIME_NS,
    LONGEST_PAYLOAD,
    LONGEST_TENANT,
    Entry,
    EntryKind,
    PayloadEncoding,
    UnreadableBytes,
)

_MAGIC = b"ICEWAL\0\x01"
_MARK_SIZE = 8
HEADER_SIZE = len(_MAGIC) + _MARK_SIZE
_ENTRY, _UNREADABLE, _FOOTER = b"E", b"U", b"F"
_FRAME = struct.Struct("<II")
_BODY = struct.Struct("<BBQH")
_COUNT = struct.Struct("<QI")
_LENGTH, _NUMBER, _PROBLEM = struct.Struct("<I"), struct.Struct("<Q"), struct.Struct("<H")
_FRAME_SIZE = _MARK_SIZE + 1 + _FRAME.size
_FOOTER_SIZE = _MARK_SIZE + 1 + _COUNT.size
_LONGEST_BODY = _BODY.size + LONGEST_TENANT + LONGEST_PAYLOAD
_LONGEST_PROBLEM = 1000
"""In bytes."""
_KINDS = {EntryKind.TRACES: 1, EntryKind.LOGS: 2, EntryKind.METRICS: 3}
_ENCODINGS = {PayloadEncoding.OTLP_JSON: 1, PayloadEncoding.OTLP_PROTOBUF: 2}
_KIND_OF = {number: kind for kind, number in _KINDS.items()}
_ENCODING_OF = {number: encoding for encoding, number in _ENCODINGS.items()}


class StoredEntry(Frozen):
    """An entry of a segment.

    :param offset: where it begins in the segment, in bytes; it identifies the entry together with the
        segment's name.
    """

    offset: int
    entry: Entry


class DamagedBytes(Frozen):
    """Bytes of a segment that are no entry.

    :param offset: where they begin, in bytes.
    :param length: how many there are.
    :param reason: what is wrong with them, as a clause.
    """

    offset: int
    length: int
    reason: str


SegmentPart: TypeAlias = "StoredEntry | DamagedBytes"


class SegmentContent(Frozen):
    """What a segment contains.

    :param parts: in the order of the segment.
    :param end: where the last entry ends, in bytes; 0 for a file that is no segment.
    :param is_sealed: whether a footer is at its end.
    """

    parts: tuple[SegmentPart, ...]
    end: int
    is_sealed: bool

    @property
    def entries(self) -> tuple[StoredEntry, ...]:
        """The entries without the damaged parts."""
        return tuple(part for part in self.parts if isinstance(part, StoredEntry))

    @property
    def damaged(self) -> tuple[DamagedBytes, ...]:
        """The damaged parts."""
        return tuple(part for part in self.parts if isinstance(part, DamagedBytes))


class SegmentEncoder:
    """Makes the bytes of one segment, which has a mark of its own.

    :param header: of a segment that exists; by default a new one is made.
    """

    def __init__(self, header: bytes | None = None) -> None:
        self.header = _MAGIC + os.urandom(_MARK_SIZE) if header is None else header
        self._mark = self.header[len(_MAGIC) :]

    def encode_entry(self, entry: Entry) -> bytes:
        """The bytes of an entry, which :func:`~icemigrate.wal.entries.require_valid` has checked."""
        tenant = entry.tenant.encode("ascii")
        head = _BODY.pack(_KINDS[entry.kind], _ENCODINGS[entry.encoding], entry.time_ns, len(tenant))
        length = len(head) + len(tenant) + len(entry.payload)
        checksum = crc32(entry.payload, crc32(tenant, crc32(head, crc32(_LENGTH.pack(length)))))
        frame = _FRAME.pack(length, checksum)
        return b"".join((self._mark, _ENTRY, frame, head, tenant, entry.payload))

    def encode_unreadable(self, found: UnreadableBytes) -> bytes:
        """The frame of bytes that are no entry; a reader reports them as damaged, with their problem."""
        problem = found.problem.encode("utf-8", "replace")[:_LONGEST_PROBLEM]
        head = _PROBLEM.pack(len(problem)) + problem
        length = len(head) + len(found.payload)
        checksum = crc32(found.payload, crc32(head, crc32(_LENGTH.pack(length))))
        return b"".join((self._mark, _UNREADABLE, _FRAME.pack(length, checksum), head, found.payload))

    def encode_footer(self, entries: int) -> bytes:
        """The bytes of a footer.

        :param entries: how many the segment has, with those that are unreadable.
        """
        return self._mark + _FOOTER + _COUNT.pack(entries, crc32(_NUMBER.pack(entries)))


class SegmentParts:
    """The parts of a segment one after another, so that no more than one of them is in memory.

    What is damaged is a part too, and never taken for an entry.

    :ivar end: after the last part, see :class:`SegmentContent`.
    :ivar is_sealed: after the last part, whether a footer is at the end.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.end, self.is_sealed = 0, False

    def __iter__(self) -> Iterator[SegmentPart]:
        content = self._content
        if content[: len(_MAGIC)] != _MAGIC or len(content) < HEADER_SIZE:
            if content:
                yield DamagedBytes(0, len(content), "the file does not begin as a segment of version 1")
            return
        mark = content[len(_MAGIC) : HEADER_SIZE]
        at = self.end = HEADER_SIZE
        count = 0
        while at < len(content):
            found = _entry_at(content, at, mark)
            if not isinstance(found, str):
                stored, at = found
                count, self.end = count + 1, at
                yield stored
                continue
            unreadable = _unreadable_at(content, at, mark)
            if unreadable is not None:
                at = self.end = unreadable.offset + unreadable.length
                count += 1
                yield unreadable
                continue
            counted = _footer_at(content, at, mark)
            if counted is not None and at + _FOOTER_SIZE == len(content):
                self.is_sealed = True
                if counted != count:
                    missing = f"the footer counts {counted} entries, and {count} can be read"
                    yield DamagedBytes(at, _FOOTER_SIZE, missing)
                return
            following = _next_frame(content, at + 1, mark)
            is_inside = found == TORN and following < len(content)
            yield DamagedBytes(at, following - at, _WRONG_LENGTH if is_inside else found)
            at = following


def decode_segment(content: bytes) -> SegmentContent:
    """Decode a segment as a whole, see :class:`SegmentParts`."""
    parts = SegmentParts(content)
    found = tuple(parts)
    return SegmentContent(found, parts.end, parts.is_sealed)


def _entry_at(content: bytes, at: int, mark: bytes) -> tuple[StoredEntry, int] | str:
    """The entry at an offset and where it ends, or why there is none."""
    if content[at : at + _MARK_SIZE] != mark[: len(content) - at] or not content.startswith(
        _ENTRY[: len(content) - at - _MARK_SIZE], at + _MARK_SIZE
    ):
        return "no entry begins here"
    begin = at + _FRAME_SIZE
    if begin > len(content):
        return TORN
    length, checksum = _FRAME.unpack_from(content, begin - _FRAME.size)
    if not _BODY.size < length <= _LONGEST_BODY:
        return f"the length {length} of the entry is invalid"
    end = begin + length
    if end > len(content):
        return TORN
    body = content[begin:end]
    if crc32(body, crc32(_LENGTH.pack(length))) != checksum:
        return "the checksum of the entry is wrong"
    kind, encoding, time_ns, tenant_length = _BODY.unpack_from(body)
    if kind not in _KIND_OF:
        return f"the kind {kind} of the entry is unknown"
    if encoding not in _ENCODING_OF:
        return f"the encoding {encoding} of the entry is unknown"
    if time_ns > LATEST_TIME_NS:
        return f"the time {time_ns} of the entry is after 2262"
    payload_at = _BODY.size + tenant_length
    if payload_at > length:
        return f"the entry ends within its tenant, which has {tenant_length} bytes"
    tenant = body[_BODY.size : payload_at].decode("utf-8", "replace")
    entry = Entry(tenant, _KIND_OF[kind], time_ns, body[payload_at:], _ENCODING_OF[encoding])
    return StoredEntry(at, entry), end


TORN = "the segment ends within an entry"
"""The reason of the last part alone: nothing that can be read is behind it."""
_WRONG_LENGTH = "the length of the entry is wrong: the entry would end behind the end of the segment"


def _unreadable_at(content: bytes, at: int, mark: bytes) -> DamagedBytes | None:
    """The bytes with a problem in the frame at an offset; ``None`` where no such frame is whole."""
    begin = at + _FRAME_SIZE
    if content[at : at + _MARK_SIZE + 1] != mark + _UNREADABLE or begin > len(content):
        return None
    length, checksum = _FRAME.unpack_from(content, begin - _FRAME.size)
    body = content[begin : begin + length]
    if not _PROBLEM.size <= len(body) == length or crc32(body, crc32(_LENGTH.pack(length))) != checksum:
        return None
    payload_at = _PROBLEM.size + _PROBLEM.unpack_from(body)[0]
    if payload_at > length:
        return None
    problem = body[_PROBLEM.size : payload_at].decode("utf-8", "replace")
    return DamagedBytes(begin + payload_at, length - payload_at, problem)


def _footer_at(content: bytes, at: int, mark: bytes) -> int | None:
    """The number in the footer at an offset; ``None`` where there is none."""
    if content[at : at + _MARK_SIZE + 1] != mark + _FOOTER or at + _FOOTER_SIZE > len(content):
        return None
    count, checksum = _COUNT.unpack_from(content, at + _MARK_SIZE + 1)
    return int(count) if crc32(_NUMBER.pack(count)) == checksum else None


def _next_frame(content: bytes, begin: int, mark: bytes) -> int:
    """Where the next entry or footer that can be read begins; the end of the segment where there is none."""
    at = content.find(mark, begin)
    while at >= 0:
        is_entry = not isinstance(_entry_at(content, at, mark), str)
        others = (_unreadable_at(content, at, mark), _footer_at(content, at, mark))
        if is_entry or others != (None, None):
            return at
        at = content.find(mark, at + 1)
    return len(content)
