"""The entry of ``diff`` leads from the declared table to the desired one, for random tables."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from icemigrate.desired_state import DOCUMENT_KINDS
from icemigrate.desired_state.desired_table import DesiredTable, FieldBuilder
from icemigrate.desired_state.match_fields import FieldRenames
from icemigrate.desired_state.match_tables import TableMatch, match_table
from icemigrate.desired_state.sql_types import UnreadableType, read_sql_type
from icemigrate.errors import Mistakes
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.parse.yaml_composer import parse_yaml
from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.files.write.migration_entries import creation_entry, format_migration_file
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from tests.support.evolution_strategies import Evolution, evolutions
from tests.support.replayed_migrations import migration, settled
from tests.support.table_strategies import without_ids

KEPT_IN_PLACE = {"location": None, "snapshot": None, "uuid": None}


def desired_table(evolution: Evolution) -> DesiredTable:
    """The wanted table as a file declares it: without the ids that the catalog knows."""
    bare = without_ids(replace(evolution.wanted, dropped=()))
    return DesiredTable(replace(bare, **KEPT_IN_PLACE), is_whole=True, is_format_stated=True)


def replayed(match: TableMatch) -> Table:
    """The declared table after the migration that ``diff`` writes."""
    assert match.before is not None
    if match.entry is None:
        return match.before
    found = replay_migration(
        DeclaredState({match.before.name: match.before}),
        migration(format_migration_file([match.entry], description="d", allow=["destructive"])),
    )
    assert not found.diagnostics, found.diagnostics
    (target,) = found.wanted
    assert target.table is not None
    return settled(target.table)


def renames(evolution: Evolution) -> FieldRenames:
    """The renames that the ids show, where only the field's own name differs."""
    old, new = schema_index(evolution.before.schema), schema_index(evolution.wanted.schema)
    return {
        old[i].path: new[i].field.name
        for i in old.keys() & new.keys()
        if old[i].field.name != new[i].field.name
    }


@given(evolutions(by_hand=False))
def test_the_file_leads_to_the_desired_table(evolution: Evolution) -> None:
    desired = desired_table(evolution)
    match = match_table(evolution.before, desired, {}, include_drops=True)
    assume(not match.problems)
    assert creation_entry(replayed(match)) == creation_entry(desired.table)


@given(evolutions(by_hand=False))
def test_with_the_renames_as_hints_each_field_keeps_its_id(evolution: Evolution) -> None:
    desired = desired_table(evolution)
    match = match_table(evolution.before, desired, renames(evolution), include_drops=True)
    assume(not match.problems)
    after = replayed(match)
    assert {i for i in schema_index(evolution.wanted.schema) if i > 0} <= schema_index(after.schema).keys()
    names = {i: entry.path for i, entry in schema_index(after.schema).items()}
    wanted = {i: entry.path for i, entry in schema_index(evolution.wanted.schema).items() if i > 0}
    assert {i: names[i] for i in wanted} == wanted


@given(evolutions(by_hand=False), st.booleans())
def test_without_drops_each_declared_field_stays_beside_the_desired_ones(
    evolution: Evolution, is_whole: bool
) -> None:
    desired = replace(desired_table(evolution), is_whole=is_whole)
    match = match_table(evolution.before, desired, {}, include_drops=False)
    assume(not match.problems)
    after = replayed(match)
    assert schema_index(evolution.before.schema).keys() <= schema_index(after.schema).keys()
    paths = {entry.path for entry in schema_index(after.schema).values()}
    assert {entry.path for entry in schema_index(desired.table.schema).values()} <= paths
    assert evolution.before.refs.keys() <= after.refs.keys()


@given(evolutions(by_hand=False))
def test_a_table_that_is_as_desired_needs_no_entry(evolution: Evolution) -> None:
    same = replace(evolution.before, name=evolution.wanted.name)
    desired = desired_table(replace(evolution, wanted=same))
    match = match_table(evolution.before, desired, {}, include_drops=True)
    assert match.problems == ()
    assert match.entry is None


KEYS = (
    *("type", "fields", "name", "nullable", "metadata", "elementType", "keyType", "valueType", "comment"),
    *("models", "columns", "data_type", "constraints", "description", "kind", "schema", "properties"),
    *("logicalType", "physicalType", "items", "map", "key", "value", "logicalTypeOptions", "timezone"),
)
WORDS = (
    *("struct", "array", "map", "long", "string", "object", "timestamp", "DataContract", "t", "not_null"),
    *("array<struct<a: int>>", "decimal(10,2)", "decimal(99,1)", "row(a int", "fixed", "int[]", "", "number"),
)
documents: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from((*WORDS, None, True, 1, 1.5)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
SHELLS = (
    lambda inner: {"type": "struct", "fields": [{"name": "a", "type": inner}]},
    lambda inner: {"models": [{"name": "t", "columns": [{"name": "a", "data_type": inner}]}]},
    lambda inner: {"models": [{"name": "t", "columns": inner}]},
    lambda inner: {"kind": "DataContract", "schema": [{"name": "t", "properties": [inner]}]},
    lambda inner: inner,
)


@given(documents, st.sampled_from(SHELLS))
def test_a_document_of_any_form_is_read_or_refused(inner: Any, shell: Any) -> None:
    node = parse_yaml(SourceText("d.json", json.dumps(shell(inner)))).node
    assume(node is not None)
    assert node is not None
    for kind in DOCUMENT_KINDS:
        if kind.fits(node):
            with suppress(Mistakes):
                assert kind.read(node, TableName.parse("db.t")).table.schema.fields is not None


@given(st.text(st.sampled_from("abint<>(),[] :09`'\"struarymp"), max_size=40))
def test_a_type_of_any_form_is_read_or_refused(text: str) -> None:
    with suppress(UnreadableType):
        assert read_sql_type(text, FieldBuilder()) is not None
