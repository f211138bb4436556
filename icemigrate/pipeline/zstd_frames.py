"""Frames of Zstandard: where one ends, and what it contains.

RFC 8878, `Zstandard Compression <https://datatracker.ietf.org/doc/html/rfc8878#section-3.1>`_.  The end of a
frame is found by the sizes of its blocks, without decompressing it.
"""

from __future__ import annotations

from collections.abc import Callable

MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"
"""The end of the magic numbers 0x184D2A50 to 0x184D2A5F, which are little-endian."""
_BLOCK, _CHECKSUM = 3, 4
_READ = 256 * 1024
"""How many bytes are decompressed at a time: Arrow makes room for all that are asked for."""
_DICTIONARY_SIZES = (0, 1, 2, 4)
_CONTENT_SIZES = (0, 2, 4, 8)
_RLE, _RESERVED = 1, 3


class BadFrame(ValueError):
    """Bytes that are no frame, or that cannot be decompressed; the text is a clause.

    :ivar work: how many bytes were read and decompressed.
    """

    def __init__(self, message: str, work: int = 0) -> None:
        super().__init__(message)
        self.work = work


def begins_frame(data: bytes) -> bool:
    """Whether bytes begin as a frame, or as one that decoders skip."""
    return data[:4] == MAGIC or _is_skippable(data)


def frame_end(read: Callable[[int, int], bytes], begin: int) -> int | None:
    """Where a frame ends, as an offset; ``None`` where the bytes end before it.

    :param read: the bytes at an offset, at most as many as a number says; fewer at the end.
    :raises BadFrame: no frame begins there.
    """
    head = read(begin, 8)
    if len(head) < 8:
        return None
    if _is_skippable(head):
        end = begin + 8 + int.from_bytes(head[4:], "little")
        return end if _has(read, end) else None
    if head[:4] != MAGIC:
        raise BadFrame("no frame of Zstandard begins here")
    descriptor = head[4]
    is_single = bool(descriptor & 0x20)
    content = _CONTENT_SIZES[descriptor >> 6] or int(is_single)
    at = begin + 5 + (not is_single) + _DICTIONARY_SIZES[descriptor & 3] + content
    while True:
        block = read(at, _BLOCK)
        if len(block) < _BLOCK:
            return None
        header = int.from_bytes(block, "little")
        kind = header >> 1 & 3
        if kind == _RESERVED:
            raise BadFrame("a block of the frame has an invalid type")
        at += _BLOCK + (1 if kind == _RLE else header >> 3)
        if header & 1:
            at += _CHECKSUM if descriptor & 4 else 0
            return at if _has(read, at) else None


def frame_length(data: bytes) -> int | None:
    """The length of the frame at the beginning of bytes; ``None`` where it is not whole.

    :raises BadFrame: no frame begins there.
    """
    return frame_end(lambda at, size: data[at : at + size], 0)


def decompress(data: bytes, limit: int) -> bytes:
    """The content of whole frames.

    :param limit: how many bytes it can have.
    :raises BadFrame: it is damaged or longer.
    """
    import pyarrow as pa

    if _is_skippable(data):
        return b""
    content = bytearray()
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            while len(content) <= limit and (part := stream.read(_READ)):
                content += part
    except (OSError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        message = f"the frame of Zstandard cannot be decompressed: {reason}"
        raise BadFrame(message, len(data) + len(content)) from None
    if len(content) > limit:
        raise BadFrame(f"the frame of Zstandard has more than {limit:,} bytes", len(data) + len(content))
    return bytes(content)


def _is_skippable(data: bytes) -> bool:
    return data[1:4] == _SKIPPABLE and data[0] >> 4 == 5


def _has(read: Callable[[int, int], bytes], end: int) -> bool:
    """Whether there are bytes up to an offset."""
    return len(read(end - 1, 1)) == 1
