"""The rows of one table: written on a branch, asked about there, and only then published.

The two halves are called apart: rows are published when the checks of all tables of the migration hold.

What was done is known from the snapshots of the table's main branch, never guessed: the summary of each that
a data step makes names the migration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, TypeVar

from icemigrate.changes.base import Sql
from icemigrate.changes.publish_rows import PublishRows
from icemigrate.data.base import BEFORE_MARK, PAUSE, TRIES, Ask, DataStatement, Rewriting, Stage
from icemigrate.data.publication import NOTE, lacks_a_variant, publication
from icemigrate.engine.branching import all_the_while, publish, require
from icemigrate.engine.port import Engine
from icemigrate.engine.telling import told
from icemigrate.engine.written import require_published
from icemigrate.errors import EngineError, HeadMoved
from icemigrate.events import Event, FilesRewritten, Noted, StatementStarted
from icemigrate.frozen import replace
from icemigrate.model.evidence import Publication
from icemigrate.model.layout import OldShare
from icemigrate.model.makers import made_by
from icemigrate.model.marks import branch_name, is_branch_of, run_branch_name
from icemigrate.model.names import TableName
from icemigrate.model.table import Snapshot, Table
from icemigrate.plan import TablePlan
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
    :param run: the id of this run, which its branch has in its name.
    :param base: the snapshot that the rows are written on, or would be.
    :param is_on_branch: whether rows wait on the branch; else there are none to be published.
    """

    engine: Engine
    plan: TablePlan
    project: str
    version: str
    catalog: str
    since: int | None
    on_event: Callable[[Event], None]
    run: str = ""
    note: ClassVar[str] = NOTE
    base: Snapshot | None = field(default=None, init=False)
    is_on_branch: bool = field(default=False, init=False)
    _tries: int = field(default=0, init=False)

    @property
    def key(self) -> str:
        """What the summaries of its snapshots say."""
        return made_by(self.project, self.version)

    @property
    def branch(self) -> str:
        """The branch on which this run writes, and no other run."""
        return run_branch_name(self.project, self.version, self.run)

    @property
    def _planned_branch(self) -> str:
        """The same branch as plans and messages call it."""
        return branch_name(self.project, self.version)

    @property
    def _summary(self) -> dict[str, str]:
        """What the snapshots say that it makes."""
        return {self.note: self.key}

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

    def write(self, name: TableName, out: AbstractSet[TableName] = frozenset()) -> None:
        """Write the rows on a branch and ask there; where there is nothing to write, ask the table itself.

        The branch stays where something fails; nobody sees its rows.

        :param name: the table in the catalog by now.
        :param out: tables that the migration has changed already: SQL that asks one of them would find other
            rows than it is meant for.
        :raises CheckFailed: a check does not hold.
        :raises EngineError: a statement failed, or others wrote to the table all the while.
        """
        self._tries += 1
        if self._tries > TRIES:
            raise all_the_while(name)
        table = require(self.engine, name)
        writes, checks = self._statements(name, table)
        self._require_apart((*writes, *checks), name, out)
        if not writes or table.snapshot is None:
            if self.is_on_branch:
                self.drop_branch(name)
            if writes:
                self._note(name, "there are no rows yet, so none are written")
            self._ask_in_place(checks, name, table)
            self.base, self.is_on_branch = table.snapshot, False
            return
        if self._tries > 1:
            again = f"try {self._tries} of {TRIES}"
            self._note(name, f"others wrote to it meanwhile, so its rows are written again: {again}")
        self.base, self.is_on_branch = self._branch_off(name), True
        before = f"{table_sql(self.catalog, name)} VERSION AS OF {self.base.id}"
        self._run((*writes, *checks), name, {BEFORE_MARK: before})

    def _statements(
        self, name: TableName, table: Table
    ) -> tuple[Sequence[DataStatement], Sequence[DataStatement]]:
        """What is written, and what is asked behind it.

        :param table: what it is written on.
        """
        return [*self._of(Stage.WRITE)], [*self._of(Stage.AFTER)]

    def _require_apart(
        self, statements: Iterable[DataStatement], name: TableName, out: AbstractSet[TableName]
    ) -> None:
        """Refuse SQL that would find a table as the migration leaves it, and no more as it was."""
        for other in sorted(out - {name, self.plan.name}):
            if any(mentions(statement.text, other) for statement in statements):
                raise EngineError(
                    f"the rows of table `{name}` cannot be written now: their SQL asks table `{other}`, of "
                    "which the migration's own rows are out already",
                    f"{PAUSE}, or write a migration of its own for `{name}`",
                )

    def is_current(self, name: TableName) -> bool:
        """Whether what is written stands on what main is now."""
        if not any(self._of(Stage.WRITE)):
            return True
        return require(self.engine, name).snapshot_id == _id(self.base)

    def publication(self, table: Table) -> PublishRows:
        """What makes main what is written, in the commit that relies on it."""
        branch, base = self.branch, self.base
        if not self.is_on_branch:
            return PublishRows(table.name, self._planned_branch, _id(base), None)
        assert base is not None, "rows are written on some"
        written = table.refs.get(branch)
        if written is None:
            if table.snapshot_id != base.id:  # what replaces a whole table takes its branches too
                raise overtaken(table.name)
            raise EngineError(
                f"somebody took away the branch `{branch}` of table `{table.name}`, on which its rows waited",
                "apply again",
            )
        # Nobody has counted the rows.
        rows = replace(base, id=written.snapshot_id, total_records=None)
        return PublishRows(table.name, self._planned_branch, base.id, rows, written_on=branch)

    def publish(self, name: TableName) -> int | None:
        """Make main what is written.

        :returns: the snapshot that main is by that.
        :raises HeadMoved: others were faster.
        :raises EngineError: the statement failed.
        """
        if not self.is_on_branch:
            return _id(self.base)
        branch = self.branch
        text = publish_branch_sql(self.catalog, name, branch)
        told_text = publish_branch_sql(self.catalog, name, self._planned_branch)
        if not self._told(name, told_text, lambda: publish(self.engine, name, text, branch, _id(self.base))):
            raise overtaken(name)
        there = require(self.engine, name)
        written = there.refs.get(branch)  # somebody may write to main already
        if written is not None:
            self.require_published(name, written.snapshot_id)
        self.drop_branch(name)
        self.is_on_branch = False
        return there.snapshot_id if written is None else written.snapshot_id

    def require_published(self, name: TableName, snapshot_id: int) -> None:
        """Require that readers of main see a snapshot that was written.

        :raises EngineError: they do not.
        """
        metadata = self.engine.metadata_json(name)
        if metadata is not None:
            require_published(metadata, name, snapshot_id)

    def settle(self, name: TableName) -> None:
        """Do what is done on the table itself in the end."""
        self._run(self._of(Stage.SETTLED), name, {})

    def drop_branch(self, name: TableName) -> None:
        """Take the branch away, where there is one."""
        self._drop_older_branches(name)
        self.engine.sql(drop_branch_sql(self.catalog, name, self.branch))

    def _branch_off(self, name: TableName) -> Snapshot:
        """Make the branch; what it was made from."""
        self._drop_older_branches(name)
        told_text = create_branch_sql(self.catalog, name, self._planned_branch)
        text = create_branch_sql(self.catalog, name, self.branch)
        self._told(name, told_text, lambda: self.engine.sql(text))
        table = require(self.engine, name)
        branch = table.refs.get(self.branch)
        if table.snapshot is None:
            raise EngineError(f"table `{name}` has lost its rows meanwhile", "apply again")
        self._make_readable(name, table.snapshot)
        if branch is None or branch.snapshot_id == table.snapshot.id:
            return table.snapshot
        # Somebody wrote right behind it.
        return replace(table.snapshot, id=branch.snapshot_id, total_records=None)

    def _drop_older_branches(self, name: TableName) -> None:
        """Drop the branches that earlier runs of the migration left: this run writes to its own."""
        for other in require(self.engine, name).refs:
            if other != self.branch and is_branch_of(other, self.project, self.version):
                self.engine.sql(drop_branch_sql(self.catalog, name, other))

    def _make_readable(self, name: TableName, base: Snapshot) -> None:
        """Have Spark read on the branch what it cannot read before a snapshot knows it."""
        metadata = self.engine.metadata_json(name)
        if metadata is not None and lacks_a_variant(metadata, base.id):
            text = append_nothing_sql(self._branch(name))
            told_text = append_nothing_sql(self._planned(name))
            self._told(name, told_text, lambda: self._write(name, text))

    def _planned(self, name: TableName) -> str:
        """The branch as the plan's SQL names it; :meth:`_run` puts this run's own branch there."""
        return branch_sql(self.catalog, name, self._planned_branch)

    def _branch(self, name: TableName) -> str:
        """The branch as SQL names it."""
        return branch_sql(self.catalog, name, self.branch)

    def _ask_in_place(self, checks: Iterable[DataStatement], name: TableName, table: Table) -> None:
        """Ask the table itself, where nothing was written."""
        own = table_sql(self.catalog, name)
        before = own if table.snapshot is None else f"{own} VERSION AS OF {table.snapshot.id}"
        self._run(checks, name, {BEFORE_MARK: before}, own)

    def _run(
        self,
        statements: Iterable[DataStatement],
        name: TableName,
        instead: Mapping[str, str],
        branch: str | None = None,
    ) -> None:
        """Run statements of data steps; they are told as the plan has them, by which they are known and
        numbered.

        :param name: the table in the catalog by now.
        :param instead: what stands in queries, and what they ask instead.
        :param branch: what they use in the place of the branch; this run's branch where left out.
        """
        planned = self._planned(name)
        branch = self._branch(name) if branch is None else branch
        for statement in statements:
            text = statement.text
            if isinstance(statement, Rewriting):
                self._told(name, text, partial(self._rewrite, name, statement))
            elif isinstance(statement, Sql):
                written = text.replace(planned, branch)
                self._told(name, text, partial(self._write, name, written))
            else:
                asked = text.replace(planned, branch)
                for old, new in instead.items():
                    asked = asked.replace(old, new)
                self._told(name, text, partial(self._ask, asked, statement))

    def _write(self, name: TableName, text: str) -> None:
        self.engine.write(name, self.branch, text, self._summary)

    def _rewrite(self, name: TableName, rewriting: Rewriting) -> None:
        def tell(share: OldShare) -> None:
            self.on_event(FilesRewritten(self.version, name, share.files, share.all_files))

        left = self.engine.rewrite_old_files(name, rewriting.text, rewriting.is_sorted, tell)
        if left:
            self._note(name, f"others wrote the old way all the while: {left} files lie so still")

    def _ask(self, text: str, ask: Ask) -> None:
        ask.require(self.engine.ask(text))

    def _told(self, name: TableName, text: str, act: Callable[[], _T]) -> _T:
        with told(self.on_event, StatementStarted(self.version, name, text, 1, 1)):
            return act()

    def _of(self, stage: Stage) -> Iterator[DataStatement]:
        return (s for planned in self.plan.rows if planned.work.stage is stage for s in planned.statements)

    def _note(self, name: TableName, text: str) -> None:
        self.on_event(Noted(self.version, name, text))


def mentions(text: str, name: TableName) -> bool:
    """Whether SQL plainly speaks of a table, by its name behind the last part of its namespace."""
    parts = (f"`?{re.escape(part)}`?" for part in (*name.namespace[-1:], name.name))
    words = r"\s*[.]\s*".join(parts)
    return re.search(rf"(?<!\w){words}(?!\w)", text, re.I) is not None


def overtaken(name: TableName) -> HeadMoved:
    """Others wrote to a table before its rows were out."""
    return HeadMoved(f"others wrote to table `{name}` while its rows were written", "apply again")


def _id(snapshot: Snapshot | None) -> int | None:
    return None if snapshot is None else snapshot.id
