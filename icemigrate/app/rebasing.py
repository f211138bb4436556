"""``rebase``: files that came late get the next numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from icemigrate.app.lateness import Latecomers
from icemigrate.app.lock_file import keep_lock
from icemigrate.app.offline import rehearse
from icemigrate.app.older import unchanged_on_main
from icemigrate.app.opening import as_mistakes, load_files
from icemigrate.app.standing import standing
from icemigrate.app.world import opened
from icemigrate.declare.files import FoundFile, Loaded, list_migrations, load_one
from icemigrate.declare.migration import MigrationFile
from icemigrate.declare.scaffold import renumbered
from icemigrate.declare.source import shown_path
from icemigrate.declare.version import Version
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import IcemigrateError, UsageError, why
from icemigrate.files.writing import rename_inside
from icemigrate.frozen import Frozen, replace
from icemigrate.history.properties import History
from icemigrate.project import Project
from icemigrate.results import RebaseResult, Renamed, errors_of


def rebase(project: Project, chosen: Sequence[str] = (), environment: str | None = None) -> RebaseResult:
    """Renumber files by renaming them; what they hold stays as it is, so version control sees a rename.

    Reads the history; starts no JVM.

    :param chosen: versions or files; without any, those that came late and cannot be applied as they are,
        and those whose number another file has.
    :raises UsageError: there is no such file, it is applied, or a squash.
    :raises Mistakes: files hold mistakes, or other files need the one where it is.
    :raises IcemigrateError: a file cannot be renamed.
    """
    loaded = load_files(project)
    listing = list_migrations(project.migrations_dir, project.top)
    as_mistakes(tuple(d for d in loaded.diagnostics if d.code != "duplicate-version"))
    doubles = _read(project, listing.doubles)
    with opened(project, environment) as world:
        history = world.history()
        work = _Work(project, history, loaded, doubles)
        files = work.choose(chosen)
        notes = tuple(_shared(project, files)) if files else ()
        return RebaseResult(project.name, world.environment.name, work.rename(files), notes)


def _shared(project: Project, chosen: Sequence[MigrationFile]) -> Iterator[str]:
    """What is to be said of files that others have by their number."""
    main, theirs = unchanged_on_main(project)
    for file in chosen:
        if file.path in theirs:
            yield (
                f"`{main}` has `{file.path}` as it is: where {file.version} was applied from there, it will "
                "be missing; rename it back, unless you know that it was applied nowhere"
            )


class _Work(Frozen):
    """Files that are to be renumbered, and the others.

    :param doubles: files whose number another file in ``loaded`` has.
    """

    project: Project
    history: History
    loaded: Loaded
    doubles: tuple[MigrationFile, ...]

    @property
    def files(self) -> tuple[MigrationFile, ...]:
        return (*self.loaded.migrations, *self.doubles)

    def choose(self, texts: Sequence[str]) -> list[MigrationFile]:
        """The files that are meant, in the order of their versions."""
        if texts:
            found = [self._named(text) for text in texts]
        else:
            late = Latecomers(self.project, self.history, self.loaded.migrations)
            stands = standing(
                self.loaded.migrations, self.history.applied, self.history.intents, lateness=late
            )
            paths = {f.path for f in stands.late}
            found = [f for f in self.loaded.migrations if f.path in paths]
            found += [self._other(double) for double in self.doubles]
        unique = {f.path: f for f in found}
        return sorted(unique.values(), key=lambda f: (f.version, f.path))

    def _other(self, double: MigrationFile) -> MigrationFile:
        """Which of two files with the same number is to move: not the one that was applied."""
        first = next(f for f in self.loaded.migrations if f.version == double.version)
        return first if self._is_applied(double) and not self._is_applied(first) else double

    def _named(self, text: str) -> MigrationFile:
        found = [f for f in self.files if text in (f.path, Path(f.path).name)]
        if not found and text.isascii() and text.isdigit():
            found = [f for f in self.files if f.version.number == int(text)]
        if len(found) > 1:
            raise UsageError(
                f"{text}: several files have this number", f"name one: {', '.join(f.path for f in found)}"
            )
        if not found:
            raise UsageError(
                f"{text}: no migration has this version or this file", "`icemigrate status` shows them"
            )
        (file,) = found
        self._refuse(text, file)
        return file

    def _refuse(self, text: str, file: MigrationFile) -> None:
        known = self.history.of(file.version)
        if known is not None and (file not in self.doubles or self._is_applied(file)):
            state = {"held": "rolled back"}.get(known.standing, known.standing)
            raise UsageError(
                f"{text}: {file.version} is {state}; the history knows it by its number",
                "only a file that was never applied can be renumbered",
            )
        if file.replaces is not None:
            raise UsageError(
                f"{text}: {file.version} is a squash",
                "it has the number of the last file that it stands for",
            )

    def _is_applied(self, file: MigrationFile) -> bool:
        known = self.history.of(file.version)
        return known is not None and known.checksum == file.checksum

    def rename(self, chosen: Sequence[MigrationFile]) -> tuple[Renamed, ...]:
        """Rename the files, once it is seen that all of them still fit."""
        now = datetime.now(timezone.utc)
        taken = [f.version for f in self.files] + [a.version for a in self.history.applied]
        moves: list[tuple[MigrationFile, MigrationFile]] = []
        for file in chosen:
            name = renumbered(file.path, taken, now)
            version = Version.parse(name.partition("_")[0])
            taken.append(version)
            path = shown_path(self.project.migrations_dir / name)
            moves.append((file, replace(file, version=version, path=path)))
        self._refuse_unfit(moves)
        for old, new in moves:
            _move(self.project, Path(old.path).name, Path(new.path).name)
        if moves:
            names = [[Path(file.path).name for file in side] for side in zip(*moves, strict=True)]
            keep_lock(self.project, written=names[1], removed=names[0])
        return tuple(Renamed(old.path, new.path) for old, new in moves)

    def _refuse_unfit(self, moves: Sequence[tuple[MigrationFile, MigrationFile]]) -> None:
        """Refuse a renaming after which the files do not fit any more.

        :raises Mistakes: with what `check` would say, but for what it says already.
        """
        old = {move[0].path for move in moves}
        after = sorted([f for f in self.files if f.path not in old] + [m[1] for m in moves], key=_version)
        # What another file lacked may be what this one lacks now, in the same words.
        was = {new.path: old.path for old, new in moves}
        before = rehearse(self.project, sorted(self.files, key=_version)).diagnostics
        told = {(d.place.file if d.place else "", d.message) for d in before}
        found = errors_of(rehearse(self.project, after).diagnostics)
        wrong = [(d, d.place.file if d.place else "") for d in found]
        as_mistakes(tuple(_unfit(d) for d, path in wrong if (was.get(path, path), d.message) not in told))


def _version(file: MigrationFile) -> Version:
    return file.version


def _unfit(found: Diagnostic) -> Diagnostic:
    return replace(
        found,
        message=f"the files would not fit any more: {found.message}",
        hint="nothing was renamed; edit a file that names what has another name by then, to the names that "
        "it meets there, and rebase again; or name all files that belong together: `icemigrate rebase A B`",
    )


def _read(project: Project, doubles: Sequence[FoundFile]) -> tuple[MigrationFile, ...]:
    read = [load_one(file, project.lists) for file in doubles]
    as_mistakes(tuple(d for r in read for d in r.diagnostics))
    return tuple(r.migration for r in read if r.migration is not None)


def _move(project: Project, old: str, new: str) -> None:
    try:
        rename_inside(project.migrations_dir, old, new, project.top)
    except OSError as error:
        raise IcemigrateError(f"`{old}` cannot be renamed to `{new}`: {why(error)}") from error
