"""The rows of one table: written and checked on a branch, then published.

Rows are published only when the checks of all tables of the migration hold.  The summary of each snapshot of
a data step names the migration, so the snapshots of main show which rows were published.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, TypeAlias, TypeVar

from icemigrate.changes.change import SqlStatement
from icemigrate.changes.publish_rows import PublishRows
from icemigrate.data_steps.data_step_kind import (
    BEFORE_PLACEHOLDER,
    MAX_WRITE_ATTEMPTS,
    PAUSE_WRITERS_HINT,
    DataStatement,
    DataStepStage,
    FileRewrite,
    QueryExpectation,
)
from icemigrate.data_steps.publication_state import (
    DATA_SUMMARY_PROPERTY,
    find_publication,
    has_unreadable_variant,
)
from icemigrate.diagnostics import format_count
from icemigrate.errors import EngineError, HeadMoved
from icemigrate.events import Event, FilesRewritten, NoteAdded, StatementStarted
from icemigrate.frozen import replace
from icemigrate.iceberg.file_evidence_values import PublishedRows
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partition_evolution import OldSpecFiles
from icemigrate.iceberg.ref_names import branch_name, is_branch_of, run_branch_name
from icemigrate.iceberg.table import Snapshot, Table, made_by
from icemigrate.planning.plan import TablePlan
from icemigrate.planning.stages import PublishTable, TableStage, WriteRows
from icemigrate.spark.engine_port import Engine
from icemigrate.spark.row_branches import (
    publish_branch,
    publish_tries_exhausted_error,
    require_published,
    require_table,
)
from icemigrate.spark.statement_events import announce_statement
from icemigrate.spark_sql.branch_statements import (
    append_nothing_sql,
    branch_sql,
    create_branch_sql,
    drop_branch_sql,
    publish_branch_sql,
)
from icemigrate.spark_sql.identifiers import table_sql

_T = TypeVar("_T")
NumberedStatement: TypeAlias = tuple[int, DataStatement]
"""A statement of a data step, and the number under which the plan shows it, or the one that it repeats."""


@dataclass(slots=True)
class MigrationRows:
    """The data steps of one migration on one table.

    :param catalog: the catalog's name in Spark SQL.
    :param since: the snapshot that was current when the migration first began.
    :param run: the id of this run, a part of its branch's name.
    :param stages: the stages of the table.
    :param base: the snapshot that the rows are written on.
    :param is_on_branch: the branch has unpublished rows.
    """

    engine: Engine
    plan: TablePlan
    project: str
    version: str
    catalog: str
    since: int | None
    on_event: Callable[[Event], None]
    run: str = ""
    stages: Sequence[TableStage] = ()
    note: ClassVar[str] = DATA_SUMMARY_PROPERTY
    base: Snapshot | None = field(default=None, init=False)
    is_on_branch: bool = field(default=False, init=False)
    _tries: int = field(default=0, init=False)

    @property
    def summary_key(self) -> str:
        """The value in the summaries of its snapshots."""
        return made_by(self.project, self.version)

    @property
    def branch(self) -> str:
        """The branch of this run only."""
        return run_branch_name(self.project, self.version, self.run)

    @property
    def _planned_branch(self) -> str:
        """The branch as plans and messages name it."""
        return branch_name(self.project, self.version)

    @property
    def _summary(self) -> dict[str, str]:
        """The summary of the snapshots that it makes."""
        return {self.note: self.summary_key}

    def published(self, name: TableName) -> PublishedRows | None:
        """The rows that this run or an earlier one has published."""
        metadata = self.engine.metadata_json(name)
        return None if metadata is None else find_publication(metadata, self.summary_key, self.since)

    def check_preconditions(self) -> None:
        """Run the checks that come before any change.

        :raises CheckFailed: one fails.
        """
        rows = table_sql(self.catalog, self.plan.name)
        self._run(self._of(DataStepStage.BEFORE), self.plan.name, {BEFORE_PLACEHOLDER: rows})

    def write(self, name: TableName, out: AbstractSet[TableName] = frozenset()) -> None:
        """Write and check the rows on a branch; without rows to write, check the table itself.

        The branch remains after a failure; its rows are not published.

        :param name: the table's current name.
        :param out: tables that the migration has published already: SQL that reads one of them would find
            changed rows.
        :raises CheckFailed: a check fails.
        :raises EngineError: a statement failed, or other writers were faster in every try.
        """
        self._tries += 1
        if self._tries > MAX_WRITE_ATTEMPTS:
            raise publish_tries_exhausted_error(name)
        table = require_table(self.engine, name)
        writes, checks = self._statements(name, table)
        self._require_apart((statement for _, statement in (*writes, *checks)), name, out)
        if not writes or table.snapshot is None:
            if self.is_on_branch:
                self.drop_branch(name)
            if writes:
                self._note(name, "the table has no rows, so none are written")
            self._ask_in_place(checks, name, table)
            self.base, self.is_on_branch = table.snapshot, False
            return
        if self._tries > 1:
            again = f"try {self._tries} of {MAX_WRITE_ATTEMPTS}"
            self._note(name, f"another client wrote to the table meanwhile; writing its rows again: {again}")
        self.base, self.is_on_branch = self._branch_off(name), True
        before = f"{table_sql(self.catalog, name)} VERSION AS OF {self.base.id}"
        self._run((*writes, *checks), name, {BEFORE_PLACEHOLDER: before})

    def _statements(
        self, name: TableName, table: Table
    ) -> tuple[Sequence[NumberedStatement], Sequence[NumberedStatement]]:
        """The statements that write, and the checks after them.

        :param table: the table that they run on.
        """
        return [*self._of(DataStepStage.WRITE)], [*self._of(DataStepStage.AFTER)]

    def _require_apart(
        self, statements: Iterable[DataStatement], name: TableName, out: AbstractSet[TableName]
    ) -> None:
        """Refuse SQL that reads a table which the migration has published already."""
        for other in sorted(out - {name, self.plan.name}):
            if any(mentions_table(statement.text, other) for statement in statements):
                raise EngineError(
                    f"cannot write the rows of table `{name}`: their SQL reads table `{other}`, which this "
                    "migration has changed already",
                    f"{PAUSE_WRITERS_HINT}, or move the changes of `{name}` to a migration of its own",
                )

    def is_current(self, name: TableName) -> bool:
        """Whether the rows were written on the current snapshot of main."""
        if not any(self._of(DataStepStage.WRITE)):
            return True
        return require_table(self.engine, name).snapshot_id == _id(self.base)

    def publication(self, table: Table) -> PublishRows:
        """The change that publishes the rows, in the commit that needs them."""
        branch, base = self.branch, self.base
        if not self.is_on_branch:
            return PublishRows(table.name, self._planned_branch, _id(base), None)
        assert base is not None, "rows are written on some"
        written = table.refs.get(branch)
        if written is None:
            if table.snapshot_id != base.id:  # replacing a whole table removes its branches too
                raise overtaken_error(table.name)
            raise EngineError(
                f"another client dropped branch `{branch}` of table `{table.name}`, which had "
                "the migration's rows",
                "apply again",
            )
        # The rows were not counted.
        rows = replace(base, id=written.snapshot_id, total_records=None)
        return PublishRows(table.name, self._planned_branch, base.id, rows, written_on=branch)

    def publish(self, name: TableName) -> int | None:
        """Publish the rows on main.

        :returns: the resulting snapshot of main.
        :raises HeadMoved: another client was faster.
        :raises EngineError: the statement failed.
        """
        if not self.is_on_branch:
            return _id(self.base)
        branch = self.branch
        text = publish_branch_sql(self.catalog, name, branch)
        planned_text = publish_branch_sql(self.catalog, name, self._planned_branch)
        publish = partial(publish_branch, self.engine, name, text, branch, _id(self.base))
        if not self._announced(name, planned_text, self._first_of(PublishTable), publish):
            raise overtaken_error(name)
        there = require_table(self.engine, name)
        written = there.refs.get(branch)  # other clients may write to main already
        if written is not None:
            self.require_published(name, written.snapshot_id)
        self.drop_branch(name)
        self.is_on_branch = False
        return there.snapshot_id if written is None else written.snapshot_id

    def require_published(self, name: TableName, snapshot_id: int) -> None:
        """Require that main contains a snapshot.

        :raises EngineError: it does not.
        """
        metadata = self.engine.metadata_json(name)
        if metadata is not None:
            require_published(metadata, name, snapshot_id)

    def run_final_statements(self, name: TableName) -> None:
        """Run the statements that work on the published table."""
        self._run(self._of(DataStepStage.AFTER_PUBLICATION), name, {})

    def drop_branch(self, name: TableName) -> None:
        """Drop the branch, if it exists."""
        self._drop_older_branches(name)
        self.engine.sql(drop_branch_sql(self.catalog, name, self.branch))

    def _branch_off(self, name: TableName) -> Snapshot:
        """Create the branch; the snapshot that it starts from."""
        self._drop_older_branches(name)
        planned_text = create_branch_sql(self.catalog, name, self._planned_branch)
        number = self._first_of(WriteRows)
        self._announced(name, planned_text, number, lambda: self.engine.create_branch(name, self.branch))
        table = require_table(self.engine, name)
        branch = table.refs.get(self.branch)
        if table.snapshot is None:
            raise EngineError(f"table `{name}` was emptied by another client", "apply again")
        self._make_readable(name, table.snapshot)
        if branch is None or branch.snapshot_id == table.snapshot.id:
            return table.snapshot
        # Another client wrote right after it.
        return replace(table.snapshot, id=branch.snapshot_id, total_records=None)

    def _drop_older_branches(self, name: TableName) -> None:
        """Drop the branches that earlier runs of the migration left: this run writes to its own."""
        for other in require_table(self.engine, name).refs:
            if other != self.branch and is_branch_of(other, self.project, self.version):
                self.engine.sql(drop_branch_sql(self.catalog, name, other))

    def _make_readable(self, name: TableName, base: Snapshot) -> None:
        """Add an empty snapshot where Spark cannot read a new variant column without one."""
        metadata = self.engine.metadata_json(name)
        if metadata is not None and has_unreadable_variant(metadata, base.id):
            text = append_nothing_sql(self._branch(name))
            planned_text = append_nothing_sql(self._planned(name))
            self._announced(name, planned_text, 0, lambda: self._write(name, text))

    def _planned(self, name: TableName) -> str:
        """The branch in the plan's SQL; :meth:`_run` replaces it by this run's own branch."""
        return branch_sql(self.catalog, name, self._planned_branch)

    def _branch(self, name: TableName) -> str:
        """The branch as SQL names it."""
        return branch_sql(self.catalog, name, self.branch)

    def _ask_in_place(self, checks: Iterable[NumberedStatement], name: TableName, table: Table) -> None:
        """Run the checks on the table itself."""
        own = table_sql(self.catalog, name)
        before = own if table.snapshot is None else f"{own} VERSION AS OF {table.snapshot.id}"
        self._run(checks, name, {BEFORE_PLACEHOLDER: before}, own)

    def _run(
        self,
        statements: Iterable[NumberedStatement],
        name: TableName,
        instead: Mapping[str, str],
        branch: str | None = None,
    ) -> None:
        """Run statements of data steps; they are announced and numbered as in the plan.

        :param name: the table's current name in the catalog.
        :param instead: texts in queries, and their replacements.
        :param branch: replaces the branch in the texts; by default this run's branch.
        """
        planned = self._planned(name)
        branch = self._branch(name) if branch is None else branch
        for number, statement in statements:
            text = statement.text
            if isinstance(statement, FileRewrite):
                self._announced(name, text, number, partial(self._rewrite, name, statement))
            elif isinstance(statement, SqlStatement):
                written = text.replace(planned, branch)
                self._announced(name, text, number, partial(self._write, name, written))
            else:
                asked = text.replace(planned, branch)
                for old, new in instead.items():
                    asked = asked.replace(old, new)
                self._announced(name, text, number, partial(self._ask, asked, statement))

    def _write(self, name: TableName, text: str) -> None:
        self.engine.write(name, self.branch, text, self._summary)

    def _rewrite(self, name: TableName, rewriting: FileRewrite) -> None:
        def on_progress(share: OldSpecFiles) -> None:
            self.on_event(FilesRewritten(self.version, name, share.files, share.all_files))

        left = self.engine.rewrite_old_files(name, rewriting.text, rewriting.is_sorted, on_progress)
        if left:
            files = format_count(left, "file has", "files have")
            self._note(name, f"{files} an old partition spec: another client wrote meanwhile")

    def _ask(self, text: str, ask: QueryExpectation) -> None:
        ask.require(self.engine.ask(text))

    def _announced(self, name: TableName, text: str, number: int, act: Callable[[], _T]) -> _T:
        with announce_statement(self.on_event, StatementStarted(self.version, name, text, number, 1)):
            return act()

    def _of(self, when: DataStepStage) -> Iterator[NumberedStatement]:
        for stage in self.stages:
            for first, planned in stage.numbered_data_steps():
                if planned.work.stage is when:
                    yield from enumerate(planned.statements, first)

    def _first_of(self, kind: type[TableStage]) -> int:
        """The number of the first statement of a stage; 0 if the table has no such stage."""
        return next((stage.first for stage in self.stages if isinstance(stage, kind)), 0)

    def _note(self, name: TableName, text: str) -> None:
        self.on_event(NoteAdded(self.version, name, text))


def mentions_table(text: str, name: TableName) -> bool:
    """Whether SQL names a table together with the last part of its namespace."""
    parts = (f"`?{re.escape(part)}`?" for part in (*name.namespace[-1:], name.name))
    words = r"\s*[.]\s*".join(parts)
    return re.search(rf"(?<!\w){words}(?!\w)", text, re.I) is not None


def overtaken_error(name: TableName) -> HeadMoved:
    """The error that another client wrote to a table before its rows were published."""
    return HeadMoved(f"another client wrote to table `{name}` while its rows were written", "apply again")


def _id(snapshot: Snapshot | None) -> int | None:
    return None if snapshot is None else snapshot.id
