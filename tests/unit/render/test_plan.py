"""A plan in each format: what a reader has to find in it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from icemigrate.changes.base import Hazard, HazardKind, Problem, Reversal, Reversible, Sql
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.diagnostics import Diagnostic, Place, Severity
from icemigrate.frozen import replace
from icemigrate.merge import UNKNOWN_BASE, Conflict
from icemigrate.model.names import TableName
from icemigrate.model.writers import Writer
from icemigrate.plan import LiveWriter, MigrationPlan, Plan, PlannedChange, Step, TablePlan
from icemigrate.plan_file import load
from icemigrate.render.formats import FORMATS, names_for, render
from icemigrate.render.markdown import LIMIT
from icemigrate.render.style import PLAIN, Style
from icemigrate.render.words import summary_line
from icemigrate.render.writers import writer_lines
from icemigrate.results import ApplyResult, CheckResult, Failure, PlanResult
from icemigrate.status_results import HistoryResult, Status

TRADES = TableName(("prod_data",), "trades")
DECLARED = TableName(("data",), "trades")
LOSS = Hazard(HazardKind.DESTRUCTIVE, "values can no longer be read", "data.trades.volume")
CONFLICT = Conflict("prod_data.trades:columns.a b.type", "int", "long", "string")
SCHEMAS = Path(__file__).parents[3] / "schemas"


def change(
    text: str = "volume → quantity", hazards: tuple[Hazard, ...] = (), answer: Reversible = Reversible.YES
) -> PlannedChange:
    rename = RenameColumn(TRADES, 7, ("volume",), "quantity")
    return PlannedChange(rename, text, hazards, Reversal(answer, "the field id stays"))


def result(*changes: PlannedChange, conflicts: tuple[Conflict, ...] = ()) -> PlanResult:
    """A plan of one migration of one table, each change in a step of its own."""
    steps = tuple(Step((c,), (Sql(f"ALTER TABLE x {i}"),)) for i, c in enumerate(changes))
    hazards = tuple(h for c in changes for h in c.hazards)
    table = TablePlan(TRADES, DECLARED, None, DECLARED, steps, ("done already: f",), conflicts)
    migration = MigrationPlan("0003", "Rename it", "c0ffee", (table,), unconsented=hazards)
    return PlanResult(Plan("market", "prod", "rest:https://lake", "lake", (migration,)))


def test_text_names_what_where_how_and_the_way_back() -> None:
    lines = [line.strip() for line in render(result(change())).splitlines()]
    assert lines == [
        "market → prod (rest:https://lake)",
        "",
        "0003  Rename it",
        "~ data.trades (in the catalog: prod_data.trades)",
        "→ volume → quantity",
        "reversible: the field id stays",
        "ALTER TABLE x 0;",
        "note: done already: f",
        "",
        "Plan: 1 migration, 1 table: 0 to add, 1 to change, 0 to drop.",
    ]


def test_the_way_back_of_many_changes_of_a_kind_is_told_once_behind_them() -> None:
    made = result()
    (migration,) = made.plan.migrations
    for count, told in ((4, 4), (5, 1), (300, 1)):
        step = Step((change(),) * count, (Sql("ALTER TABLE x"),))
        tables = (replace(migration.tables[0], steps=(step,)),)
        many = replace(made, plan=replace(made.plan, migrations=(replace(migration, tables=tables),)))
        for form in ("text", "markdown"):
            assert render(many, form).count("reversible: the field id stays") == told
    lost = Step((change(hazards=(LOSS,)),) * 5, (Sql("ALTER TABLE x"),))
    tables = (replace(migration.tables[0], steps=(lost,)),)
    many = replace(made, plan=replace(made.plan, migrations=(replace(migration, tables=tables),)))
    assert render(many).count("values can no longer be read") == 5


def test_text_says_what_is_not_allowed_and_that_it_cannot_run() -> None:
    text = render(result(change(hazards=(LOSS,), answer=Reversible.NO)))
    assert "destructive, not allowed by the file: values can no longer be read" in text
    assert "irreversible: the field id stays" in text
    assert "1 not reversible." in text
    assert text.endswith("It cannot be applied as it is: 1 missing consent.\n")


def test_text_says_that_a_hazard_is_allowed() -> None:
    made = result(change(hazards=(LOSS,)))
    (migration,) = made.plan.migrations
    allowed = replace(made.plan, migrations=(replace(migration, unconsented=()),))
    text = render(PlanResult(allowed))
    assert "destructive, allowed: values" in text
    assert "cannot be applied" not in text


def test_text_shows_a_conflict_with_its_values_and_both_ways_out() -> None:
    text = render(result(conflicts=(CONFLICT,)))
    for part in ("base    int", "wanted  long", "actual  string", "either  keep what is there"):
        assert part in text
    # The fact has a space, so it is quoted for a shell.
    assert "plan --overwrite 'prod_data.trades:columns.a b.type'" in text


def test_a_table_that_the_history_does_not_know_has_other_ways_out() -> None:
    text = render(result(conflicts=(replace(CONFLICT, base=UNKNOWN_BASE),)))
    assert "say in the migration file what the catalog has now" in text
    assert "drift --accept" not in text
    assert "plan --overwrite" not in text


WRITERS = (
    LiveWriter(Writer("flink", True, "7df3", "ab12", "1.20.1", 672, 96.0, 1_795_000_000_000), ("gives `v`",)),
    LiveWriter(
        Writer("spark", False, "nightly", "local-1", "4.1.4", 3, 0.4, 1_795_000_000_000), ("gives `v`",)
    ),
    LiveWriter(Writer("spark", True, "q-7", commits=14, a_day=2.0, last_ms=1_795_000_000_000)),
    LiveWriter(Writer("kafka-connect", True, "control.g\x1b[2J", last_ms=1_795_000_000_000)),
    LiveWriter(Writer(None, commits=1, a_day=1.0, last_ms=1_795_000_000_000)),
)


def written(*writers: LiveWriter) -> PlanResult:
    """A plan of one table that these write."""
    made = result(change())
    (migration,) = made.plan.migrations
    table = replace(migration.tables[0], writers=writers)
    return PlanResult(replace(made.plan, migrations=(replace(migration, tables=(table,)),)))


def test_text_names_who_writes_the_table_and_who_must_restart() -> None:
    lines = [line.strip() for line in render(written(*WRITERS)).splitlines()]
    at = lines.index("note: done already: f")
    assert lines[at + 1 : at + 8] == [
        "writer: Flink 1.20.1 stream, operator 7df3 (job ab12); about 96 commits a day, "
        "last 2026-11-18 11:06:40 UTC; must be restarted:",
        "gives `v`",
        "writer: Spark 4.1.4, application nightly (local-1); 3 commits in 7 days, "
        "last 2026-11-18 11:06:40 UTC; look after it:",
        "gives `v`",
        "writer: Spark stream, query q-7; about 2 commits a day, "
        "last 2026-11-18 11:06:40 UTC; goes on as it is",
        "writer: Kafka Connect stream, group control.g\\u001b[2J; 0 commits in 7 days, "
        "last 2026-11-18 11:06:40 UTC; goes on as it is",
        "writer: one that does not say who it is, as PyIceberg does not; 1 commit in 7 days, "
        "last 2026-11-18 11:06:40 UTC; goes on as it is",
    ]


def test_markdown_counts_the_writers_that_somebody_must_look_after() -> None:
    text = render(written(*WRITERS), "markdown")
    assert ": 1 change, 2 writers to look after</summary>" in text
    assert "- ⚠️ writer: Flink 1.20.1 stream" in text
    assert "- writer: Spark stream" in text
    assert "\x1b" not in text
    assert "to look after" not in render(written(*WRITERS[2:]), "markdown")


def test_json_has_the_writers_as_the_schema_says() -> None:
    made = written(*WRITERS)
    document = json.loads(render(made, "json"))
    jsonschema.validate(document, json.loads((SCHEMAS / "plan.schema.json").read_text(encoding="utf-8")))
    assert load(document) == made.plan
    flink, *_, unnamed = document["migrations"][0]["tables"][0]["writers"]
    assert flink["breaks"] == ["gives `v`"]
    assert flink["writer"]["stream"] is True
    assert unnamed == {"writer": {"commits": 1, "a_day": 1.0, "last_ms": 1_795_000_000_000}}


def test_the_condition_of_a_reversal_reads_as_one() -> None:
    text = render(result(change(answer=Reversible.WHILE)))
    assert "reversible while the field id stays" in text
    assert "1 reversible on a condition" in text


@pytest.mark.parametrize("name", names_for(PlanResult))
def test_names_cannot_steer_the_terminal(name: str) -> None:
    text = render(result(change("evil\x1b[2J\u202eeman\nsecond line")), name)
    assert "\x1b" not in text
    if name != "json":
        assert "\u202e" not in text
        assert "\nsecond line" not in text


def test_colour_is_in_the_text_only_where_it_is_wanted() -> None:
    shown = result(change(), change(hazards=(LOSS,)), conflicts=(CONFLICT,))
    assert "\x1b[" not in render(shown, "text", PLAIN)
    coloured = render(shown, "text", Style(True))
    assert "\x1b[36m→\x1b[0m" in coloured
    assert "\x1b[2mALTER TABLE x 0;\x1b[0m" in coloured


def test_an_empty_plan_says_so() -> None:
    nothing = Plan("p", "e", "c", "n")
    assert summary_line(nothing) == "Nothing to apply: every migration file is applied."
    assert summary_line(replace(nothing, to="0001", beyond=("0002", "0004"), held=("0003",))) == (
        "Nothing to apply up to 0001; 2 migrations are pending beyond it; "
        "0003 is held: `apply --redo 0003` applies it."
    )
    assert summary_line(
        replace(nothing, held=("0002", "0003"), held_gone=("0002",), held_edited=("0003",))
    ) == (
        "Nothing to apply: 0002 is held, and its file is gone; "
        "0003 is held, and its file says something else now: `apply --redo 0003` applies it."
    )
    assert summary_line(replace(nothing, to="0003", held=("0003",))) == (
        "Nothing to apply: 0003 is held: `apply --redo 0003` applies it."
    )


def test_json_fits_its_schema_and_is_the_plan() -> None:
    place = Diagnostic("late-file", "m", Place("f.yaml", 3, 5), "h", Severity.WARNING)
    problem = Problem("narrowing", DECLARED, ("columns", "a"), "no way", "another way")
    made = result(change(hazards=(LOSS,)), conflicts=(CONFLICT,))
    (migration,) = made.plan.migrations
    plan = replace(made.plan, migrations=(replace(migration, problems=(problem,), warnings=(problem,)),))
    document = json.loads(render(PlanResult(plan, (place,)), "json"))
    jsonschema.validate(document, json.loads((SCHEMAS / "plan.schema.json").read_text(encoding="utf-8")))
    assert load(document) == plan
    assert document["ready"] is False
    assert document["diagnostics"][0]["line"] == 3
    assert document["summary"]["conflicts"] == 1


def test_markdown_folds_each_table_away() -> None:
    text = render(result(change(hazards=(LOSS,)), conflicts=(CONFLICT,)), "markdown")
    assert text.startswith("### icemigrate plan: <code>market</code> → <code>prod</code>\n")
    assert text.count("<details>") == text.count("</details>") == 1
    assert "```sql\nALTER TABLE x 0;\n```" in text
    assert "destructive, 1 conflict</summary>" in text
    assert "wanted: <code>long</code>" in text


def test_markdown_does_not_act_on_names() -> None:
    text = render(result(change("`<img>` <b>@team</b> [x](y) *z* ` |")), "markdown")
    shown = next(line for line in text.splitlines() if line.startswith("- **→**"))
    assert "<code>&lt;img&gt;</code>" in shown
    for bare in ("<b>", "@team", "[x]", "*z*", "|"):
        assert bare not in shown


def test_markdown_fences_statements_that_hold_fences() -> None:
    made = result(change())
    (migration,) = made.plan.migrations
    (table,) = migration.tables
    step = replace(table.steps[0], statements=(Sql("COMMENT '```'"),))
    table = replace(table, steps=(step,))
    plan = replace(made.plan, migrations=(replace(migration, tables=(table,)),))
    assert "````sql\nCOMMENT '```';\n````" in render(PlanResult(plan), "markdown")


@pytest.mark.parametrize(("count", "has_all"), [(200, True), (3000, False)])
def test_markdown_stays_within_what_a_comment_may_hold(count: int, has_all: bool) -> None:
    one = result(change("x" * 60)).plan.migrations[0]
    many = tuple(replace(one, version=f"{i:04}") for i in range(count))
    text = render(PlanResult(Plan("p", "e", "c", "n", many)), "markdown")
    assert len(text) < 65_536
    assert len(text) > LIMIT / 2
    assert text.count("<details>") == text.count("</details>")
    assert ("does not fit into a comment" in text) is not has_all
    assert (f">{count - 1:04}<" in text) is has_all


def test_every_result_has_text_and_json() -> None:
    for kind in (PlanResult, CheckResult, Status, HistoryResult, ApplyResult, Failure):
        assert names_for(kind)[:2] == ("text", "json")
    assert names_for(PlanResult) == ("text", "json", "markdown")
    assert [f.name for f in FORMATS if f.for_programs] == ["json", "github", "gitlab", "junit", "sarif"]


def test_a_name_that_is_quoted_already_is_quoted_once_in_what_happens_to_a_writer() -> None:
    reason = "gives ``v 2``, which is called `v` then"
    live = LiveWriter(Writer("spark", True, "q-7", last_ms=1_795_000_000_000), (reason,))
    assert writer_lines(live)[1] == "  gives `v 2`, which is called `v` then"
