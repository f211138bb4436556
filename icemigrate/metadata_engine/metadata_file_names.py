"""Metadata files of tables, with the names and the content that Iceberg's Java library gives them.

The rules are those of ``BaseMetastoreTableOperations``, ``TableMetadataParser`` and
``CatalogUtil.deleteRemovedMetadataFiles``.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

from icemigrate.errors import EngineError
from icemigrate.iceberg.json_text import Json, write_json_bytes, write_texts
from icemigrate.iceberg.table_properties import whole_number
from icemigrate.iceberg.written_schemas import written_schema
from icemigrate.metadata_engine.table_store import StoredTable

_EXTENSIONS = {"none": ".metadata.json", "gzip": ".gz.metadata.json"}
_METADATA_ENDINGS = (".metadata.json", ".metadata.json.gz")
_NO_VERSION = -1


def new_metadata_location(metadata: Json, base: StoredTable | None) -> str:
    """A new location for a table's next metadata file, which no other file has.

    :param base: the table before the commit; ``None`` where the commit creates it.
    :raises EngineError: the table's compression codec for metadata does not exist.
    """
    version = (_NO_VERSION if base is None else _version(base.location)) + 1
    return location_of_metadata(metadata, f"{version:05d}-{uuid4()}{_EXTENSIONS[_codec(metadata)]}")


def location_of_metadata(metadata: Json, name: str) -> str:
    """The location of a file of the table's metadata (``write.metadata.path``, or below the table's own)."""
    folder = (metadata.get("properties") or {}).get("write.metadata.path")
    return (
        f"{metadata['location'].rstrip('/')}/metadata/{name}"
        if folder is None
        else f"{folder.rstrip('/')}/{name}"
    )


def metadata_content(metadata: Json) -> Sequence[bytes]:
    """The content of a metadata file, in parts.

    :raises EngineError: the table's compression codec for metadata does not exist.
    """
    parts = [b"{"]
    for key, value in metadata.items():
        parts += (b"," if len(parts) > 1 else b"", write_json_bytes(key), b":", *_written(key, value))
    parts.append(b"}")
    return parts if _codec(metadata) == "none" else (gzip.compress(b"".join(parts), mtime=0),)


def _written(key: str, value: Any) -> Iterator[bytes]:
    # The schemas of a table with many versions are megabytes, and so are the properties of a history.
    if key == "schemas":
        yield b"["
        for at, schema in enumerate(value):
            yield b"," if at else b""
            yield written_schema(schema).text
        yield b"]"
    elif key == "properties" and all(type(text) is str for text in value.values()):
        yield write_texts(value)
    else:
        yield write_json_bytes(value)


def removed_metadata_files(base: Json, metadata: Json) -> tuple[str, ...]:
    """The metadata files that a commit may delete, where the table's properties ask for it.

    They are the files that the log had before the commit and no longer has.  A metadata file comes from the
    catalog and may name anything: files with other names than Iceberg's own are not deleted.
    """
    if str(metadata["properties"].get("write.metadata.delete-after-commit.enabled")).lower() != "true":
        return ()
    there = {entry["metadata-file"] for entry in metadata["metadata-log"]}
    before = dict.fromkeys(entry["metadata-file"] for entry in base.get("metadata-log", ()))
    return tuple(file for file in before if file not in there and file.endswith(_METADATA_ENDINGS))


def _codec(metadata: Json) -> str:
    codec = metadata["properties"].get("write.metadata.compression-codec", "none")
    if codec.lower() not in _EXTENSIONS:
        raise EngineError(
            f"the property `write.metadata.compression-codec` has the value `{codec}`",
            "set it to `gzip` or `none`",
        )
    return str(codec).lower()


def _version(location: str) -> int:
    digits, dash, _ = location.rpartition("/")[2].partition("-")
    number = whole_number(digits) if dash else None
    return _NO_VERSION if number is None else number
