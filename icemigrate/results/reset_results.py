"""Result of ``reset``: the tables that leave the project."""

from __future__ import annotations

from typing import Literal

from icemigrate.frozen import Frozen


class ResetTable(Frozen):
    """What ``reset`` does with one table.

    :param table: its name in the catalog.
    :param action: ``trash`` (the project created it), ``release`` (the project adopted it: only its tags, its
        branches and the owner are removed) or ``keep`` (it is not the project's table).
    :param trash: its name in the trash; ``None`` for the other actions.
    :param reason: why it is kept.
    :param references: tags and branches of the project that are removed.
    """

    table: str
    action: Literal["trash", "release", "keep"]
    trash: str | None = None
    reason: str | None = None
    references: tuple[str, ...] = ()


class ResetResult(Frozen):
    """The planned or completed actions of ``reset``.

    :param tables: the recorded tables that exist, and those of interrupted runs.
    :param versions: number of versions that the history forgets.
    :param done: whether the actions ran.
    """

    project: str
    environment: str
    tables: tuple[ResetTable, ...] = ()
    versions: int = 0
    done: bool = False
    elapsed_ms: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to do."""
        return not self.versions and all(t.action == "keep" for t in self.tables)
