"""Checks columns that become required in the files of a table's branches.

Iceberg fails on a file that lacks a required field, whatever the values of its rows would be, and Spark reads
a null in one as 0.  Main is one of these branches.  A branch that was written without the column shows that
in its schema (see :mod:`icemigrate.iceberg.validation.table_rules`); other facts are in manifests, which are
read for tables with a column that becomes required.  If those of main are not conclusive, its rows are
queried when the plan is applied (:mod:`icemigrate.data_steps.not_null_check`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icemigrate.changes.change import PlanProblem
from icemigrate.changes.create_reference import CreateReference
from icemigrate.changes.drop_reference import DropReference
from icemigrate.changes.make_required import MakeRequired
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.data_steps.branch_repair_sql import branch_repair_hint
from icemigrate.data_steps.not_null_check import NotNullCheck, filled_or_retyped
from icemigrate.diagnostics import format_count
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.file_evidence_values import FieldQuery, MissingValues
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import IndexedField, schema_index
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, MAIN_BRANCH, BranchHead, Snapshot, Table
from icemigrate.iceberg.table_properties import has_merge_on_read_updates
from icemigrate.iceberg.types import leaf_ids
from icemigrate.iceberg.validation.table_rules import branch_rows_text, surely_lacks_field
from icemigrate.planning.plan import MigrationPlan, TablePlan
from icemigrate.planning.rename_tracker import RenameTracker

if TYPE_CHECKING:
    from icemigrate.catalog.catalog_port import Catalog

HeadsByBranch = dict[str, BranchHead]


def with_not_null_problems(
    migrations: Iterable[MigrationPlan],
    actual: Mapping[TableName, Table | None],
    catalog: Catalog,
    catalog_name: str,
) -> tuple[MigrationPlan, ...]:
    """The plans, with the problems that files and rows cause for columns that become required.

    :param actual: the catalog's tables by their name there.
    :param catalog_name: the catalog's in Spark SQL.
    """
    walk = _NotNullCheck(actual, catalog, catalog_name)
    return tuple(map(walk.migration, migrations))


@dataclass(slots=True)
class _NotNullCheck:
    """The plans of one run, in running order.

    :param heads: by the table's name in the catalog, the branches whose files stay current until the next
        plan runs: main until its rows are written.
    """

    actual: Mapping[TableName, Table | None]
    catalog: Catalog
    catalog_name: str
    followed: RenameTracker = field(default_factory=RenameTracker)
    heads: dict[TableName, HeadsByBranch] = field(default_factory=dict)

    def migration(self, migration: MigrationPlan) -> MigrationPlan:
        found = [one for plan in migration.tables for one in self._table(plan)]
        if not found:
            return migration
        problems = tuple(problem for problem, is_sure in found if is_sure)
        doubts = tuple(problem for problem, is_sure in found if not is_sure)
        return replace(
            migration, problems=(*migration.problems, *problems), warnings=(*migration.warnings, *doubts)
        )

    def _table(self, plan: TablePlan) -> Iterator[tuple[PlanProblem, bool]]:
        now = self.followed.now(plan)
        there = None if now is None else self.actual.get(now)
        if there is None:
            return
        heads = self.heads.setdefault(there.name, dict(_heads(there)))
        for planned in plan.changes():
            if isinstance(planned.change, DropReference):
                heads.pop(planned.change.name, None)
        yield from _branch_problems(plan, there, heads, self.catalog, self.catalog_name)
        if any(planned.work.writes for planned in plan.rows):
            # The content of later files is known when they are written.
            heads.pop(MAIN_BRANCH, None)
        for planned in plan.changes():
            if isinstance(planned.change, CreateReference):
                heads.update(_made(planned.change, heads))


def _heads(there: Table) -> Iterator[tuple[str, BranchHead]]:
    if there.snapshot is not None:
        yield MAIN_BRANCH, BranchHead(there.snapshot, there.schema)
    yield from there.heads.items()


def _made(change: CreateReference, heads: HeadsByBranch) -> Iterator[tuple[str, BranchHead]]:
    """A branch that is made, with the files that it gets."""
    if change.ref.kind != "branch" or change.name == MAIN_BRANCH:
        return
    if change.ref.snapshot_id != CURRENT_SNAPSHOT:
        yield change.name, BranchHead(Snapshot(change.ref.snapshot_id, 0))
    elif MAIN_BRANCH in heads:
        yield change.name, replace(heads[MAIN_BRANCH], is_behind=True)


def _branch_problems(
    plan: TablePlan, there: Table, heads: HeadsByBranch, catalog: Catalog, catalog_name: str
) -> Iterator[tuple[PlanProblem, bool]]:
    """The problems of a table's branches for its plan, and whether each is certain."""
    required = list(_required(plan, there))
    filled = filled_or_retyped([planned.work for planned in plan.rows])
    for name, head in sorted(heads.items()) if required else ():
        if not head.has_rows:
            continue
        if name == MAIN_BRANCH:
            asked = [entry for entry in required if not filled.has(entry, schema_index(there.schema))]
        else:
            # A branch that certainly lacks the field is refused without reading its files.
            asked = [
                entry
                for entry in required
                if head.schema is None or not surely_lacks_field(head.schema, entry)
            ]
        if not asked:
            continue
        found = catalog.missing_values(
            there.name, head.snapshot.id, {e.field.id: _field_query(e, there) for e in asked}
        )
        for entry in asked:
            missing = MissingValues(0, 0, 1, silent=1) if found is None else found[entry.field.id]
            if entry.field.initial_default is not None:
                missing = replace(missing, lacking=0, silent=0)  # it is checked there
            judge = _MainBranch if name == MAIN_BRANCH else _OtherBranch
            yield from judge(plan, there, catalog_name, entry, missing, name, head).problems()


def _required(plan: TablePlan, there: Table) -> Iterator[IndexedField]:
    """The fields that become required and that files may have: no file has a new one."""
    known = dict[int, IndexedField]()
    for change in (planned.change for planned in plan.changes()):
        if isinstance(change, RestoreColumn):
            above = there.schema.find(change.path[:-1])
            known[change.field.id] = IndexedField(
                change.field, change.path, None if above is None else above.id
            )
            if change.field.required:
                yield known[change.field.id]
        elif isinstance(change, MakeRequired):
            entry = known.get(change.field_id) or schema_index(there.schema).get(change.field_id)
            if entry is not None:
                yield replace(entry, path=change.path)


def _field_query(entry: IndexedField, there: Table) -> FieldQuery:
    line = () if entry.parent is None else there.schema.line_to(entry.parent)
    around = next((leaf_ids(field) for field in reversed(line) if not field.required), frozenset[int]())
    return FieldQuery(leaf_ids(entry.field), around)


class _CheckedBranch(Frozen):
    """A branch of a table, and a field that becomes required.

    :param missing: its rows without a value of the field.
    """

    plan: TablePlan
    there: Table
    catalog_name: str
    entry: IndexedField
    missing: MissingValues
    branch: str
    head: BranchHead

    @property
    def name(self) -> str:
        """The field, as people write it."""
        return format_path(self.entry.path)

    @property
    def nulls(self) -> str:
        """The number of nulls."""
        return "a null" if self.missing.nulls == 1 else f"{self.missing.nulls} nulls"

    def _problem(self, rule: str, text: str, hint: str) -> PlanProblem:
        """The problem of the field that becomes required."""
        return PlanProblem(rule, self.plan.declared, ("columns", self.name, "required"), text, hint)


class _OtherBranch(_CheckedBranch):
    """A branch other than main."""

    def problems(self) -> Iterator[tuple[PlanProblem, bool]]:
        """The problems, and whether each is certain."""
        heads = {self.branch: self.head}
        cannot, branch = f"`{self.name}` cannot be required", branch_rows_text(heads)
        if self.missing.lacking:
            rule, is_sure = "branch-lacks-required", True
            text = f"{cannot}: files of {branch} lack it, and no reader could read them"
        elif self.missing.nulls:
            rule, is_sure = "branch-holds-nulls", True
            text = f"{cannot}: {branch} has {self.nulls} in it, which Spark would read as 0"
        elif self.missing.unknown:
            rule, is_sure = "branch-may-lack-required", False
            text = (
                f"the manifests of {branch} do not say whether every row has a value of `{self.name}`: "
                "no reader can read a file that lacks it, and a null is read as 0"
            )
        else:
            return
        hint = branch_repair_hint(self.there, self.entry.field.id, heads, self.catalog_name)
        yield self._problem(rule, text, hint), is_sure


class _MainBranch(_CheckedBranch):
    """The rows of main."""

    def problems(self) -> Iterator[tuple[PlanProblem, bool]]:
        """The problems, and whether each is certain."""
        cannot = f"`{self.name}` cannot be required"
        if self.missing.lacking:
            text = f"{cannot}: {self._files}, and a file that lacks a required field cannot be read"
            yield self._problem("required-not-in-every-file", text, self._rewrite), True
        elif self.missing.nulls:
            verb = "is" if self.missing.nulls == 1 else "are"
            text = f"{cannot}: there {verb} {self.nulls} in it, which Spark would read as 0"
            hint = "fill it in every row by an earlier migration (`backfill`), or leave it optional"
            yield self._problem("required-holds-nulls", text, hint), True
        elif self.missing.unknown and not self._is_asked:
            text = (
                f"the manifests do not say whether every row has a value of `{self.name}`, and Spark cannot "
                "query the rows: no reader can read a file that lacks it, and a null is read as 0"
            )
            hint = "leave it optional, and make it required in a later migration, which asks the rows"
            yield self._problem("may-lack-required", text, hint), False
        elif self.missing.silent and _field_query(self.entry, self.there).around:
            # Rows with a null struct need no value, and their file may lack the field all the same.
            text = (
                f"neither the manifests nor rows in which its struct is null say whether every file has "
                f"`{self.name}`: no reader can read a file that lacks it"
            )
            yield self._problem("may-lack-required", text, self._rewrite), False

    @property
    def _files(self) -> str:
        rows = f"{format_count(self.missing.lacking, 'row')} {'is' if self.missing.lacking == 1 else 'are'}"
        if self.missing.files == 1:
            return f"{rows} in a file that lacks it ({self.missing.example})"
        return f"{rows} in {self.missing.files} files that lack it (one is {self.missing.example})"

    @property
    def _rewrite(self) -> str:
        """The statement that rewrites the files."""
        way = "a `backfill` of every row in an earlier migration"
        if has_merge_on_read_updates(self.there.properties):
            way = f"an `INSERT OVERWRITE` of every row (by merge-on-read, {way} leaves files as they are)"
        return f"leave it optional until all files were written again with it, as by {way}"

    @property
    def _is_asked(self) -> bool:
        """Whether the rows are queried before the first change."""
        asked = (p.work.columns for p in self.plan.rows if isinstance(p.work, NotNullCheck))
        return any(self.name in columns for columns in asked)
