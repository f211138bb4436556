"""Properties, description, write distribution, retention and references of a table entry.

The fold, rule 4: all merge by key, ``null`` removes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from icemigrate.declare.complaints import Complaints
from icemigrate.declare.fold_names import Renaming
from icemigrate.declare.migration import UNSET, Reference, Retention, Subject, TableEntry
from icemigrate.diagnostics import did_you_mean
from icemigrate.model import column_properties, retention
from icemigrate.model.marks import is_reserved
from icemigrate.model.names import Path
from icemigrate.model.table import (
    CURRENT_SNAPSHOT,
    DESCRIPTION_PROPERTY,
    DISTRIBUTION_PROPERTY,
    MAIN_BRANCH,
    Ref,
)

_MS = timedelta(milliseconds=1)


def fold_properties(
    entry: TableEntry, before: Mapping[str, str], renaming: Renaming, complaints: Complaints
) -> dict[str, str]:
    """The properties after the entry; those that name a renamed or dropped column follow it."""
    out = follow(dict(before), renaming)
    elsewhere = _said_elsewhere(entry)
    for key, value in entry.properties.items():
        subject = ("properties", key)
        if key in elsewhere:
            _, word = elsewhere[key]
            complaints.error("said-twice", subject, f"`{key}` is what `{word}` says, which stands here too")
        elif value is not None:
            out[key] = value
        elif out.pop(key, None) is None:
            hint = did_you_mean(key, out) or "one that was set by hand is not touched"
            complaints.warn(
                "unknown-property", subject, f"no migration declared a property `{key}` to remove", hint
            )
    for key, (value, _) in elsewhere.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = value
    return out


def follow(properties: dict[str, str], renaming: Renaming) -> dict[str, str]:
    """The properties after renames and drops, those that name a column following it."""
    if renaming.removed:
        properties = column_properties.after_drop(properties, renaming.removed)
    if not renaming.renamed:
        return properties
    properties = column_properties.after_rename(properties, renaming.renamed)
    column = retention.row_column(properties)
    # One step for all renames, so that a swap does not lead back.
    old = None if column is None else _renamed_above(column, renaming.renamed)
    return properties if old is None else retention.after_rename(properties, old, renaming.renamed[old])


def _renamed_above(column: Path, renamed: Mapping[Path, Path]) -> Path | None:
    prefixes = (column[:length] for length in range(len(column), 0, -1))
    return next((prefix for prefix in prefixes if prefix in renamed), None)


def _said_elsewhere(entry: TableEntry) -> dict[str, tuple[str | None, str]]:
    """Properties that other keys of the entry say: property → (value, key)."""
    out: dict[str, tuple[str | None, str]] = {}
    if entry.description is not UNSET:
        out[DESCRIPTION_PROPERTY] = (entry.description, "description")
    if entry.write_distribution is not UNSET:
        out[DISTRIBUTION_PROPERTY] = (entry.write_distribution, "write_distribution")
    if entry.retention is not UNSET:
        said = retention_properties(entry.retention)
        out |= {key: (value, "retention") for key, value in said.items()}
    return out


def retention_properties(policy: Retention) -> dict[str, str | None]:
    """The table properties that a retention policy stands for; ``None`` removes."""
    return dict(retention.to_properties(_as_mapping(policy)))


def _as_mapping(policy: Retention) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if policy.snapshots is None:
        out["snapshots"] = None
    elif policy.snapshots is not UNSET:
        given = {"max_age": policy.snapshots.max_age, "keep_at_least": policy.snapshots.keep_at_least}
        out["snapshots"] = {key: value for key, value in given.items() if value is not UNSET}
    if policy.rows is None:
        out["rows"] = None
    elif policy.rows is not UNSET:
        out["rows"] = {"column": policy.rows.column, "max_age": policy.rows.max_age}
    return out


def fold_refs(entry: TableEntry, before: Mapping[str, Ref], complaints: Complaints) -> dict[str, Ref]:
    """The branches and tags after the entry, merged by name."""
    out = dict(before)
    named = [("branches", "branch", *item) for item in entry.branches.items()]
    named += [("tags", "tag", *item) for item in entry.tags.items()]
    # What goes first makes room for one of the other kind under the same name.
    for key, kind, name, reference in sorted(named, key=lambda n: n[3] is not None):
        _fold_ref(out, (key, name), kind, reference, complaints)
    for name in entry.branches.keys() & entry.tags.keys():
        if entry.branches[name] is not None and entry.tags[name] is not None:
            complaints.error("name-in-use", ("tags", name), f"`{name}` cannot be both a branch and a tag")
    return out


def _fold_ref(
    out: dict[str, Ref], subject: Subject, kind: str, reference: Reference | None, complaints: Complaints
) -> None:
    name = subject[1]
    old = out.get(name)
    if name == MAIN_BRANCH and (kind == "tag" or reference is None):
        message = f"`{MAIN_BRANCH}` is every table's branch: it can be neither a tag nor removed"
        complaints.error("name-in-use", subject, message)
    elif reference is None:
        if old is None or old.kind != kind:
            known = [n for n, ref in out.items() if ref.kind == kind]
            complaints.error(
                "unknown-reference",
                subject,
                f"no migration declared a {kind} `{name}`",
                did_you_mean(name, known),
            )
        else:
            del out[name]
    elif name == MAIN_BRANCH and reference.max_age is not UNSET:
        complaints.error(
            "main-branch",
            subject,
            f"`{MAIN_BRANCH}` is the table itself and never expires, so that its own `max_age` says nothing",
            "write `snapshots: {max_age: …}` for how long its snapshots are kept",
        )
    elif is_reserved(name):
        message = f"`{name}` is a name that icemigrate gives its own tags and branches"
        complaints.error("reserved-reference", subject, message, "choose another name")
    else:
        # Whoever names a tag again means it where it is.
        out[name] = _ref(kind, reference, CURRENT_SNAPSHOT)


def _ref(kind: str, reference: Reference, snapshot_id: int) -> Ref:
    age = None if reference.max_age is UNSET else reference.max_age // _MS
    if reference.snapshots is UNSET:
        return Ref(kind, snapshot_id, age)
    kept, oldest = reference.snapshots.keep_at_least, reference.snapshots.max_age
    return Ref(
        kind,
        snapshot_id,
        age,
        None if oldest is UNSET or oldest is None else oldest // _MS,
        None if kept is UNSET else kept,
    )
