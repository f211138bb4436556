"""Every case and every step of a real schema, written as a migration and folded again."""

from __future__ import annotations

import pytest

from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.files.write.migration_entries import creation_entry, entry_between, format_migration_file
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.iceberg.names import parse_path
from icemigrate.iceberg.table import Table
from tests.support.replayed_migrations import migration
from tests.support.shared_cases import MISSING, Case, evolution_cases, real_schema_steps, settled
from tests.support.table_strategies import with_new_ids_in_order, without_ids

CASES = (*evolution_cases(), *real_schema_steps())
SAYABLE = [c for c in CASES if c.after is not None and c.id not in ("RN-22", "TY-26")]
"""Two columns of one name, a field that leaves its struct, and another initial default cannot be written.
Neither can TY-24's state in one declaration: initial and write default differ, which takes two migrations."""


def _folded(entry: dict[str, object], before: DeclaredState) -> Table:
    folded = replay_migration(before, migration(format_migration_file([entry])))
    assert not folded.diagnostics, folded.diagnostics
    (wanted,) = folded.wanted
    assert wanted.table is not None
    return wanted.table


@pytest.mark.parametrize("case", [c for c in CASES if c.id != "TY-24"], ids=lambda c: c.id)
def test_every_state_can_be_declared(case: Case) -> None:
    declared = _folded(creation_entry(case.before), EMPTY_STATE)
    blank = replace(case.before, older_specs=(), older_orders=(), last_partition_id=999)
    assert _comparable(without_ids(declared)) == _comparable(without_ids(blank))


@pytest.mark.parametrize("case", SAYABLE, ids=lambda c: c.id)
def test_every_change_can_be_written(case: Case) -> None:
    assert case.after is not None
    entry = entry_between(case.before, case.after)
    after = replace(_folded(entry, DeclaredState({case.before.name: case.before})), dropped=())
    assert _comparable(with_new_ids_in_order(after)) == _comparable(with_new_ids_in_order(case.after))


@pytest.mark.parametrize("case", [c for c in CASES if c.renames and c in SAYABLE], ids=lambda c: c.id)
def test_renames_come_out_as_renames(case: Case) -> None:
    assert case.after is not None
    written = entry_between(case.before, case.after)["renames"]
    assert {parse_path(old): parse_path(new)[-1] for old, new in written.items()} == {
        old: new[-1] for old, new in case.renames
    }


@pytest.mark.parametrize("case", [c for c in CASES if "field_ids" in c.expect], ids=lambda c: c.id)
def test_field_ids_are_the_ones_that_the_case_expects(case: Case) -> None:
    assert case.after is not None
    after = settled(case.after, case.before)
    found = {path: field.id for path, field in after.schema.walk()}
    assert {path: found[parse_path(path)] for path in case.expect["field_ids"]} == case.expect["field_ids"]


def _comparable(table: Table) -> Table:
    """Without what no migration says: snapshots of references, ids of spec fields and of the order."""
    spec = tuple(replace(f, id=0) for f in table.spec.live if f.source_ids != (MISSING,))
    order = tuple(f for f in table.sort_order.fields if f.source_ids != (MISSING,))
    refs = {name: replace(ref, snapshot_id=0) for name, ref in table.refs.items()}
    return replace(
        table,
        spec=replace(table.spec, fields=spec, id=0),
        sort_order=replace(table.sort_order, fields=order, id=0),
        properties=dict(table.properties),
        refs=refs,
        name=table.name,
    )
