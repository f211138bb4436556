"""Migration files handed to the planner, with what the fold says of them kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from icemigrate.app.findings import findings
from icemigrate.app.reserved import WhyReserved, nothing_reserved, without_reserved
from icemigrate.declare.fold import Folded, fold
from icemigrate.declare.migration import AnyFile, MigrationFile, TableEntry
from icemigrate.diagnostics import Diagnostic, sort_key
from icemigrate.model.names import TableName, format_path
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.plan import Consent, MigrationPlan
from icemigrate.planner import Pending


@dataclass(slots=True)
class Folding:
    """Folds files in order while they are planned, and collects every mistake.

    :param broken: tables that an earlier file was wrong about.
    :param are_checksums_read: whether anybody reads the plans' checksums, which take time.
    :param why_reserved: which tables no file may speak of.
    """

    said: list[Diagnostic] = field(default_factory=list)
    broken: frozenset[TableName] = frozenset()
    are_checksums_read: bool = True
    why_reserved: WhyReserved = nothing_reserved
    _files: dict[str, MigrationFile] = field(default_factory=dict)
    _entries: dict[str, Mapping[TableName, TableEntry]] = field(default_factory=dict)
    _before: dict[str, Mapping[TableName, Table]] = field(default_factory=dict)

    def pending(self, files: Iterable[MigrationFile]) -> tuple[Pending, ...]:
        """The files as the planner takes them."""
        return tuple(self._pending(file) for file in files)

    def _pending(self, file: MigrationFile) -> Pending:
        self._files[file.version.text] = file
        return Pending(
            version=file.version.text,
            description=title(file),
            checksum=file.checksum if self.are_checksums_read else "",
            consents=tuple(Consent(a.kind, a.scope) for a in file.allow),
            fold=lambda state: self._fold(state, file),
            fingerprint=file.fingerprint,
        )

    def _fold(self, state: State, file: MigrationFile) -> Folded:
        file, reserved = without_reserved(file, self.why_reserved)
        self.said.extend(reserved)
        folded = fold(state, file, self.broken)
        self.broken = folded.broken
        self.said.extend(folded.diagnostics)
        self.said.extend(_purges(folded))
        self._entries[file.version.text] = folded.entries
        known = ((w.name, state.tables.get(w.formerly)) for w in folded.wanted if w.formerly is not None)
        self._before[file.version.text] = {name: table for name, table in known if table is not None}
        return folded

    def file_of(self, plan: MigrationPlan) -> MigrationFile:
        """The file that a plan is made of."""
        return self._files[plan.version]

    def entries_of(self, plan: MigrationPlan) -> Mapping[TableName, TableEntry]:
        """The entry that each table's plan comes from."""
        return self._entries[plan.version]

    def before(self, plan: MigrationPlan) -> Mapping[TableName, Table]:
        """The tables as declared before a migration, by the names that they have after it."""
        return self._before[plan.version]

    def diagnostics(self, plans: Iterable[MigrationPlan]) -> tuple[Diagnostic, ...]:
        """What the fold said and what the plans have against themselves, in the order of showing."""
        found = list(self.said)
        for plan in plans:
            found.extend(findings(self._files[plan.version], self._entries[plan.version], plan))
        return tuple(sorted(dict.fromkeys(found), key=sort_key))


def title(file: AnyFile) -> str:
    """What a migration is for: its description, else the words of its file's name."""
    return file.description or file.name.replace("_", " ")


def _purges(folded: Folded) -> Iterator[Diagnostic]:
    """A drop that shall erase for good, which is refused rather than done by half."""
    for name, purges in folded.purges.items():
        for purge in purges:
            path = format_path(purge.path)
            yield Diagnostic(
                "purge-unsupported",
                f"`{path}` of `{name}` cannot be purged: erasing values from data files is not built yet",
                folded.entries[name].place_of(("drop_columns", path)),
                "leave `purge` away: the column is dropped, and its values stay in the files that hold them",
            )
