"""What an interrupted run had committed: read from the tables before its work is undone or continued."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import chain

from icemigrate.app.world import Opened
from icemigrate.catalog.port import Catalog
from icemigrate.frozen import replace
from icemigrate.history.intent import Intent
from icemigrate.model.marks import tag_name
from icemigrate.model.names import TableName
from icemigrate.model.undo_record import TableUndo, UndoRecord
from icemigrate.undo import Commits, traced, uuid_of


def tracer(world: Opened) -> Callable[[UndoRecord, Intent], UndoRecord]:
    """What corrects an undo record by the commits of the run that its intent names.

    It raises :class:`~icemigrate.errors.CatalogError` where the catalog cannot be read.
    """

    def trace(record: UndoRecord, intent: Intent) -> UndoRecord:
        if record.baseline:
            return record
        tables = tuple(_traced(world, table, intent) for table in record.tables)
        return replace(record, tables=tables)

    return trace


def _traced(world: Opened, undo: TableUndo, intent: Intent) -> TableUndo:
    sides = (undo.actual_after, undo.actual_before)
    names = list(dict.fromkeys(side.name for side in sides if side is not None))
    if undo.before is None or undo.actual_before is None:
        return undo  # the mark of its maker proves a table that the migration made
    uuid, catalog = uuid_of(undo), world.catalog
    for name in chain(names, _renamed(catalog, uuid, names)):
        metadata = catalog.metadata_json(name)
        if metadata is None or (uuid is not None and metadata.get("table-uuid") not in (None, uuid)):
            continue
        base = next((intent.metadata[str(n)] for n in names if str(n) in intent.metadata), None)
        commits = Commits(
            metadata=metadata,
            location=catalog.metadata_location(name),
            base=base,
            tag=tag_name(world.project.name, intent.version.text),
            run=intent.run,
            read=partial(catalog.metadata_at, name),
        )
        return traced(undo, commits)
    return undo


def _renamed(catalog: Catalog, uuid: str | None, known: Collection[TableName]) -> Iterator[TableName]:
    """The name that another client gave to a table, looked for in all of the catalog."""
    if uuid is None:
        return
    for name, table in catalog.load([name for name in catalog.tables() if name not in known]).items():
        if table is not None and table.uuid == uuid:
            yield name
