"""Whether a catalog's files can be reached, asked before a catalog asks for one.

A catalog that keeps no more than the place of a table's metadata file reads that file itself, and where the
storage is gone it tries twenty times, whatever is set (``BaseMetastoreTableOperations``): minutes, in which
a lock ends.  One question that is answered at once spares them.
"""

from __future__ import annotations

from typing import Any

_REST = "org.apache.iceberg.rest.RESTCatalog"
_OBJECT_STORES = ("s3:", "s3a:", "s3n:", "gs:", "abfs:", "abfss:", "wasb:", "wasbs:", "oss:")


class Reach:
    """Asks the storage of whichever table was loaded first.

    Nothing is asked of files on a disk, nor for a REST catalog, whose server reads the files.
    """

    def __init__(self) -> None:
        self._ask: tuple[Any, str] | None = None
        self._is_known = False

    def require(self) -> None:
        """Ask.

        :raises py4j.protocol.Py4JJavaError: the storage cannot be reached, or does not let us in.
        """
        if self._ask is not None:
            io, file = self._ask
            io.newInputFile(file).exists()  # whether it is there or not: that is an answer

    def learn(self, catalog: Any, table: Any) -> None:
        """Remember where to ask.

        :param catalog: Java's ``Catalog`` that the table was loaded from.
        :param table: Java's ``Table``.
        """
        if self._is_known:
            return
        self._is_known = True
        file = str(table.operations().current().metadataFileLocation())
        if file.startswith(_OBJECT_STORES) and catalog.getClass().getName() != _REST:
            self._ask = (table.io(), file)
