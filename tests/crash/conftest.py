"""Clients that die share one JVM, which outlives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.crash.client import Gateway
from tests.crash.stage import Copies, Stage, set_up
from tests.crash.walking import At, walk_over
from tests.crash.world import World
from tests.support.spark_settings import end_jvm, start_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AT_ONCE = 3


@pytest.fixture(scope="session")
def crash_jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A JVM for these tests alone, in place of the one that ran until here.

    A client that dies gives nothing back of what it held in the JVM, so that a hundred of them fill it.
    """
    end_jvm()
    yield start_jvm(tmp_path_factory.mktemp("crash"))
    end_jvm()


@pytest.fixture(scope="session")
def gateway(crash_jvm: SparkSession) -> Gateway:
    """Where the JVM listens."""
    found = crash_jvm.sparkContext._gateway
    assert found is not None
    return Gateway(found.gateway_parameters.port, found.gateway_parameters.auth_token)


@pytest.fixture(scope="session")
def stage(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Three tables with rows, and a migration of them; made once, since worlds can be copied."""
    return set_up(World(tmp_path_factory.mktemp("stage") / "project", gateway))


@pytest.fixture(params=["atomic", "direct"])
def copies(request: pytest.FixtureRequest, stage: Stage, tmp_path: Path) -> Copies:
    """Copies of the stage that publish in one way."""
    return lambda name: stage.copied(tmp_path / name, request.param)


@pytest.fixture
def staged(copies: Copies) -> Stage:
    """One of them."""
    return copies("project")


@pytest.fixture
def walk(copies: Copies) -> Callable[[At], int]:
    """Walks over every point of a command; it returns how many there are."""
    return lambda at: walk_over([copies(f"world{n}") for n in range(_AT_ONCE)], at)
