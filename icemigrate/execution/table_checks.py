"""Checks a table right before its steps run, and verifies it after its migration.

Between planning and a table's turn, any client that takes no lock can change it.  Verification compares only
the facts that the migration changed: one that is unchanged, or has another value, means that the catalog
ignored a request (openhouse #651).  Other clients' changes of other facts are notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

from icemigrate.catalog.capabilities import NAME_MAPPING, SPARK_ADDS
from icemigrate.changes.create_table import CreateTable
from icemigrate.errors import ConflictError, StalePlan
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import FieldPath, TableName, format_path
from icemigrate.iceberg.ref_names import is_icemigrate_ref
from icemigrate.iceberg.schema import schema_index, sibling_ids
from icemigrate.iceberg.table import Table
from icemigrate.planning.merge import merge_tables, rebind_by_path, rebind_field_ids
from icemigrate.planning.plan import TablePlan
from icemigrate.spark.conflict_check import (
    PLAN_AGAIN,
    require_no_conflict,
    require_preconditions,
    table_without_rows,
)
from icemigrate.spark.publish import apply_step


def foreign_changes(
    plan: TablePlan, known: Mapping[TableName, Table | None], now: Table | None
) -> tuple[str, ...]:
    """Notes about changes by others since the plan, of facts that the plan does not change.

    :param known: the tables in the plan; tables that are not in it get no notes.
    :param now: the current table.
    :raises ConflictError: it is another table or gone, or the plan does not fit it any more.
    :raises StalePlan: a part of the plan is done already.
    """
    if not plan.all_steps:
        return ()
    if isinstance(plan.all_steps[0].changes[0].change, CreateTable):
        # An earlier plan's table with the name has given it up by now.
        if now is not None:
            raise ConflictError(f"another client created table `{plan.name}` meanwhile", PLAN_AGAIN)
        return ()
    before = known.get(plan.name)
    if before is None:
        return ()
    if now is None:
        raise ConflictError(f"another client dropped or renamed table `{plan.name}` meanwhile", PLAN_AGAIN)
    is_changed = table_without_rows(before) != table_without_rows(now)
    if is_changed:
        require_no_conflict(before, plan.all_steps, now)
    require_preconditions(before, plan.all_steps, now)
    if not is_changed:
        return ()
    before = _with_branch_heads_of(now, before)
    return merge_tables(before, now, before).open


def _with_branch_heads_of(actual: Table, table: Table) -> Table:
    """A table whose branches are where another state has them: each commit to a branch moves its head."""
    refs = {
        name: ref.at_snapshot_of(actual.refs.get(name)) if ref.kind == "branch" else ref
        for name, ref in table.refs.items()
    }
    return replace(table, refs=refs)


def require_planned_ids(plan: TablePlan, known: Mapping[TableName, Table | None], now: Table | None) -> None:
    """Refuse a table on which new fields would get other ids than planned, where later steps use their ids.

    :param known: the tables in the plan; ``now``, the current table.
    :raises StalePlan: another client added fields to the table since the plan was made.
    """
    before = known.get(plan.name)
    if not plan.finish or before is None or now is None or before.last_column_id == now.last_column_id:
        return
    added = new_fields(plan, before)
    if added:
        raise renumbered_fields_error(plan, added)


def new_fields(plan: TablePlan, before: Table) -> dict[FieldPath, int]:
    """The ids that the first steps of a plan give to new fields.

    :param before: the table that the steps are carried out on.
    """
    after, known = (
        reduce(lambda table, step: apply_step(step, table), plan.steps, before),
        schema_index(before.schema),
    )
    return {path: f.id for path, f in after.schema.walk() if f.id not in known}


def renumbered_fields_error(plan: TablePlan, paths: Iterable[FieldPath]) -> StalePlan:
    """The error for new fields that do not have the planned ids."""
    names = ", ".join(f"`{format_path(path)}`" for path in paths)
    return StalePlan(
        f"another client added a column to `{plan.name}` meanwhile, so {names} did not get the field "
        "id that the rest of the migration relies on",
        "run `icemigrate apply` again: it makes a new plan",
    )


class VerificationResult(Frozen):
    """The result of reading a table back.

    :param ignored: facts that do not have their requested value, each with a reason.
    :param foreign: facts that another client changed meanwhile.
    :param renumbered: paths of new fields with other ids than predicted.
    """

    ignored: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    renumbered: tuple[str, ...] = ()


def verify_table(before: Table | None, expected: Table, actual: Table) -> VerificationResult:
    """Compare a table that was read back with the expected one.

    :param before: the table before the migration; ``None`` where the migration created it.
    :param expected: ``before`` after the migration's changes.
    """
    if _is_as_expected(before, expected, actual):
        return VerificationResult()
    if before is not None:
        before = replace(before, name=expected.name)
    wanted = rebind_field_ids(expected, _new_ids(before, expected))
    # Another client's field may have an id that was predicted for one of these.
    found = rebind_by_path(wanted, actual, above=0 if before is None else before.last_column_id)
    merged = merge_tables(before, wanted, actual)
    ignored = [f"{fact} is unchanged" for fact in merged.open]
    ignored += [f"{c.fact} is {c.actual} instead of {c.wanted}" for c in merged.conflicts]
    ignored += [
        f"{actual.name}: the order of {fields} differs" for fields in _misplaced(before, found, actual)
    ]
    if before is None and not _same_location(expected.location, actual.location):
        ignored.append(f"{actual.name}:location is {actual.location} instead of {expected.location}")
    return VerificationResult(
        ignored=tuple(ignored),
        foreign=tuple(_foreign(before, found, actual)) if not ignored else (),
        renumbered=tuple(_renumbered(expected, actual)),
    )


def _is_as_expected(before: Table | None, expected: Table, actual: Table) -> bool:
    """Whether all parts are equal, field ids included, so that no fact has to be compared.

    A migration of a list has thousands of such tables.
    """
    is_new = before is None
    are_properties_equal = (
        expected.properties.items() <= actual.properties.items()  # a catalog adds some
        if is_new
        else expected.properties == actual.properties
    )
    return (
        are_properties_equal
        and (not is_new or _same_location(expected.location, actual.location))
        and (expected.format_version, expected.spec, expected.sort_order, expected.older_specs)
        == (actual.format_version, actual.spec, actual.sort_order, actual.older_specs)
        and expected.refs == actual.refs
        and expected.schema.identifier_ids == actual.schema.identifier_ids
        and expected.schema.fields == actual.schema.fields
    )


def _new_ids(before: Table | None, expected: Table) -> dict[int, int]:
    """The table with new fields under ids that mark them as new: the server chooses the real ones.

    A restored field keeps the id that it had.
    """
    highest = before.last_column_id if before else 0
    return {f.id: -f.id for _, f in expected.schema.walk() if f.id > highest}


def _misplaced(before: Table | None, expected: Table, actual: Table) -> Iterator[str]:
    """Structs whose fields have another order than requested."""
    old = sibling_ids(before.schema) if before else {}
    new, there = sibling_ids(expected.schema), sibling_ids(actual.schema)
    paths = {f.id: path for path, f in expected.schema.walk()}
    for parent, order in new.items():
        # Kept fields in their old order and new ones after them: the default order.
        wanted, known, present = map(frozenset, (order, old.get(parent, ()), there.get(parent, ())))
        kept = [i for i in old.get(parent, ()) if i in wanted]
        unasked = kept + [i for i in order if i not in known]
        now = [i for i in there.get(parent, ()) if i in wanted]
        if (before is None or order != unasked) and now != [i for i in order if i in present]:
            yield "the columns" if parent is None else f"the fields of {format_path(paths[parent])}"


def _same_location(wanted: str | None, actual: str | None) -> bool:
    # Only requested values; catalogs write `file:` before a path, or leave a slash at its end.
    if wanted is None or actual is None:
        return wanted is None
    return _plain(actual) == _plain(wanted)


def _plain(location: str) -> str:
    """``/lake/t`` for ``file:/lake/t/`` and ``file:///lake/t``; other schemes as they are."""
    return re.sub("^file:/+", "/", location.rstrip("/"))


def _foreign(before: Table | None, expected: Table, actual: Table) -> Iterator[str]:
    if before is None:
        # A property that a catalog adds to a new table is not a change by a client.
        expected = replace(expected, properties=actual.properties)
    added = {key: value for key, value in actual.properties.items() if key in SPARK_ADDS}
    mapping = {key: value for key, value in actual.properties.items() if key == NAME_MAPPING}
    # Our own tags are set with the migration, before the table is read back.
    tags = {name: ref for name, ref in actual.refs.items() if is_icemigrate_ref(name, ref)}
    refs = {name: ref for name, ref in expected.refs.items() if not is_icemigrate_ref(name, ref)}
    expected = replace(
        expected, properties={**added, **expected.properties, **mapping}, refs={**refs, **tags}
    )
    expected = _with_branch_heads_of(actual, expected)
    yield from merge_tables(expected, actual, expected).open


def _renumbered(expected: Table, actual: Table) -> Iterator[str]:
    there = {path: f.id for path, f in actual.schema.walk()}
    for path, f in expected.schema.walk():
        if path in there and there[path] != f.id:
            yield format_path(path)
