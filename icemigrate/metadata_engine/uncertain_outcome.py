"""Changes of a catalog whose answer is lost: find out whether they were made, and try again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from icemigrate.errors import CatalogError, EngineError, IcemigrateError
from icemigrate.metadata_engine.table_store import (
    BeforeRetry,
    CommitConflict,
    CommitRefused,
    CommitStateUnknown,
    retry_always,
)

T = TypeVar("T")

PAUSES_S = (0.0, 0.2, 1.0, 3.0)
"""Waits before each attempt: a server that restarts needs seconds."""


class LostAnswer(IcemigrateError):
    """It is not known whether a change was made; caught within this package."""

    def __init__(self) -> None:
        super().__init__("the answer to a change is missing or an error")


def until_known(
    attempt: Callable[[], T],
    find: Callable[[CommitConflict | None], T | None],
    catalog: str,
    what: str,
    before_retry: BeforeRetry = retry_always,
) -> T:
    """The result of a change, which is tried again after a lost answer.

    :param attempt: makes the change, at most once however often it is called; raises :class:`LostAnswer`
        where it is not known whether it did.
    :param find: looks for the change; ``None`` where it is not there, or not yet.  Its argument is the
        conflict that the last attempt raised: where it proves that no attempt succeeded, ``find`` raises it.
    :param catalog: the catalog's name.
    :param what: the question that remains: ``whether table `a.b` was dropped``.
    :raises CommitStateUnknown: the catalog does not show it.
    :raises Exception: an error of ``before_retry``; the outcome of the attempts is unknown.
    """
    is_lost = False
    for number, pause_s in enumerate(PAUSES_S):
        time.sleep(pause_s)
        if number:
            before_retry()
        conflict = None
        try:
            return attempt()
        except LostAnswer:
            is_lost = True
        except (CatalogError, EngineError) as error:
            if not is_lost:
                raise
            conflict = error if isinstance(error, CommitConflict) else None
        try:
            found = find(conflict)
        except CatalogError:
            continue
        except CommitRefused as error:
            error.keeps_files = True
            raise
        if found is not None:
            return found
    raise CommitStateUnknown(
        f"catalog `{catalog}` does not show {what}: the connection failed",
        "run the command again when the catalog can be reached",
    )
