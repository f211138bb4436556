"""Values of tables on one line."""

from __future__ import annotations

import pytest

from icemigrate.render.table_cells import value_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("null", '"null"'),
        ("", '""'),
        ("x", "x"),
        ("x y", "x y"),
        (" x ", '" x "'),
        ("x\ny", '"x\\ny"'),
        ("\x1b[31m", "\\u001b[31m"),
        ("é" * 50, "é" * 26 + "…" + "é" * 13),
    ],
)
def test_a_value_differs_from_others_that_look_alike(value: str | None, text: str) -> None:
    assert value_text(value, 40) == text
