"""Names that are no plain words stand in backticks once, in every message."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from icemigrate.commands.check import check
from icemigrate.commands.plan import plan
from icemigrate.diagnostics import Diagnostic, once_quoted
from icemigrate.errors import IcemigrateError
from icemigrate.project import open_project
from icemigrate.render.formats import render
from tests.support.embedded_project import Embedded

TWICE = re.compile(r"(?<![\w`])``(?=[^`\s]+`)|`[\w.]+`[^`]+``(?!`)")
MAKE = """\
tables:
  - name: db.`a b`
    columns:
      - {name: "x y", type: long}
      - {name: "`dotted.name`", type: timestamp}
      - {name: "s t", type: "struct<`in ner`: int>"}
      - {name: "Price $", type: double}
    partition_by: ["`x y`"]
"""
CHANGE = """\
tables:
  - name: db.`a b`
    renames: {"`x z`": b, "x y": "`dotted.name`"}
    drop_columns: ["`s t`.`in ner`"]
    columns:
      - {name: "Price $", type: int}
      - {name: "X Y", type: int}
      - {name: "_pos", type: int}
    sort_by: ["`no ne`"]
    identifier: ["Price $"]
  - {name: db.`a c`, drop: true}
  - {name: db.`a-b`, renamed_from: db.`c d`}
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("``a b`` is", "`a b` is"),
        ("`db.`a b`` of `c`", "db.`a b` of `c`"),
        ("`db.`a b`.c`", "db.`a b`.c"),
        ("`db.`a.b`.`c d`` fails", "db.`a.b`.`c d` fails"),
        ("``a``b``", "`a``b`"),
        ("``größe in €``", "`größe in €`"),
        ("readers of ``a.b`` of `db.t` fail", "readers of `a.b` of `db.t` fail"),
        # One name with a dot is told from the path, where that is spoken of too.
        ("write ``a.b``, not `a.b`", "write ``a.b``, not `a.b`"),
        # Nothing is quoted twice here.
        ("`a` and `b c` and `d`", "`a` and `b c` and `d`"),
        ("`a`.`b`", "`a`.`b`"),
        ("`a``b`", "`a``b`"),
        ("`ALTER TABLE lake.db.`a b` RENAME TO db.c`", "`ALTER TABLE lake.db.`a b` RENAME TO db.c`"),
        ("ALTER TABLE lake.`d e`.`f` RENAME COLUMN `a``b` TO `c`",) * 2,
        ("`shop.`a`", "`shop.`a`"),
        ("`db.`a.b``: the values of ``a.b`` of `c`", "db.`a.b`: the values of `a.b` of `c`"),
        ("no name", "no name"),
    ],
)
def test_once_quoted(text: str, told: str) -> None:
    assert once_quoted(text) == told
    assert once_quoted(told) == told


def test_mistakes_and_faults_are_so_by_themselves() -> None:
    found = Diagnostic("x", "``a b`` is", hint="write ``c d``")
    assert (found.message, found.hint) == ("`a b` is", "write `c d`")
    slip = Diagnostic("x", "there is no `a.b`", hint="did you mean ``a.b``?")
    assert slip.hint == "did you mean ``a.b``?"
    fault = IcemigrateError("``a b`` is", "write ``c d``")
    assert (fault.message, fault.hint, str(fault)) == ("`a b` is", "write `c d`", "`a b` is")


def test_no_message_quotes_a_name_twice(tmp_path: Path) -> None:
    shop = Embedded(tmp_path)
    shop.write("0001_make.yaml", MAKE)
    shop.write("0002_change.yaml", CHANGE)
    found = check(open_project(tmp_path)).diagnostics
    assert len({d.code for d in found}) > 5, "there are many kinds of them"
    assert [d for d in found if TWICE.search(f"{d.message} {d.hint or ''}")] == []


def test_no_plan_quotes_a_name_twice(tmp_path: Path) -> None:
    shop = Embedded(tmp_path)
    shop.write("0001_make.yaml", MAKE)
    shop.apply()
    change = 'tables: [{name: db.`a b`, drop_columns: ["`dotted.name`", "`s t`"], renames: {"x y": z}}]\n'
    shop.write("0002_change.yaml", f"allow: [destructive]\n{change}")
    for form in ("text", "markdown"):
        shown = render(plan(open_project(tmp_path)), form)
        prose = [line for line in shown.splitlines() if "ALTER TABLE" not in line and "```" not in line]
        assert any("dotted.name" in line for line in prose)
        if form == "text":
            assert [line for line in prose if TWICE.search(line)] == []
