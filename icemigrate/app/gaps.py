"""Columns that become required, looked for in the files of a table and of others' branches of it.

Iceberg fails on a file that lacks a required field, whatever its rows would hold, and Spark reads a null in
one as 0.  Main is one more branch here.  Of a branch that was written without the column its schema tells
(see :mod:`icemigrate.model.legality.referring`); all else stands in manifests, which are read for tables of
which a column becomes required.  Where those of main do not tell, its rows are asked when the plan is applied
(:mod:`icemigrate.data.every_value`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icemigrate.changes.base import Problem
from icemigrate.changes.create_reference import CreateReference
from icemigrate.changes.drop_reference import DropReference
from icemigrate.changes.make_required import MakeRequired
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.data.every_value import EveryValue, filled_by
from icemigrate.data.on_branches import way_out
from icemigrate.following import Followed
from icemigrate.frozen import Frozen, replace
from icemigrate.model.counting import count
from icemigrate.model.evidence import Gaps, Sought
from icemigrate.model.legality.referring import lacks, with_rows
from icemigrate.model.names import TableName, format_path
from icemigrate.model.row_modes import leaves_files
from icemigrate.model.schema import Entry, index
from icemigrate.model.table import CURRENT_SNAPSHOT, MAIN_BRANCH, Head, Snapshot, Table
from icemigrate.model.types import leaf_ids
from icemigrate.plan import MigrationPlan, TablePlan

if TYPE_CHECKING:
    from icemigrate.catalog.port import Catalog

Heads = dict[str, Head]


def with_gaps(
    migrations: Iterable[MigrationPlan],
    actual: Mapping[TableName, Table | None],
    catalog: Catalog,
    catalog_name: str,
) -> tuple[MigrationPlan, ...]:
    """The plans, with what files and rows have against columns that become required.

    :param actual: the catalog's tables by their name there.
    :param catalog_name: the catalog's in Spark SQL.
    """
    walk = _Walk(actual, catalog, catalog_name)
    return tuple(map(walk.migration, migrations))


@dataclass(slots=True)
class _Walk:
    """The plans of one run, in running order.

    :param heads: by the table's name in the catalog, the branches whose files will be those of now when the
        next plan runs: main until rows of it are written.
    """

    actual: Mapping[TableName, Table | None]
    catalog: Catalog
    catalog_name: str
    followed: Followed = field(default_factory=Followed)
    heads: dict[TableName, Heads] = field(default_factory=dict)

    def migration(self, migration: MigrationPlan) -> MigrationPlan:
        told = [one for plan in migration.tables for one in self._table(plan)]
        if not told:
            return migration
        problems = tuple(problem for problem, is_sure in told if is_sure)
        doubts = tuple(problem for problem, is_sure in told if not is_sure)
        return replace(
            migration, problems=(*migration.problems, *problems), warnings=(*migration.warnings, *doubts)
        )

    def _table(self, plan: TablePlan) -> Iterator[tuple[Problem, bool]]:
        now = self.followed.now(plan)
        there = None if now is None else self.actual.get(now)
        if there is None:
            return
        heads = self.heads.setdefault(there.name, dict(_heads(there)))
        for planned in plan.changes():
            if isinstance(planned.change, DropReference):
                heads.pop(planned.change.name, None)
        yield from _told(plan, there, heads, self.catalog, self.catalog_name)
        if any(planned.work.writes for planned in plan.rows):
            # What its files hold from then on is known when they are written.
            heads.pop(MAIN_BRANCH, None)
        for planned in plan.changes():
            if isinstance(planned.change, CreateReference):
                heads.update(_made(planned.change, heads))


def _heads(there: Table) -> Iterator[tuple[str, Head]]:
    if there.snapshot is not None:
        yield MAIN_BRANCH, Head(there.snapshot, there.schema)
    yield from there.heads.items()


def _made(change: CreateReference, heads: Heads) -> Iterator[tuple[str, Head]]:
    """A branch that is made, with the files that it gets."""
    if change.ref.kind != "branch" or change.name == MAIN_BRANCH:
        return
    if change.ref.snapshot_id != CURRENT_SNAPSHOT:
        yield change.name, Head(Snapshot(change.ref.snapshot_id, 0))
    elif MAIN_BRANCH in heads:
        yield change.name, replace(heads[MAIN_BRANCH], is_behind=True)


def _told(
    plan: TablePlan, there: Table, heads: Heads, catalog: Catalog, catalog_name: str
) -> Iterator[tuple[Problem, bool]]:
    """What the branches of a table have against its plan, and whether it is sure."""
    required = list(_required(plan, there))
    filled = filled_by([planned.work for planned in plan.rows])
    for name, head in sorted(heads.items()) if required else ():
        if not head.has_rows:
            continue
        if name == MAIN_BRANCH:
            asked = [entry for entry in required if not filled.has(entry, index(there.schema))]
        else:
            # What it surely lacks is refused without a look.
            asked = [entry for entry in required if head.schema is None or not lacks(head.schema, entry)]
        if not asked:
            continue
        found = catalog.gaps(there.name, head.snapshot.id, {e.field.id: _sought(e, there) for e in asked})
        for entry in asked:
            gaps = Gaps(0, 0, 1, silent=1) if found is None else found[entry.field.id]
            if entry.field.initial_default is not None:
                gaps = replace(gaps, lacking=0, silent=0)  # it is read there
            judge = _Main if name == MAIN_BRANCH else _Branch
            yield from judge(plan, there, catalog_name, entry, gaps, name, head).told()


def _required(plan: TablePlan, there: Table) -> Iterator[Entry]:
    """The fields that become required and that files may have: what is new is in none."""
    known = dict[int, Entry]()
    for change in (planned.change for planned in plan.changes()):
        if isinstance(change, RestoreColumn):
            above = there.schema.find(change.path[:-1])
            known[change.field.id] = Entry(change.field, change.path, None if above is None else above.id)
            if change.field.required:
                yield known[change.field.id]
        elif isinstance(change, MakeRequired):
            entry = known.get(change.field_id) or index(there.schema).get(change.field_id)
            if entry is not None:
                yield replace(entry, path=change.path)


def _sought(entry: Entry, there: Table) -> Sought:
    line = () if entry.parent is None else there.schema.line_to(entry.parent)
    around = next((leaf_ids(field) for field in reversed(line) if not field.required), frozenset[int]())
    return Sought(leaf_ids(entry.field), around)


class _Judged(Frozen):
    """A branch of a table, and a field that becomes required.

    :param gaps: what of its rows has no value of it.
    """

    plan: TablePlan
    there: Table
    catalog_name: str
    entry: Entry
    gaps: Gaps
    branch: str
    head: Head

    @property
    def name(self) -> str:
        """The field, as people write it."""
        return format_path(self.entry.path)

    @property
    def nulls(self) -> str:
        """How many there are."""
        return "a null" if self.gaps.nulls == 1 else f"{self.gaps.nulls} nulls"

    def _problem(self, rule: str, text: str, hint: str) -> Problem:
        """It, where the field becomes required."""
        return Problem(rule, self.plan.declared, ("columns", self.name, "required"), text, hint)


class _Branch(_Judged):
    """A branch of somebody."""

    def told(self) -> Iterator[tuple[Problem, bool]]:
        """What is against it, and whether it is sure."""
        heads = {self.branch: self.head}
        cannot, branch = f"`{self.name}` cannot be required", with_rows(heads)
        if self.gaps.lacking:
            rule, is_sure = "branch-lacks-required", True
            text = f"{cannot}: it is not in every file of {branch}, which nobody could read any more"
        elif self.gaps.nulls:
            rule, is_sure = "branch-holds-nulls", True
            text = f"{cannot}: {branch} has {self.nulls} in it, which Spark would read as 0"
        elif self.gaps.unknown:
            rule, is_sure = "branch-may-lack-required", False
            text = (
                f"whether every row of {branch} has a value of `{self.name}`, its manifests do not tell: "
                "where a file lacks it, nobody can read the branch any more, and a null is read as 0"
            )
        else:
            return
        hint = way_out(self.there, self.entry.field.id, heads, self.catalog_name)
        yield self._problem(rule, text, hint), is_sure


class _Main(_Judged):
    """The rows that everybody reads."""

    def told(self) -> Iterator[tuple[Problem, bool]]:
        """What is against it, and whether it is sure."""
        cannot = f"`{self.name}` cannot be required"
        if self.gaps.lacking:
            text = f"{cannot}: {self._files}, and a file that lacks a required field cannot be read"
            yield self._problem("required-not-in-every-file", text, self._rewrite), True
        elif self.gaps.nulls:
            text = (
                f"{cannot}: there {'is' if self.gaps.nulls == 1 else 'are'} {self.nulls} in it, which Spark "
            )
            hint = "fill it in every row by an earlier migration (`backfill`), or leave it optional"
            yield self._problem("required-holds-nulls", f"{text}would read as 0", hint), True
        elif self.gaps.unknown and not self._is_asked:
            text = (
                f"whether every row has a value of `{self.name}`, the table's manifests do not tell, nor can "
                "its rows be asked: where a file lacks it, nobody can read the table any more, and a null is "
                "read as 0"
            )
            hint = "leave it optional, and make it required in a later migration, which asks the rows"
            yield self._problem("may-lack-required", text, hint), False
        elif self.gaps.silent and _sought(self.entry, self.there).around:
            # Rows whose struct is null miss nothing, and their file may lack the field all the same.
            text = (
                f"whether every file has `{self.name}`, the table's manifests do not tell, nor do rows in "
                "which what is around it is null: where a file lacks it, nobody can read the table any more"
            )
            yield self._problem("may-lack-required", text, self._rewrite), False

    @property
    def _files(self) -> str:
        rows = f"{count(self.gaps.lacking, 'row')} {'stands' if self.gaps.lacking == 1 else 'stand'}"
        if self.gaps.files == 1:
            return f"{rows} in a file that lacks it ({self.gaps.example})"
        return f"{rows} in {self.gaps.files} files that lack it (one is {self.gaps.example})"

    @property
    def _rewrite(self) -> str:
        """What writes the files again."""
        way = "a `backfill` of every row in an earlier migration"
        if leaves_files(self.there.properties):
            way = f"an `INSERT OVERWRITE` of every row (by merge-on-read, {way} leaves files as they are)"
        return f"leave it optional until all files were written again with it, as by {way}"

    @property
    def _is_asked(self) -> bool:
        """Whether the rows are asked before anything is done."""
        asked = (p.work.columns for p in self.plan.rows if isinstance(p.work, EveryValue))
        return any(self.name in columns for columns in asked)
