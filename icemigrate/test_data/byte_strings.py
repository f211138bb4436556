"""Values of ``uuid``, ``fixed`` and ``binary``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icemigrate.test_data.counter import Draws
from icemigrate.test_data.integer_arrays import IntegerArray
from icemigrate.test_data.sources import Ordinal, Source

_UUID_BYTES = 16
_VERSION_MASK, _VERSION = 0xF << 52, 4 << 52
"""The version, 4, is in the upper half of byte 6."""
_VARIANT_MASK, _VARIANT = 0xC0, 0x80
"""The variant, 2, is in the two upper bits of byte 8."""
_ALL_BITS = 2**64 - 1


def uuids(source: Source, draws: Draws) -> Any:
    """Values of ``uuid``, as an Arrow extension array."""
    import pyarrow as pa

    if source is Ordinal.MAP_KEY:
        storage = fixed(source, draws, _UUID_BYTES)
    else:
        first = draws.bits(1) & (_ALL_BITS ^ _VERSION_MASK) | _VERSION
        second = draws.bits(2) & (_ALL_BITS ^ _VARIANT_MASK) | _VARIANT
        storage = _joined([first, second], _UUID_BYTES)
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def fixed(source: Source, draws: Draws, length: int) -> Any:
    """Values of ``fixed`` of a length in bytes."""
    if source is Ordinal.MAP_KEY:
        return _last_bytes(draws.key_ordinals(), length)
    words = [draws.bits(1 + word) for word in range((length + 7) // 8)]
    if source is Ordinal.INDEX:
        words[0] = draws.indices
    return _joined(words, length)


def binaries(source: Source, draws: Draws) -> Any:
    """Values of ``binary``: eight or sixteen bytes, by the top bit of draw 3; one byte for a map's key."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if source is Ordinal.MAP_KEY:
        return _last_bytes(draws.key_ordinals(), 1).cast(pa.binary())
    is_long = (draws.bits(3) >> 63).at_least(1)
    long, short = (fixed(source, draws, length).cast(pa.binary()) for length in (16, 8))
    return pc.if_else(is_long, long, short)


def _joined(words: Sequence[IntegerArray], length: int) -> Any:
    """Values of ``length`` bytes from 64-bit words, each with its little end first."""
    count = len(words[0].array)
    data = bytearray(count * length)
    if length % 8 == 0:
        wide = memoryview(data).cast("Q")
        for position, word in enumerate(words):
            wide[position :: length // 8] = _content(word).cast("Q")
    else:
        for position in range(length):
            data[position::length] = _content(words[position // 8])[position % 8 :: 8]
    return _fixed_array(data, count, length)


def _last_bytes(ordinals: IntegerArray, length: int) -> Any:
    """Values of zeros that end with an ordinal."""
    count = len(ordinals.array)
    data = bytearray(count * length)
    data[length - 1 :: length] = _content(ordinals)[::8]
    return _fixed_array(data, count, length)


def _content(words: IntegerArray) -> memoryview:
    """The bytes of an array, on a machine with the little end first."""
    array = words.array
    content = memoryview(array.buffers()[1]).cast("B")
    return content[array.offset * 8 : (array.offset + len(array)) * 8]


def _fixed_array(data: bytearray, count: int, length: int) -> Any:
    import pyarrow as pa

    return pa.Array.from_buffers(pa.binary(length), count, [None, pa.py_buffer(data)])
