"""The reports beside the project are the ones that have tests."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.shared_cases import FOLDER

TESTS = Path(__file__).parents[1]


def test_every_report_has_a_test() -> None:
    reports = re.findall(r"^\*\*B(\d\d) ", (FOLDER / "reports.md").read_text("utf-8"), re.MULTILINE)
    files = ("unit/test_reports.py", "spark/test_reports_on_spark.py")
    tested = set(re.findall(r"def test_b(\d\d)_", "".join((TESTS / f).read_text("utf-8") for f in files)))
    assert reports
    assert set(reports) - tested == set()
