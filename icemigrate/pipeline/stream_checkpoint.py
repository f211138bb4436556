"""What the checkpoint of a stream says: its id, which batches are complete, and which segments they have.

The file ``metadata`` has the id, ``offsets`` a file for each batch that began, and ``commits`` one for each
that ended.  Below ``sources/0``, Spark's file source lists the files that it found, with a number of its own
that the file in ``offsets`` refers to (Spark, `Structured Streaming
<https://spark.apache.org/docs/latest/streaming/>`_; ``FileStreamSourceLog``).  Each source of Kafka has a
folder beside it, with the offsets at which the first batch begins.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from icemigrate.errors import EngineError, UsageError, os_error_reason
from icemigrate.wal.storage_path import AnyPath

_SOURCES = "sources"
LISTS_FOLDER = "segments"
"""Of the lists of a remote log's segments, see :mod:`icemigrate.pipeline.segment_lists`."""
_COMPACT = ".compact"
_OFFSET_HEADER = 2
"""A version and a line of settings; a line for each source follows."""
_NO_SEGMENTS, _NO_NUMBER = b"-", -1
"""The line of a source that had nothing yet, beside another one that had."""


def source_folder(number: int) -> str:
    """The folder of a source in a checkpoint; the segments are the first source, with the number 0."""
    return f"{_SOURCES}/{number}"


def stream_id(checkpoint: AnyPath) -> str | None:
    """The id of the stream; ``None`` before its first run.

    :raises EngineError: the checkpoint cannot be read.
    """
    try:
        return str(json.loads((checkpoint / "metadata").read_bytes())["id"])
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable_checkpoint(checkpoint, error) from error
    except (ValueError, KeyError, TypeError) as error:
        raise unreadable_checkpoint(checkpoint, "`metadata` is damaged") from error


def last_complete(checkpoint: AnyPath) -> int:
    """The number of the last complete batch; -1 where there is none.

    :raises EngineError: the checkpoint cannot be read.
    """
    return _last_number(checkpoint, "commits")


def last_planned(checkpoint: AnyPath) -> int:
    """The number of the last batch whose segments are known; -1 where there is none.

    :raises EngineError: the checkpoint cannot be read.
    """
    return _last_number(checkpoint, "offsets")


def _last_number(checkpoint: AnyPath, folder: str) -> int:
    try:
        names = [path.name for path in (checkpoint / folder).iterdir()]
    except FileNotFoundError:
        return -1
    except OSError as error:
        raise unreadable_checkpoint(checkpoint, error) from error
    return max((int(name) for name in names if name.isdigit()), default=-1)


def complete_segments(checkpoint: AnyPath, complete: int) -> frozenset[Path]:
    """The segments of complete batches of a local log, also those that are removed.

    :param complete: the number of the last complete batch; -1 for none.
    :raises EngineError: the checkpoint cannot be read.
    """
    if complete < 0:
        return frozenset()
    last = source_number(checkpoint, complete)
    if last == _NO_NUMBER:
        return frozenset()
    try:
        found = frozenset(
            Path(unquote(urlsplit(entry["path"]).path))
            for path in _source_files(checkpoint)
            for entry in _source_entries(path)
            if entry["batchId"] <= last
        )
    except OSError as error:
        raise unreadable_checkpoint(checkpoint, error) from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise unreadable_checkpoint(checkpoint, "the list of segments is damaged") from error
    return found


def planned_names(checkpoint: AnyPath, batch: int) -> frozenset[str]:
    """The names of the segments of a batch of a local log.

    :param batch: one that Spark has begun.
    :raises EngineError: the checkpoint cannot be read.
    """
    last = source_number(checkpoint, batch)
    first = source_number(checkpoint, batch - 1) + 1 if batch else 0
    folder = checkpoint / source_folder(0)
    try:
        return frozenset(
            unquote(urlsplit(entry["path"]).path).rpartition("/")[2]
            for number in range(first, last + 1)
            for suffix in ("", _COMPACT)
            for entry in _source_entries(folder / f"{number}{suffix}")
            if entry["batchId"] == number
        )
    except OSError as error:
        raise unreadable_checkpoint(checkpoint, error) from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise unreadable_checkpoint(checkpoint, "the list of segments is damaged") from error


def require_sources(checkpoint: AnyPath, count: int) -> None:
    """Check that a checkpoint is of a stream with a number of sources: the segments, and those of Kafka.

    :raises UsageError: it is of another number.
    :raises EngineError: the checkpoint cannot be read.
    """
    planned = last_planned(checkpoint)
    if planned < 0:
        return
    try:
        lines = (checkpoint / "offsets" / str(planned)).read_bytes().splitlines()
    except OSError as error:
        raise unreadable_checkpoint(checkpoint, error) from error
    found = len(lines) - _OFFSET_HEADER
    if found != count:
        raise UsageError(
            f"the checkpoint {checkpoint} is of runs with {found - 1} addresses of Kafka, and this run has "
            f"{count - 1}",
            "give the `--from` of earlier runs, or another log, which gets a checkpoint of its own",
        )


def require_log_kind(checkpoint: AnyPath, log: AnyPath) -> None:
    """Check that a checkpoint is of a log of the same kind, because its offsets refer to other lists.

    :raises UsageError: it is of a local log, and the log is on a storage, or the other way round.
    :raises EngineError: the checkpoint cannot be read.
    """
    is_local = isinstance(log, Path)
    other = LISTS_FOLDER if is_local else source_folder(0)
    try:
        is_other = any(True for _ in (checkpoint / other).iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreadable_checkpoint(checkpoint, error) from error
    if is_other:
        kinds = ("a log on a storage", "in a local folder") if is_local else ("a local log", "on a storage")
        raise UsageError(
            f"the checkpoint {checkpoint} is of {kinds[0]}, and the log {log} is {kinds[1]}",
            "give another folder with `--checkpoint`, or `checkpoint` in the project file: it drains the log "
            "from its beginning",
        )


def kafka_offsets(checkpoint: AnyPath, batch: int) -> tuple[dict[str, dict[str, int]], ...]:
    """The first offsets behind a batch, by topic and partition, for each source of Kafka.

    :raises EngineError: the checkpoint cannot be read.
    """
    try:
        lines = (checkpoint / "offsets" / str(batch)).read_bytes().splitlines()[_OFFSET_HEADER + 1 :]
        found = tuple({} if line == _NO_SEGMENTS else dict(json.loads(line)) for line in lines)
    except OSError as error:
        raise unreadable_checkpoint(checkpoint, error) from error
    except (ValueError, TypeError) as error:
        raise unreadable_checkpoint(checkpoint, "the offsets of Kafka are damaged") from error
    return found


def make_durable(checkpoint: Path) -> None:
    """Make the checkpoint survive a power failure: Spark leaves that to the operating system.

    :raises EngineError: the file system refuses.
    """
    try:
        # A remote log has lists of its own, which are durable.
        sources = sorted((checkpoint / _SOURCES).glob("*"))
        for folder in (*(checkpoint / name for name in ("", "offsets", "commits")), *sources):
            for path in (*(one for one in folder.iterdir() if one.is_file()), folder):
                _sync(path)
    except OSError as error:
        raise EngineError(
            f"the checkpoint {checkpoint} cannot be made durable: {os_error_reason(error)}",
            "run the command again",
        ) from error


def _sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable; Spark may have removed a file since it was listed."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(number)
    finally:
        os.close(number)


def source_number(checkpoint: AnyPath, batch: int) -> int:
    """The last number of the source that a batch has.

    :raises EngineError: the checkpoint cannot be read.
    """
    try:
        offset = (checkpoint / "offsets" / str(batch)).read_bytes().splitlines()[_OFFSET_HEADER]
        return _NO_NUMBER if offset == _NO_SEGMENTS else int(json.loads(offset)["logOffset"])
    except OSError as error:
        raise unreadable_checkpoint(checkpoint, error) from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise unreadable_checkpoint(checkpoint, "the list of segments is damaged") from error


def _source_files(checkpoint: AnyPath) -> Iterator[AnyPath]:
    """The files of the source's list; one that ends in ``.compact`` repeats those before it."""
    for path in (checkpoint / source_folder(0)).iterdir():
        if path.name.removesuffix(_COMPACT).isdigit():
            yield path


def _source_entries(path: AnyPath) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return  # Spark removed it; a `.compact` file has its lines
    for line in lines[1:]:
        yield json.loads(line)


def unreadable_checkpoint(checkpoint: AnyPath, reason: OSError | str) -> EngineError:
    """The error of a checkpoint.

    :param reason: why it cannot be read, or what is damaged.
    """
    if isinstance(reason, OSError):
        reason, hint = (
            os_error_reason(reason),
            "check that the storage can be reached, and run the command again",
        )
    else:
        hint = "give the folder that earlier runs used, or a new one to drain the log from its beginning"
    return EngineError(f"the checkpoint {checkpoint} cannot be read: {reason}", hint)


def unwritable_checkpoint(checkpoint: AnyPath, error: OSError) -> EngineError:
    """The error of a checkpoint that cannot be written."""
    return EngineError(
        f"the checkpoint {checkpoint} cannot be written: {os_error_reason(error)}",
        "check the free space, and the right to write there; the next run repeats the batch",
    )
