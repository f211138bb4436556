"""Notes of ``drift`` that come from the undo records of the history, for all tables in one pass over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from icemigrate.commands.compared_tables import ComparedTable
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import AppliedVersion, VersionState
from icemigrate.history.undo_record_codec import TableUndoOutline
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.ref_names import older_tag_names, tag_name
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import TableUndo
from icemigrate.planning.drift.differing_facts import DifferingFact

FactNotes: TypeAlias = Mapping[tuple[TableName, DifferingFact], str]
"""Notes about facts, by the declared name of the table and the fact."""


def missing_tag_notes(
    session: EnvironmentSession, history: History, met: Iterable[ComparedTable]
) -> Mapping[str, tuple[str, ...]]:
    """Notes about markers that another client removed from tables, by the uuid of the table."""
    if session.environment.keep_tags is not None or session.environment.record != "tags":
        return {}
    refs = {m.base.uuid: m.there.refs for m in met if m.there is not None and m.base.uuid is not None}
    notes: dict[str, tuple[str, ...]] = {}
    for applied in history.applied:
        tag = tag_name(session.project.name, applied.version.text)
        older = older_tag_names(applied.version.text)[0]
        lacking = {uuid for uuid, there in refs.items() if tag not in there and older not in there}
        if applied.state is not VersionState.APPLIED or not lacking:
            continue
        outline = history.undo_outline(applied.version)
        # A baseline was recorded without touching a table, and never had a tag.
        for part in () if outline is None or outline.baseline else outline.tables:
            uuid = part.uuids[-1]
            if uuid is not None and uuid in lacking:
                lacking.discard(uuid)
                notes[uuid] = (
                    *notes.get(uuid, ()),
                    f"the tag {tag} is missing: the rows as of that migration can no longer be read by "
                    "tag; `rollback` does not need it",
                )
    return notes


def fact_notes(history: History, tables: Iterable[tuple[Table, Iterable[DifferingFact]]]) -> FactNotes:
    """Notes about undeclared columns that a migration declared once, and columns that a rollback changed.

    :param tables: the recorded tables under their declared names, with their differing facts.
    """
    left: dict[TableName, tuple[Table, list[DifferingFact]]] = {}
    for base, facts in tables:
        if asked := [fact for fact in facts if _is_foreign_column(fact) or _is_required(fact)]:
            left[base.name] = (base, asked)
    notes: dict[tuple[TableName, DifferingFact], str] = {}
    by_uuid: dict[str | None, list[TableName]] = {}
    for name, (base, _) in left.items():
        by_uuid.setdefault(base.uuid, []).append(name)
    for applied in history.applied:
        is_about = {VersionState.APPLIED: _is_foreign_column, VersionState.ROLLED_BACK: _is_required}.get(
            applied.state
        )
        if not left or is_about is None:
            continue
        outline = history.undo_outline(applied.version)
        for part in () if outline is None else outline.tables:
            for name in _tables_of(part, applied.state, by_uuid):
                if name not in left or not any(map(is_about, left[name][1])):
                    continue
                undo, (base, facts) = part.read(), left[name]
                for fact in filter(is_about, tuple(facts)):
                    if (note := _note(applied, undo, base, fact)) is not None:
                        notes[name, fact] = note
                        facts.remove(fact)
                if not facts:
                    del left[name]
    return notes


def _is_foreign_column(fact: DifferingFact) -> bool:
    return not fact.managed and fact.key[0] == "columns"


def _is_required(fact: DifferingFact) -> bool:
    return fact.subject[2:] == ("required",)


def _tables_of(
    part: TableUndoOutline, state: VersionState, by_uuid: Mapping[str | None, list[TableName]]
) -> Iterator[TableName]:
    """The names of the tables that a part of a record may be about."""
    before, after, _ = part.uuids
    if state is VersionState.ROLLED_BACK:
        yield from by_uuid.get(before, ())
    elif after is not None:
        yield from by_uuid.get(after, ())
    elif (name := part.declared_after or part.declared_before) is not None:
        yield name


def _note(applied: AppliedVersion, undo: TableUndo, base: Table, fact: DifferingFact) -> str | None:
    if applied.state is VersionState.ROLLED_BACK:
        return _optional_after_rollback_note(applied, undo, fact)
    return _namesake_note(applied, undo, base, fact)


def _namesake_note(applied: AppliedVersion, undo: TableUndo, base: Table, fact: DifferingFact) -> str | None:
    """A note about an undeclared column with the name of a dropped, declared one."""
    if undo.after is None:
        return None
    path, known = fact.subject[1], schema_index(base.schema)
    for field_id, entry in schema_index(undo.after.schema).items():
        if field_id == fact.key[1]:
            return f"unmanaged: {applied.version} declared it, and no migration declares it now"
        if format_path(entry.path) == path and field_id not in known:
            return (
                f"unmanaged: {applied.version} declared {path} as field {field_id}, which was "
                f"dropped; the current {path} is a different column"
            )
    return None


def _optional_after_rollback_note(
    applied: AppliedVersion, undo: TableUndo, fact: DifferingFact
) -> str | None:
    """A note about a required column that a rollback restored as optional."""
    if undo.before is None or undo.after is None:
        return None
    was, dropped = undo.before.schema.by_id(fact.key[1]), undo.after.schema.by_id(fact.key[1]) is None
    if was is None or not was.required or not dropped:
        return None
    return (
        f"the rollback of {applied.version} left it optional, because rows were written without a value: "
        "`apply --reconcile` makes it required again when every row has a value"
    )
