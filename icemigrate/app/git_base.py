"""Which commit a change is compared with: what the user named, or what the CI service says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from icemigrate.frozen import Frozen

NONE = "none"
"""What is given for ``--git-base`` to compare with nothing."""


class GitBase(Frozen):
    """Where a change begins.

    :param ref: a branch, tag or commit; the change begins where it and the present commit parted.
    :param tip: a branch that may have gone on since; ``ref`` where it is the same.
    :param is_named: whether the user named it.  What CI says may not be in the clone, which is no mistake.
    """

    ref: str
    tip: str
    is_named: bool = True


def chosen_base(option: str | None, environment: Mapping[str, str], folder: Path) -> GitBase | None:
    """The base that an option names, else the one of the pull or merge request that CI works on.

    GitHub sets ``GITHUB_BASE_REF`` for pull requests alone; GitLab sets
    ``CI_MERGE_REQUEST_DIFF_BASE_SHA`` and ``CI_MERGE_REQUEST_TARGET_BRANCH_NAME`` for merge requests.  They
    speak of the repository that was checked out, so that a project outside of it has none.
    """
    if option is not None:
        return None if option == NONE else GitBase(option, option)
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
