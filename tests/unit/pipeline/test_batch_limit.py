"""How much a batch has at most."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import create_autospec

import pytest
from pyspark.sql.streaming.readwriter import DataStreamReader

from icemigrate.pipeline.batch_limit import BatchLimit
from icemigrate.pipeline.stream_source import FolderSource
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


def test_segments_of_any_age_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = create_autospec(DataStreamReader, instance=True)
    for name in ("format", "schema", "option", "load"):
        getattr(reader, name).return_value = reader
    reader.select = lambda _column: reader
    FolderSource(Path("/log"), BatchLimit(2)).load(SimpleNamespace(readStream=reader))  # type: ignore[arg-type]
    options = dict(call.args for call in reader.option.call_args_list)
    assert options == {
        "pathGlobFilter": "*.wal",
        "maxFilesPerTrigger": 2,
        "maxFileAge": "36500d",
        "__globPaths__": "false",
    }
    reader.load.assert_called_once_with("/log")


def test_the_option_of_spark() -> None:
    assert BatchLimit(8).spark_option == ("maxFilesPerTrigger", 8)
    assert BatchLimit(8, 100).spark_option == ("maxBytesPerTrigger", 100)
