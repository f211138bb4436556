"""Decompression with a limit: a kilobyte of a damaged or hostile stream may hold a megabyte of zeros."""

from __future__ import annotations

import zlib

MIB = 1024 * 1024
ZLIB, GZIP, RAW = zlib.MAX_WBITS, 16 + zlib.MAX_WBITS, -zlib.MAX_WBITS
"""The headers of a stream: that of zlib, that of gzip, or none."""


class InflateError(ValueError):
    """A compressed stream that is damaged or too large; the message is a clause about the stream."""


def inflate(data: bytes, header: int, limit: int) -> bytes:
    """Decompress a whole stream of zlib's format.

    :param header: :data:`ZLIB`, :data:`GZIP` or :data:`RAW`.
    :param limit: the most bytes of the result.
    :raises InflateError: the stream is damaged, ends early, or holds more.
    """
    reader = zlib.decompressobj(header)
    try:
        # A byte more than the limit shows that the stream goes on.
        found = reader.decompress(data, limit + 1)
    except zlib.error as error:
        raise InflateError(f"its compressed data is damaged: {error}") from error
    if len(found) > limit:
        raise InflateError(f"its compressed data holds more than {limit // MIB} MiB")
    if not reader.eof:
        raise InflateError("its compressed data is damaged: it ends early")
    return found
