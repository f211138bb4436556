"""Replays ``retype``: a new field with the name and the position of the old one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.data_steps.retype import Retype
from icemigrate.files.read.data_step_entries import RetypeEntry
from icemigrate.files.read.migration_file import UNSET, KeyPath
from icemigrate.files.replay.entry_diagnostics import EntryDiagnostics
from icemigrate.files.replay.schema_draft import DraftField, SchemaDraft
from icemigrate.frozen import Frozen
from icemigrate.iceberg.declared_sides import FieldPosition
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.table import DroppedField
from icemigrate.iceberg.type_promotions import is_promotion, is_read_back
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Field, Map, Type

_OVER_LIST = "`using: transform(…, x -> …)` transforms a list"
_OVER_MAP = "`using: transform_values(…, (k, v) -> …)` transforms a map"


class ReplayedRetypes(Frozen):
    """The result of replaying ``retype``.

    :param works: the data steps.
    :param dropped: the old fields.
    :param positions: positions of the new fields, which are those of the old ones.
    """

    works: tuple[Retype, ...] = ()
    dropped: tuple[DroppedField, ...] = ()
    positions: tuple[FieldPosition, ...] = ()


def replay_retypes(
    draft: SchemaDraft, entries: Iterable[RetypeEntry], format_version: int, diagnostics: EntryDiagnostics
) -> ReplayedRetypes:
    """Put the new fields into the draft.

    :param format_version: the table's, after the migration.
    """
    done = [*_retypes(draft, entries, format_version, diagnostics)]
    return ReplayedRetypes(
        tuple(work for work, _ in done),
        tuple(d for _, d in done),
        tuple(_places(draft, [w for w, _ in done])),
    )


def _places(draft: SchemaDraft, works: Iterable[Retype]) -> Iterator[FieldPosition]:
    """Positions of the new fields, in an order in which the statements can run."""
    new = {work.path for work in works}
    for above in dict.fromkeys(path[:-1] for path in new):
        parent = draft.find(above)
        assert parent is not None, "the parent of a retyped column exists"
        nodes = [parent.children[path[-1]] for path in new if path[:-1] == above]
        for node in parent.children.in_order(nodes):
            yield FieldPosition(node.id, parent.children.preceding(node))


def _retypes(
    draft: SchemaDraft, entries: Iterable[RetypeEntry], format_version: int, diagnostics: EntryDiagnostics
) -> Iterator[tuple[Retype, DroppedField]]:
    done = list[FieldPath]()
    for entry in entries:
        subject: KeyPath = ("retype", entry.column)
        node = _column(draft, entry, subject, diagnostics)
        to = diagnostics.type(entry.to, entry.column, (*subject, "to"))
        if node is not None and _is_done_with(node.path, done, subject, diagnostics):
            continue
        if node is None or to is None or not _is_needed(node, to, format_version, subject, diagnostics):
            continue
        old, path = node.field, node.path
        assert node.parent is not None, "the root is no column"
        _check_default(old, path, to, diagnostics)
        work = Retype(format_path(path), entry.using, format_type(to), old.id)
        if work.temporary[-1] in node.parent.children:
            name = format_path(work.temporary)
            diagnostics.error(
                "name-in-use",
                subject,
                f"`{name}` is the temporary name of the new column, but that name is taken",
                "rename that column",
            )
            continue
        above = node.parent.id if len(path) > 1 else None
        yield work, DroppedField(old, above, path, _replace(draft, node.parent, node, to))


def _is_done_with(
    path: FieldPath, done: list[FieldPath], subject: KeyPath, diagnostics: EntryDiagnostics
) -> bool:
    """Whether the entry already retypes the column, a part of it or its parent, which is reported."""
    other = next((p for p in done if p[: len(path)] == path[: len(p)]), None)
    done.append(path)
    if other is not None:
        both = f"`{format_path(path)}` and `{format_path(other)}`"
        diagnostics.error(
            "retype-twice",
            subject,
            f"{both} would both be replaced, but one is inside the other",
            "retype only the outer one: its `using` computes all its fields",
        )
    return other is not None


def _column(
    draft: SchemaDraft, entry: RetypeEntry, subject: KeyPath, diagnostics: EntryDiagnostics
) -> DraftField | None:
    path = diagnostics.path(entry.column, subject)
    if path is None:
        return None
    node = draft.find(path)
    if node is None:
        diagnostics.error(
            "unknown-column", subject, f"there is no column `{entry.column}` to retype", draft.nearest(path)
        )
        return None
    lines = [draft.find(path[:depth]) for depth in range(1, len(path) + 1)]
    inside = next((n.parent for n in lines if n is not None and n.is_part), None)
    if inside is not None:
        over = _OVER_MAP if inside.shape is Map else _OVER_LIST
        diagnostics.error(
            "retype-nested",
            subject,
            f"`{entry.column}` is inside a list or a map, whose parts cannot be set alone",
            f"retype `{format_path(inside.path)}` as a whole: {over}",
        )
        return None
    return node


def _is_needed(
    node: DraftField, to: Type, format_version: int, subject: KeyPath, diagnostics: EntryDiagnostics
) -> bool:
    """Whether the change needs ``retype``; reported where ``type`` is enough."""
    old, name = node.type, node.name
    if format_type(old) == format_type(to):
        message = f"`{name}` already has the type {format_type(to)}"
        diagnostics.error("retype-to-itself", (*subject, "to"), message, "leave it out")
        return False
    if is_promotion(old, to, format_version) and is_read_back(old, to):
        diagnostics.error(
            "retype-unneeded",
            (*subject, "to"),
            f"`{name}` can become {format_type(to)} without a rewrite of rows",
            f"write `columns: [{{name: {name}, type: {format_type(to)}}}]` instead",
        )
        return False
    return True


def _check_default(old: Field, path: FieldPath, to: Type, diagnostics: EntryDiagnostics) -> None:
    """Report a default that the new type would drop silently."""
    name = format_path(path)
    said = (c.name == name for c in diagnostics.entry.columns if c.default is not UNSET)
    if old.write_default is not None and not any(said):
        diagnostics.error(
            "retype-default",
            ("retype", name),
            f"the default of `{name}` is not a value of {format_type(to)}",
            f"declare a new one: `columns: [{{name: {name}, default: …}}]`, with `null` for none",
        )


def _replace(draft: SchemaDraft, parent: DraftField, node: DraftField, to: Type) -> int | None:
    """Replace the old field in the draft; returns the id of the sibling before it."""
    behind = parent.children.preceding(node)
    new = draft.fresh(parent, Field(0, node.name, to, node.required, node.doc))
    parent.children.replace(node, new)
    return behind
