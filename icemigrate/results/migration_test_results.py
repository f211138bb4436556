"""The result of ``test``."""

from __future__ import annotations

from typing import Literal, TypeAlias

from icemigrate.frozen import Frozen

CaseOutcome: TypeAlias = Literal["passed", "failed", "error"]


class CaseResult(Frozen):
    """The result of one migration test.

    :param file: the file of the test, as the user would type it.
    :param line: of the test in the file.
    :param name: of the test.
    :param version: the tested version.
    :param outcome: ``failed`` if rows differ, ``error`` if a step could not run.
    :param failures: what differs, each with its rows on lines of their own; or why a step could not run.
    :param duration_ms: in milliseconds, without the start of Spark.
    """

    file: str
    line: int
    name: str
    version: str
    outcome: CaseOutcome
    failures: tuple[str, ...]
    duration_ms: int


class MigrationTestsResult(Frozen):
    """The result of ``test``.

    :param cases: the tests that ran, in the order of files and lines.
    :param left_out: how many tests the filters left out.
    :param spark_start_ms: how long Spark took to start, in milliseconds; null if no test needed it.
    """

    project: str
    cases: tuple[CaseResult, ...]
    left_out: int = 0
    spark_start_ms: int | None = None

    @property
    def duration_ms(self) -> int:
        """All tests and the start of Spark, in milliseconds."""
        return sum(case.duration_ms for case in self.cases) + (self.spark_start_ms or 0)

    @property
    def failed(self) -> int:
        """How many tests did not pass."""
        return sum(case.outcome != "passed" for case in self.cases)
