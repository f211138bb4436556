"""Schemas of table metadata that stay text until their fields are needed.

Iceberg keeps the schemas of all versions of a table, so most of a large metadata file is schemas.  A plan
reads only the current one, and a commit copies the text of all that it keeps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from icemigrate.iceberg.json_text import Json, Raw, object_form, read_json, write_json_bytes
from icemigrate.iceberg.schema_json import BadMetadata

PARTS: Any = dict[str, Raw]
"""The form in which :func:`~icemigrate.iceberg.json_text.read_json` reads a file for
:func:`metadata_of_parts`."""

_SCHEMAS, _ID = "schemas", "schema-id"
_COLUMNS = object_form({"fields": list[Raw]})
_BEGIN = re.compile(rb'\{"type":"struct","schema-id":(0|[1-9][0-9]{0,9}),')
"""How Iceberg's Java library and icemigrate begin a schema."""


class WrittenSchema(Mapping[str, Any]):
    """The JSON of a schema, which is read from its text on first access.

    :ivar text: JSON in UTF-8.
    """

    __slots__ = ("_form", "_id", "_json", "_width", "text")

    def __init__(self, text: bytes, form: Any = Any, json: Json | None = None) -> None:
        """
        :param form: the parts to read, see :func:`~icemigrate.iceberg.json_text.read_json`.
        :param json: what the text says, where it is known.
        """
        self.text = text
        self._form, self._json = form, json
        self._width: int | None = None
        begin = _BEGIN.match(text)
        self._id = None if begin is None else int(begin[1])

    def __getitem__(self, key: str) -> Any:
        """The value of a key.

        :raises BadMetadata: the text is not JSON.
        :raises TypeError: it is no object.
        """
        return self._id if key == _ID and self._id is not None else self._read()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    @property
    def width(self) -> int | None:
        """The number of columns; ``None`` where the text does not show it."""
        if self._width is None:
            try:
                json = read_json(self.text, _COLUMNS) if self._json is None else self._json
                self._width = len(json["fields"])
            except (ValueError, TypeError, KeyError, RecursionError):
                return None
        return self._width

    def _read(self) -> Json:
        if self._json is None:
            try:
                json = read_json(self.text, self._form)
            except RecursionError as error:
                raise BadMetadata("the JSON is nested too deeply") from error
            except ValueError as error:
                raise BadMetadata(f"it is no JSON: {error}") from error
            if not isinstance(json, dict):
                raise TypeError(f"a schema is {json!r}, not an object")
            self._json = json
        return self._json


def written_schema(schema: Json) -> WrittenSchema:
    """A schema with its text."""
    if isinstance(schema, WrittenSchema):
        return schema
    return WrittenSchema(write_json_bytes(schema), json=schema)


def metadata_of_parts(parts: Any) -> Any:
    """The JSON of a metadata file that was read as :data:`PARTS`; its schemas stay text.

    :raises ValueError: a part is not JSON.
    :raises RecursionError: a part is nested too deeply.
    """
    if not isinstance(parts, dict):
        return parts
    return {key: _part(key, value) for key, value in parts.items()}


def _part(key: str, value: Any) -> Any:
    # Text that only Python's own parser accepts was read without a form.
    if not isinstance(value, Raw):
        return value
    if key != _SCHEMAS:
        return read_json(value)
    schemas = read_json(value, list[Raw])
    if not isinstance(schemas, list):
        return schemas
    return [WrittenSchema(one) if isinstance(one, Raw) else one for one in schemas]
