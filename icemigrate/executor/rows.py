"""The rows of one table: written on a branch, asked about there, and only then published.

The two halves are called apart: rows are published when the checks of all tables of the migration hold.

What was done is known from the snapshots of the table's main branch, never guessed: the summary of each that
a data step makes names the migration.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from icemigrate.changes.base import Sql
from icemigrate.changes.publish_rows import PublishRows
from icemigrate.data.base import BEFORE_MARK, PAUSE, TRIES, Ask, Rewriting, Stage
from icemigrate.data.publication import LATE_NOTE, NOTE, lacks_a_variant, publication
from icemigrate.data.retype import Retype
from icemigrate.engine.branching import all_the_while, publish, require
from icemigrate.engine.port import Engine
from icemigrate.errors import CheckFailed, EngineError, IcemigrateError, LockHeld
from icemigrate.events import Event, FilesRewritten, Noted, StatementFinished, StatementStarted
from icemigrate.frozen import replace
from icemigrate.model.evidence import Publication
from icemigrate.model.layout import OldShare
from icemigrate.model.makers import made_by
from icemigrate.model.marks import branch_name
from icemigrate.model.names import TableName
from icemigrate.model.table import Snapshot, Table
from icemigrate.plan import PlannedWork, TablePlan
from icemigrate.plan_rows import later_name
from icemigrate.sql.branches import (
    append_nothing_sql,
    branch_sql,
    create_branch_sql,
    drop_branch_sql,
    publish_branch_sql,
)
from icemigrate.sql.names import table_sql

_T = TypeVar("_T")


@dataclass(slots=True)
class Rows:
    """What one migration does to the rows of one table.

    :param catalog: the catalog's name in Spark SQL.
    :param since: the snapshot that was current when the migration first began.
    :param on_event: told of every statement.
    :param is_late: whether these are rows that came behind the migration's own: they are none of these.
    :param base: the snapshot that the rows are written on, or would be.
    """

    engine: Engine
    plan: TablePlan
    project: str
    version: str
    catalog: str
    since: int | None
    on_event: Callable[[Event], None]
    is_late: bool = False
    base: Snapshot | None = field(default=None, init=False)
    _tries: int = field(default=0, init=False)

    @property
    def key(self) -> str:
        """What the summaries of its snapshots say."""
        return made_by(self.project, self.version)

    @property
    def _summary(self) -> dict[str, str]:
        """What the snapshots say that it makes."""
        return {LATE_NOTE if self.is_late else NOTE: self.key}

    def published(self, name: TableName) -> Publication | None:
        """What an earlier run of the migration, or this one, has published."""
        metadata = self.engine.metadata_json(name)
        return None if metadata is None else publication(metadata, self.key, self.since)

    def ask_before(self) -> None:
        """Ask what must hold before anything is done.

        :raises CheckFailed: it does not.
        """
        rows = table_sql(self.catalog, self.plan.name)
        self._run(self._of(Stage.BEFORE), self.plan.name, {BEFORE_MARK: rows})

    def write(self, name: TableName) -> None:
        """Write the rows on a branch and ask there; where there is nothing to write, ask the table itself.

        :param name: the table in the catalog by now.
        :raises CheckFailed: a check does not hold; the branch is gone, and nobody saw the rows.
        :raises EngineError: a statement failed, or others wrote to the table all the while.
        """
        table = require(self.engine, name)
        writes, checks = [*self._of(Stage.WRITE)], [*self._of(Stage.AFTER)]
        if not writes or table.snapshot is None:
            if writes:
                self._note(name, "there are no rows yet, so none are written")
            self._ask_in_place(checks, name, table)
            self.base = table.snapshot
            return
        self._tries += 1
        if self._tries > TRIES:
            raise all_the_while(name)
        if self._tries > 1:
            again = f"try {self._tries} of {TRIES}"
            self._note(name, f"others wrote to it meanwhile, so its rows are written again: {again}")
        self.base = self._branch_off(name)
        before = f"{table_sql(self.catalog, name)} VERSION AS OF {self.base.id}"
        with self.no_branch_left(name):
            self._run((*writes, *checks), name, {BEFORE_MARK: before})

    def is_current(self, name: TableName) -> bool:
        """Whether what is written stands on what main is now."""
        if not any(self._of(Stage.WRITE)):
            return True
        now = require(self.engine, name).snapshot
        return _id(now) == _id(self.base)

    def late(self, name: TableName) -> Rows:
        """What the rows need that others wrote behind the publication, before columns are swapped.

        :raises EngineError: which rows these are cannot be told.
        """
        table, done = require(self.engine, name), self.published(name)
        is_moved = _id(table.snapshot) != (None if done is None else done.last.id)
        branch = branch_sql(self.catalog, name, branch_name(self.version))
        works = list[PlannedWork]()
        for planned in self.plan.rows if is_moved else ():
            if isinstance(planned.work, Retype):
                new = table.schema.find(planned.work.temporary)
                if new is not None and new.initial_default is not None:
                    raise EngineError(
                        f"others wrote to table `{name}` behind its rows, and which lack a value of "
                        f"{planned.work.column} cannot be told, since they read its default",
                        f"{PAUSE}, and begin anew: `icemigrate rollback` undoes what was done",
                    )
                works.append(replace(planned, statements=planned.work.late(branch)))
        if works:
            self._note(name, "others wrote behind its rows: what they wrote gets its values too")
        rows = replace(self.plan, rows=tuple(works))
        return Rows(
            self.engine, rows, self.project, self.version, self.catalog, self.since, self.on_event, True
        )

    def publication(self, table: Table) -> PublishRows:
        """What makes main what is written, in the commit that relies on it."""
        branch = branch_name(self.version)
        if not self._tries:
            return PublishRows(table.name, branch, _id(self.base), None)
        written = table.refs.get(branch)
        if self.base is None or written is None:
            raise EngineError(f"the branch `{branch}` of table `{table.name}` is gone", "apply again")
        # Nobody has counted the rows.
        rows = replace(self.base, id=written.snapshot_id, total_records=None)
        return PublishRows(table.name, branch, self.base.id, rows)

    def publish(self, name: TableName) -> None:
        """Make main what is written; all again where others were faster.

        :raises CheckFailed: a check does not hold of what they wrote; the branch is gone.
        :raises EngineError: a statement failed, or others wrote to the table all the while.
        """
        if not self._tries:
            return
        while not self._is_out(name):
            self.write(name)
        self.drop_branch(name)

    def _is_out(self, name: TableName) -> bool:
        assert self.base is not None
        branch, base = branch_name(self.version), self.base.id
        text = publish_branch_sql(self.catalog, name, branch)
        with self.no_branch_left(name):
            return self._told(name, text, lambda: publish(self.engine, name, text, branch, base))

    @contextmanager
    def no_branch_left(self, name: TableName) -> Iterator[None]:
        """Take the branch away where what is done within fails."""
        try:
            yield
        except LockHeld:
            raise  # somebody else may be at work by now
        except IcemigrateError:
            with suppress(IcemigrateError):  # the next run replaces it
                self.drop_branch(name)
            raise

    def settle(self, name: TableName) -> None:
        """Do what is done on the table itself in the end."""
        self._run(self._of(Stage.SETTLED), name, {})

    def drop_branch(self, name: TableName) -> None:
        """Take the branch away, where there is one."""
        self.engine.sql(drop_branch_sql(self.catalog, name, branch_name(self.version)))

    def _branch_off(self, name: TableName) -> Snapshot:
        """Make the branch; what it was made from."""
        text = create_branch_sql(self.catalog, name, branch_name(self.version))
        self._told(name, text, lambda: self.engine.sql(text))
        table = require(self.engine, name)
        branch = table.refs.get(branch_name(self.version))
        if table.snapshot is None:
            raise EngineError(f"table `{name}` has lost its rows meanwhile", "apply again")
        self._make_readable(name, table.snapshot)
        if branch is None or branch.snapshot_id == table.snapshot.id:
            return table.snapshot
        # Somebody wrote right behind it.
        return replace(table.snapshot, id=branch.snapshot_id, total_records=None)

    def _make_readable(self, name: TableName, base: Snapshot) -> None:
        """Have Spark read on the branch what it cannot read before a snapshot knows it."""
        metadata = self.engine.metadata_json(name)
        if metadata is not None and lacks_a_variant(metadata, base.id):
            text = append_nothing_sql(branch_sql(self.catalog, name, branch_name(self.version)))
            self._told(name, text, lambda: self.engine.write(text, self._summary))

    def _ask_in_place(self, checks: Iterable[PlannedWork], name: TableName, table: Table) -> None:
        """Ask the table itself, where nothing was written."""
        own = table_sql(self.catalog, name)
        before = own if table.snapshot is None else f"{own} VERSION AS OF {table.snapshot.id}"
        branch = branch_sql(self.catalog, name, branch_name(self.version))
        self._run(checks, name, {BEFORE_MARK: before, branch: own})

    def _run(self, works: Iterable[PlannedWork], name: TableName, instead: Mapping[str, str]) -> None:
        """Run the statements of data steps; they are told as the plan has them, by which they are known and
        numbered.

        :param name: the table in the catalog by now.
        :param instead: what stands in queries, and what they ask instead.
        """
        for work in works:
            for statement in work.statements:
                text = statement.text
                if isinstance(statement, Rewriting):
                    self._told(name, text, partial(self._rewrite, statement))
                elif isinstance(statement, Sql):
                    self._told(name, text, partial(self.engine.write, text, self._summary))
                else:
                    asked = text
                    for old, new in instead.items():
                        asked = asked.replace(old, new)
                    self._told(name, text, partial(self._ask, asked, statement))

    def _rewrite(self, rewriting: Rewriting) -> None:
        name = later_name(self.plan)

        def tell(share: OldShare) -> None:
            self.on_event(FilesRewritten(self.version, name, share.files, share.all_files))

        left = self.engine.rewrite_old_files(name, rewriting.text, rewriting.is_sorted, tell)
        if left:
            self._note(name, f"others wrote the old way all the while: {left} files lie so still")

    def _ask(self, text: str, ask: Ask) -> None:
        wrong = ask.failure(self.engine.ask(text))
        if wrong is not None:
            raise CheckFailed(wrong, ask.hint)

    def _told(self, name: TableName, text: str, act: Callable[[], _T]) -> _T:
        self.on_event(StatementStarted(self.version, name, text, 1, 1))
        clock = time.monotonic()
        came_out = act()
        self.on_event(StatementFinished(self.version, name, text, time.monotonic() - clock))
        return came_out

    def _of(self, stage: Stage) -> Iterable[PlannedWork]:
        return (work for work in self.plan.rows if work.work.stage is stage)

    def _note(self, name: TableName, text: str) -> None:
        self.on_event(Noted(self.version, name, text))


def _id(snapshot: Snapshot | None) -> int | None:
    return None if snapshot is None else snapshot.id
