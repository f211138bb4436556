"""Tables of a catalog, read one by one where some of them cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from icemigrate.catalog.catalog_port import Catalog
from icemigrate.errors import CatalogError, MetadataError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table


class ReadableTables(Frozen):
    """Tables, and why others cannot be read.

    :param tables: by name; ``None`` for a name that no table has.  Unreadable tables are missing.
    :param unreadable: the reason by the table's name, in one sentence with what to do.
    """

    tables: dict[TableName, Table | None]
    unreadable: dict[TableName, str]


def load_readable_tables(
    catalog: Catalog, names: Iterable[TableName], known: Mapping[TableName, Table] | None = None
) -> ReadableTables:
    """Load tables; one that cannot be read does not keep the others from being read.

    :param known: the recorded tables, see :meth:`~icemigrate.catalog.catalog_port.Catalog.load`.
    :raises CatalogError: none of the tables can be read, and the reason is not a metadata file.
    """
    tables: dict[TableName, Table | None] = {}
    errors: dict[TableName, CatalogError] = {}

    def load(some: Sequence[TableName]) -> None:
        try:
            tables.update(catalog.load(some, known=known))
        except CatalogError as error:
            if len(some) == 1:
                errors[some[0]] = error
                return
            # Halves, so that one unreadable table among thousands costs a few requests more.
            load(some[: len(some) // 2])
            if not tables and not _is_about_tables(errors.values()):
                raise
            load(some[len(some) // 2 :])

    wanted = tuple(dict.fromkeys(names))
    if wanted:
        load(wanted)
    if not tables and errors and not _is_about_tables(errors.values()):
        raise next(iter(errors.values()))
    return ReadableTables(tables, {name: unreadable_text(error) for name, error in errors.items()})


def unreadable_text(error: CatalogError) -> str:
    """Why a table cannot be read, and what to do."""
    return error.message if error.hint is None else f"{error.message} ({error.hint})"


def _is_about_tables(errors: Iterable[CatalogError]) -> bool:
    return any(isinstance(error, MetadataError) for error in errors)
