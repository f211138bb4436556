"""Names of the tags and branches that icemigrate creates, and how to recognize them.

The names contain the project, so that equal versions of two projects never share one.  A user's name may
begin with the same words: only the exact names are icemigrate's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from icemigrate.iceberg.table import Ref

_PREFIX = "icemigrate-"
OLDER_REFILL_BRANCH = f"{_PREFIX}refill"
"""The branch of refills in older releases, whose names did not contain the project."""
FENCE_TAG = f"{_PREFIX}fence"
"""On REST catalogs: every commit asserts this tag, and a takeover moves it."""
_PROJECT = "([A-Za-z_][A-Za-z0-9_-]*-)?"
"""Releases before the project was a part of the names wrote them without it."""
_TAG_END = "[0-9]{1,18}(-(before|released)(-[0-9]{1,9})?)?"
_BRANCH_END = "([0-9]{1,18}-data|refill|maintain)(-[0-9a-f]{8})?"
_TAG = re.compile(re.escape(_PREFIX) + _PROJECT + _TAG_END)
_BRANCH = re.compile(re.escape(_PREFIX) + _PROJECT + _BRANCH_END)
_RUN = re.compile("[0-9a-f]{8}")
_REFILL = re.compile(re.escape(_PREFIX) + _PROJECT + "refill(-[0-9a-f]{8})?")


def tag_name(project: str, version: str) -> str:
    """The tag under which a table reads with a migration's schema."""
    return f"{_PREFIX}{project}-{version}"


def before_tag_name(project: str, version: str) -> str:
    """The tag under which the rows are as they were before a migration."""
    return f"{tag_name(project, version)}-before"


def released_tag_name(project: str, version: str, number: int) -> str:
    """The tag of a snapshot that a branch or a tag pointed to before the migration moved or dropped it."""
    first = f"{tag_name(project, version)}-released"
    return first if number == 1 else f"{first}-{number}"


def is_released_tag_of(name: str, project: str, version: str) -> bool:
    """Whether a name is one of :func:`released_tag_name`."""
    return _number(name, released_tag_name(project, version, 1)) > 0


def older_tag_names(version: str) -> tuple[str, str]:
    """Both tags in older releases, whose names did not contain the project."""
    return f"{_PREFIX}{version}", f"{_PREFIX}{version}-before"


def before_tag_names(project: str, version: str, names: Iterable[str]) -> list[str]:
    """The tags of rows before a migration among the names, the newest first.

    There are several where values depend on an earlier one, which does not move then.
    """
    first = before_tag_name(project, version)
    numbered = {name: _number(name, first) for name in names}
    return sorted((n for n, number in numbered.items() if number), key=lambda n: -numbered[n])


def numbered_before_tag(project: str, version: str, number: int) -> str:
    """The tag of the rows before the first, the second … run of a migration."""
    first = before_tag_name(project, version)
    return first if number == 1 else f"{first}-{number}"


def _number(name: str, first: str) -> int:
    """Which one of a migration's tags a name is, from 1; 0 where it is none."""
    if name == first:
        return 1
    rest = name.removeprefix(f"{first}-")
    return int(rest) if rest != name and rest.isdecimal() and rest.isascii() and rest[0] != "0" else 0


def branch_name(project: str, version: str) -> str:
    """The branch on which a migration writes rows."""
    return f"{tag_name(project, version)}-data"


def run_branch_name(project: str, version: str, run: str) -> str:
    """The branch on which one run of a migration writes rows: no other run writes to it.

    :param run: the run's id; without one the branch is called as plans call it.
    """
    return f"{branch_name(project, version)}-{run[:8]}" if run else branch_name(project, version)


def refill_branch_name(project: str, run: str = "") -> str:
    """The branch on which one run writes restored values, before it publishes them.

    :param run: the run's id; without one, the name of the branch in plans.
    """
    name = f"{_PREFIX}{project}-refill"
    return f"{name}-{run[:8]}" if run else name


def maintain_branch_name(project: str, run: str) -> str:
    """The branch on which one run of ``maintain`` deletes rows, before it publishes the deletion.

    :param run: the run's id.
    """
    return f"{_PREFIX}{project}-maintain-{run[:8]}"


def is_maintain_branch_of(name: str, project: str) -> bool:
    """Whether a branch was made by any ``maintain`` of a project."""
    return _is_of_a_run(name, f"{_PREFIX}{project}-maintain")


def is_refill_branch(name: str) -> bool:
    """Whether a refill of any project created the branch."""
    return _REFILL.fullmatch(name) is not None


def is_refill_branch_of(name: str, project: str) -> bool:
    """Whether a branch was made by any refill of a project."""
    own = refill_branch_name(project)
    return name in (own, OLDER_REFILL_BRANCH) or _is_of_a_run(name, own)


def is_branch_of(name: str, project: str, version: str) -> bool:
    """Whether a run of a migration, or a refill or ``maintain`` of its project, created the branch.

    Only the holder of the lock creates the last two, so one that exists in another run was left by a dead
    run.
    """
    own = branch_name(project, version)
    is_data = name in (own, f"{_PREFIX}{version}-data") or _is_of_a_run(name, own)
    return is_data or is_refill_branch_of(name, project) or is_maintain_branch_of(name, project)


def _is_of_a_run(name: str, first: str) -> bool:
    """Whether a name has the id of a run after the first words, and nothing else.

    The name of another project may begin with the same words.
    """
    rest = name.removeprefix(f"{first}-")
    return rest != name and _RUN.fullmatch(rest) is not None


def is_icemigrate_tag(name: str) -> bool:
    """Whether a tag with this name is icemigrate's."""
    return _TAG.fullmatch(name) is not None


def is_icemigrate_branch(name: str) -> bool:
    """Whether a branch with this name is icemigrate's: of an active run, or left by a dead one."""
    return _BRANCH.fullmatch(name) is not None


def is_reserved(name: str) -> bool:
    """Whether a name is reserved for icemigrate; tags and branches share one namespace."""
    return name == FENCE_TAG or is_icemigrate_tag(name) or is_icemigrate_branch(name)


def is_icemigrate_ref(name: str, ref: Ref) -> bool:
    """Whether a reference is icemigrate's."""
    return is_icemigrate_tag(name) if ref.kind == "tag" else is_icemigrate_branch(name)


def is_ref_of(name: str, ref: Ref, project: str) -> bool:
    """Whether a reference is icemigrate's, and of this project: ``market`` has none of ``market-eu``."""
    end = _TAG_END if ref.kind == "tag" else _BRANCH_END
    return re.fullmatch(re.escape(f"{_PREFIX}{project}-") + end, name) is not None
