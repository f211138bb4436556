"""What the Collector has written and a run has not copied into the log, by the sizes of the files."""

from __future__ import annotations

from collections.abc import Iterable

from icemigrate.frozen import Frozen
from icemigrate.pipeline.collected_segments import COLLECTOR, read_progress
from icemigrate.pipeline.collector_files import file_key, opened, position_in, source_files, unreadable
from icemigrate.project.telemetry_sources import FileSource
from icemigrate.wal.storage_path import AnyPath


class UnreadPart(Frozen):
    """The part of a file that no segment has.

    :param size: in bytes; half a request at the end counts.
    :param tenant: where the address or the path gives one for the whole file.
    :param written_ns: when the file was written last, in nanoseconds since 1970.
    """

    path: str
    size: int
    tenant: str | None
    written_ns: int


def unread_parts(sources: Iterable[FileSource], log: AnyPath) -> tuple[UnreadPart, ...]:
    """The files that have one, in the order in which they are read; their requests are not read.

    :raises LogError: a folder, a file or the progress cannot be read.
    """
    progress = read_progress(log / COLLECTOR)
    found = list[UnreadPart]()
    for file in (file for source in sources for file in source_files(source)):
        with opened(file) as stream:
            if stream is None:
                continue
            try:
                position = position_in(stream, progress.files.get(file_key(file.path, stream)))
            except OSError as error:
                raise unreadable(file.path, error) from error
            if (size := stream.size - position.offset) > 0:
                found.append(UnreadPart(str(file.path), size, file.rule.tenant, stream.time_ns))
    return tuple(found)
