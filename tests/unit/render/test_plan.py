"""A plan in each format: what a reader has to find in it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from icemigrate.changes.change import Hazard, HazardKind, PlanProblem, Reversal, Reversibility, SqlStatement
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.diagnostics import Diagnostic, FilePosition, Severity
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.snapshot_writers import Writer
from icemigrate.planning.merge import Conflict
from icemigrate.planning.plan import AffectedWriter, MigrationPlan, Plan, PlannedChange, Step, TablePlan
from icemigrate.planning.plan_file import plan_from_json
from icemigrate.render.formats import OUTPUT_FORMATS, names_for, render
from icemigrate.render.markdown_text import COMMENT_LIMIT
from icemigrate.render.phrases import summary_line
from icemigrate.render.plan_details import writer_lines
from icemigrate.render.terminal_style import PLAIN_STYLE, TerminalStyle
from icemigrate.results.command_results import ApplyResult, CheckResult, Failure, PlanResult
from icemigrate.results.status_results import HistoryResult, Status

TRADES = TableName(("prod_data",), "trades")
DECLARED = TableName(("data",), "trades")
LOSS = Hazard(HazardKind.DESTRUCTIVE, "values can no longer be read", "data.trades.volume")
CONFLICT = Conflict("prod_data.trades:columns.a b.type", "int", "long", "string")
SCHEMAS = Path(__file__).parents[3] / "schemas"


def change(
    text: str = "volume → quantity",
    hazards: tuple[Hazard, ...] = (),
    answer: Reversibility = Reversibility.YES,
) -> PlannedChange:
    rename = RenameColumn(TRADES, 7, ("volume",), "quantity")
    return PlannedChange(rename, text, hazards, Reversal(answer, "the field id stays"))


def result(*changes: PlannedChange, conflicts: tuple[Conflict, ...] = ()) -> PlanResult:
    """A plan of one migration of one table, each change in a step of its own."""
    steps = tuple(Step((c,), (SqlStatement(f"ALTER TABLE x {i}"),)) for i, c in enumerate(changes))
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
        "Plan: 0 to add, 1 to change, 0 to drop (1 migration, 1 table).",
    ]


def test_the_way_back_of_many_changes_of_a_kind_is_told_once_behind_them() -> None:
    made = result()
    (migration,) = made.plan.migrations
    for count, told in ((4, 4), (5, 1), (300, 1)):
        step = Step((change(),) * count, (SqlStatement("ALTER TABLE x"),))
        tables = (replace(migration.tables[0], steps=(step,)),)
        many = replace(made, plan=replace(made.plan, migrations=(replace(migration, tables=tables),)))
        for form in ("text", "markdown"):
            assert render(many, form).count("reversible: the field id stays") == told
    lost = Step((change(hazards=(LOSS,)),) * 5, (SqlStatement("ALTER TABLE x"),))
    tables = (replace(migration.tables[0], steps=(lost,)),)
    many = replace(made, plan=replace(made.plan, migrations=(replace(migration, tables=tables),)))
    assert render(many).count("values can no longer be read") == 5


def test_text_says_what_is_not_allowed_and_that_it_cannot_run() -> None:
    text = render(result(change(hazards=(LOSS,), answer=Reversibility.NO)))
    assert "destructive, not allowed by the file: values can no longer be read" in text
    assert "irreversible: the field id stays" in text
    assert "1 not reversible." in text
    assert text.endswith("This plan cannot be applied: 1 missing consent.\n")


def test_text_says_that_a_hazard_is_allowed() -> None:
    made = result(change(hazards=(LOSS,)))
    (migration,) = made.plan.migrations
    allowed = replace(made.plan, migrations=(replace(migration, unconsented=()),))
    text = render(PlanResult(allowed))
    assert "destructive, allowed: values" in text
    assert "cannot be applied" not in text


def test_text_shows_a_conflict_with_its_values_and_its_resolutions() -> None:
    tried = replace(CONFLICT, resolutions=("keep the current state", "overwrite it"))
    text = render(result(conflicts=(tried,)))
    for part in ("base    int", "wanted  long", "actual  string"):
        assert part in text
    assert "either  keep the current state\n" in text
    assert "or      overwrite it\n" in text
    assert "  - overwrite it\n" in render(result(conflicts=(tried,)), "markdown")


def test_a_conflict_without_a_resolution_suggests_nothing() -> None:
    lines = render(result(conflicts=(CONFLICT,))).splitlines()
    assert not [line for line in lines if line.strip().startswith(("either", "or ", "hint"))]
    tried = replace(CONFLICT, resolutions=("overwrite it",))
    assert "hint    overwrite it\n" in render(result(conflicts=(tried,)))


WRITERS = (
    AffectedWriter(
        Writer("flink", True, "7df3", "ab12", "1.20.1", 672, 96.0, 1_795_000_000_000), ("writes `v`",)
    ),
    AffectedWriter(
        Writer("spark", False, "nightly", "local-1", "4.1.4", 3, 0.4, 1_795_000_000_000), ("writes `v`",)
    ),
    AffectedWriter(Writer("spark", True, "q-7", commits=14, a_day=2.0, last_ms=1_795_000_000_000)),
    AffectedWriter(Writer("kafka-connect", True, "control.g\x1b[2J", last_ms=1_795_000_000_000)),
    AffectedWriter(Writer(None, commits=1, a_day=1.0, last_ms=1_795_000_000_000)),
)


DETAILS = TerminalStyle(details=True)


def written(*writers: AffectedWriter) -> PlanResult:
    """A plan of one table that these write."""
    made = result(change())
    (migration,) = made.plan.migrations
    table = replace(migration.tables[0], writers=writers)
    return PlanResult(replace(made.plan, migrations=(replace(migration, tables=(table,)),)))


def test_text_shows_what_the_writers_that_a_change_affects_must_do() -> None:
    lines = [line.strip() for line in render(written(*WRITERS)).splitlines()]
    at = lines.index("2 of 5 writers of the last 7 days are affected:")
    assert lines[at + 1 : at + 3] == [
        "Flink 1.20.1 stream, operator 7df3 (job ab12): restart it after the migration; it writes `v`",
        "Spark 4.1.4, application nightly (local-1): change it with the migration; it writes `v`",
    ]
    many = [line.strip() for line in render(written(*WRITERS[1:2] * 7)).splitlines()]
    at = many.index("7 of 7 writers of the last 7 days are affected:")
    assert many[at + 6] == "2 more writers: `--verbose` shows all"
    assert "writer" not in render(written(*WRITERS[2:]))
    assert "Kafka" not in render(written(*WRITERS), "markdown")


def test_with_details_text_names_every_writer_and_who_must_restart() -> None:
    lines = [line.strip() for line in render(written(*WRITERS), "text", DETAILS).splitlines()]
    at = lines.index("note: done already: f")
    assert lines[at + 1 : at + 8] == [
        "writer: Flink 1.20.1 stream, operator 7df3 (job ab12); about 96 commits a day, "
        "last 2026-11-18 11:06:40 UTC; must be restarted:",
        "writes `v`",
        "writer: Spark 4.1.4, application nightly (local-1); 3 commits in 7 days, "
        "last 2026-11-18 11:06:40 UTC; needs a change:",
        "writes `v`",
        "writer: Spark stream, query q-7; about 2 commits a day, last 2026-11-18 11:06:40 UTC; not affected",
        "writer: Kafka Connect stream, group control.g\\u001b[2J; 0 commits in 7 days, "
        "last 2026-11-18 11:06:40 UTC; not affected",
        "writer: an unknown client (for example PyIceberg, which does not identify itself); "
        "1 commit in 7 days, last 2026-11-18 11:06:40 UTC; not affected",
    ]


def test_markdown_counts_the_writers_that_somebody_must_look_after() -> None:
    text = render(written(*WRITERS), "markdown")
    assert ": 1 change, 2 writers affected</summary>" in text
    assert "- ⚠️ writer: Flink 1.20.1 stream" in text
    assert "Spark stream" not in text
    assert "\x1b" not in text
    assert "writer affected" not in render(written(*WRITERS[2:]), "markdown")


def test_json_has_the_writers_as_the_schema_says() -> None:
    made = written(*WRITERS)
    document = json.loads(render(made, "json"))
    jsonschema.validate(document, json.loads((SCHEMAS / "plan.schema.json").read_text(encoding="utf-8")))
    assert plan_from_json(document) == made.plan
    flink, *_, unnamed = document["migrations"][0]["tables"][0]["writers"]
    assert flink["breaks"] == ["writes `v`"]
    assert flink["writer"]["stream"] is True
    assert unnamed == {"writer": {"commits": 1, "a_day": 1.0, "last_ms": 1_795_000_000_000}}


def test_the_condition_of_a_reversal_reads_as_one() -> None:
    text = render(result(change(answer=Reversibility.WHILE)))
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
    assert "\x1b[" not in render(shown, "text", PLAIN_STYLE)
    coloured = render(shown, "text", TerminalStyle(True))
    assert "\x1b[36m→\x1b[0m" in coloured
    assert "\x1b[2mALTER TABLE x 0;\x1b[0m" in coloured


def test_an_empty_plan_says_so() -> None:
    nothing = Plan("p", "e", "c", "n")
    assert summary_line(nothing) == "Nothing to apply: every migration is applied."
    assert summary_line(replace(nothing, to="0001", beyond=("0002", "0004"), held=("0003",))) == (
        "Nothing to apply up to 0001; 2 migrations are pending after it; "
        "0003 is rolled back: `apply --redo 0003` applies it."
    )
    assert summary_line(
        replace(nothing, held=("0002", "0003"), held_gone=("0002",), held_edited=("0003",))
    ) == (
        "Nothing to apply: 0002 is rolled back, and its file is missing: restore the file, or give the "
        "version up with `repair --abandon 0002`; "
        "0003 is rolled back, and its file has changed: `apply --redo 0003` applies it."
    )
    assert summary_line(replace(nothing, to="0003", held=("0003",))) == (
        "Nothing to apply: 0003 is rolled back: `apply --redo 0003` applies it."
    )


def test_json_fits_its_schema_and_is_the_plan() -> None:
    place = Diagnostic("late-file", "m", FilePosition("f.yaml", 3, 5), "h", Severity.WARNING)
    problem = PlanProblem("narrowing", DECLARED, ("columns", "a"), "no way", "another way")
    made = result(change(hazards=(LOSS,)), conflicts=(CONFLICT,))
    (migration,) = made.plan.migrations
    plan = replace(made.plan, migrations=(replace(migration, problems=(problem,), warnings=(problem,)),))
    document = json.loads(render(PlanResult(plan, (place,)), "json"))
    jsonschema.validate(document, json.loads((SCHEMAS / "plan.schema.json").read_text(encoding="utf-8")))
    assert plan_from_json(document) == plan
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
    step = replace(table.steps[0], statements=(SqlStatement("COMMENT '```'"),))
    table = replace(table, steps=(step,))
    plan = replace(made.plan, migrations=(replace(migration, tables=(table,)),))
    assert "````sql\nCOMMENT '```';\n````" in render(PlanResult(plan), "markdown")


@pytest.mark.parametrize(("count", "has_all"), [(200, True), (3000, False)])
def test_markdown_stays_within_what_a_comment_may_hold(count: int, has_all: bool) -> None:
    one = result(change("x" * 60)).plan.migrations[0]
    many = tuple(replace(one, version=f"{i:04}") for i in range(count))
    text = render(PlanResult(Plan("p", "e", "c", "n", many)), "markdown")
    assert len(text) < 65_536
    assert len(text) > COMMENT_LIMIT / 2
    assert text.count("<details>") == text.count("</details>")
    assert ("does not fit into a comment" in text) is not has_all
    assert (f">{count - 1:04}<" in text) is has_all


def test_every_result_has_text_and_json() -> None:
    for kind in (PlanResult, CheckResult, Status, HistoryResult, ApplyResult, Failure):
        assert names_for(kind)[:2] == ("text", "json")
    assert names_for(PlanResult) == ("text", "json", "markdown")
    assert [f.name for f in OUTPUT_FORMATS if f.for_programs] == [
        "json",
        "github",
        "gitlab",
        "junit",
        "sarif",
    ]


def test_a_name_that_is_quoted_already_is_quoted_once_in_what_happens_to_a_writer() -> None:
    reason = "writes ``v 2``, which this migration renames to `v`"
    live = AffectedWriter(Writer("spark", True, "q-7", last_ms=1_795_000_000_000), (reason,))
    assert writer_lines(live)[1] == "  writes `v 2`, which this migration renames to `v`"


def many(number: int) -> PlanResult:
    """A plan of tables of tenants; that of `t3` has a note."""
    tables = []
    for at in range(number):
        name = TableName(("otel",), f"t{at}_a")
        rename = PlannedChange(
            RenameColumn(name, 7, ("volume",), "quantity"),
            "volume → quantity",
            (),
            Reversal(Reversibility.YES, "y"),
        )
        steps = (Step((rename,), (SqlStatement(f"ALTER TABLE lake.{name} RENAME"),)),)
        tables.append(TablePlan(name, name, None, name, steps, ("an exception",) if at == 3 else ()))
    migration = MigrationPlan("0003", "Rename it", "c0ffee", tuple(tables))
    return PlanResult(Plan("market", "prod", "rest:https://lake", "lake", (migration,)))


@pytest.mark.parametrize("output", ["text", "markdown"])
def test_tables_with_the_same_plan_are_shown_once(output: str) -> None:
    shown = render(many(1000), output)
    assert shown.count("volume → quantity") == 2
    assert "also 998 other tables: " in shown
    assert shown.count("an exception") == 1
    assert render(many(4), output).count("volume → quantity") == 4
