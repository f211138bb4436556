"""What holds for every test."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from icemigrate import redaction
from icemigrate.engine import archive
from icemigrate.engine.jars import JARS_VARIABLE
from tests.one_spark import end_jvm, start_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Half a minute of work in the background is no test's business, except where the archive itself is tested.
os.environ[archive.VARIABLE] = "off"

_SLOW = ("spark", "servers", "crash")

# Nothing is judged by time, and a failure that CI saw can be seen again.
settings.register_profile("house", deadline=None, print_blob=True)
settings.register_profile("ci", parent=settings.get_profile("house"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "house")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The quick tests first: a mistake there should not wait for Spark's start."""
    items.sort(key=lambda item: max((_SLOW.index(p) + 1 for p in item.path.parts if p in _SLOW), default=0))


@pytest.fixture(autouse=True)
def _no_spark(request: pytest.FixtureRequest) -> Iterator[None]:
    """A JVM that a quick test started would serve all others, with its own class path and heap."""
    yield
    context = sys.modules.get("pyspark.core.context")
    is_quick = not any(part in _SLOW for part in request.path.parts)
    if is_quick and context is not None and context.SparkContext._active_spark_context is not None:
        end_jvm()
        pytest.fail("it starts Spark, and so belongs into tests/spark")


@pytest.fixture(autouse=True)
def _no_secrets() -> Iterator[None]:
    """A process forgets no secret, and a test is as good as a process."""
    redaction.forget()
    yield
    redaction.forget()


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own settings do not decide what a test sees, except for where the jars are."""
    for name in list(os.environ):
        own = name.startswith("ICEMIGRATE_") and name not in (JARS_VARIABLE, archive.VARIABLE)
        if own or name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True, scope="module")
def _let_go(request: pytest.FixtureRequest) -> Iterator[None]:
    """What Python has not collected yet, the JVM must keep: a module's sessions end with it."""
    yield
    if any(part in _SLOW for part in request.path.parts):
        gc.collect()


@pytest.fixture(scope="session")
def spark_jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark of a run, since its start costs more than most tests; ``start`` opens sessions in it."""
    yield start_jvm(tmp_path_factory.mktemp("spark"))
    end_jvm()
