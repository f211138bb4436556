"""Evolution cases and real schemas that are kept beside the project, as tables.

They stand in the folder that ``ICEMIGRATE_CASES`` names, or in ``../shared/cases`` beside the project.
Who has neither has a whole project all the same: the tests that need them live in ``tests/shared/`` and are
collected only where the folder is there (``tests/shared/conftest.py``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from pathlib import Path as File
from typing import Any

from icemigrate.frozen import Frozen, field, replace
from icemigrate.iceberg.names import FieldPath, TableName, parse_path
from icemigrate.iceberg.partition_evolution import (
    add_partition_field,
    drop_partition_field,
    rename_partition_field,
)
from icemigrate.iceberg.partitioning import (
    FIRST_FIELD_ID,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
    Transform,
)
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Ref, Table
from icemigrate.iceberg.type_text import parse_type
from icemigrate.iceberg.types import Field, Struct, Type, children, renumber_fields, with_children

FOLDER = File(os.environ.get("ICEMIGRATE_CASES") or File(__file__).parents[3] / "shared" / "cases")
MISSING = -999
"""Source id of a term whose column does not exist in that state."""

Json = Mapping[str, Any]


class Case(Frozen):
    """One evolution.

    :param before: ids as Iceberg gives them, older specs and orders and the highest ids included.
    :param after: the same fields under the same ids, new ones under negative ids; ``None`` where the
        state cannot be said at all (two columns of one name).
    :param renames: path in ``before`` → path in ``after``.
    :param recreate: paths in ``before`` that keep their name but must become new fields.
    """

    id: str
    title: str
    format_version: int
    before: Table
    after: Table | None
    renames: tuple[tuple[FieldPath, FieldPath], ...]
    verdict: str
    flag_kind: str | None
    reason: str
    recreate: tuple[FieldPath, ...] = ()
    expect: Json = field(default_factory=dict)
    raw: Json = field(default_factory=dict)


def evolution_cases() -> tuple[Case, ...]:
    """The small evolutions."""
    return tuple(_evolution(raw) for raw in json.loads((FOLDER / "evolution_cases.json").read_text("utf-8")))


def real_schema_steps() -> tuple[Case, ...]:
    """Every later change of every real table, each from the last accepted state; ids as ``07/2``."""
    return tuple(step for file in sorted((FOLDER / "real_schemas").glob("*.json")) for step in _steps(file))


def _evolution(raw: Json) -> Case:
    version = raw["format_version"]
    states = [*raw.get("history", ()), raw["before"]]
    before = created(states[0], version)
    for state in states[1:]:
        before = settled(evolved(before, state, (), ()), before)
    return _case(raw, raw["id"], before)


def _steps(file: File) -> Iterator[Case]:
    raw = json.loads(file.read_text("utf-8"))
    before = created(raw["initial"], raw["format_version"])
    for change in raw["later_changes"]:
        case = _case(change, f"{file.name[:2]}/{change['n']}", before)
        yield case
        if case.verdict != "refused":
            assert case.after is not None
            before = settled(case.after, before)


def _case(raw: Json, case_id: str, before: Table) -> Case:
    renames = tuple((parse_path(r["from"]), parse_path(r["to"])) for r in raw.get("renames", ()))
    recreate = tuple(parse_path(path) for path in raw.get("recreate", ()))
    twice = len({c["name"] for c in raw["after"]["columns"]}) < len(raw["after"]["columns"])
    return Case(
        id=case_id,
        title=raw["title"],
        format_version=before.format_version,
        before=before,
        after=None if twice else evolved(before, raw["after"], renames, recreate),
        renames=renames,
        verdict=raw["verdict"],
        flag_kind=raw.get("flag_kind"),
        reason=raw["reason"],
        recreate=recreate,
        expect=raw.get("expect", {}),
        raw=raw,
    )


class Step(Frozen):
    """What a table is led to; see :class:`Case` for the other two."""

    state: Json
    renames: tuple[tuple[FieldPath, FieldPath], ...] = ()
    recreate: tuple[FieldPath, ...] = ()

    def target(self, before: Table) -> Table:
        """See :func:`evolved`."""
        return evolved(before, self.state, self.renames, self.recreate)


class Course(Frozen):
    """How a table of a case or a real schema comes to be what it is.

    :param made: as it is made.
    :param snapshots: how often rows are written to it then.
    """

    made: Table
    steps: tuple[Step, ...] = ()
    snapshots: int = 0

    @property
    def end(self) -> Table:
        """What the catalog has of it in the end."""
        return reduce(lambda table, step: settled(step.target(table), table), self.steps, self.made)

    def to(self, state: Json, case: Case | None = None) -> Course:
        """The course that leads to a state from there."""
        names = (case.renames, case.recreate) if case else ((), ())
        first, *more = in_migrations(state)
        return replace(self, steps=(*self.steps, Step(first, *names), *map(Step, more)))


def courses() -> Mapping[str, Course]:
    """Every table that is before a case or after it, each once, by the first case that has it.

    The ids are such as ``TY-24``, ``07/2``, and ``TY-24 after``.
    """
    found: dict[str, Course] = {}
    seen: set[str] = set()
    now = Course(Table(TableName(("db",), "t"), Schema()))
    for case in (*evolution_cases(), *real_schema_steps()):
        if "before" in case.raw:
            first, *later = [*case.raw.get("history", ()), case.raw["before"]]
            now = Course(created(first, case.format_version), (), case.raw["before"].get("snapshots", 0))
            for state in later:
                now = now.to(state)
        elif case.before != now.end:  # the first step of a real schema; others go on from there
            now = Course(case.before)
        at = {case.id: now}
        if case.verdict != "refused":
            now = at[f"{case.id} after"] = now.to(case.raw["after"], case)
        for id_, course in at.items():
            key = repr((course.end, course.snapshots))
            if key not in seen:
                seen.add(key)
                found[id_] = course
    return found


def in_migrations(state: Json) -> Iterator[Json]:
    """A new column whose two defaults differ takes two migrations: a new one has both alike."""
    columns = state["columns"]
    if any(c.get("initial_default") != c.get("write_default") for c in columns):
        alike = [{**c, "write_default": c["initial_default"]} if "write_default" in c else c for c in columns]
        yield {**state, "columns": alike}
    yield state


# a state as a table


def _columns(state: Json) -> Struct:
    return Struct(
        tuple(
            Field(
                0,
                c["name"],
                parse_type(c["type"]),
                c["required"],
                c.get("doc"),
                c.get("initial_default"),
                c.get("write_default"),
            )
            for c in state["columns"]
        )
    )


def created(state: Json, version: int) -> Table:
    """A table made fresh: fields numbered as ``CREATE TABLE`` does, partition fields from 1000."""
    ids = iter(range(1, 10_000))
    root = renumber_fields(_columns(state), lambda: next(ids))
    assert isinstance(root, Struct)
    blank = Table(TableName(("db",), "t"), Schema(), format_version=version)
    table = replace(_with_layout(blank, Schema(root.fields), state), last_column_id=next(ids) - 1)
    first = FIRST_FIELD_ID
    spec = PartitionSpec(tuple(replace(f, id=at) for at, f in enumerate(table.spec.fields, first)))
    order = replace(table.sort_order, id=1 if table.sort_order.fields else 0)
    last = max([first - 1, *(f.id for f in spec.fields)])
    return replace(table, spec=spec, sort_order=order, last_partition_id=last)


def evolved(
    before: Table, state: Json, renames: Iterable[tuple[FieldPath, FieldPath]], recreate: Iterable[FieldPath]
) -> Table:
    """The state as a table whose fields are matched by path, renames followed, to those of ``before``."""
    old_of = {new: old for old, new in renames}
    known = {path: f for path, f in before.schema.walk() if not _is_below(path, tuple(recreate))}
    fresh = iter(range(-1, -10_000, -1))

    def number(type_: Type, old_parent: FieldPath | None, parent: FieldPath) -> Type:
        fields = []
        for f in children(type_):
            path = (*parent, f.name)
            old = old_of.get(path) or (None if old_parent is None else (*old_parent, f.name))
            if path not in old_of and old in old_of.values():
                old = None
            match = None if old is None or old[:-1] != old_parent else known.get(old)
            found = next(fresh) if match is None else match.id
            below = number(f.type, old if match is not None else None, path)
            fields.append(replace(f, id=found, type=below))
        return with_children(type_, tuple(fields))

    root = number(_columns(state), (), ())
    assert isinstance(root, Struct)
    return _with_layout(before, Schema(root.fields), state)


def _is_below(path: FieldPath, tops: tuple[FieldPath, ...]) -> bool:
    return any(path[: len(top)] == top for top in tops)


def _with_layout(before: Table, schema: Schema, state: Json) -> Table:
    ids = {path: f.id for path, f in schema.walk()}
    former = {path: f.id for path, f in before.schema.walk()}

    def source(text: str | None) -> int:
        """By the present name, else the id that the column had before it went."""
        if text is None:
            return MISSING
        path = parse_path(text)
        return ids.get(path) or former.get(path, MISSING)

    live = {(f.source_ids, f.transform): f for f in before.spec.live}
    fields = []
    for at, p in enumerate(state["partition"], 1):
        key = ((source(p["source"]),), Transform.parse(p["transform"]))
        old = live.get(key)
        fields.append(replace(old, name=p["name"]) if old else PartitionField(*key, p["name"], -at))
    order = tuple(
        SortField((source(s["source"]),), Transform.parse(s["transform"]), s["direction"], s["null_order"])
        for s in state["sort_order"]
    )
    identifier = frozenset(source(text) for text in state["identifier_fields"])
    spec, sort = PartitionSpec(tuple(fields), before.spec.id), SortOrder(order, before.sort_order.id)
    return replace(
        before,
        schema=replace(schema, identifier_ids=identifier),
        spec=before.spec if spec.fields == before.spec.live else spec,
        sort_order=before.sort_order if sort.fields == before.sort_order.fields else sort,
        properties=dict(state["properties"]),
        format_version=state.get("format_version", before.format_version),
        refs={name: _ref(ref) for name, ref in state.get("refs", {}).items()},
    )


def _ref(ref: Json) -> Ref:
    return Ref(
        ref["type"],
        ref["snapshot"],
        ref.get("max_ref_age_ms"),
        ref.get("max_snapshot_age_ms"),
        ref.get("min_snapshots_to_keep"),
    )


# what the catalog makes of it


def settled(table: Table, before: Table) -> Table:
    """The table as the catalog has it once the change was made from ``before``: new ids given."""
    top = table.last_column_id
    ids: dict[int, int] = {}

    def number(type_: Type) -> None:
        nonlocal top
        for f in children(type_):
            if f.id < 0:
                top += 1
                ids[f.id] = top
        for f in children(type_):
            number(f.type)

    def give(type_: Type) -> Type:
        return with_children(
            type_, tuple(replace(f, id=ids.get(f.id, f.id), type=give(f.type)) for f in children(type_))
        )

    def sources(found: Iterable[int]) -> tuple[int, ...]:
        return tuple(ids.get(i, i) for i in found)

    number(table.schema.root)
    root = give(table.schema.root)
    assert isinstance(root, Struct)
    schema = Schema(root.fields, frozenset(sources(table.schema.identifier_ids)), table.schema.id)
    fields = tuple(replace(p, source_ids=sources(p.source_ids)) for p in table.spec.live)
    order = tuple(replace(s, source_ids=sources(s.source_ids)) for s in table.sort_order.fields)
    moved = replace(before, schema=schema, last_column_id=top)
    return replace(
        table,
        schema=schema,
        last_column_id=top,
        **_settled_spec(moved, fields),
        **_settled_order(before, order),
    )


def _settled_spec(before: Table, wanted: tuple[PartitionField, ...]) -> dict[str, Any]:
    """Spec, older specs and the highest partition field id, as one update of the spec leaves them."""
    step = before
    for f in before.spec.live:
        if not any((f.source_ids, f.transform) == (w.source_ids, w.transform) for w in wanted):
            step = drop_partition_field(step, f.name)
    for w in wanted:
        there = next(
            (f for f in step.spec.live if (f.source_ids, f.transform) == (w.source_ids, w.transform)), None
        )
        if there is None:
            step = add_partition_field(step, w.source_ids[0], w.transform, w.name)
        elif there.name != w.name:
            step = rename_partition_field(step, there.name, w.name)
    specs = (before.spec, *before.older_specs)
    same = next((s for s in specs if s.fields == step.spec.fields), None)
    spec = same or PartitionSpec(step.spec.fields, max(s.id for s in specs) + 1)
    return {
        "spec": spec,
        "older_specs": tuple(s for s in specs if s.id != spec.id),
        "last_partition_id": step.last_partition_id,
    }


def _settled_order(before: Table, wanted: tuple[SortField, ...]) -> dict[str, Any]:
    """Sort order and older orders; the unsorted one has the id 0, and an equal one is used again."""
    orders = (before.sort_order, *before.older_orders)
    same = next((o for o in orders if o.fields == wanted), None)
    order = same or SortOrder(wanted, 0 if not wanted else max(o.id for o in orders) + 1)
    return {"sort_order": order, "older_orders": tuple(o for o in orders if o.id != order.id)}
