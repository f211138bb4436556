"""Values of ``string``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from icemigrate.test_data.counter import Draws, log_uniform
from icemigrate.test_data.integer_arrays import IntegerArray
from icemigrate.test_data.sources import Ordinal, Source
from icemigrate.test_data.vocabulary import vocabulary


def strings(source: Source, draws: Draws) -> Any:
    """Values of ``string``."""
    if source is Ordinal.INDEX:
        return _joined("id-", _padded(draws.indices, 12))
    if isinstance(source, Ordinal):
        return _words(vocabulary().map_keys, draws.key_ordinals())
    bits = draws.bits(1)
    choices = vocabulary().choices.get(source.name or "")
    if choices is not None:
        return _words(choices, log_uniform(bits, len(choices).bit_length()))
    return _BY_MEANING.get(source.name or "", _word_and_number)(bits)


def _words(words: Sequence[str], positions: IntegerArray) -> Any:
    import pyarrow as pa

    return pa.array(words, pa.string()).take(positions.array)


def _joined(*parts: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = [pa.scalar(part) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*texts, "")


def _number(numbers: IntegerArray) -> Any:
    import pyarrow as pa

    return numbers.array.cast(pa.string())


def _padded(numbers: IntegerArray, digits: int) -> Any:
    """Numbers with zeros in front, if they have fewer digits."""
    import pyarrow.compute as pc

    return pc.ascii_lpad(_number(numbers), digits, "0")


def _first_names(bits: IntegerArray) -> Any:
    return _words(vocabulary().first_names, bits & 31)


def _last_names(bits: IntegerArray) -> Any:
    return _words(vocabulary().last_names, bits >> 5 & 31)


def _emails(bits: IntegerArray) -> Any:
    import pyarrow.compute as pc

    names = _joined(_first_names(bits), ".", _last_names(bits))
    domains = _words(vocabulary().domains, bits >> 20 & 3)
    return _joined(pc.ascii_lower(names), _number(bits >> 10 & 1023), "@", domains)


def _addresses(bits: IntegerArray) -> Any:
    streets = _words(vocabulary().last_names, bits & 31)
    return _joined(_number(bits.below(999) + 1), " ", streets, " Street")


def _ips(bits: IntegerArray) -> Any:
    parts = [_number(bits >> shift & 255) for shift in (0, 8, 16)]
    return _joined("10.", parts[0], ".", parts[1], ".", parts[2])


def _urls(bits: IntegerArray) -> Any:
    pages = _words(vocabulary().words, bits & 31)
    return _joined("https://example.com/", pages, "/", _number(bits >> 5 & 65_535))


def _sentences(bits: IntegerArray) -> Any:
    import pyarrow.compute as pc

    words = [_words(vocabulary().words, bits >> 5 * position & 31) for position in range(6)]
    return pc.binary_join_element_wise(*words, " ")


def _word_and_number(bits: IntegerArray) -> Any:
    return _joined(_words(vocabulary().words, bits & 31), "-", _number(bits.below(1000)))


_BY_MEANING: Mapping[str, Callable[[IntegerArray], Any]] = {
    "address": _addresses,
    "email": _emails,
    "first_name": _first_names,
    "full_name": lambda bits: _joined(_first_names(bits), " ", _last_names(bits)),
    "ip": _ips,
    "key": lambda bits: _padded(log_uniform(bits, 20) + 1, 8),
    "last_name": _last_names,
    "phone": lambda bits: _joined("+1555", _padded(bits.below(10_000_000), 7)),
    "postal_code": lambda bits: _padded(bits.below(100_000), 5),
    "sentence": _sentences,
    "url": _urls,
}
