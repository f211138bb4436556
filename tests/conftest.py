"""What holds for every test."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from icemigrate import redaction
from icemigrate.spark import class_archive
from icemigrate.spark.jars import CACHE_VARIABLE, JARS_VARIABLE
from tests.support.spark_settings import end_jvm, start_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Half a minute of work in the background is no test's business, except where the archive itself is tested.
os.environ[class_archive.VARIABLE] = "off"

TESTS = Path(__file__).parent
_SLOW = ("spark", "servers", "crash")


def _cost(path: Path) -> int:
    """How dear the tests of a file are: 0 without a JVM, else by the folder below ``tests/``."""
    folder = path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else ""
    return _SLOW.index(folder) + 1 if folder in _SLOW else 0


# Nothing is judged by time, and a failure that CI saw can be seen again.
settings.register_profile("house", deadline=None, print_blob=True)
# CI sees the same examples each time; more of them would be seen once and never again.
settings.register_profile("ci", parent=settings.get_profile("house"), derandomize=True, max_examples=40)
settings.load_profile("ci" if os.environ.get("CI") else "house")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The quick tests first: a mistake there should not wait for Spark's start."""
    items.sort(key=lambda item: _cost(item.path))


@pytest.fixture(autouse=True)
def _no_spark(request: pytest.FixtureRequest) -> Iterator[None]:
    """A JVM that a quick test started would serve all others, with its own class path and heap."""
    yield
    context = sys.modules.get("pyspark.core.context")
    is_quick = _cost(request.path) == 0
    if is_quick and context is not None and context.SparkContext._active_spark_context is not None:
        end_jvm()
        pytest.fail("it starts Spark, and so belongs into tests/spark")


@pytest.fixture(autouse=True)
def _no_secrets() -> Iterator[None]:
    """A process forgets no secret, and a test is as good as a process."""
    redaction.forget_secrets()
    yield
    redaction.forget_secrets()


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own settings do not decide what a test sees, except for where the jars are."""
    for name in list(os.environ):
        own = name.startswith("ICEMIGRATE_") and name not in (
            JARS_VARIABLE,
            CACHE_VARIABLE,
            class_archive.VARIABLE,
        )
        if own or name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True, scope="module")
def _let_go(request: pytest.FixtureRequest) -> Iterator[None]:
    """What Python has not collected yet, the JVM must keep: a module's sessions end with it."""
    yield
    if _cost(request.path):
        gc.collect()


@pytest.fixture(scope="session")
def spark_jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark of a run, since its start costs more than most tests; ``start`` opens sessions in it."""
    yield start_jvm(tmp_path_factory.mktemp("spark"))
    end_jvm()
