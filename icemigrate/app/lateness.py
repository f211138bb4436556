"""Files that came late: whether one shares a fact with what was applied before its turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from icemigrate.app.offline import rehearse
from icemigrate.app.opening import as_mistakes, load_files
from icemigrate.declare.differences import differences
from icemigrate.declare.fold import fold
from icemigrate.declare.migration import MigrationFile
from icemigrate.history.properties import History
from icemigrate.model.sides import State
from icemigrate.model.undo_record import UndoRecord, declared_record
from icemigrate.project.values import Project
from icemigrate.results import errors_of
from icemigrate.undo import blockers


@dataclass(slots=True)
class Latecomers:
    """Asked about late files in order; those that may be applied are taken for applied from then on.

    Two things are held against a late file: the facts that each later applied migration touched (by its undo
    record), and what the files declare when folded in the order of their numbers, as an environment
    that begins empty does it, against the order in which they would have been applied here.

    :param files: all files, the applied ones too; read where they are needed and not given.
    """

    project: Project
    history: History
    files: tuple[MigrationFile, ...] | None = None
    _state: State | None = None
    _admitted: list[MigrationFile] = field(default_factory=list)

    def __call__(self, file: MigrationFile) -> str | None:
        """Why it is refused; ``None`` where it may be applied."""
        state = self.history.state if self._state is None else self._state
        folded = fold(state, file)
        wrong = errors_of(folded.diagnostics)
        if wrong:
            return f"it does not fit what is applied: {wrong[0].message}"
        record = declared_record(file.version.text, folded.wanted, state)
        reason = self._shared(file, record) or self._order(file)
        if reason is None:
            self._admitted.append(file)
            for wanted in folded.wanted:
                state = state.after(wanted.name, wanted.formerly, wanted.table)
            self._state = state
        return reason

    def _shared(self, file: MigrationFile, record: UndoRecord) -> str | None:
        """The facts that a later applied migration touches too."""
        later = [a for a in self.history.applied if a.version > file.version and a.standing == "applied"]
        records = []
        for applied in later:
            known = self.history.undo_record(applied.version)
            if known is None:
                return f"nothing is known of what {applied.version} touched"
            records.append(known)
        found = blockers(record, records)
        if not found:
            return None
        listed = "; ".join(f"{b.version} ({', '.join(b.facts)})" for b in found)
        return f"it touches what a later one touched: {listed}"

    def _order(self, file: MigrationFile) -> str | None:
        """What would be declared otherwise than where the files are applied in the order of their numbers."""
        late = [*self._admitted, file]
        applied = [a for a in self.history.applied if a.standing == "applied"]
        here = [a.version.number for a in sorted(applied, key=lambda a: (a.applied_at, a.version))]
        numbers = [*here, *(f.version.number for f in late)]
        one, other = self._declared(numbers), self._declared(sorted(numbers))
        if isinstance(one, str) or isinstance(other, str):
            return f"it does not fit what is applied: {one if isinstance(one, str) else other}"
        for name in sorted({*one.tables, *other.tables}):
            words = ("here it would be", "elsewhere")
            found = differences(one.tables.get(name), other.tables.get(name), words, ordered=False)
            if found:
                return f"the order matters: {found[0]}"
        return None

    def _declared(self, numbers: Iterable[int]) -> State | str:
        """What files declare in an order; or why they do not."""
        files = {f.version.number: f for f in self._files()}
        rehearsed = rehearse(self.project, [files[n] for n in numbers if n in files])
        wrong = [d for d in errors_of(rehearsed.diagnostics) if d.code != "missing-allow"]
        return wrong[0].message if wrong else rehearsed.state

    def _files(self) -> Sequence[MigrationFile]:
        """All files, the applied ones too, which a plan leaves unread."""
        if self.files is None:
            loaded = load_files(self.project)
            as_mistakes(loaded.diagnostics)
            self.files = loaded.migrations
        return self.files
