"""Results of ``adopt-parquet``."""

from __future__ import annotations

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count, Milliseconds


class AdoptionResult(Frozen):
    """Parquet files that a table adopted, or that were taken out of it again.

    :param table: its name in migration files.
    :param name: its name in the catalog.
    :param path: where the files are.
    :param is_undo: whether they were taken out.
    :param files: the number of these files.
    :param rows: the number of their rows, by their footers.
    :param size_bytes: the size of these files.
    :param already_adopted: files, or files whose rows, the table has already; they are left out.
    :param empty: files without rows, which are left out.
    :param snapshot_id: of the new snapshot; ``None`` where no file changed, or for a dry run.
    :param sets_name_mapping: whether the table gets a name mapping, by which readers find the columns.
    :param disables_gc: whether `gc.enabled` of the table becomes false, so that no client deletes the files.
    :param gc_enabled: whether clients may delete files of the table afterwards.
    :param unread: why the rows were not read for a comparison with the footers; ``None`` where they were.
    :param done: whether it was carried out.
    :param elapsed_ms: how long it took, in milliseconds.
    """

    table: str
    name: str
    path: str
    is_undo: bool
    files: Count
    rows: Count
    size_bytes: Count
    already_adopted: Count = 0
    empty: Count = 0
    snapshot_id: int | None = None
    sets_name_mapping: bool = False
    disables_gc: bool = False
    gc_enabled: bool = True
    unread: str | None = None
    done: bool = False
    elapsed_ms: Milliseconds = 0
