"""What holds for every test."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from icemigrate.engine.jars import JARS_VARIABLE

# Nothing is judged by time, and a failure that CI saw can be seen again.
settings.register_profile("house", deadline=None, print_blob=True)
settings.register_profile("ci", parent=settings.get_profile("house"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "house")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The quick tests first: a mistake there should not wait for Spark's start."""
    items.sort(key=lambda item: "spark" in item.path.parts)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own settings do not decide what a test sees, except for where the jars are."""
    for name in list(os.environ):
        own = name.startswith("ICEMIGRATE_") and name != JARS_VARIABLE
        if own or name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)
