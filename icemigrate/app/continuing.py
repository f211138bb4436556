"""What an interrupted run was asked for, which a run that continues it keeps."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from icemigrate.errors import ConflictError, UsageError
from icemigrate.frozen import replace
from icemigrate.history.intent import Intent
from icemigrate.history.properties import History
from icemigrate.model.marks import is_branch_of
from icemigrate.model.names import TableName
from icemigrate.model.table import Ref, Table
from icemigrate.plan import Direction, Plan
from icemigrate.undo import Options, brought_back

OVERWRITE = "--overwrite"
_PARTIAL, _DISCARD, _METADATA_ONLY = "--partial", "--discard-new-data", "--metadata-only"
_REFILL, _NO_REFILL = "--refill", "--no-refill"
_CONTRADICTIONS = ((_DISCARD, _METADATA_ONLY), (_METADATA_ONLY, _DISCARD), (_REFILL, _NO_REFILL))
"""An option of a run, and the recorded one that it contradicts.  `--no-refill` ends a refill that cannot be
finished, so it is accepted behind `--refill`."""


def half_undone(history: History) -> tuple[str, ...]:
    """Versions whose rollback has begun and has no outcome: it was interrupted, or it goes on just now.

    A process that was killed has the lock until its lease has run out, so nobody can tell the two apart.
    """
    return tuple(i.version.text for i in history.intents if _is_undo(i))


def require_finished(plan: Plan) -> None:
    """Refuse a plan while the rollback of a version is half done.

    :raises ConflictError: with the versions.
    """
    if plan.unfinished:
        raise ConflictError(
            f"the rollback of {', '.join(plan.unfinished)} is running or was interrupted, so its tables are "
            "half undone",
            "where it was interrupted, `icemigrate rollback` finishes it",
        )


def overwritten_before(history: History) -> dict[str, frozenset[str]]:
    """The facts that interrupted runs were to set whatever the catalog has, by version.

    The user did not agree to overwrite them in any other migration.
    """
    return {
        intent.version.text: frozenset(
            choice.removeprefix(f"{OVERWRITE} ")
            for choice in intent.choices
            if choice.startswith(f"{OVERWRITE} ")
        )
        for intent in history.intents
        if not _is_undo(intent)
    }


def brought_back_before(history: History) -> dict[str, dict[TableName, frozenset[int]]]:
    """The fields that interrupted runs have brought back, by version and declared name of the table."""
    begun = {i.version for i in history.intents if not _is_undo(i)}
    records = {version.text: history.undo_record(version) for version in begun}
    return {text: brought_back(record) for text, record in records.items() if record is not None}


def without_left_branches(
    actual: Mapping[TableName, Table | None], project: str, versions: Collection[str]
) -> dict[TableName, Table | None]:
    """The tables without the branches that interrupted runs wrote rows to.

    Whoever takes the lock drops them before anything else, so a plan that names them would be stale by then.

    :param versions: those that were interrupted.
    """

    def is_left(name: str, ref: Ref) -> bool:
        return ref.kind == "branch" and any(is_branch_of(name, project, version) for version in versions)

    def without(table: Table) -> Table:
        kept = {name: ref for name, ref in table.refs.items() if not is_left(name, ref)}
        return table if len(kept) == len(table.refs) else replace(table, refs=kept)

    return {name: None if table is None else without(table) for name, table in actual.items()}


def choices_of(options: Options) -> tuple[str, ...]:
    """The options of a rollback as they are written on the command line."""
    refill = {None: (), True: (_REFILL,), False: (_NO_REFILL,)}[options.refill]
    flags = (
        (_PARTIAL, options.partial),
        (_DISCARD, options.discard_new_data),
        (_METADATA_ONLY, options.metadata_only),
    )
    return (*(text for text, is_set in flags if is_set), *refill)


def with_recorded(options: Options, intent: Intent | None) -> Options:
    """The options of a rollback that continues an interrupted one, those of the interrupted run included.

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
