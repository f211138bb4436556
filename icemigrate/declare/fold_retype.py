"""``retype`` folded over a draft: a new field under the name and at the place of the old one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.data.retype import Retype
from icemigrate.declare.complaints import Complaints
from icemigrate.declare.data_entries import RetypeEntry
from icemigrate.declare.draft import Draft, Node
from icemigrate.declare.migration import UNSET, Subject
from icemigrate.frozen import Frozen
from icemigrate.model.names import Path, format_path
from icemigrate.model.promotions import is_promotion, is_read_back
from icemigrate.model.sides import Position
from icemigrate.model.table import Dropped
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Field, Map, Type

_OVER_LIST = "`using: transform(…, x -> …)` goes over a list"
_OVER_MAP = "`using: transform_values(…, (k, v) -> …)` goes over a map"


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
    new = {work.path for work in works}
    for above in dict.fromkeys(path[:-1] for path in new):
        parent = draft.find(above)
        assert parent is not None, "what is retyped stands in it"
        nodes = [parent.children[path[-1]] for path in new if path[:-1] == above]
        for node in parent.children.in_order(nodes):
            yield Position(node.id, parent.children.preceding(node))


def _retypes(
    draft: Draft, entries: Iterable[RetypeEntry], format_version: int, complaints: Complaints
) -> Iterator[tuple[Retype, Dropped]]:
    done = list[Path]()
    for entry in entries:
        subject: Subject = ("retype", entry.column)
        node = _column(draft, entry, subject, complaints)
        to = complaints.type(entry.to, entry.column, (*subject, "to"))
        if node is not None and _is_done_with(node.path, done, subject, complaints):
            continue
        if node is None or to is None or not _is_needed(node, to, format_version, subject, complaints):
            continue
        old, path = node.field, node.path
        assert node.parent is not None, "the root is no column"
        _check_default(old, path, to, complaints)
        work = Retype(format_path(path), entry.using, format_type(to), old.id)
        if work.temporary[-1] in node.parent.children:
            name = format_path(work.temporary)
            complaints.error(
                "name-in-use",
                subject,
                f"`{name}` is what the new column is called for a while, and it is taken",
                "rename that one",
            )
            continue
        above = node.parent.id if len(path) > 1 else None
        yield work, Dropped(old, above, path, _replace(draft, node.parent, node, to))


def _is_done_with(path: Path, done: list[Path], subject: Subject, complaints: Complaints) -> bool:
    """Whether the entry retypes it already, or what is in it or around it, which is complained about."""
    other = next((p for p in done if p[: len(path)] == path[: len(p)]), None)
    done.append(path)
    if other is not None:
        both = f"`{format_path(path)}` and `{format_path(other)}`"
        complaints.error(
            "retype-twice",
            subject,
            f"{both} would both be made anew, and one is in the other",
            "retype the outer one alone: its `using` gives all that is in it",
        )
    return other is not None


def _column(draft: Draft, entry: RetypeEntry, subject: Subject, complaints: Complaints) -> Node | None:
    path = complaints.path(entry.column, subject)
    if path is None:
        return None
    node = draft.find(path)
    if node is None:
        complaints.error(
            "unknown-column", subject, f"there is no column `{entry.column}` to retype", draft.nearest(path)
        )
        return None
    lines = [draft.find(path[:depth]) for depth in range(1, len(path) + 1)]
    inside = next((n.parent for n in lines if n is not None and n.is_part), None)
    if inside is not None:
        over = _OVER_MAP if inside.shape is Map else _OVER_LIST
        complaints.error(
            "retype-nested",
            subject,
            f"`{entry.column}` lies in a list or a map, whose parts cannot be set one by one",
            f"retype `{format_path(inside.path)}` as a whole: {over}",
        )
        return None
    return node


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


def _check_default(old: Field, path: Path, to: Type, complaints: Complaints) -> None:
    """Complain about a default that would go unsaid: one of the old type is none of the new one."""
    name = format_path(path)
    said = (c.name == name for c in complaints.entry.columns if c.default is not UNSET)
    if old.write_default is not None and not any(said):
        complaints.error(
            "retype-default",
            ("retype", name),
            f"`{name}` has a default, which is none of {format_type(to)}",
            f"say it anew: `columns: [{{name: {name}, default: …}}]`, with `null` for none",
        )


def _replace(draft: Draft, parent: Node, node: Node, to: Type) -> int | None:
    """Put the new field where the old one is; the id of the one that it stands behind."""
    behind = parent.children.preceding(node)
    new = draft.fresh(parent, Field(0, node.name, to, node.required, node.doc))
    parent.children.replace(node, new)
    return behind
