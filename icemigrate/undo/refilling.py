"""Values of dropped columns that the files of now do not hold any more: where they are, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.changes.base import Problem
from icemigrate.changes.end_refill import is_refilling
from icemigrate.changes.fields import default_text
from icemigrate.diff import Found
from icemigrate.frozen import Frozen
from icemigrate.model.evidence import Evidence, Kept, told_shares
from icemigrate.model.names import TableName, format_path
from icemigrate.model.schema import index
from icemigrate.model.table import Table
from icemigrate.model.undo_record import LastCopy, TableUndo
from icemigrate.plan import RECONCILED, Step
from icemigrate.refills import around, choose, elsewhere, offered, promised, queryable
from icemigrate.steps import as_steps
from icemigrate.undo.keeping import dropped
from icemigrate.undo.values import Options


class Refilling(Frozen):
    """What is done about values that were rewritten away.

    :param before: belongs to the commit that brings the columns back.
    :param steps: what follows it.
    :param last_copies: values that only an earlier snapshot has, those that the steps bring back included.
    :param stays: values that cannot be brought back though somebody asked for them, in a few words.
    """

    before: tuple[Found, ...]
    steps: tuple[Step, ...]
    notes: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    last_copies: tuple[LastCopy, ...] = ()
    stays: tuple[str, ...] = ()


def shares(before: Table, after: Table, evidence: Evidence | None) -> Iterator[str]:
    """How much of what was dropped is still in the files."""
    held = {} if evidence is None else evidence.held
    there = [field_id for field_id in dropped(before, after) if field_id in held]
    entries = index(before.schema)
    yield from (text for text, *_ in told_shares({entries[i].path: held[i] for i in there}))
    for field_id in there:
        default = entries[field_id].field.initial_default
        if default is not None and held[field_id].held < held[field_id].total:
            name = format_path(entries[field_id].path)
            yield f"rows whose files do not hold {name} read its default: {default_text(default)}"
    yield from _lost_partitions(before, evidence)


def _lost_partitions(before: Table, evidence: Evidence | None) -> Iterator[str]:
    entries = index(before.schema)
    for field_id, loss in ({} if evidence is None else evidence.partition_losses).items():
        if field_id in entries:
            yield from loss.notes(format_path(entries[field_id].path))


def plan_refill(
    table: Table,
    owner: tuple[str, str],
    catalog: str,
    evidence: Evidence | None,
    options: Options,
    declared: TableName | None = None,
) -> Refilling:
    """Plan the way back of values that only an earlier version of the rows has.

    :param table: with its columns back.
    :param owner: the project and the version of the migration that is undone.
    :param declared: the table as the undo record knows it; by its own name where left out.
    """
    project, version = owner
    there = index(table.schema)
    kept = {} if evidence is None else {i: k for i, k in evidence.kept.items() if i in there}
    if version == RECONCILED:
        # What others did is led back without rows being written.
        return Refilling((), (), tuple(queryable(table, i, k, catalog) for i, k in kept.items()))
    wanted = is_refilling(table) if options.refill is None else options.refill
    more = {} if evidence is None else {i: ks for i, ks in evidence.more_kept.items() if i in there}
    chosen = choose(table, kept, more, project)
    fit, unfit = chosen.fitting, chosen.others
    notes = [elsewhere(table, i, k, catalog) for i, k in unfit]
    notes += [promised(table, i, k) if wanted else offered(table, i, k, catalog) for i, k in fit]
    refill = around(table, version, chosen.refills if wanted else ())
    steps = tuple(step for one in refill.after for step in as_steps([one], catalog))
    # Nobody sees the plan of a run that failed, so it must not be what brings a column back without values.
    lost = [*notes] if options.apart and not (wanted and not unfit) else []
    lost += _nowhere(table, evidence) if options.apart and evidence is not None else ()
    problems = [Problem("values-rewritten", table.name, ("rows",), note) for note in lost]
    missed = unfit if options.refill else ()
    return Refilling(
        refill.before,
        steps,
        tuple(notes),
        tuple(problems),
        tuple(
            Problem("values-rewritten", table.name, ("rows",), elsewhere(table, i, k, catalog))
            for i, k in missed
        ),
        last_copies(table, declared or table.name, (*fit, *unfit)),
        tuple(f"values of {format_path(there[i].path)} that {k.version} keeps" for i, k in missed),
    )


def unasked(undo: TableUndo, evidence: Evidence | None) -> tuple[LastCopy, ...]:
    """The values that depended on snapshots before, of columns that the evidence says nothing of."""
    held = {} if evidence is None else evidence.held
    return tuple(c for c in undo.last_copies if not held.keys() >= set(c.fields))


def last_copies(table: Table, declared: TableName, kept: Iterable[tuple[int, Kept]]) -> tuple[LastCopy, ...]:
    """What depends on snapshots as long as it is not brought back.

    :param declared: the table as the undo record knows it.
    :param kept: fields, each with a version that keeps values of it.
    """
    fields: dict[tuple[str, int], list[int]] = {}
    for field_id, one in kept:
        if one.snapshot_id is not None:
            fields.setdefault((one.version, one.snapshot_id), []).append(field_id)
    return tuple(
        LastCopy(
            declared,
            version,
            snapshot_id,
            tuple(ids),
            table.refs[version].max_ref_age_ms if version in table.refs else None,
        )
        for (version, snapshot_id), ids in fields.items()
    )


def _nowhere(table: Table, evidence: Evidence) -> Iterator[str]:
    """Values that nothing keeps any more: the snapshot of before the migration has expired since, untagged.

    Where it is still there, it is known what rows it had, and so what they lost; else it may be that they had
    none.
    """
    if evidence.snapshots is not None:
        return
    for field_id, share in evidence.held.items():
        entry = index(table.schema).get(field_id)
        missing = share.total - share.held
        if entry is not None and field_id not in evidence.kept and missing > 0:
            yield (
                f"{missing} of {share.total} rows have no value of {format_path(entry.path)} in their files, "
                "as far as these tell: it may be lost, since files were written anew, the snapshot before "
                "the migration has expired, and no tag keeps it"
            )
