"""Helpers for the tests of the fold: migrations written as YAML, folded over tables written as YAML."""

from __future__ import annotations

from textwrap import dedent

from icemigrate.diagnostics import Diagnostic
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.replay.replay_migration import ReplayedMigration, replay_migration
from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState, TableTarget
from icemigrate.iceberg.names import TableName, parse_path
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field, children, map_fields

T = TableName(("db",), "t")


def migration(text: str, version: str = "0001") -> MigrationFile:
    """A migration out of YAML that has no mistake of its own."""
    read = read_migration(SourceText("m.yaml", dedent(text)), Version.parse(version), "m")
    assert read.migration is not None, read.diagnostics
    return read.migration


def after(state: DeclaredState, folded: ReplayedMigration) -> DeclaredState:
    """The state that a migration leaves, fields numbered as a catalog would: upwards, in document order."""
    gone = {w.formerly for w in folded.wanted}
    tables = {n: t for n, t in state.tables.items() if n not in gone}
    tables |= {w.name: settled(w.table) for w in folded.wanted if w.table is not None}
    return DeclaredState(tables, folded.namespaces, state.former)


def settled(table: Table) -> Table:
    """The table with positive ids for what is new."""
    top = max([table.last_column_id, *(f.id for _, f in table.schema.walk())], default=0)
    ids: dict[int, int] = {}
    for _, f in table.schema.walk():
        ids[f.id] = f.id
        if f.id < 0:
            top += 1
            ids[f.id] = top

    def give(f: Field) -> Field:
        return replace(f, id=ids.get(f.id, f.id))

    columns = tuple(give(replace(f, type=map_fields(f.type, give))) for f in table.schema.fields)
    last = max([table.last_partition_id, *(f.id for f in table.spec.fields)])
    fields = []
    for p in table.spec.fields:
        last += p.id < 0
        new = last if p.id < 0 else p.id
        fields.append(replace(p, id=new, source_ids=tuple(ids.get(i, i) for i in p.source_ids)))
    order = tuple(
        replace(s, source_ids=tuple(ids.get(i, i) for i in s.source_ids)) for s in table.sort_order.fields
    )
    identifier = frozenset(ids.get(i, i) for i in table.schema.identifier_ids)
    return replace(
        table,
        schema=replace(table.schema, fields=columns, identifier_ids=identifier),
        spec=replace(table.spec, fields=tuple(fields)),
        sort_order=replace(table.sort_order, fields=order),
        last_column_id=top,
        last_partition_id=last,
    )


def state(*texts: str) -> DeclaredState:
    """The state after migrations without mistakes."""
    found = EMPTY_STATE
    for text in texts:
        folded = replay_migration(found, migration(text))
        assert not folded.diagnostics, folded.diagnostics
        found = after(found, folded)
    return found


def replay_text(text: str, before: DeclaredState = EMPTY_STATE) -> ReplayedMigration:
    """A migration folded over a state, mistakes and all."""
    return replay_migration(before, migration(text))


def wanted(text: str, before: DeclaredState = EMPTY_STATE) -> TableTarget:
    """The one table that a migration without mistakes wants."""
    folded = replay_text(text, before)
    assert not folded.diagnostics, folded.diagnostics
    (one,) = folded.wanted
    return one


def table(text: str, before: DeclaredState = EMPTY_STATE) -> Table:
    """The same, which is not to be dropped."""
    found = wanted(text, before).table
    assert found is not None
    return found


def mistake(text: str, before: DeclaredState = EMPTY_STATE) -> Diagnostic:
    """The one thing that is wrong with a migration; the table is left out then."""
    folded = replay_text(text, before)
    (one,) = folded.diagnostics
    assert folded.wanted == ()
    return one


def column(found: Table, path: str) -> Field:
    """The field at a path."""
    field = found.schema.find(parse_path(path))
    assert field is not None, f"no {path} in {[f.name for f in found.schema.fields]}"
    return field


def names(found: Table, path: str = "") -> list[str]:
    """Names of the columns, or of the fields of the struct at a path."""
    if not path:
        return [f.name for f in found.schema.fields]
    return [f.name for f in children(column(found, path).type)]


def dropped_paths(found: Table) -> list[tuple[str, ...]]:
    """Paths of what is dropped."""
    return [d.path for d in found.dropped]


def entry(text: str, name: str = "db.t") -> str:
    """A migration of one table; the text begins on line 3."""
    return f"tables:\n  - name: {name}\n" + "".join(
        f"    {line}\n" for line in dedent(text).strip().splitlines()
    )


def field_ids(found: Table) -> dict[str, int]:
    """Field ids by dotted path."""
    return {".".join(path): f.id for path, f in found.schema.walk()}
