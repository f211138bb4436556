"""After a migration: is the table what the plan's difference makes of what it was before?

Only the facts that the migration changed are held against the catalog.  One that is still as it was, or
is something else, means that the catalog ignored what it was asked for (openhouse #651).  Other facts may
have been changed by somebody else meanwhile, which is a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from icemigrate.catalog.capabilities import NAME_MAPPING, SPARK_ADDS
from icemigrate.frozen import Frozen, replace
from icemigrate.merge import merge, rebind, rebind_by_path
from icemigrate.model.marks import is_own
from icemigrate.model.names import format_path
from icemigrate.model.schema import siblings
from icemigrate.model.table import Table


class Verdict(Frozen):
    """What reading a table back comes to.

    :param ignored: facts that are not as they were asked for, each with a reason.
    :param foreign: facts that were changed by somebody else meanwhile.
    :param renumbered: new fields whose ids are not the foreseen ones, as paths.
    """

    ignored: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    renumbered: tuple[str, ...] = ()


def verify(before: Table | None, expected: Table, actual: Table) -> Verdict:
    """Compare a table that was read back with what was expected of it.

    :param before: the table before the migration; ``None`` where the migration made it.
    :param expected: the migration's changes folded over ``before``.
    """
    if before is not None:
        before = replace(before, name=expected.name)
    wanted = rebind(expected, _new_ids(before, expected))
    # By now another client's field may have an id that was foreseen for one of these.
    found = rebind_by_path(wanted, actual, above=0 if before is None else before.last_column_id)
    merged = merge(before, wanted, actual)
    ignored = [f"{fact} is still as it was" for fact in merged.open]
    ignored += [f"{c.fact} is {c.actual} instead of {c.wanted}" for c in merged.conflicts]
    ignored += [
        f"{actual.name}: the order of {fields} is another" for fields in _misplaced(before, found, actual)
    ]
    if before is None and not _same_location(expected.location, actual.location):
        ignored.append(f"{actual.name}:location is {actual.location} instead of {expected.location}")
    return Verdict(
        ignored=tuple(ignored),
        foreign=tuple(_foreign(before, found, actual)) if not ignored else (),
        renumbered=tuple(_renumbered(expected, actual)),
    )


def _new_ids(before: Table | None, expected: Table) -> dict[int, int]:
    """The fields that are new, under ids that say so: what a server calls them is its own affair.

    A field that is brought back keeps the id it had.
    """
    highest = before.last_column_id if before else 0
    return {f.id: -f.id for _, f in expected.schema.walk() if f.id > highest}


def _misplaced(before: Table | None, expected: Table, actual: Table) -> Iterator[str]:
    """Structs whose fields stand in another order than the migration asked for."""
    old = siblings(before.schema) if before else {}
    new, there = siblings(expected.schema), siblings(actual.schema)
    paths = {f.id: path for path, f in expected.schema.walk()}
    for parent, order in new.items():
        # Kept fields in their old order and new ones behind them: that is what nobody has to ask for.
        kept = [i for i in old.get(parent, ()) if i in order]
        unasked = kept + [i for i in order if i not in kept]
        now = [i for i in there.get(parent, ()) if i in order]
        if (before is None or order != unasked) and now != [i for i in order if i in now]:
            yield "the columns" if parent is None else f"the fields of {format_path(paths[parent])}"


def _same_location(wanted: str | None, actual: str | None) -> bool:
    # Only what was asked for; catalogs write `file:` before a path, or leave a slash at its end.
    if wanted is None or actual is None:
        return wanted is None
    return _plain(actual) == _plain(wanted)


def _plain(location: str) -> str:
    """``/lake/t`` for ``file:/lake/t/`` and ``file:///lake/t``; other schemes as they are."""
    return re.sub("^file:/+", "/", location.rstrip("/"))


def _foreign(before: Table | None, expected: Table, actual: Table) -> Iterator[str]:
    if before is None:
        # What a catalog adds to a new table is nobody's change.
        expected = replace(expected, properties=actual.properties)
    added = {key: value for key, value in actual.properties.items() if key in SPARK_ADDS}
    mapping = {key: value for key, value in actual.properties.items() if key == NAME_MAPPING}
    # Our own tags come with the migration, put on the table before it is read back.
    tags = {name: ref for name, ref in actual.refs.items() if is_own(name, ref)}
    refs = {name: ref for name, ref in expected.refs.items() if not is_own(name, ref)}
    expected = replace(
        expected, properties={**added, **expected.properties, **mapping}, refs={**refs, **tags}
    )
    yield from merge(expected, actual, expected).open


def _renumbered(expected: Table, actual: Table) -> Iterator[str]:
    there = {path: f.id for path, f in actual.schema.walk()}
    for path, f in expected.schema.walk():
        if path in there and there[path] != f.id:
            yield format_path(path)
