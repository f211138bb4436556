"""Deletes files with Iceberg's ``FileIO``, and counts those that the storage refuses to delete.

``CatalogUtil.deleteFiles`` only logs a refusal.
"""

from __future__ import annotations

from typing import Any

from icemigrate.diagnostics import format_count
from icemigrate.errors import EngineError
from icemigrate.spark.java_errors import cause_chain, convert_java_errors

_SOME_NOT_DELETED = "org.apache.iceberg.io.BulkDeletionFailureException"


def delete_files(io: Any, files: Any) -> str:
    """Delete files, as far as the storage allows it; returns their number as text.

    :param io: Java's ``FileIO``.
    :param files: Java's ``List`` of their locations.
    :raises EngineError: the storage deleted none of them.
    """
    with convert_java_errors():
        total = int(files.size())
        failed = _failed_deletes(io, files) if total else 0
    if not failed:
        return f"{format_count(total, 'file')} deleted"
    hint = "`icemigrate maintain --orphans` finds them once they are old enough"
    if failed >= total:
        raise EngineError(f"the storage deleted none of {format_count(total, 'unneeded file')}", hint)
    return (
        f"{total - failed:,} of {format_count(total, 'file')} deleted; the storage refused the others, {hint}"
    )


def _failed_deletes(io: Any, files: Any) -> int:
    """Delete files; how many the storage refused to delete."""
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        io.deleteFiles(files)
    except Py4JJavaError as error:
        if cause_chain(error)[0].kind != _SOME_NOT_DELETED:
            raise
        return int(error.java_exception.numberFailedObjects())
    except Py4JError as error:
        if "does not exist" not in str(error):  # only `SupportsBulkOperations` has the method
            raise
    else:
        return 0
    failed = 0
    for file in files:
        try:
            io.deleteFile(file)
        except Py4JJavaError:
            failed += 1
    return failed
