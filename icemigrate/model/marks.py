"""The tags and branches that icemigrate puts on tables: their names, and how others' are told from them.

The names carry the project, so that equal versions of two projects never share one.  People may begin a name
of their own as ours begin: only the exact names are ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from icemigrate.model.table import Ref

_PREFIX = "icemigrate-"
OLDER_REFILL_BRANCH = f"{_PREFIX}refill"
"""The branch of refills as releases named it that left the project out of the name."""
FENCE_TAG = f"{_PREFIX}fence"
"""On REST catalogs: every commit asserts this tag, and a takeover moves it."""
_PROJECT = "([A-Za-z_][A-Za-z0-9_-]*-)?"
"""Releases before the project was a part of the names wrote them without it."""
_TAG = re.compile(re.escape(_PREFIX) + _PROJECT + "[0-9]{1,18}(-before(-[0-9]{1,9})?)?")
_BRANCH = re.compile(re.escape(_PREFIX) + _PROJECT + "([0-9]{1,18}-data|refill)(-[0-9a-f]{8})?")
_REFILL = re.compile(re.escape(_PREFIX) + _PROJECT + "refill(-[0-9a-f]{8})?")


def tag_name(project: str, version: str) -> str:
    """The tag under which a table reads with a migration's schema."""
    return f"{_PREFIX}{project}-{version}"


def before_tag_name(project: str, version: str) -> str:
    """The tag under which the rows are as they were before a migration."""
    return f"{tag_name(project, version)}-before"


def older_tag_names(version: str) -> tuple[str, str]:
    """Both tags as releases named them that left the project out of the names."""
    return f"{_PREFIX}{version}", f"{_PREFIX}{version}-before"


def before_tag_names(project: str, version: str, names: Iterable[str]) -> list[str]:
    """Those of the names that are tags of the rows before a migration, the newest first.

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
    """The branch on which one run writes values that come back, before it publishes them.

    :param run: the run's id; without one the branch is called as plans call it.
    """
    name = f"{_PREFIX}{project}-refill"
    return f"{name}-{run[:8]}" if run else name


def is_refill_branch(name: str) -> bool:
    """Whether a branch was made by a refill, of whatever project."""
    return _REFILL.fullmatch(name) is not None


def is_refill_branch_of(name: str, project: str) -> bool:
    """Whether a branch was made by any refill of a project."""
    own = refill_branch_name(project)
    return name in (own, OLDER_REFILL_BRANCH) or (is_own_branch(name) and name.startswith(f"{own}-"))


def is_branch_of(name: str, project: str, version: str) -> bool:
    """Whether a branch was made by any run of a migration, or by any refill of its project.

    Only the holder of the lock refills, so a refill's branch that another run meets is left of a dead one.
    """
    own = branch_name(project, version)
    is_data = name in (own, f"{_PREFIX}{version}-data") or (
        is_own_branch(name) and name.startswith(f"{own}-")
    )
    return is_data or is_refill_branch_of(name, project)


def is_own_tag(name: str) -> bool:
    """Whether a tag of this name is ours."""
    return _TAG.fullmatch(name) is not None


def is_own_branch(name: str) -> bool:
    """Whether a branch of this name is ours: of a run that goes on, or left by one that died."""
    return _BRANCH.fullmatch(name) is not None


def is_reserved(name: str) -> bool:
    """Whether a name is ours: tags and branches share their names, so nobody's else may have it as either."""
    return name == FENCE_TAG or is_own_tag(name) or is_own_branch(name)


def is_own(name: str, ref: Ref) -> bool:
    """Whether a reference is ours."""
    return is_own_tag(name) if ref.kind == "tag" else is_own_branch(name)
