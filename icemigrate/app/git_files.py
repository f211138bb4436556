"""The migrations of a base, read from Git as if they stood on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from icemigrate.app.git_base import NONE, GitBase
from icemigrate.declare.checksum import fingerprint
from icemigrate.declare.expand import Lists
from icemigrate.declare.files import FoundFile, Loaded, named_as_migration, read_content
from icemigrate.declare.migration import MigrationFile
from icemigrate.declare.reading import Read
from icemigrate.declare.source import Source, decode
from icemigrate.errors import GitError
from icemigrate.files.reading import open_inside
from icemigrate.frozen import Frozen
from icemigrate.git import FETCH_HINT, Repository, open_repository
from icemigrate.project.reading import read_project
from icemigrate.project.values import Project


class BaseFile(Frozen):
    """A migration as a commit has it."""

    file: FoundFile
    read: Read


class Base(Frozen):
    """What the change began with.

    :param ref: as the user or CI calls it.
    :param commit: where the change and ``ref`` parted.
    :param contents: every file of the migrations folder there, by its name.
    :param files: those that are migrations by their name, in order; two may have the same version.
    :param lists: of the project file there.
    :param newer: migrations that the base has got since, or has in another state than at ``commit``.
    """

    ref: str
    commit: str
    contents: Mapping[str, bytes]
    files: tuple[BaseFile, ...]
    lists: Lists
    newer: tuple[BaseFile, ...]

    def loaded(self) -> Loaded:
        """Its migrations as if they had been loaded from disk."""
        firsts: dict[int, BaseFile] = {}
        for one in self.files:
            firsts.setdefault(one.file.version.number, one)
        reads = [(one.file.version, one.read) for one in firsts.values()]
        return Loaded(
            tuple(read.migration for _, read in reads if read.migration is not None),
            tuple(found for _, read in reads for found in read.diagnostics),
            tuple(version for version, read in reads if read.migration is None),
        )


def read_base(project: Project, base: GitBase, present: Iterable[MigrationFile]) -> Base:
    """Read a base.

    :param present: migrations on disk; those that are the same in the base are not read twice.
    :raises GitError: Git cannot tell what the base is, or does not have all of it.
    """
    repository = open_repository(project.migrations_dir, project.top)
    fork, tip = _commits(repository, base)
    lists = _lists(project, fork)
    known = {(file.path, file.fingerprint): file for file in present}
    contents = contents_at(repository, fork)

    def read(given: Mapping[str, bytes]) -> tuple[BaseFile, ...]:
        named = (
            (named_as_migration(project.migrations_dir, name, project.top), given[name]) for name in given
        )
        found = [BaseFile(file, _read(file, content)) for file, content in named if file is not None]
        return tuple(sorted(found, key=lambda one: (one.file.version, one.file.shown)))

    def _read(file: FoundFile, content: bytes) -> Read:
        same = known.get((file.shown, fingerprint(content, lists)))
        return Read(same, ()) if same is not None else read_content(file, content, lists)

    newer = {} if tip == fork else contents_at(repository, tip)
    return Base(
        base.ref,
        fork,
        contents,
        read(contents),
        lists,
        read({name: content for name, content in newer.items() if contents.get(name) != content}),
    )


def _commits(repository: Repository, base: GitBase) -> tuple[str, str]:
    """Where the change began, and where its base is now."""
    head = repository.commit("HEAD")
    if head is None:
        raise GitError("there is no commit here yet, so that nothing can be compared with it", _OFF)
    begun_at = repository.commit(base.ref) or (repository.commit(base.tip) if not base.is_named else None)
    if begun_at is None:
        raise GitError(
            f"git knows no commit `{base.ref}` here",
            FETCH_HINT if repository.is_shallow else f"fetch it, or name another one; {_OFF}",
        )
    fork = repository.merge_base(begun_at, head)
    if fork is None:
        why = "the clone is shallow" if repository.is_shallow else "they have no commit in common"
        hint = FETCH_HINT if repository.is_shallow else _OFF
        raise GitError(f"git cannot tell where this change and `{base.ref}` parted: {why}", hint)
    return fork, repository.commit(base.tip) or begun_at


_OFF = f"`--git-base {NONE}` compares with nothing"


def contents_at(repository: Repository, commit: str) -> dict[str, bytes]:
    """Every file right in the repository's folder at a commit, by its name.

    :raises GitError: Git does not have it.
    """
    names = repository.files(commit)
    contents = repository.contents(names.values())
    return {name: contents[of] for name, of in names.items()}


def is_same(path: Path, content: bytes, top: Path) -> bool:
    """Whether a file on disk holds what Git has, but for line breaks, which Git may have converted."""
    try:
        with open_inside(path, top) as stream:
            return _one_kind_of_break(stream.read(2 * len(content) + 1)) == _one_kind_of_break(content)
    except OSError:
        return False


def _one_kind_of_break(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n")


def _lists(project: Project, commit: str) -> Lists:
    """The lists of the project file as a commit has it; those of now where they cannot be known."""
    if project.file is None:
        return {}
    path = Path(project.file).absolute()
    repository = open_repository(path.parent, project.top)
    if repository.commit(commit) is None:
        return project.lists
    name = repository.files(commit).get(path.name)
    if name is None:
        return {}
    source = decode(repository.contents([name])[name], project.file)
    read = read_project(source, project.root).project if isinstance(source, Source) else None
    return project.lists if read is None else read.lists
