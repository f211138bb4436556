"""Values of dates, times and timestamps; rows arrive about in order, some of them late."""

from __future__ import annotations

from typing import Any

from icemigrate.test_data.counter import Draws
from icemigrate.test_data.integer_arrays import IntegerArray
from icemigrate.test_data.sources import Ordinal, Source

_FIRST_DAY = 19_723
"""2024-01-01."""
_DAY_SECONDS = 86_400
_FIRST_BIRTH_DAY = -7_305
_BIRTH_DAYS = 20_000
_INDEX_MASK = 2**30 - 1
_UNIQUE_DAY_MASK = 2**20 - 1
_DAY_MILLISECONDS = 86_400_000
_MAX_LATE_MILLISECONDS = 3_600_000
"""Late rows are up to an hour late."""
_JITTER_MASK = 2**20 - 1


def _is_late(bits: IntegerArray) -> IntegerArray:
    """1 for a row that is late, one of 16; 0 for the others."""
    import pyarrow as pa

    top = bits >> 60
    return IntegerArray((top - 1).at_least(15).cast(pa.int64()))


def _arrival_seconds(indices: IntegerArray) -> IntegerArray:
    return (indices & _INDEX_MASK).signed() + _FIRST_DAY * _DAY_SECONDS


def dates(source: Source, draws: Draws) -> Any:
    """Values of ``date``."""
    import pyarrow as pa

    if source is Ordinal.INDEX:
        days = (draws.indices & _UNIQUE_DAY_MASK).signed() + _FIRST_DAY
    elif isinstance(source, Ordinal):
        days = draws.key_ordinals().signed() + _FIRST_DAY
    elif source.name == "birth_date":
        days = draws.bits(1).below(_BIRTH_DAYS).signed() + _FIRST_BIRTH_DAY
    else:
        bits = draws.bits(1)
        late = _is_late(bits) * ((bits & 3).signed() + 1)
        days = _arrival_seconds(draws.indices) // _DAY_SECONDS - late
    return days.cast(pa.int32()).cast(pa.date32())


def times(source: Source, draws: Draws) -> Any:
    """Values of ``time``."""
    import pyarrow as pa

    if source is Ordinal.INDEX:
        microseconds = draws.indices % (_DAY_MILLISECONDS * 1000)
    elif isinstance(source, Ordinal):
        microseconds = draws.key_ordinals() * 1_000_000
    else:
        bits = draws.bits(1)
        microseconds = bits.below(_DAY_MILLISECONDS) * 1000 + (bits & 511)
    return microseconds.cast(pa.int64()).cast(pa.time64("us"))


def timestamps(source: Source, draws: Draws, *, is_nanosecond: bool, has_zone: bool) -> Any:
    """Values of the four timestamp types."""
    import pyarrow as pa

    microseconds, nanoseconds = _instants(source, draws)
    units = microseconds * 1000 + nanoseconds if is_nanosecond else microseconds
    return units.array.cast(pa.timestamp("ns" if is_nanosecond else "us", "UTC" if has_zone else None))


def _instants(source: Source, draws: Draws) -> tuple[IntegerArray, IntegerArray | int]:
    """Microseconds since 1970, and the nanoseconds within the microsecond."""
    if source is Ordinal.INDEX:
        return _arrival_seconds(draws.indices) * 1_000_000, 0
    if isinstance(source, Ordinal):
        return _arrival_seconds(draws.key_ordinals()) * 1_000_000, 0
    bits = draws.bits(1)
    late = (bits << 12).below(_MAX_LATE_MILLISECONDS).signed() * 1000 * _is_late(bits)
    jitter = (bits & _JITTER_MASK).signed()
    microseconds = _arrival_seconds(draws.indices) * 1_000_000 - late + jitter
    return microseconds, (bits >> 20 & 511).signed()
