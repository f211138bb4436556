from __future__ import annotations

from collections.abc import Callable

import pytest

from icemigrate.errors import EngineError, IcemigrateError
from icemigrate.frozen import replace
from icemigrate.history.migration_states import migration_states
from icemigrate.iceberg.file_evidence_values import Evidence, ValueShare
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partitioning import PartitionField, Transform
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_edits import remove_by_id
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Decimal, Field, Primitive
from icemigrate.planning.plan import Direction
from icemigrate.planning.undo import MigrationUndo, UndoEnvironment, UndoOptions, plan_undo
from tests.support.memory_lake import Lake, columns, notes, problems
from tests.support.recording_engine import RecordingEngine

CREATE = """
    tables:
      - name: db.t
        columns:
          - {name: a, type: int, required: true}
          - {name: b, type: string}
          - {name: c, type: "decimal(9,2)"}
          - {name: at, type: timestamp}
          - {name: s, type: "struct<x: int, y: string>"}
        partition_by: [day(at) as day]
        sort_by: [at]
        properties: {k: v}
"""
LONG = Primitive("long")


@pytest.fixture
def lake() -> Lake:
    lake = Lake()
    lake.apply("0001", CREATE)
    return lake


def added(name: str, id_: int) -> Field:
    return Field(id_, name, Primitive("string"))


def with_column(field: Field):  # type: ignore[no-untyped-def]
    def change(table: Table) -> Table:
        schema = replace(table.schema, fields=(*table.schema.fields, field))
        return replace(table, schema=schema, last_column_id=max(table.last_column_id, field.id))

    return change


EVOLVE = """
    allow: [destructive, incompatible]
    tables:
      - name: db.t
        renames: {b: label}
        drop_columns: [s.y]
        columns:
          - {name: a, type: long, required: false}
          - {name: c, type: "decimal(12,2)", description: Price}
          - {name: venue, type: string, after: a}
        partition_by: [hour(at) as hour]
        sort_by: [a desc nulls last]
        properties: {k: w, new: "1"}
        description: Things
"""


def test_all_of_a_migration_goes_back_in_one_commit(lake: Lake) -> None:
    before, declared = lake.table(), lake.state
    lake.apply("0002", EVOLVE)
    planned = lake.rollback("0002")
    now = lake.table()
    assert now.schema.fields == before.schema.fields
    assert now.spec.live == before.spec.live
    assert now.sort_order.fields == before.sort_order.fields
    assert now.properties == before.properties
    assert lake.state.tables[now.name].schema.fields == declared.tables[now.name].schema.fields
    (table,) = planned.migrations[0].tables
    assert [len(step.statements) for step in table.steps] == [1]
    assert planned.migrations[0].direction is Direction.ROLLBACK
    assert lake.engine.log.count("commit db.t") == 1


def test_a_date_comes_back_before_what_is_made_of_it_and_the_plan_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = Lake()
    table = "format_version: 3, columns: [{name: d, type: date}], partition_by: [month(d)], sort_by: [day(d)]"
    lake.apply("0001", f"tables: [{{name: db.t, {table}}}]")
    before = lake.table()
    promoted = "columns: [{name: d, type: timestamp}]"
    lake.apply("0002", f"tables: [{{name: db.t, {promoted}, partition_by: [], sort_by: []}}]")
    commit, begun = RecordingEngine.commit, len(lake.engine.log)

    def first_only(
        engine: RecordingEngine, name: TableName, fold: Callable[[Table], Table], holds_rows: bool = False
    ) -> Table:
        if f"commit {name}" in engine.log[begun:]:
            raise EngineError("the process died")
        return commit(engine, name, fold)

    monkeypatch.setattr(RecordingEngine, "commit", first_only)
    with pytest.raises(IcemigrateError, match="the process died"):
        lake.rollback("0002", evidence=Evidence())
    monkeypatch.undo()
    assert (lake.table().schema.fields[0].type, lake.table().spec.live) == (Primitive("date"), ())
    lake.rollback("0002", evidence=Evidence())
    assert lake.table().spec.live == before.spec.live
    lake.apply("0003", f"tables: [{{name: db.t, {promoted}, partition_by: [], sort_by: []}}]")
    planned = lake.rollback("0003", evidence=Evidence())
    (undone,) = planned.migrations[0].tables
    kinds = [[c.change.kind for c in step.changes] for step in undone.steps]
    assert [("widen_type" in of_one, "add_partition_field" in of_one) for of_one in kinds] == [
        (True, False),
        (False, True),
    ]
    assert [note.split(":")[0] for note in undone.notes if "second commit" in note] == [
        "the partitioning or sort order is restored in a second commit, after the type, "
        "since Iceberg's library cannot change both in one"
    ]
    assert lake.table().spec.live == before.spec.live
    # Without partitions and an order, one commit is enough.
    lake = Lake()
    lake.apply("0001", "tables: [{name: db.t, format_version: 3, columns: [{name: d, type: date}]}]")
    lake.apply("0002", f"tables: [{{name: db.t, {promoted}}}]")
    (undone,) = lake.rollback("0002", evidence=Evidence()).migrations[0].tables
    assert (len(undone.steps), undone.notes) == (1, ())


def test_a_version_that_was_taken_back_is_held_and_keeps_what_it_made(lake: Lake) -> None:
    lake.apply("0002", EVOLVE)
    record = lake.record("0002")
    lake.rollback("0002")
    assert [(a.version.text, a.state) for a in lake.history.applied] == [
        ("0001", "applied"),
        ("0002", "held"),
    ]
    assert lake.record("0002") == record


def test_a_dropped_column_returns_under_its_own_id_where_it_stood(lake: Lake) -> None:
    lake.apply("0002", "{allow: [destructive], tables: [{name: db.t, drop_columns: [b]}]}")
    lake.write(7)
    lake.rollback("0002", evidence=Evidence(files=1, rows=3, held={2: ValueShare(5, 0, 8)}))
    assert columns(lake.table()) == ["a#1", "b#2", "c#3", "at#4", "s#5"]
    snapshot = lake.table().snapshot
    assert snapshot is not None
    assert snapshot.id == 7


def test_a_dropped_column_returns_among_columns_that_were_moved(lake: Lake) -> None:
    lake.apply(
        "0002",
        "{allow: [destructive],"
        " tables: [{name: db.t, drop_columns: [b], columns: [{name: at, first: true}]}]}",
    )
    lake.rollback("0002")
    assert columns(lake.table()) == ["a#1", "b#2", "c#3", "at#4", "s#5"]


def test_the_plan_says_how_much_of_a_dropped_column_is_left(lake: Lake) -> None:
    lake.apply("0002", "{allow: [destructive], tables: [{name: db.t, drop_columns: [b]}]}")
    said = notes(lake.undo("0002", evidence=Evidence(held={2: ValueShare(5, 0, 8)})))
    assert said == ["values of b that are still in the files: 5 of 8 rows (62 %)"]


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (ValueShare(0, 4, 4), "unknown, because the manifests have no metrics for it"),
        (ValueShare(1, 1, 4), "1 of 4 rows (25 %), unknown for 1"),
        (ValueShare(0, 0, 0), "the table has no rows"),
    ],
)
def test_a_share_in_words(share: ValueShare, text: str) -> None:
    assert str(share) == text


def test_a_required_column_comes_back_optional_where_rows_were_written_without_it(lake: Lake) -> None:
    lake.apply("0002", "{allow: [destructive], tables: [{name: db.t, drop_columns: [a]}]}")
    planned = lake.rollback("0002", evidence=Evidence(files=1, rows=1))
    assert lake.table().schema.fields[0] == Field(1, "a", Primitive("int"), required=False)
    assert lake.state.tables[TableName.parse("db.t")].schema.fields[0].required, "as declared: drift tells"
    assert any("comes back as optional" in note for note in notes(planned))


RETYPE = """
    allow: [destructive, incompatible]
    tables:
      - name: db.t
        retype: {a: {to: string, using: cast(a as string)}}
        identifier: [a]
"""


def test_what_identified_the_rows_comes_back_required_where_every_new_file_holds_it(lake: Lake) -> None:
    lake.apply("0002", "tables: [{name: db.t, identifier: [a]}]")
    lake.apply("0003", RETYPE)
    lake.rollback("0003", evidence=Evidence(files=2, rows=2, nulls={1: 0}))
    back = lake.table().schema
    assert back.fields[0] == Field(1, "a", Primitive("int"), required=True)
    assert back.identifier_ids == {1}


@pytest.mark.parametrize("nulls", [{1: 3}, {1: None}])
def test_nothing_identifies_the_rows_where_it_comes_back_optional(
    lake: Lake, nulls: dict[int, int | None]
) -> None:
    lake.apply("0002", "tables: [{name: db.t, identifier: [a]}]")
    lake.apply("0003", RETYPE)
    planned = lake.rollback("0003", evidence=Evidence(files=2, rows=2, nulls=nulls))
    back = lake.table().schema
    assert back.fields[0] == Field(1, "a", Primitive("int"), required=False)
    assert back.identifier_ids == frozenset()
    assert any("comes back as optional" in note for note in notes(planned))


def test_a_required_column_stays_required_where_nothing_was_written(lake: Lake) -> None:
    lake.apply("0002", "{allow: [destructive], tables: [{name: db.t, drop_columns: [a]}]}")
    lake.rollback("0002")
    assert lake.table().schema.fields[0].required


def test_what_others_added_since_stays(lake: Lake) -> None:
    lake.apply("0002", EVOLVE)
    lake.by_hand(with_column(added("theirs", 40)))
    lake.by_hand(lambda t: replace(t, properties={**t.properties, "theirs": "x"}))
    bucket = PartitionField((2,), Transform("bucket", 4), "theirs_bucket", 1010)
    lake.by_hand(
        lambda t: replace(t, spec=replace(t.spec, fields=(*t.spec.fields, bucket)), last_partition_id=1010)
    )
    lake.rollback("0002")
    now = lake.table()
    assert columns(now) == ["a#1", "b#2", "c#3", "at#4", "s#5", "theirs#40"]
    assert now.properties["theirs"] == "x"
    assert [f.name for f in now.spec.live] == ["theirs_bucket", "day"]


def test_what_others_changed_of_the_same_fact_is_a_conflict_that_partial_leaves(lake: Lake) -> None:
    lake.apply("0002", EVOLVE)
    lake.by_hand(lambda t: replace(t, properties={**t.properties, "k": "theirs"}))
    assert problems(lake.undo("0002")) == ["db.t:properties.k"]
    planned = lake.rollback("0002", options=UndoOptions(partial=True))
    assert lake.table().properties["k"] == "theirs"
    assert "new" not in lake.table().properties
    assert any(note.startswith("stays: db.t:properties.k") for note in notes(planned))
    assert left(lake, "0002") == ("db.t: properties.k being theirs",)


def test_what_is_left_is_shown_while_the_version_is_rolled_back(lake: Lake) -> None:
    lake.apply("0002", EVOLVE)
    lake.by_hand(lambda t: replace(t, properties={**t.properties, "k": "theirs"}))
    lake.rollback("0002", options=UndoOptions(partial=True))
    lake.apply("0002", EVOLVE, "db.t:properties.k")
    assert shown_as_left(lake, "0002") == ()
    lake.rollback("0002")
    assert lake.table().properties["k"] == "theirs"
    assert shown_as_left(lake, "0002") == ("db.t: properties.k being theirs",)


def test_an_expired_schema_does_not_matter(lake: Lake) -> None:
    lake.apply("0002", "{allow: [destructive], tables: [{name: db.t, drop_columns: [b, s]}]}")
    lake.by_hand(lambda t: replace(t, older_specs=(), older_orders=()))
    lake.rollback("0002")
    assert columns(lake.table()) == ["a#1", "b#2", "c#3", "at#4", "s#5"]


def test_a_table_that_somebody_renamed_since_is_found(lake: Lake) -> None:
    lake.apply("0002", "{tables: [{name: db.t, columns: [{name: d, type: long}]}]}")
    lake.by_hand(lambda t: replace(t, name=TableName.parse("db.moved")))
    planned = lake.rollback("0002")
    assert columns(lake.table("db.moved")) == ["a#1", "b#2", "c#3", "at#4", "s#5"]
    assert any("found as db.moved" in note for note in notes(planned))


def test_a_table_that_a_later_migration_renamed_is_found(lake: Lake) -> None:
    lake.apply("0002", "{tables: [{name: db.t, columns: [{name: d, type: long}]}]}")
    lake.apply("0003", "{tables: [{name: db.u, renamed_from: db.t}]}")
    lake.rollback("0002")
    assert columns(lake.table("db.u")) == ["a#1", "b#2", "c#3", "at#4", "s#5"]
    assert set(lake.state.tables) == {TableName.parse("db.u")}


# whole tables


def test_a_table_that_was_made_goes_into_the_trash(lake: Lake) -> None:
    lake.rollback("0001")
    assert lake.names() == {"icemigrate_trash.db__t__market__0001"}
    assert lake.state.tables == {}


ADOPT = """
    tables:
      - name: db.old
        adopt: true
        columns: [{name: a, type: int, required: true}, {name: at, type: timestamp}]
        partition_by: [day(at) as day]
        sort_by: [at]
"""


def test_an_adopted_table_stays(lake: Lake) -> None:
    table = replace(lake.table(), name=TableName.parse("db.old"), uuid="u", properties={}, owner=None)
    lake.engine.tables[table.name] = table
    lake.apply("0002", ADOPT)
    assert lake.table("db.old").owner == "market"
    lake.rollback("0002")
    assert lake.table("db.old") == table
    assert lake.table("db.old").owner is None, "another project may adopt it"
    assert TableName.parse("db.old") not in lake.state.tables


def test_a_table_that_was_handed_over_is_not_undone(lake: Lake) -> None:
    lake.apply("0002", "{tables: [{name: db.t, columns: [{name: z, type: int}]}]}")
    lake.by_hand(lambda t: replace(t, owner="desk"))
    assert problems(lake.undo("0002")) == ["table-owned"]
    left = lake.undo("0002", options=UndoOptions(partial=True))
    assert problems(left) == []
    (note,) = notes(left)
    assert note.startswith("stays: the changes of db.t; table `db.t` belongs to project `desk`")


def test_a_dropped_table_is_renamed_back(lake: Lake) -> None:
    before = lake.table()
    lake.apply("0002", "{allow: [destructive], tables: [{name: db.t, drop: true}]}")
    assert lake.names() == {"icemigrate_trash.db__t__market__0002"}
    lake.rollback("0002")
    assert lake.table() == before
    assert set(lake.state.tables) == {TableName.parse("db.t")}


def test_a_dropped_table_whose_trash_was_emptied_is_refused(lake: Lake) -> None:
    lake.apply("0002", "{allow: [destructive], tables: [{name: db.t, drop: true}]}")
    del lake.engine.tables[TableName.parse("icemigrate_trash.db__t__market__0002")]
    assert problems(lake.undo("0002")) == ["trash-emptied"]


def test_a_dropped_table_whose_name_is_taken_is_refused(lake: Lake) -> None:
    lake.apply("0002", "{allow: [destructive], tables: [{name: db.t, drop: true}]}")
    trashed = lake.table("icemigrate_trash.db__t__market__0002")
    lake.engine.tables[TableName.parse("db.t")] = replace(trashed, name=TableName.parse("db.t"), uuid="other")
    assert problems(lake.undo("0002")) == ["table-exists"]


def test_a_renamed_table_gets_its_name_back(lake: Lake) -> None:
    lake.apply("0002", "{tables: [{name: db.u, renamed_from: db.t, columns: [{name: d, type: long}]}]}")
    lake.rollback("0002")
    assert lake.names() == {"db.t"}
    assert set(lake.state.tables) == {TableName.parse("db.t")}
    assert columns(lake.table()) == ["a#1", "b#2", "c#3", "at#4", "s#5"]


def test_a_renamed_table_that_somebody_renamed_again_is_a_conflict(lake: Lake) -> None:
    lake.apply("0002", "{tables: [{name: db.u, renamed_from: db.t}]}")
    lake.by_hand(lambda t: replace(t, name=TableName.parse("db.w")), "db.u")
    assert problems(lake.undo("0002")) == ["db.u:name"]


NEW_UNDER_THE_OLD_NAME = """
    tables:
      - {name: db.v, renamed_from: db.t}
      - {name: db.t, columns: [{name: z, type: int}]}
"""


def test_a_new_table_under_a_name_that_the_same_file_freed_goes_first(lake: Lake) -> None:
    before = lake.table()
    lake.apply("0002", NEW_UNDER_THE_OLD_NAME)
    made = next(t for t in lake.record("0002").tables if t.declared_before is None)
    assert made.actual_before is None
    lake.rollback("0002")
    assert lake.names() == {"db.t", "icemigrate_trash.db__t__market__0002"}
    assert lake.table() == before
    assert set(lake.state.tables) == {TableName.parse("db.t")}
    assert columns(lake.table("icemigrate_trash.db__t__market__0002")) == ["z#1"]


def test_of_a_file_that_was_cut_short_before_it_made_anything_the_old_table_stays(lake: Lake) -> None:
    before, state = lake.table(), lake.state
    lake.apply("0002", NEW_UNDER_THE_OLD_NAME)
    record, after = lake.record("0002"), lake.state
    tables = (replace(t, actual_after=replace(t.actual_after, uuid=None)) for t in record.tables)  # type: ignore[type-var]
    cut = replace(record, tables=tuple(replace(t, after=replace(t.after, uuid=None)) for t in tables))  # type: ignore[type-var]
    undo = MigrationUndo("0002", "", "", cut, {t.declared: Evidence() for t in cut.tables})
    planned = plan_undo([undo], after, {before.name: before}, UndoEnvironment("market", "local"))
    assert problems(planned) == []
    assert not list(planned.migrations[0].changes())
    assert set(planned.state.tables) == set(state.tables)


def left(lake: Lake, version: str) -> tuple[str, ...]:
    """What the history knows to be left of a version that was rolled back."""
    return next(a.remaining_effects for a in lake.history.applied if a.version.text == version)


def shown_as_left(lake: Lake, version: str) -> tuple[str, ...]:
    """What `status` says of it."""
    states = migration_states([], lake.history.applied, out_of_order=lambda *_: None)
    return next(row.stays for row in states.migrations if row.version == version)


REST = "- {name: db.r, columns: [{name: y, type: int}]}"


def _partial(lake: Lake, rule: str) -> list[str]:
    """Take version 2 back in part; what is said to stay."""
    assert problems(lake.undo("0002")) == [rule]
    planned = lake.rollback("0002", options=UndoOptions(partial=True))
    assert "db.r" not in lake.names()
    (held,) = (a for a in lake.history.applied if a.version.text == "0002")
    assert held.state == "held"
    stays = [note for note in notes(planned) if note.startswith("stays: ")]
    assert [left.split(": ", 1)[1] for left in held.remaining_effects] == [
        note[7:].split("; ")[0] for note in stays
    ]
    return stays


def test_partial_leaves_a_table_dropped_whose_trash_was_emptied(lake: Lake) -> None:
    lake.apply("0002", f"{{allow: [destructive], tables: [{{name: db.t, drop: true}}, {REST[2:]}]}}")
    del lake.engine.tables[TableName.parse("icemigrate_trash.db__t__market__0002")]
    (note,) = _partial(lake, "trash-emptied")
    assert note.startswith("stays: db.t being dropped; ")
    assert lake.state.tables == {}


def test_partial_leaves_a_table_dropped_whose_name_is_taken(lake: Lake) -> None:
    lake.apply("0002", f"{{allow: [destructive], tables: [{{name: db.t, drop: true}}, {REST[2:]}]}}")
    trashed = lake.table("icemigrate_trash.db__t__market__0002")
    other = replace(trashed, name=TableName.parse("db.t"), uuid="other")
    lake.engine.tables[other.name] = other
    (note,) = _partial(lake, "table-exists")
    assert note.startswith("stays: db.t being dropped; ")
    assert lake.table() == other
    assert lake.state.tables == {}


def test_partial_leaves_a_name_that_is_taken_and_undoes_the_rest_of_the_table(lake: Lake) -> None:
    lake.apply(
        "0002",
        f"{{tables: [{{name: db.u, renamed_from: db.t, columns: [{{name: d, type: long}}]}}, {REST[2:]}]}}",
    )
    other = replace(lake.table("db.u"), name=TableName.parse("db.t"), uuid="other")
    lake.engine.tables[other.name] = other
    (note,) = _partial(lake, "table-exists")
    assert note.startswith("stays: the name db.u; ")
    assert columns(lake.table("db.u")) == ["a#1", "b#2", "c#3", "at#4", "s#5"]
    assert set(lake.state.tables) == {TableName.parse("db.u")}


def test_partial_leaves_a_table_whose_place_in_the_trash_is_taken(lake: Lake) -> None:
    lake.apply("0002", f"{{tables: [{{name: db.n, columns: [{{name: y, type: int}}]}}, {REST[2:]}]}}")
    trash = TableName.parse("icemigrate_trash.db__n__market__0002")
    lake.engine.tables[trash] = replace(lake.table(), name=trash, uuid="other")
    (note,) = _partial(lake, "trash-taken")
    assert note.startswith("stays: db.n; ")
    assert "db.n" in lake.names()
    assert set(lake.state.tables) == {TableName.parse("db.t"), TableName.parse("db.n")}


def test_several_versions_go_back_one_after_another(lake: Lake) -> None:
    before = lake.table()
    lake.apply("0002", "{tables: [{name: db.t, columns: [{name: d, type: long}]}]}")
    lake.apply("0003", "{tables: [{name: db.u, renamed_from: db.t, renames: {d: e}}]}")
    lake.apply("0004", "{tables: [{name: db.n, columns: [{name: x, type: int}]}]}")
    lake.rollback("0004", "0003", "0002")
    assert lake.table().schema.fields == before.schema.fields
    assert lake.names() == {"db.t", "icemigrate_trash.db__n__market__0004"}
    assert {a.version.text: a.state for a in lake.history.applied} == {
        "0001": "applied",
        "0002": "held",
        "0003": "held",
        "0004": "held",
    }


# refusals

WIDEN = "{tables: [{name: db.t, columns: [{name: a, type: long}]}]}"
WIDER = '{tables: [{name: db.t, columns: [{name: c, type: "decimal(12,2)"}]}]}'
OPTIONAL = "{tables: [{name: db.t, columns: [{name: a, required: false}]}]}"


@pytest.mark.parametrize(
    ("migration", "evidence", "rule"),
    [
        (WIDEN, Evidence(files=1, rows=1), "narrow-type"),
        (WIDEN, Evidence(), None),
        (WIDEN, Evidence(files=2, rows=2, wide={1: 0}), None),
        (WIDEN, Evidence(files=2, rows=2, wide={1: 1}), "narrow-type"),
        (WIDER, Evidence(files=1, rows=1), "narrow-type"),
        (WIDER, Evidence(), None),
        (OPTIONAL, Evidence(files=2, nulls={1: 0}), None),
        (OPTIONAL, Evidence(files=2, nulls={1: 1}), "required-again"),
        (OPTIONAL, Evidence(files=2, nulls={1: None}), "required-again"),
        (OPTIONAL, Evidence(nulls={1: 0}), None),
    ],
)
def test_what_depends_on_what_was_written(
    lake: Lake, migration: str, evidence: Evidence, rule: str | None
) -> None:
    before = lake.table()
    lake.apply("0002", migration)
    after = lake.table()
    assert problems(lake.undo("0002", evidence=evidence)) == ([] if rule is None else [rule])
    planned = lake.rollback("0002", evidence=evidence, options=UndoOptions(partial=True))
    assert lake.table().schema.fields == (before if rule is None else after).schema.fields
    assert [n for n in notes(planned) if n.startswith("stays: ")] == notes(planned)
    assert bool(notes(planned)) == (rule is not None)


def test_a_narrower_type_is_committed_only_while_nobody_writes(lake: Lake) -> None:
    lake.write(7)
    lake.apply("0002", WIDEN)
    planned = lake.undo("0002")
    (step,) = planned.migrations[0].tables[0].steps
    lake.write(8)
    from icemigrate.errors import StalePlan

    with pytest.raises(StalePlan, match="rows were written"):
        step.changes[0].change.apply(lake.table())


def test_a_format_version_stays_and_partial_undoes_the_rest(lake: Lake) -> None:
    lake.apply(
        "0002",
        "{allow: [irreversible],"
        " tables: [{name: db.t, format_version: 3, columns: [{name: d, type: long}]}]}",
    )
    assert problems(lake.undo("0002")) == ["format-downgrade"]
    lake.rollback("0002", options=UndoOptions(partial=True))
    assert left(lake, "0002") == ("db.t: format version 3",)
    assert lake.table().format_version == 3
    assert columns(lake.table()) == ["a#1", "b#2", "c#3", "at#4", "s#5"]


def test_a_name_that_another_column_has_now_is_refused(lake: Lake) -> None:
    lake.apply("0002", "{allow: [destructive], tables: [{name: db.t, drop_columns: [b]}]}")
    lake.by_hand(with_column(added("b", 40)))
    (problem,) = lake.undo("0002").migrations[0].problems
    assert problem.rule == "name-taken"
    assert "`b` cannot come back: another column has the name now (field id 40)" in problem.message
    lake.rollback("0002", options=UndoOptions(partial=True))
    assert columns(lake.table()) == ["a#1", "c#3", "at#4", "s#5", "b#40"]


def test_a_column_that_was_made_anew_gives_way_to_the_one_it_replaced(lake: Lake) -> None:
    lake.apply(
        "0002",
        "{allow: [destructive], tables: [{name: db.t, drop_columns: [b], columns: [{name: b, type: long}]}]}",
    )
    lake.rollback("0002")
    assert columns(lake.table()) == ["a#1", "b#2", "c#3", "at#4", "s#5"]


def test_a_column_that_somebody_restored_already_is_noted(lake: Lake) -> None:
    before = lake.table()
    lake.apply("0002", "{allow: [destructive], tables: [{name: db.t, drop_columns: [b]}]}")
    lake.by_hand(lambda t: replace(t, schema=before.schema))
    planned = lake.rollback("0002")
    assert lake.table().schema.fields == before.schema.fields
    assert "nothing to undo, because it is as before the migration: column b" in notes(planned)


def test_a_column_that_somebody_dropped_since_is_gone(lake: Lake) -> None:
    lake.apply("0002", "{tables: [{name: db.t, columns: [{name: d, type: long}]}]}")
    lake.by_hand(lambda t: replace(t, schema=remove_by_id(t.schema, t.schema.fields[-1].id)))
    planned = lake.rollback("0002")
    assert "nothing to undo, because it is as before the migration: column d" in notes(planned)


def test_rows_that_a_migration_changed_go_back(lake: Lake) -> None:
    lake.write(7)
    lake.apply("0002", "{tables: [{name: db.t, properties: {k: x}}]}")
    record = lake.record("0002")
    changed = replace(record.tables[0], rows_changed=True)
    lake.write(8)
    after = lake.table()
    from tests.unit.planning.undo.rows import plan_of

    done = plan_of(
        lake, replace(changed, actual_after=after), Evidence(existing_snapshots=frozenset({7})), UndoOptions()
    )
    assert done.problems == ()
    assert done.after.snapshot is not None
    assert done.after.snapshot.id == 7
    lake.write(9)
    newer = Evidence(files=2, rows=5, snapshots=1, existing_snapshots=frozenset({7}))
    refused = plan_of(lake, replace(changed, actual_after=after), newer, UndoOptions())
    assert [p.rule for p in refused.problems] == ["newer-rows"]
    assert "1 snapshot, 5 rows in 2 new files" in refused.problems[0].message
    discarded = plan_of(lake, replace(changed, actual_after=after), newer, UndoOptions(discard_new_data=True))
    assert discarded.after.snapshot is not None
    assert discarded.after.snapshot.id == 7
    kept = plan_of(lake, replace(changed, actual_after=after), newer, UndoOptions(metadata_only=True))
    assert kept.after.snapshot is not None
    assert kept.after.snapshot.id == 9
    expired = plan_of(lake, replace(changed, actual_after=after), Evidence(), UndoOptions())
    assert [p.rule for p in expired.problems] == ["snapshot-expired"]


def test_a_decimal_is_what_it_was(lake: Lake) -> None:
    lake.apply("0002", WIDER)
    lake.rollback("0002")
    assert lake.table().schema.fields[2].type == Decimal(9, 2)
    assert lake.table().schema.fields[0].type != LONG


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("tables: [{name: db.u, renamed_from: db.t}]", "db.t"),
        ("{allow: [destructive], tables: [{name: db.t, drop: true}]}", "db.t"),
    ],
)
def test_who_stands_under_a_name_that_shall_come_back_is_said(lake: Lake, text: str, name: str) -> None:
    lake.apply("0002", text)
    there = TableName.parse(name)
    theirs = Table(there, lake.state.tables.get(there, Table(there, Schema())).schema, uuid="their-uuid")
    lake.engine.tables[there] = theirs
    (problem,) = lake.undo("0002").migrations[0].problems
    assert problem.rule == "table-exists"
    assert problem.message == (
        "`db.t` cannot be renamed back: `db.t` is now a table that no migration created (uuid their-uuid)"
    )
    assert problem.hint is not None
    assert "ALTER TABLE local.db.t RENAME TO db.t_other" in problem.hint
    lake.by_hand(lambda t: replace(t, properties={"icemigrate.created-by": "other/0007"}))
    (problem,) = lake.undo("0002").migrations[0].problems
    assert "is now a table that migration other/0007 created (uuid their-uuid)" in problem.message
    lake.by_hand(lambda t: replace(t, name=TableName.parse("db.t_other")))
    lake.rollback("0002")
    assert lake.names() == {"db.t", "db.t_other"}


def test_a_table_of_ours_under_the_name_is_called_by_what_it_is(lake: Lake) -> None:
    lake.apply("0002", "tables: [{name: db.u, renamed_from: db.t}]")
    lake.apply("0003", "tables: [{name: db.t, columns: [{name: x, type: int}]}]")
    (problem,) = lake.undo("0002").migrations[0].problems
    assert "`db.t` is now table `db.t`, which is declared" in problem.message


def test_a_branch_that_others_wrote_to_stays(lake: Lake) -> None:
    lake.write(7)
    lake.apply("0002", "{tables: [{name: db.t, branches: {audit: {}}, properties: {new: x}}]}")

    def written(table: Table) -> Table:
        branch = replace(table.refs["audit"], snapshot_id=8)
        return replace(table, refs={**table.refs, "audit": branch})

    lake.by_hand(written)
    (problem,) = lake.undo("0002").migrations[0].problems
    assert (problem.rule, problem.subject) == ("branch-written", ("branches", "audit"))
    lake.rollback("0002", options=UndoOptions(partial=True))
    assert lake.table().refs["audit"].snapshot_id == 8
    assert "new" not in lake.table().properties


def test_a_branch_that_nobody_wrote_to_goes(lake: Lake) -> None:
    lake.write(7)
    lake.apply("0002", "{tables: [{name: db.t, branches: {audit: {}}}]}")
    lake.write(8)
    lake.rollback("0002")
    assert "audit" not in lake.table().refs
