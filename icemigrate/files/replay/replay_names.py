"""Replays renames, drops and restores of a table entry.

All renames happen at once.  The old name of a rename is a name from before the migration; every other name is
one from after it.  A name that is both renamed onto *and* dropped is the exception: the drop means the column
that had the name before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from icemigrate.files.read.migration_file import KeyPath, TableEntry
from icemigrate.files.replay.entry_diagnostics import EntryDiagnostics
from icemigrate.files.replay.schema_draft import STRUCT, DraftField, SchemaDraft
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import FieldPath, format_path, quote_name
from icemigrate.iceberg.table import DroppedField


class FieldPurge(Frozen):
    """A dropped field whose values are to be erased.

    :param path: its path when it was dropped.
    """

    field_id: int
    path: FieldPath


@dataclass(slots=True)
class ColumnNameChanges:
    """The result of replaying renames, drops and restores.

    :param renamed: path before → path after, of each renamed field, parents first.
    :param refilled: ids of restored fields whose values are to be written back to all rows.
    :param removed: paths, as before the migration, of dropped fields.
    """

    renamed: dict[FieldPath, FieldPath] = field(default_factory=dict)
    removed: list[FieldPath] = field(default_factory=list)
    dropped: tuple[DroppedField, ...] = ()
    purges: tuple[FieldPurge, ...] = ()
    refilled: set[int] = field(default_factory=set)


def replay_column_names(
    draft: SchemaDraft, entry: TableEntry, dropped: tuple[DroppedField, ...], diagnostics: EntryDiagnostics
) -> ColumnNameChanges:
    """Apply ``renames``, ``drop_columns`` and ``restore_columns`` to the draft.

    :param dropped: fields that earlier migrations dropped from the table.
    """
    return _ColumnNameReplay(draft, entry, diagnostics).replay(dropped)


class _ColumnNameReplay:
    def __init__(self, draft: SchemaDraft, entry: TableEntry, diagnostics: EntryDiagnostics) -> None:
        self.draft = draft
        self.entry = entry
        self.diagnostics = diagnostics
        self.targets: dict[DraftField, str] = {}
        self.subjects: dict[DraftField, KeyPath] = {}
        self.paths: list[tuple[DraftField, FieldPath]] = []
        self.out = ColumnNameChanges()

    def replay(self, dropped: tuple[DroppedField, ...]) -> ColumnNameChanges:
        for old, new in self.entry.renames:
            self._resolve_rename(old, new)
        drops = self._resolve_drops()
        self._check_targets(drops)
        self._check_renames_below_drops(drops)
        before = {node: node.path for node in (*self.targets, *drops)}
        gone = self._detach(drops)
        self._rename(before)
        # The parents are called by their new names only now.
        records = tuple(DroppedField(node.field, _parent_id(node), node.path, after) for node, after in gone)
        self.out.removed = [before[node] for node in drops]
        self.out.purges = tuple(FieldPurge(node.id, node.path) for node, drop in drops.items() if drop)
        self.out.dropped = (*self._restore(dropped), *records)
        return self.out

    # renames

    def _resolve_rename(self, old: str, new: str) -> None:
        left, right = ("renames", old), ("renames", old, "to")
        path = self.diagnostics.path(old, left)
        target = self.diagnostics.path(new, right)
        if path is None or target is None:
            return
        node = self.draft.find(path)
        if node is None:
            self._unknown_rename(path, target, left)
        elif node.is_part:
            self.diagnostics.error(
                "rename-part",
                left,
                f"`{old}` cannot be renamed: the format defines the names of parts of lists and maps",
            )
        elif node in self.targets:
            self.diagnostics.error("duplicate-column", left, f"`{old}` is renamed twice")
        elif target in ((node.name,), path):
            self.diagnostics.error("rename-to-itself", right, f"`{old}` is renamed to its own name")
        else:
            self.targets[node] = target[-1]
            self.subjects[node] = right
            self.paths.append((node, target))

    def _unknown_rename(self, path: FieldPath, target: FieldPath, subject: KeyPath) -> None:
        name = format_path(path)
        renamed = target if len(target) > 1 else (*path[:-1], *target)
        if self.draft.find(renamed) is not None:
            swapped = f"renames: {{{format_path(renamed)}: {quote_name(path[-1])}}}"
            hint: str | None = f"write the old name first: `{swapped}`; or was it renamed before?"
        else:
            hint = self.draft.nearest(path)
        self.diagnostics.error("unknown-column", subject, f"there is no column `{name}` to rename", hint)

    def _new_path(self, node: DraftField) -> FieldPath:
        if node.parent is None:
            return ()
        return (*self._new_path(node.parent), self.targets.get(node, node.name))

    def _check_targets(self, drops: dict[DraftField, bool]) -> None:
        for node, target in self.paths:
            self._check_parent(node, target)
        taken: dict[tuple[int, str], DraftField] = {}
        for node, name in self.targets.items():
            assert node.parent is not None
            other = taken.setdefault((node.parent.id, name), node)
            if other is not node:
                message = (
                    f"`{format_path(other.path)}` and `{format_path(node.path)}` cannot both become `{name}`"
                )
                self.diagnostics.error("duplicate-column", self.subjects[node], message)
            there = node.parent.children.get(name)
            if there is not None and there not in self.targets and there not in drops:
                self.diagnostics.error(
                    "name-in-use",
                    self.subjects[node],
                    f"`{format_path(node.path)}` cannot become `{name}`: that column already exists",
                    "rename that column too, or list it in `drop_columns`",
                )

    def _check_parent(self, node: DraftField, target: FieldPath) -> None:
        if len(target) == 1:
            return
        assert node.parent is not None
        parent = self._new_path(node.parent)
        if target[:-1] == parent:
            return
        leaf = quote_name(target[-1])
        if target[:-1] == node.parent.path:
            message, hint = f"`{format_path(target[:-1])}` is itself renamed to `{format_path(parent)}`", None
        else:
            message = f"`{format_path(node.path)}` cannot become `{format_path(target)}`"
            message += ": a field cannot leave its struct and keep its id"
            hint = f"write `{leaf}`, or with a literal dot `{quote_name('.'.join(target))}`; "
            hint += "to move the values, add a field, copy them, and drop the old one"
        self.diagnostics.error("rename-other-parent", self.subjects[node], message, hint)

    def _rename(self, before: dict[DraftField, FieldPath]) -> None:
        parents = {id(node.parent): node.parent for node in self.targets if node.parent is not None}
        for parent in parents.values():
            parent.children.rename({n: name for n, name in self.targets.items() if n.parent is parent})
        renamed = {before[node]: node.path for node in self.targets}
        self.out.renamed = dict(sorted(renamed.items(), key=lambda pair: len(pair[0])))

    # drops

    def _resolve_drops(self) -> dict[DraftField, bool]:
        """The nodes to drop, and whether each is to be purged."""
        drops: dict[DraftField, bool] = {}
        for drop in self.entry.drop_columns:
            subject = ("drop_columns", drop.name)
            path = self.diagnostics.path(drop.name, subject)
            node = None if path is None else self._find_drop(path, subject)
            if node is not None and node in drops:
                self.diagnostics.error("duplicate-column", subject, f"`{drop.name}` is dropped twice")
            elif node is not None:
                drops[node] = drop.purge
        for node in drops:
            above = node.parent
            while above is not None and above not in drops:
                above = above.parent
            if above is not None:
                name, over = format_path(self._new_path(node)), format_path(self._new_path(above))
                message = f"`{name}` is part of `{over}`, which is dropped too"
                self.diagnostics.error("dropped-twice", ("drop_columns", name), message, f"remove `{name}`")
        return drops

    def _check_renames_below_drops(self, drops: dict[DraftField, bool]) -> None:
        """Report renames that a drop makes void: a field goes with the struct that contains it."""
        for node in self.targets:
            line = list(_line_up(node))
            dropped = next((above for above in line[1:] if above in drops), None)
            if dropped is None:
                continue
            old, over, new = format_path(node.path), format_path(dropped.path), self.targets[node]
            hint = f"remove the rename of `{old}`"
            if not any(above.is_part for above in line):
                name = quote_name(new)
                hint += (
                    f"; to keep its values, declare a column `{name}` and write "
                    f"`backfill: [{{set: {{{name}: {old}}}}}]`"
                )
            self.diagnostics.error(
                "renamed-and-dropped",
                self.subjects[node],
                f"`{old}` is renamed, but `{over}`, which contains it, is dropped",
                hint,
            )

    def _find_drop(self, path: FieldPath, subject: KeyPath) -> DraftField | None:
        node: DraftField | None = self.draft.root
        for depth, name in enumerate(path, 1):
            assert node is not None
            node = self._by_new_name(node, name, is_leaf=depth == len(path))
            if node is None:
                break
        if node is None:
            self._unknown_drop(path, subject)
            return None
        if node.is_part:
            message = f"`{format_path(path)}` cannot be dropped: it is part of a list or a map"
            self.diagnostics.error("drop-part", subject, message, "drop the whole column")
            return None
        if node in self.targets:
            message = f"`{format_path(path)}` is renamed from `{format_path(node.path)}` and also dropped"
            # Its parents may be renamed as well; this is their new path.
            kept = format_path((*path[:-1], node.path[-1]))
            hint = f"remove the rename and drop `{kept}`"
            self.diagnostics.error("renamed-and-dropped", subject, message, hint)
            return None
        return node

    def _by_new_name(self, parent: DraftField, name: str, is_leaf: bool) -> DraftField | None:
        there = parent.children.get(name)
        if there in self.targets:
            there = None
        if is_leaf and there is not None:
            return there
        renamed = (n for n, target in self.targets.items() if n.parent is parent and target == name)
        return next(renamed, there)

    def _unknown_drop(self, path: FieldPath, subject: KeyPath) -> None:
        node = self.draft.find(path)
        if node is not None:
            hint: str | None = f"this migration renames it: write `{format_path(self._new_path(node))}`"
        else:
            hint = self.draft.nearest(path)
        message = f"there is no column `{format_path(path)}` to drop"
        self.diagnostics.error("unknown-column", subject, message, hint)

    def _detach(self, drops: dict[DraftField, bool]) -> list[tuple[DraftField, int | None]]:
        """Remove the nodes; returns each with the id of the sibling before it."""
        gone: list[tuple[DraftField, int | None]] = []
        for node in drops:
            assert node.parent is not None
            gone.append((node, node.parent.children.preceding(node)))
        for node in drops:
            assert node.parent is not None
            node.parent.children.remove(node)
        return gone

    # restores

    def _restore(self, dropped: tuple[DroppedField, ...]) -> tuple[DroppedField, ...]:
        """Restore fields, parents first; returns the fields that stay dropped."""
        left = list(dropped)
        wanted: list[tuple[FieldPath, KeyPath]] = []
        for text in self.entry.restore_columns:
            subject: KeyPath = ("restore_columns", text)
            path = self.diagnostics.path(text, subject)
            if path is not None:
                wanted.append((path, subject))
        for path, subject in sorted(wanted, key=lambda w: len(w[0])):
            found = self._dropped_at(path, left)
            node = self.draft.find(path)
            if found is None and node is not None and subject[1] in self.entry.refilled:
                # A rollback restored the column and left its values where they are.
                self._refill_there(node, subject)
                continue
            if found is None:
                self._never_dropped(path, left, subject)
                continue
            parent = self.draft.find(path[:-1])
            if parent is None or parent.shape is not STRUCT:
                message = (
                    f"`{format_path(path)}` cannot be restored: `{format_path(path[:-1])}` does not exist"
                )
                self.diagnostics.error("unknown-column", subject, message, "restore that first")
            elif path[-1] in parent.children:
                message = f"`{format_path(path)}` cannot be restored: another column has that name"
                hint = "rename or drop that column in the same migration"
                self.diagnostics.error("name-in-use", subject, message, hint)
            else:
                left.remove(found)
                self._bring_back(parent, found, dropped)
                self._refill(parent, found, subject)
        return tuple(left)

    def _refill(self, parent: DraftField, found: DroppedField, subject: KeyPath) -> None:
        if subject[1] not in self.entry.refilled:
            return
        self.out.refilled.add(found.field.id)
        self._refuse_part(parent, subject)

    def _refill_there(self, node: DraftField, subject: KeyPath) -> None:
        self.out.refilled.add(node.id)
        if node.parent is not None:
            self._refuse_part(node.parent, subject)

    def _refuse_part(self, parent: DraftField, subject: KeyPath) -> None:
        """Refuse to refill a field that no assignment can name."""
        above: DraftField | None = parent
        while above is not None and not above.is_part:
            above = above.parent
        if above is not None:
            message = f"values of `{subject[1]}` cannot be restored: it is inside a list or a map"
            hint = "remove `refill`; a query `VERSION AS OF` an earlier tag still reads the values"
            self.diagnostics.error("refill-part", subject, message, hint)

    def _paths_of_parents(self, dropped: list[DroppedField]) -> dict[int | None, FieldPath]:
        if all(one.parent is None for one in dropped):
            return {None: ()}
        return {None: (), **{node.id: node.path for node in self.draft.root.walk()}}

    def _dropped_at(self, path: FieldPath, dropped: list[DroppedField]) -> DroppedField | None:
        """The most recent drop of the path; a parent may have been renamed since."""
        parents = self._paths_of_parents(dropped)
        for one in reversed(dropped):
            parent = parents.get(one.parent)
            now = one.path if parent is None else (*parent, one.field.name)
            if now == path:
                return one
        return None

    def _never_dropped(self, path: FieldPath, dropped: list[DroppedField], subject: KeyPath) -> None:
        name = format_path(path)
        if self.draft.find(path) is not None:
            message = f"`{name}` is not dropped"
            hint = (
                "remove it; if a rollback restored it without its values, "
                f"`{{name: {name}, refill: true}}` restores them; if the file reverts a migration that is "
                "rolled back, remove the file"
            )
        else:
            message = f"no migration dropped a column `{name}`"
            known = sorted({format_path(d.path) for d in dropped})
            hint = (
                f"dropped are: {', '.join(f'`{k}`' for k in known)}" if known else "nothing was dropped here"
            )
        self.diagnostics.error("never-dropped", subject, message, hint)

    def _bring_back(self, parent: DraftField, found: DroppedField, dropped: tuple[DroppedField, ...]) -> None:
        at = restored_index(parent.children.ids(), found, dropped)
        self.draft.attach(parent, found.field, at)


def restored_index(siblings: list[int], found: DroppedField, dropped: Iterable[DroppedField]) -> int:
    """The index of a restored field among its siblings: after its former predecessor, or after that one's."""
    followed = {d.field.id: d.after for d in dropped if d.parent == found.parent}
    after, there = found.after, frozenset(siblings)
    while after is not None and after not in there and after in followed:
        after = followed[after]
    if after is None:
        return 0
    return siblings.index(after) + 1 if after in there else len(siblings)


def _line_up(node: DraftField) -> Iterator[DraftField]:
    """A field and the fields above it, without the root."""
    at: DraftField | None = node
    while at is not None and at.parent is not None:
        yield at
        at = at.parent


def _parent_id(node: DraftField) -> int | None:
    assert node.parent is not None
    return None if node.parent.parent is None else node.parent.id
