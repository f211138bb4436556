"""``retype`` folded over a draft: a new field under the name and at the place of the old one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.data.retype import Retype
from icemigrate.declare.complaints import Complaints
from icemigrate.declare.data_entries import RetypeEntry
from icemigrate.declare.draft import Draft, Node
from icemigrate.declare.migration import UNSET, Subject
from icemigrate.frozen import Frozen
from icemigrate.model.names import quote_name
from icemigrate.model.promotions import is_promotion, is_read_back
from icemigrate.model.sides import Position
from icemigrate.model.table import Dropped
from icemigrate.model.type_text import TypeSyntaxError, format_type, parse_type
from icemigrate.model.types import Field, Type


class Retyped(Frozen):
    """What ``retype`` came to.

    :param works: the data steps.
    :param dropped: the old fields.
    :param positions: the new fields stand where the old ones stood.
    """

    works: tuple[Retype, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    positions: tuple[Position, ...] = ()


def fold_retypes(
    draft: Draft, entries: Iterable[RetypeEntry], format_version: int, complaints: Complaints
) -> Retyped:
    """Put the new fields into the draft.

    :param format_version: the table's, after the migration.
    """
    done = [*_retypes(draft, entries, format_version, complaints)]
    return Retyped(
        tuple(work for work, _ in done),
        tuple(d for _, d in done),
        tuple(_places(draft, [w for w, _ in done])),
    )


def _places(draft: Draft, works: Iterable[Retype]) -> Iterator[Position]:
    """Where the new fields stand, in an order in which each can be carried out."""
    names = {work.column for work in works}
    behind: int | None = None
    for node in draft.root.children.values():
        if node.name in names:
            yield Position(node.id, behind)
        behind = node.id


def _retypes(
    draft: Draft, entries: Iterable[RetypeEntry], format_version: int, complaints: Complaints
) -> Iterator[tuple[Retype, Dropped]]:
    for entry in entries:
        subject: Subject = ("retype", entry.column)
        node = _column(draft, entry, subject, complaints)
        to = _type(entry, subject, complaints)
        if node is None or to is None or not _is_needed(node, to, format_version, subject, complaints):
            continue
        old = node.field
        _check_default(old, to, complaints)
        work = Retype(old.name, entry.using, format_type(to), old.id)
        if work.temporary in draft.root.children:
            complaints.error(
                "name-in-use",
                subject,
                f"`{work.temporary}` is what the new column is called for a while, and it is taken",
                "rename that one",
            )
            continue
        yield work, Dropped(old, None, (old.name,), _replace(draft, node, to))


def _column(draft: Draft, entry: RetypeEntry, subject: Subject, complaints: Complaints) -> Node | None:
    path = complaints.path(entry.column, subject)
    if path is None:
        return None
    node = draft.find(path)
    if node is None:
        complaints.error(
            "unknown-column", subject, f"there is no column `{entry.column}` to retype", draft.nearest(path)
        )
    elif len(path) > 1:
        complaints.error(
            "retype-nested",
            subject,
            f"`{entry.column}` is a part of a column, and columns are retyped as a whole",
            f"retype `{quote_name(path[0])}`, or add a field beside it and fill it by `backfill`",
        )
        return None
    return node


def _type(entry: RetypeEntry, subject: Subject, complaints: Complaints) -> Type | None:
    try:
        return parse_type(entry.to)
    except TypeSyntaxError as e:
        where = f", at character {e.offset + 1}" if e.offset else ""
        complaints.error("bad-type", (*subject, "to"), f"the type of `{entry.column}`: {e}{where}", e.hint)
        return None


def _is_needed(node: Node, to: Type, format_version: int, subject: Subject, complaints: Complaints) -> bool:
    """Whether there is no plainer way; complained about where there is."""
    old, name = node.type, node.name
    if format_type(old) == format_type(to):
        message = f"`{name}` has the type {format_type(to)} already"
        complaints.error("retype-to-itself", (*subject, "to"), message, "leave it out")
        return False
    if is_promotion(old, to, format_version) and is_read_back(old, to):
        complaints.error(
            "retype-unneeded",
            (*subject, "to"),
            f"`{name}` becomes {format_type(to)} without any row being written",
            f"write `columns: [{{name: {name}, type: {format_type(to)}}}]` instead",
        )
        return False
    return True


def _check_default(old: Field, to: Type, complaints: Complaints) -> None:
    """Complain about a default that would go unsaid: one of the old type is none of the new one."""
    said = (c.name == quote_name(old.name) for c in complaints.entry.columns if c.default is not UNSET)
    if old.write_default is not None and not any(said):
        complaints.error(
            "retype-default",
            ("retype", old.name),
            f"`{old.name}` has a default, which is none of {format_type(to)}",
            f"say it anew: `columns: [{{name: {quote_name(old.name)}, default: …}}]`, with `null` for none",
        )


def _replace(draft: Draft, node: Node, to: Type) -> int | None:
    """Put the new field where the old one is; the id of the one that it stands behind."""
    siblings = list(draft.root.children.values())
    at = siblings.index(node)
    new = draft.fresh(draft.root, Field(0, node.name, to, node.required, node.doc))
    siblings[at] = new
    draft.root.children = {child.name: child for child in siblings}
    return siblings[at - 1].id if at else None
