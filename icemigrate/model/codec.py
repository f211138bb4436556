"""Frozen values as JSON and back, by their type hints.

For values that are saved whole (plans): every field becomes a key, fields at their
default are left out.  Iceberg's own nouns go in Iceberg's own form; so may others, see :class:`Form`.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Union

from icemigrate.frozen import NO_DEFAULT, Frozen, fields
from icemigrate.model.json_form import field_from_json, field_to_json, type_from_json, type_to_json
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.model.table_json import table_from_json_form, table_to_json
from icemigrate.model.types import Field, Type


class BadJson(ValueError):
    """JSON that does not have the shape of the value it is read as; the message says where."""


class Form(Frozen):
    """A JSON form of its own for a class, a tree of classes, or a union.

    :param hint: how it stands in a type hint.
    """

    hint: Any
    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]

    @property
    def classes(self) -> tuple[type, ...]:
        """The classes of the values that it dumps."""
        return typing.get_args(self.hint) or (self.hint,)


NOUNS = (
    Form(TableName, str, TableName.parse),
    Form(Table, table_to_json, table_from_json_form),
    Form(Field, field_to_json, field_from_json),
    Form(Type, type_to_json, type_from_json),
)
"""Iceberg's nouns, and the names of tables."""


class Codec:
    """Encodes and decodes values; ``forms`` come on top of :data:`NOUNS`."""

    def __init__(self, forms: tuple[Form, ...] = ()) -> None:
        self._forms = (*NOUNS, *forms)

    def encode(self, value: Any) -> Any:
        """A frozen value as JSON."""
        for form in self._forms:
            if isinstance(value, form.classes):
                return form.dump(value)
        if isinstance(value, Enum):
            return value.value
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, Mapping):
            return {str(k): self.encode(v) for k, v in value.items()}
        if isinstance(value, frozenset):
            return sorted(self.encode(v) for v in value)
        if isinstance(value, (tuple, list)):
            return [self.encode(v) for v in value]
        return self.encode_fields(value)

    def encode_fields(self, value: Any) -> dict[str, Any]:
        """A value as an object, whatever form its class may have."""
        assert isinstance(value, Frozen), f"cannot save a {type(value).__name__}"
        return {
            name: self.encode(getattr(value, name))
            for name, default in fields(type(value)).items()
            if default is NO_DEFAULT or default != getattr(value, name)
        }

    def decode(self, hint: Any, json: Any, where: str = "") -> Any:
        """Read a value of the type ``hint``.

        :raises BadJson: the JSON has another shape.
        """
        try:
            return self._decode(hint, json, where)
        except BadJson:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadJson(f"{where or 'top level'}: {error}") from error

    def _decode(self, hint: Any, json: Any, where: str) -> Any:
        for form in self._forms:
            if hint == form.hint:
                return form.load(json)
        origin = typing.get_origin(hint)
        if origin in (Union, types.UnionType):
            return self._decode_optional(typing.get_args(hint), json, where)
        if origin is tuple:
            return self._decode_tuple(typing.get_args(hint), json, where)
        if origin is frozenset:
            (item,) = typing.get_args(hint)
            return frozenset(self.decode(item, j, where) for j in _expect(list, json, where))
        if origin is not None and issubclass(origin, Mapping):
            key, value = typing.get_args(hint)
            pairs = _expect(dict, json, where).items()
            return {self.decode(key, k, where): self.decode(value, v, f"{where}.{k}") for k, v in pairs}
        if isinstance(hint, type) and issubclass(hint, Enum):
            return hint(json)
        if isinstance(hint, type) and issubclass(hint, Frozen):
            return self.decode_fields(hint, json, where)
        return _expect(hint, json, where)

    def _decode_optional(self, options: tuple[Any, ...], json: Any, where: str) -> Any:
        if json is None and type(None) in options:
            return None
        real = [o for o in options if o is not type(None)]
        # Several classes without a form of their own are a JSON value (a column's default): kept as it is.
        return self.decode(real[0], json, where) if len(real) == 1 else json

    def _decode_tuple(self, items: tuple[Any, ...], json: Any, where: str) -> tuple[Any, ...]:
        values = _expect(list, json, where)
        if len(items) == 2 and items[1] is Ellipsis:
            return tuple(self.decode(items[0], v, f"{where}[{i}]") for i, v in enumerate(values))
        if len(items) != len(values):
            raise BadJson(f"{where}: {len(items)} items expected, {len(values)} found")
        return tuple(
            self.decode(h, v, f"{where}[{i}]") for i, (h, v) in enumerate(zip(items, values, strict=True))
        )

    def decode_fields(self, cls: Any, json: Any, where: str) -> Any:
        """Read a value from an object, whatever form its class may have."""
        values = _expect(dict, json, where)
        hints = _hints(cls)
        if unknown := set(values) - fields(cls).keys():
            raise BadJson(f"{where}: unknown key {sorted(unknown)[0]!r}")
        return cls(**{n: self.decode(hints[n], value, f"{where}.{n}") for n, value in values.items()})


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _expect(kind: type, json: Any, where: str) -> Any:
    if not isinstance(json, kind) or (kind is int and isinstance(json, bool)):
        raise BadJson(f"{where}: {kind.__name__} expected, {json!r} found")
    return json
