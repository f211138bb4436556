from __future__ import annotations

import pytest

from icemigrate.iceberg.type_text import parse_type
from icemigrate.iceberg.types import JsonValue
from icemigrate.spark_sql.expressions import default_sql


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (5, "long", "CAST('5' AS BIGINT)"),
        (True, "boolean", "CAST('true' AS BOOLEAN)"),
        ("14.20", "decimal(9,2)", "CAST('14.20' AS DECIMAL(9, 2))"),
        ("2026-01-01", "date", "CAST('2026-01-01' AS DATE)"),
        ("it's", "string", "CAST('it\\'s' AS STRING)"),
        ("00ff", "binary", "X'00ff'"),
        ("00ff", "fixed[2]", "X'00ff'"),
        ("f79c3e09-677c-4bbd-a479-3f349cb785e7", "uuid", "'f79c3e09-677c-4bbd-a479-3f349cb785e7'"),
    ],
)
def test_a_default_is_an_expression_of_its_type(value: JsonValue, type_: str, text: str) -> None:
    assert default_sql(value, parse_type(type_)) == text
