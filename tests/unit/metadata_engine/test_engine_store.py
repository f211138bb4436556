"""Errors of a store as an engine reports them, and files of commits whose answers are lost."""

from __future__ import annotations

from typing import Any

import pytest

from icemigrate.errors import CatalogError, EngineError, LockLost
from icemigrate.history.head_snapshot import HistoryHead
from icemigrate.history.project_lock import Heartbeat, Lock
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine import uncertain_outcome
from icemigrate.metadata_engine.engine_store import EngineStore
from icemigrate.metadata_engine.table_store import CommitConflict
from icemigrate.metadata_engine.uncertain_outcome import LostAnswer, until_known

NAME = TableName.parse("db.t")
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("load", (NAME,)),
    ("commit", ([],)),
    ("default_location", (NAME,)),
    ("rename", (NAME, NAME)),
    ("drop", (NAME,)),
    ("create_namespace", (("db",),)),
    ("drop_namespace", (("db",),)),
    ("close", ()),
]


class Silent:
    """A store whose catalog does not answer."""

    def __getattr__(self, _: str) -> Any:
        def fail(*_: object) -> None:
            raise CatalogError("no answer", "wait")

        return fail


@pytest.mark.parametrize(("method", "arguments"), CALLS)
def test_a_catalog_that_does_not_answer_is_an_error_of_the_engine(
    method: str, arguments: tuple[Any, ...]
) -> None:
    silent: Any = Silent()
    with pytest.raises(EngineError, match="no answer") as caught:
        getattr(EngineStore(silent), method)(*arguments)
    assert caught.value.hint == "wait"


class Renewals:
    """A lock whose renewals end as the errors say; the last one stops the heartbeat."""

    def __init__(self, lock: Lock, errors: list[Exception]) -> None:
        self.holder, self.errors = lock.holder, errors

    def renew_if_due(self) -> None:
        raise self.errors.pop(0)


@pytest.mark.parametrize("error", [CatalogError("no answer"), EngineError("no answer")])
def test_a_heartbeat_survives_an_answer_that_does_not_come(error: Exception) -> None:
    class Port:
        def head(self) -> HistoryHead:
            raise AssertionError("not asked")

    from tests.unit.history.test_log import LOCK

    port: Any = Port()
    lock: Any = Renewals(Lock(port, LOCK), [error, error, LockLost("it is lost")])
    beat = Heartbeat(lock)
    beat._every_s = 0.001
    with beat:
        beat._thread.join(10)
        assert not beat._thread.is_alive()
    assert lock.errors == []


@pytest.mark.parametrize("is_lost_first", [True, False])
def test_files_stay_where_an_earlier_attempt_may_still_be_made(
    monkeypatch: pytest.MonkeyPatch, is_lost_first: bool
) -> None:
    monkeypatch.setattr(uncertain_outcome, "PAUSES_S", (0.0, 0.0))
    outcomes: list[Exception] = [LostAnswer()] if is_lost_first else []
    outcomes.append(CommitConflict("another writer was faster"))

    def attempt() -> None:
        raise outcomes.pop(0)

    def find(conflict: CommitConflict | None) -> None:
        if conflict is not None:
            raise conflict

    with pytest.raises(CommitConflict) as caught:
        until_known(attempt, find, "lake", "whether it was made")
    assert caught.value.keeps_files is is_lost_first
