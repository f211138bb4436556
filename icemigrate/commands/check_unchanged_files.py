"""Leaves out findings of files that the main branch already has: their authors have seen them.

Without a base, only errors in those files are reported.  Findings of a comparison (such as an edited file)
are left to CI, because a committed file on a developer's machine may be unapplied and unfinished.  A taken
version is an error in both places.
"""

from __future__ import annotations

from collections.abc import Iterable

from icemigrate.commands.base_commit import contents_at, is_same
from icemigrate.commands.main_branch import is_main_checked_out, list_files, main_branches
from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.errors import GitError
from icemigrate.frozen import Frozen
from icemigrate.project.project_values import Project
from icemigrate.vcs.git import open_repository


class UnchangedFileFilter(Frozen):
    """The result of leaving out findings.

    :param reported: the findings that remain.
    :param count: number of findings that were left out.
    :param base: the branch that has their files; ``None`` where nothing was left out.
    """

    reported: tuple[Diagnostic, ...]
    count: int = 0
    base: str | None = None


def without_unchanged_files(project: Project, found: Iterable[Diagnostic]) -> UnchangedFileFilter:
    """The findings without those of migrations that the main branch has unchanged; all errors stay.

    All of them stay without Git, without a repository, or without a known main branch.
    """
    reported = tuple(found)
    if not any(_may_go(one) for one in reported):
        return UnchangedFileFilter(reported)
    base, old = unchanged_on_main(project)
    kept = tuple(one for one in reported if not (_may_go(one) and one.place and one.place.file in old))
    return UnchangedFileFilter(kept, len(reported) - len(kept), base if len(kept) < len(reported) else None)


def unchanged_on_main(project: Project) -> tuple[str | None, frozenset[str]]:
    """The main branch, and the migrations, as shown, that it has unchanged, as far as Git shows."""
    try:
        return _unchanged(project)
    except GitError:
        return None, frozenset()


def _may_go(diagnostic: Diagnostic) -> bool:
    return diagnostic.severity is not Severity.ERROR and diagnostic.place is not None


def _unchanged(project: Project) -> tuple[str | None, frozenset[str]]:
    """The main branch, and the migrations, as shown, that are unchanged since its merge base.

    :raises GitError: Git does not know it.
    """
    repository = open_repository(project.migrations_dir, project.top)
    base = next(main_branches(repository), None)
    if base is not None:
        fork = repository.merge_base(base, "HEAD")
    else:
        base = repository.symbolic("HEAD") if is_main_checked_out(repository) else None
        fork = None if base is None else repository.commit("HEAD")
    if fork is None:
        return None, frozenset()
    contents = contents_at(repository, fork)
    listing = list_files(project)
    here = (*listing.files, *listing.doubles)
    return base, frozenset(
        f.shown
        for f in here
        if f.path.name in contents and is_same(f.path, contents[f.path.name], project.top)
    )
