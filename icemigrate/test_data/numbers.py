"""Values of the numeric types and booleans."""

from __future__ import annotations

from typing import Any

from icemigrate.iceberg.types import Decimal
from icemigrate.test_data.counter import Draws, log_uniform
from icemigrate.test_data.integer_arrays import IntegerArray
from icemigrate.test_data.sources import Ordinal, Source
from icemigrate.test_data.vocabulary import vocabulary

_MAX_DIGITS = 18
"""The digits of a decimal's unscaled value at most."""
_MAX_SHIFT = 10


def _integers(source: Source, draws: Draws) -> tuple[IntegerArray, int]:
    """The integers before the scale is applied, and the scale."""
    if source is Ordinal.INDEX:
        return (draws.indices & (2**63 - 1)).signed(), 0
    if isinstance(source, Ordinal):
        return draws.key_ordinals().signed(), 0
    numbers = vocabulary().numbers_of(source.name)
    bits = draws.bits(1)
    if numbers.bits is not None:
        return log_uniform(bits, numbers.bits).signed() + numbers.low, numbers.scale
    assert numbers.below is not None, "a range has `bits` or `below`"
    return bits.below(numbers.below).signed() + numbers.low, numbers.scale


def ints(source: Source, draws: Draws) -> Any:
    """Values of ``int``."""
    import pyarrow as pa

    integers, scale = _integers(source, draws)
    return (integers // 10**scale & 0x7FFFFFFF).cast(pa.int32())


def longs(source: Source, draws: Draws) -> Any:
    """Values of ``long``."""
    integers, scale = _integers(source, draws)
    return (integers // 10**scale).array


def doubles(source: Source, draws: Draws) -> Any:
    """Values of ``double``: one division of two numbers that a double holds exactly, the same on every
    machine."""
    import pyarrow as pa
    import pyarrow.compute as pc

    integers, scale = _integers(source, draws)
    return pc.divide(integers.cast(pa.float64()), pa.scalar(float(10**scale)))


def floats(source: Source, draws: Draws) -> Any:
    """Values of ``float``: those of ``double``, rounded."""
    import pyarrow as pa

    return doubles(source, draws).cast(pa.float32(), safe=False)


def decimals(source: Source, draws: Draws, type_: Decimal) -> Any:
    """Values of ``decimal``."""
    import pyarrow as pa

    integers, from_ = _integers(source, draws)
    to = 0 if isinstance(source, Ordinal) else type_.scale
    factor = 10 ** min(max(to - from_, 0), _MAX_SHIFT)
    divisor = 10 ** max(from_ - to, 0)
    unscaled = integers // divisor * factor % 10 ** min(type_.precision, _MAX_DIGITS)
    whole = unscaled.array.cast(pa.decimal128(38, 0))
    # The same bytes with another scale.
    return pa.Array.from_buffers(
        pa.decimal128(type_.precision, type_.scale), len(whole), [None, whole.buffers()[1]]
    )


def booleans(source: Source, draws: Draws) -> Any:
    """Values of ``boolean``."""
    if source is Ordinal.INDEX:
        return (draws.indices & 1).at_least(1)
    if isinstance(source, Ordinal):
        return (draws.key_ordinals() & 1).at_least(1)
    return (draws.bits(1) >> 63).at_least(1)
