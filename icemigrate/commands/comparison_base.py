"""The commit with which a change is compared: from the option, or from the CI service."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from icemigrate.frozen import Frozen

NO_BASE = "none"
"""The value of ``--git-base`` for no comparison."""


class GitBase(Frozen):
    """The base of a change.

    :param ref: a branch, tag or commit; the change begins at its merge base with the current commit.
    :param tip: the target branch, which may have moved; ``ref`` where it is the same.
    :param is_named: whether the user named it.  The base that CI names may be missing in the clone, which is
        no error.
    """

    ref: str
    tip: str
    is_named: bool = True


def chosen_base(option: str | None, environment: Mapping[str, str], folder: Path) -> GitBase | None:
    """The base that an option names, or else that of the CI's pull or merge request.

    GitHub sets ``GITHUB_BASE_REF`` for pull requests only; GitLab sets ``CI_MERGE_REQUEST_DIFF_BASE_SHA`` and
    ``CI_MERGE_REQUEST_TARGET_BRANCH_NAME`` for merge requests.  They are about the repository that was
    checked out, so a project outside of it has no base.
    """
    if option is not None:
        return None if option == NO_BASE else GitBase(option, option)
    if _is_within(folder, environment.get("GITHUB_WORKSPACE")):
        branch = environment.get("GITHUB_BASE_REF")
        if branch:
            return GitBase(f"origin/{branch}", f"origin/{branch}", is_named=False)
    if _is_within(folder, environment.get("CI_PROJECT_DIR")):
        target = environment.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
        begun_at = environment.get("CI_MERGE_REQUEST_DIFF_BASE_SHA")
        tip = f"origin/{target}" if target else begun_at
        if tip:
            return GitBase(begun_at or tip, tip, is_named=False)
    return None


def _is_within(folder: Path, top: str | None) -> bool:
    return bool(top) and folder.resolve().is_relative_to(Path(top or "").resolve())
