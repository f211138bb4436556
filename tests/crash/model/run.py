"""One random run: a scenario carried out in a world, then compared with the model."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from random import Random
from threading import Lock
from typing import TYPE_CHECKING, Any

from icemigrate import Project
from icemigrate.errors import IcemigrateError
from tests.crash.client import Gateway
from tests.crash.model.conductor import conduct
from tests.crash.model.declared import DeclaredTable, Migration, TableKey, fold, legal
from tests.crash.model.foreign import OtherClients, value_of
from tests.crash.model.judge import Expected, TableJudge, walk
from tests.crash.model.names import names_at_rest
from tests.crash.model.observed import Commit, commits_of, tables_in
from tests.crash.model.scenario import NAMESPACE, Base, Blow, ForeignAct, Scenario, Step, scenario_of
from tests.crash.world import Ended, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BASES = 12
"""How many different worlds runs begin with."""
LEASE = os.environ.get("RANDOM_RUNS_LEASE", "2.5")
"""Seconds: takeovers wait for it, and a busy machine needs some to renew it."""
_KILLED = (-9, 255)
"""Minus the signal; 255 where the fork server does not say how a process ended."""
_CODES = frozenset({0, 1, 2, 3, 4, 5})
_USAGE = 64
_HISTORY = ("icemigrate", "history")
_TRASH = "icemigrate_trash"
_TRIES = 4
_SETTLE_TRIES = 8  # on a busy machine a command may lose its lease, and has to be repeated
_CONFLICT = 4
_OPEN_STATES = ("interrupted", "running")


@dataclass
class Outcome:
    """What a run came to.

    :param log: what happened, line by line.
    """

    seed: int
    faults: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def replay(self) -> str:
        """The command that does it again."""
        return f".venv/bin/python -m tests.crash.model.random_runs --seed {self.seed} --verbose"


class Bases:
    """Worlds whose first migration is applied and whose tables have rows; each is made once and copied."""

    def __init__(self, folder: Path, gateway: Gateway, spark: Callable[[World], SparkSession]) -> None:
        self._folder, self._gateway, self.spark = folder, gateway, spark
        self._made: dict[int, World] = {}
        self._locks = [Lock() for _ in range(BASES)]

    @contextmanager
    def world(self, scenario: Scenario, folder: Path) -> Iterator[World]:
        """The world of a run, as long as the run lasts.

        The history deletes its old metadata files, so no two worlds use one base at once, and each finds the
        base's files as they were.
        """
        if scenario.own_files:
            yield self._make(scenario.base, folder, scenario.publish)
            return
        number = scenario.base.seed
        kept = self._folder / f"history{number}"
        with self._locks[number]:
            if number not in self._made:
                self._made[number] = self._make(scenario.base, self._folder / f"base{number}", "atomic")
                shutil.copytree(self._made[number].warehouse / "icemigrate", kept)
            base = self._made[number]
            shutil.copytree(kept, base.warehouse / "icemigrate", dirs_exist_ok=True)
            yield base.copied(folder, scenario.publish)

    def _make(self, base: Base, folder: Path, publish: str) -> World:
        world = World(folder, self._gateway, publish, environment={})
        world.write("0001_make", base.migration.text)
        world.done("apply", apply_with=base.apply_with)
        others = OtherClients(world.database, world.warehouse, world.catalog, lambda: self.spark(world))
        for table in base.tables:
            random, number = Random(f"rows {base.seed} {table.name}"), 1
            for _ in range(table.appends):
                commit = Commit(tables_in(world.database)[NAMESPACE, table.name])
                columns = [(c.name, c.type) for c in commit.fields.values()]
                rows = []
                for _ in range(random.randint(2, 3)):
                    rows.append({name: value_of(name, type_, number, random) for name, type_ in columns})
                    number += 1
                others.append(table.name, commit, rows)
        others.close()
        debug = {name: value for name, value in os.environ.items() if name == "ICEMIGRATE_DEBUG"}
        world.environment = {"ICEMIGRATE_LOCK_LEASE": LEASE} | debug
        return world


@dataclass
class _Run:
    scenario: Scenario
    world: World
    others: OtherClients
    outcome: Outcome
    migrations: Sequence[Migration]
    first: Mapping[TableKey, str]
    at_rest: list[tuple[dict[tuple[str, str], str], dict[str, Any], str]] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    commands: Iterator[int] = field(default_factory=count)
    is_locked: bool = False

    def log(self, text: str) -> None:
        self.outcome.log.append(text)

    def fault(self, text: str) -> None:
        self.outcome.faults.append(text)

    def carry_out(self) -> None:
        if self.scenario.own_files:
            self.others.reads_at_once = True
            self.others.read_now()
        for migration in self.migrations[1:]:
            self.world.write(f"{migration.version}_change", migration.text)
        for step in self.scenario.steps:
            for act in step.before:
                self.act(act)
            if step.unlocks and self.is_locked:
                self.end_of("unlock", "--auto-approve")
            self.step(step)
        self.settle()

    def act(self, act: ForeignAct) -> None:
        failures = len(self.others.failed)
        done = self.others.act(act)
        self.outcome.counts[f"foreign {act.kind}"] += done is not None
        self.log(f"    other client: {act.kind}: {done}")
        for failed in self.others.failed[failures:]:
            self.outcome.counts["foreign refused"] += 1
            self.log(f"    refused: {failed}")

    def step(self, step: Step) -> None:
        errors: list[BaseException] = []

        def on_blow(blow: Blow) -> None:
            try:
                self.blow(blow)
            except BaseException as error:
                errors.append(error)

        command = self.sensible(step.command)
        name, *options = command
        args = (name, "--detailed-exitcode" if name == "plan" else "--auto-approve", *options)
        apply_with = self.scenario.apply_with(next(self.commands))
        blows = step.blows_with(apply_with)
        end, met = conduct(self.world, args, blows, on_blow, apply_with)
        self.outcome.counts[" ".join(o for o in command if not o.startswith("000"))] += 1
        for blow in met:
            self.outcome.counts[f"{blow.kind} at a {blow.by}"] += 1
        if errors:
            raise errors[0]
        killed = any(blow.kind == "kill" for blow in met)
        self.judge_end(command, end, [f"{b.kind} at {b.by} {b.at}" for b in met], killed, apply_with)
        refilled = end.code == 0 and "--refill" in command and not met
        status = self.rest("refill" if refilled else "")
        states = _states(status)
        stopped = {v: s for v, s in states.items() if s in _OPEN_STATES}
        if name == "plan" and end.code == 0 and stopped:
            self.fault(f"`plan --detailed-exitcode` ended with 0 beside {stopped}\n{end.out}{end.err}")
        if end.code == 0 and name == "apply" and not any(b.kind == "pause" for b in met):
            # A redo applies its version alone.
            left = _OPEN_STATES if "--redo" in command else (*_OPEN_STATES, "pending")
            bad = {v: s for v, s in states.items() if s in left}
            if bad:
                self.fault(f"`{' '.join(command)}` ended with 0 and left {bad}\n{end.out}{end.err}")

    def blow(self, blow: Blow) -> None:
        self.log(f"  {blow.kind} at {blow.by} {blow.at}")
        for act in blow.acts:
            self.act(act)
        if blow.kind == "pause" and blow.meanwhile:
            self.outcome.counts["take over"] += 1
            if blow.unlocks:
                self.end_of("unlock", "--auto-approve")
            name, *options = self.sensible(blow.meanwhile)
            self.end_of(name, "--auto-approve", *options)

    def end_of(self, *args: str) -> Ended:
        """Run a command without a disturbance."""
        apply_with = self.scenario.apply_with(next(self.commands))
        end = self.world.run(*args, apply_with=apply_with)
        self.judge_end(args, end, [], False, apply_with)
        return end

    def judge_end(
        self, command: Sequence[str], end: Ended, met: Sequence[str], killed: bool, apply_with: str
    ) -> None:
        text = f"{' '.join(command)} ({apply_with})"
        self.outcome.counts[f"with {apply_with}, {'killed' if killed else f'exit {end.code}'}"] += 1
        self.outcome.counts[f"exit {end.code}"] += 1
        self.log(f"  {text} -> {end.code} {', '.join(met)}")
        if end.code:
            self.log(
                "".join(f"      {line}\n" for line in (end.err or end.out)[-1500:].splitlines()).rstrip()
            )
        said = end.out + end.err
        if "Traceback" in said or "bug in icemigrate" in said:
            self.fault(f"`{text}` ({', '.join(met)}) reports a bug:\n{said[-3000:]}")
        elif end.code == _USAGE and ("is not rolled back" in said or "no migration of this version" in said):
            pass  # another client was faster
        elif end.code not in _CODES and not (killed and end.code in _KILLED):
            self.fault(f"`{text}` ({', '.join(met)}) ended with {end.code}:\n{said[-2000:]}")

    def status(self) -> dict[str, Any]:
        """What the product says of the world, as `status --format json` prints it."""
        try:
            said = Project(self.world.folder).status()
        except IcemigrateError as error:
            self.fault(f"`status` fails: {error}")
            return {"migrations": [], "lock": None}
        migrations = [
            {"version": m.version, "state": m.state, "stays": list(m.stays)} for m in said.migrations
        ]
        status = {"migrations": migrations, "lock": said.lock and said.lock.words}
        self.log(f"    status: {_states(status)}{' locked' if status['lock'] else ''}")
        return status

    def printed_status(self) -> None:
        """The same by the command line, whose exit code tells of interrupted versions."""
        end = self.world.run("status", "--format", "json")
        if end.code not in (0, _CONFLICT):
            self.fault(f"`status` ended with {end.code}:\n{end.out}{end.err}")
            return
        status: dict[str, Any] = json.loads(end.out)
        if (end.code == _CONFLICT) != bool({"interrupted", "running"}.intersection(_states(status).values())):
            self.fault(f"`status` ended with {end.code}:\n{end.out}{end.err}")

    def rest(self, note: str = "") -> dict[str, Any]:
        """Note how the tables are, where nothing is half done; what `status` says."""
        for _ in range(_TRIES):
            tables = tables_in(self.world.database)
            status = self.status()
            if tables_in(self.world.database) == tables:  # else the JVM ends what a killed client began
                break
        self.states, self.is_locked = _states(status), status["lock"] is not None
        if self.states and status["lock"] is None and not set(self.states.values()) & set(_OPEN_STATES):
            self.at_rest.append((tables, status, note))
            if self.scenario.own_files:
                self.others.read_now()
        return status

    def is_at_rest(self, status: dict[str, Any]) -> bool:
        return bool(self.at_rest) and self.at_rest[-1][1] == status

    def sensible(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """A command that has something to do, in the place of one that has nothing."""
        later = {v: s for v, s in self.states.items() if v != self.migrations[0].version}
        first_of_held = next((v for v, s in later.items() if s == "held"), None)
        if command[0] == "rollback" and not set(later.values()) & {"applied", *_OPEN_STATES}:
            command = ("apply", "--redo", "")
        if "--redo" in command and self.states.get(command[2]) != "held":
            return ("apply", "--redo", first_of_held) if first_of_held else ("apply",)
        return command

    def settle(self) -> None:
        """Bring everything to rest: `apply` or `rollback` goes on with what was interrupted."""
        last: list[Ended] = []
        self.printed_status()
        for number in range(_SETTLE_TRIES):
            status = self.rest()
            if self.is_at_rest(status):
                return
            stopped = [v for v, s in _states(status).items() if s in _OPEN_STATES]
            if status["lock"] is not None:
                last.append(self.end_of("unlock", "--auto-approve"))
            if stopped:
                options = ("--partial", "--metadata-only", "--only", stopped[-1])
                on = ("apply",) if number % 2 == 0 else ("rollback", *options)
                last.append(self.end_of(on[0], "--auto-approve", *on[1:]))
        if not self.is_at_rest(self.rest()):
            ends = "\n".join(f"{end.code}: {end.out[-1500:]}{end.err[-1500:]}" for end in last)
            self.fault(f"it does not come to rest:\n{ends}")

    def judge(self) -> None:
        """Compare all commits of all tables with the model."""
        allowed = legal(self.migrations)
        tables = tables_in(self.world.database)
        uuids = {name: Commit(location).uuid for name, location in tables.items() if name != _HISTORY}
        places = {uuid: name for name, uuid in uuids.items()}
        known = {key: Commit(location).uuid for key, location in self.first.items()}
        for uuid in self.others.done:
            if uuid not in places:
                self.fault(f"a table that other clients wrote to is gone: {uuid}")
        keys = {uuid: key for key, uuid in known.items()} | self.made(places)
        for uuid, key in keys.items():
            if uuid not in places:
                self.fault(f"table {key[1]} is gone")
                continue
            judge = TableJudge.of(key, allowed, self.scenario.publish == "direct")
            commits = commits_of(tables[places[uuid]], self.first.get(key))
            commits = [self.others.read.get(commit.location, commit) for commit in commits]
            walk(judge, commits, self.others.done.get(uuid, {}), self.expected(key, uuid))
            self.outcome.faults += judge.faults
        for at_rest, status, _ in self.at_rest:
            there = {n: Commit(location).uuid for n, location in at_rest.items() if n != _HISTORY}
            declared = self.with_trash(self.declared(status))
            if not _stays(status):
                self.outcome.faults += names_at_rest(declared, known, there, NAMESPACE)

    def declared(self, status: dict[str, Any]) -> dict[TableKey, DeclaredTable]:
        """The tables by the versions that are applied."""
        return fold(self.migrations, [v for v, s in _states(status).items() if s == "applied"])

    def with_trash(self, declared: dict[TableKey, DeclaredTable]) -> dict[TableKey, DeclaredTable]:
        """The same, and what the first migration made as gone, where that one was taken back."""
        first = fold(self.migrations, (self.migrations[0].version,))
        return {key: replace(table, gone=True) for key, table in first.items()} | declared

    def made(self, places: Mapping[str, tuple[str, str]]) -> dict[str, TableKey]:
        """The tables that migrations made in this run, those in the trash included."""
        effects = [(m.version, e) for m in self.migrations[1:] for e in m.effects if e.kind == "create"]
        return {
            uuid: (version, effect.table)
            for uuid, (_, name) in places.items()
            for version, effect in effects
            if effect.table.rpartition(".")[2] in name
        }

    def expected(self, key: TableKey, uuid: str) -> dict[str, list[Expected]]:
        """What the table must be at rest, by the location of its metadata file."""
        wanted: dict[str, list[Expected]] = {}
        for tables, status, note in self.at_rest:
            # Old metadata files of the history are removed.
            there = (where for name, where in tables.items() if name != _HISTORY)
            at = next((where for where in there if Commit(where).uuid == uuid), None)
            if at is None:
                continue
            states = _states(status)
            unapplied = tuple(v for v, s in states.items() if s == "pending")
            declared = self.declared(status).get(key)
            if declared is None:
                continue  # the first migration was taken back, and its tables are in the trash
            relaxed = bool(_stays(status))
            refilled = note == "refill" and self.can_refill(key)
            wanted.setdefault(at, []).append(Expected(declared, relaxed, refilled, unapplied))
        return wanted

    def can_refill(self, key: TableKey) -> bool:
        """Whether rows can be matched (`docs/rolling-back.md`, How a refill works, 1)."""
        table = next((t for t in self.scenario.base.tables if key[1].endswith(f".{t.name}")), None)
        return table is not None and (table.has_identifier or table.format_version == 3)


def _states(status: Mapping[str, Any]) -> dict[str, str]:
    return {m["version"]: m["state"] for m in status["migrations"]}


def _stays(status: Mapping[str, Any]) -> list[str]:
    return [text for m in status["migrations"] for text in m["stays"]]


def run(seed: int, folder: Path, bases: Bases, keep: bool = False) -> Outcome:
    """Do one run.

    :param keep: whether the world stays where something is wrong.
    """
    scenario, outcome = scenario_of(seed, BASES), Outcome(seed)
    with bases.world(scenario, folder / f"run{seed}") as world:
        _carry_out(scenario, world, bases, outcome, keep)
    outcome.counts["runs"] += 1
    outcome.counts["failed runs"] += bool(outcome.faults)
    return outcome


def _carry_out(scenario: Scenario, world: World, bases: Bases, outcome: Outcome, keep: bool) -> None:
    tables = tables_in(world.database)
    first = {("0001", f"{NAMESPACE}.{t.name}"): tables[NAMESPACE, t.name] for t in scenario.base.tables}
    others = OtherClients(world.database, world.warehouse, world.catalog, lambda: bases.spark(world))
    others.untouched = scenario.untouched
    migrations = (scenario.base.migration, *scenario.migrations)
    one = _Run(scenario, world, others, outcome, migrations, first)
    try:
        one.carry_out()
        one.judge()
    finally:
        others.close()
        if not (keep and outcome.faults):
            with suppress(OSError):
                shutil.rmtree(world.folder)
