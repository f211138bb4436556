"""A plan as a file: written whole, read back whole, and held against the world before it runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from icemigrate.changes import kind_named
from icemigrate.changes.base import Change, Deferred, MetadataCommit, Sql, Statement
from icemigrate.data import kind_named as work_named
from icemigrate.data.base import Ask, DataStatement, Rewriting, RowWork
from icemigrate.errors import IcemigrateError, StalePlan
from icemigrate.frozen import replace
from icemigrate.model.codec import BadJson, Codec, Form
from icemigrate.model.json_text import read_strictly
from icemigrate.model.table import MAIN_BRANCH, Table
from icemigrate.model.table_json import table_to_json
from icemigrate.plan import PLAN_FORMAT, Plan, Step
from icemigrate.plan_rows import RowsPart, running
from icemigrate.redaction import redact, redact_document

# Beside the plan itself; what `plan --format json` adds of these, `apply` passes over.
_FOR_READERS = frozenset({"plan_format", "summary", "ready", "diagnostics", "lying_old", "digest"})
# What every saved plan has, or else there would be nothing to do where a part of the file is gone.
_ALWAYS = ("migrations", "base")
_EXACT = frozenset(
    {"plan_format", "project", "environment", "applied", "overwrite", "redo", "to", "reconcile"}
)
"""Keys by which `apply` makes the plan again."""
_WIDEST = 100
"""How much of a value is shown of a difference, in characters."""
REMAKE = "make the plan again and have it reviewed: icemigrate plan --out FILE"


def _dump_change(change: Change) -> dict[str, Any]:
    return {"kind": change.kind, **_CODEC.encode_fields(change)}


def _load_change(saved: Mapping[str, Any]) -> Any:
    values = {k: v for k, v in saved.items() if k != "kind"}
    return _CODEC.decode_fields(kind_named(saved["kind"]), values, saved["kind"])


def _dump_statement(statement: Statement) -> dict[str, str]:
    if isinstance(statement, Sql):
        return {"sql": statement.text}
    if isinstance(statement, Deferred):
        return {"deferred": statement.summary}
    return {"metadata_commit": statement.summary}


def _load_statement(saved: Mapping[str, str]) -> Statement:
    if "deferred" in saved:
        return Deferred(saved["deferred"])
    return Sql(saved["sql"]) if "sql" in saved else MetadataCommit(saved["metadata_commit"])


def _dump_work(work: RowWork) -> dict[str, Any]:
    return {"kind": work.kind, **_CODEC.encode_fields(work)}


def _load_work(saved: Mapping[str, Any]) -> Any:
    values = {k: v for k, v in saved.items() if k != "kind"}
    return _CODEC.decode_fields(work_named(saved["kind"]), values, saved["kind"])


def _dump_data_statement(statement: DataStatement) -> dict[str, Any]:
    if isinstance(statement, Sql):
        return {"sql": statement.text}
    if isinstance(statement, Rewriting):
        return {"rewrite": statement.text, "is_sorted": statement.is_sorted}
    asked = {
        "query": statement.text,
        "gives": statement.gives,
        "name": statement.name,
        "hint": statement.hint,
    }
    return asked | ({"is_told": True} if statement.is_told else {})


def _load_data_statement(saved: Mapping[str, Any]) -> DataStatement:
    if "sql" in saved:
        return Sql(saved["sql"])
    if "rewrite" in saved:
        return Rewriting(saved["rewrite"], bool(saved["is_sorted"]))
    is_told = bool(saved.get("is_told", False))
    return Ask(saved["query"], saved["gives"], saved["name"], saved["hint"], is_told)


_CODEC = Codec(
    (
        Form(Change, _dump_change, _load_change),
        Form(RowWork, _dump_work, _load_work),
        Form(DataStatement, _dump_data_statement, _load_data_statement),
        Form(Statement, _dump_statement, _load_statement),
    )
)


def dump(plan: Plan) -> dict[str, Any]:
    """The plan as JSON (``schemas/plan.schema.json``); :func:`load` gives an equal plan back."""
    always = {key: _CODEC.encode(getattr(plan, key)) for key in _ALWAYS}
    return {"plan_format": PLAN_FORMAT, **always, **_CODEC.encode(plan)}


def masked(document: Mapping[str, Any]) -> dict[str, Any]:
    """A plan's JSON with secrets masked; what `apply` goes by beside the comparison stays as it is."""
    return {key: value if key in _EXACT else redact_document(value, key) for key, value in document.items()}


def with_digest(document: Mapping[str, Any]) -> dict[str, Any]:
    """A plan's JSON with the digest of all of it, which :func:`loads` checks.

    It detects an edit. It is no signature: whoever edits the file can also write a new digest.
    """
    return {**document, "digest": _digest(document)}


def _digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of the parsed content: layout, order of keys and escapes do not count, every value does."""
    values = {key: value for key, value in document.items() if key != "digest"}
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


def dumps(plan: Plan) -> str:
    """The plan as the text of a file."""
    return json.dumps(with_digest(dump(plan)), indent=1) + "\n"


def load(saved: Any) -> Plan:
    """Read what :func:`dump` gave.

    :raises IcemigrateError: the plan's format is another one.
    :raises ValueError: it is no plan; the message says where.
    """
    _require_format(saved)
    if missing := [key for key in _ALWAYS if key not in saved]:
        raise BadJson(f"it has no `{missing[0]}`")
    plan: Plan = _CODEC.decode(Plan, {k: v for k, v in saved.items() if k not in _FOR_READERS}, "plan")
    return plan


def _require_format(saved: Any) -> None:
    if not isinstance(saved, Mapping) or "plan_format" not in saved:
        raise BadJson("it has no `plan_format`")
    given = saved["plan_format"]
    if type(given) is not int or given != PLAN_FORMAT:
        raise IcemigrateError(
            f"the plan has format {json.dumps(given)[:_WIDEST]}, this icemigrate reads format {PLAN_FORMAT}",
            "make the plan again with this version: icemigrate plan --out FILE",
        )


def loads(text: str, source: str) -> Plan:
    """Read the text of a saved plan.

    :param source: the file's name, for messages.
    :raises IcemigrateError: it is no plan, it was edited, or it has another icemigrate's format.
    """
    try:
        saved = read_strictly(text)
        _require_format(saved)
        if "digest" not in saved:
            raise BadJson("it has no `digest`")
        if _digest(saved) != saved["digest"]:
            raise IcemigrateError(
                f"{source} was edited after it was saved: its content does not match its `digest`", REMAKE
            )
        return load(saved)
    except RecursionError as error:
        raise IcemigrateError(f"{source} is not a saved plan: it is nested too deeply", REMAKE) from error
    except ValueError as error:
        raise IcemigrateError(f"{source} is not a saved plan: {error}", REMAKE) from error


def require_fresh(saved: Plan, now: Plan) -> None:
    """Refuse a saved plan that does not fit the world any more.

    ``now`` is the plan made of the same files and the catalog as it is.  Rows that were appended
    meanwhile make nothing stale: snapshots are not compared.

    :raises StalePlan: with the differences that DeepDiff sees, a line each.
    """
    made_for = (saved.project, saved.environment, redact(saved.catalog))
    if made_for != (now.project, now.environment, redact(now.catalog)):
        raise StalePlan(
            f"the plan was made for project `{saved.project}` in environment `{saved.environment}` "
            f"({saved.catalog}), not for `{now.project}` in `{now.environment}` ({now.catalog})",
            REMAKE,
        )
    since = {*now.applied} - {*saved.applied}
    if saved.migrations and since >= {(m.version, m.checksum) for m in saved.migrations}:
        raise StalePlan(
            f"the plan was carried out already: {', '.join(m.version for m in saved.migrations)} applied",
            "`icemigrate plan` shows what is pending now",
        )
    # A saved plan holds no secrets, so that the plan of now is compared without them too.
    difference = _differences(redact_document(_comparable(saved)), redact_document(_comparable(now)))
    if difference:
        raise StalePlan(f"the plan is stale; since it was made, this changed:\n{difference}", REMAKE)


def _comparable(plan: Plan) -> dict[str, Any]:
    """The values that a plan depends on: history, files, tables without their snapshots; and what it does."""
    return {
        "history": dict(plan.applied),
        "files": {m.version: m.checksum for m in plan.migrations},
        "tables": {str(n): None if t is None else structure(t) for n, t in plan.based_on.items()},
        "statements": [
            text
            for m in plan.migrations
            for part in running(m, plan.catalog_name, plan.project)
            for text in _texts(part)
        ],
    }


def _texts(part: Step | RowsPart) -> Iterator[str]:
    """What is run for a part of a table's plan, in order."""
    return map(_text, part.statements)


def _text(statement: Statement | DataStatement) -> str:
    if isinstance(statement, Ask):
        return f"{statement.text} gives {statement.gives}"
    if isinstance(statement, (Sql, Rewriting)):
        return statement.text
    return f"(metadata commit) {statement.summary}"


def structure(table: Table) -> dict[str, Any]:
    """A table as JSON without what every append moves: its snapshots and where references point."""
    values = table_to_json(replace(table, snapshot=None))
    values["refs"] = {
        name: {key: value for key, value in ref.items() if key != "snapshot-id"}
        for name, ref in values["refs"].items()
        if name != MAIN_BRANCH or table.refs[name].is_limited
    }
    return values


def _differences(old: dict[str, Any], new: dict[str, Any]) -> str:
    """One line for each value that differs: what it belongs to, as it was → as it is."""
    if old == new:
        return ""
    from deepdiff import DeepDiff

    # The threshold: two sides that have little in common are still told value by value.
    found = DeepDiff(old, new, verbose_level=2, view="tree", threshold_to_diff_deeper=0)
    levels = [
        (level.path(output_format="list"), level.t1, level.t2) for kind in found for level in found[kind]
    ]
    levels.sort(key=lambda level: [list(_ROOMS).index(level[0][0]), *(str(k).zfill(9) for k in level[0][1:])])
    return "\n".join(f"  {_place(path)}: {_value(path, a)} → {_value(path, b)}" for path, a, b in levels)


_ROOMS: Mapping[str, Callable[[Any], str]] = {
    "history": lambda version: f"history, {version}",
    "files": lambda version: f"file of {version}, checksum",
    "tables": lambda name: f"table {name}",
    "statements": lambda number: f"statement {number + 1}",
}
"""How the first key below each of :func:`_comparable`'s is called."""


def _place(path: Sequence[Any]) -> str:
    """Where a difference is: ``table market_data.trades, properties.write.format.default``."""
    room, *keys = path
    if not keys:
        return str(room)
    name = _ROOMS[room](keys[0])
    inner = "".join(f"[{key + 1}]" if isinstance(key, int) else f".{key}" for key in keys[1:])
    return f"{name}, {inner.removeprefix('.')}" if inner and room == "tables" else name


def _value(path: Sequence[Any], value: Any) -> str:
    """A value on one line, shortened; of a whole table only that it is there."""
    from deepdiff.helper import NotPresent

    # DeepDiff has the class itself, or an instance of it, where one side has nothing.
    if value is None or value is NotPresent or isinstance(value, NotPresent):
        return "nothing"
    if path[0] == "tables" and len(path) == 2:
        return "there"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split()) or '""'
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1].rstrip() + "…"
