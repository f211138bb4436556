"""The page of the kinds of change: each with an example migration, its SQL and its reversal."""

from __future__ import annotations

import inspect
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from icemigrate.changes import CHANGE_KINDS
from icemigrate.changes.change import Change
from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import load_files
from icemigrate.diagnostics import has_errors
from icemigrate.files.write.migration_entries import format_migration_file
from icemigrate.planning.plan import MigrationPlan, PlannedChange, Step
from icemigrate.planning.stages import shown_statement
from icemigrate.project import open_project
from icemigrate.render.phrases import reversal_text

_EXAMPLES = Path(__file__).with_name("kinds_of_change.yaml")
_INTRO = """# Kinds of change

This page lists every kind of change, in the order in which the changes of one table run. Saved plans and JSON
use the names in the headings. The examples are planned with this table:

"""


def kinds_page() -> str:
    """The page."""
    examples: Mapping[str, Any] = yaml.safe_load(_EXAMPLES.read_text(encoding="utf-8"))
    names = [kind.kind for kind in CHANGE_KINDS]
    assert sorted(names) == sorted(examples["kinds"]), "kinds_of_change.yaml has a kind too many or too few"
    parts = [_INTRO, _yaml(examples["before"])]
    for kind in CHANGE_KINDS:
        parts.append(f"\n## {kind.kind}\n\n`{kind.symbol}` {_about(kind)}\n")
        written = examples["kinds"][kind.kind]
        if written:
            parts += ["\n", *_example(kind, examples["before"], written)]
    return "".join(parts)


def _about(kind: type[Change]) -> str:
    """What a kind's class says, without parameters and without what only a developer wants to know."""
    text = inspect.cleandoc(kind.__doc__ or "").partition("\n\n:param")[0].partition("\n:param")[0]
    text = re.sub(r"\s*The planner creates (?:it|this change), not :meth:`detect`[^.]*\.", "", text)
    text = re.sub(r" \(``(\w+=)?None``\)", "", text)
    return re.sub(r"\s+", " ", text.replace("``", "`")).strip()


def _example(kind: type[Change], before: list[Any], written: list[Any]) -> Iterator[str]:
    migrations = written if isinstance(written[0], list) else [written]
    for earlier in migrations[:-1]:
        yield _yaml(earlier) + "\nand in a later file\n\n"
    yield _yaml(migrations[-1])
    plan = _planned([before, *migrations])
    steps = [s for t in plan.tables for s in t.steps if any(c.change.kind == kind.kind for c in s.changes)]
    assert steps, f"the example of {kind.kind} does not contain one"
    for step in steps:
        yield "\n" + _step(step)


def _planned(migrations: list[list[Any]]) -> MigrationPlan:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "market" / "migrations"
        folder.mkdir(parents=True)
        for number, tables in enumerate(migrations, start=1):
            allow = (
                {}
                if number == 1
                else {"allow": ["destructive", "incompatible", "irreversible"], "because": "x"}
            )
            text = yaml.safe_dump({**allow, "tables": tables})
            (folder / f"{number:04}_example.yaml").write_text(text, encoding="utf-8")
        project = open_project(folder.parent)
        rehearsed = plan_from_empty(project, load_files(project).migrations, are_statements_read=True)
    assert not has_errors(rehearsed.diagnostics), rehearsed.diagnostics
    return rehearsed.plans[-1]


def _step(step: Step) -> str:
    lines = [line for change in step.changes for line in _change(change)]
    return "\n".join([*lines, "", *_statements(step)]) + "\n"


def _change(change: PlannedChange) -> Iterator[str]:
    yield f"- {change.text}"
    for hazard in change.hazards:
        yield f"  - needs `allow: [{hazard.kind.value}]`: {hazard.reason}"
    yield f"  - {reversal_text(change.reversal)}"


def _statements(step: Step) -> Iterator[str]:
    yield "```sql"
    for statement in step.statements:
        yield shown_statement(statement)
    yield "```"


def _yaml(tables: list[Any]) -> str:
    """Table entries as they stand in a migration file."""
    return f"```yaml\n{format_migration_file(tables)}```\n"
