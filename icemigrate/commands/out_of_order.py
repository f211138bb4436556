"""Checks files that are out of order for facts that they share with migrations applied before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import load_files, raise_if_errors
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.replay.declared_differences import declared_differences
from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import VersionState
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.undo_record import UndoRecord, declared_record
from icemigrate.planning.undo import find_blocking_migrations
from icemigrate.project.project_values import Project
from icemigrate.results.command_results import errors_besides_consents, errors_of


@dataclass(slots=True)
class OutOfOrderCheck:
    """Checks files out of order one by one; an accepted file counts as applied in the later checks.

    Two things are compared: the facts that each later applied migration touched (from its undo record), and
    the declared state after replay in the order of the numbers, as in an environment that begins empty, with
    the one in the order in which they would have been applied here.

    :param files: all files, the applied ones too; read when they are needed and not given.
    """

    project: Project
    history: History
    files: tuple[MigrationFile, ...] | None = None
    _state: DeclaredState | None = None
    _admitted: list[MigrationFile] = field(default_factory=list)

    def __call__(self, file: MigrationFile) -> str | None:
        """Why it is refused; ``None`` where it may be applied."""
        state = self.history.state if self._state is None else self._state
        replayed = replay_migration(state, file)
        wrong = errors_of(replayed.diagnostics)
        if wrong:
            return f"it does not fit the applied migrations: {wrong[0].message}"
        record = declared_record(file.version.text, replayed.wanted, state)
        reason = self._shared(file, record) or self._order(file)
        if reason is None:
            self._admitted.append(file)
            self._state = state.after_all((w.name, w.formerly, w.table) for w in replayed.wanted)
        return reason

    def _shared(self, file: MigrationFile, record: UndoRecord) -> str | None:
        """The facts that a later applied migration touches too."""
        later = [
            a for a in self.history.applied if a.version > file.version and a.state is VersionState.APPLIED
        ]
        records = []
        for applied in later:
            known = self.history.undo_record(applied.version)
            if known is None:
                return f"the history does not record what {applied.version} changed"
            records.append(known)
        found = find_blocking_migrations(record, records)
        if not found:
            return None
        listed = "; ".join(f"{b.version} ({', '.join(b.facts)})" for b in found)
        return f"a later migration changed the same facts: {listed}"

    def _order(self, file: MigrationFile) -> str | None:
        """Differences of the declared state from replay in the order of the numbers."""
        late = [*self._admitted, file]
        applied = [a for a in self.history.applied if a.state is VersionState.APPLIED]
        here = [a.version.number for a in sorted(applied, key=lambda a: (a.applied_at, a.version))]
        numbers = [*here, *(f.version.number for f in late)]
        one, other = self._declared(numbers), self._declared(sorted(numbers))
        if isinstance(one, str) or isinstance(other, str):
            return f"it does not fit the applied migrations: {one if isinstance(one, str) else other}"
        for name in sorted({*one.tables, *other.tables}):
            words = ("in this order", "elsewhere")
            found = declared_differences(one.tables.get(name), other.tables.get(name), words, ordered=False)
            if found:
                return f"the order matters: {found[0]}"
        return None

    def _declared(self, numbers: Iterable[int]) -> DeclaredState | str:
        """The declared state after replaying files in an order, or their errors."""
        files = {f.version.number: f for f in self._files()}
        rehearsed = plan_from_empty(self.project, [files[n] for n in numbers if n in files])
        wrong = errors_besides_consents(rehearsed.diagnostics)
        return wrong[0].message if wrong else rehearsed.state

    def _files(self) -> Sequence[MigrationFile]:
        """All files, the applied ones too, which a plan leaves unread."""
        if self.files is None:
            loaded = load_files(self.project)
            raise_if_errors(loaded.diagnostics)
            self.files = loaded.migrations
        return self.files
