"""Frozen values as JSON and back, by their type hints.

For complete values (plans): every field becomes a key, fields with their default are left out.  Iceberg's own
values have Iceberg's form; others may have one too, see :class:`JsonForm`.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache, partial
from typing import Any, Union

from icemigrate.frozen import NO_DEFAULT, Frozen, frozen_fields
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema_json import field_from_json, field_to_json, type_from_json, type_to_json
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_json import table_from_json_form, table_to_json
from icemigrate.iceberg.types import Field, Type


class BadJson(ValueError):
    """JSON without the shape of its value; the message has the position."""


class JsonForm(Frozen):
    """A special JSON form of a class, a tree of classes, or a union.

    :param hint: its type hint.
    """

    hint: Any
    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]

    @property
    def classes(self) -> tuple[type, ...]:
        """The classes of the values that it dumps."""
        return typing.get_args(self.hint) or (self.hint,)


NOUNS = (
    JsonForm(TableName, str, TableName.parse),
    JsonForm(Table, table_to_json, table_from_json_form),
    JsonForm(Field, field_to_json, field_from_json),
    JsonForm(Type, type_to_json, type_from_json),
)
"""Iceberg's nouns, and the names of tables."""


class _Part(Frozen):
    """A field of a class: its key, its name, its type hint, and the default at which it is left out."""

    key: str
    name: str
    hint: Any
    default: Any


class Codec:
    """Encodes and decodes values; ``forms`` are added to :data:`NOUNS`.

    :param is_stored: for values that other releases read and write.  Keys and omitted defaults are
        as a class says (``rename``, ``omit_defaults``), and unknown keys are ignored.  Otherwise a key is the
        name of a field, every default is left out, and an unknown key is an error.
    """

    def __init__(self, forms: tuple[JsonForm, ...] = (), is_stored: bool = False) -> None:
        self._forms = (*NOUNS, *forms)
        self._is_stored = is_stored

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
        """A value as an object, whatever form its class has."""
        assert isinstance(value, Frozen), f"cannot save a {type(value).__name__}"
        found = ((part, getattr(value, part.name)) for part in _parts(type(value), self._is_stored))
        return {
            part.key: self.encode(item)
            for part, item in found
            if part.default is NO_DEFAULT or part.default != item
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
            read_key = int if key is int else partial(self.decode, key, where=where)
            return {read_key(k): self.decode(value, v, f"{where}.{k}") for k, v in pairs}
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
        """Read a value from an object, whatever form its class has."""
        values = _expect(dict, json, where)
        parts = _parts(cls, self._is_stored)
        if not self._is_stored and (unknown := set(values) - {part.key for part in parts}):
            raise BadJson(f"{where}: unknown key {sorted(unknown)[0]!r}")
        found = ((part, values[part.key]) for part in parts if part.key in values)
        return cls(**{p.name: self.decode(p.hint, value, f"{where}.{p.key}") for p, value in found})


@cache
def _parts(cls: type[Frozen], is_stored: bool) -> tuple[_Part, ...]:
    hints = typing.get_type_hints(cls)
    keys = cls.__struct_encode_fields__ if is_stored else cls.__struct_fields__
    is_omitted = cls.__struct_config__.omit_defaults or not is_stored
    return tuple(
        _Part(key, name, hints[name], default if is_omitted else NO_DEFAULT)
        for key, (name, default) in zip(keys, frozen_fields(cls).items(), strict=True)
    )


def _expect(kind: type, json: Any, where: str) -> Any:
    if not isinstance(json, kind) or (kind is int and isinstance(json, bool)):
        raise BadJson(f"{where}: {kind.__name__} expected, {json!r} found")
    return json
