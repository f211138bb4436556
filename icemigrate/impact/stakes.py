"""What is at stake: columns and tables that migrations take away or make into something else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

from icemigrate.frozen import Frozen, field
from icemigrate.impact.relations import Origin, Relation
from icemigrate.model.names import Path, TableName, format_path


class Fate(str, Enum):
    """What becomes of a column or a table."""

    RENAMED = "renamed"
    DROPPED = "dropped"
    RETYPED = "retyped"


class Stake(Frozen):
    """A column, a field of one, or a table that a migration changes for those who use it.

    :param table: the table as it is called once all migrations are applied; a table that is dropped or
        renamed as it was called before.
    :param path: of the column as it was called before; empty for the table itself.
    :param to: what takes its place: a name, or a type; empty for nothing.
    :param migration: the name of the file that does it.
    """

    table: TableName
    path: Path
    fate: Fate
    to: str
    migration: str

    @property
    def says(self) -> str:
        """What the migration does, as the rest of a sentence."""
        if self.fate is Fate.DROPPED:
            return f"which {self.migration} drops"
        verb = "renames to" if self.fate is Fate.RENAMED else "makes"
        return f"which {self.migration} {verb} `{self.to}`"

    @property
    def what(self) -> str:
        """The thing in words."""
        return f"`{format_path(self.path)}` of `{self.table}`" if self.path else f"table `{self.table}`"


class Lake(Frozen):
    """The declared tables once all migrations are applied, and what is at stake in them.

    :param columns: the columns of each table.
    :param aliases: names that namespaces have in environments, beside the declared ones.
    """

    columns: Mapping[TableName, tuple[str, ...]]
    stakes: tuple[Stake, ...]
    aliases: Mapping[tuple[str, ...], tuple[tuple[str, ...], ...]] = field(default_factory=dict)

    @property
    def tables(self) -> Iterable[TableName]:
        """The tables that are there, and those that go."""
        return dict.fromkeys((*self.columns, *(s.table for s in self.stakes)))

    def relation(self, table: TableName, *, is_sure: bool) -> Relation:
        """What SQL reads from a table: its columns, and those that are gone."""
        gone = (stake.path[:1] for stake in self.stakes if stake.table == table and stake.path)
        paths = [*((name,) for name in self.columns.get(table, ())), *gone]
        columns = {path[0].lower(): frozenset({Origin(table, path)}) for path in paths}
        return Relation(columns, is_complete=table in self.columns, is_sure=is_sure)

    def names(self) -> Iterator[tuple[tuple[str, ...], TableName]]:
        """Every name that SQL may call a table by, in lower case, with its namespace."""
        for table in self.tables:
            for namespace in (table.namespace, *self.aliases.get(table.namespace, ())):
                yield tuple(part.lower() for part in (*namespace, table.name)), table
