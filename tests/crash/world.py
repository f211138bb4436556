"""A project on a SQLite catalog, used by processes that may die; and what is in it, read without Spark."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icemigrate.execution.environment_session import open_environment
from icemigrate.history.history_properties import History
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_text import format_type
from icemigrate.project import open_project
from tests.crash.client import Blow, Gateway, Order, run
from tests.crash.messages import LEASE_RAN_OUT

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog

_LEASE = "ICEMIGRATE_LOCK_LEASE"
LEASE = {_LEASE: "3"}
"""Long enough for most machines, short enough to be waited for."""
_LONGER_LEASES = ("12", "60")
"""For a machine that is too busy to renew a short one in time."""
_SECONDS = 300.0
_LOOKS = 3
_UNREPORTED = 255
"""What multiprocessing says where the fork server did not tell how a process ended (``popen_forkserver``)."""

_context = get_context("forkserver")
_context.set_forkserver_preload(["tests.crash.client"])


@dataclass(frozen=True, slots=True)
class Ended:
    """How a client ended.

    :param code: its exit code; minus the signal that killed it.
    """

    code: int
    out: str
    err: str

    @property
    def is_one_message(self) -> bool:
        """Whether it told of one fault, and of no bug."""
        told = self.out + self.err
        return self.err.count("error: ") == 1 and "Traceback" not in told and "bug in icemigrate" not in told

    @property
    def lost_its_lease(self) -> bool:
        """Whether it could not renew the lease of its lock in time, which only a busy machine causes here."""
        return LEASE_RAN_OUT in self.err


@dataclass
class World:
    """A project and its catalog.

    :param publish: ``atomic`` or ``direct``.
    :param warehouse: its own where left out.
    :param apply_with: what commits metadata in a client that names nothing else.
    """

    folder: Path
    gateway: Gateway
    publish: str = "atomic"
    warehouse: Path = Path()
    environment: Mapping[str, str] = field(default_factory=lambda: dict(LEASE))
    started: int = 0
    apply_with: str = "spark"
    keeps_files: bool = False

    def __post_init__(self) -> None:
        (self.folder / "migrations").mkdir(parents=True)
        if self.warehouse == Path():
            self.warehouse = self.folder / "wh"
        (self.folder / "icemigrate.yaml").write_text(
            "project: shop\nenvironments:\n  here:\n    catalog: {type: sqlite, name: "
            f"{self.catalog}, uri: {self.database}, warehouse: {self.warehouse}}}\n"
            f"    publish: {self.publish}\n",
            encoding="utf-8",
        )

    @property
    def catalog(self) -> str:
        """Its name in Spark and in the rows of the database."""
        return "shop_lake"

    @property
    def database(self) -> Path:
        """The catalog's SQLite file."""
        return self.folder / "catalog.db"

    def write(self, name: str, text: str) -> None:
        """Write a migration file."""
        (self.folder / "migrations" / f"{name}.yaml").write_text(text, encoding="utf-8")

    def copied(self, folder: Path, publish: str) -> World:
        """Another world that begins as this one is.  They may share a warehouse: no file has the name of
        another one, and none is changed."""
        other = World(
            folder,
            self.gateway,
            publish,
            self.warehouse,
            self.environment,
            apply_with=self.apply_with,
            keeps_files=self.keeps_files,
        )
        shutil.copytree(self.folder / "migrations", folder / "migrations", dirs_exist_ok=True)
        shutil.copy(self.database, other.database)
        return other

    def start(
        self,
        *args: str,
        blow: Blow | None = None,
        barrier: Any = None,
        conductor: Path | None = None,
        lease: str | None = None,
        apply_with: str | None = None,
    ) -> tuple[BaseProcess, Order]:
        """Start the command line in a process of its own.

        :param lease: of its lock, in seconds; ``None`` for the lease of this world.
        """
        self.started += 1
        name = f"client{self.started}"
        environment = self.environment if lease is None else {**self.environment, _LEASE: lease}
        order = Order(
            self.folder, self.database, self.gateway, args, name, environment, blow, conductor,
            apply_with or self.apply_with,
        )  # fmt: skip
        process = _context.Process(target=run, args=(order, barrier))
        process.start()
        return process, order

    def run(self, *args: str, **how: Any) -> Ended:
        """Run the command line in a process of its own, until it ends or dies.

        :param how: as for :meth:`start`.
        """
        return ended(*self.start(*args, **how))

    def change(self, command: str, *args: str, **how: Any) -> Ended:
        """``apply``, ``rollback`` or ``maintain``, without asking."""
        return self.run(command, "--auto-approve", *args, **how)

    def hit(self, command: str, *args: str, blow: Blow, apply_with: str | None = None) -> Ended:
        """``apply`` or ``rollback``, hit on its way.

        Where the machine is too busy for the lease, the run is repeated in the same world with a longer one.
        """
        rows = self.rows()
        end = self.change(command, *args, blow=blow, apply_with=apply_with)
        for lease in _LONGER_LEASES:
            if not end.lost_its_lease:
                break
            self.restore(rows)
            end = self.change(command, *args, blow=blow, lease=lease, apply_with=apply_with)
        return end

    def done(self, command: str, *args: str, apply_with: str | None = None) -> Ended:
        """The same without a blow, which must succeed; nothing waits for its lease, so that is a long one."""
        end = self.change(command, *args, lease=_LONGER_LEASES[-1], apply_with=apply_with)
        assert end.code == 0, end
        return end

    def planned(self, standing: str | None = None) -> Ended:
        """``plan``, which changes nothing, and succeeds unless a rollback has no outcome.

        :param standing: of the version whose rollback may have been.

        What the JVM was doing for one who was killed may end just then: that is seen once, and a plan that
        writes would be seen each time.
        """
        for _ in range(_LOOKS):
            rows, end = self.rows(), self.run("plan")
            assert end.code == (4 if standing == "interrupted" else 0), end
            if self.rows() == rows:
                return end
        raise AssertionError(end)

    def rows(self) -> Sequence[tuple[Any, ...]]:
        """The catalog itself: which table is which metadata file.  Files are never changed, nor deleted."""
        self._keep_files()
        with closing(sqlite3.connect(self.database, timeout=60)) as connection:
            return connection.execute("SELECT * FROM iceberg_tables").fetchall()

    def _keep_files(self) -> None:
        """Keep all metadata files of the history, which worlds that share a warehouse go back to."""
        if self.keeps_files or not self.database.exists():
            return
        reader = self.reader()
        if reader.table_exists("icemigrate.history"):
            with reader.load_table("icemigrate.history").transaction() as transaction:
                transaction.set_properties({"write.metadata.previous-versions-max": "10000"})
            self.keeps_files = True
        reader.close()

    def restore(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Put the world back to what :meth:`rows` gave."""
        with closing(sqlite3.connect(self.database, timeout=60)) as connection, connection:
            connection.execute("DELETE FROM iceberg_tables")
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO iceberg_tables VALUES ({marks})", rows)

    def history(self) -> History:
        """What the history says."""
        with open_environment(open_project(self.folder), None) as world:
            return world.history()

    def standings(self) -> dict[str, str]:
        """Versions and where they stand."""
        return {a.version.text: a.state for a in self.history().applied}

    def tables(self) -> dict[TableName, Table]:
        """All tables but the history."""
        with open_environment(open_project(self.folder), None) as world:
            names = [name for name in world.catalog.tables() if name != world.history_name]
            return {n: t for n, t in world.catalog.load(names).items() if t is not None}

    def reader(self) -> SqlCatalog:
        """The catalog as another client of it has it."""
        from pyiceberg.catalog.sql import SqlCatalog

        uri = f"sqlite:///{self.database}"
        return SqlCatalog(self.catalog, uri=uri, warehouse=f"file://{self.warehouse}")

    def facts(self, trash: bool = True) -> dict[str, Any]:
        """What must not be lost and what a migration changes: every table's columns by field id, layout,
        properties and rows; nothing that grows with every try.

        :param trash: with the tables that were dropped.
        """
        reader = self.reader()
        try:
            return {
                str(name): _facts(table, reader.load_table((*name.namespace, name.name)).scan().to_arrow())
                for name, table in self.tables().items()
                if trash or name.namespace == ("shop",)
            }
        finally:
            reader.close()


def begun(order: Order) -> BaseProcess:
    """A client in a process of its own."""
    process: BaseProcess = _context.Process(target=run, args=(order, None))
    process.start()
    return process


def barrier_of(parties: int) -> Any:
    """What so many clients can wait for one another at."""
    return _context.Barrier(parties)


def ended(process: BaseProcess, order: Order) -> Ended:
    """Wait for a client's end."""
    process.join(_SECONDS)
    if process.exitcode is None:
        process.kill()
        process.join()
    out, err = (p.read_text(encoding="utf-8") if p.exists() else "" for p in (order.out, order.err))
    code = process.exitcode
    assert code is not None
    if code == _UNREPORTED and order.code.exists():
        code = int(order.code.read_text(encoding="utf-8"))
    return Ended(code, out, err)


def _facts(table: Table, rows: Any) -> dict[str, Any]:
    return {
        "columns": [(path, f.id, format_type(f.type), f.required) for path, f in table.schema.walk()],
        "spec": [(f.name, f.source_ids, str(f.transform)) for f in table.spec.live],
        "properties": dict(table.properties),
        "rows": sorted(map(repr, rows.to_pylist())),
    }
