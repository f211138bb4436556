"""Values of dropped columns that the current files do not contain: their sources, and how to restore them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.changes.change import PlanProblem
from icemigrate.changes.end_refill import has_open_refill
from icemigrate.changes.field_changes import default_text
from icemigrate.frozen import Frozen
from icemigrate.iceberg.file_evidence_values import Evidence, RetainedValues, describe_shares
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import LastCopy, TableUndo
from icemigrate.planning.plan import RECONCILE_VERSION, Step
from icemigrate.planning.steps import as_steps
from icemigrate.planning.table_difference import DetectedChange
from icemigrate.planning.undo.retained_facts import dropped_fields
from icemigrate.planning.undo.undo_inputs import UndoOptions
from icemigrate.planning.value_restore import (
    lost_value_query_note,
    no_refill_note,
    refill_note,
    refill_offer_note,
    select_refills,
    with_refill_settings,
)


class RefillPlan(Frozen):
    """The plan for values that were rewritten away.

    :param before: changes in the commit that restores the columns.
    :param steps: the steps after it.
    :param last_copies: values that only an earlier snapshot has, including those that the steps write back.
    :param stays: requested values that cannot be restored, as phrases.
    """

    before: tuple[DetectedChange, ...]
    steps: tuple[Step, ...]
    notes: tuple[str, ...]
    problems: tuple[PlanProblem, ...] = ()
    warnings: tuple[PlanProblem, ...] = ()
    last_copies: tuple[LastCopy, ...] = ()
    stays: tuple[str, ...] = ()


def retained_value_notes(before: Table, after: Table, evidence: Evidence | None) -> Iterator[str]:
    """Notes about how many dropped values the files still contain."""
    held = {} if evidence is None else evidence.held
    current = [field_id for field_id in dropped_fields(before, after) if field_id in held]
    entries = schema_index(before.schema)
    yield from (text for text, *_ in describe_shares({entries[i].path: held[i] for i in current}))
    for field_id in current:
        default = entries[field_id].field.initial_default
        if default is not None and held[field_id].held < held[field_id].total:
            name = format_path(entries[field_id].path)
            yield f"rows whose files do not have {name} read its default: {default_text(default)}"
    yield from _lost_partitions(before, evidence)


def _lost_partitions(before: Table, evidence: Evidence | None) -> Iterator[str]:
    entries = schema_index(before.schema)
    for field_id, loss in ({} if evidence is None else evidence.partition_losses).items():
        if field_id in entries:
            yield from loss.notes(format_path(entries[field_id].path))


def plan_refill(
    table: Table,
    owner: tuple[str, str],
    catalog: str,
    evidence: Evidence | None,
    options: UndoOptions,
    declared: TableName | None = None,
) -> RefillPlan:
    """Plan the restore of values that only an earlier version of the rows has.

    :param table: with its columns restored.
    :param owner: the project and the version of the undone migration.
    :param declared: the table's name in the undo record; by default its own name.
    """
    project, version = owner
    current = schema_index(table.schema)
    kept = {} if evidence is None else {i: k for i, k in evidence.kept.items() if i in current}
    if version == RECONCILE_VERSION:
        # Changes by others are reconciled without writing rows.
        return RefillPlan((), (), tuple(lost_value_query_note(table, i, k, catalog) for i, k in kept.items()))
    wanted = has_open_refill(table) if options.refill is None else options.refill
    more = {} if evidence is None else {i: ks for i, ks in evidence.more_kept.items() if i in current}
    chosen = select_refills(table, kept, more, project)
    fit, unfit = chosen.fitting, chosen.others
    notes = [no_refill_note(table, i, k, catalog) for i, k in unfit]
    notes += [refill_note(table, i, k) if wanted else refill_offer_note(table, i, k, catalog) for i, k in fit]
    refill = with_refill_settings(table, version, chosen.refills if wanted else ())
    steps = tuple(step for one in refill.after for step in as_steps([one], catalog))
    # The plan that undoes a failed run is not reviewed, so it must not restore a column without its values.
    lost = [*notes] if options.is_recovery and not (wanted and not unfit) else []
    lost += _nowhere(table, evidence) if options.is_recovery and evidence is not None else ()
    problems = [PlanProblem("values-rewritten", table.name, ("rows",), note) for note in lost]
    missed = unfit if options.refill else ()
    return RefillPlan(
        refill.before,
        steps,
        tuple(notes),
        tuple(problems),
        tuple(
            PlanProblem("values-rewritten", table.name, ("rows",), no_refill_note(table, i, k, catalog))
            for i, k in missed
        ),
        last_copies(table, declared or table.name, (*fit, *unfit)),
        tuple(f"values of {format_path(current[i].path)} that {k.version} keeps" for i, k in missed),
    )


def unchecked_last_copies(undo: TableUndo, evidence: Evidence | None) -> tuple[LastCopy, ...]:
    """Values that depended on snapshots before, of columns without evidence."""
    held = {} if evidence is None else evidence.held
    return tuple(c for c in undo.last_copies if not held.keys() >= set(c.fields))


def last_copies(
    table: Table, declared: TableName, kept: Iterable[tuple[int, RetainedValues]]
) -> tuple[LastCopy, ...]:
    """The values that depend on snapshots until they are written back.

    :param declared: the table's name in the undo record.
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
    """Values that no snapshot contains any more: the one before the migration has expired, untagged.

    Where it exists, its number of rows shows the number of lost values; otherwise there may have been none.
    """
    if evidence.snapshots is not None:
        return
    for field_id, share in evidence.held.items():
        entry = schema_index(table.schema).get(field_id)
        missing = share.total - share.held
        if entry is not None and field_id not in evidence.kept and missing > 0:
            yield (
                f"{missing} of {share.total} rows have no value of {format_path(entry.path)} in their "
                f"files: it may be lost, since files were rewritten, the snapshot before "
                "the migration has expired, and no tag keeps it"
            )
