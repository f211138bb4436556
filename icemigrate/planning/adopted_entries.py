"""Writes an existing table as the entry of a migration file that adopts it.

Every entry is tested before it is returned: it is read and replayed like any file, and compared with the
table. The parts that a file cannot declare are left out and listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from icemigrate.diagnostics import has_errors
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.files.version_number import Version
from icemigrate.files.write.entry_parts import EntryData, is_declarable_ref
from icemigrate.files.write.migration_entries import creation_entry, format_migration_file
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE
from icemigrate.iceberg.kept_views import is_kept_view_key
from icemigrate.iceberg.ref_names import is_icemigrate_ref
from icemigrate.iceberg.table import CREATED_BY_PROPERTY, MAIN_BRANCH, Ref, Table
from icemigrate.planning.merge import complete_adopted_table, merge_tables

_LAYOUT = ("identifier", "partition_by", "sort_by")
_BY_KEY = ("properties", "branches", "tags")
_ALWAYS = ("name", "adopt", "columns")


class AdoptionEntry(Frozen):
    """An entry with ``adopt: true``.

    :param unsaid: keys of the table that no file can declare: ``partition_by``, ``tags.x``, ….
    """

    entry: EntryData
    unsaid: tuple[str, ...] = ()


def declarable_table(table: Table, left_out: Callable[[str, str], bool] = lambda key, value: False) -> Table:
    """The table without the parts that a declaration does not contain.

    These are markers of icemigrate, a main branch without limits, properties that others manage, and the
    location, which belongs to the environment.

    :param left_out: whether a server or a client sets a property (key and value) automatically.
    """
    properties = {
        key: value
        for key, value in table.properties.items()
        if key != CREATED_BY_PROPERTY and not is_kept_view_key(key) and not left_out(key, value)
    }
    refs = {name: ref for name, ref in table.refs.items() if not _is_undeclared_ref(name, ref)}
    return replace(table, properties=properties, refs=refs, location=None)


def _is_undeclared_ref(name: str, ref: Ref) -> bool:
    return not ref.is_limited if name == MAIN_BRANCH else is_icemigrate_ref(name, ref)


def adoption_entry(table: Table) -> AdoptionEntry | None:
    """The entry that adopts the table, under the name that it has in ``table``.

    :param table: the result of :func:`declarable_table`.
    :returns: ``None`` where no file can declare its name.
    """
    odd = {name: ref for name, ref in table.refs.items() if not is_declarable_ref(ref)}
    lost = [f"{'tags' if ref.kind == 'tag' else 'branches'}.{name}" for name, ref in odd.items()]
    table = replace(table, refs={name: ref for name, ref in table.refs.items() if name not in odd})
    whole = {"name": str(table.name), "adopt": True, **creation_entry(table)}
    if _holds(whole, table):
        return AdoptionEntry(whole, tuple(lost))
    kept = {key: whole[key] for key in ("name", "adopt", *_given(whole, "format_version"))}
    columns = []
    for column in whole["columns"]:
        if _holds({**kept, "columns": [column]}, table):
            columns.append(column)
        else:
            lost.append(f"columns.{column['name']}")
    kept["columns"] = columns
    if not _holds(kept, table):
        return None
    for key, part in _parts(whole):
        # Parts without a column are tried beside few columns: a table may have thousands.
        beside = kept if key in _LAYOUT else {**kept, "columns": columns[:1]}
        if not _holds({**beside, **part}, table):
            lost.append(key if key not in _BY_KEY else f"{key}.{next(iter(part[key]))}")
        elif key in _BY_KEY:
            kept.setdefault(key, {}).update(part[key])
        else:
            kept |= part
    ordered = {key: kept[key] for key in whole if key in kept}
    return AdoptionEntry(ordered, tuple(lost)) if _holds(ordered, table) else None


def _given(entry: EntryData, *keys: str) -> tuple[str, ...]:
    return tuple(key for key in keys if key in entry)


def _parts(entry: EntryData) -> Iterator[tuple[str, EntryData]]:
    """The parts that can be left out of an entry, one by one."""
    for key, value in entry.items():
        if key in _BY_KEY:
            yield from ((key, {key: {name: one}}) for name, one in value.items())
        elif key not in _ALWAYS:
            yield key, {key: value}


def _holds(entry: EntryData, table: Table) -> bool:
    """Whether the entry, read as a file, takes the table in as it is."""
    read = read_migration(SourceText("import", format_migration_file([entry])), Version(1, "1"), "import")
    if read.migration is None or has_errors(read.diagnostics):
        return False
    replayed = replay_migration(EMPTY_STATE, read.migration)
    if has_errors(replayed.diagnostics) or len(replayed.wanted) != 1:
        return False
    (wanted,) = replayed.wanted
    if wanted.table is None or wanted.name != table.name:
        return False
    goal = complete_adopted_table(wanted.table, table, wanted.unsaid)
    merged = merge_tables(None, goal, table)
    return not (merged.conflicts or merged.opened)
