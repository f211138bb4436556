"""Numbers in properties and names that a catalog gives."""

from __future__ import annotations

import pytest

from icemigrate.iceberg.table_properties import whole_number


@pytest.mark.parametrize("text", ["", "²", "٣", "-1", "1.5", " 1", "9" * 20, "9" * 5_000, None])
def test_other_texts_are_no_number(text: str | None) -> None:
    assert whole_number(text) is None


def test_a_long_is_a_number() -> None:
    assert (whole_number("0"), whole_number("007"), whole_number(str(2**63 - 1))) == (0, 7, 2**63 - 1)
