"""A plan as a file: what makes it stale, what does not, and files that are no plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from icemigrate.changes import CHANGE_KINDS
from icemigrate.changes.change import MetadataCommit
from icemigrate.diagnostics import Diagnostic, FilePosition, Severity
from icemigrate.errors import IcemigrateError, StalePlan, UsageError
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.partition_evolution import OldSpecFiles
from icemigrate.iceberg.table import Ref, Snapshot, Table
from icemigrate.planning.plan import PLAN_FORMAT, Plan
from icemigrate.planning.plan_file import (
    parse_plan_file,
    plan_file_text,
    plan_from_json,
    plan_to_json,
    with_digest,
)
from icemigrate.planning.plan_staleness import require_not_stale
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.render.formats import render
from icemigrate.results.command_results import OldSpecTable, PlanResult
from tests.support.planned_migrations import pending
from tests.support.small_tables import NAME, table, with_columns

BASE = table("id: long, v: int", partition="id", properties={"k": "1"})
THERE = replace(BASE, snapshot=Snapshot(5, 1000, 3), refs={"main": Ref("branch", 5), "eod": Ref("tag", 5)})
TEXT = """
    description: Widen it
    tables: [{name: db.t, columns: [{name: v, type: long}, {name: trace, type: uuid}]}]
"""


def plan(text: str = TEXT, there: Table | None = THERE, **values: Any) -> Plan:
    base = DeclaredState({NAME: BASE}, frozenset({("db",)}))
    around = PlanningContext("market", "lake", namespaces=base.namespaces)
    planned = plan_migrations([pending("0002", text)], base, {NAME: there}, around)
    whole = Plan(
        project="market",
        environment="prod",
        catalog="sqlite:lake",
        catalog_name="lake",
        migrations=planned.migrations,
        applied=(("0001", "abc"),),
        based_on={NAME: there},
        base=base,
        tool_version="1.0",
    )
    return replace(whole, **values)


SAVED = parse_plan_file(plan_file_text(plan()), "plan.json")


def test_a_plan_comes_back_as_it_was() -> None:
    assert plan() == SAVED
    steps = SAVED.migrations[0].tables[0].steps
    assert any(isinstance(s, MetadataCommit) for step in steps for s in step.statements)


def test_one_with_a_table_that_is_not_there_too() -> None:
    gone = plan(there=None)
    assert parse_plan_file(plan_file_text(gone), "plan.json") == gone


# Fresh or stale


@pytest.mark.parametrize(
    "there",
    [
        replace(THERE, snapshot=Snapshot(6, 2000, 9)),
        replace(THERE, snapshot=Snapshot(6, 2000, 9), refs={"main": Ref("branch", 6), "eod": Ref("tag", 6)}),
        replace(THERE, refs={**THERE.refs, "icemigrate-shop-maintain-0123abcd": Ref("branch", 5)}),
        replace(THERE, last_column_id=THERE.last_column_id + 1, last_partition_id=1001),
    ],
    ids=["rows", "references that moved", "branch of a run", "a column that came and went"],
)
def test_appended_rows_make_nothing_stale(there: Table) -> None:
    require_not_stale(SAVED, plan(there=there))


@pytest.mark.parametrize(
    ("now", "shown"),
    [
        (
            plan(there=with_columns(THERE, "id: long, v: int, theirs: int", by_hand=True)),
            'table db.t, schema.fields[3]: nothing → {"id": 3',
        ),
        (plan(there=replace(THERE, properties={"k": "2"})), "table db.t, properties.k: 1 → 2"),
        (
            plan(there=replace(THERE, refs={"main": Ref("branch", 5)})),
            'table db.t, refs.eod: {"type": "tag"} → nothing',
        ),
        (
            plan(
                there=replace(THERE, refs={**THERE.refs, "main": Ref("branch", 5, min_snapshots_to_keep=3)})
            ),
            'table db.t, refs.main: nothing → {"type": "branch", "min-snapshots-to-keep": 3}',
        ),
        (plan(there=None), "table db.t: there → nothing"),
        (plan(TEXT.replace("type: long", "type: long, description: Bigger")), "file of 0002, checksum: "),
        (plan(applied=(("0001", "abc"), ("0002", "def"))), "history, 0002: nothing → def"),
        (plan(applied=(("0001", "other"),)), "history, 0001: abc → other"),
    ],
    ids=["column", "property", "tag", "limits of main", "table", "file", "history", "applied file"],
)
def test_what_changed_since_makes_it_stale_and_is_shown(now: Plan, shown: str) -> None:
    with pytest.raises(StalePlan) as stale:
        require_not_stale(SAVED, now)
    assert shown in str(stale.value)
    assert stale.value.hint is not None
    assert "icemigrate plan --out" in stale.value.hint


@pytest.mark.parametrize(
    "elsewhere", [{"environment": "local"}, {"project": "other"}, {"catalog": "rest:https://lake"}]
)
def test_a_plan_serves_the_place_that_it_was_made_for(elsewhere: dict[str, Any]) -> None:
    with pytest.raises(StalePlan, match="was made for project `market` in environment `prod`") as stale:
        require_not_stale(SAVED, plan(**elsewhere))
    (value,) = elsewhere.values()
    assert value in str(stale.value)


def test_another_version_of_icemigrate_makes_nothing_stale() -> None:
    require_not_stale(SAVED, plan(tool_version="2.0"))


# Files that are no plan


def _edited(edit: Callable[[dict[str, Any]], object]) -> str:
    """A plan that was edited, with a digest that matches."""
    document = json.loads(plan_file_text(plan()))
    edit(document)
    return json.dumps(with_digest(document))


def _change(document: dict[str, Any]) -> dict[str, Any]:
    change: dict[str, Any] = document["migrations"][0]["tables"][0]["steps"][0]["changes"][0]["change"]
    return change


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"project": "x"}',
        "[" * 100_000,
        _edited(lambda d: d.pop("project")),
        _edited(lambda d: d.update(project=5)),
        _edited(lambda d: d.update(surplus=1)),
        _edited(lambda d: d.update(migrations={})),
        _edited(lambda d: d["migrations"][0]["tables"][0].update(name="t")),
        _edited(lambda d: _change(d).update(kind="paint_it_blue")),
        _edited(lambda d: _change(d).pop("kind")),
        _edited(lambda d: _change(d).update(field_id="two")),
        _edited(lambda d: d["based_on"]["db.t"].pop("schema")),
    ],
)
def test_a_file_that_is_no_plan_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(IcemigrateError, match=r"^plan\.json is not a saved plan: ") as refused:
        parse_plan_file(text, "plan.json")
    assert refused.value.hint is not None


def test_a_key_that_stands_twice_is_refused_wherever_it_stands() -> None:
    text = plan_file_text(plan())
    for key in ("environment", "version", "kind"):
        line = next(line for line in text.splitlines() if line.strip().startswith(f'"{key}":'))
        with pytest.raises(IcemigrateError, match=f"duplicate key `{key}` in an object"):
            parse_plan_file(text.replace(line, f'"{key}": "hidden",\n{line}', 1), "plan.json")


def test_a_plan_of_another_format_is_refused() -> None:
    with pytest.raises(IcemigrateError, match=f"format {PLAN_FORMAT + 1}; this icemigrate reads") as refused:
        parse_plan_file(_edited(lambda d: d.update(plan_format=PLAN_FORMAT + 1)), "plan.json")
    assert refused.value.hint is not None


def test_what_is_there_for_readers_alone_is_passed_over() -> None:
    shown = {**plan_to_json(plan()), "summary": {"changes": 2}, "ready": False, "diagnostics": []}
    assert plan_from_json(shown) == plan()


def test_every_kind_has_a_name_of_its_own() -> None:
    assert len({kind.kind for kind in CHANGE_KINDS}) == len(CHANGE_KINDS)


@pytest.mark.parametrize("key", ["migrations", "base"])
def test_a_file_without_a_part_of_the_plan_is_none(key: str) -> None:
    """Else it would be an empty plan, and nothing would be done without a word."""
    saved = {k: v for k, v in plan_to_json(Plan("p", "e", "c", "n")).items() if k != key}
    with pytest.raises(IcemigrateError, match=f"it has no `{key}`"):
        parse_plan_file(json.dumps(with_digest(saved)), "plan.json")


def test_an_empty_plan_is_stale_where_something_is_pending() -> None:
    empty = replace(plan(), migrations=(), based_on={})
    with pytest.raises(StalePlan, match="file of 0002, checksum: nothing"):
        require_not_stale(empty, plan())


def test_a_plan_that_was_carried_out_is_told_in_one_sentence() -> None:
    saved = SAVED
    now = replace(saved, migrations=(), applied=tuple((m.version, m.checksum) for m in saved.migrations))
    with pytest.raises(StalePlan, match=r"^the plan was already carried out: 0002 applied$"):
        require_not_stale(saved, now)


def test_two_plans_with_nothing_in_common_are_told_value_by_value() -> None:
    saved = SAVED
    now = replace(saved, migrations=(), based_on={}, applied=(("0009", "x"),))
    with pytest.raises(StalePlan) as stale:
        require_not_stale(saved, now)
    assert "history, 0009: nothing → x" in stale.value.message


# Edited files


def _shown() -> dict[str, Any]:
    """A plan as `plan --out` writes it, with the values for readers."""
    warning = Diagnostic(
        "late", "It came late", FilePosition("0002_widen.yaml", 3), "see `rebase`", Severity.WARNING
    )
    old_tables = (OldSpecTable("db.u", "prod.u", OldSpecFiles(12, 20, 34, None)),)
    result = PlanResult(plan(), (warning,), old_tables, 2)
    document: dict[str, Any] = json.loads(render(result, "json"))
    return document


def _edits(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every way to change, remove or add one value, each as the path with what is done and the new value."""
    at = "/".join(map(str, path))
    if isinstance(value, dict):
        yield f"{at}: a new key", {**value, "surplus": 1}
        for key, item in value.items():
            yield f"{at}/{key}: removed", {k: v for k, v in value.items() if k != key}
            yield f"{at}/{key}: renamed", {(k + "_" if k == key else k): v for k, v in value.items()}
            for what, new in _edits(item, (*path, key)):
                yield what, {**value, key: new}
    elif isinstance(value, list):
        yield f"{at}: a new item", [*value, *value[:1], None]
        if len(value) > 1 and value != value[::-1]:
            yield f"{at}: another order", value[::-1]
        for number, item in enumerate(value):
            yield f"{at}[{number}]: removed", [*value[:number], *value[number + 1 :]]
            for what, new in _edits(item, (*path, number)):
                yield what, [*value[:number], new, *value[number + 1 :]]
    else:
        for new in (None, True, False, 0, 1, 1.0, -1, "", "x", [], {}, f"{value} ", [value]):
            if json.dumps(new) != json.dumps(value):
                yield f"{at}: {value!r} → {new!r}", new


def test_no_edit_of_a_saved_plan_passes() -> None:
    document = _shown()
    assert parse_plan_file(json.dumps(document), "plan.json") == plan()
    edits = list(_edits(document))
    assert len(edits) > 2000
    assert [what for what, edited in edits if _passes(edited)] == []


def _passes(edited: Any) -> bool:
    try:
        parse_plan_file(json.dumps(edited), "plan.json")
    except IcemigrateError:
        return False
    return True


def test_layout_order_of_keys_and_escapes_are_no_edit() -> None:
    document = _shown()
    for text in (
        json.dumps(document, indent=7),
        json.dumps(document, sort_keys=True),
        json.dumps(document, ensure_ascii=False),
    ):
        assert parse_plan_file(text, "plan.json") == plan()


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda text: text + "{}", "is damaged at line 1$"),
        (lambda text: "\ufeff" + text, "is damaged at line 1$"),
        (lambda text: text.replace('"ready": true', '"ready": NaN'), "`NaN` is not a JSON number"),
        (lambda text: text.replace('"ready": true', '"ready": 1e999'), "the number `1e999` is too large"),
        (lambda text: text.replace('"ready": true', f'"ready": {"9" * 5000}'), "has 5000 digits"),
        (lambda text: text.replace('"ready": true', f'"ready": {"[" * 90_000}{"]" * 90_000}'), "too deeply"),
        (lambda text: text.replace('"ready": true', '"ready": true, "ready": true'), "duplicate key"),
        (lambda text: text.replace('"digest"', '"digset"'), "it has no `digest`"),
        (lambda text: text.replace('"sha256:', '"sha256:0'), "was edited after it was saved"),
    ],
)
def test_what_no_plan_is_written_like_is_refused_with_the_reason(
    edit: Callable[[str], str], why: str
) -> None:
    text = json.dumps(_shown())
    assert edit(text) != text
    with pytest.raises(StalePlan, match=why) as refused:
        parse_plan_file(edit(text), "plan.json")
    assert "icemigrate plan --out FILE" in (refused.value.hint or "")


@pytest.mark.parametrize("text", ["", "tables: []\n", "{", "[]", "7", '{"a": 1}'])
def test_a_file_that_never_was_a_plan_is_a_wrong_call(text: str) -> None:
    with pytest.raises(UsageError, match=r"^plan\.json is not a saved plan: ") as refused:
        parse_plan_file(text, "plan.json")
    assert not {"Expecting", "column", "char"} & set(refused.value.message.split())


def test_a_plan_that_was_cut_short_is_a_stale_one() -> None:
    text = plan_file_text(plan())
    with pytest.raises(StalePlan, match="its JSON is damaged at line"):
        parse_plan_file(text[: len(text) // 2], "plan.json")


def test_a_plan_from_before_there_was_a_digest_says_to_make_it_again() -> None:
    old = {**{k: v for k, v in _shown().items() if k != "digest"}, "plan_format": 1}
    with pytest.raises(IcemigrateError, match="the plan has format 1; this icemigrate reads") as refused:
        parse_plan_file(json.dumps(old), "plan.json")
    assert refused.value.hint == "make a new plan with this version: icemigrate plan --out FILE"
