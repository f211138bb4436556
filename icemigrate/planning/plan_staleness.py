"""Whether a saved plan still fits: it is compared with a plan made now."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from icemigrate.errors import StalePlan, UsageError
from icemigrate.iceberg.table import Table
from icemigrate.planning.plan import Plan
from icemigrate.planning.plan_file import MAX_VALUE_TEXT, REPLAN_HINT, structural_json
from icemigrate.planning.stages import TableStage, plan_stages, shown_statement
from icemigrate.redaction import redact_document, redact_secrets


@contextmanager
def as_stale() -> Iterator[None]:
    """A block in which a plan is made again, by a call that was right when the plan was made.

    :raises StalePlan: the call is wrong by now, since another process was faster.
    """
    try:
        yield
    except UsageError as error:
        raise StalePlan(f"the plan is stale: {error.message}", error.hint or REPLAN_HINT) from error


def require_not_stale(saved: Plan, now: Plan) -> None:
    """Refuse a saved plan that no longer fits the files, the history or the catalog.

    ``now`` is the plan made from the same files and the current catalog.  Appended rows do not make a plan
    stale: snapshots are not compared.

    :raises StalePlan: with the differences that DeepDiff finds, a line each.
    """
    made_for = (saved.project, saved.environment, redact_secrets(saved.catalog))
    if made_for != (now.project, now.environment, redact_secrets(now.catalog)):
        raise StalePlan(
            f"the plan was made for project `{saved.project}` in environment `{saved.environment}` "
            f"({saved.catalog}), not for `{now.project}` in `{now.environment}` ({now.catalog})",
            REPLAN_HINT,
        )
    since = {*now.applied} - {*saved.applied}
    if saved.migrations and since >= {(m.version, m.checksum) for m in saved.migrations}:
        raise StalePlan(
            f"the plan was already carried out: {', '.join(m.version for m in saved.migrations)} applied",
            "`icemigrate plan` shows what is pending now",
        )
    # A saved plan has no secrets, so the current plan is compared without them too.
    difference = _differences(redact_document(_comparable(saved)), redact_document(_comparable(now)))
    if difference:
        raise StalePlan(f"the plan is stale; since it was made, this changed:\n{difference}", REPLAN_HINT)


def _comparable(plan: Plan) -> dict[str, Any]:
    """The inputs of a plan (history, files, tables without their snapshots) and its actions."""
    return {
        "history": dict(plan.applied),
        "files": {m.version: m.checksum for m in plan.migrations},
        "tables": {str(n): None if t is None else _structure(t) for n, t in plan.based_on.items()},
        "statements": [
            text
            for m in plan.migrations
            for stage in plan_stages(plan, m)
            if isinstance(stage, TableStage)
            for text in _statement_texts(stage)
        ],
    }


def _structure(table: Table) -> dict[str, Any]:
    """A table without the numbers that remain of a column or a partition field which another client added and
    dropped again: the plan that runs is made from the current ones.
    """
    return {key: value for key, value in structural_json(table).items() if key not in _COUNTERS}


_COUNTERS = ("last-column-id", "last-partition-id")


def _statement_texts(stage: TableStage) -> Iterator[str]:
    """The statements of a stage, in running order, queries with their expected results."""
    steps = (statement for step in stage.steps for statement in step.statements)
    return map(shown_statement, (*stage.row_statements, *steps))


def _differences(old: dict[str, Any], new: dict[str, Any]) -> str:
    """One line for each value that differs: its subject, old value → new value."""
    if old == new:
        return ""
    from deepdiff import DeepDiff

    # The threshold: two sides with few equal values are still compared value by value.
    found = DeepDiff(old, new, verbose_level=2, view="tree", threshold_to_diff_deeper=0)
    levels = [
        (level.path(output_format="list"), level.t1, level.t2) for kind in found for level in found[kind]
    ]
    levels.sort(
        key=lambda level: [list(_SECTION_LABELS).index(level[0][0]), *(str(k).zfill(9) for k in level[0][1:])]
    )
    return "\n".join(
        f"  {_difference_label(path)}: {_value(path, a)} → {_value(path, b)}" for path, a, b in levels
    )


_SECTION_LABELS: Mapping[str, Callable[[Any], str]] = {
    "history": lambda version: f"history, {version}",
    "files": lambda version: f"file of {version}, checksum",
    "tables": lambda name: f"table {name}",
    "statements": lambda number: f"statement {number + 1}",
}


def _difference_label(path: Sequence[Any]) -> str:
    """Where a difference is: ``table market_data.trades, properties.write.format.default``."""
    section, *keys = path
    if not keys:
        return str(section)
    name = _SECTION_LABELS[section](keys[0])
    inner = "".join(f"[{key + 1}]" if isinstance(key, int) else f".{key}" for key in keys[1:])
    return f"{name}, {inner.removeprefix('.')}" if inner and section == "tables" else name


def _value(path: Sequence[Any], value: Any) -> str:
    """A value on one line, shortened; a whole table is only shown as present."""
    from deepdiff.helper import NotPresent

    # DeepDiff reports the class, or an instance of it, for a missing side.
    if value is None or value is NotPresent or isinstance(value, NotPresent):
        return "nothing"
    if path[0] == "tables" and len(path) == 2:
        return "there"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split()) or '""'
    return text if len(text) <= MAX_VALUE_TEXT else text[: MAX_VALUE_TEXT - 1].rstrip() + "…"
