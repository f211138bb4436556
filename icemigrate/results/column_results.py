"""The result of the commands that change the columns of a table."""

from __future__ import annotations

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Milliseconds


class ColumnChangesResult(Frozen):
    """The changes of the columns of one table.

    :param table: its name in migration files.
    :param changes: what was done, in running order, as a plan writes it: ``+ source string``; empty where the
        table has these columns already.
    :param is_recorded: whether the history of a project records the change.
    :param elapsed_ms: from the first statement to the record.
    """

    project: str
    environment: str
    table: str
    changes: tuple[str, ...]
    is_recorded: bool
    elapsed_ms: Milliseconds
    notes: tuple[str, ...] = ()
