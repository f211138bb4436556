"""The migrations of a Git commit that a change is compared with, read as if they were on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from icemigrate.commands.comparison_base import NO_BASE, GitBase
from icemigrate.errors import GitError
from icemigrate.files.checksum import fingerprint
from icemigrate.files.migration_folder import (
    ListedMigration,
    LoadedMigrations,
    named_as_migration,
    read_content,
)
from icemigrate.files.parse.source_text import SourceText, decode_source
from icemigrate.files.read.for_each import Lists
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.read.migration_reader import MigrationReadResult
from icemigrate.frozen import Frozen
from icemigrate.project.project_reader import read_project
from icemigrate.project.project_values import Project
from icemigrate.system.file_reads import open_inside
from icemigrate.vcs.git import FETCH_HINT, GitRepository, open_repository


class CommittedMigration(Frozen):
    """A migration as a commit has it."""

    file: ListedMigration
    read: MigrationReadResult


class BaseCommit(Frozen):
    """The state at which a change began.

    :param ref: the name that the user or CI gave.
    :param commit: the merge base of the change and ``ref``.
    :param contents: every file of the migrations folder there, by its name.
    :param files: migration files by name, in order; two may have the same version.
    :param lists: of the project file there.
    :param newer: migrations that ``ref`` has added or changed since ``commit``.
    """

    ref: str
    commit: str
    contents: Mapping[str, bytes]
    files: tuple[CommittedMigration, ...]
    lists: Lists
    newer: tuple[CommittedMigration, ...]

    def loaded(self) -> LoadedMigrations:
        """Its migrations as if they had been loaded from disk."""
        firsts: dict[int, CommittedMigration] = {}
        for one in self.files:
            firsts.setdefault(one.file.version.number, one)
        reads = [(one.file.version, one.read) for one in firsts.values()]
        return LoadedMigrations(
            tuple(read.migration for _, read in reads if read.migration is not None),
            tuple(found for _, read in reads for found in read.diagnostics),
            tuple(version for version, read in reads if read.migration is None),
        )


def read_base_commit(project: Project, base: GitBase, present: Iterable[MigrationFile]) -> BaseCommit:
    """Read a base.

    :param present: migrations on disk; equal ones are not read twice.
    :raises GitError: Git cannot find the base, or does not have all of it.
    """
    repository = open_repository(project.migrations_dir, project.top)
    fork, tip = _commits(repository, base)
    lists = _lists(project, fork)
    known = {(file.path, file.fingerprint): file for file in present}
    contents = contents_at(repository, fork)

    def read(given: Mapping[str, bytes]) -> tuple[CommittedMigration, ...]:
        named = (
            (named_as_migration(project.migrations_dir, name, project.top), given[name]) for name in given
        )
        found = [
            CommittedMigration(file, _read(file, content)) for file, content in named if file is not None
        ]
        return tuple(sorted(found, key=lambda one: (one.file.version, one.file.shown)))

    def _read(file: ListedMigration, content: bytes) -> MigrationReadResult:
        same = known.get((file.shown, fingerprint(content, lists)))
        return MigrationReadResult(same, ()) if same is not None else read_content(file, content, lists)

    newer = {} if tip == fork else contents_at(repository, tip)
    return BaseCommit(
        base.ref,
        fork,
        contents,
        read(contents),
        lists,
        read({name: content for name, content in newer.items() if contents.get(name) != content}),
    )


def _commits(repository: GitRepository, base: GitBase) -> tuple[str, str]:
    """Where the change began, and where its base is now."""
    head = repository.commit("HEAD")
    if head is None:
        raise GitError("this repository has no commit to compare with", _OFF)
    begun_at = repository.commit(base.ref) or (repository.commit(base.tip) if not base.is_named else None)
    if begun_at is None:
        raise GitError(
            f"this clone has no commit, branch or tag `{base.ref}`",
            FETCH_HINT if repository.is_shallow else f"fetch it, or name another one; {_OFF}",
        )
    fork = repository.merge_base(begun_at, head)
    if fork is None:
        why = "the clone is shallow" if repository.is_shallow else "they have no common ancestor"
        hint = FETCH_HINT if repository.is_shallow else _OFF
        raise GitError(f"git cannot find where this change branched off `{base.ref}`: {why}", hint)
    return fork, repository.commit(base.tip) or begun_at


_OFF = f"`--git-base {NO_BASE}` turns the comparison off"


def contents_at(repository: GitRepository, commit: str) -> dict[str, bytes]:
    """Every file directly in the repository's folder at a commit, by its name.

    :raises GitError: Git does not have it.
    """
    names = repository.files(commit)
    contents = repository.contents(names.values())
    return {name: contents[of] for name, of in names.items()}


def is_same(path: Path, content: bytes, top: Path) -> bool:
    """Whether a file on disk equals the one in Git, apart from line breaks, which Git may have converted."""
    try:
        with open_inside(path, top) as stream:
            return _one_kind_of_break(stream.read(2 * len(content) + 1)) == _one_kind_of_break(content)
    except OSError:
        return False


def _one_kind_of_break(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n")


def _lists(project: Project, commit: str) -> Lists:
    """The lists of the project file at a commit; the current ones where those are unknown."""
    if project.file is None:
        return {}
    path = Path(project.file).absolute()
    repository = open_repository(path.parent, project.top)
    if repository.commit(commit) is None:
        return project.lists
    name = repository.files(commit).get(path.name)
    if name is None:
        return {}
    source = decode_source(repository.contents([name])[name], project.file)
    read = read_project(source, project.root).project if isinstance(source, SourceText) else None
    return project.lists if read is None else read.lists
