"""A process that is paused and replaced on other catalogs: a REST catalog asserts only what a commit says."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.cli import main
from icemigrate.errors import ExitCode
from tests.crash.client import Blow, Gateway, Order
from tests.crash.fence_everywhere import SCENES, Place, pause
from tests.crash.test_bad_worlds import lake_on
from tests.crash.test_fence import is_paused
from tests.crash.world import begun, ended
from tests.servers.lake import Kind, Lake, postgres_kind, rest_kind
from tests.servers.postgres import postgres
from tests.servers.seaweedfs import seaweedfs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY, SECRET = "fence-access-pq4", "fence-secret-zt9"
# What sets a property alone asserts nothing but the table's id on a REST catalog.
CHANGE = """
tables:
  - {{name: market_data.trades, properties: {{owner.team: "{0}"}}}}
  - {{name: market_data.more, properties: {{owner.team: "{0}"}}}}
"""


@pytest.fixture(scope="module", params=["postgres", "rest"])
def kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kind]:
    if request.param == "rest":
        with seaweedfs(KEY, SECRET) as store:
            yield rest_kind(store)
    else:
        with postgres(SECRET) as server:
            yield postgres_kind(server, tmp_path_factory.mktemp("fence"))


def test_a_commit_of_a_replaced_process_is_refused(
    kind: Kind,
    gateway: Gateway,
    crash_jvm: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It pauses between the read of a table and the commit; the other process takes the migration back."""
    lake = lake_on(kind, crash_jvm, tmp_path, monkeypatch)
    monkeypatch.delenv("ICEMIGRATE_LOCK_LEASE")
    lake.apply()
    for version, look in enumerate(_LOOKS[kind.name], start=3):
        lake.write(f"{version:04}_own", CHANGE.format(version))
        before = properties(lake)
        environment = {**kind.variables, "ICEMIGRATE_LOCK_LEASE": "4"}
        order = Order(
            tmp_path,
            tmp_path / "none.db",
            gateway,
            ("apply", "--auto-approve"),
            f"client{version}",
            environment,
            Blow(look, signal.SIGSTOP, at_lease=True),
        )
        process = begun(order)
        assert is_paused(process), order.err.read_text(encoding="utf-8")
        assert process.pid is not None
        try:
            assert main(["rollback", "--auto-approve"]) == ExitCode.OK, capsys.readouterr()
            assert properties(lake) == before
        finally:
            os.kill(process.pid, signal.SIGCONT)
        end = ended(process, order)
        assert end.code == ExitCode.LOCKED, (look, end)
        assert properties(lake) == before, look
        history = lake.history()
        assert {a.version.text: a.state for a in history.applied}[f"{version:04}"] == "held"
        assert (history.lock, history.intents) == (None, ())


def test_a_maintain_that_was_replaced_deletes_no_row(
    kind: Kind, gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It pauses right before the commit that publishes the deletion of rows.

    `tests.crash.fence_everywhere` goes over every look of every command.
    """
    for name, value in kind.variables.items():
        monkeypatch.setenv(name, value)
    place = Place(kind, gateway, tmp_path / "maintain", "maintain")
    SCENES["maintain"].prepare(place)
    assert pause(place, SCENES["maintain"], _BEFORE_ROWS_ARE_DELETED, "4"), "it has fewer looks"


_BEFORE_ROWS_ARE_DELETED = 11
_LOOKS = {"postgres": (2, 4), "rest": (1, 2, 3, 4)}
"""Behind which looks at the lock: two for each table, one when it is read and one before the commit."""


def properties(lake: Lake) -> list[dict[str, str]]:
    """The properties of both tables."""
    return [dict(lake.table(name).properties) for name in ("trades", "more")]
