"""How rows of a table are changed: files are written anew, or what is gone is noted ("Write properties")."""

from __future__ import annotations

DELETE_MODE = "write.delete.mode"
UPDATE_MODE = "write.update.mode"
MERGE_MODE = "write.merge.mode"

COPY_ON_WRITE = "copy-on-write"
MERGE_ON_READ = "merge-on-read"
