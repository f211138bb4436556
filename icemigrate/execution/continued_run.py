"""Options and commits of interrupted runs, for the run that continues them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import chain

from icemigrate.catalog.catalog_port import Catalog
from icemigrate.catalog.readable_tables import load_readable_tables
from icemigrate.errors import ConflictError, UsageError
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.frozen import replace
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import Intent
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import is_branch_of, tag_name
from icemigrate.iceberg.table import Ref, Table
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.planning.plan import Direction, Plan
from icemigrate.planning.redo import restored_field_ids
from icemigrate.planning.undo import InterruptedCommits, UndoOptions, recorded_uuid, with_interrupted_commits

OVERWRITE_OPTION = "--overwrite"
_PARTIAL, _DISCARD, _METADATA_ONLY = "--partial", "--discard-new-data", "--metadata-only"
_REFILL, _NO_REFILL = "--refill", "--no-refill"
_CONTRADICTIONS = ((_DISCARD, _METADATA_ONLY), (_METADATA_ONLY, _DISCARD), (_REFILL, _NO_REFILL))
"""An option of a run, and the recorded one that it contradicts.

`--no-refill` ends a refill that cannot be finished, so it is accepted after `--refill`.
"""


def unfinished_rollbacks(history: History) -> tuple[str, ...]:
    """Versions whose rollback has begun and has no outcome: it was interrupted, or is running.

    A killed process has the lock until its lease has run out, so the two cases look the same.
    """
    return tuple(i.version.text for i in history.intents if _is_undo(i))


def require_finished(plan: Plan) -> None:
    """Refuse a plan while the rollback of a version is half done.

    :raises ConflictError: with the versions.
    """
    if plan.unfinished:
        raise ConflictError(
            f"the rollback of {', '.join(plan.unfinished)} is running or was interrupted, so its tables are "
            "only partly undone",
            "if it was interrupted, `icemigrate rollback` finishes it",
        )


def recorded_overwrites(history: History) -> dict[str, frozenset[str]]:
    """The facts that interrupted runs were to overwrite, by version.

    The user did not agree to overwrite them in any other migration.
    """
    return {
        intent.version.text: frozenset(
            choice.removeprefix(f"{OVERWRITE_OPTION} ")
            for choice in intent.choices
            if choice.startswith(f"{OVERWRITE_OPTION} ")
        )
        for intent in history.intents
        if not _is_undo(intent)
    }


def recorded_restored_fields(history: History) -> dict[str, dict[TableName, frozenset[int]]]:
    """The fields that interrupted runs have brought back, by version and declared name of the table."""
    begun = {i.version for i in history.intents if not _is_undo(i)}
    records = {version.text: history.undo_record(version) for version in begun}
    return {text: restored_field_ids(record) for text, record in records.items() if record is not None}


def without_leftover_branches(
    actual: Mapping[TableName, Table | None], project: str, versions: Collection[str]
) -> dict[TableName, Table | None]:
    """The tables without the branches that interrupted runs wrote rows to.

    The next holder of the lock drops them first, so a plan that names them would be stale by then.

    :param versions: the interrupted ones.
    """

    def is_left(name: str, ref: Ref) -> bool:
        return ref.kind == "branch" and any(is_branch_of(name, project, version) for version in versions)

    def without(table: Table) -> Table:
        kept = {name: ref for name, ref in table.refs.items() if not is_left(name, ref)}
        return table if len(kept) == len(table.refs) else replace(table, refs=kept)

    return {name: None if table is None else without(table) for name, table in actual.items()}


def choices_of(options: UndoOptions) -> tuple[str, ...]:
    """The options of a rollback as they are written on the command line."""
    refill = {None: (), True: (_REFILL,), False: (_NO_REFILL,)}[options.refill]
    flags = (
        (_PARTIAL, options.partial),
        (_DISCARD, options.discard_new_data),
        (_METADATA_ONLY, options.metadata_only),
    )
    return (*(text for text, is_set in flags if is_set), *refill)


def with_recorded(options: UndoOptions, intent: Intent | None) -> UndoOptions:
    """The options of a rollback that continues an interrupted one, together with those of that run.

    :param intent: of the version that is rolled back; ``None`` where no run of it was interrupted.
    :raises UsageError: an option contradicts one of the interrupted run.
    """
    if intent is None or not _is_undo(intent):
        return options
    recorded = set(intent.choices)
    for given, other in _CONTRADICTIONS:
        if given in choices_of(options) and other in recorded:
            raise UsageError(
                f"`{given}` contradicts `{other}`: {intent.user} on {intent.host} began the rollback of "
                f"{intent.version} with it, and that run was interrupted",
                f"omit `{given}`: the rollback is continued with `{other}`",
            )
    refill = options.refill
    if refill is None and recorded & {_REFILL, _NO_REFILL}:
        refill = _REFILL in recorded
    return replace(
        options,
        partial=options.partial or _PARTIAL in recorded,
        discard_new_data=options.discard_new_data or _DISCARD in recorded,
        metadata_only=options.metadata_only or _METADATA_ONLY in recorded,
        refill=refill,
    )


def _is_undo(intent: Intent) -> bool:
    return intent.direction is Direction.ROLLBACK


def run_commit_adder(session: EnvironmentSession) -> Callable[[UndoRecord, Intent], UndoRecord]:
    """A function that adds the commits of an intent's run to its undo record.

    It raises :class:`~icemigrate.errors.CatalogError` where the catalog cannot be read.
    """

    def add(record: UndoRecord, intent: Intent) -> UndoRecord:
        if record.baseline:
            return record
        tables = tuple(_with_run_commits(session, table, intent) for table in record.tables)
        return replace(record, tables=tables)

    return add


def _with_run_commits(session: EnvironmentSession, undo: TableUndo, intent: Intent) -> TableUndo:
    sides = (undo.actual_after, undo.actual_before)
    names = list(dict.fromkeys(side.name for side in sides if side is not None))
    if undo.before is None or undo.actual_before is None:
        return undo  # the marker of its creator proves that the migration created the table
    uuid, catalog = recorded_uuid(undo), session.catalog
    for name in chain(names, _renamed(catalog, uuid, names)):
        metadata = catalog.metadata_json(name)
        if metadata is None or (uuid is not None and metadata.get("table-uuid") not in (None, uuid)):
            continue
        base = next((intent.metadata[str(n)] for n in names if str(n) in intent.metadata), None)
        commits = InterruptedCommits(
            metadata=metadata,
            location=catalog.metadata_location(name),
            base=base,
            tag=tag_name(session.project.name, intent.version.text),
            run=intent.run,
            read=partial(catalog.metadata_at, name),
        )
        return with_interrupted_commits(undo, commits)
    return undo


def _renamed(catalog: Catalog, uuid: str | None, known: Collection[TableName]) -> Iterator[TableName]:
    """The name that another client gave to a table, searched in the whole catalog."""
    if uuid is None:
        return
    others = [name for name in catalog.tables() if name not in known]
    for name, table in load_readable_tables(catalog, others).tables.items():
        if table is not None and table.uuid == uuid:
            yield name
