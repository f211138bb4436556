"""``revert``: the migration that undoes another one, written as the next file."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.app.offline import rehearse
from icemigrate.app.opening import as_mistakes, known_version, sound_files
from icemigrate.app.writing import Written, write_migration
from icemigrate.declare.author import entry_between
from icemigrate.declare.migration import MigrationFile
from icemigrate.errors import UsageError
from icemigrate.frozen import replace
from icemigrate.model.names import TableName, format_path
from icemigrate.model.schema import index
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.project.values import Project
from icemigrate.results import RevertResult, errors_of
from icemigrate.undo import Sides, declared_again, keep, narrowed


def revert(project: Project, version: str) -> RevertResult:
    """Write the next migration file, one that undoes ``version``; reads the files alone.

    :raises UsageError: there is no such version, it left nothing to undo, or the file exists.
    :raises Mistakes: files hold mistakes, or the inverse is none that a migration may make.
    :raises IcemigrateError: the file cannot be written.
    """
    files = sound_files(project)
    number = known_version(files, version, "revert")
    file = next(f for f in files if f.version.number == number)
    before = _state(project, [f for f in files if f.version.number < number])
    after = _state(project, [f for f in files if f.version.number <= number])
    writer = _Writer(before, after, _state(project, files))
    migration = next(p for p in rehearse(project, files).plans if p.version == file.version.text)
    entries = [e for t in reversed(migration.tables) for e in writer.entries(t.formerly, t.declared)]
    writer.notes += [
        f"the values of {t.declared} that were overwritten stay so: only `rollback` brings them back"
        for t in migration.tables
        if any(work.overwrites for work in t.rows)
    ]
    if not entries:
        why = "; ".join(writer.notes) or "it changes no table"
        raise UsageError(f"revert {version}: there is nothing to write: {why}")
    title = f"Revert {file.version}: {file.description}" if file.description else f"Revert {file.version}"
    written = Written(entries, title, f"revert {file.version}")
    path = write_migration(project, files, written, "no migration can undo it")
    return RevertResult(project.name, path, tuple(writer.notes))


def _state(project: Project, files: Sequence[MigrationFile]) -> State:
    rehearsed = rehearse(project, files)
    as_mistakes(tuple(d for d in errors_of(rehearsed.diagnostics) if d.code != "missing-allow"))
    return rehearsed.state


class _Writer:
    """Entries that lead from what is declared now to what is declared without the migration.

    :ivar notes: what no entry can bring back.
    """

    def __init__(self, before: State, after: State, now: State) -> None:
        self.before, self.after, self.now = before, after, now
        self.notes: list[str] = []

    def entries(self, formerly: TableName | None, declared: TableName) -> list[dict[str, object]]:
        """The entry about one table of the migration; none where there is nothing to do."""
        old = self.before.tables.get(formerly) if formerly is not None else None
        new = self.after.tables.get(declared)
        if new is None:
            return self._made_again(old)
        current = self._now(new)
        if current is None:
            self.notes.append(f"{declared} was dropped by a later migration")
            return []
        if old is None:
            return [entry_between(current, None)]
        table = declared_again(Sides(self._possible(old, new), new), current)
        if old.name != new.name:
            table = replace(table, name=old.name)
        return [] if table == current else [entry_between(current, table)]

    def _made_again(self, old: Table | None) -> list[dict[str, object]]:
        if old is None or old.name in self.now.tables:
            return []
        self.notes.append(f"{old.name} is made anew and empty; only `rollback` brings its rows back")
        return [entry_between(None, replace(old, refs={}, dropped=(), location=None))]

    def _now(self, table: Table) -> Table | None:
        """The table as declared after all migrations, whatever it is called then: fields keep their ids."""
        same = self.now.tables.get(table.name)
        if same is not None:
            return same
        ids = {f.id for _, f in table.schema.walk()}
        gone = [t for name, t in self.now.tables.items() if name not in self.after.tables]
        return next((t for t in gone if {f.id for _, f in t.schema.walk()} & ids), None)

    def _possible(self, old: Table, new: Table) -> Table:
        """The table before the migration, without what never goes back by a migration."""
        keys: list[tuple[str, ...]] = [("type", str(i)) for i in narrowed(old, new)]
        for field_id in narrowed(old, new):
            name = format_path(index(new.schema)[field_id].path)
            self.notes.append(
                f"the type of {name} stays: only `rollback` can narrow it, while no file was added"
            )
        if old.format_version != new.format_version:
            keys.append(("format_version",))
            self.notes.append(f"format version {new.format_version} stays: it never goes back")
        return keep(old, new, keys)
