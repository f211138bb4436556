"""The tags and branches that icemigrate puts on tables: their names, and how others' are told from them.

People may begin a name of their own as ours begin: only the exact names are ours.
"""

from __future__ import annotations

import re

from icemigrate.model.table import Ref

_PREFIX = "icemigrate-"
REFILL_BRANCH = f"{_PREFIX}refill"
"""Where values that come back are written before they are published."""
_TAG = re.compile(re.escape(_PREFIX) + "[0-9]{1,18}(-before)?")
_BRANCH = re.compile(re.escape(_PREFIX) + "([0-9]{1,18}-data|refill)")


def tag_name(version: str) -> str:
    """The tag under which a table reads with a migration's schema."""
    return f"{_PREFIX}{version}"


def before_tag_name(version: str) -> str:
    """The tag under which the rows are as they were before a migration."""
    return f"{tag_name(version)}-before"


def branch_name(version: str) -> str:
    """The branch on which a migration writes rows."""
    return f"{_PREFIX}{version}-data"


def is_own_tag(name: str) -> bool:
    """Whether a tag of this name is ours."""
    return _TAG.fullmatch(name) is not None


def is_own_branch(name: str) -> bool:
    """Whether a branch of this name is ours: of a run that goes on, or left by one that died."""
    return _BRANCH.fullmatch(name) is not None


def is_reserved(name: str) -> bool:
    """Whether a name is ours: tags and branches share their names, so nobody's else may have it as either."""
    return is_own_tag(name) or is_own_branch(name)


def is_own(name: str, ref: Ref) -> bool:
    """Whether a reference is ours."""
    return is_own_tag(name) if ref.kind == "tag" else is_own_branch(name)
