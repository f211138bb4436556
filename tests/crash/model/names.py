"""Which tables there are, judged by what the documentation promises.  Nothing here imports the product."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.crash.model.declared import DeclaredTable, TableKey


def names_at_rest(
    expected: Mapping[TableKey, DeclaredTable],
    known: Mapping[TableKey, str],
    tables: Mapping[tuple[str, str], str],
    namespace: str,
) -> list[str]:
    """What is wrong about which tables there are.

    :param expected: all that the migrations ever make, and whether it is gone.
    :param known: the uuids of the tables that were there before the run.
    :param tables: the uuid of each table in the catalog, without the history.
    """
    faults = []
    for key, table in expected.items():
        name = (namespace, table.name.rpartition(".")[2])
        uuid = known.get(key)
        if not table.gone and name not in tables:
            faults.append(f"at rest, there is no table {table.name}")
        elif not table.gone and uuid not in (None, tables[name]):
            faults.append(f"at rest, {table.name} is another table than before")
        if table.gone and uuid is not None and uuid not in _trash(tables):
            faults.append(f"at rest, {key[1]} is not in the trash")
    wanted = {(namespace, t.name.rpartition(".")[2]) for t in expected.values() if not t.gone}
    for name in set(tables) - wanted:
        if name[0] != "icemigrate_trash":
            faults.append(f"at rest, there is a table {'.'.join(name)} that no migration declares")
    return faults


def _trash(tables: Mapping[tuple[str, str], str]) -> Iterable[str]:
    return {uuid for (space, _), uuid in tables.items() if space == "icemigrate_trash"}
