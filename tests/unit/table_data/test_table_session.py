"""Names of tables, as the commands of `table` resolve them."""

from __future__ import annotations

import json

import pytest

from icemigrate.errors import ExitCode, UsageError
from tests.support.table_project import TableProject, orders

__all__ = ["orders"]


def test_a_table_is_found_under_its_declared_name(orders: TableProject) -> None:
    with orders.tables() as tables:
        found = tables.load("sales.orders")
    assert str(found.name) == "sales.orders"
    assert found.metadata["location"] in found.stored.location


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sales.order", "did you mean `sales.orders`?"),
        ("sales.zz", "namespace `sales` has `sales.orders`"),
        ("other.orders", "namespace `other` has no tables; `icemigrate status` lists tables"),
        ("orders..x", "give the namespace and the name, such as `sales.orders`"),
    ],
)
def test_a_missing_table_is_one_error_with_a_hint(orders: TableProject, name: str, hint: str) -> None:
    with orders.tables() as tables, pytest.raises(UsageError) as error:
        tables.load(name)
    assert error.value.hint == hint


def test_snapshots_of_a_table(orders: TableProject, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert orders.run("table", "snapshots", "sales.orders") == ExitCode.OK
    assert "branches and tags" in capsys.readouterr().out
    assert orders.run("table", "snapshots", "sales.orders", "--format", "json") == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    (marker,) = document["snapshots"]
    assert marker["tags"] == ["icemigrate-sales-0001"]
    assert not marker["is_current"]
