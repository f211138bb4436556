"""The capabilities of a kind of catalog, as text."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.catalog.capabilities import Capabilities
from icemigrate.results.command_results import CapabilityStatus

# Name, text for catalogs with it, and text for catalogs without it.
_WORDS: tuple[tuple[str, str, str], ...] = (
    (
        "compare_and_swap",
        "concurrent commits are detected: the second one fails; the lock and every migration rely on this",
        "a commit can overwrite a concurrent one: let no other client change tables while migrations run",
    ),
    (
        "atomic_rename",
        "renaming a table is atomic",
        "renaming a table is not atomic, or concurrent renames can both succeed: let no "
        "client write to a table while it is renamed",
    ),
    (
        "renames_across_namespaces",
        "tables can move between namespaces: a dropped table waits in the trash and can be restored",
        "tables cannot move between namespaces: a dropped table cannot go to the trash",
    ),
    (
        "tags",
        "each migration tags its tables, so the rows at that version can be read",
        "tags stop the catalog's own snapshot expiry: set `record: history` in the environment",
    ),
    (
        "branches",
        "rows are written on a branch and published when all checks pass",
        "a branch stops the catalog's own snapshot expiry: `backfill` and `retype` are refused",
    ),
    (
        "drop_keeps_files",
        "a table dropped by hand leaves its files and can be registered again",
        "a table dropped by hand loses its files: drop tables with migrations, which use the trash",
    ),
    (
        "namespace_drop_keeps_files",
        "undoing a migration drops the namespaces that it created, if they are empty",
        "undoing a migration does not drop the namespaces that it created: dropping one can delete files",
    ),
    (
        "registers",
        "a table can be registered from a metadata file",
        "a table cannot be registered from a metadata file",
    ),
    (
        "registering_keeps_uuid",
        "a registered table keeps its UUID, so the history recognizes it",
        "a registered table can get a new UUID, which the history does not recognize: restore it by a rename",
    ),
    (
        "multi_table_commit",
        "several tables can be committed together, unless `apply_with: spark` is set",
        "each table is committed separately: readers can see one table changed before the next",
    ),
    (
        "views",
        "views are read: `plan` names the views that a change breaks",
        "views are not read: `plan` does not name the views that a change breaks",
    ),
    (
        "nested_namespaces",
        "namespaces can be nested",
        "namespaces have one level: write `a.table`, not `a.b.table`",
    ),
    (
        "partitions_by_first_column",
        "a table is created with all of its partition fields",
        "a table that is partitioned by its first column gets its partition fields right after its creation",
    ),
)


def capability_statuses(capabilities: Capabilities) -> tuple[CapabilityStatus, ...]:
    """All capabilities, also those that a catalog does not have."""
    return (*_plain(capabilities), *_others(capabilities))


def _plain(capabilities: Capabilities) -> Iterator[CapabilityStatus]:
    for name, yes, no in _WORDS:
        can: bool = getattr(capabilities, name)
        yield CapabilityStatus(name, can, yes if can else no)


def _others(capabilities: Capabilities) -> Iterator[CapabilityStatus]:
    versions = ", ".join(map(str, capabilities.format_versions))
    yield CapabilityStatus("format_versions", True, f"tables of format version {versions}")
    case = (
        "names are stored in lower case: write them in lower case"
        if capabilities.lowercases_names
        else ("names keep their case")
    )
    yield CapabilityStatus("keeps_case", not capabilities.lowercases_names, case)
    if capabilities.adds_properties:
        added = ", ".join(sorted(capabilities.adds_properties))
        yield CapabilityStatus("adds_properties", True, f"the server can set {added}; this is not drift")
