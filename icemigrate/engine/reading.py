"""A table's metadata, brought over from the JVM.

Py4J's server leaves Nagle's algorithm on, and writes an answer in pieces of 8 KB: the second one waits for
the first to be acknowledged, which takes the system 40 ms.  So longer texts come compressed, in parts of a
size that is answered at once.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

# In base 64, as Py4J sends bytes, this is under 8 KB.
_PART = 6000
# The library compresses what has such a name.
_NAME = "read.gz.metadata.json"


def metadata_json(iceberg: Any, metadata: Any) -> dict[str, Any]:
    """Iceberg's JSON of a Java ``TableMetadata``.

    :param iceberg: the JVM's package ``org.apache.iceberg``.
    """
    file = iceberg.inmemory.InMemoryOutputFile(_NAME)
    iceberg.TableMetadataParser.write(metadata, file)
    stream = file.toInputFile().newStream()
    found: dict[str, Any] = json.loads(gzip.decompress(b"".join(_parts(stream))))
    return found


def _parts(stream: Any) -> Iterator[bytes]:
    while True:
        part: bytes = stream.readNBytes(_PART)
        yield part
        if len(part) < _PART:
            return
