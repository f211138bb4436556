"""A table of a catalog, written as the entry of a migration file that takes it in.

Every entry is seen to work before it is handed out: read and folded as any file, and held against the table.
What a file cannot say is left out of it, and named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from icemigrate.declare.author import document, dump
from icemigrate.declare.author_parts import Entry, is_sayable
from icemigrate.declare.fold import fold
from icemigrate.declare.reading import read_migration
from icemigrate.declare.source import Source
from icemigrate.declare.version import Version
from icemigrate.diagnostics import has_errors
from icemigrate.frozen import Frozen, replace
from icemigrate.merge import adopted, merge
from icemigrate.model.makers import CREATED_BY_PROPERTY
from icemigrate.model.marks import is_own
from icemigrate.model.sides import EMPTY_STATE
from icemigrate.model.table import MAIN_BRANCH, Ref, Table

_LAYOUT = ("identifier", "partition_by", "sort_by")
_BY_KEY = ("properties", "branches", "tags")
_ALWAYS = ("name", "adopt", "columns")


class Adoption(Frozen):
    """An entry with ``adopt: true``.

    :param unsaid: what of the table it does not say, since no file can: ``partition_by``, ``tags.x``, ….
    """

    entry: Entry
    unsaid: tuple[str, ...] = ()


def without_others(table: Table, left_out: Callable[[str, str], bool] = lambda key, value: False) -> Table:
    """The table without what others than its owners put there: what a declaration of it would not say.

    Not the marks of icemigrate, not a main branch that has no limits; and no location, which is the
    environment's affair.

    :param left_out: whether a property (key and value) is what a server or a client sets by itself.
    """
    properties = {
        key: value
        for key, value in table.properties.items()
        if key != CREATED_BY_PROPERTY and not left_out(key, value)
    }
    refs = {name: ref for name, ref in table.refs.items() if not _is_nobodys(name, ref)}
    return replace(table, properties=properties, refs=refs, location=None)


def _is_nobodys(name: str, ref: Ref) -> bool:
    return not ref.is_limited if name == MAIN_BRANCH else is_own(name, ref)


def adoption(table: Table) -> Adoption | None:
    """The entry that takes the table in, under the name that it has in ``table``.

    :param table: as :func:`without_others` gives it.
    :returns: ``None`` where no entry can: its name is none that a file can say.
    """
    odd = {name: ref for name, ref in table.refs.items() if not is_sayable(ref)}
    lost = [f"{'tags' if ref.kind == 'tag' else 'branches'}.{name}" for name, ref in odd.items()]
    table = replace(table, refs={name: ref for name, ref in table.refs.items() if name not in odd})
    whole = {"name": str(table.name), "adopt": True, **document(table)}
    if _holds(whole, table):
        return Adoption(whole, tuple(lost))
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
        # What names no column is tried beside few of them: a table may have thousands.
        beside = kept if key in _LAYOUT else {**kept, "columns": columns[:1]}
        if not _holds({**beside, **part}, table):
            lost.append(key if key not in _BY_KEY else f"{key}.{next(iter(part[key]))}")
        elif key in _BY_KEY:
            kept.setdefault(key, {}).update(part[key])
        else:
            kept |= part
    ordered = {key: kept[key] for key in whole if key in kept}
    return Adoption(ordered, tuple(lost)) if _holds(ordered, table) else None


def _given(entry: Entry, *keys: str) -> tuple[str, ...]:
    return tuple(key for key in keys if key in entry)


def _parts(entry: Entry) -> Iterator[tuple[str, Entry]]:
    """What can be left out of an entry, one by one."""
    for key, value in entry.items():
        if key in _BY_KEY:
            yield from ((key, {key: {name: one}}) for name, one in value.items())
        elif key not in _ALWAYS:
            yield key, {key: value}


def _holds(entry: Entry, table: Table) -> bool:
    """Whether the entry, read as a file, takes the table in as it is."""
    read = read_migration(Source("import", dump([entry])), Version(1, "1"), "import")
    if read.migration is None or has_errors(read.diagnostics):
        return False
    folded = fold(EMPTY_STATE, read.migration)
    if has_errors(folded.diagnostics) or len(folded.wanted) != 1:
        return False
    (wanted,) = folded.wanted
    if wanted.table is None or wanted.name != table.name:
        return False
    goal = adopted(wanted.table, table, wanted.unsaid)
    merged = merge(None, goal, table)
    return not (merged.conflicts or merged.opened)
