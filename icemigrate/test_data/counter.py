"""The counter-based generator: every value is a function of the seed, the column's path and the row."""

from __future__ import annotations

from typing import Any

from icemigrate.test_data.integer_arrays import IntegerArray

_GOLDEN = 0x9E3779B97F4A7C15
"""SplitMix64's increment: 2**64 divided by the golden ratio."""
_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x00000100000001B3
_MASK = 2**64 - 1
_OFFSET_BITS = 40
"""The low bits that :func:`log_uniform` takes its offset from."""
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1
_NULLS_OF_1024 = 51
"""Of 1,024 optional values, as many are null."""
SLOTS = 4
"""A list's element, or a map's entry, has the index ``SLOTS * index of the list + position``."""


def column_key(seed: int, path: str) -> int:
    """The key of a column: FNV-1a of its path in UTF-8, mixed with the seed."""
    hash_ = _FNV_OFFSET
    for byte in path.encode():
        hash_ = (hash_ ^ byte) * _FNV_PRIME & _MASK
    return _mix_number(hash_ ^ _mix_number(seed + _GOLDEN & _MASK))


def _mix_number(z: int) -> int:
    """SplitMix64's finaliser (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014)."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
    return z ^ z >> 31


def _mix(z: IntegerArray) -> IntegerArray:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


def log_uniform(bits: IntegerArray, size: int) -> IntegerArray:
    """Numbers from 0 to ``2**size - 2``, the small ones most often: about as in Zipf's law, without floating
    point.

    The length in bits is uniform (upper 6 bits), then the number among those of the length (low 40 bits).
    """
    length = (bits >> 58) * size >> 6
    one = length - length + 1
    offset = (bits & _OFFSET_MASK) >> (one * _OFFSET_BITS - length)
    return (one << length) + offset - 1


class Draws:
    """The draws of one column at the indices of one array.

    The index of a value is the row at the top and in structs; in lists and maps it is made of the list's
    index.

    :param key: of the column.
    """

    __slots__ = ("indices", "key")

    def __init__(self, key: int, indices: IntegerArray) -> None:
        self.key = key
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices.array)

    def bits(self, draw: int) -> IntegerArray:
        """64 random bits for each value; draw 0 decides about null, the others make the value."""
        return self._bits_at(draw, self.indices)

    def _bits_at(self, draw: int, indices: IntegerArray) -> IntegerArray:
        stream = _mix_number(self.key + draw * _GOLDEN & _MASK)
        return _mix(indices * _GOLDEN + stream)

    def validity(self, is_required: bool) -> Any:
        """Whether each value is there, as an Arrow array of booleans; ``None`` for a required column."""
        return None if is_required else (self.bits(0) >> 54).at_least(_NULLS_OF_1024)

    def key_ordinals(self) -> IntegerArray:
        """The ordinals of map keys, from 0 to 8, which differ within a map."""
        of_maps = self._bits_at(1, self.indices // SLOTS)
        return of_maps.below(6) + self.indices % SLOTS
