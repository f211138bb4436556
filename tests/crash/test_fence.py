"""A process that is paused, replaced and woken up again changes nothing any more."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from icemigrate.errors import ExitCode
from tests.crash.client import Blow, Gateway
from tests.crash.stage import Stage
from tests.crash.walking import walk_over
from tests.crash.world import World, barrier_of, ended

_SECONDS = 60.0
_ROUNDS = 2


def is_paused(process: BaseProcess) -> bool:
    """Wait until a client pauses; whether it does, since it may end before."""
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        if process.exitcode is not None:
            return False
        state = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        if state == "T":
            return True
        time.sleep(0.02)
    raise AssertionError("the client neither paused nor ended")


def replaced_at(
    stage: Stage,
    command: tuple[str, ...],
    blow: Blow,
    then: tuple[str, ...],
    engines: tuple[str, str] = ("spark", "spark"),
) -> bool:
    """Pause a command, let another process take over and finish, and wake the first one up.

    :param then: the command of the other process; where it undoes, the first one may take back its own.
    :param engines: what the first one and the other process commit with.
    :returns: whether it came as far as the blow.
    """
    world = stage.world
    process, order = world.start(*command, "--auto-approve", blow=blow, apply_with=engines[0])
    if not is_paused(process):
        end = ended(process, order)
        assert end.code == 0, end
        return False
    assert process.pid is not None
    lease, world.environment = world.environment, {}  # the other process need not be fast
    try:
        world.done(*then, apply_with=engines[1])
        rows = world.rows()
    finally:
        world.environment = lease
        os.kill(process.pid, signal.SIGCONT)
    end = ended(process, order)
    # A rename, a creation and a drop are no commits: they fail since the other process did the same.
    assert end.code in (ExitCode.LOCKED, ExitCode.ERROR), (blow, end)
    assert "Traceback" not in end.err + end.out, end
    if "stopped at: " in end.err:
        holds = "applied" if then[0] == "apply" else "rolled back"
        assert end.code == ExitCode.LOCKED, end
        assert f"another process took over: 0002 is {holds}" in end.err, end
        assert "0002 needs nothing more" in end.err, end
    assert then[0] != command[0] or world.rows() == rows, "no table and no history changed"
    return True


@pytest.mark.parametrize(
    "engines", [("spark", "spark"), ("metadata", "spark"), ("spark", "metadata"), ("metadata", "metadata")]
)
def test_an_apply_that_was_replaced_changes_nothing(
    stage: Stage, tmp_path: Path, engines: tuple[str, str]
) -> None:
    """It pauses behind every other look at the lock that comes right before a change."""

    def at(stage: Stage, number: int) -> bool:
        stage.world.restore(stage.pending)
        blow = Blow(2 * number - 1, signal.SIGSTOP, at_lease=True)
        if not replaced_at(stage, ("apply",), blow, ("apply",), engines):
            return False
        stage.is_done()
        assert stage.is_at_rest
        return True

    worlds = [stage.copied(tmp_path / f"world{n}", "atomic") for n in range(3)]
    assert walk_over(worlds, at) >= 4


@pytest.mark.parametrize("engines", [("spark", "spark"), ("metadata", "spark"), ("spark", "metadata")])
def test_an_apply_that_was_taken_back_meanwhile_leaves_no_table_renamed(
    stage: Stage, tmp_path: Path, engines: tuple[str, str]
) -> None:
    """It pauses right before a rename, before one into the trash and before a creation."""
    looks = iter((3, 7, 8))

    def at(stage: Stage, number: int) -> bool:
        look = next(looks, None)
        if look is None:
            return False
        stage.world.restore(stage.pending)
        blow = Blow(look, signal.SIGSTOP, at_lease=True)
        assert replaced_at(stage, ("apply",), blow, ("rollback",), engines)
        stage.is_undone()
        assert stage.is_at_rest
        return True

    assert walk_over([stage.copied(tmp_path / f"world{n}", "atomic") for n in range(3)], at) == 3


def test_two_projects_that_want_one_table_do_not_share_it(gateway: Gateway, tmp_path: Path) -> None:
    """Both adopt it at once and add a column each: one does both, and the other does nothing to it."""
    shop = World(tmp_path / "shop", gateway, environment={})
    desk = World(tmp_path / "desk", gateway, warehouse=shop.warehouse, environment={})
    text = (shop.folder / "icemigrate.yaml").read_text(encoding="utf-8")
    text = text.replace("project: shop\n", "project: desk\nhistory: desk_meta.history\n")
    (desk.folder / "icemigrate.yaml").write_text(text, encoding="utf-8")
    names = [f"t{number}" for number in range(_ROUNDS)]
    made = "".join(f"  - {{name: lake.{name}, columns: [{{name: id, type: long}}]}}\n" for name in names)
    lake = World(tmp_path / "lake", gateway, warehouse=shop.warehouse, environment={})
    text = (shop.folder / "icemigrate.yaml").read_text(encoding="utf-8")
    text = text.replace("project: shop\n", "project: lake\nhistory: lake_meta.history\n")
    (lake.folder / "icemigrate.yaml").write_text(text, encoding="utf-8")
    lake.write("0001_make", f"tables:\n{made}")
    lake.done("apply")
    catalog = shop.reader()
    for name in names:  # nobody owns them
        with catalog.load_table(("lake", name)).transaction() as change:
            change.remove_properties("icemigrate.owner", "icemigrate.created-by")
    for at, name in enumerate(names):
        adopted = f"tables: [{{name: lake.{name}, adopt: true, columns: [{{name: id, type: long}}]}}]"
        worlds = (shop, desk)
        for world in worlds:
            added = f"tables: [{{name: lake.{name}, columns: [{{name: by_{world.folder.name}, type: int}}]}}]"
            for path in (world.folder / "migrations").glob("*"):
                if path.stem[:4] not in world.standings():
                    path.unlink()
            world.write(f"{2 * at + 1:04}_adopt", adopted)
            world.write(f"{2 * at + 2:04}_add", added)
        barrier = barrier_of(2)
        started = [world.start("apply", "--auto-approve", barrier=barrier) for world in worlds]
        ends = [ended(*client) for client in started]
        assert sorted(end.code == 0 for end in ends) == [False, True], ends
        winner, loser = (0, 1) if ends[0].code == 0 else (1, 0)
        told = ends[loser].out + ends[loser].err
        assert f"belongs to project `{worlds[winner].folder.name}`" in told, ends[loser]
        assert "Traceback" not in told
        table = catalog.load_table(("lake", name))
        assert [f.name for f in table.schema().fields] == ["id", f"by_{worlds[winner].folder.name}"]
        assert table.properties["icemigrate.owner"] == worlds[winner].folder.name
        assert not {f"{2 * at + 1:04}", f"{2 * at + 2:04}"} & worlds[loser].standings().keys()
    # Handed over as the message says, it is the other project's, and no more the first one's.
    old, new = worlds[winner], worlds[loser]
    with catalog.load_table(("lake", name)).transaction() as change:
        change.set_properties({"icemigrate.owner": new.folder.name})
    new.done("apply")
    old.write("0099_more", f"tables: [{{name: lake.{name}, columns: [{{name: more, type: int}}]}}]")
    end = old.change("apply")
    assert end.code == ExitCode.FINDINGS, end
    assert f"belongs to project `{new.folder.name}`" in end.err + end.out, end
    assert f"by_{new.folder.name}" in catalog.load_table(("lake", name)).schema().column_names
    catalog.close()
