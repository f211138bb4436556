"""The model that judges random runs: it knows nothing of the product, and sees each fault that is planted."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.crash.model import declared, judge, names, observed, scenario
from tests.crash.model.declared import Column, Effect, Migration, fold, legal
from tests.crash.model.judge import Expected, Foreign, TableJudge, walk
from tests.crash.model.names import names_at_rest
from tests.crash.model.observed import Commit
from tests.crash.model.scenario import scenario_of

KEY = ("0001", "shop.t")
FIRST = Migration(
    "0001",
    (
        Effect(
            "create", "shop.t", columns=(Column("id", "long"), Column("n", "int"), Column("note", "string"))
        ),
    ),
    "",
)
DROP_AND_ADD = Migration(
    "0002", (Effect("drop", "shop.t", "note"), Effect("add", "shop.t", "own", type="string")), ""
)
RETYPE = Migration("0002", (Effect("retype", "shop.t", "n", type="string"),), "")
FILL = Migration(
    "0002", (Effect("add", "shop.t", "own", type="string"), Effect("fill", "shop.t", "own", fill="label")), ""
)
_numbers = count(1)


@dataclass
class State:
    """A table right after a commit, made up."""

    fields: Mapping[int, Column]
    rows: Mapping[int, Mapping[int, Any]]
    last_column_id: int = 9
    properties: Mapping[str, str] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=lambda: {"main": "branch"})
    partition: frozenset[tuple[str, int]] = frozenset()
    lacks: frozenset[tuple[int, int]] = frozenset()
    brought: Mapping[tuple[int, int], Any] = field(default_factory=dict)
    location: str = field(default_factory=lambda: f"/m/{next(_numbers)}.json")
    snapshot: int = field(default_factory=lambda: next(_numbers))

    def was_written_with(self, row: int, number: int) -> bool:
        return (row, number) not in self.lacks

    def brought_along(self, row: int, number: int) -> Any:
        return self.brought.get((row, number))

    def partition_faults(self) -> list[str]:
        return []


ID, N, NOTE, OWN = Column("id", "long"), Column("n", "int"), Column("note", "string"), Column("own", "string")
X = Column("x_1", "string")
START = State({1: ID, 2: N, 3: NOTE}, {1: {1: 1, 2: 10, 3: "a"}, 2: {1: 2, 2: 20, 3: "b"}}, last_column_id=3)
APPLIED = State({1: ID, 2: N, 4: OWN}, {1: {1: 1, 2: 10, 4: None}, 2: {1: 2, 2: 20, 4: None}})
UNDONE = State(START.fields, START.rows)


def next_to(state: State, **changes: Any) -> State:
    """The table after another commit."""
    return replace(state, location=f"/m/{next(_numbers)}.json", snapshot=next(_numbers), **changes)


def added(state: State, number: int, column: Column, value: Any = None) -> State:
    """The table with another column."""
    rows = {row: {**values, number: value} for row, values in state.rows.items()}
    return next_to(state, fields={**state.fields, number: column}, rows=rows)


def judged(
    *states: State,
    foreign: Mapping[int, Foreign] | None = None,
    migration: Migration = DROP_AND_ADD,
    migrations: tuple[Migration, ...] = (),
    applied: tuple[str, ...] = (),
    **expected: Any,
) -> list[str]:
    """The faults of a table's commits.

    :param foreign: by the number of the commit, what another client did.
    :param applied: the versions besides the first one that are applied at the end.
    """
    migrations = (FIRST, *(migrations or (migration,)))
    one = TableJudge.of(KEY, legal(migrations), temporary_names=False)
    wanted = Expected(fold(migrations, ("0001", *applied))[KEY], **expected)
    by = {states[number].location: what for number, what in (foreign or {}).items()}
    walk(one, states, by, {states[-1].location: [wanted]})  # type: ignore[arg-type]
    return one.faults


def test_the_model_imports_nothing_of_the_product() -> None:
    for module in (declared, observed, judge, names, scenario):
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        imported = [a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names]
        imported += [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        assert imported, module
        own = ("tests.crash.model.declared", "tests.crash.model.observed")
        strange = [n for n in imported if n.startswith(("icemigrate", "tests.")) and n not in own]
        assert not strange, module


def test_what_is_promised_has_no_fault() -> None:
    assert judged(START, APPLIED, applied=("0002",)) == []
    assert judged(START, APPLIED, UNDONE) == []
    theirs = added(APPLIED, 5, X, "kept")
    undone = added(UNDONE, 5, X, "kept")
    assert judged(START, APPLIED, theirs, undone, foreign={2: Foreign("adds x_1")}) == []


def test_a_column_of_another_client_that_is_dropped_or_renamed() -> None:
    theirs = added(APPLIED, 5, X)
    adds = {2: Foreign("adds x_1")}
    assert "another client's column" in judged(START, APPLIED, theirs, UNDONE, foreign=adds)[0]
    renamed = added(UNDONE, 5, Column("x_2", "string"))
    assert "another client's column" in judged(START, APPLIED, theirs, renamed, foreign=adds)[0]


def test_a_commit_of_the_product_that_races_with_an_append_is_its_own() -> None:
    raced = {1: Foreign("appends", is_certain=False)}
    assert judged(START, APPLIED, foreign=raced, applied=("0002",)) == []
    adds = {1: Foreign("adds x_1", is_certain=False, changes_fields=True)}
    assert judged(START, APPLIED, foreign=adds, applied=("0002",)) != []


def test_a_race_of_two_changes_of_columns_gives_each_to_who_made_it() -> None:
    theirs = next_to(START, fields={**START.fields, 2: Column("x_n", "int")})
    ours = next_to(APPLIED, fields={**APPLIED.fields, 2: Column("x_n", "int")})
    raced = Foreign("renames n", is_certain=False, changes_fields=True, column="x_n")
    either = {1: raced, 2: raced}
    assert judged(START, theirs, ours, theirs, foreign=either) == []
    assert judged(START, APPLIED, ours, theirs, foreign=either) == []
    assert "another client's column" in judged(START, theirs, ours, UNDONE, foreign=either)[0]


def test_an_initial_column_that_another_client_renames_stays_so() -> None:
    renamed = next_to(APPLIED, fields={**APPLIED.fields, 2: Column("x_n", "int")})
    kept = next_to(UNDONE, fields={**UNDONE.fields, 2: Column("x_n", "int")})
    renames = {2: Foreign("renames n")}
    assert judged(START, APPLIED, renamed, kept, foreign=renames) == []
    assert "another client's column" in judged(START, APPLIED, renamed, UNDONE, foreign=renames)[0]


def test_a_column_of_ours_that_stays_when_all_is_undone() -> None:
    assert "at rest, column ('0002', 'own')" in judged(START, APPLIED, added(UNDONE, 4, OWN))[0]


def test_a_column_that_is_missing_or_was_never_declared() -> None:
    without = next_to(APPLIED, fields={1: ID, 2: N}, rows={1: {1: 1, 2: 10}, 2: {1: 2, 2: 20}})
    assert "column ('0002', 'own') is missing" in judged(START, without, applied=("0002",))[0]
    odd = added(START, 4, Column("odd", "string"))
    assert "no migration declares the column odd" in judged(START, odd)[0]


def test_a_value_that_is_not_back() -> None:
    rows = {**START.rows, 2: {1: 2, 2: 20, 3: None}}
    lost = next_to(UNDONE, rows=rows)
    assert "row 2: note lost 'b'" in judged(START, APPLIED, lost)[0]
    away = next_to(lost, lacks=frozenset({(2, 3)}))
    assert judged(START, APPLIED, away) == [], "its file was written while the column was dropped"
    assert "not back as 'b' after a refill" in judged(START, APPLIED, away, refilled=True)[0]
    assert judged(START, APPLIED, away, UNDONE, refilled=True) == []


def test_a_value_of_a_writer_that_planned_before_the_column_was_dropped() -> None:
    late = next_to(APPLIED, rows={**APPLIED.rows, 100: {1: 100, 2: 5, 4: None}})
    back = {**START.rows, 100: {1: 100, 2: 5, 3: "c"}}
    appends = {2: Foreign("appends row 100", added=frozenset({100}))}
    undone = next_to(UNDONE, rows=back, lacks=frozenset({(100, 3)}), brought={(100, 3): "c"})
    assert judged(START, APPLIED, late, undone, foreign=appends) == []
    invented = next_to(UNDONE, rows=back, lacks=frozenset({(100, 3)}))
    assert "row 100: note is 'c'" in judged(START, APPLIED, late, invented, foreign=appends)[0]


def test_rows_that_are_lost_doubled_or_new() -> None:
    fewer = next_to(APPLIED, rows={1: APPLIED.rows[1]})
    assert "lost [2]" in judged(START, fewer, applied=("0002",))[0]
    more = next_to(APPLIED, rows={**APPLIED.rows, 3: {1: 3, 2: 30, 4: None}})
    assert "appeared [3]" in judged(START, more, applied=("0002",))[0]
    appends = Foreign("appends", added=frozenset({3}))
    assert judged(START, APPLIED, more, foreign={2: appends}, applied=("0002",)) == []


def test_a_commit_of_another_client_that_is_gone() -> None:
    migrations = (FIRST, DROP_AND_ADD)
    one = TableJudge.of(KEY, legal(migrations), temporary_names=False)
    walk(one, [START, APPLIED], {"/m/gone.json": Foreign("appends 2 rows")}, {})  # type: ignore[list-item]
    assert one.faults == ["shop.t: commits of other clients are gone: appends 2 rows"]


def test_files_of_the_current_snapshot_that_are_gone() -> None:
    class Gone(State):
        def partition_faults(self) -> list[str]:
            raise FileNotFoundError("part.parquet")

    gone = Gone(APPLIED.fields, APPLIED.rows)
    faults = judged(START, gone, applied=("0002",))
    assert faults == ["shop.t: files of the current snapshot are gone: part.parquet"]


RETYPED = {1: ID, 4: Column("n", "string"), 3: NOTE}


def test_a_retype_gives_every_row_its_text() -> None:
    good = next_to(START, fields=RETYPED, rows={1: {1: 1, 4: "10", 3: "a"}, 2: {1: 2, 4: "20", 3: "b"}})
    assert judged(START, good, migration=RETYPE, applied=("0002",)) == []
    half = next_to(good, rows={1: {1: 1, 4: "10", 3: "a"}, 2: {1: 2, 4: None, 3: "b"}})
    faults = judged(START, half, migration=RETYPE, applied=("0002",))
    assert any("where other rows were filled" in fault for fault in faults)
    never = next_to(good, rows={1: {1: 1, 4: None, 3: "a"}, 2: {1: 2, 4: None, 3: "b"}})
    assert any(
        "was never filled" in fault for fault in judged(START, never, migration=RETYPE, applied=("0002",))
    )


def test_a_value_that_a_redo_overwrites() -> None:
    rows = {1: {1: 1, 4: "10", 3: "a"}, 2: {1: 2, 4: "20", 3: "b"}}
    done = next_to(START, fields=RETYPED, rows=rows)
    newer = next_to(done, rows={**rows, 3: {1: 3, 4: "precious", 3: "c"}})
    undone = next_to(UNDONE, rows={**UNDONE.rows, 3: {1: 3, 2: None, 3: "c"}})
    appends = {2: Foreign("appends", added=frozenset({3}))}
    redone = next_to(newer)
    given: dict[str, Any] = {"foreign": appends, "migration": RETYPE, "applied": ("0002",)}
    assert judged(START, done, newer, undone, redone, **given) == []
    nulled = next_to(newer, rows={**rows, 3: {1: 3, 4: None, 3: "c"}})
    assert "n lost 'precious'" in judged(START, done, newer, undone, nulled, **given)[0]


def test_a_backfill_that_changed_nothing() -> None:
    nothing = added(START, 4, OWN)
    assert "was never filled" in judged(START, nothing, migration=FILL, applied=("0002",))[0]
    rows = {row: {**values, 4: f"filled-0002-{row}"} for row, values in nothing.rows.items()}
    filled = next_to(nothing, rows=rows)
    assert judged(START, nothing, filled, migration=FILL, applied=("0002",)) == []


def test_a_backfill_of_a_column_that_an_earlier_migration_filled() -> None:
    shout = Migration("0003", (Effect("fill", "shop.t", "own", fill="shout"),), "")
    once = next_to(
        APPLIED, rows={row: {**values, 4: f"filled-0002-{row}"} for row, values in APPLIED.rows.items()}
    )
    twice = next_to(once, rows={row: {**values, 4: f"{values[4]}!"} for row, values in once.rows.items()})
    wrong = next_to(once, rows={row: {**values, 4: f"{values[4]}!!"} for row, values in once.rows.items()})
    base = {1: ID, 2: N, 3: NOTE, 4: OWN}
    states = [
        replace(s, fields=base, rows={r: {**v, 3: START.rows[r][3]} for r, v in s.rows.items()})
        for s in (APPLIED, once, twice)
    ]
    bad = replace(wrong, fields=base, rows={r: {**v, 3: START.rows[r][3]} for r, v in wrong.rows.items()})
    more = {"migrations": (FILL, shout), "applied": ("0002", "0003")}
    assert judged(START, *states, **more) == []
    assert judged(START, *states[:2], bad, **more) != []


def test_a_filled_value_that_was_rewritten_away_is_no_fault() -> None:
    first = added(START, 4, OWN)
    filled = next_to(first, rows={r: {**v, 4: f"filled-0002-{r}"} for r, v in first.rows.items()})
    away = next_to(first, lacks=frozenset({(1, 4), (2, 4)}))
    assert judged(START, first, filled, UNDONE, away, migration=FILL, applied=("0002",)) == []
    there = next_to(first)
    assert "never filled" in judged(START, first, filled, UNDONE, there, migration=FILL, applied=("0002",))[0]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"references": {"main": "branch", "icemigrate-0002-data": "branch"}}, "there is a branch"),
        ({"references": {"main": "branch", "icemigrate-0002": "tag"}}, "of a version that was not applied"),
        ({"properties": {"owner.team": "x"}}, "its properties are"),
        ({"partition": frozenset({("identity", 2)})}, "it is partitioned by"),
    ],
)
def test_what_is_left_behind(changes: dict[str, Any], fault: str) -> None:
    left = next_to(START, **changes)
    assert fault in judged(START, left, unapplied=("0002",))[0]


def test_tables_that_are_missing_strange_or_another_one() -> None:
    there = fold((FIRST,), ("0001",))
    assert names_at_rest(there, {KEY: "u"}, {("shop", "t"): "u"}, "shop") == []
    assert names_at_rest(there, {KEY: "u"}, {("shop", "t"): "v"}, "shop") == [
        "at rest, shop.t is another table than before"
    ]
    assert names_at_rest(there, {KEY: "u"}, {}, "shop") == ["at rest, there is no table shop.t"]
    stray = {("shop", "t"): "u", ("shop", "t__icemigrate"): "w"}
    assert "that no migration declares" in names_at_rest(there, {KEY: "u"}, stray, "shop")[0]
    gone = {KEY: replace(there[KEY], gone=True)}
    assert names_at_rest(gone, {KEY: "u"}, {}, "shop") == ["at rest, shop.t is not in the trash"]


def test_a_seed_gives_one_scenario() -> None:
    assert scenario_of(7, 12) == scenario_of(7, 12)
    assert len({scenario_of(seed, 12).migrations for seed in range(30)}) > 20


def test_every_seed_gives_a_scenario() -> None:
    assert all(scenario_of(seed, 12).migrations for seed in range(1, 2001))


def test_a_metadata_file_is_read_as_the_specification_says(tmp_path: Path) -> None:
    path = tmp_path / "v1.json"
    terms = [{"transform": "void", "source-id": 1}, {"transform": "day", "source-id": 4}]
    fields = [{"id": 4, "name": "n", "type": "int", "required": False}]
    metadata = {
        "last-column-id": 7,
        "current-schema-id": 1,
        "current-snapshot-id": -1,
        "schemas": [{"schema-id": 0, "fields": []}, {"schema-id": 1, "fields": fields}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": terms}],
    }
    path.write_text(json.dumps(metadata), encoding="utf-8")
    commit = Commit(str(path))
    assert (commit.fields, commit.snapshot, commit.rows) == ({4: Column("n", "int")}, None, {})
    assert commit.partition == {("day", 4)}
