"""How much a batch has at most."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.pipeline.batch_limit import BatchLimit
from icemigrate.wal.log_folder import SegmentFile


@pytest.mark.parametrize(
    ("limit", "sizes", "count"),
    [
        (BatchLimit(2), (9, 9, 9), 2),
        (BatchLimit(2), (9,), 1),
        (BatchLimit(2), (), 0),
        (BatchLimit(2, 20), (9, 9, 9), 2),
        (BatchLimit(1, 27), (9, 9, 9), 3),
        (BatchLimit(2, 5), (9, 9), 1),  # a larger segment is a batch of its own
        (BatchLimit(2, 5), (1, 9), 1),
    ],
)
def test_the_segments_of_a_batch(limit: BatchLimit, sizes: tuple[int, ...], count: int) -> None:
    waiting = [SegmentFile(Path(f"{number}.wal"), size, 0) for number, size in enumerate(sizes)]
    assert list(limit.first(waiting)) == waiting[:count]


def test_the_option_of_spark() -> None:
    assert BatchLimit(8).spark_option == ("maxFilesPerTrigger", 8)
    assert BatchLimit(8, 100).spark_option == ("maxBytesPerTrigger", 100)
