"""Which licences of Rust crates are allowed."""

from __future__ import annotations

import pytest

from scripts.crate_licences import is_allowed, refused


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MIT/Apache-2.0", True),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("MIT AND (GPL-2.0-only OR ISC)", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
    ],
)
def test_an_expression_is_allowed_if_allowed_licences_fulfil_it(expression: str, allowed: bool) -> None:
    assert is_allowed(expression) is allowed


@pytest.mark.parametrize("expression", ["MIT OR", "(MIT", "MIT Apache-2.0", ""])
def test_what_is_no_expression_is_an_error(expression: str) -> None:
    with pytest.raises(ValueError, match="SPDX expression"):
        is_allowed(expression)


def test_a_crate_without_an_allowed_licence_is_named() -> None:
    crates = [
        {"name": "good", "version": "1.0.0", "license": "MIT"},
        {"name": "strict", "version": "2.0.0", "license": "AGPL-3.0-only"},
        {"name": "silent", "version": "3.0.0", "license": None},
    ]
    assert refused(crates) == [
        "silent 3.0.0 names no licence",
        "strict 2.0.0 has the licence `AGPL-3.0-only`, which is not allowed",
    ]
