"""Check that every crate of ``rust/Cargo.lock`` has a licence that this project may be distributed with.

In place of cargo-deny, which takes minutes to compile.  Reads ``cargo metadata`` on standard input.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

ALLOWED = frozenset(
    {
        *(
            "Apache-2.0",
            "Apache-2.0 WITH LLVM-exception",
            "MIT",
            "MIT-0",
            "BSD-2-Clause",
            "BSD-3-Clause",
            "BSL-1.0",
        ),
        *("0BSD", "CC0-1.0", "ISC", "Unicode-3.0", "Unlicense", "Zlib"),
    }
)
"""Identifiers of SPDX (https://spdx.org/licenses/) without conditions on code that uses a crate."""
_TOKEN = re.compile(r"\(|\)|[^\s()]+(?: WITH [^\s()]+)?")


def is_allowed(expression: str) -> bool:
    """Whether an SPDX expression can be fulfilled by allowed licences; ``/`` is the older form of ``OR``."""
    tokens = _TOKEN.findall(expression.replace("/", " OR "))
    value, rest = _any_of(tokens)
    if rest:
        raise ValueError(f"`{expression}` is not an SPDX expression")
    return value


def _any_of(tokens: list[str]) -> tuple[bool, list[str]]:
    value, tokens = _all_of(tokens)
    while tokens[:1] == ["OR"]:
        other, tokens = _all_of(tokens[1:])
        value = value or other
    return value, tokens


def _all_of(tokens: list[str]) -> tuple[bool, list[str]]:
    value, tokens = _one(tokens)
    while tokens[:1] == ["AND"]:
        other, tokens = _one(tokens[1:])
        value = value and other
    return value, tokens


def _one(tokens: list[str]) -> tuple[bool, list[str]]:
    if not tokens:
        raise ValueError("an SPDX expression ends too early")
    if tokens[0] == "(":
        value, tokens = _any_of(tokens[1:])
        if tokens[:1] != [")"]:
            raise ValueError("an SPDX expression has no closing parenthesis")
        return value, tokens[1:]
    return tokens[0] in ALLOWED, tokens[1:]


def refused(packages: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each crate whose licence is missing or not allowed."""
    lines = []
    for package in packages:
        name, licence = f"{package['name']} {package['version']}", package.get("license")
        if licence is None:
            lines.append(f"{name} names no licence")
        elif not is_allowed(licence):
            lines.append(f"{name} has the licence `{licence}`, which is not allowed")
    return sorted(lines)


def main() -> int:
    """Print the crates that are refused; the exit code is 1 if there are any."""
    packages = json.load(sys.stdin)["packages"]
    lines = refused(packages)
    for line in lines:
        sys.stderr.write(f"error: crate {line}\n")
    sys.stderr.write("" if lines else f"the licences of {len(packages)} crates are allowed\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
