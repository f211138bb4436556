"""Values written on a branch of their own, counted there, and only then published.

Readers see nothing of it before the publication.  Where the main branch moved meanwhile, it is done again on
what is there then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icemigrate.changes.base import Sql
from icemigrate.changes.refill_columns import RefillColumns
from icemigrate.engine.port import Engine
from icemigrate.engine.telling import Telling
from icemigrate.errors import EngineError, IcemigrateError
from icemigrate.model.names import format_path
from icemigrate.plan import Step
from icemigrate.sql.refilling import BRANCH, Refilling

TRIES = 5
"""How often the values are written, where somebody else writes to the table meanwhile."""
_AS_THEY_ARE = "`icemigrate rollback --no-refill` ends the undo with the values as they are"


@dataclass(frozen=True, slots=True)
class _Counted:
    """What a refill has to do.

    :param base: the snapshot that the branch was made on.
    :param kept: rows of the version that have a value.
    :param matched: those of them that are there still.
    :param lacking: by field, rows that get a value.
    :param rows: of the table.
    :param filled: by field, rows that have a value already.
    """

    base: int | None
    kept: int
    matched: int
    lacking: tuple[int, ...]
    rows: int
    filled: tuple[int, ...]


def is_refill(step: Step) -> bool:
    """Whether a step is run by :func:`refill`."""
    return isinstance(step.changes[0].change, RefillColumns)


def refill(engine: Engine, step: Step, tell: Telling) -> None:
    """Run the statements of a refill.

    :raises EngineError: rows cannot be told apart, the counts do not come out, or a statement failed.
    """
    (planned,) = step.changes
    change = planned.change
    assert isinstance(change, RefillColumns), "a refill is a step of its own"
    asking = change.refilling(engine.catalog_name)
    create, *merges, publication = [s.text for s in step.statements if isinstance(s, Sql)]
    table = change.table
    with tell.statement(table, create):
        engine.sql(create)
    counted = _count(engine, change, asking)
    for text in merges:
        with tell.statement(table, text):
            engine.sql(text)
    with tell.statement(table, publication):
        for attempt in range(1, TRIES + 1):
            _audit(engine, change, asking, counted)
            if _publish(engine, change, publication, counted, is_last=attempt == TRIES):
                break
            tell.note(table, f"somebody wrote to it meanwhile: all again, try {attempt + 1} of {TRIES}")
            engine.sql(create)
            counted = _count(engine, change, asking)
            for text in merges:
                engine.sql(text)
    for note in _notes(change, counted):
        tell.note(table, note)


def _count(engine: Engine, change: RefillColumns, asking: Refilling) -> _Counted:
    base, _ = _heads(engine, change)
    ((kept, different),) = engine.ask(asking.kept())
    if kept != different:
        raise EngineError(
            f"{change.version} has {kept} rows of `{change.table}` with a value, but only {different} "
            "different identifiers: whose value is whose cannot be told",
            _AS_THEY_ARE,
        )
    ((pairs, matched, *lacking),) = engine.ask(asking.matched())
    if pairs != matched:
        raise EngineError(
            f"{pairs} rows of `{change.table}` have the identifiers of {matched} rows of {change.version}: "
            "whose value is whose cannot be told",
            _AS_THEY_ARE,
        )
    ((rows, *filled),) = engine.ask(asking.filled())
    return _Counted(base, kept, matched, tuple(lacking), rows, tuple(filled))


def _audit(engine: Engine, change: RefillColumns, asking: Refilling, counted: _Counted) -> None:
    """Ask the branch whether it is what was to come out.

    :raises EngineError: it is not; nothing was published.
    """
    ((rows, *filled),) = engine.ask(asking.filled())
    expected = [a + b for a, b in zip(counted.filled, counted.lacking, strict=True)]
    if [rows, *filled] != [counted.rows, *expected]:
        names = ", ".join(format_path(f.path) for f in change.fields)
        raise EngineError(
            f"the values of {names} that were brought back do not come out: {_told(rows, filled)} "
            f"instead of {_told(counted.rows, expected)}; readers have seen nothing of it",
            _AS_THEY_ARE,
        )


def _told(rows: int, filled: Sequence[int]) -> str:
    return f"{rows} rows with {' and '.join(map(str, filled))} values"


def _publish(engine: Engine, change: RefillColumns, text: str, counted: _Counted, is_last: bool) -> bool:
    """Whether the branch was published; it was not where somebody else has written meanwhile."""
    try:
        engine.sql(text)
    except IcemigrateError:
        branch, main = _heads(engine, change)
        if branch == main:
            return True  # reported as failed, and done
        if is_last or main == counted.base:
            raise
        return False
    return True


def _heads(engine: Engine, change: RefillColumns) -> tuple[int | None, int | None]:
    """The snapshots of the branch and of main."""
    table = engine.table(change.table)
    if table is None:
        raise EngineError(f"table `{change.table}` is not there any more")
    ref = table.refs.get(BRANCH)
    return None if ref is None else ref.snapshot_id, None if table.snapshot is None else table.snapshot.id


def _notes(change: RefillColumns, counted: _Counted) -> Sequence[str]:
    filled = [
        f"{lacking} values of {format_path(field.path)}"
        for field, lacking in zip(change.fields, counted.lacking, strict=True)
    ]
    gone = counted.kept - counted.matched
    return [
        f"brought back from {change.version}: {', '.join(filled)}",
        *([f"of {change.version}'s {counted.kept} rows with a value {gone} are gone since"] if gone else []),
    ]
