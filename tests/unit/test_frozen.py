"""What values have beyond the fields of a struct."""

from __future__ import annotations

from icemigrate.frozen import Frozen, cached_property


def test_a_cached_property_is_computed_once_for_each_value() -> None:
    computed = list[int]()

    class Counted(Frozen, dict=True):
        number: int

        @cached_property
        def doubled(self) -> int:
            """Twice the number."""
            computed.append(self.number)
            return 2 * self.number

    one, other = Counted(1), Counted(2)
    assert [one.doubled, one.doubled, other.doubled] == [2, 2, 4]
    assert computed == [1, 2]
    assert Counted.doubled.__doc__ == "Twice the number."
    assert one == Counted(1), "a computed property is no part of the value"
