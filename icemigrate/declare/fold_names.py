"""Renames, drops and restores of a table entry, folded over a draft (the fold, rules 1, 5 and 6).

All renames happen at once.  Left of one stands a name from before the migration, everywhere else a name
from after it.  One case needs a word: a name that is renamed onto *and* dropped means the column that
had the name before, since nothing else could be meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from icemigrate.declare.complaints import Complaints
from icemigrate.declare.draft import STRUCT, Draft, Node
from icemigrate.declare.migration import Subject, TableEntry
from icemigrate.frozen import Frozen
from icemigrate.model.names import Path, format_path, quote_name
from icemigrate.model.table import Dropped


class Purge(Frozen):
    """A dropped field whose values are to be erased for good.

    :param path: as it was called when it was dropped.
    """

    field_id: int
    path: Path


@dataclass(slots=True)
class Renaming:
    """What renames, drops and restores came to.

    :param renamed: path before → path after, of what was itself renamed, parents first.
    :param refilled: ids of fields that come back, and whose values shall be brought back to all rows.
    :param removed: paths, as before the migration, of what was dropped.
    """

    renamed: dict[Path, Path] = field(default_factory=dict)
    removed: list[Path] = field(default_factory=list)
    dropped: tuple[Dropped, ...] = ()
    purges: tuple[Purge, ...] = ()
    refilled: set[int] = field(default_factory=set)


def fold_names(
    draft: Draft, entry: TableEntry, dropped: tuple[Dropped, ...], complaints: Complaints
) -> Renaming:
    """Carry out ``renames``, ``drop_columns`` and ``restore_columns`` on the draft.

    :param dropped: what earlier migrations dropped from the table.
    """
    return _NameFold(draft, entry, complaints).fold(dropped)


class _NameFold:
    def __init__(self, draft: Draft, entry: TableEntry, complaints: Complaints) -> None:
        self.draft = draft
        self.entry = entry
        self.complaints = complaints
        self.targets: dict[Node, str] = {}
        self.subjects: dict[Node, Subject] = {}
        self.paths: list[tuple[Node, Path]] = []
        self.out = Renaming()

    def fold(self, dropped: tuple[Dropped, ...]) -> Renaming:
        for old, new in self.entry.renames:
            self._resolve_rename(old, new)
        drops = self._resolve_drops()
        self._check_targets(drops)
        before = {node: node.path for node in (*self.targets, *drops)}
        gone = self._detach(drops)
        self._rename(before)
        # The parents are called by their new names only now.
        records = tuple(Dropped(node.field, _parent_id(node), node.path, after) for node, after in gone)
        self.out.removed = [before[node] for node in drops]
        self.out.purges = tuple(Purge(node.id, node.path) for node, drop in drops.items() if drop)
        self.out.dropped = (*self._restore(dropped), *records)
        return self.out

    # renames

    def _resolve_rename(self, old: str, new: str) -> None:
        left, right = ("renames", old), ("renames", old, "to")
        path = self.complaints.path(old, left)
        target = self.complaints.path(new, right)
        if path is None or target is None:
            return
        node = self.draft.find(path)
        if node is None:
            self._unknown_rename(path, target, left)
        elif node.is_part:
            self.complaints.error(
                "rename-part",
                left,
                f"`{old}` cannot be renamed: the format itself names the parts of lists and maps",
            )
        elif node in self.targets:
            self.complaints.error("duplicate-column", left, f"`{old}` is renamed twice")
        elif target in ((node.name,), path):
            self.complaints.error("rename-to-itself", right, f"`{old}` is renamed to the name that it has")
        else:
            self.targets[node] = target[-1]
            self.subjects[node] = right
            self.paths.append((node, target))

    def _unknown_rename(self, path: Path, target: Path, subject: Subject) -> None:
        name = format_path(path)
        renamed = target if len(target) > 1 else (*path[:-1], *target)
        if self.draft.find(renamed) is not None:
            swapped = f"renames: {{{format_path(renamed)}: {quote_name(path[-1])}}}"
            hint: str | None = f"the old name stands left: `{swapped}`; or was it renamed before?"
        else:
            hint = self.draft.nearest(path)
        self.complaints.error("unknown-column", subject, f"there is no column `{name}` to rename", hint)

    def _new_path(self, node: Node) -> Path:
        if node.parent is None:
            return ()
        return (*self._new_path(node.parent), self.targets.get(node, node.name))

    def _check_targets(self, drops: dict[Node, bool]) -> None:
        for node, target in self.paths:
            self._check_parent(node, target)
        taken: dict[tuple[int, str], Node] = {}
        for node, name in self.targets.items():
            assert node.parent is not None
            other = taken.setdefault((node.parent.id, name), node)
            if other is not node:
                message = (
                    f"`{format_path(other.path)}` and `{format_path(node.path)}` cannot both become `{name}`"
                )
                self.complaints.error("duplicate-column", self.subjects[node], message)
            there = node.parent.children.get(name)
            if there is not None and there not in self.targets and there not in drops:
                self.complaints.error(
                    "name-in-use",
                    self.subjects[node],
                    f"`{format_path(node.path)}` cannot become `{name}`: there is such a column already",
                    "rename that one too, or name it in `drop_columns`",
                )

    def _check_parent(self, node: Node, target: Path) -> None:
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
        self.complaints.error("rename-other-parent", self.subjects[node], message, hint)

    def _rename(self, before: dict[Node, Path]) -> None:
        parents = {id(node.parent): node.parent for node in self.targets if node.parent is not None}
        for parent in parents.values():
            parent.children.rename({n: name for n, name in self.targets.items() if n.parent is parent})
        renamed = {before[node]: node.path for node in self.targets}
        self.out.renamed = dict(sorted(renamed.items(), key=lambda pair: len(pair[0])))

    # drops

    def _resolve_drops(self) -> dict[Node, bool]:
        """The nodes to drop, and whether each is to be purged."""
        drops: dict[Node, bool] = {}
        for drop in self.entry.drop_columns:
            subject = ("drop_columns", drop.name)
            path = self.complaints.path(drop.name, subject)
            node = None if path is None else self._find_drop(path, subject)
            if node is not None and node in drops:
                self.complaints.error("duplicate-column", subject, f"`{drop.name}` is dropped twice")
            elif node is not None:
                drops[node] = drop.purge
        for node in drops:
            above = node.parent
            while above is not None and above not in drops:
                above = above.parent
            if above is not None:
                name, over = format_path(self._new_path(node)), format_path(self._new_path(above))
                message = f"`{name}` goes with `{over}`, which is dropped as well"
                self.complaints.error("dropped-twice", ("drop_columns", name), message, f"leave out `{name}`")
        return drops

    def _find_drop(self, path: Path, subject: Subject) -> Node | None:
        node: Node | None = self.draft.root
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
            self.complaints.error("drop-part", subject, message, "drop the whole column")
            return None
        if node in self.targets:
            message = f"`{format_path(path)}` is renamed from `{format_path(node.path)}` and dropped at once"
            # What it stands in may be renamed as well, and goes by its new name here.
            kept = format_path((*path[:-1], node.path[-1]))
            hint = f"leave out the rename and drop `{kept}`"
            self.complaints.error("renamed-and-dropped", subject, message, hint)
            return None
        return node

    def _by_new_name(self, parent: Node, name: str, is_leaf: bool) -> Node | None:
        there = parent.children.get(name)
        if there in self.targets:
            there = None
        if is_leaf and there is not None:
            return there
        renamed = (n for n, target in self.targets.items() if n.parent is parent and target == name)
        return next(renamed, there)

    def _unknown_drop(self, path: Path, subject: Subject) -> None:
        node = self.draft.find(path)
        if node is not None:
            hint: str | None = f"this migration renames it: write `{format_path(self._new_path(node))}`"
        else:
            hint = self.draft.nearest(path)
        message = f"there is no column `{format_path(path)}` to drop"
        self.complaints.error("unknown-column", subject, message, hint)

    def _detach(self, drops: dict[Node, bool]) -> list[tuple[Node, int | None]]:
        """Take the nodes out; each with the id of the sibling that it stood behind."""
        gone: list[tuple[Node, int | None]] = []
        for node in drops:
            assert node.parent is not None
            gone.append((node, node.parent.children.preceding(node)))
        for node in drops:
            assert node.parent is not None
            node.parent.children.remove(node)
        return gone

    # restores

    def _restore(self, dropped: tuple[Dropped, ...]) -> tuple[Dropped, ...]:
        """Bring fields back, parents first; what stays dropped is returned."""
        left = list(dropped)
        wanted: list[tuple[Path, Subject]] = []
        for text in self.entry.restore_columns:
            subject: Subject = ("restore_columns", text)
            path = self.complaints.path(text, subject)
            if path is not None:
                wanted.append((path, subject))
        for path, subject in sorted(wanted, key=lambda w: len(w[0])):
            found = self._dropped_at(path, left)
            node = self.draft.find(path)
            if found is None and node is not None and subject[1] in self.entry.refilled:
                # A rollback brought the column back, and left its values where they are.
                self._refill_there(node, subject)
                continue
            if found is None:
                self._never_dropped(path, left, subject)
                continue
            parent = self.draft.find(path[:-1])
            if parent is None or parent.shape is not STRUCT:
                message = f"`{format_path(path)}` cannot come back: `{format_path(path[:-1])}` is not there"
                self.complaints.error("unknown-column", subject, message, "restore that first")
            elif path[-1] in parent.children:
                message = f"`{format_path(path)}` cannot come back: there is another column of that name"
                hint = "rename or drop that one in the same migration"
                self.complaints.error("name-in-use", subject, message, hint)
            else:
                left.remove(found)
                self._bring_back(parent, found, dropped)
                self._refill(parent, found, subject)
        return tuple(left)

    def _refill(self, parent: Node, found: Dropped, subject: Subject) -> None:
        if subject[1] not in self.entry.refilled:
            return
        self.out.refilled.add(found.field.id)
        self._refuse_part(parent, subject)

    def _refill_there(self, node: Node, subject: Subject) -> None:
        self.out.refilled.add(node.id)
        if node.parent is not None:
            self._refuse_part(node.parent, subject)

    def _refuse_part(self, parent: Node, subject: Subject) -> None:
        """Refuse to bring back what no assignment can name."""
        above: Node | None = parent
        while above is not None and not above.is_part:
            above = above.parent
        if above is not None:
            message = f"values of `{subject[1]}` cannot be brought back: it lies in a list or a map"
            hint = "leave `refill` out; a query `VERSION AS OF` an earlier tag still gives what it keeps"
            self.complaints.error("refill-part", subject, message, hint)

    def _paths_of_parents(self, dropped: list[Dropped]) -> dict[int | None, Path]:
        if all(one.parent is None for one in dropped):
            return {None: ()}
        return {None: (), **{node.id: node.path for node in self.draft.root.walk()}}

    def _dropped_at(self, path: Path, dropped: list[Dropped]) -> Dropped | None:
        """The most recent drop of the path; a parent may have been renamed since."""
        parents = self._paths_of_parents(dropped)
        for one in reversed(dropped):
            parent = parents.get(one.parent)
            now = one.path if parent is None else (*parent, one.field.name)
            if now == path:
                return one
        return None

    def _never_dropped(self, path: Path, dropped: list[Dropped], subject: Subject) -> None:
        name = format_path(path)
        if self.draft.find(path) is not None:
            message = f"`{name}` is not dropped"
            hint = (
                f"leave it out; where a rollback brought it back without its values, "
                f"`{{name: {name}, refill: true}}` restores them"
            )
        else:
            message = f"no migration dropped a column `{name}`"
            known = sorted({format_path(d.path) for d in dropped})
            hint = (
                f"dropped are: {', '.join(f'`{k}`' for k in known)}" if known else "nothing was dropped here"
            )
        self.complaints.error("never-dropped", subject, message, hint)

    def _bring_back(self, parent: Node, found: Dropped, dropped: tuple[Dropped, ...]) -> None:
        at = restored_index(parent.children.ids(), found, dropped)
        self.draft.attach(parent, found.field, at)


def restored_index(siblings: list[int], found: Dropped, dropped: Iterable[Dropped]) -> int:
    """Where among its siblings a field comes back: behind what it followed, or what that one followed."""
    followed = {d.field.id: d.after for d in dropped if d.parent == found.parent}
    after = found.after
    while after is not None and after not in siblings and after in followed:
        after = followed[after]
    if after is None:
        return 0
    return siblings.index(after) + 1 if after in siblings else len(siblings)


def _parent_id(node: Node) -> int | None:
    assert node.parent is not None
    return None if node.parent.parent is None else node.parent.id
