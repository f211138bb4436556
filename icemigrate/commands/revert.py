"""``revert``: the migration that undoes another one, written as the next file."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.commands.list_templates import require_written_values
from icemigrate.commands.migration_draft import MigrationDraft, write_migration
from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import known_version, load_valid_files, raise_if_errors
from icemigrate.errors import UsageError
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.write.migration_entries import entry_between
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.kept_views import kept_views
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from icemigrate.planning.undo import UndoStates, declared_after_undo, fields_with_changed_type, retain_facts
from icemigrate.planning.undo.undo_inputs import moved_references
from icemigrate.project.project_values import Project
from icemigrate.results.command_results import RevertResult, errors_besides_consents


def revert(project: Project, version: str) -> RevertResult:
    """Write the next migration file, which undoes ``version``; reads only files.

    :raises UsageError: there is no such version, it left nothing to undo, or the file exists.
    :raises Mistakes: files have errors, or no migration can make the inverse changes.
    :raises IcemigrateError: the file cannot be written.
    """
    files = load_valid_files(project)
    number = known_version(files, version, "revert")
    file = next(f for f in files if f.version.number == number)
    matched = [f for f in files if f.templates and any(entry.match is not None for entry in file.tables)]
    require_written_values(
        [file, *matched],
        "revert",
        f"write the migration by hand, or run `icemigrate rollback --only {version}`",
    )
    before = _state(project, [f for f in files if f.version.number < number])
    after = _state(project, [f for f in files if f.version.number <= number])
    writer = _RevertWriter(before, after, _state(project, files))
    migration = next(p for p in plan_from_empty(project, files).plans if p.version == file.version.text)
    entries = [e for t in reversed(migration.tables) for e in writer.entries(t.formerly, t.declared)]
    writer.notes += [
        f"overwritten values of {t.declared} stay as they are: only `rollback` restores them"
        for t in migration.tables
        if any(work.overwrites for work in t.rows)
    ]
    if not entries:
        why = "; ".join(writer.notes) or "it changes no table"
        raise UsageError(f"revert {version}: nothing to write: {why}")
    title = f"Revert {file.version}: {file.description}" if file.description else f"Revert {file.version}"
    written = MigrationDraft(entries, title, f"revert {file.version}")
    path = write_migration(project, files, written, "no migration can undo it")
    return RevertResult(project.name, path, tuple(writer.notes))


def _state(project: Project, files: Sequence[MigrationFile]) -> DeclaredState:
    rehearsed = plan_from_empty(project, files)
    raise_if_errors(errors_besides_consents(rehearsed.diagnostics))
    return rehearsed.state


class _RevertWriter:
    """Entries that change the declared state to the one without the migration.

    :ivar notes: facts that no entry can restore.
    """

    def __init__(self, before: DeclaredState, after: DeclaredState, now: DeclaredState) -> None:
        self.before, self.after, self.now = before, after, now
        self.notes: list[str] = []

    def entries(self, formerly: TableName | None, declared: TableName) -> list[dict[str, object]]:
        """The entry about one table of the migration; none without a difference."""
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
        table = declared_after_undo(UndoStates(self._possible(old, new), new), current)
        if old.name != new.name:
            table = replace(table, name=old.name)
        if table == current:
            return []
        entry = entry_between(current, table)
        self._note_values(current, table, entry.get("restore_columns", ()))
        self._note_views(current, table, "keep_view" in entry)
        return [entry]

    def _note_views(self, current: Table, table: Table, are_dropped: bool) -> None:
        """Note which views stay or do not return: an entry drops all views of a table or none."""
        views, wanted = ({v.key: v for v in kept_views(t.properties)} for t in (current, table))
        for key, view in views.items():
            if key not in wanted and not are_dropped:
                name = format_path((view.name,))
                why = "`keep_view: null` would drop all views of the table"
                self.notes.append(f"view {name} of {table.name} stays: {why}")
        for key, view in wanted.items():
            if key not in views:
                name = format_path((view.name,))
                why = "only `rollback` creates it again"
                self.notes.append(f"view {name} of {table.name} does not return: {why}")

    def _note_values(self, current: Table, table: Table, restored: Sequence[str]) -> None:
        """Note which columns return with their values, and which are added again without them."""
        if restored:
            self.notes.append(
                f"values of {', '.join(restored)} of {table.name} return where data files still contain "
                "them; newer rows have none"
            )
        known = {f.id for _, f in current.schema.walk()}
        paths = (format_path(p) for p, f in table.schema.walk() if f.id not in known and len(p) == 1)
        if empty := [path for path in paths if path not in restored]:
            self.notes.append(
                f"{', '.join(empty)} of {table.name} is added again, empty: its values do not return"
            )

    def _made_again(self, old: Table | None) -> list[dict[str, object]]:
        if old is None or old.name in self.now.tables:
            return []
        self.notes.append(f"{old.name} is created again, empty; only `rollback` restores its rows")
        return [entry_between(None, replace(old, refs={}, dropped=(), location=None))]

    def _now(self, table: Table) -> Table | None:
        """The table declared after all migrations, under any name: fields keep their ids."""
        same = self.now.tables.get(table.name)
        if same is not None:
            return same
        ids = {f.id for _, f in table.schema.walk()}
        gone = [t for name, t in self.now.tables.items() if name not in self.after.tables]
        return next((t for t in gone if {f.id for _, f in t.schema.walk()} & ids), None)

    def _possible(self, old: Table, new: Table) -> Table:
        """The table before the migration, without facts that no migration can restore."""
        keys: list[tuple[str, ...]] = [("type", str(i)) for i in fields_with_changed_type(old, new)]
        for field_id in fields_with_changed_type(old, new):
            name = format_path(schema_index(new.schema)[field_id].path)
            self.notes.append(
                f"the type of {new.name}.{name} stays: only `rollback` can narrow it, "
                "until new data is written"
            )
        if old.format_version != new.format_version:
            keys.append(("format_version",))
            self.notes.append(
                f"format version {new.format_version} of {new.name} stays: Iceberg cannot downgrade it"
            )
        for name in moved_references(old, new):
            keys.append(("reference", name))
            self.notes.append(
                f"{new.refs[name].kind} {name} of {new.name} stays where it is: only `rollback` moves it back"
            )
        return retain_facts(old, new, keys)
