"""Changes of columns without a migration file, on real tables without Java."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from typing import Any

import pytest

from icemigrate.commands.column_changes import ColumnChanges, change_columns, column_addition, typed_default
from icemigrate.commands.drift import drift
from icemigrate.commands.given_consents import parse_consents
from icemigrate.commands.plan import plan
from icemigrate.errors import ExitCode, Mistakes, UsageError
from icemigrate.iceberg.metadata_parts import current_schema
from icemigrate.iceberg.schema_json import schema_to_json
from icemigrate.metadata_engine.table_store import TableCommit
from icemigrate.results.column_results import ColumnChangesResult
from icemigrate.results.drift_results import DriftFact
from tests.support.table_project import ORDERS, TableProject, orders

__all__ = ["orders"]
NESTED = """\
tables:
  - name: sales.orders
    columns:
      - {name: address, type: "struct<zip: string, city: string>"}
"""


def change(at: TableProject, entry: Mapping[str, Any], *allow: str) -> ColumnChangesResult:
    """Make changes of `sales.orders`."""
    request = ColumnChanges("sales.orders", entry, allow=parse_consents(allow))
    result = change_columns(at.project, None, request)
    assert result is not None, "no question was asked"
    return result


def columns(at: TableProject) -> dict[str, int]:
    """The current columns and their field ids."""
    with at.tables() as tables:
        metadata = tables.load("sales.orders").metadata
    (schema,) = (s for s in metadata["schemas"] if s["schema-id"] == metadata["current-schema-id"])
    return {field["name"]: field["id"] for field in schema["fields"]}


def facts(at: TableProject) -> dict[str, DriftFact]:
    """What `drift` shows."""
    return {fact.fact: fact for table in drift(at.project).tables for fact in table.facts}


def test_the_commands_change_columns_under_their_field_ids(orders: TableProject) -> None:
    assert (
        orders.run("table", "add-column", "sales.orders", "source", "string", "--after", "id") == ExitCode.OK
    )
    assert orders.run("table", "rename-column", "sales.orders", "amount", "total") == ExitCode.OK
    drop = ("table", "drop-column", "sales.orders", "customer", "--allow", "destructive")
    assert orders.run(*drop) == ExitCode.OK
    assert columns(orders) == {"id": 1, "source": 5, "total": 3, "at": 4}


def test_a_refused_change_is_one_message(orders: TableProject, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert orders.run("table", "rename-column", "sales.orders", "amout", "total") == ExitCode.FINDINGS
    assert capsys.readouterr().err == (
        "error: there is no column `amout` to rename [unknown-column]\n    did you mean `amount`?\n\n"
        "error: the columns of `sales.orders` are not changed\n"
    )


def test_a_required_column_without_a_default_gets_a_hint_for_a_command(
    orders: TableProject, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = orders.folder / "rows.csv"
    rows.write_text("id\n1\n", encoding="utf-8")
    assert orders.run("table", "insert", "sales.orders", "--data", str(rows)) == ExitCode.OK
    capsys.readouterr()
    assert orders.run("table", "add-column", "sales.orders", "x", "int", "--required") == ExitCode.FINDINGS
    shown = capsys.readouterr().err
    assert "`x` cannot become required: existing files do not contain it" in shown
    assert "add the column without `--required`" in shown
    assert "required: false" not in shown


def test_a_path_leads_into_a_struct(tmp_path: Any) -> None:
    nested = TableProject.create(tmp_path, ORDERS, NESTED)
    assert nested.run("table", "add-column", "sales.orders", "address.street", "string", "--first") == 0
    assert nested.run("table", "rename-column", "sales.orders", "address.zip", "postcode") == 0
    assert nested.run("table", "drop-column", "sales.orders", "address.city", "--allow", "destructive") == 0
    with nested.tables() as tables:
        schemas = tables.load("sales.orders").metadata["schemas"]
    assert [field["name"] for field in schemas[-1]["fields"][-1]["type"]["fields"]] == ["street", "postcode"]


def test_several_changes_are_one_commit(orders: TableProject) -> None:
    def commits() -> int:
        with orders.tables() as tables:
            return len(tables.load("sales.orders").metadata["metadata-log"])

    before = commits()
    entry = {
        "renames": {"amount": "total"},
        "columns": [{"name": "source", "type": "string"}, {"name": "total", "type": "decimal(12,2)"}],
        "drop_columns": ["customer"],
    }
    result = change(orders, entry, "destructive sales.orders.customer")
    assert commits() == before + 1
    assert len(result.changes) == 4
    assert columns(orders) == {"id": 1, "total": 3, "at": 4, "source": 5}


def test_drift_knows_who_made_a_manual_change(orders: TableProject) -> None:
    change(orders, {"renames": {"amount": "total"}, "columns": [{"name": "source", "type": "string"}]})
    change(orders, {"drop_columns": ["customer"]}, "destructive")
    found = facts(orders)
    assert set(found) == {"columns.amount.name", "columns.customer", "columns.source"}
    assert all(fact.by and fact.after == fact.before and not fact.writers for fact in found.values())


def test_drift_does_not_take_a_later_value_for_a_manual_change(orders: TableProject) -> None:
    """The name that another client gave afterwards is no manual change, though a manual one preceded it."""
    change(orders, {"renames": {"amount": "total"}})
    with orders.tables() as session:
        table = session.load("sales.orders")
        schema = schema_to_json(current_schema(table.metadata))
        (field,) = (one for one in schema["fields"] if one["name"] == "total")
        field["name"] = "sum"
        new = {**schema, "schema-id": 99}
        updates = ({"action": "add-schema", "schema": new}, {"action": "set-current-schema", "schema-id": -1})
        session.store.commit([TableCommit(table.name, table.stored, updates)])
    assert facts(orders)["columns.amount.name"].by is None


def test_history_has_the_event_and_its_changes(
    orders: TableProject, capsys: pytest.CaptureFixture[str]
) -> None:
    change(orders, {"renames": {"amount": "total"}})
    capsys.readouterr()
    orders.run("history", "--format", "json")
    event = json.loads(capsys.readouterr().out)["events"][-1]
    assert (event["event"], event["version"]) == ("altered", None)
    assert event["description"] == "sales.orders: → amount → total"


def test_accepted_changes_are_declared_and_no_drift(orders: TableProject) -> None:
    change(orders, {"renames": {"amount": "total"}, "columns": [{"name": "source", "type": "string"}]})
    assert orders.run("drift", "--accept") == ExitCode.OK
    assert orders.run("apply", "--auto-approve", "--apply-with", "metadata") == ExitCode.OK
    assert not facts(orders)
    other = TableProject(orders.folder)
    shutil.rmtree(other.folder / ".icemigrate")
    assert other.run("apply", "--auto-approve", "--apply-with", "metadata") == ExitCode.OK
    assert set(columns(other)) == {"id", "customer", "total", "at", "source"}


def test_migrations_merge_with_manual_changes(orders: TableProject) -> None:
    """A migration of other facts keeps the manual change, and one of the same fact is a conflict."""
    change(orders, {"renames": {"amount": "total"}})
    orders.migrate(2, "tables: [{name: sales.orders, columns: [{name: source, type: string}]}]\n")
    assert set(columns(orders)) == {"id", "customer", "total", "at", "source"}
    orders.folder.joinpath("migrations", "0003_rename.yaml").write_text(
        "tables: [{name: sales.orders, renames: {amount: price}}]\n", encoding="utf-8"
    )
    (migration,) = plan(orders.project).plan.migrations
    assert [conflict.fact for conflict in migration.conflicts] == ["sales.orders:columns.price.name"]


def test_rolling_a_migration_back_keeps_manual_changes(orders: TableProject) -> None:
    orders.migrate(2, "tables: [{name: sales.orders, columns: [{name: source, type: string}]}]\n")
    change(orders, {"renames": {"amount": "total"}})
    assert orders.run("rollback", "--auto-approve") == ExitCode.OK
    assert set(columns(orders)) == {"id", "customer", "total", "at"}
    assert facts(orders)["columns.amount.name"].by


def test_a_drop_needs_consent(orders: TableProject) -> None:
    with pytest.raises(Mistakes) as error:
        change(orders, {"drop_columns": ["amount"]})
    (missing,) = error.value.diagnostics
    assert missing.code == "missing-allow"
    assert '`--allow "destructive sales.orders.amount"`' in (missing.hint or "")
    assert "amount" in columns(orders)


@pytest.mark.parametrize("agrees", [True, False])
def test_approval_is_consent(orders: TableProject, agrees: bool) -> None:
    request = ColumnChanges("sales.orders", {"drop_columns": ["amount"]})
    result = change_columns(orders.project, None, request, approve=lambda plan: agrees)
    assert (result is not None) == agrees
    assert ("amount" in columns(orders)) != agrees


MISTAKES = {
    "an unknown column": ({"drop_columns": ["amout"]}, "there is no column `amout` to drop"),
    "an unknown type": ({"columns": [{"name": "x", "type": "strin"}]}, "unknown type `strin`"),
    "a taken name": ({"renames": {"amount": "id"}}, "`id`"),
    "a forbidden change of type": ({"columns": [{"name": "amount", "type": "int"}]}, "amount"),
    "a default that version 2 lacks": (
        {"columns": [{"name": "x", "type": "int", "default": 5}]},
        "format version 2 does not support",
    ),
    "an unknown key of a column": ({"columns": [{"name": "x", "typ": "int"}]}, "typ"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_error_without_a_position_and_changes_nothing(
    orders: TableProject, name: str
) -> None:
    entry, text = MISTAKES[name]
    before = columns(orders)
    with pytest.raises(Mistakes) as error:
        change(orders, entry)
    assert text in str(error.value)
    assert str(error.value).startswith("cannot change the columns of `sales.orders`: ")
    assert not any(found.place for found in error.value.diagnostics)
    assert columns(orders) == before


def test_keys_that_are_no_columns_are_refused(orders: TableProject) -> None:
    with pytest.raises(UsageError, match="`properties` is no change of columns"):
        change(orders, {"properties": {"a": "b"}})


def test_a_column_that_exists_is_not_added(orders: TableProject) -> None:
    with pytest.raises(UsageError, match="already has a column `amount`"):
        change_columns(orders.project, None, column_addition("sales.orders", "amount", "string"))


def test_the_table_of_the_history_is_refused(orders: TableProject) -> None:
    request = column_addition("icemigrate.history", "x", "int")
    with pytest.raises(Mistakes, match="history"):
        change_columns(orders.project, None, request)


def test_a_change_that_is_there_already_commits_nothing(orders: TableProject) -> None:
    result = change(orders, {"columns": [{"name": "amount", "type": "decimal(10,2)"}]})
    assert result.changes == ()
    assert not facts(orders)


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("5", "int", 5),
        ("5", "string", "5"),
        ("true", "boolean", True),
        ("x", "long", "x"),
        ("1.10", "decimal(4,2)", "1.10"),
    ],
)
def test_a_default_of_the_command_line_has_the_type_of_its_column(text: str, type_: str, value: Any) -> None:
    assert typed_default(text, type_) == value
