"""What the checkpoint of a stream says: its id, and which batches are complete.

The file ``metadata`` has the id, ``offsets`` a file for each batch that began, and ``commits`` one for each
that ended (Spark, `Structured Streaming <https://spark.apache.org/docs/latest/streaming/>`_).
"""

from __future__ import annotations

import json
from pathlib import Path

from icemigrate.errors import EngineError, os_error_reason


def stream_id(checkpoint: Path) -> str | None:
    """The id of the stream; ``None`` before its first run.

    :raises EngineError: the checkpoint cannot be read.
    """
    try:
        return str(json.loads((checkpoint / "metadata").read_bytes())["id"])
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(checkpoint, os_error_reason(error)) from error
    except (ValueError, KeyError, TypeError) as error:
        raise _unreadable(checkpoint, "`metadata` is damaged") from error


def last_complete(checkpoint: Path) -> int:
    """The number of the last complete batch; -1 where there is none.

    :raises EngineError: the checkpoint cannot be read.
    """
    try:
        names = [path.name for path in (checkpoint / "commits").iterdir()]
    except FileNotFoundError:
        return -1
    except OSError as error:
        raise _unreadable(checkpoint, os_error_reason(error)) from error
    return max((int(name) for name in names if name.isdigit()), default=-1)


def _unreadable(checkpoint: Path, reason: str) -> EngineError:
    return EngineError(
        f"the checkpoint {checkpoint} cannot be read: {reason}",
        "give the folder that earlier runs used, or a new one to drain the log from its beginning",
    )
