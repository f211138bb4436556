"""The pages of the documentation on which something is applied."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.played_documents import PLAYED, needs_spark
from tests.test_docs import play_page


@pytest.mark.parametrize("page", [p for p in PLAYED if needs_spark(p)], ids=lambda page: page.name)
def test_blocks(page: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_page(page, tmp_path, monkeypatch)
