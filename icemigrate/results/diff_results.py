"""The result of ``diff``."""

from __future__ import annotations

from icemigrate.frozen import Frozen


class TableDiff(Frozen):
    """What the migration does to one table.

    :param table: its name after the migration.
    :param changes: each as a plan shows it: ``+ source string``.
    """

    table: str
    changes: tuple[str, ...]


class DiffResult(Frozen):
    """The result of ``diff``.

    :param path: of the new file, as the user would type it; ``None`` where none was written.
    :param content: the file's text; empty where nothing is to be declared.
    :param tables: what the migration does.
    :param left_out: tables, columns, branches and tags that are only in the declared state, and stay because
        drops were not requested.
    :param allow: the consents that the file gives.
    :param review: the consents that the file needs and does not give: they are for columns that `retype`
        replaces, whose values need a review.
    """

    project: str
    path: str | None
    content: str
    tables: tuple[TableDiff, ...] = ()
    left_out: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    review: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to declare."""
        return not self.content
