"""The result of ``ingest propose``."""

from __future__ import annotations

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count


class ProposedColumn(Frozen):
    """A column that the migration adds.

    :param kind: ``traces``, ``logs`` or ``metrics``.
    :param column: its name.
    :param type: in Iceberg's notation.
    :param attribute: that fills it, after the name of its map: ``attributes.http.route``.
    :param rows: that had the attribute, of tables without a column for it.
    :param tenants: of these rows; at most 20 are counted.
    :param first_seen: when the first batch with it began, in UTC.
    """

    kind: str
    column: str
    type: str
    attribute: str
    rows: Count
    tenants: Count
    first_seen: str


class MapAttribute(Frozen):
    """A counted attribute that gets no column, and stays in the map.

    :param kind: ``traces``, ``logs`` or ``metrics``.
    :param attribute: after the name of its map.
    :param reason: why, as a clause.
    """

    kind: str
    attribute: str
    reason: str


class ProposeResult(Frozen):
    """The result of ``ingest propose``.

    :param path: of the new file, as the user would type it; ``None`` where none was written.
    :param content: the file's text; empty where there is nothing to propose.
    :param columns: that the migration adds to the tables of their kind.
    :param in_map: attributes that get no column.
    """

    project: str
    path: str | None
    content: str
    columns: tuple[ProposedColumn, ...] = ()
    in_map: tuple[MapAttribute, ...] = ()
    notes: tuple[str, ...] = ()
