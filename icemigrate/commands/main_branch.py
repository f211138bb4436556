"""The main branch of a repository, and which of two files with one version is the new one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from icemigrate.errors import GitError
from icemigrate.files.migration_folder import ListedMigration, MigrationListing, VersionOrder, list_migrations
from icemigrate.project.project_values import Project
from icemigrate.system.repository_boundary import GIT_FOLDER
from icemigrate.vcs.git import GitRepository, open_repository

_REMOTE = ("origin/main", "origin/master")
_LOCAL = ("main", "master")


def main_branches(repository: GitRepository) -> Iterator[str]:
    """Candidates for the main branch, the most likely one first.

    The default branch of the remote comes first, then ``origin/main`` and ``origin/master``, then a local
    ``main`` or ``master`` that is not checked out.
    """
    of_remote = repository.symbolic("refs/remotes/origin/HEAD")
    for name in dict.fromkeys((*([of_remote] if of_remote else []), *_REMOTE)):
        if repository.commit(f"refs/remotes/{name}") is not None:
            yield name
    checked_out = repository.symbolic("HEAD")
    for name in _LOCAL:
        if name != checked_out and repository.commit(f"refs/heads/{name}") is not None:
            yield name


def is_main_checked_out(repository: GitRepository) -> bool:
    """Whether the checked-out branch is called as main branches are."""
    return repository.symbolic("HEAD") in _LOCAL


def list_files(project: Project, target: str | None = None) -> MigrationListing:
    """The migration files of a project; Git's history decides which of two with one version is the new one.

    :param target: the target branch of the change, if known.
    :raises IcemigrateError: the folder cannot be read.
    """
    return list_migrations(project.migrations_dir, project.top, order=version_order(project, target))


def version_order(project: Project, target: str | None = None) -> VersionOrder:
    """How files with one version are ordered: the one that others have comes first.

    The main branch decides.  A file that it has is older than one that it lacks, also in the middle of a
    merge.  Where it has none of them, the checked-out commit decides, unless one of the files came by a merge
    into another branch: then either may be the one that others have.

    :param target: see :func:`list_files`.
    """

    def order(files: Sequence[ListedMigration]) -> tuple[Sequence[ListedMigration], bool]:
        if not os.path.lexists(project.top / GIT_FOLDER):
            return files, True
        try:
            return _by_history(open_repository(project.migrations_dir, project.top), files, target)
        except GitError:
            return files, False

    return order


def _by_history(
    repository: GitRepository, files: Sequence[ListedMigration], target: str | None
) -> tuple[Sequence[ListedMigration], bool]:
    names = [file.path.name for file in files]
    targets = [*([target] if target else []), *main_branches(repository)]
    for ref in [*targets, *(["HEAD"] if is_main_checked_out(repository) else [])]:
        if (commit := repository.commit(ref)) is not None:
            added = repository.additions(commit, names)
            if added:
                return _oldest_first(files, list(added)), True
    added = {}
    for ref in ("HEAD", "MERGE_HEAD"):
        if (commit := repository.commit(ref)) is not None:
            added |= repository.additions(commit, names)
    is_merged = repository.commit("MERGE_HEAD") is not None or any(added.values())
    return _oldest_first(files, list(added)), len(added) < 2 or not is_merged


def _oldest_first(files: Sequence[ListedMigration], added: Sequence[str]) -> Sequence[ListedMigration]:
    """Sort files by the commits that added them; uncommitted ones come last."""
    return sorted(files, key=lambda f: added.index(f.path.name) if f.path.name in added else len(added))
