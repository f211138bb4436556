"""Findings of files that are on the main branch already: who works on the next one has read them before.

Where nobody says what a change is compared with, only errors are held against those files.  What a comparison
would add (a file that was edited, a version that is taken) is for CI to tell, since on one's own machine a
file that is committed may well be unapplied and still in the making.
"""

from __future__ import annotations

from collections.abc import Iterable

from icemigrate.app.git_files import contents_at, is_same
from icemigrate.declare.files import list_migrations
from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.errors import GitError
from icemigrate.frozen import Frozen
from icemigrate.git import Repository, open_repository
from icemigrate.project.values import Project

_REMOTE = ("origin/main", "origin/master")
_LOCAL = ("main", "master")


class Older(Frozen):
    """What was left out.

    :param told: the findings that are left.
    :param count: how many were left out.
    :param base: the branch whose files they are about; ``None`` where nothing was left out.
    """

    told: tuple[Diagnostic, ...]
    count: int = 0
    base: str | None = None


def without_older(project: Project, found: Iterable[Diagnostic]) -> Older:
    """The findings without those of migrations that the main branch has as they are; all errors stay.

    All of them stay where there is no Git, no repository, or no other branch that is known as the main one.
    """
    told = tuple(found)
    if not any(_may_go(one) for one in told):
        return Older(told)
    base, old = unchanged_on_main(project)
    kept = tuple(one for one in told if not (_may_go(one) and one.place and one.place.file in old))
    return Older(kept, len(told) - len(kept), base if len(kept) < len(told) else None)


def unchanged_on_main(project: Project) -> tuple[str | None, frozenset[str]]:
    """The main branch, and the migrations, as shown, that it has as they are, as far as Git tells."""
    try:
        return _unchanged(project)
    except GitError:
        return None, frozenset()


def _may_go(diagnostic: Diagnostic) -> bool:
    return diagnostic.severity is not Severity.ERROR and diagnostic.place is not None


def _unchanged(project: Project) -> tuple[str | None, frozenset[str]]:
    """The main branch, and the migrations, as shown, that say the same where this branch left it.

    :raises GitError: Git does not tell.
    """
    repository = open_repository(project.migrations_dir, project.top)
    base = _main_branch(repository)
    fork = None if base is None else repository.merge_base(base, "HEAD")
    if fork is None:
        return None, frozenset()
    contents = contents_at(repository, fork)
    listing = list_migrations(project.migrations_dir, project.top)
    here = (*listing.files, *listing.doubles)
    return base, frozenset(
        f.shown
        for f in here
        if f.path.name in contents and is_same(f.path, contents[f.path.name], project.top)
    )


def _main_branch(repository: Repository) -> str | None:
    """The branch that others go by: that of the remote, else a local one that is not the one at work."""
    of_remote = repository.symbolic("refs/remotes/origin/HEAD")
    for name in (*([of_remote] if of_remote else []), *_REMOTE):
        if repository.commit(f"refs/remotes/{name}") is not None:
            return name
    at_work = repository.symbolic("HEAD")
    others = (name for name in _LOCAL if name != at_work)
    return next((name for name in others if repository.commit(f"refs/heads/{name}") is not None), None)
