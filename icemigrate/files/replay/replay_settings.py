"""Replays properties, description, write distribution, retention and references of a table entry.

All of them merge by key, and ``null`` removes a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from icemigrate.diagnostics import did_you_mean
from icemigrate.files.read.migration_file import UNSET, KeyPath, Reference, Retention, TableEntry
from icemigrate.files.replay.entry_diagnostics import EntryDiagnostics
from icemigrate.files.replay.replay_names import ColumnNameChanges
from icemigrate.iceberg import retention, table_properties
from icemigrate.iceberg.kept_views import is_kept_view_key
from icemigrate.iceberg.names import FieldPath
from icemigrate.iceberg.ref_names import is_reserved
from icemigrate.iceberg.snapshot_pins import SnapshotPin
from icemigrate.iceberg.table import (
    CURRENT_SNAPSHOT,
    DESCRIPTION_PROPERTY,
    DISTRIBUTION_PROPERTY,
    MAIN_BRANCH,
    Ref,
    Table,
)

_MS = timedelta(milliseconds=1)


def replay_properties(
    entry: TableEntry, before: Mapping[str, str], renaming: ColumnNameChanges, diagnostics: EntryDiagnostics
) -> dict[str, str]:
    """The properties after the entry; those with the name of a renamed or dropped column follow it."""
    out = dict(follow_column_changes(before, renaming))
    elsewhere = _properties_of_other_keys(entry)
    for key, value in entry.properties.items():
        subject = ("properties", key)
        if is_kept_view_key(key):
            message = f"`{key}` is reserved: icemigrate sets it for `keep_view`"
            diagnostics.error("reserved-property", subject, message, "remove the property")
        elif key in elsewhere:
            _, word = elsewhere[key]
            diagnostics.error("said-twice", subject, f"`{key}` is already set by `{word}`")
        elif value is not None:
            out[key] = value
        elif out.pop(key, None) is None:
            hint = did_you_mean(key, out) or "properties that were set by hand are not changed"
            diagnostics.warn(
                "unknown-property", subject, f"no migration declared a property `{key}` to remove", hint
            )
    for key, (value, _) in elsewhere.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = value
    return out


def follow_column_changes(
    properties: Mapping[str, str],
    renaming: ColumnNameChanges,
    prefixes: tuple[str, ...] = table_properties.ALL_PREFIXES,
) -> Mapping[str, str]:
    """The properties after renames and drops of the columns that they name.

    :param prefixes: of the properties that follow; a file moves more of them than Iceberg's library.
    """
    if renaming.removed:
        properties = table_properties.column_properties_after_drop(properties, renaming.removed, prefixes)
    if not renaming.renamed:
        return properties
    properties = table_properties.column_properties_after_rename(properties, renaming.renamed, prefixes)
    column = retention.row_column(properties)
    # All renames in one pass, so that a swap does not rename a column twice.
    old = None if column is None else _renamed_above(column, renaming.renamed)
    return (
        properties
        if old is None
        else retention.row_column_after_rename(properties, old, renaming.renamed[old])
    )


def _renamed_above(column: FieldPath, renamed: Mapping[FieldPath, FieldPath]) -> FieldPath | None:
    prefixes = (column[:length] for length in range(len(column), 0, -1))
    return next((prefix for prefix in prefixes if prefix in renamed), None)


def _properties_of_other_keys(entry: TableEntry) -> dict[str, tuple[str | None, str]]:
    """Properties that other keys of the entry set: property → (value, key)."""
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
    """The table properties of a retention policy; ``None`` removes one."""
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


def replay_refs(
    entry: TableEntry, before: Mapping[str, Ref], diagnostics: EntryDiagnostics
) -> dict[str, Ref]:
    """The branches and tags after the entry, merged by name."""
    out = dict(before)
    named = [("branches", "branch", *item) for item in entry.branches.items()]
    named += [("tags", "tag", *item) for item in entry.tags.items()]
    # Drops first, so that a branch can take the name of a tag and a tag that of a branch.
    for key, kind, name, reference in sorted(named, key=lambda n: n[3] is not None):
        _replay_ref(out, (key, name), kind, reference, diagnostics)
    for name in entry.branches.keys() & entry.tags.keys():
        if entry.branches[name] is not None and entry.tags[name] is not None:
            diagnostics.error("name-in-use", ("tags", name), f"`{name}` cannot be both a branch and a tag")
    return out


def _replay_ref(
    out: dict[str, Ref],
    subject: KeyPath,
    kind: str,
    reference: Reference | None,
    diagnostics: EntryDiagnostics,
) -> None:
    name = subject[1]
    old = out.get(name)
    if name == MAIN_BRANCH and (kind == "tag" or reference is None):
        message = f"`{MAIN_BRANCH}` is every table's branch: it can be neither a tag nor removed"
        diagnostics.error("name-in-use", subject, message)
    elif reference is None:
        if old is None or old.kind != kind:
            known = [n for n, ref in out.items() if ref.kind == kind]
            diagnostics.error(
                "unknown-reference",
                subject,
                f"no migration declared a {kind} `{name}`",
                did_you_mean(name, known),
            )
        else:
            del out[name]
    elif name == MAIN_BRANCH and reference.max_age is not UNSET:
        diagnostics.error(
            "main-branch",
            subject,
            f"`{MAIN_BRANCH}` is the table itself and never expires, so its `max_age` has no effect",
            "write `snapshots: {max_age: …}` for how long its snapshots are kept",
        )
    elif is_reserved(name):
        message = f"`{name}` is reserved for icemigrate's own tags and branches"
        diagnostics.error("reserved-reference", subject, message, "choose another name")
    elif name == MAIN_BRANCH and reference.pin is not None:
        message = f"`{MAIN_BRANCH}` is the table itself: moving it would roll back its rows"
        hint = "`CALL system.rollback_to_snapshot` rolls a table back"
        diagnostics.error("main-branch", (*subject, reference.pin.key), message, hint)
    else:
        # Declaring a tag again leaves it on its snapshot.
        out[name] = _ref(kind, reference, CURRENT_SNAPSHOT)


def replay_pins(
    entry: TableEntry, before: Table, refs: Mapping[str, Ref], diagnostics: EntryDiagnostics
) -> dict[str, SnapshotPin]:
    """The pins of branches and tags after the entry: each declaration of a reference sets or removes its pin.

    :param refs: the references after the entry.
    """
    out = dict(before.pins)
    for key, named in (("branches", entry.branches), ("tags", entry.tags)):
        for name, reference in named.items():
            out.pop(name, None)
            if reference is None or reference.pin is None:
                continue
            pin, subject = reference.pin, (key, name, reference.pin.key)
            out[name] = pin
            if not before.schema.fields and not entry.adopt:
                message = "the migration creates the table, which has no snapshot yet"
                diagnostics.error("no-such-snapshot", subject, message, "pin it in a later migration")
            elif pin.key == "branch" and is_reserved(pin.value):
                message = f"`{pin.value}` is reserved for icemigrate's own tags and branches"
                diagnostics.error("reserved-reference", subject, message, "choose another branch")
            elif pin.key == "branch" and (pin.value == name or _is_tag(refs.get(pin.value))):
                what = "itself" if pin.value == name else f"`{pin.value}`, which is a tag"
                message = f"`{name}` cannot point to the newest snapshot of {what}"
                diagnostics.error("reference-kind", subject, message, "choose another branch")
    return {name: pin for name, pin in out.items() if name in refs}


def _is_tag(ref: Ref | None) -> bool:
    return ref is not None and ref.kind == "tag"


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
