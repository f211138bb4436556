"""What a change under review adds: findings of its own files, and what it does to those that its base has.

The files on disk are held against those of the commit at which the change and its base parted; new ones also
against the tip of the base, which may have gone on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from icemigrate.app.findings import is_of_rule
from icemigrate.app.git_base import GitBase
from icemigrate.app.git_files import Base, BaseFile, is_same, read_base
from icemigrate.declare.checksum import short
from icemigrate.declare.files import FoundFile, Loaded, list_migrations, load_one
from icemigrate.declare.lock_file import FILE_NAME, STALE
from icemigrate.declare.migration import MigrationFile
from icemigrate.declare.replacing import covers
from icemigrate.declare.source import shown_path
from icemigrate.diagnostics import Diagnostic, Place, Severity
from icemigrate.frozen import Frozen, replace
from icemigrate.project.values import Project


class Review(Frozen):
    """What a change adds.

    :param told: what is to be told of it.
    :param new: its migrations, by their files as shown: those that are new and those that were edited.
    """

    told: tuple[Diagnostic, ...]
    new: frozenset[str]


Judge = Callable[[Project, Loaded], Iterable[Diagnostic]]
"""All that is found in files."""


def reviewed(
    project: Project, base: GitBase, loaded: Loaded, found: Iterable[Diagnostic], judge: Judge
) -> Review:
    """What is to be told of a change: its own findings, and those that the base does not have.

    A mistake that the base has already is told as such, since nothing can be applied with it; what rules have
    against the base's files is no matter of this change.

    :param found: what ``judge`` finds in the files on disk.
    :raises GitError: Git cannot tell what the base is.
    """
    change = _Change(project, read_base(project, base, loaded.migrations), loaded)
    taken = change.taken
    doubled = {one.new.version for one in taken}
    of_doubles = {file.shown for file in change.now if file.version in doubled}
    edited = {one.now.shown for one in change.edits}
    told = (
        *(one.diagnostic for one in change.edits),
        *change.deletions(),
        *(one.diagnostic(change.base.ref) for one in taken),
        *_told(_unsaid(found, of_doubles, edited), change, judge),
    )
    return Review(told, change.new)


def _unsaid(found: Iterable[Diagnostic], doubles: set[str], edited: set[str]) -> Iterator[Diagnostic]:
    """Leave out what the comparison says better: whose version is taken, and which files were edited.

    An edited file is to be brought back, and no lock file renewed for it.
    """
    said = {"duplicate-version": doubles, STALE: edited}
    for diagnostic in found:
        place = diagnostic.place
        if place is None or place.file not in said.get(diagnostic.code, ()):
            yield diagnostic


def _told(found: Iterable[Diagnostic], change: _Change, judge: Judge) -> Iterator[Diagnostic]:
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
        elif diagnostic.severity is Severity.ERROR and not is_of_rule(diagnostic):
            yield replace(diagnostic, message=f"in the base already: {diagnostic.message}")


class _Edit(Frozen):
    """A migration that the base has, and that says something else now."""

    now: FoundFile
    diagnostic: Diagnostic


class _Taken(Frozen):
    """A new file, and the file of the base that has its version."""

    new: FoundFile
    by: BaseFile
    is_here: bool

    def diagnostic(self, ref: str) -> Diagnostic:
        name = self.by.file.path.name
        rebase = f"`icemigrate rebase {self.new.shown}` gives this file the next number"
        return Diagnostic(
            "version-taken",
            f"version {self.new.version} is taken already in `{ref}`, by `{name}`",
            Place(self.new.shown),
            rebase if self.is_here else f"merge `{ref}` into this branch, then {rebase}",
        )


class _Change:
    """The files on disk beside those of the base.

    :ivar now: all files that are migrations by their name, those with a version that another has too.
    :ivar judged: files, as shown, that are judged in the base too.
    """

    def __init__(self, project: Project, base: Base, loaded: Loaded) -> None:
        self.project, self.base = project, base
        listing = list_migrations(project.migrations_dir, project.top)
        self.now: tuple[FoundFile, ...] = (*listing.files, *listing.doubles)
        self.judged = {*(file.shown for file in self.now), shown_path(project.migrations_dir / FILE_NAME)}
        self._read = {file.path: file for file in loaded.migrations}

    @cached_property
    def _pairs(self) -> tuple[tuple[BaseFile, FoundFile | None], ...]:
        """Each migration of the base with the file that it is now, under another name perhaps."""
        here = {file.path.name: file for file in self.now}
        others = {f.version: f for f in self.now if f.path.name not in self.base.contents}
        return tuple(
            (one, here.get(one.file.path.name) or others.get(one.file.version)) for one in self.base.files
        )

    @cached_property
    def _new(self) -> tuple[FoundFile, ...]:
        old = {now.shown for _, now in self._pairs if now is not None}
        return tuple(file for file in self.now if file.shown not in old)

    @property
    def new(self) -> frozenset[str]:
        """The files of migrations that the base does not have as they are."""
        return frozenset((*(f.shown for f in self._new), *(one.now.shown for one in self.edits)))

    def _migration(self, file: FoundFile) -> MigrationFile | None:
        known = self._read.get(file.shown)
        return known if known is not None else load_one(file, self.project.lists).migration

    @cached_property
    def untouched(self) -> frozenset[str]:
        """Files, as shown, that say in the base what they say now."""
        folder = self.project.migrations_dir
        edited = {one.now.shown for one in self.edits}
        same = (
            n for n, content in self.base.contents.items() if is_same(folder / n, content, self.project.top)
        )
        return frozenset(shown_path(folder / name) for name in same) - edited

    @cached_property
    def edits(self) -> tuple[_Edit, ...]:
        """Migrations that say something else now: comments are no edit, nor is mending a broken file."""
        found = []
        for one, now in self._pairs:
            was, is_ = one.read.migration, self._migration(now) if now is not None else None
            if now is None or was is None or is_ is None or was.checksum == is_.checksum:
                continue
            if is_.replaces is None or not covers(is_.replaces, was):
                found.append(_Edit(now, self._edited(one, was, is_)))
        return tuple(found)

    def _edited(self, one: BaseFile, was: MigrationFile, now: MigrationFile) -> Diagnostic:
        name = one.file.path.name
        path = self.project.migrations_dir / name
        same = is_same(path, self.base.contents[name], self.project.top)
        how = f"through the lists of {self.project.file}" if same else self._restored(one)
        return Diagnostic(
            "edited-migration",
            f"{one.file.version} is in `{self.base.ref}` and says something else now: "
            f"checksum {short(was.checksum)} there, {short(now.checksum)} here",
            Place(now.path),
            f"{how}; what is new goes into a new migration",
        )

    def _restored(self, one: BaseFile) -> str:
        return f"bring it back (`git checkout {self.base.commit[:12]} -- {one.file.shown}`)"

    def deletions(self) -> Iterator[Diagnostic]:
        """Migrations of the base that are gone, but for those that a squash stands for as they were."""
        squashes = [m for m in self._read.values() if m.replaces is not None]
        for one, now in self._pairs:
            if now is None and not any(_stands_for(squash, one) for squash in squashes):
                yield Diagnostic(
                    "deleted-migration",
                    f"{one.file.version} is in `{self.base.ref}`, and its file is gone",
                    Place(one.file.shown),
                    f"{self._restored(one)}; `icemigrate revert {one.file.version}` writes the migration "
                    "that undoes it, `icemigrate squash` one that stands for several",
                )

    @cached_property
    def taken(self) -> tuple[_Taken, ...]:
        """New files whose version another file of the base has, here or on its branch by now."""
        here = [one for one, now in self._pairs if now is not None]
        found = []
        for new in self._new:
            by = next((one for one in here if one.file.version == new.version), None)
            if by is not None:
                found.append(_Taken(new, by, is_here=True))
            elif (late := self._newer(new)) is not None:
                found.append(_Taken(new, late, is_here=False))
        return tuple(found)

    def _newer(self, new: FoundFile) -> BaseFile | None:
        """A file that the base has got since under the version of a new one; the same one does not count."""
        for one in self.base.newer:
            if one.file.version == new.version:
                was, is_ = one.read.migration, self._migration(new)
                if was is None or is_ is None or was.checksum != is_.checksum:
                    return one
        return None


def _stands_for(squash: MigrationFile, one: BaseFile) -> bool:
    was = one.read.migration
    if squash.replaces is None or was is None or not covers(squash.replaces, was):
        return False
    listed = dict(squash.replaces.versions)
    return not listed or listed.get(was.version) == was.checksum
