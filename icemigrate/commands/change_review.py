"""Findings that a change under review adds: of its own files, and of its effect on files of its base.

The files on disk are compared with those of the merge base of the change and its target; new files also with
the tip of the target branch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from icemigrate.commands.base_commit import BaseCommit, CommittedMigration, is_same, read_base_commit
from icemigrate.commands.comparison_base import GitBase
from icemigrate.commands.main_branch import list_files, main_branches
from icemigrate.diagnostics import Diagnostic, FilePosition, Severity
from icemigrate.errors import GitError
from icemigrate.files.checksum import short_checksum
from icemigrate.files.lock_file import FILE_NAME, STALE
from icemigrate.files.migration_folder import ListedMigration, LoadedMigrations, load_one
from icemigrate.files.parse.source_text import shown_path
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.read.squashed_files import is_in_squash_range
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen, replace
from icemigrate.planning.replay import is_rule_finding
from icemigrate.project.project_values import Project
from icemigrate.vcs.git import open_repository


class ChangeReview(Frozen):
    """The findings that a change adds.

    :param reported: the findings to report.
    :param new: its new and edited migrations, by their files as shown.
    """

    reported: tuple[Diagnostic, ...]
    new: frozenset[str]


FileValidator = Callable[[Project, LoadedMigrations], Iterable[Diagnostic]]
"""All findings of files."""


def review_change(
    project: Project,
    base: GitBase,
    loaded: LoadedMigrations,
    found: Iterable[Diagnostic],
    judge: FileValidator,
) -> ChangeReview:
    """Findings of a change that its base does not have.

    An error that the base already has is reported as such, because it prevents any apply; findings of rules
    in the base's files are not reported.

    :param found: the findings of ``judge`` for the files on disk.
    :raises GitError: Git cannot find the base.
    """
    change = _ReviewedFiles(project, read_base_commit(project, base, loaded.migrations), loaded)
    taken = change.taken
    doubled = {one.new.version for one in taken}
    of_doubles = {file.shown for file in change.now if file.version in doubled}
    edited = {one.now.shown for one in change.edits}
    reported = (
        *(one.diagnostic for one in change.edits),
        *change.deletions(),
        *(one.diagnostic(change.base.ref) for one in change.moves),
        *(one.diagnostic(change.base.ref) for one in taken),
        *_change_findings(_unsaid(found, of_doubles, edited), change, judge),
    )
    return ChangeReview(reported, change.new)


def versions_taken_on_main(project: Project, loaded: LoadedMigrations) -> tuple[Diagnostic, ...]:
    """Errors of new files whose version the main branch has got since the checked-out branch left it.

    None where Git does not know the main branch, or not all of it.
    """
    try:
        repository = open_repository(project.migrations_dir, project.top)
        main = next(main_branches(repository), None)
        if main is None or repository.merge_base(main, "HEAD") == repository.commit(main):
            return ()
        base = read_base_commit(project, GitBase(main, main), loaded.migrations)
    except GitError:
        return ()
    taken = _ReviewedFiles(project, base, loaded).taken
    # Two files on disk with one version are reported already.
    return tuple(
        one.diagnostic(main) for one in taken if not one.is_here and one.new.version not in loaded.doubles
    )


def _unsaid(found: Iterable[Diagnostic], doubles: set[str], edited: set[str]) -> Iterator[Diagnostic]:
    """Remove findings that the comparison reports better: taken versions and edited files.

    An edited file must be restored, and not get a new line in the lock file.
    """
    said = {"duplicate-version": doubles, STALE: edited}
    for diagnostic in found:
        place = diagnostic.place
        if place is None or place.file not in said.get(diagnostic.code, ()):
            yield diagnostic


def _change_findings(
    found: Iterable[Diagnostic], change: _ReviewedFiles, judge: FileValidator
) -> Iterator[Diagnostic]:
    known: frozenset[Diagnostic] | None = None
    for diagnostic in found:
        place = diagnostic.place
        if place is None or place.file not in change.untouched:
            yield diagnostic
            continue
        if known is None:
            project = dataclasses.replace(change.project, lists=change.base.lists)
            known = frozenset(judge(project, change.base.loaded()))
        if diagnostic not in known and place.file in change.judged:
            # An old file that is wrong only now: the change is to blame.
            yield diagnostic
        elif diagnostic.severity is Severity.ERROR and not is_rule_finding(diagnostic):
            yield replace(diagnostic, message=f"already in the base: {diagnostic.message}")


class _EditedFile(Frozen):
    """A migration of the base with other content now."""

    now: ListedMigration
    diagnostic: Diagnostic


class _MovedFile(Frozen):
    """A migration of the base, and the file that has its content now under another version."""

    was: CommittedMigration
    now: ListedMigration
    namesake: ListedMigration | None

    def diagnostic(self, ref: str) -> Diagnostic:
        old = self.was.file
        back = f"rename it back: `git mv {self.now.shown} {old.shown}`"
        if self.namesake is not None:
            back += f", then run `icemigrate rebase {self.namesake.shown}`"
        return Diagnostic(
            "renumbered-migration",
            f"this file is version {old.version} in `{ref}` (`{old.path.name}`), and environments may have "
            "applied it under that version",
            FilePosition(self.now.shown),
            back,
        )


class _TakenVersion(Frozen):
    """A new file, and the file of the base that has its version."""

    new: ListedMigration
    by: CommittedMigration
    is_here: bool

    def diagnostic(self, ref: str) -> Diagnostic:
        name = self.by.file.path.name
        rebase = f"`icemigrate rebase {self.new.shown}` renumbers this file"
        return Diagnostic(
            "version-taken",
            f"version {self.new.version} is already taken in `{ref}`, by `{name}`",
            FilePosition(self.new.shown),
            rebase if self.is_here else f"merge `{ref}` into this branch, then {rebase}",
        )


class _ReviewedFiles:
    """The files on disk beside those of the base.

    :ivar now: all migration files, also those whose version another one has. :ivar judged: files, as shown,
        that are checked in the base too.
    """

    def __init__(self, project: Project, base: BaseCommit, loaded: LoadedMigrations) -> None:
        self.project, self.base = project, base
        listing = list_files(project)
        self.now: tuple[ListedMigration, ...] = (*listing.files, *listing.doubles)
        self.judged = {*(file.shown for file in self.now), shown_path(project.migrations_dir / FILE_NAME)}
        self._read = {file.path: file for file in loaded.migrations}

    @cached_property
    def _pairs(self) -> tuple[tuple[CommittedMigration, ListedMigration | None], ...]:
        """Each migration of the base with the file that it is now, under another name perhaps."""
        here = {file.path.name: file for file in self.now}
        others = {f.version: f for f in self.now if f.path.name not in self.base.contents}
        moved = {one.was.file.path.name: one.now for one in self.moves}

        def present(name: str, version: Version) -> ListedMigration | None:
            return here.get(name) or moved.get(name) or others.get(version)

        return tuple((one, present(one.file.path.name, one.file.version)) for one in self.base.files)

    @cached_property
    def moves(self) -> tuple[_MovedFile, ...]:
        """Migrations of the base whose content is in a file with another version."""
        names = {file.path.name for file in self.now}
        gone = [one for one in self.base.files if one.file.path.name not in names and one.read.migration]
        if not gone:
            return ()
        new = [file for file in self.now if file.path.name not in self.base.contents]
        versions = {file.version: file for file in new}
        by_checksum = {m.checksum: file for file in new if (m := self._migration(file)) is not None}
        found = []
        for one in gone:
            now = by_checksum.get(one.read.migration.checksum) if one.read.migration else None
            if now is not None and now.version != one.file.version:
                found.append(_MovedFile(one, now, versions.get(one.file.version)))
        return tuple(found)

    @cached_property
    def _new(self) -> tuple[ListedMigration, ...]:
        old = {now.shown for _, now in self._pairs if now is not None}
        return tuple(file for file in self.now if file.shown not in old)

    @property
    def new(self) -> frozenset[str]:
        """The files of migrations that the base does not have as they are."""
        return frozenset((*(f.shown for f in self._new), *(one.now.shown for one in self.edits)))

    def _migration(self, file: ListedMigration) -> MigrationFile | None:
        known = self._read.get(file.shown)
        return known if known is not None else load_one(file, self.project.lists).migration

    @cached_property
    def untouched(self) -> frozenset[str]:
        """Files, as shown, with the same content in the base."""
        folder = self.project.migrations_dir
        edited = {one.now.shown for one in self.edits}
        same = (
            n for n, content in self.base.contents.items() if is_same(folder / n, content, self.project.top)
        )
        return frozenset(shown_path(folder / name) for name in same) - edited

    @cached_property
    def edits(self) -> tuple[_EditedFile, ...]:
        """Migrations with other content: changed comments are not an edit, nor is fixing an invalid file."""
        found = []
        for one, now in self._pairs:
            was, is_ = one.read.migration, self._migration(now) if now is not None else None
            if now is None or was is None or is_ is None or was.checksum == is_.checksum:
                continue
            if is_.replaces is None or not is_in_squash_range(is_.replaces, was):
                found.append(_EditedFile(now, self._edited(one, was, is_)))
        return tuple(found)

    def _edited(self, one: CommittedMigration, was: MigrationFile, now: MigrationFile) -> Diagnostic:
        name = one.file.path.name
        path = self.project.migrations_dir / name
        same = is_same(path, self.base.contents[name], self.project.top)
        how = f"the lists in {self.project.file} changed it" if same else self._restored(one)
        return Diagnostic(
            "edited-migration",
            f"{one.file.version} is in `{self.base.ref}`, but its content has changed: checksum "
            f"{short_checksum(was.checksum)} there, {short_checksum(now.checksum)} here",
            FilePosition(now.path),
            f"{how}, and put new changes into a new migration, unless every environment that applied it "
            "has rolled it back",
        )

    def _restored(self, one: CommittedMigration) -> str:
        return f"restore it (`git checkout {self.base.commit[:12]} -- {one.file.shown}`)"

    def deletions(self) -> Iterator[Diagnostic]:
        """Migrations of the base that are gone, except for those that a squash replaces unchanged."""
        squashes = [m for m in self._read.values() if m.replaces is not None]
        for one, now in self._pairs:
            if now is None and not any(_is_covered_by(squash, one) for squash in squashes):
                yield Diagnostic(
                    "deleted-migration",
                    f"{one.file.version} is in `{self.base.ref}`, but its file is missing",
                    FilePosition(one.file.shown),
                    f"{self._restored(one)}; `icemigrate revert {one.file.version}` writes a migration "
                    "that undoes it, `icemigrate squash` one that replaces several; where it is rolled "
                    f"back, `icemigrate repair --abandon {one.file.version}` gives it up",
                )

    @cached_property
    def taken(self) -> tuple[_TakenVersion, ...]:
        """New files whose version another file of the base has, at the merge base or on its tip."""
        here = [one for one, now in self._pairs if now is not None]
        found = []
        for new in self._new:
            by = next((one for one in here if one.file.version == new.version), None)
            if by is not None:
                found.append(_TakenVersion(new, by, is_here=True))
            elif (late := self._newer(new)) is not None:
                found.append(_TakenVersion(new, late, is_here=False))
        return tuple(found)

    def _newer(self, new: ListedMigration) -> CommittedMigration | None:
        """A file that the base has got since under the version of a new one; the same one does not count."""
        for one in self.base.newer:
            if one.file.version == new.version:
                was, is_ = one.read.migration, self._migration(new)
                if was is None or is_ is None or was.checksum != is_.checksum:
                    return one
        return None


def _is_covered_by(squash: MigrationFile, one: CommittedMigration) -> bool:
    was = one.read.migration
    if squash.replaces is None or was is None or not is_in_squash_range(squash.replaces, was):
        return False
    listed = dict(squash.replaces.versions)
    return not listed or listed.get(was.version) == was.checksum
