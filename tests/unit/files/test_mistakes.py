"""The documents in ``cases/mistakes``: files with mistakes, and all that is told about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from icemigrate.diagnostics import Diagnostic
from icemigrate.files.parse.source_text import SourceText, decode_source
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.version_number import Version
from icemigrate.project import read_project
from tests.unit.files.examples import LISTS

FOLDER = Path(__file__).parents[2] / "cases" / "mistakes"
CASES = [
    pytest.param(path.stem, case, id=f"{path.stem}: {case['case']}")
    for path in sorted(FOLDER.glob("*.yaml"))
    for case in yaml.safe_load(path.read_text(encoding="utf-8"))
]


def told(diagnostic: Diagnostic) -> str:
    place, hint = diagnostic.place, f"; {diagnostic.hint}" if diagnostic.hint else ""
    assert place is not None
    return f"{place.line}:{place.column} {diagnostic.code}: {diagnostic.message}{hint}"


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_all_that_is_told(kind: str, case: dict[str, Any]) -> None:
    data = bytes.fromhex(case["hex"]) if "hex" in case else case["file"].encode()
    source = decode_source(data, "file.yaml")
    if not isinstance(source, SourceText):
        diagnostics: tuple[Diagnostic, ...] = (source,)
    elif kind == "project":
        diagnostics = read_project(source, Path("/market")).diagnostics
    else:
        diagnostics = read_migration(source, Version.parse("1"), "x", LISTS).diagnostics
    assert [told(one) for one in diagnostics] == case["told"]
    assert all(one.place is not None and one.place.file == "file.yaml" for one in diagnostics)
