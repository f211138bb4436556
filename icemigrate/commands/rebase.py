"""``rebase``: gives the next numbers to files that are out of order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from icemigrate.commands.check_unchanged_files import unchanged_on_main
from icemigrate.commands.edited_files import EditedMigration, colliding_files
from icemigrate.commands.lock_file_checks import update_lock_file
from icemigrate.commands.main_branch import list_files
from icemigrate.commands.out_of_order import OutOfOrderCheck
from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import load_files, raise_if_errors
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import IcemigrateError, UsageError, os_error_reason
from icemigrate.execution.environment_session import open_environment
from icemigrate.files.migration_folder import ListedMigration, LoadedMigrations, load_one
from icemigrate.files.parse.source_text import shown_path
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.version_number import Version, number_of
from icemigrate.files.write.scaffold import renumbered_file_name
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_properties import History
from icemigrate.history.migration_states import migration_states
from icemigrate.project import Project
from icemigrate.results.command_results import RebaseResult, RenamedFile, errors_of
from icemigrate.system.file_writes import rename_inside


def rebase(project: Project, chosen: Sequence[str] = (), environment: str | None = None) -> RebaseResult:
    """Renumber files by renaming them; their content stays, so version control sees a rename.

    Reads the history; starts no JVM.

    :param chosen: versions or files; by default those that are out of order and cannot be applied, and those
        whose number another file has.
    :raises UsageError: there is no such file, it is applied, or a squash.
    :raises Mistakes: files have errors, or other files need the one where it is.
    :raises IcemigrateError: a file cannot be renamed.
    """
    loaded = load_files(project)
    listing = list_files(project)
    raise_if_errors(tuple(d for d in loaded.diagnostics if d.code != "duplicate-version"))
    doubles = _read(project, listing.doubles)
    with open_environment(project, environment) as session:
        history = session.history()
        work = _RebaseRun(project, history, loaded, doubles, listing.unclear)
        files = work.choose(chosen)
        notes = tuple(_shared(project, files)) if files else ()
        return RebaseResult(project.name, session.environment.name, work.rename(files), notes)


def _shared(project: Project, chosen: Sequence[MigrationFile]) -> Iterator[str]:
    """Notes about other projects' references to the old numbers."""
    main, theirs = unchanged_on_main(project)
    for file in chosen:
        if file.path in theirs:
            yield (
                f"`{main}` already has `{file.path}`: environments that applied {file.version} will "
                "report it as missing; rename it back, unless it was applied nowhere"
            )


class _RebaseRun(Frozen):
    """The files to renumber, and the others.

    :param doubles: files whose number an older file in ``loaded`` has.
    :param unclear: numbers whose older file is unknown.
    """

    project: Project
    history: History
    loaded: LoadedMigrations
    doubles: tuple[MigrationFile, ...]
    unclear: frozenset[Version] = frozenset()

    @property
    def files(self) -> tuple[MigrationFile, ...]:
        return (*self.loaded.migrations, *self.doubles)

    def choose(self, texts: Sequence[str]) -> list[MigrationFile]:
        """The chosen files, in the order of their versions."""
        if texts:
            found = [self._named(text) for text in texts]
        else:
            late = OutOfOrderCheck(self.project, self.history, self.loaded.migrations)
            states = migration_states(
                self.loaded.migrations, self.history.applied, self.history.intents, out_of_order=late
            )
            paths = {f.path for f in states.late}
            found = [f for f in self.loaded.migrations if f.path in paths]
            found += [self._other(double) for double in self.doubles]
            if not found and (others := colliding_files(self.history, self.loaded.migrations)):
                raise _collision(others[0])
        unique = {f.path: f for f in found}
        return sorted(unique.values(), key=lambda f: (f.version, f.path))

    def _other(self, double: MigrationFile) -> MigrationFile:
        """The newer one of two files with the same number; the one that was applied is the older one.

        :raises UsageError: neither history shows which one it is.
        """
        first = next(f for f in self.loaded.migrations if f.version == double.version)
        is_first_applied, is_double_applied = self._is_applied(first), self._is_applied(double)
        if is_first_applied == is_double_applied and double.version in self.unclear:
            names = f"`{Path(first.path).name}` or `{Path(double.path).name}`"
            raise UsageError(
                f"{double.version}: Git does not show which of two files is the newer one",
                f"name the one to renumber, {names}: `icemigrate rebase {Path(double.path).name}`",
            )
        return first if is_double_applied and not is_first_applied else double

    def _named(self, text: str) -> MigrationFile:
        found = [f for f in self.files if text in (f.path, Path(f.path).name)]
        if not found and (number := number_of(text)) is not None:
            found = [f for f in self.files if f.version.number == number]
        if len(found) > 1:
            raise UsageError(
                f"{text}: several files have this version",
                f"name one of them: {', '.join(f.path for f in found)}",
            )
        if not found:
            raise UsageError(
                f"{text}: no migration has this version or file name",
                "`icemigrate status` lists the migrations",
            )
        (file,) = found
        self._refuse(text, file)
        return file

    def _refuse(self, text: str, file: MigrationFile) -> None:
        known = self.history.of(file.version)
        if known is not None and (file not in self.doubles or self._is_applied(file)):
            if others := colliding_files(self.history, [file]):
                raise _collision(others[0])
            state = known.state.text
            raise UsageError(
                f"{text}: {file.version} is {state}, and the history refers to it by its version",
                "only a file that was never applied can be renumbered",
            )
        if file.replaces is not None:
            raise UsageError(
                f"{text}: {file.version} is a squash",
                "it has the version of the last file that it replaces",
            )

    def _is_applied(self, file: MigrationFile) -> bool:
        known = self.history.of(file.version)
        return known is not None and known.checksum == file.checksum

    def rename(self, chosen: Sequence[MigrationFile]) -> tuple[RenamedFile, ...]:
        """Rename the files, once it is seen that all of them still fit."""
        now = datetime.now(timezone.utc)
        taken = [f.version for f in self.files] + [a.version for a in self.history.applied]
        moves: list[tuple[MigrationFile, MigrationFile]] = []
        for file in chosen:
            name = renumbered_file_name(file.path, taken, now)
            version = Version.parse(name.partition("_")[0])
            taken.append(version)
            path = shown_path(self.project.migrations_dir / name)
            moves.append((file, replace(file, version=version, path=path)))
        self._refuse_unfit(moves)
        for old, new in moves:
            _move(self.project, Path(old.path).name, Path(new.path).name)
        if moves:
            names = [[Path(file.path).name for file in side] for side in zip(*moves, strict=True)]
            update_lock_file(self.project, written=names[1], removed=names[0])
        return tuple(RenamedFile(old.path, new.path) for old, new in moves)

    def _refuse_unfit(self, moves: Sequence[tuple[MigrationFile, MigrationFile]]) -> None:
        """Refuse renames after which the files are invalid.

        :raises Mistakes: with the errors of `check` that are new.
        """
        old = {move[0].path for move in moves}
        after = sorted([f for f in self.files if f.path not in old] + [m[1] for m in moves], key=_version)
        # An error about another file may now be about this one, in the same words.
        was = {new.path: old.path for old, new in moves}
        before = plan_from_empty(self.project, sorted(self.files, key=_version)).diagnostics
        reported = {(d.place.file if d.place else "", d.message) for d in before}
        found = errors_of(plan_from_empty(self.project, after).diagnostics)
        wrong = [(d, d.place.file if d.place else "") for d in found]
        raise_if_errors(
            tuple(_unfit(d) for d, path in wrong if (was.get(path, path), d.message) not in reported)
        )


def _collision(found: EditedMigration) -> UsageError:
    """The refusal where only Git shows whether a file is new or an edited applied file."""
    return UsageError(
        f"{found.file.path}: {found.cause}",
        "merge the branch that has the other file, then run `icemigrate rebase` again: it renumbers this one",
    )


def _version(file: MigrationFile) -> Version:
    return file.version


def _unfit(found: Diagnostic) -> Diagnostic:
    return replace(
        found,
        message=f"the renumbered files would not fit together: {found.message}",
        hint="nothing was renamed; where a file uses a name that has changed by then, edit it and "
        "rebase again; or renumber dependent files together: `icemigrate rebase A B`",
    )


def _read(project: Project, doubles: Sequence[ListedMigration]) -> tuple[MigrationFile, ...]:
    read = [load_one(file, project.lists) for file in doubles]
    raise_if_errors(tuple(d for r in read for d in r.diagnostics))
    return tuple(r.migration for r in read if r.migration is not None)


def _move(project: Project, old: str, new: str) -> None:
    try:
        rename_inside(project.migrations_dir, old, new, project.top)
    except OSError as error:
        raise IcemigrateError(f"`{old}` cannot be renamed to `{new}`: {os_error_reason(error)}") from error
