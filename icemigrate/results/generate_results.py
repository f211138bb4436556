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
    :param rows: how many were generated.
    :param first_row: the number of the first one.
    :param seed: the seed; the same seed gives the same values.
    :param path: the Parquet file; ``None`` where the rows were inserted.
    :param files: number of files.
    :param file_bytes: the size of all files.
    :param snapshot_id: of the table's new snapshot; ``None`` where the rows were written to a file.
    :param generator: ``native`` (in Rust) or ``arrow`` (in Python); both give the same values.
    :param elapsed_ms: how long it took, in milliseconds.
    """

    table: str
    schema_from: SchemaOrigin
    rows: Count
    first_row: Count
    seed: Count
    path: str | None = None
    files: Count = 1
    file_bytes: Count = 0
    snapshot_id: int | None = None
    generator: GeneratorKind = "arrow"
    elapsed_ms: Milliseconds = 0
