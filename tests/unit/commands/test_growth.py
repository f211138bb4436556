"""The work of commands grows with the number of tables, columns and versions, and not with its square."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bench import many_changes, project
from icemigrate.commands.drift import drift
from icemigrate.commands.project_files import open_project
from icemigrate.history import history_properties, undo_record_codec
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

    def outline(text: str) -> undo_record_codec.UndoOutline:
        read.append(text)
        return undo_record_codec.outline_undo(text)

    def refuse(_text: object) -> None:
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
