"""Rows for all to see, and what is left of their table, so that none of others comes between and is missed.

Whoever writes to a table asks nobody.  So each way of publishing is an attempt that knows the snapshot it
stands on: where others were faster nothing is out, and what the rows need is looked at once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from icemigrate.diff import Found
from icemigrate.engine.branching import require
from icemigrate.engine.port import Engine, Marker
from icemigrate.engine.publish import Publisher
from icemigrate.errors import HeadMoved
from icemigrate.executor.account import Account
from icemigrate.executor.arrivals import LateRows, without_value
from icemigrate.executor.rows import Rows
from icemigrate.frozen import Frozen, replace
from icemigrate.model.counting import count
from icemigrate.model.evidence import Publication
from icemigrate.model.names import TableName
from icemigrate.model.schema import Schema
from icemigrate.model.table import Snapshot, Table
from icemigrate.plan import Direction, Step, TablePlan
from icemigrate.sql.names import table_sql
from icemigrate.steps import as_steps

_T = TypeVar("_T")


class Written(Frozen):
    """A table whose rows wait to be published.

    :param before: the table before anything was done to it.
    :param expected: the table as it shall come out.
    :param done: what an earlier run has published already.
    """

    plan: TablePlan
    before: Table | None
    expected: Table
    rows: Rows
    done: Publication | None

    @property
    def name(self) -> TableName:
        """The table in the catalog by now."""
        return self.expected.name


@dataclass(slots=True)
class Publishing:
    """How what one migration does comes to its tables, where others may write to them meanwhile.

    :param on_commit: called right after a commit of a table that may have added fields, see
        :data:`~icemigrate.engine.publish.OnCommit`.
    :param asked: the snapshot of each table whose rows are known to have a value of what becomes required, by
        declared name.
    :param out: the tables whose rows are out, under all their names.
    """

    engine: Engine
    publisher: Publisher
    marker: Marker
    account: Account
    catalog: str
    on_commit: Callable[[TablePlan, Schema, Schema], None]
    asked: dict[TableName, int | None] = field(default_factory=dict)
    out: set[TableName] = field(default_factory=set)

    def land(self, plan: TablePlan, before: Table | None, marker: Marker) -> Table | None:
        """Do the steps of a table.

        :param before: the table as it was read last.
        :returns: the table that came out of it; ``None`` where it is gone.
        :raises CheckFailed: a row has no value of what becomes required.
        """
        if before is not None and self.account.migration.direction is Direction.APPLY:
            before = self._looked_at(plan, before)
        return self._published(plan, before, marker)

    def _published(self, plan: TablePlan, before: Table | None, marker: Marker) -> Table | None:
        return self.publisher.publish(plan, before, marker, self.account.hear, partial(self.on_commit, plan))

    def _looked_at(self, plan: TablePlan, before: Table) -> Table:
        """The table with the rows that all have a value of what becomes required; a commit over others is
        refused (:func:`~icemigrate.engine.rebase.require_asked`).

        They were asked ahead of all else, which may be hours ago: what came since is asked now.
        """
        questions = [*without_value(plan.steps, before, table_sql(self.catalog, before.name))]
        if not questions:
            return before
        now = require(self.engine, before.name).snapshot
        if now is not None and self.asked.get(plan.declared) != now.id:
            for ask in questions:
                with self.account.statement(ask.text, before.name):
                    ask.require(self.engine.ask(ask.text))
        return replace(before, snapshot=now)

    def write(self, written: Written) -> None:
        """Write the rows of a table; what an earlier run has published is not written again."""
        if written.done is None:
            written.rows.write(written.name, self.out)
        else:
            self.account.note(written.name, "its rows were published by an earlier run")
            written.rows.drop_branch(written.name)
            self._is_out(written)

    def catch_up(self, waiting: Sequence[Written]) -> None:
        """Write rows again that others overtook, until all stand on what their tables are now.

        What they wrote may be what a check does not hold of: none shall be out by then.  Between this look
        and the last publication that can still be, since no catalog publishes two tables at once.
        """
        while behind := [w for w in waiting if w.done is None and not w.rows.is_current(w.name)]:
            for written in behind:
                written.rows.write(written.name, self.out)

    def publish(self, written: Written) -> Table | None:
        """The rows of one table for all to see, and what is left; the table that came out of it."""
        if written.plan.finish and self.publisher.lands_at_once:
            actual = self._at_once(written)
        else:
            actual = self._one_by_one(written)
        self._is_out(written)
        return actual

    def _at_once(self, written: Written) -> Table | None:
        """The rows and what is left in one commit: who writes before it is written over again, and who writes
        behind it writes under what is left."""
        rows, name = written.rows, written.name
        if written.done is not None:
            rows = LateRows.behind(rows, written.done.last.id)
            rows.write(name, self.out)

        def attempt() -> Table | None:
            there = require(self.engine, name)
            publication = rows.publication(there)
            published = as_steps([Found(publication, there)], self.catalog)
            actual = self._finish(written, (*published, *written.plan.finish))
            if publication.rows is not None:
                rows.require_published(name, publication.rows.id)
            return actual

        return self._until_out(rows, name, attempt)

    def _one_by_one(self, written: Written) -> Table | None:
        """What is left where the rows are out already; rows of others that came since get theirs before."""
        rows, name, finish = written.rows, written.name, written.plan.finish
        if written.done is None:
            seen = self._until_out(rows, name, partial(rows.publish, name))
        else:
            seen = written.done.last.id
        if not finish:
            return self._finish(written, ())
        self._is_out(written)
        late = LateRows.behind(rows, seen)
        late.write(name, self.out)
        while late.is_on_branch:
            late.seen = self._until_out(late, name, partial(late.publish, name))
            late.write(name, self.out)
        last = late.base
        self.asked[written.plan.declared] = None if last is None else last.id
        actual = self._finish(written, finish)
        now = None if actual is None else actual.snapshot
        if now is not None and (last is None or now.id != last.id):
            came = "rows" if last is None else _more(now.total_records, last.total_records)
            self.account.note(
                name,
                f"others wrote {came} while columns were swapped one by one: what they gave for a column of "
                "before is in its own field, which a rollback brings back",
            )
        return actual

    def _until_out(self, rows: Rows, name: TableName, attempt: Callable[[], _T]) -> _T:
        """What came of an attempt that nobody overtook; after any other, what rows need is written again.

        :raises EngineError: others were faster all the while.
        """
        while True:
            with suppress(HeadMoved):
                return attempt()
            rows.write(name, self.out)

    def _finish(self, written: Written, steps: tuple[Step, ...]) -> Table | None:
        """What is left; the table that came out of it."""
        on = written.rows.base if written.done is None else written.done.before
        last = replace(self.marker, before=with_values(on), is_fixed=True)
        plan = replace(written.plan, name=written.name, steps=steps, rows=(), finish=())
        there = self.engine.table(written.name)
        if self.publisher.lands_at_once:  # the rows are asked about already, and come in the same commit
            return self._published(plan, there, last)
        return self.land(plan, there, last)

    def _is_out(self, written: Written) -> None:
        self.out |= {written.plan.name, written.name}


def with_values(snapshot: Snapshot | None) -> int | None:
    """The id of a snapshot that may have rows."""
    return None if snapshot is None or snapshot.total_records == 0 else snapshot.id


def _more(now: int | None, before: int | None) -> str:
    """How many rows came, as far as it is known."""
    return "rows" if now is None or before is None or now <= before else count(now - before, "row")
