"""Arrow's integer arrays with Python's operators, which wrap around like those of the machine."""

from __future__ import annotations

from typing import Any, TypeAlias

Operand: TypeAlias = "IntegerArray | int"


class IntegerArray:
    """An Arrow array of 64-bit integers; the right side of an operator is an array of its type or a number.

    No operator checks for an overflow.

    :param array: a ``pyarrow.UInt64Array`` or ``pyarrow.Int64Array``.
    """

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    @classmethod
    def counting(cls, first: int, count: int) -> IntegerArray:
        """The numbers from ``first`` on, modulo 2**64."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ones = pa.repeat(pa.scalar(1, pa.uint64()), count)
        return cls(pc.cumulative_sum(ones)) + (first - 1) % 2**64

    def signed(self) -> IntegerArray:
        """The numbers as signed ones; each must be below 2**63."""
        import pyarrow as pa

        return IntegerArray(self.array.cast(pa.int64(), safe=False))

    def cast(self, type_: Any) -> Any:
        """The Arrow array in another type, without checks."""
        return self.array.cast(type_, safe=False)

    def take(self, positions: Any) -> IntegerArray:
        """The numbers at positions."""
        return IntegerArray(self.array.take(positions))

    def below(self, bound: int) -> IntegerArray:
        """A number from 0 to ``bound - 1``, from the upper 32 bits; ``bound`` is at most 2**32."""
        return (self >> 32) * bound >> 32

    def _compute(self, function: str, other: Operand) -> IntegerArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        right = other.array if isinstance(other, IntegerArray) else pa.scalar(other, self.array.type)
        return IntegerArray(pc.call_function(function, [self.array, right]))

    def __add__(self, other: Operand) -> IntegerArray:
        return self._compute("add", other)

    def __sub__(self, other: Operand) -> IntegerArray:
        return self._compute("subtract", other)

    def __mul__(self, other: Operand) -> IntegerArray:
        return self._compute("multiply", other)

    def __floordiv__(self, other: Operand) -> IntegerArray:
        """Division that truncates towards zero, as in C."""
        return self._compute("divide", other)

    def __mod__(self, other: Operand) -> IntegerArray:
        """The remainder of ``//``, which has the sign of the left side."""
        return self - self // other * other

    def __and__(self, other: Operand) -> IntegerArray:
        return self._compute("bit_wise_and", other)

    def __or__(self, other: Operand) -> IntegerArray:
        return self._compute("bit_wise_or", other)

    def __xor__(self, other: Operand) -> IntegerArray:
        return self._compute("bit_wise_xor", other)

    def __rshift__(self, other: Operand) -> IntegerArray:
        return self._compute("shift_right", other)

    def __lshift__(self, other: Operand) -> IntegerArray:
        return self._compute("shift_left", other)

    def at_least(self, bound: int) -> Any:
        """Whether each number is ``bound`` or more, as an Arrow array of booleans."""
        return self._compute("greater_equal", bound).array
