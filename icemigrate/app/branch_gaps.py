"""Columns that become required, looked for in the files of others' branches.

What was written under a schema without the column lacks it, which the metadata tell (see
:mod:`icemigrate.model.legality.referring`).  Where a branch was written to since the column is there, older
files of it may lack it all the same, or hold nulls: that stands in its manifests, which are read in this case
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from icemigrate.app.following import Followed
from icemigrate.changes.base import Problem
from icemigrate.changes.drop_reference import DropReference
from icemigrate.changes.make_required import MakeRequired
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.frozen import replace
from icemigrate.model.evidence import Gaps, leaf_ids
from icemigrate.model.legality.referring import lacks, way_out, with_rows
from icemigrate.model.names import TableName, format_path
from icemigrate.model.schema import Entry, index
from icemigrate.model.table import Head, Table
from icemigrate.plan import MigrationPlan, TablePlan

if TYPE_CHECKING:
    from icemigrate.catalog.port import Catalog


def with_branch_gaps(
    migrations: Iterable[MigrationPlan], actual: Mapping[TableName, Table | None], catalog: Catalog
) -> tuple[MigrationPlan, ...]:
    """The plans, with what branches have against columns that become required.

    :param actual: the catalog's tables by their name there.
    """
    followed = Followed()
    return tuple(_looked_at(migration, actual, catalog, followed) for migration in migrations)


def _looked_at(
    migration: MigrationPlan,
    actual: Mapping[TableName, Table | None],
    catalog: Catalog,
    followed: Followed,
) -> MigrationPlan:
    problems, doubts = list[Problem](), list[Problem]()
    for plan in migration.tables:
        there = actual.get(followed.now(plan))
        for problem, is_sure in () if there is None else _told(plan, there, catalog):
            (problems if is_sure else doubts).append(problem)
    if not problems and not doubts:
        return migration
    return replace(
        migration, problems=(*migration.problems, *problems), warnings=(*migration.warnings, *doubts)
    )


def _told(plan: TablePlan, there: Table, catalog: Catalog) -> Iterator[tuple[Problem, bool]]:
    """What branches have against the plan of a table, and whether it is sure."""
    required = dict(_required(plan, there)) if there.heads else {}
    dropped = {c.change.name for c in plan.changes() if isinstance(c.change, DropReference)}
    for name, head in sorted(there.heads.items()) if required else ():
        if name in dropped or not head.has_rows:
            continue
        # What it surely lacks is refused without a look.
        asked = {i: e for i, e in required.items() if head.schema is None or not lacks(head.schema, e)}
        if not asked:
            continue
        fields = {i: leaf_ids(entry.field) for i, entry in asked.items()}
        found = catalog.gaps(there.name, head.snapshot.id, fields)
        for field_id, entry in asked.items():
            gaps = Gaps(0, 0, 1) if found is None else found[field_id]
            yield from _judged(plan, there, {name: head}, entry, gaps)


def _required(plan: TablePlan, there: Table) -> Iterator[tuple[int, Entry]]:
    """The fields that become required and that files may have: what is new is in none."""
    known = dict[int, Entry]()
    for change in (planned.change for planned in plan.changes()):
        if isinstance(change, RestoreColumn):
            above = there.schema.find(change.path[:-1])
            known[change.field.id] = Entry(change.field, change.path, None if above is None else above.id)
            if change.field.required:
                yield change.field.id, known[change.field.id]
        elif isinstance(change, MakeRequired):
            entry = known.get(change.field_id) or index(there.schema).get(change.field_id)
            if entry is not None:
                yield change.field_id, replace(entry, path=change.path)


def _judged(
    plan: TablePlan, there: Table, heads: Mapping[str, Head], entry: Entry, gaps: Gaps
) -> Iterator[tuple[Problem, bool]]:
    """
    :param heads: the branch that is judged.
    """
    name, branch = format_path(entry.path), with_rows(heads)
    cannot = f"`{name}` cannot be required"
    # A struct around it that may be null or absent counts as a null of it, or a file that lacks it, too.
    around = () if entry.parent is None else there.schema.line_to(entry.parent)
    is_exact = all(field.required for field in around)
    lacking = gaps.lacking if entry.field.initial_default is None else 0
    if lacking and is_exact:
        rule, is_sure = "branch-lacks-required", True
        text = f"{cannot}: it is not in every file of {branch}, which nobody could read any more"
    elif gaps.nulls and is_exact:
        rule, is_sure = "branch-holds-nulls", True
        nulls = "a null" if gaps.nulls == 1 else f"{gaps.nulls} nulls"
        text = f"{cannot}: {branch} has {nulls} in it, which Spark would read as 0"
    elif lacking or gaps.nulls or gaps.unknown:
        rule, is_sure = "branch-may-lack-required", False
        text = (
            f"whether every row of {branch} has a value of `{name}`, its manifests do not tell: where a file "
            "lacks it, nobody can read the branch any more, and a null is read as 0"
        )
    else:
        return
    subject = ("columns", name, "required")
    yield Problem(rule, plan.declared, subject, text, way_out(there, entry, heads)), is_sure
