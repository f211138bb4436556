"""Other clients of the same catalog: PyIceberg, and Spark for what PyIceberg 0.12 does not write.

Each act is one commit, and is written down with the metadata file that it made.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tests.crash.model.judge import TEMPORARY, Foreign
from tests.crash.model.observed import Commit, path_of, tables_in
from tests.crash.model.scenario import FIRST_NAMES, NAMESPACE, ForeignAct

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyspark.sql import SparkSession

MARK = "x_"
"""The columns of other clients begin so."""
_OLD_FORMATS = (1, 2)  # which PyIceberg writes

CHANGES_FIELDS = {"add", "rename", "rename_first", "squat", "drop"}
"""The kinds of action that change the columns of a table."""


class OtherClients:
    """They do what they are asked to, and remember it.

    :param spark: opens a session on the catalog.
    """

    def __init__(
        self, database: Path, warehouse: Path, catalog: str, spark: Callable[[], SparkSession]
    ) -> None:
        self._database, self._warehouse, self._name = database, warehouse, catalog
        self._open_spark = spark
        self._spark: SparkSession | None = None
        self._reader: SqlCatalog | None = None
        self._ids = count(100)
        self.done: dict[str, dict[str, Foreign]] = {}
        self.failed: list[str] = []
        self.read: dict[str, Commit] = {}
        self.reads_at_once = False
        self.untouched: frozenset[str] = frozenset()

    def close(self) -> None:
        """Give connections back."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def read_now(self) -> None:
        """Read the rows of all tables: `maintain` may delete the files of their snapshots later."""
        for (space, _), location in tables_in(self._database).items():
            if space != "icemigrate" and location not in self.read:
                commit = Commit(location)
                if commit.rows is not None:
                    self.read[commit.location] = commit

    def act(self, act: ForeignAct) -> str | None:
        """Do it, on some table; what was done, or ``None`` where it did not come to a commit."""
        random = Random(act.seed)
        there = sorted(name for space, name in tables_in(self._database) if space == NAMESPACE)
        if not there:
            return None
        return self.act_on(random.choice(there), act.kind, random)

    def act_on(self, name: str, kind: str, random: Random) -> str | None:
        """The same on one table."""
        before = Commit(tables_in(self._database)[NAMESPACE, name])
        try:
            done: Foreign | None = getattr(self, f"_{kind}")(name, before, random)
        except (
            Exception
        ) as error:  # somebody was faster, or the catalog refused: no commit, or one that is found
            self.failed.append(f"{kind} on {name}: {type(error).__name__}: {str(error)[:200]}")
            self.close()  # a COMMIT that SQLite refuses leaves its lock on the file to the connection
            done = Foreign(f"{kind} on {name}, which was reported as failed", is_certain=False)
        if done is None:
            return None
        location = tables_in(self._database).get((NAMESPACE, name))
        if location is None or location == before.location:
            return None
        after = Commit(location)
        log = [path_of(entry["metadata-file"]) for entry in after.metadata.get("metadata-log", ())]
        between = [*log[log.index(before.location) + 1 :], location] if before.location in log else [location]
        if self.reads_at_once:
            self.read_now()
        for one in between:
            certain = done.is_certain and len(between) == 1
            what = f"{done.what} on {name}"
            self.done.setdefault(after.uuid, {})[one] = Foreign(
                what, done.added, done.deleted, certain, kind in CHANGES_FIELDS, done.column
            )
        return done.what

    def _table(self, name: str) -> Any:
        if self._reader is None:
            from pyiceberg.catalog.sql import SqlCatalog

            self._reader = SqlCatalog(
                self._name,
                uri=f"sqlite:///{self._database}?timeout=60",
                warehouse=f"file://{self._warehouse}",
            )
        return self._reader.load_table((NAMESPACE, name))

    def _sql(self, text: str) -> None:
        if self._spark is None:
            self._spark = self._open_spark()
        self._spark.sql(text)

    def _full(self, name: str) -> str:
        return f"{self._name}.{NAMESPACE}.{name}"

    def _is_old(self, before: Commit) -> bool:
        return before.metadata["format-version"] in _OLD_FORMATS

    def _add(self, name: str, before: Commit, random: Random) -> Foreign | None:
        taken = {column.name for column in before.fields.values()}
        column = next(n for n in (f"{MARK}{i}" for i in count(1)) if n not in taken)
        if self._is_old(before):
            from pyiceberg.types import DoubleType, StringType

            with self._table(name).update_schema() as update:
                update.add_column(column, random.choice((StringType(), DoubleType())))
        else:
            self._sql(
                f"ALTER TABLE {self._full(name)} ADD COLUMN {column} {random.choice(('STRING', 'DOUBLE'))}"
            )
        return Foreign(f"adds column {column}", column=column)

    def _own(self, before: Commit, random: Random) -> str | None:
        own = sorted(c.name for c in before.fields.values() if c.name.startswith(MARK))
        return random.choice(own) if own else None

    def _rename(self, name: str, before: Commit, random: Random) -> Foreign | None:
        own = self._own(before, random)
        if own is None:
            return self._add(name, before, random)
        new = f"{own}r"
        if any(c.name == new for c in before.fields.values()):
            return None
        if self._is_old(before):
            with self._table(name).update_schema() as update:
                update.rename_column(own, new)
        else:
            self._sql(f"ALTER TABLE {self._full(name)} RENAME COLUMN {own} TO {new}")
        return Foreign(f"renames column {own} to {new}", column=new)

    def _rename_first(self, name: str, before: Commit, random: Random) -> Foreign | None:
        """Rename a column that no migration touches."""
        able = sorted(c.name for c in before.fields.values() if c.name in self.untouched)
        if not able:
            return None
        old = random.choice(able)
        if self._is_old(before):
            with self._table(name).update_schema() as update:
                update.rename_column(old, f"{MARK}{old}")
        else:
            self._sql(f"ALTER TABLE {self._full(name)} RENAME COLUMN {old} TO {MARK}{old}")
        return Foreign(f"renames column {old} to {MARK}{old}", column=f"{MARK}{old}")

    def _squat(self, name: str, before: Commit, random: Random) -> Foreign | None:
        """Add a column under a name that a migration has given free."""
        free = sorted(FIRST_NAMES - {c.name for c in before.fields.values()} - self.untouched)
        if not free:
            return None
        column = random.choice(free)
        if self._is_old(before):
            from pyiceberg.types import StringType

            with self._table(name).update_schema() as update:
                update.add_column(column, StringType())
        else:
            self._sql(f"ALTER TABLE {self._full(name)} ADD COLUMN {column} STRING")
        return Foreign(f"adds column {column}, a name that was free", column=column)

    def _drop(self, name: str, before: Commit, random: Random) -> Foreign | None:
        own = self._own(before, random)
        if own is None:
            return None
        if self._is_old(before):
            with self._table(name).update_schema() as update:
                update.delete_column(own)
        else:
            self._sql(f"ALTER TABLE {self._full(name)} DROP COLUMN {own}")
        return Foreign(f"drops column {own}", column=own)

    def _property(self, name: str, before: Commit, random: Random) -> Foreign | None:
        key, value = f"other.p{random.randint(1, 3)}", str(random.randint(1, 10**6))
        if self._is_old(before):
            with self._table(name).transaction() as transaction:
                transaction.set_properties({key: value})
        else:
            self._sql(f"ALTER TABLE {self._full(name)} SET TBLPROPERTIES ('{key}' = '{value}')")
        return Foreign(f"sets property {key}")

    def _append(self, name: str, before: Commit, random: Random) -> Foreign | None:
        rows = [self._row(before, next(self._ids), random) for _ in range(random.randint(1, 3))]
        self.append(name, before, rows)
        return Foreign(f"appends {len(rows)} rows", added=frozenset(row["id"] for row in rows))

    def append(self, name: str, before: Commit, rows: list[dict[str, Any]]) -> None:
        """Append rows."""
        if self._is_old(before):
            import pyarrow as pa  # type: ignore[import-untyped]

            table = self._table(name)
            table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
            return
        columns = [c.name for c in before.fields.values() if TEMPORARY not in c.name]
        values = ", ".join(f"({', '.join(_literal(row.get(c)) for c in columns)})" for row in rows)
        self._sql(f"INSERT INTO {self._full(name)} ({', '.join(columns)}) VALUES {values}")

    def _row(self, before: Commit, number: int, random: Random) -> dict[str, Any]:
        return {
            column.name: value_of(column.name, column.type, number, random)
            for column in before.fields.values()
            if TEMPORARY not in column.name
        }

    def _some_ids(self, before: Commit, random: Random) -> list[int]:
        ids = sorted(before.rows)
        return random.sample(ids, k=min(len(ids), random.randint(1, 2))) if len(ids) > 2 else []

    def _delete(self, name: str, before: Commit, random: Random) -> Foreign | None:
        ids = self._some_ids(before, random)
        if not ids:
            return None
        listed = ", ".join(map(str, ids))
        if self._is_old(before) and random.random() < 0.6:
            self._table(name).delete(f"id in ({listed})")
        else:
            self._sql(f"DELETE FROM {self._full(name)} WHERE id IN ({listed})")
        return Foreign(f"deletes rows {listed}", deleted=frozenset(ids))

    def _update(self, name: str, before: Commit, random: Random) -> Foreign | None:
        ids = self._some_ids(before, random)
        able = [c for c in before.fields.values() if c.type == "double" and TEMPORARY not in c.name]
        if not ids or not able:
            return None
        listed, column = ", ".join(map(str, ids)), random.choice(able).name
        self._sql(
            f"UPDATE {self._full(name)} SET {column} = {random.randint(1, 10**6)}.25 WHERE id IN ({listed})"
        )
        return Foreign(f"updates {column} of rows {listed}")

    def _compact(self, name: str, before: Commit, random: Random) -> Foreign | None:
        if before.snapshot is None:
            return None
        table, options = f"{NAMESPACE}.{name}", "map('rewrite-all', 'true')"
        self._sql(f"CALL {self._name}.system.rewrite_data_files(table => '{table}', options => {options})")
        return Foreign("compacts the files")


def value_of(name: str, type_: str, number: int, random: Random) -> Any:
    """A value that tells its column and its row."""
    if name == "id":
        return number
    if random.random() < 0.1:
        return None
    if name == "region":
        return random.choice(("eu", "us"))
    return {"string": f"{name}-{number}", "double": number + 0.5}.get(type_, number * 10)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else f"{value}D" if isinstance(value, float) else str(value)
