"""What icemigrate's values cost beside frozen dataclasses: the class, a value, a changed copy, a hash.

``python -m bench.values`` prints one line for each; classes count at the start of every command.
"""

from __future__ import annotations

import dataclasses
import timeit
from collections.abc import Callable

from icemigrate import frozen


def as_dataclass() -> type:
    """A class of five fields, two of them with defaults."""

    @dataclasses.dataclass(frozen=True, slots=True)
    class Value:
        file: str
        line: int
        column: int
        word: str = ""
        width: int = 1

    return Value


def as_frozen() -> type:
    """The same as icemigrate writes it."""

    class Value(frozen.Frozen):
        file: str
        line: int
        column: int
        word: str = ""
        width: int = 1

    return Value


def microseconds(call: Callable[[], object], number: int) -> float:
    """The best of five."""
    return min(timeit.repeat(call, number=number, repeat=5)) / number * 1e6


def main() -> None:
    """Print the lines."""
    theirs, ours = as_dataclass(), as_frozen()
    a, b = theirs("a.yaml", 1, 2), ours("a.yaml", 1, 2)
    for what, number, other, mine in (
        ("make the class", 200, as_dataclass, as_frozen),
        ("make a value", 100_000, lambda: theirs("a.yaml", 1, 2), lambda: ours("a.yaml", 1, 2)),
        (
            "copy it, changed",
            100_000,
            lambda: dataclasses.replace(a, line=2),
            lambda: frozen.replace(b, line=2),
        ),
        ("hash it", 100_000, lambda: hash(a), lambda: hash(b)),
    ):
        floor, own = microseconds(other, number), microseconds(mine, number)
        print(f"{what:16} dataclass {floor:7.2f} µs; icemigrate {own:5.2f} µs; ratio {own / floor:.3f}")


if __name__ == "__main__":
    main()
