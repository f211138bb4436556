"""Files that differ from what was applied under their version: edited ones, and files of another branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from icemigrate.diagnostics import Diagnostic
from icemigrate.files.read.migration_file import AnyFile, MigrationFile
from icemigrate.files.replay.declared_differences import declared_differences, other_fields
from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.frozen import Frozen, replace
from icemigrate.history.declared_state import declared_state_before, declared_state_without
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import AppliedVersion, VersionState
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState, TableTarget
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.planning.replay import migration_description
from icemigrate.results.command_results import RepairedMigration, errors_of

_DIFFERENCE_LABELS = ("applied was", "the file says")
_ONE_SIDED = ("only the applied migration declares it", "only the file declares it")


class EditedMigration(Frozen):
    """An applied version and its file, which has other content now."""

    file: MigrationFile
    applied: AppliedVersion

    @property
    def repaired(self) -> RepairedMigration:
        return RepairedMigration(self.applied.version.text, self.applied.checksum, self.file.checksum)

    @property
    def cause(self) -> str:
        """Which file was applied instead, in words."""
        applied = self.applied
        return (
            f'version {applied.version} is applied from another file: "{applied.description}", '
            f"{applied.attribution}"
        )


def edited_migrations(history: History, files: Iterable[AnyFile]) -> list[EditedMigration]:
    """The files whose content differs from what was applied under their version."""
    known = {a.version: a for a in history.applied if a.state is VersionState.APPLIED}
    return [
        EditedMigration(file, known[file.version])
        for file in files
        if isinstance(file, MigrationFile)
        and file.version in known
        and known[file.version].checksum != file.checksum
    ]


def colliding_files(history: History, files: Iterable[AnyFile]) -> list[EditedMigration]:
    """The files that were never applied, while another file with their version was."""
    return [one for one in edited_migrations(history, files) if is_other_file(history, one)]


def is_other_file(history: History, edited: EditedMigration) -> bool:
    """Whether two branches used one version: the descriptions differ, and so does what is declared."""
    has_other_description = edited.applied.description != migration_description(edited.file)
    return has_other_description and any(find_differences(history, edited))


def explain_edits(
    history: History, files: Iterable[AnyFile], mistakes: Iterable[Diagnostic]
) -> Iterator[Diagnostic]:
    """The diagnostics; one of an edited file shows what differs, that `repair` accepts the file, or that the
    version was applied from another file.
    """
    edited = {one.file.path: one for one in edited_migrations(history, files)}
    for mistake in mistakes:
        found = edited.get(mistake.place.file) if mistake.place is not None else None
        yield (
            mistake if found is None or mistake.code != "edited-file" else _explained(history, found, mistake)
        )


def _explained(history: History, edited: EditedMigration, mistake: Diagnostic) -> Diagnostic:
    wrong, texts = find_differences(history, edited)
    version = edited.file.version
    if not wrong and not texts:
        return replace(
            mistake,
            message=f"{version} changed after it was applied, and still declares the same",
            hint="restore the file, or accept the edit with `icemigrate repair`",
        )
    if is_other_file(history, edited):
        return version_applied(edited)
    shown = [d.message for d in wrong] or list(texts)
    more = len(shown) - _MOST_SHOWN
    listed = "; ".join([*shown[:_MOST_SHOWN], *([f"and {more} more"] if more > 0 else [])])
    return replace(
        mistake,
        message=f"{version} changed after it was applied: {listed}",
        hint="restore the file, and put the change into a new migration",
    )


def version_applied(found: EditedMigration) -> Diagnostic:
    """The error of a file whose version was applied from another file."""
    return Diagnostic(
        "version-applied",
        f"{found.cause}; the content of `{Path(found.file.path).name}` was never applied",
        found.file.place,
        "if it is a new migration, merge the branch that has the other file, then run `icemigrate rebase`; "
        "if it is the applied file, edited, restore it",
    )


_MOST_SHOWN = 3
"""How many differences of a file one message shows."""


def find_differences(
    history: History, edited: EditedMigration
) -> tuple[tuple[Diagnostic, ...], tuple[str, ...]]:
    """What is wrong with an edited file on the state before it; else what it declares otherwise, in words."""
    file, applied = edited.file, edited.applied
    if history.undo_record(applied.version) is None:
        # A recorded squash has no state before it, and the declared state after it.
        before = EMPTY_STATE
        later = [
            a for a in history.applied if a.version > applied.version and a.state is VersionState.APPLIED
        ]
        after = declared_state_without(history, later).tables
    else:
        before = declared_state_before(history, applied)
        after = _after(history, applied, before)
    replayed = replay_migration(before, file)
    wrong = errors_of(replayed.diagnostics)
    if wrong:
        return wrong, ()
    texts = (
        *_tables(before, after, replayed.wanted),
        *(f"the namespace {'.'.join(n)} is new" for n in replayed.namespaces - history.state.namespaces),
    )
    return (), texts


def _after(history: History, applied: AppliedVersion, before: DeclaredState) -> Mapping[TableName, Table]:
    """The tables after the version, from its undo record."""
    record = history.undo_record(applied.version)
    assert record is not None
    tables = dict(before.tables)
    for undo in record.tables:
        if undo.declared_before is not None:
            tables.pop(undo.declared_before, None)
    for undo in record.tables:
        if undo.declared_after is not None and undo.after is not None:
            tables[undo.declared_after] = undo.after
    return tables


def _tables(
    before: DeclaredState, after: Mapping[TableName, Table], wanted: Sequence[TableTarget]
) -> Iterator[str]:
    """The differences between the applied tables and those of the file."""
    now = dict(before.tables)
    formerly = {w.name: w.formerly for w in wanted}
    # Where no file asserts positions, the recorded order is that of the catalog.
    placed = {w.name for w in wanted if w.positions or (w.formerly is None and not w.adopt)}
    for w in wanted:
        if w.formerly is not None:
            now.pop(w.formerly, None)
    now |= {w.name: w.table for w in wanted if w.table is not None}
    for name in sorted({*after, *now}):
        old, new = after.get(name), now.get(name)
        yield from declared_differences(old, new, _DIFFERENCE_LABELS, ordered=name in placed, only=_ONE_SIDED)
        if old is not None and new is not None and old is not new:
            origin = formerly.get(name)
            base = before.tables.get(origin) if origin is not None else None
            yield from other_fields(base, old, new)
