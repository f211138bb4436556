"""The properties that tables had when they were created or adopted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from icemigrate.catalog.capabilities import Capabilities, server_managed_predicate
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import VersionState
from icemigrate.history.undo_record_codec import TableUndoOutline


def original_property_predicate(
    capabilities: Capabilities, history: History
) -> Callable[[str | None, str, str], bool]:
    """Whether a table had a property when it was created or adopted, by its uuid, the key and the value.

    The first record of a table has it.  A squash removes that record; then what clients and the server set
    without being asked counts.  Records are read when the predicate is first called: few plans call it.
    """
    is_server_managed = server_managed_predicate(capabilities)

    @cache
    def first_records() -> Mapping[str, TableUndoOutline]:
        found: dict[str, TableUndoOutline] = {}
        for applied in sorted(history.applied, key=lambda a: a.applied_at):
            is_there = applied.state is VersionState.APPLIED
            outline = history.undo_outline(applied.version) if is_there else None
            for part in outline.tables if outline is not None else ():
                if (uuid := part.uuids[-1]) is not None:
                    found.setdefault(uuid, part)
        return found

    @cache
    def original(uuid: str) -> Mapping[str, str]:
        """The properties in a table's first record that no file declared."""
        part = first_records().get(uuid)
        undo = None if part is None else part.read()
        if undo is None or undo.actual_after is None:
            return {}
        declared = {} if undo.after is None else undo.after.properties
        return {k: v for k, v in undo.actual_after.properties.items() if k not in declared}

    def is_original(uuid: str | None, key: str, value: str) -> bool:
        return is_server_managed(key, value) or (uuid is not None and original(uuid).get(key) == value)

    return is_original
