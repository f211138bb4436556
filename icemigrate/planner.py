"""From pending migrations and the three sides to a plan; pure.

Each migration is planned on the state that the one before it leaves.  ``check`` plans the same way
against a catalog that begins empty, so what a pull request is told and what a deployment does come
from one piece of code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from icemigrate.changes.base import Hazard
from icemigrate.frozen import Frozen, replace
from icemigrate.merge import ordered_like, rebind_by_path
from icemigrate.model.names import TableName
from icemigrate.model.schema import index
from icemigrate.model.sides import State, Wanted
from icemigrate.model.table import CURRENT_SNAPSHOT, Ref, Table
from icemigrate.plan import Consent, MigrationPlan
from icemigrate.plan_case import Outcome, Surroundings
from icemigrate.plan_table import plan_table


class FoldedMigration(Protocol):
    """What folding a migration over a state gives."""

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """What it makes of each table it mentions."""

    @property
    def namespaces(self) -> frozenset[tuple[str, ...]]:
        """All namespaces declared after it."""


class Pending(Frozen):
    """A migration that waits to be applied.

    :param fold: folds it over the state that the migration before it leaves.
    """

    version: str
    description: str
    checksum: str
    consents: tuple[Consent, ...]
    fold: Callable[[State], FoldedMigration]
    fingerprint: str = ""


@dataclass(slots=True)
class _World:
    """Base and actual while the migrations pass over them."""

    base: State
    actual: dict[TableName, Table | None]
    namespaces: frozenset[tuple[str, ...]]
    blocked: set[TableName] = field(default_factory=set)


class Planned(Frozen):
    """The plans of all pending migrations, and the declared state they lead to."""

    migrations: tuple[MigrationPlan, ...]
    state: State


def plan_migrations(
    pending: Iterable[Pending],
    base: State,
    actual: Mapping[TableName, Table | None],
    surroundings: Surroundings,
) -> Planned:
    """Plan the migrations in order.

    :param base: what the history recorded when it was last applied.
    :param actual: the catalog's tables by their name there; a name that is missing is not there.
    """
    world = _World(base, dict(actual), surroundings.namespaces)
    plans = tuple(_plan_migration(p, world, surroundings) for p in pending)
    return Planned(plans, world.base)


def _plan_migration(pending: Pending, world: _World, surroundings: Surroundings) -> MigrationPlan:
    folded = pending.fold(world.base)
    outcomes = [_plan_wanted(w, pending.version, world, surroundings) for w in folded.wanted]
    tables = {name.namespace for o in outcomes for name in o.namespaces_needed()}
    physical = {surroundings.physical_namespace(n) for n in folded.namespaces}
    missing = sorted((physical | tables) - world.namespaces)
    world.base = replace(world.base, namespaces=world.base.namespaces | folded.namespaces)
    world.namespaces |= frozenset(missing)
    hazards = [h for o in outcomes for h in o.plan.hazards()]
    return MigrationPlan(
        version=pending.version,
        description=pending.description,
        checksum=pending.checksum,
        fingerprint=pending.fingerprint,
        tables=tuple(o.plan for o in outcomes),
        create_namespaces=tuple(missing),
        namespaces=folded.namespaces,
        problems=tuple(p for o in outcomes for p in o.problems),
        warnings=tuple(p for o in outcomes for p in o.warnings),
        unconsented=tuple(unconsented(hazards, pending.consents)),
    )


def unconsented(hazards: Iterable[Hazard], consents: Sequence[Consent]) -> Iterable[Hazard]:
    """The hazards that no consent covers, each once."""
    return dict.fromkeys(h for h in hazards if not any(c.covers(h) for c in consents))


def _plan_wanted(wanted: Wanted, version: str, world: _World, surroundings: Surroundings) -> Outcome:
    known = world.base.tables.get(wanted.formerly) if wanted.formerly else None
    outcome = plan_table(wanted, known, world.actual, version, world.base.former, surroundings)
    blocked = world.blocked & {wanted.name, wanted.formerly}
    if blocked:
        note = "not planned: an earlier migration of this table conflicts"
        outcome = replace(
            outcome, plan=replace(outcome.plan, steps=(), conflicts=(), notes=(note,), rows=(), finish=())
        )
    if blocked or outcome.plan.conflicts:
        world.blocked.add(wanted.name)
    _advance(wanted, outcome, world)
    return outcome


def _advance(wanted: Wanted, outcome: Outcome, world: _World) -> None:
    """Let the world be as the migration leaves it."""
    base = world.base.tables.get(wanted.formerly) if wanted.formerly else None
    table = None if outcome.plan.wanted is None else settle(outcome.plan.wanted, outcome.after, base)
    world.base = world.base.after(wanted.name, wanted.formerly, table)
    world.actual[outcome.plan.name] = None
    if outcome.after is not None:
        world.actual[outcome.after.name] = outcome.after


def settle(wanted: Table, after: Table | None, base: Table | None = None) -> Table:
    """A declared table with the ids that its fields have in the table that came out.

    What is recorded as base: every field id is the catalog's, fields stand in its order, a tag has the
    snapshot that it points at; what nobody declared is left out.  Of its earlier specs only the highest id is
    kept, as that of its own: it tells whether there are any (``was_another_way`` of the layout).

    :param base: as declared before; a field of it that has a negative id is one that a baseline found gone.
    """
    if after is None:
        return wanted
    gone = [i for i, _ in index(base.schema).new()] if base is not None else []
    settled = ordered_like(rebind_by_path(wanted, after, kept=gone), after)
    ids = {f.definition: f.id for f in after.spec.fields}
    fields = tuple(replace(f, id=ids.get(f.definition, f.id)) for f in settled.spec.fields)
    highest = max(s.id for s in (after.spec, *after.older_specs))
    spec = replace(settled.spec, fields=fields, id=highest)
    return replace(
        settled,
        spec=spec,
        refs={name: _settled_ref(ref, after.refs.get(name)) for name, ref in settled.refs.items()},
        uuid=after.uuid or settled.uuid,
        last_column_id=after.last_column_id,
        last_partition_id=after.last_partition_id,
    )


def _settled_ref(ref: Ref, there: Ref | None) -> Ref:
    """A tag that was declared just now, with the snapshot that it names; one that points elsewhere later was
    moved by somebody.  A branch moves with every write: nothing is known of where it should be."""
    if there is None or ref.kind != there.kind or ref.kind == "branch" or ref.snapshot_id != CURRENT_SNAPSHOT:
        return ref
    return replace(ref, snapshot_id=there.snapshot_id)
