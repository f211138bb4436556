"""What a kind of catalog can do, in words."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.catalog.capabilities import Capabilities
from icemigrate.results import Ability

# Name, what it means where the catalog can, and what where it cannot.
_WORDS: tuple[tuple[str, str, str], ...] = (
    (
        "compare_and_swap",
        "a commit fails when another one came first: the lock and every migration rely on it",
        "a commit may overwrite another one: let nobody else change tables while migrations run",
    ),
    (
        "atomic_rename",
        "a table is renamed in one step",
        "a rename is not one step, or has no single winner: let nobody write to a table while it is renamed",
    ),
    (
        "renames_across_namespaces",
        "a table can move to another namespace, so a dropped one waits in the trash and can be brought back",
        "a table cannot move to another namespace: a dropped one cannot be put into the trash",
    ),
    (
        "tags",
        "every migration is a tag on its tables that can be read",
        "tags stop the catalog's own expiry of snapshots: write `record: history` in the environment",
    ),
    (
        "branches",
        "rows are written on a branch, and readers see them when all checks hold",
        "a branch stops the catalog's own expiry of snapshots: `backfill` and `retype` are refused",
    ),
    (
        "drop_keeps_files",
        "a table dropped by hand leaves its files, so it can be registered again",
        "a table dropped by hand loses its files; drop tables by migrations, which use the trash",
    ),
    (
        "namespace_drop_keeps_files",
        "a namespace that a migration made goes with its undo, once nothing is in it",
        "a namespace stays when the migration that made it is undone: dropping it may take files along",
    ),
    (
        "registers",
        "a metadata file can be made a table again",
        "a metadata file cannot be made a table again",
    ),
    (
        "registering_keeps_uuid",
        "a table that is registered again is still the one that the history knows",
        "a table that is registered again may be a stranger to the history: bring it back by a rename",
    ),
    (
        "multi_table_commit",
        "several tables can be committed together",
        "each table is a commit of its own: readers may see one table changed a moment before the next",
    ),
    (
        "nested_namespaces",
        "namespaces may stand in namespaces",
        "namespaces have one level: write `a.table`, not `a.b.table`",
    ),
    (
        "partitions_by_first_column",
        "a table is created with all of its partitions",
        "a table that is partitioned by its first column gets its partitions right after its creation",
    ),
)


def abilities(capabilities: Capabilities) -> tuple[Ability, ...]:
    """All of them, those that a catalog lacks too."""
    return (*_plain(capabilities), *_others(capabilities))


def _plain(capabilities: Capabilities) -> Iterator[Ability]:
    for name, yes, no in _WORDS:
        can: bool = getattr(capabilities, name)
        yield Ability(name, can, yes if can else no)


def _others(capabilities: Capabilities) -> Iterator[Ability]:
    versions = ", ".join(map(str, capabilities.format_versions))
    yield Ability("format_versions", True, f"tables of format version {versions}")
    case = (
        "names lose their case: write them in small letters"
        if capabilities.lowercases_names
        else ("names keep their case")
    )
    yield Ability("keeps_case", not capabilities.lowercases_names, case)
    if capabilities.adds_properties:
        added = ", ".join(sorted(capabilities.adds_properties))
        yield Ability(
            "adds_properties", True, f"the server may set {added} by itself, which counts as no drift"
        )
