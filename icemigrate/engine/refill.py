"""Values written on a branch of their own, counted there, and only then published.

Readers see nothing of it before the publication.  Where the main branch moved meanwhile, it is done again on
what is there then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from icemigrate.changes.base import Deferred
from icemigrate.changes.refill_columns import RefillColumns
from icemigrate.data.base import TRIES
from icemigrate.engine.branching import publish, require, until_published
from icemigrate.engine.port import Engine
from icemigrate.engine.telling import Telling
from icemigrate.errors import EngineError
from icemigrate.events import ValuesBroughtBack
from icemigrate.frozen import Frozen, replace
from icemigrate.model.absence import absence
from icemigrate.model.counting import count
from icemigrate.model.evidence import Questions
from icemigrate.model.marks import is_refill_branch_of
from icemigrate.model.names import TableName, format_path
from icemigrate.model.reserved import SUMMARY_PREFIX
from icemigrate.plan import Step
from icemigrate.refills import choose, elsewhere
from icemigrate.sql.branches import drop_branch_sql
from icemigrate.sql.refilling import Refilling

NOTE = f"{SUMMARY_PREFIX}refill"
"""In the summary of every snapshot that a refill makes: the version of the migration.

It is not what data steps leave: a migration that does both would take these for their rows."""
_AS_THEY_ARE = (
    "`icemigrate rollback --no-refill` ends an undo with the values as they are; "
    "in a migration file leave `refill` out"
)


class _Counted(Frozen):
    """What a refill has to do.

    :param base: the snapshot that the branch was made on.
    :param kept: rows of the version that have a value.
    :param matched: those of them that are there still.
    :param lacking: by field, rows that get a value.
    :param rows: of the table.
    :param others: by field with a default, rows that have another value than then, the lacking included.
    :param filled: by field, rows that have a value already.
    """

    base: int | None
    kept: int
    matched: int
    lacking: tuple[int, ...]
    others: tuple[int, ...]
    rows: int
    filled: tuple[int, ...]

    def left(self, asking: Refilling) -> dict[int, int]:
        """By field with a default, rows that keep another value than then: it was written."""
        pairs = zip(asking.defaulted, self.others, strict=True)
        return {at: others - self.lacking[at] for at, others in pairs}


class _Untold(Exception):
    """Whose value is whose cannot be told: what follows on the reason, in words."""


def is_refill(step: Step) -> bool:
    """Whether a step is run by :func:`refill`."""
    return isinstance(step.changes[0].change, RefillColumns)


def deferred_text(statement: Deferred) -> str:
    """How statements are told that are chosen when they run."""
    return f"when it runs: {statement.summary}"


def refill(engine: Engine, step: Step, tell: Telling) -> None:
    """Run the statements of a refill.

    :raises EngineError: rows cannot be told apart, the counts do not come out, or a statement failed.
    """
    (planned,) = step.changes
    change = planned.change
    assert isinstance(change, RefillColumns), "a refill is a step of its own"
    try:
        notes = _refill(engine, change, step, tell)
    except EngineError as error:
        # Not every storage takes what a refill writes, and nobody shall be held up by that.
        error.hint = error.hint or _AS_THEY_ARE
        raise
    for note in notes:
        tell.note(change.table, note)


def _refill(engine: Engine, change: RefillColumns, step: Step, tell: Telling) -> list[str]:
    """Do it; what is to be said of it."""
    for statement in step.statements:
        if isinstance(statement, Deferred):
            with tell.statement(change.table, deferred_text(statement)):
                found, notes = _look(engine, change)
                for one in found:
                    notes += _carry_out(engine, one, tell, _silently)
            return notes
    return _carry_out(engine, change, tell, tell.statement)


def _silently(_table: TableName, _text: str) -> AbstractContextManager[None]:
    """For statements that are told as one."""
    return nullcontext()


def _look(engine: Engine, change: RefillColumns) -> tuple[Sequence[RefillColumns], list[str]]:
    """What keeps the values, as the manifests say now; and what is to be said of those that stay away."""
    table = require(engine, change.table)
    paths = {field.path for field in change.fields}
    wanted = {field.id: path for path, field in table.schema.walk() if path in paths}
    asked = Questions(since=None, held={i: table.schema.leaves(i) for i in wanted})
    if change.among:
        asked = replace(asked, last_copies=dict.fromkeys(wanted, change.among), back=frozenset(wanted))
    evidence = engine.evidence(table.name, asked)
    chosen = choose(table, evidence.kept, evidence.more_kept, change.project)
    notes = [elsewhere(table, i, k, engine.catalog_name) for i, k in chosen.others]
    for field_id, path in wanted.items():
        share = evidence.held.get(field_id)
        if field_id not in evidence.kept and share is not None and share.held < share.total:
            notes.append(f"no version of the table that is there keeps more values of {format_path(path)}")
    return chosen.refills, notes


def _carry_out(
    engine: Engine,
    change: RefillColumns,
    tell: Telling,
    statement: Callable[[TableName, str], AbstractContextManager[None]],
) -> list[str]:
    """Write, count, publish; what is to be said of it.

    :param statement: tells of one that runs.
    """
    try:
        notes = _written(engine, change, tell, statement)
    except _Untold as reason:
        # One table must not keep the others from getting their values back.
        names = ", ".join(format_path(f.path) for f in change.fields)
        query = change.refilling(engine.catalog_name).look()
        return [f"no value of {names} is brought back: {reason}; {change.version} keeps them: {query}"]
    schema, paths = require(engine, change.table).schema, {f.path for f in change.fields}
    fields = tuple(field.id for path, field in schema.walk() if path in paths)
    tell.on_event(ValuesBroughtBack(tell.version, change.table, change.version, fields))
    return notes


def _written(
    engine: Engine,
    change: RefillColumns,
    tell: Telling,
    statement: Callable[[TableName, str], AbstractContextManager[None]],
) -> list[str]:
    table, note = change.table, {NOTE: tell.version}
    asking = _own(engine, change, tell)
    create, *_, publication = asking.statements()
    told_create, *told_merges, told_publication = change.refilling(engine.catalog_name).statements()
    with statement(table, told_create):
        _drop_left_branches(engine, change, asking.branch)
        engine.sql(create)
    asking = _known(engine, change, asking)
    counted = _count(engine, change, asking)
    # They are told as the plan has them, by which they are known.
    for told, text in zip(told_merges, asking.merges(), strict=True):
        with statement(table, told):
            engine.write(table, asking.branch, text, note)
    with statement(table, told_publication):

        def attempt(number: int) -> bool:
            nonlocal asking, counted
            if number > 1:
                tell.note(table, f"somebody wrote to it meanwhile: all again, try {number} of {TRIES}")
                engine.sql(create)
                asking = _known(engine, change, asking)
                counted = _count(engine, change, asking)
                for text in asking.merges():
                    engine.write(table, asking.branch, text, note)
            now = require(engine, table).snapshot
            if (None if now is None else now.id) != counted.base:
                return False  # what was asked of main is not what was written on
            _audit(engine, change, asking, counted)
            return publish(engine, table, publication, asking.branch, counted.base)

        until_published(table, attempt, _AS_THEY_ARE)
    return _notes(change, asking, counted)


def _count(engine: Engine, change: RefillColumns, asking: Refilling) -> _Counted:
    main = require(engine, change.table).snapshot
    ((kept, different),) = engine.ask(asking.kept())
    if kept != different:
        raise _Untold(f"{kept} rows have only {count(different, 'different identifier')} there")
    ((pairs, matched, *counts),) = engine.ask(asking.matched())
    if pairs != matched:
        raise _Untold(f"{pairs} rows have the identifiers of {matched} rows there")
    lacking, others = counts[: len(change.fields)], counts[len(change.fields) :]
    ((rows, *filled),) = engine.ask(asking.filled())
    return _Counted(
        None if main is None else main.id, kept, matched, tuple(lacking), tuple(others), rows, tuple(filled)
    )


def _own(engine: Engine, change: RefillColumns, tell: Telling) -> Refilling:
    """The statements of this run, which no other run shares the branch of."""
    asking = change.refilling(engine.catalog_name)
    return replace(asking, branch=tell.refill_branch or asking.branch)


def _drop_left_branches(engine: Engine, change: RefillColumns, own: str) -> None:
    """Drop the branches of earlier refills that died: this run writes to its own."""
    for name, ref in require(engine, change.table).refs.items():
        if name != own and ref.kind == "branch" and is_refill_branch_of(name, change.project):
            engine.sql(drop_branch_sql(engine.catalog_name, change.table, name))


def _known(engine: Engine, change: RefillColumns, asking: Refilling) -> Refilling:
    """The statements with what the table's snapshots tell of its fields with a default."""
    if not asking.defaulted:
        return asking
    metadata = engine.metadata_json(change.table) or {}
    found = {at: absence(metadata, i, change.version) for at, i in asking.defaulted.items()}
    return replace(asking, absences=found)


def _audit(engine: Engine, change: RefillColumns, asking: Refilling, counted: _Counted) -> None:
    """Ask the branch whether it is what was to come out.

    :raises EngineError: it is not; nothing was published.
    """
    ((rows, *filled),) = engine.ask(asking.filled())
    expected = [a + b for a, b in zip(counted.filled, counted.lacking, strict=True)]
    for at in asking.defaulted:
        filled[at] = expected[at] = counted.rows  # each row reads something, whatever was written
    if [rows, *filled] != [counted.rows, *expected]:
        raise _wrong(change, f"{_told(rows, filled)} instead of {_told(counted.rows, expected)}")
    if asking.defaulted:
        ((_, _, *counts),) = engine.ask(asking.matched())
        lacking, others = counts[: len(filled)], counts[len(filled) :]
        if any(lacking) or others != [*counted.left(asking).values()]:
            raise _wrong(change, f"{sum(others)} rows read another value than in {change.version}")


def _wrong(change: RefillColumns, why: str) -> EngineError:
    names = ", ".join(format_path(f.path) for f in change.fields)
    return EngineError(
        f"the values of {names} that were brought back do not come out: {why}; "
        "readers have seen nothing of it",
        _AS_THEY_ARE,
    )


def _told(rows: int, filled: Sequence[int]) -> str:
    return f"{rows} rows with {' and '.join(map(str, filled))} values"


def _notes(change: RefillColumns, asking: Refilling, counted: _Counted) -> list[str]:
    filled = [
        f"{lacking} {'value' if lacking == 1 else 'values'} of {format_path(field.path)}"
        for field, lacking in zip(change.fields, counted.lacking, strict=True)
    ]
    written = [
        f"{count(left, 'row')} {'reads' if left == 1 else 'read'} another value of "
        f"{format_path(change.fields[at].path)} than in {change.version}: "
        f"{_why_it_stays(asking, at)}, and stays"
        for at, left in counted.left(asking).items()
        if left
    ]
    gone = counted.kept - counted.matched
    return [
        f"brought back from {change.version}: {', '.join(filled)}",
        *written,
        *([f"gone since: {gone} of {counted.kept} rows with a value in {change.version}"] if gone else []),
    ]


def _why_it_stays(asking: Refilling, at: int) -> str:
    assert asking.absences is not None, "they were looked up before anything was counted"
    why = "it was written while the column was there"
    if asking.absences[at].is_exact:
        return why
    return f"{why}, or may have been, as snapshots that would tell have expired"
