from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from icemigrate.changes.change import MetadataCommit
from icemigrate.errors import EngineError, IcemigrateError
from icemigrate.events import NoteAdded
from icemigrate.frozen import replace
from icemigrate.iceberg.field_absence import FieldAbsence, find_field_absence
from icemigrate.iceberg.file_evidence_values import Evidence, RetainedValues, ValueShare
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Ref
from icemigrate.planning.plan import RECONCILE_VERSION, Plan
from icemigrate.planning.plan_file import parse_plan_file, plan_file_text
from icemigrate.planning.undo import UndoOptions
from icemigrate.planning.undo.refill_plan import plan_refill
from tests.support.memory_lake import Lake, notes
from tests.support.recording_engine import RecordingEngine
from tests.support.replayed_migrations import mistake, state

CREATE = """
    tables:
      - name: db.t
        columns:
          - {name: id, type: int, required: true}
          - {name: price, type: int}
          - {name: s, type: "struct<x: int, y: int>"}
          - {name: legs, type: "list<struct<a: int, b: int>>"}
        identifier: [id]
        format_version: 3
"""
DROP = """
    allow: [destructive]
    tables: [{name: db.t, drop_columns: [price, s.y]}]
"""
ENTRY = {"sequence-number": 1, "timestamp-ms": 1, "manifest-list": "x", "summary": {"operation": "append"}}
PRICE, Y = 2, 6
TAG = "icemigrate-market-0002-before"
REFILL, NO_REFILL = UndoOptions(refill=True), UndoOptions(refill=False)


@pytest.fixture
def lake() -> Lake:
    lake = Lake()
    lake.apply("0001", CREATE)
    lake.write(7)
    lake.apply("0002", DROP)
    lake.write(8)
    return lake


def kept(*names: str, **what: Any) -> RetainedValues:
    return RetainedValues(TAG, names, 3, **what)


def evidence(**fields: RetainedValues) -> Evidence:
    ids = {"price": PRICE, "y": Y}
    return Evidence(
        held={ids[name]: ValueShare(0, 0, 3) for name in fields},
        kept={ids[name]: found for name, found in fields.items()},
    )


BY_ROW_ID = evidence(price=kept("price", by_row_id=True), y=kept("s", "y", by_row_id=True))
BY_ROW_ID_OF_PRICE = evidence(price=kept("price", by_row_id=True))
BY_ID = evidence(price=kept("price", identifier={1: ("id",)}))


def of_table(metadata: dict[str, Any]) -> Callable[[RecordingEngine, TableName], dict[str, Any] | None]:
    """What an engine says of the table's metadata; of the history there is none."""
    return lambda engine, name: metadata if name.name == "t" else None


def statements(lake: Lake, found: Evidence) -> list[str]:
    (migration,) = lake.undo("0002", evidence=found, options=REFILL).migrations
    steps = [step for table in migration.tables for step in table.steps]
    return [
        "(commit)" if isinstance(s, MetadataCommit) else s.text for step in steps for s in step.statements
    ]


def test_a_refill_writes_on_a_branch_only_what_is_missing(lake: Lake) -> None:
    commit, branch, price, y, publish, end = statements(lake, BY_ROW_ID)
    assert commit == end == "(commit)"
    assert branch == "ALTER TABLE local.db.t CREATE OR REPLACE BRANCH `icemigrate-market-refill`"
    source = (
        "(SELECT _row_id AS k0, price AS v0, s.y AS v1 "
        "FROM local.db.t VERSION AS OF 'icemigrate-market-0002-before'"
        " WHERE price IS NOT NULL OR s.y IS NOT NULL)"
    )
    assert price == (
        f"MERGE INTO local.db.t.`branch_icemigrate-market-refill` t\nUSING {source} b\nON _row_id = b.k0\n"
        "WHEN MATCHED AND ((t.price IS NULL AND b.v0 IS NOT NULL))\n"
        "THEN UPDATE SET t.price = coalesce(t.price, b.v0)"
    )
    # A struct that is null stays null.
    assert "WHEN MATCHED AND ((t.s.y IS NULL AND b.v1 IS NOT NULL AND t.s IS NOT NULL))" in y
    assert publish == "CALL local.system.fast_forward('db.t', 'main', 'icemigrate-market-refill')"


def test_rows_are_matched_by_identifier_where_they_have_no_row_ids(lake: Lake) -> None:
    merge = statements(lake, BY_ID)[2]
    assert "(SELECT id AS k0, price AS v0 FROM" in merge
    assert "\nON t.id = b.k0\n" in merge


def test_a_snapshot_serves_as_well_as_a_tag(lake: Lake) -> None:
    found = evidence(price=RetainedValues("4711", ("price",), 3, by_row_id=True))
    assert "VERSION AS OF 4711 WHERE price IS NOT NULL" in statements(lake, found)[2]


def test_without_being_asked_for_it_a_rollback_only_says_what_it_could_do(lake: Lake) -> None:
    planned = lake.undo("0002", evidence=BY_ID)
    assert len(planned.migrations[0].tables[0].steps) == 1
    assert (
        f"up to 3 rows lost the value of price when their files were rewritten, and {TAG} keeps it: "
        f"`--refill` restores it; or query it: SELECT id, price FROM local.db.t VERSION AS OF '{TAG}'"
        in notes(planned)
    )


def test_a_run_that_failed_brings_nothing_back_without_its_values(lake: Lake) -> None:
    (problem,) = (
        lake.undo("0002", evidence=BY_ID, options=UndoOptions(is_recovery=True)).migrations[0].problems
    )
    assert problem.rule == "values-rewritten"
    assert "up to 3 rows lost the value of price" in problem.message


@pytest.mark.parametrize(
    ("share", "snapshots", "is_told"),
    [
        (ValueShare(0, 0, 3), None, True),
        (ValueShare(1, 1, 3), None, True),
        (ValueShare(0, 3, 3), None, True),  # without the snapshot it is unknown which files are new
        (ValueShare(3, 0, 3), None, False),
        (ValueShare(0, 0, 3), 2, False),  # the snapshot of before is there, and had no value to lose
    ],
)
def test_a_run_that_failed_says_that_values_are_lost_which_nothing_keeps(
    lake: Lake, share: ValueShare, snapshots: int | None, is_told: bool
) -> None:
    found = Evidence(held={PRICE: share}, snapshots=snapshots)
    (migration,) = lake.undo("0002", evidence=found, options=UndoOptions(is_recovery=True)).migrations
    told = [p.message for p in migration.problems if p.rule == "values-rewritten"]
    assert bool(told) is is_told
    assert all("rows have no value of price in their files" in text for text in told)
    (asked_for,) = lake.undo("0002", evidence=found).migrations
    assert not asked_for.problems, "who sees the plan sees the share"


def test_what_is_led_back_writes_no_rows_and_says_where_values_are(lake: Lake) -> None:
    before = lake.record("0002").tables[0].actual_before
    assert before is not None
    planned = plan_refill(before, ("market", RECONCILE_VERSION), "local", BY_ID, REFILL)
    assert (planned.before, planned.steps) == ((), ())
    (note,) = planned.notes
    assert note.endswith(f"; {TAG} keeps it: SELECT id, price FROM local.db.t VERSION AS OF '{TAG}'")


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (kept("price"), "and rows had no row ids then, and no identifier fields that are the same now"),
        (
            kept("legs", "element", "b", in_structs=False, by_row_id=True),
            "and fields in a list or a map cannot be restored",
        ),
    ],
)
def test_what_cannot_be_brought_back_is_said_with_where_it_is(
    lake: Lake, found: RetainedValues, why: str
) -> None:
    planned = lake.undo("0002", evidence=evidence(price=found), options=REFILL)
    assert len(planned.migrations[0].tables[0].steps) == 1
    (note,) = [n for n in notes(planned) if "lost the value" in n]
    assert why in note
    assert f"{TAG} keeps it: SELECT " in note


def test_a_variant_that_comes_back_keeps_the_whole_table_from_being_refilled() -> None:
    lake = Lake()
    lake.apply("0001", CREATE.replace("{name: price, type: int}", "{name: price, type: variant}"))
    lake.write(7)
    lake.apply("0002", DROP)
    planned = lake.undo("0002", evidence=BY_ROW_ID, options=REFILL)
    assert len(planned.migrations[0].tables[0].steps) == 1
    found = [n for n in notes(planned) if "lost the value" in n]
    assert ["Spark cannot read a variant that was just restored" in n for n in found] == [True, True]


@pytest.mark.parametrize(
    "failing",
    ["CREATE OR REPLACE BRANCH", "count(DISTINCT k0)", "MERGE", "fast_forward", "append icemigrate"],
)
def test_a_refill_that_fails_anywhere_is_gone_on_with(lake: Lake, failing: str) -> None:
    lake.engine.answers = {
        "WHERE price IS NOT NULL) b": [(3, 3, 0)],
        "SELECT count(*), count(DISTINCT k0)": [(3, 3)],
        "SELECT count(*), count(price)": [(3, 3)],
    }
    lake.engine.catalog_name = "local"
    lake.engine.fails = {failing}
    with pytest.raises(IcemigrateError) as failed:
        lake.rollback("0002", evidence=BY_ROW_ID_OF_PRICE, options=REFILL)
    assert "--no-refill" in str(failed.value.hint) or failing.startswith("append")
    lake.engine.fails = set()
    done = len(lake.engine.log)
    # Nobody has to say again that it is wanted.
    lake.rollback("0002", evidence=BY_ROW_ID_OF_PRICE)
    assert [text for text in lake.engine.log[done:] if "fast_forward" in text] or failing.startswith("append")
    assert not [key for key in lake.table().properties if "refill" in key or key == "write.merge.mode"]
    assert [a.state for a in lake.history.applied if a.version.text == "0002"] == ["held"]


def test_values_whose_publication_got_no_answer_are_not_written_twice(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody wrote right behind it, so main is not what the branch is any more."""
    chain = [{"snapshot-id": i, "parent-snapshot-id": i - 1, **ENTRY} for i in (8, 9, 10)]
    metadata = {"snapshots": chain, "current-snapshot-id": 10}
    notes: list[Mapping[str, str]] = []

    def write(
        engine: RecordingEngine, name: TableName, branch: str, text: str, summary: Mapping[str, str]
    ) -> None:
        engine.sql(text)
        notes.append(summary)
        assert branch.startswith("icemigrate-market-refill-"), "no other run writes there"
        lake.by_hand(lambda t: replace(t, refs={**t.refs, branch: Ref("branch", 9)}))

    monkeypatch.setattr(RecordingEngine, "metadata_json", of_table(metadata))
    monkeypatch.setattr(RecordingEngine, "write", write)
    lake.engine.answers = answers(kept=3, different=3, pairs=0, matched=0, after=0)
    lake.engine.catalog_name = "local"
    lake.engine.fails = {"fast_forward"}
    lake.rollback("0002", evidence=BY_ROW_ID_OF_PRICE, options=REFILL)
    # What it wrote says so, and not that it is a data step's.
    assert notes == [{"icemigrate.refill": "0002"}]


def test_where_others_write_all_the_while_it_says_what_helps(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = RecordingEngine.sql

    def sql(engine: RecordingEngine, text: str) -> None:
        if "fast_forward" in text:
            there = lake.table().snapshot
            assert there is not None
            lake.write(there.id + 1)
        inside(engine, text)

    monkeypatch.setattr(RecordingEngine, "sql", sql)
    lake.engine.answers = answers(kept=3, different=3, pairs=0, matched=0, after=0)
    lake.engine.catalog_name = "local"
    lake.engine.fails = {"fast_forward"}
    with pytest.raises(EngineError, match="its rows were written 5 times and could not be") as failed:
        lake.rollback("0002", evidence=BY_ROW_ID_OF_PRICE, options=REFILL)
    assert "pause the other writers of the table while it runs, and run the command again" in str(
        failed.value.hint
    )
    assert len([text for text in lake.engine.log if text.startswith("MERGE")]) == 5


def test_a_plan_with_a_refill_is_saved_and_read_back(lake: Lake) -> None:
    planned = lake.undo("0002", evidence=BY_ROW_ID, options=REFILL)
    plan = Plan("market", "local", "sqlite", "local", planned.migrations, base=lake.state)
    assert parse_plan_file(plan_file_text(plan), "plan.json") == plan


def answers(
    kept: int, different: int, pairs: int, matched: int, after: int
) -> dict[str, list[tuple[Any, ...]]]:
    """Of a table of three rows without a price."""
    return {
        "WHERE price IS NOT NULL) b": [(pairs, matched, matched)],
        "SELECT count(*), count(DISTINCT k0)": [(kept, different)],
        "SELECT count(*), count(price)": [(3, after)],
    }


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            answers(kept=3, different=2, pairs=3, matched=3, after=0),
            "3 rows have only 2 different identifiers",
        ),
        (answers(kept=3, different=3, pairs=4, matched=3, after=0), "4 rows have the identifiers of 3 rows"),
    ],
)
def test_a_table_whose_rows_cannot_be_told_apart_is_left_out_with_the_query_that_shows_its_values(
    lake: Lake, said: dict[str, list[tuple[Any, ...]]], message: str
) -> None:
    lake.engine.answers = said
    lake.engine.catalog_name = "local"
    lake.rollback("0002", evidence=BY_ID, options=REFILL)
    (note,) = [e.text for e in lake.events if isinstance(e, NoteAdded) and "is restored" in e.text]
    assert note == (
        f"no value of price is restored: {message} there; {TAG} keeps them: "
        f"SELECT id, price FROM local.db.t VERSION AS OF '{TAG}'"
    )
    assert not [text for text in lake.engine.log if "fast_forward" in text or text.startswith("MERGE")]
    assert not [key for key in lake.table().properties if "refill" in key]
    assert [a.state for a in lake.history.applied if a.version.text == "0002"] == ["held"]


def test_what_does_not_come_out_is_not_published_and_can_be_let_be(lake: Lake) -> None:
    lake.engine.answers = answers(kept=3, different=3, pairs=3, matched=3, after=0)
    message = "3 rows with 0 values instead of 3 rows with 3 values; they were not published"
    lake.engine.catalog_name = "local"
    own = {"k": "v", "write.merge.mode": "copy-on-write"}
    lake.by_hand(lambda t: replace(t, properties={**t.properties, **own}))
    found = evidence(price=kept("price", by_row_id=True))
    with pytest.raises(EngineError) as failed:
        lake.rollback("0002", evidence=found, options=REFILL)
    assert message in failed.value.message
    assert "`icemigrate rollback --no-refill` ends an undo with the values as they are" in str(
        failed.value.hint
    )
    assert not [text for text in lake.engine.log if "fast_forward" in text]
    assert lake.table().properties["write.merge.mode"] == "merge-on-read"
    lake.rollback("0002", evidence=found, options=NO_REFILL)
    assert {k: v for k, v in lake.table().properties.items() if k in own or "refill" in k} == own
    assert [a.state for a in lake.history.applied if a.version.text == "0002"] == ["held"]


RESTORE = """
    tables: [{name: db.t, restore_columns: [{name: price, refill: true}, s.y]}]
"""


def restored(lake: Lake, found: Evidence, *rows: tuple[Any, ...]) -> list[str]:
    """Apply the migration that restores; what it ran, the history's own left out."""
    lake.engine.known = {lake.table().name: found}
    lake.engine.answers = {
        "WHERE price IS NOT NULL) b": [(3, 3, 3)],
        "SELECT count(*), count(DISTINCT k0)": [(3, 3)],
    }
    lake.engine.answers["SELECT count(*), count(price)"] = list(rows)
    begun = len(lake.engine.log)
    lake.apply("0003", RESTORE)
    return [text for text in lake.engine.log[begun:] if "history" not in text]


def test_a_restored_column_is_refilled_from_what_keeps_it_when_it_runs(lake: Lake) -> None:
    with pytest.raises(EngineError, match="3 rows with 0 values instead of 3 rows with 3 values"):
        restored(lake, BY_ID, (3, 0))
    (merge,) = [text for text in lake.engine.log if text.startswith("MERGE")]
    assert (
        "USING (SELECT id AS k0, price AS v0 FROM local.db.t VERSION AS OF 'icemigrate-market-0002-before'"
        in merge
    )


def test_a_restored_column_whose_values_nothing_keeps_comes_back_without_them(lake: Lake) -> None:
    ran = restored(lake, Evidence(held={PRICE: ValueShare(1, 0, 3)}))
    assert not [text for text in ran if text.startswith(("MERGE", "CALL"))]
    assert "price" in [f.name for f in lake.table().schema.fields]
    assert not [key for key in lake.table().properties if "refill" in key]


def test_a_table_without_rows_is_not_refilled() -> None:
    lake = Lake()
    lake.apply("0001", CREATE)
    lake.apply("0002", DROP)
    assert not [text for text in restored(lake, BY_ROW_ID) if "refill" in text]


def test_what_lies_in_a_list_cannot_be_refilled() -> None:
    dropped = "{allow: [destructive], tables: [{name: db.t, drop_columns: [legs.element.b]}]}"
    restore = "{tables: [{name: db.t, restore_columns: [{name: legs.element.b, refill: true}]}]}"
    found = mistake(restore, state(CREATE, dropped))
    assert found.code == "refill-part"
    assert found.message == "values of `legs.element.b` cannot be restored: it is inside a list or a map"


def default_kept(name: str, field_id: int, version: str = TAG) -> dict[int, RetainedValues]:
    return {field_id: RetainedValues(version, (name,), 3, by_row_id=True)}


DEFAULTED = """
    tables:
      - name: db.t
        columns:
          - {name: id, type: int, required: true}
          - {name: lot, type: int, default: 5}
          - {name: note, type: string, default: none}
        format_version: 3
"""


@pytest.fixture
def defaulted() -> Lake:
    lake = Lake()
    lake.apply("0001", DEFAULTED)
    lake.write(7)
    lake.apply("0002", "{allow: [destructive], tables: [{name: db.t, drop_columns: [lot, note]}]}")
    return lake


def test_a_row_that_reads_a_default_is_asked_when_it_was_written(defaulted: Lake) -> None:
    found = Evidence(held={2: ValueShare(0, 0, 3)}, kept=default_kept("lot", 2))
    merge = statements(defaulted, found)[2]
    assert (
        "NOT {the row was written while lot was there} AS l0 FROM local.db.t VERSION AS OF 'main') n" in merge
    )
    # A null comes back too, and what was written stays.
    assert f"(SELECT _row_id AS k0, lot AS v0 FROM local.db.t VERSION AS OF '{TAG}') b JOIN" in merge
    assert "WHEN MATCHED AND ((b.l0 AND NOT (t.lot <=> b.v0)))" in merge
    assert "SET t.lot = CASE WHEN (b.l0 AND NOT (t.lot <=> b.v0)) THEN b.v0 ELSE t.lot END" in merge
    planned = defaulted.undo("0002", evidence=found)
    assert "rows whose files do not have lot read its default: 5" in notes(planned)
    (offered,) = [n for n in notes(planned) if "--refill" in n]
    assert "when their files were rewritten and read its default 5 instead" in offered


def test_of_two_versions_one_gives_its_defaults_back_since_it_writes_the_others(defaulted: Lake) -> None:
    kept = {**default_kept("lot", 2), **default_kept("note", 3, "icemigrate-market-0001")}
    found = Evidence(held={i: ValueShare(0, 0, 3) for i in kept}, kept=kept)
    merges = [text for text in statements(defaulted, found) if text.startswith("MERGE")]
    assert ["lot AS v0" in text for text in merges] == [True]
    told = notes(defaulted.undo("0002", evidence=found, options=REFILL))
    assert ["restore it alone" in n for n in told if "lost the value of note" in n] == [True]


GONE = "gone"
"""Of a snapshot that has expired."""


def snapshots(*with_field: bool | str | None) -> dict[str, Any]:
    """Metadata whose snapshots, from sequence number 1 on, have the field 2, or have it not."""
    schemas = [
        {"schema-id": i, "fields": [{"id": i, "name": "x", "required": False, "type": "int"}]} for i in (1, 2)
    ]
    chain = [
        {**ENTRY, "snapshot-id": at, "sequence-number": at, **({} if has is None else {"schema-id": 1 + has})}
        for at, has in enumerate(with_field, 1)
        if not isinstance(has, str)
    ]
    return {
        "schemas": schemas,
        "current-schema-id": 2,
        "snapshots": chain,
        "refs": {"tag": {"snapshot-id": 1}},
    }


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ((True,), FieldAbsence(1, ((2, None),))),
        ((True, False), FieldAbsence(1, ((3, None),))),
        ((True, False, True, True), FieldAbsence(1, ((3, None),))),
        ((True, True, False, False, True), FieldAbsence(1, ((2, 2), (5, None)))),
        ((True, False, True, False), FieldAbsence(1, ((3, 3), (5, None)))),  # it went twice
        ((True, False, None), FieldAbsence(1, ((3, None),), is_exact=False)),
        # What has expired may have been written with the field, wherever it stood.
        ((True, True), FieldAbsence(1, ((2, None),))),
        ((True, GONE, True), FieldAbsence(1, ((2, None),), is_exact=False)),
        ((True, GONE, False), FieldAbsence(1, ((2, 2), (4, None)), is_exact=False)),
        ((True, False, GONE, True), FieldAbsence(1, ((3, None),), is_exact=False)),
        ((True, False, GONE, False), FieldAbsence(1, ((3, 3), (5, None)), is_exact=False)),
    ],
)
def test_when_a_field_was_not_there_is_told_by_snapshots(
    chain: tuple[bool | str | None, ...], expected: FieldAbsence
) -> None:
    assert (
        find_field_absence(snapshots(*chain), 2, "tag")
        == find_field_absence(snapshots(*chain), 2, "1")
        == expected
    )


@pytest.mark.parametrize(
    ("chain", "why"),
    [
        ((True, False, True), "it was written while the column existed"),
        (
            (True, False, GONE, True),
            "it was written while the column existed, or may have been: "
            "the snapshots that would show it have expired",
        ),
    ],
)
def test_rows_that_keep_another_value_are_told_with_what_is_known_of_them(
    defaulted: Lake, monkeypatch: pytest.MonkeyPatch, chain: tuple[bool | str | None, ...], why: str
) -> None:
    metadata = snapshots(*chain)
    metadata["refs"] = {TAG: {"snapshot-id": 1}}
    monkeypatch.setattr(RecordingEngine, "metadata_json", of_table(metadata))
    defaulted.engine.catalog_name = "local"
    defaulted.engine.answers = {
        "DISTINCT b.k0": [(3, 3, 0, 1)],
        "SELECT count(*), count(DISTINCT k0)": [(3, 3)],
        "SELECT count(*), count(lot)": [(3, 3)],
    }
    found = Evidence(held={2: ValueShare(0, 0, 3)}, kept=default_kept("lot", 2))
    defaulted.rollback("0002", evidence=found, options=REFILL)
    told = [e.text for e in defaulted.events if isinstance(e, NoteAdded) and "another value" in e.text]
    assert told == [f"1 row reads another value of lot than in {TAG} and keeps it: {why}"]
    (merge,) = [text for text in defaulted.engine.log if text.startswith("MERGE")]
    # What the refill itself writes has a later number than all: asked again, it is not taken for older.
    assert "NOT (_last_updated_sequence_number IS NULL OR _last_updated_sequence_number >= 3)" in merge
