"""The result of `generate`."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count, Milliseconds, one_of

GeneratorKind: TypeAlias = Annotated[str, one_of("native", "arrow")]
SchemaOrigin: TypeAlias = Annotated[str, one_of("catalog", "files")]


class GenerateResult(Frozen):
    """Rows of test data that were generated.

    :param table: its name in migration files.
    :param schema_from: ``catalog``, or ``files`` for a table that the catalog does not have.
    :param path: the Parquet file.
    :param rows: how many were generated.
    :param first_row: the number of the first one.
    :param seed: the seed; the same seed gives the same values.
    :param file_bytes: the size of the file.
    :param generator: ``native`` (in Rust) or ``arrow`` (in Python); both give the same values.
    :param elapsed_ms: from the first row to the last.
    """

    table: str
    schema_from: SchemaOrigin
    path: str
    rows: Count
    first_row: Count
    seed: Count
    file_bytes: Count
    generator: GeneratorKind
    elapsed_ms: Milliseconds
