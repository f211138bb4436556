"""Files of a checkpoint that belong to a batch, such as the totals up to it.

Each is written before Spark marks its batch as complete, and a repeated batch writes it again from the file
of the batch before it.
"""

from __future__ import annotations

from icemigrate.pipeline.stream_checkpoint import unwritable_checkpoint
from icemigrate.wal.storage_path import AnyPath, replace_file

_SUFFIX = ".json"


def record_path(folder: AnyPath, number: int) -> AnyPath:
    """The file of a batch."""
    return folder / f"{number}{_SUFFIX}"


def record_numbers(folder: AnyPath) -> list[int]:
    """The numbers of the batches that have a file.

    :raises OSError: the folder cannot be read.
    """
    if not folder.is_dir():
        return []
    names = [path.name.removesuffix(_SUFFIX) for path in folder.iterdir() if path.name.endswith(_SUFFIX)]
    return [int(name) for name in names if name.isdigit()]


def write_record(checkpoint: AnyPath, name: str, number: int, content: bytes) -> None:
    """Write the file of a batch, and remove the earlier ones but for the last: a repeated batch needs it.

    :param name: of the folder in the checkpoint.
    :raises EngineError: the file cannot be written.
    """
    folder = checkpoint / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(record_path(folder, number), content)
        for other in sorted(one for one in record_numbers(folder) if one < number)[:-1]:
            record_path(folder, other).unlink(missing_ok=True)
    except OSError as error:
        raise unwritable_checkpoint(checkpoint, error) from error
