"""A random migration of several tables, done, taken back and done again, with others at work in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import note
from hypothesis import strategies as st

from icemigrate.changes.change import Reversibility
from icemigrate.files.write.migration_entries import creation_entry, entry_between, format_migration_file
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.table import Table, owner_of
from icemigrate.iceberg.types import Field, Primitive, Struct, is_nested, walk_fields
from icemigrate.planning.plan import TablePlan
from tests.support.random_migrations import before_that, migrations, prepared
from tests.support.random_rows import as_pyiceberg_reads, differing, row_of, without
from tests.support.random_tables import KEY, lake_tables
from tests.support.shared_plans import AROUND, plan_text
from tests.support.undo_project import UndoWorld, facts

ALL = ("destructive", "incompatible", "irreversible")
_OTHERS = ("column", "field", "property", "tag", "partition")
BEFORE, AFTER, LATER = (1, 2), (10, 11), (20,)
"""Numbers of the rows that are written before the migration, behind it, and when it is taken back."""


@dataclass(slots=True, repr=False)
class Course:
    """What happens to one table.  Told as the YAML of it where a test fails.

    :param kind: the kind of change that it is here for.
    :param wanted: what the migration makes of it; ``None``: it is dropped.
    :param before: in the catalog, before the migration; ``None``: it is made by it.
    :param after: behind it.
    :param written: schemas that rows were written under, by the rows' number.
    :param lost: fields whose values were compacted away while they were dropped, by the rows' number.
    :param theirs: what others add: ``column``, ``field``, ``property``, ``partition``, ``tag``.
    """

    kind: str
    start: Table
    wanted: Table | None = None
    has_rows: bool = True
    writes: bool = True
    theirs: frozenset[str] = frozenset()
    before: Table | None = None
    after: Table | None = None
    added: dict[Any, Any] = field(default_factory=dict)
    written: dict[int, Schema] = field(default_factory=dict)
    lost: dict[int, frozenset[int]] = field(default_factory=dict)

    def __repr__(self) -> str:
        told = {
            "kind": self.kind,
            "rows": self.has_rows,
            "writes": self.writes,
            "theirs": sorted(self.theirs),
        }
        return f"{told}\n{format_migration_file([creation_entry(self.start)])}"

    @property
    def name(self) -> TableName:
        """As it is called before the migration."""
        return self.start.name

    @property
    def name_after(self) -> TableName:
        """As it is called behind it."""
        return self.start.name if self.wanted is None else self.wanted.name


@st.composite
def starts(draw: st.DrawFn, kinds: tuple[str, ...], format_version: int) -> list[Course]:
    """The tables, one for each kind, as they are made."""
    courses = []
    for at, kind in enumerate(kinds):
        start = draw(prepared(draw(lake_tables(f"db.t{at}", format_version)), kind))
        references = kind.endswith("_reference")
        courses.append(
            Course(
                kind,
                start,
                has_rows=references or draw(st.integers(0, 4)) > 0,
                writes=draw(st.booleans()),
                theirs=draw(st.frozensets(st.sampled_from(_OTHERS))),
            )
        )
    return courses


def legal(declared: Table, actual: Table, kind: str | None = None) -> Callable[[Table], bool]:
    """Whether a migration may lead from the table to another state of it, to which rows can be written.

    The project that plans is the one that owns the table.

    :param kind: a kind of change that it shall hold.
    """
    base = DeclaredState({declared.name: declared}, frozenset({declared.name.namespace}))
    project = owner_of(actual) or AROUND.project

    def is_legal(wanted: Table) -> bool:
        text = format_migration_file([entry_between(declared, wanted)], allow=ALL)
        judged = plan_text(text, base, {actual.name: actual}, project=project)
        assert "table-owned" not in judged.rules, "no migration at all would be legal"
        if judged.plan is None or not judged.ready:
            return False
        found = {p.change.kind for t in judged.plan.tables for p in planned_changes(t)}
        warned = {w.rule for w in judged.plan.warnings}
        return (kind is None or kind in found) and "void-partition-source-missing" not in warned

    return is_legal


def make(world: UndoWorld, courses: list[Course]) -> None:
    """Make the tables and write rows; one of another project's hand is made without us."""
    ours = [c for c in courses if c.kind not in ("create_table", "adopt_table")]
    world.file(
        "0001",
        format_migration_file(
            [creation_entry(c.start) for c in ours]
            + [{"name": "db.first", "columns": [{"name": "key", "type": "long"}]}]
        ),
    )
    world.project.apply(spark=world.spark)
    for c in courses:
        if c.kind == "adopt_table":
            world.sql(
                "CREATE TABLE @ (key BIGINT, n INT, s STRUCT<t: STRING>, d DATE NOT NULL)"
                f" PARTITIONED BY (days(d)) TBLPROPERTIES ('format-version' = '{c.start.format_version}')",
                c.name,
            )
        if c.kind != "create_table" and c.has_rows:
            write(world, c, c.name, *BEFORE)


def write(world: UndoWorld, c: Course, name: TableName, *numbers: int) -> None:
    """Rows of these numbers arrive."""
    schema = world.write(name, *numbers)
    c.written |= dict.fromkeys(numbers, schema)


def prelude(draw: st.DrawFn, world: UndoWorld, courses: list[Course]) -> None:
    """The earlier migration that some kinds need."""
    declared, entries = world.declared(), []
    for c in courses:
        if c.name in declared:
            actual = world.actual(c.name)
            wanted = draw(before_that(declared[c.name], c.kind)) if c.kind else None
            known = replace(declared[c.name], snapshot=actual.snapshot)
            if c.kind.endswith("_reference"):
                wanted = draw(before_that(known, c.kind))
            if wanted is not None and legal(declared[c.name], actual)(wanted):
                entries.append(entry_between(declared[c.name], wanted))
    if entries:
        world.file("0002", format_migration_file(entries, allow=ALL))
        world.project.apply(spark=world.spark)


def migrate(draw: st.DrawFn, world: UndoWorld, courses: list[Course]) -> list[TablePlan]:
    """Apply the migration; gives what was planned."""
    declared, entries = world.declared(), []
    for c in courses:
        if c.kind == "create_table":
            c.wanted = c.start
            entries.append(creation_entry(c.start))
            continue
        c.before = world.actual(c.name)
        if c.kind == "adopt_table":
            c.wanted = c.before
            entries.append({**creation_entry(c.before), "adopt": True})
            continue
        known = declared[c.name]
        if c.kind != "drop_table":
            seen = replace(known, snapshot=c.before.snapshot)
            kind = None if c.kind == "rename_table" else c.kind
            c.wanted = draw(migrations(seen, c.kind, legal(known, c.before, kind)))
            if c.kind == "rename_table":
                c.wanted = replace(c.wanted, name=TableName.parse(f"{c.name}_anew"))
        entries.append(entry_between(known, c.wanted))
    note(text := format_migration_file(entries, allow=ALL))
    world.file("0003", text)
    planned = world.project.plan()
    world.project.apply(planned, spark=world.spark)
    for c in courses:
        c.after = None if c.wanted is None else world.actual(c.name_after)
    return list(planned.plan.migrations[0].tables)


def meanwhile(world: UndoWorld, courses: list[Course]) -> None:
    """Others change the tables, and rows arrive."""
    for c in courses:
        if c.after is None:
            continue
        for what in sorted(c.theirs):
            _THEIRS[what](world, c)
        now = world.actual(c.name_after)
        c.added = {k: v for k, v in facts(now).items() if k not in facts(c.after)}
        if c.writes:
            write(world, c, c.name_after, *AFTER)


def _their_column(world: UndoWorld, c: Course) -> None:
    world.sql("ALTER TABLE @ ADD COLUMN theirs STRING", c.name_after)


def _their_field(world: UndoWorld, c: Course) -> None:
    assert c.after is not None
    s = next((f for f in c.after.schema.fields if f.name == "s" and isinstance(f.type, Struct)), None)
    if s is not None:
        world.sql("ALTER TABLE @ ADD COLUMN s.theirs INT", c.name_after)


def _their_property(world: UndoWorld, c: Course) -> None:
    world.sql("ALTER TABLE @ SET TBLPROPERTIES ('by.others' = 'x')", c.name_after)


def _their_partition(world: UndoWorld, c: Course) -> None:
    assert c.after is not None
    key = c.after.schema.by_id(KEY)
    assert key is not None
    world.sql(
        f"ALTER TABLE @ ADD PARTITION FIELD bucket(7, `{key.name.replace('`', '``')}`) AS theirs_7",
        c.name_after,
    )


def _their_tag(world: UndoWorld, c: Course) -> None:
    if world.actual(c.name_after).snapshot is not None:
        world.sql("ALTER TABLE @ CREATE TAG theirs", c.name_after)


def give_way(world: UndoWorld, c: Course) -> None:
    """Take their partition field away, which stands in the way of a partitioning that shall come again."""
    theirs = [key for key in c.added if key[0] == "part"]
    if theirs and c.before is not None and c.after is not None and _asks_for_its_spec(c, c.before, c.after):
        world.sql("ALTER TABLE @ DROP PARTITION FIELD theirs_7", c.name)
        c.added = {k: v for k, v in c.added.items() if k not in theirs}


def _asks_for_its_spec(c: Course, one: Table, other: Table) -> bool:
    definitions = [{f.definition for f in t.spec.live} for t in (one, other)]
    return c.kind == "adopt_table" or definitions[0] != definitions[1]


_THEIRS: dict[str, Callable[[UndoWorld, Course], None]] = {
    "column": _their_column,
    "field": _their_field,
    "property": _their_property,
    "partition": _their_partition,
    "tag": _their_tag,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What must not, and what need not, go back of one table, as keys of :func:`facts`.

    :param stuck: what has to be refused.
    :param doubtful: what may be refused: nobody can know from the files' metrics.
    :param along: what stays with these, and what comes back as optional since rows were written without it.
    """

    stuck: frozenset[Any] = frozenset()
    doubtful: frozenset[Any] = frozenset()
    along: frozenset[Any] = frozenset()

    @property
    def may_stay(self) -> frozenset[Any]:
        """All facts that may be as the migration left them."""
        return self.stuck | self.doubtful | self.along


def judge(c: Course) -> Verdict:
    """What the contract says of a table's way back, found without the product."""
    if c.before is None or c.after is None or c.kind == "adopt_table":
        return Verdict()
    stuck, doubtful, along = set[Any](), set[Any](), set[Any]()
    old, new = schema_index(c.before.schema), schema_index(c.after.schema)
    if c.before.format_version != c.after.format_version:
        stuck.add("format")
    for i in old.keys() if c.writes else ():
        was, now = old[i].field, new[i].field if i in new else None
        if now is None:
            along |= {(i, "required")} if was.required else set()
            continue
        if not is_nested(was.type) and was.type != now.type:
            stuck.add((i, "type"))
        if was.required and not now.required:
            known = _nulls(c.after.schema, i)
            if known is None:
                doubtful.add((i, "required"))
            elif known:
                stuck.add((i, "required"))
    for key in c.added:
        if isinstance(key[0], int) and key[1] == "path" and (top := _new_above(c, key[0])) is not None:
            stuck.add(key)
            inside = {top.id, *(f.id for _, f in walk_fields(top.type))}
            along |= {(i, what) for i in inside for what in ("path", "type", "required", "doc", "defaults")}
    if c.before.schema.identifier_ids & {k[0] for k in stuck | doubtful | along if k[-1] == "required"}:
        along.add("identifier")
    return Verdict(frozenset(stuck), frozenset(doubtful), frozenset(along))


def _nulls(schema: Schema, field_id: int) -> bool | None:
    """Whether the rows that arrive hold nulls in a field; ``None`` where no metrics tell."""
    column = next((f for f in schema.fields if f.id == field_id), None)
    if column is None:
        return None
    if any(row_of(schema, n)[field_id] is None for n in AFTER):
        return True
    return None if is_nested(column.type) or column.type == Primitive("variant") else False


def _new_above(c: Course, field_id: int) -> Field | None:
    """The column that the migration made and others put their field into."""
    assert c.before is not None
    assert c.after is not None
    path = c.added[field_id, "path"]
    top = next((f for f in c.after.schema.fields if f.name == path[0]), None)
    return top if top is not None and c.before.schema.by_id(top.id) is None else None


def lost_rows(world: UndoWorld, c: Course, name: TableName, *, by_pyiceberg: bool = False) -> Iterator[str]:
    """Rows, and values of fields that are there, that are not found as they were written."""
    schema = world.actual(name).schema
    found = world.rows_by_pyiceberg(name) if by_pyiceberg else world.rows(name)
    if found.keys() != c.written.keys():
        yield f"{name}: rows {sorted(c.written)} were written, {sorted(found)} are there"
    for number, under in c.written.items():
        if number in found:
            row = without(row_of(under, number), c.lost.get(number, ()))
            if by_pyiceberg:
                row = as_pyiceberg_reads(under, row)
            for told in differing(row, found[number], schema):
                yield f"{name}, row {number}: {told}"


def promised(plan: TablePlan) -> Reversibility:
    """What the plan said of the way back: the least of its changes' answers."""
    answers = {c.reversal.answer for c in planned_changes(plan)}
    return next((a for a in (Reversibility.NO, Reversibility.WHILE) if a in answers), Reversibility.YES)


def planned_changes(plan: TablePlan) -> Iterator[Any]:
    """Its changes with what was said of them."""
    return (c for step in plan.steps for c in step.changes)
