"""The work of commands grows with the number of tables, columns and versions, and not with its square."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from bench import many_changes, project, rest_server
from icemigrate.commands.drift import drift
from icemigrate.commands.plan import plan
from icemigrate.history import history_properties, undo_record_codec
from icemigrate.project import open_project
from tests.support.call_counts import calls

Make = Callable[[Path, int], object]


def _wide(folder: Path, columns: int) -> None:
    project.make(folder, 1, many_changes.columns(columns), pending=None, snapshots=1)


def _recorded(folder: Path, size: int, recorded: Callable[[int], project.Recorded]) -> None:
    project.make(folder, size, many_changes.columns(5), pending=None, recorded=recorded(size), snapshots=1)


def _stepwise(size: int) -> project.Recorded:
    return project.stepwise(size)


def _drifted(size: int) -> project.Recorded:
    return project.stepwise(size, drifted=True)


def _baseline(_size: int) -> project.Recorded:
    return project.stepwise(1, baseline=True)


DRIFT: dict[str, tuple[Make, int]] = {
    "columns of one table": (_wide, 500),
    "tables with a version each": (partial(_recorded, recorded=_stepwise), 20),
    "changed tables with a version each": (partial(_recorded, recorded=_drifted), 20),
    "tables of one baseline": (partial(_recorded, recorded=_baseline), 20),
}


@pytest.mark.parametrize("name", DRIFT)
def test_drift_of_twice_as_much_takes_about_twice_as_many_calls(tmp_path: Path, name: str) -> None:
    make, size = DRIFT[name]
    counts = []
    for some in (1, size, 2 * size):
        folder = tmp_path / str(some)
        make(folder, some)
        opened = open_project(folder)
        if some == 1:
            drift(opened)  # imports modules
        counts.append(calls(partial(drift, opened)))
    start, few, many = counts
    assert (many - start) / (few - start) < 2.4


@pytest.mark.parametrize("recorded", [_stepwise, _baseline])
def test_drift_reads_each_undo_record_once_and_no_definition_of_an_unchanged_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: Callable[[int], project.Recorded]
) -> None:
    _recorded(tmp_path / "lake", 12, recorded)
    read = list[str]()

    def outline(text: str, bases: Mapping[str, str]) -> undo_record_codec.UndoOutline:
        read.append(text)
        return undo_record_codec.outline_undo(text, bases)

    def refuse(*_: object) -> None:
        raise AssertionError("the definitions of a table are read")

    monkeypatch.setattr(history_properties, "outline_undo", outline)
    monkeypatch.setattr(history_properties, "unpack_undo", refuse)
    monkeypatch.setattr(undo_record_codec.TableUndoOutline, "read", refuse)
    found = drift(open_project(tmp_path / "lake"))
    assert not found.drifted
    # The tables have no tags of the versions.
    assert len(read) == len(set(read)) == (12 if recorded is _stepwise else 1)
    assert len([note for table in found.tables for note in table.notes]) == (
        12 if recorded is _stepwise else 0
    )


def test_drift_reads_only_the_records_of_changed_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _recorded(tmp_path / "lake", 12, _drifted)
    read = list[object]()
    original = undo_record_codec.TableUndoOutline.read

    def counted(part: undo_record_codec.TableUndoOutline) -> object:
        read.append(part.declared_after)
        return original(part)

    monkeypatch.setattr(undo_record_codec.TableUndoOutline, "read", counted)
    chosen = ["bench.t00003", "bench.t00007"]
    found = drift(open_project(tmp_path / "lake"), tables=chosen)
    assert [table.table for table in found.tables if table.facts] == chosen
    # Once for the time of the change, and once for the snapshot to reconcile with.
    assert sorted(map(str, read)) == sorted(chosen * 2)


def test_a_plan_reads_no_undo_record_of_an_applied_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.make(tmp_path, 2, many_changes.columns(5), recorded=_stepwise(2), snapshots=1)

    def refuse(*_: object) -> None:
        raise AssertionError("an undo record is read")

    monkeypatch.setattr(history_properties, "unpack_undo", refuse)
    monkeypatch.setattr(history_properties, "outline_undo", refuse)
    planned = plan(open_project(tmp_path)).plan
    assert [len(migration.tables) for migration in planned.migrations] == [2]


@pytest.mark.parametrize(("more", "listed"), [("", 0), ("namespaces: [new]\n", 1)])
def test_a_plan_sends_a_request_for_each_table_and_none_for_what_it_does_not_name(
    tmp_path: Path, more: str, listed: int
) -> None:
    database = project.make(tmp_path, 3, many_changes.columns(5), snapshots=1)
    project.add_other_namespaces(database, 4)
    (tmp_path / "migrations" / "0003_more.yaml").write_text(
        f"{more}tables: [{{name: bench.t00000, properties: {{read.split.target-size: 1048576}}}}]\n", "utf-8"
    )
    with rest_server.Server(database, 0) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        project.use_rest_server(tmp_path, f"http://127.0.0.1:{server.server_port}")
        planned = plan(open_project(tmp_path)).plan
        server.shutdown()
    assert [len(migration.tables) for migration in planned.migrations] == [3, 1]
    assert [len(migration.create_namespaces) for migration in planned.migrations] == [0, listed]
    asked = [path.partition("?")[0].removeprefix("/v1/") for path in server.requests]
    tables = [f"namespaces/bench/tables/t{number:05}" for number in range(3)]
    history = "namespaces/icemigrate/tables/history"
    assert sorted(asked) == sorted(["config", history, *tables, *["namespaces"] * listed])
