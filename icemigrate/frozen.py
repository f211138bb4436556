"""The base of all value classes: immutable structs.

These are ``msgspec``'s structs, since a command reads some 230 such classes before it does anything, and
then makes values by the ten thousand: a class is made in a fortieth, a value in a sixth and a changed copy
in a twentieth of the time that a frozen ``dataclasses.dataclass`` takes (``bench/values.py``).  A dataclass
is what changes, what is put in order, and what the project file says, whose secrets no ``repr`` shows.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Mapping
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import NODEFAULT, Struct, StructMeta, field
from msgspec.structs import replace

if TYPE_CHECKING:
    from functools import cached_property

    from typing_extensions import dataclass_transform
else:

    class cached_property:  # noqa: N801
        """A property that is computed once, without the lock that ``functools`` takes before Python 3.12:
        the lock takes longer than most properties.
        """

        def __init__(self, function):
            self.function, self.__doc__, self.name = function, function.__doc__, function.__name__

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.function(instance)
            return value

    def dataclass_transform(**_):
        """What type checkers alone have a use for."""
        return lambda cls: cls


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen(Struct, frozen=True):
    """A value: equal where its class and its fields are, hashable where its fields are, never changed."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class PartlyCompared(Frozen):
    """A value with fields that are not compared, such as its position in a file."""

    uncompared: ClassVar[frozenset[str]]
    """Names of the fields that comparisons pass over."""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        values = _compared_values(self.__class__)
        return bool(values(self) == values(other))

    def __hash__(self) -> int:
        return hash(_compared_values(self.__class__)(self))


@cache
def _compared_values(kind: type[PartlyCompared]) -> attrgetter[Any]:
    """Get the compared values of an instance: a tuple, or the only one."""
    return attrgetter(*(name for name in kind.__struct_fields__ if name not in kind.uncompared))


class _AbstractMeta(StructMeta, ABCMeta):
    """The metaclass of classes that cannot be created while a method is missing."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class AbstractFrozen(Frozen, metaclass=_AbstractMeta):
    """A value whose class leaves methods to its subclasses."""


NO_DEFAULT = NODEFAULT
"""The default of a field that has none."""


@cache
def compared_fields(kind: type[Frozen]) -> Mapping[str, Any]:
    """The names of the compared fields, each with its default or :data:`NO_DEFAULT`."""
    passed_over = kind.uncompared if issubclass(kind, PartlyCompared) else ()
    return {name: default for name, default in frozen_fields(kind).items() if name not in passed_over}


@cache
def frozen_fields(kind: type[Frozen]) -> Mapping[str, Any]:
    """The names of the fields, in order, each with its default or :data:`NO_DEFAULT`."""
    names, given = kind.__struct_fields__, kind.__struct_defaults__
    defaults = [NO_DEFAULT] * (len(names) - len(given)) + [_made(default) for default in given]
    return dict(zip(names, defaults, strict=True))


def _made(default: Any) -> Any:
    """A default, made where the class has a factory for it."""
    factory = getattr(default, "factory", None)
    return default if factory is None else factory()


__all__ = [
    "NO_DEFAULT",
    "AbstractFrozen",
    "Frozen",
    "PartlyCompared",
    "cached_property",
    "compared_fields",
    "field",
    "frozen_fields",
    "replace",
]
