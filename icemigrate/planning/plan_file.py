"""The file format of saved plans: writes and reads complete plans."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, get_args

from icemigrate.changes import find_change_kind
from icemigrate.changes.change import Change, Statement
from icemigrate.data_steps import find_data_step_kind
from icemigrate.data_steps.data_step_kind import DataStatement, TableDataStep
from icemigrate.errors import StalePlan, UsageError
from icemigrate.frozen import replace
from icemigrate.iceberg.json_text import read_strictly
from icemigrate.iceberg.ref_names import is_icemigrate_branch
from icemigrate.iceberg.table import MAIN_BRANCH, Table
from icemigrate.iceberg.table_json import table_to_json
from icemigrate.iceberg.value_codec import BadJson, Codec, JsonForm
from icemigrate.planning.plan import PLAN_FORMAT, Plan
from icemigrate.redaction import redact_document

# Further output beside the plan; `plan --format json` adds these, and `apply` ignores them.
_FOR_READERS = frozenset({"plan_format", "summary", "ready", "diagnostics", "lying_old", "digest"})
# Keys of every saved plan, so that a truncated file is not read as an empty plan.
_ALWAYS = ("migrations", "base")
_EXACT = frozenset(
    {"plan_format", "project", "environment", "applied", "overwrite", "redo", "to", "reconcile"}
)
"""Keys by which `apply` makes the plan again."""

MAX_VALUE_TEXT = 100
"""How much of a value a message shows, in characters."""

REPLAN_HINT = "make a new plan and have it reviewed: icemigrate plan --out FILE"


def _by_kind(hint: type, find_kind: Callable[[str], type]) -> JsonForm:
    """The form of a registered kind: its fields, and ``kind``, its permanent name."""

    def decode(saved: Mapping[str, Any]) -> Any:
        values = {key: value for key, value in saved.items() if key != "kind"}
        return _CODEC.decode_fields(find_kind(saved["kind"]), values, saved["kind"])

    return JsonForm(hint, lambda value: {"kind": value.kind, **_CODEC.encode_fields(value)}, decode)


def _by_first_key(union: Any) -> JsonForm:
    """The form of a union in which the first key shows the classes apart."""
    kinds = {kind.__struct_encode_fields__[0]: kind for kind in get_args(union)}
    keyed = Codec(is_stored=True)

    def decode(saved: Mapping[str, Any]) -> Any:
        key = next((key for key in kinds if key in saved), None)
        if key is None:
            raise ValueError(f"none of {', '.join(map(repr, kinds))} is there")
        return keyed.decode_fields(kinds[key], saved, key)

    return JsonForm(union, keyed.encode_fields, decode)


_CODEC = Codec(
    (
        _by_kind(Change, find_change_kind),
        _by_kind(TableDataStep, find_data_step_kind),
        _by_first_key(DataStatement),
        _by_first_key(Statement),
    )
)


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as JSON (``schemas/plan.schema.json``); :func:`plan_from_json` gives an equal plan back."""
    always = {key: _CODEC.encode(getattr(plan, key)) for key in _ALWAYS}
    return {"plan_format": PLAN_FORMAT, **always, **_CODEC.encode(plan)}


def mask_plan_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """A plan's JSON with secrets masked; the values that `apply` runs stay as they are."""
    return {key: value if key in _EXACT else redact_document(value, key) for key, value in document.items()}


def with_digest(document: Mapping[str, Any]) -> dict[str, Any]:
    """A plan's JSON with the digest of all of it, which :func:`parse_plan_file` checks.

    It detects an edit. It is not a signature: an editor of the file can also write a new digest.
    """
    return {**document, "digest": _digest(document)}


def _digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of the parsed content: layout, order of keys and escapes do not count, every value does."""
    values = {key: value for key, value in document.items() if key != "digest"}
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


def plan_file_text(plan: Plan) -> str:
    """The plan as the text of a file."""
    return json.dumps(with_digest(plan_to_json(plan)), indent=1) + "\n"


def plan_from_json(saved: Any) -> Plan:
    """Read the output of :func:`plan_to_json`.

    :raises StalePlan: the plan has another format.
    :raises ValueError: it is not a plan; the message has the position.
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
        raise StalePlan(
            f"the plan has format {json.dumps(given)[:MAX_VALUE_TEXT]}; "
            f"this icemigrate reads format {PLAN_FORMAT}",
            "make a new plan with this version: icemigrate plan --out FILE",
        )


def parse_plan_file(text: str, source: str) -> Plan:
    """Read the text of a saved plan.

    :param source: the file's name, for messages.
    :raises UsageError: it is no plan.
    :raises StalePlan: it was edited or damaged, or it has another icemigrate's format.
    """
    saved = _json_of(text, source)
    try:
        _require_format(saved)
        if "digest" not in saved:
            raise BadJson("it has no `digest`")
        if _digest(saved) != saved["digest"]:
            raise StalePlan(
                f"{source} was edited after it was saved: its content does not match its `digest`",
                REPLAN_HINT,
            )
        return plan_from_json(saved)
    except RecursionError as error:
        raise StalePlan(f"{source} is not a saved plan: it is nested too deeply", REPLAN_HINT) from error
    except ValueError as error:
        kind = StalePlan if isinstance(saved, Mapping) and "plan_format" in saved else UsageError
        raise kind(f"{source} is not a saved plan: {error}", REPLAN_HINT) from error


def _json_of(text: str, source: str) -> Any:
    """The values of a saved plan's text.

    :raises UsageError: it is not JSON, so it was never a plan.
    :raises StalePlan: it was a plan, and was edited or damaged since.
    """
    try:
        return read_strictly(text)
    except RecursionError as error:
        raise StalePlan(f"{source} is not a saved plan: it is nested too deeply", REPLAN_HINT) from error
    except json.JSONDecodeError as error:
        if '"plan_format"' in text:
            message = f"{source} is not a saved plan: its JSON is damaged at line {error.lineno}"
            raise StalePlan(message, REPLAN_HINT) from error
        raise UsageError(f"{source} is not a saved plan: it is not JSON", REPLAN_HINT) from error
    except ValueError as error:
        raise StalePlan(f"{source} is not a saved plan: {error}", REPLAN_HINT) from error


def structural_json(table: Table) -> dict[str, Any]:
    """A table as JSON without values that every append changes: its snapshots and the targets of references.

    A branch that an interrupted run left is excluded: the next holder of the lock drops it.
    """
    values = table_to_json(replace(table, snapshot=None))
    values["refs"] = {
        name: {key: value for key, value in ref.items() if key != "snapshot-id"}
        for name, ref in values["refs"].items()
        if (name != MAIN_BRANCH or table.refs[name].is_limited)
        and not (table.refs[name].kind == "branch" and is_icemigrate_branch(name))
    }
    return values
