"""How rows of a table are changed: files are written anew, or what is gone is noted ("Write properties")."""

from __future__ import annotations

from collections.abc import Mapping

DELETE_MODE = "write.delete.mode"
UPDATE_MODE = "write.update.mode"
MERGE_MODE = "write.merge.mode"

COPY_ON_WRITE = "copy-on-write"
MERGE_ON_READ = "merge-on-read"


def leaves_files(properties: Mapping[str, str]) -> bool:
    """Whether an ``UPDATE`` leaves the files of a table that has these properties, and notes what is gone."""
    return properties.get(UPDATE_MODE, "").lower() == MERGE_ON_READ
