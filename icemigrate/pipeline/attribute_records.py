"""The counts of attributes without a column, in the checkpoint: a file for each batch, with those up to it.

Counts of a batch that is repeated count once, and those of entries that stay in the log count when a table
gets them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from icemigrate.errors import EngineError, os_error_reason
from icemigrate.frozen import Frozen, field
from icemigrate.pipeline.attribute_counts import KindAttributes, add_counts
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.batch_records import record_numbers, record_path, write_record
from icemigrate.pipeline.stream_checkpoint import last_complete
from icemigrate.pipeline.task_results import TableEntries
from icemigrate.wal.storage_path import AnyPath

_FOLDER = "attributes"


class ObservedAttributes(Frozen):
    """The counts of all kinds up to a batch.

    :param kinds: by the word of the kind.
    """

    kinds: Mapping[str, KindAttributes] = field(default_factory=dict)


def record_attributes(
    checkpoint: AnyPath,
    number: int,
    results: Sequence[TableEntries],
    tables: Sequence[TableBatch],
    began_s: float,
) -> None:
    """Write the counts with those of a batch, unless it has no attribute without a column.

    :param results: of the tasks.
    :param tables: the outcomes; rows that no table got are left out.
    :raises EngineError: the checkpoint cannot be read or written.
    """
    ingested = {(one.tenant, one.kind) for one in tables if one.problem is None}
    new = dict[str, list[tuple[str, bytes]]]()
    for one in results:
        if one.attributes and one.tenant and one.kind and (one.tenant, one.kind) in ingested:
            new.setdefault(one.kind, []).append((one.tenant, one.attributes))
    if not new:
        return
    kinds = dict(_read(checkpoint, number - 1).kinds)
    for kind, packed in new.items():
        kinds[kind] = add_counts(kinds.get(kind, KindAttributes()), packed, began_s)
    write_record(checkpoint, _FOLDER, number, msgspec.json.encode(ObservedAttributes(kinds)))


def read_attributes(checkpoint: AnyPath) -> ObservedAttributes:
    """The counts up to the last complete batch, also beside a running stream.

    :raises EngineError: the checkpoint cannot be read.
    """
    while True:
        complete = last_complete(checkpoint)
        found = _read(checkpoint, complete)
        # A stream that completed further batches may have removed the file of this one.
        if found.kinds or last_complete(checkpoint) == complete:
            return found


def _read(checkpoint: AnyPath, number: int) -> ObservedAttributes:
    """The counts up to a batch: those of the last batch that has some; none where there is no file."""
    folder = checkpoint / _FOLDER
    try:
        found = [one for one in record_numbers(folder) if one <= number]
        content = record_path(folder, max(found)).read_bytes() if found else b"{}"
        return msgspec.json.decode(content, type=ObservedAttributes)
    except FileNotFoundError:
        return ObservedAttributes()
    except (OSError, msgspec.DecodeError) as error:
        reason = os_error_reason(error) if isinstance(error, OSError) else "a file is damaged"
        raise EngineError(
            f"the attributes in {folder} cannot be read: {reason}",
            "remove this folder to count from now on; the entries are not affected",
        ) from error
