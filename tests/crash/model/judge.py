"""The commits of a table, one after the other, judged by what the documentation promises.

A commit is another client's (its metadata file is on the list that the client wrote), or else the product's.
After another client's commit the judge learns what that client created and wrote.  After one of the product's
it compares: fields of others are as they were (`docs/promises.md` R4), each field of a migration has a state
that some set of applied migrations gives it, every row is there once, and every row has the values that were
written to it (A29, R3, R5), except where a documented rule lets a value be absent:

* The row was written to another file while the column was dropped, so that the file lacks the column
  (`docs/rolling-back.md`, Values that were rewritten away).  The value is *hidden* until a refill.
* A `backfill` or a `retype` of a migration gives another value (`docs/migration-files.md`).

Iceberg's specification identifies a field by its id ("Schemas": names change, ids do not), so all bookkeeping
is by field id.  Nothing here imports the product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.crash.model.declared import Column, ColumnKey, DeclaredTable, Fill, Legal, TableKey
from tests.crash.model.observed import Commit, Duplicate, FilesAreGone

TEMPORARY = "__icemigrate"
"""In the names of columns that exist while a migration runs."""
_OWN_PROPERTIES = "icemigrate."


@dataclass(frozen=True)
class Foreign:
    """What another client did in one commit.

    :param added: the ids of rows that it wrote; ``deleted``, of those that it deleted.
    :param is_certain: whether the commit is surely its own; one that raced with the product's may not be.
    :param changes_fields: whether such an action adds, renames or drops columns.
    :param column: the name of the column that it added or dropped, or that a column has from then on; empty
        where the action failed, or changes no columns.
    """

    what: str
    added: frozenset[int] = frozenset()
    deleted: frozenset[int] = frozenset()
    is_certain: bool = True
    changes_fields: bool = False
    column: str = ""


@dataclass(frozen=True)
class Expected:
    """What a table must be once no command runs.

    :param declared: the table as the applied migrations declare it.
    :param relaxed: whether a rollback with `--partial` left something: columns may be in any legal state.
    :param refilled: whether the last command was a rollback with `--refill` that succeeded on this table.
    :param unapplied: versions that have no tag, as they were never applied or were undone at once.
    """

    declared: DeclaredTable
    relaxed: bool = False
    refilled: bool = False
    unapplied: tuple[str, ...] = ()


@dataclass
class TableJudge:
    """Knows of one table who created which field, and what every row holds in it.

    :param key: the table in the migrations.
    :param legal: what its columns may be.
    :param temporary_names: whether columns may have names that no migration declares for a while, since
        statements run on the table itself (`publish: direct`).
    """

    key: TableKey
    columns: Mapping[ColumnKey, frozenset[Column | None]]
    fills: tuple[Fill, ...]
    temporary_names: bool = False
    creator: dict[int, str] = field(default_factory=dict)
    column: dict[int, ColumnKey] = field(default_factory=dict)
    foreign_fields: dict[int, Column] = field(default_factory=dict)
    foreign_properties: dict[str, str] = field(default_factory=dict)
    first_properties: dict[str, str] = field(default_factory=dict)
    written: dict[tuple[int, int], Any] = field(default_factory=dict)
    seen: dict[tuple[int, int], Any] = field(default_factory=dict)
    hidden: set[tuple[int, int]] = field(default_factory=set)
    rows: set[int] = field(default_factory=set)
    first_rows: frozenset[int] = frozenset()
    before: Commit | None = None
    faults: list[str] = field(default_factory=list)
    adopted: set[ColumnKey] = field(default_factory=set)

    @classmethod
    def of(cls, key: TableKey, all_legal: Legal, temporary_names: bool) -> TableJudge:
        """For one table of the migrations."""
        return cls(key, all_legal.columns.get(key, {}), all_legal.fills.get(key, ()), temporary_names)

    def begin(self, commit: Commit) -> None:
        """Take the table as it is before the run: all its columns are the initial migration's."""
        for number, column in commit.fields.items():
            self.creator[number] = "initial"
            self.column[number] = (self.key[0], column.name)
        self.first_properties = _foreign_part(commit.properties)
        self._learn_rows(commit, commit.rows)
        self.first_rows = frozenset(self.rows)
        self.before = commit

    def follow(self, commit: Commit, foreign: Foreign | None) -> None:
        """Judge the next commit.

        :param foreign: what another client did; ``None`` for a commit of the product.
        """
        before = self.before
        if foreign is not None and before is not None and _is_other(foreign, before, commit):
            foreign = None  # the product's commit came between
        try:
            if foreign is not None:
                self._learn(commit, foreign)
            else:
                self._judge_fields(commit)
                if before is None or before.snapshot != commit.snapshot or before.fields != commit.fields:
                    self._judge_rows(commit)
        except Duplicate as error:
            self._fault(commit, str(error))
        except (FilesAreGone, FileNotFoundError):
            pass  # it was expired since; the last commit is read in any case
        self.before = commit

    def _fault(self, commit: Commit, text: str) -> None:
        self.faults.append(f"{self.key[1]}: {text} [{commit.location.rpartition('/')[2]}]")

    # Another client's commit.

    def _learn(self, commit: Commit, foreign: Foreign) -> None:
        before = self.before.fields if self.before is not None else {}
        for number, column in commit.fields.items():
            is_renamed = number in self.column and number in before and column != before[number]
            is_own = is_renamed and (foreign.is_certain or column.name == foreign.column)
            if is_own:
                # A migration that does not touch the column has no say in it from now on.
                self.adopted.add(self.column[number])
            if number not in self.creator or is_own:
                self.creator[number] = "foreign"
            if self.creator[number] == "foreign":
                self.foreign_fields[number] = column
        for number in set(before) - set(commit.fields):
            self.foreign_fields.pop(number, None)
        own = self.before.properties if self.before is not None else {}
        for name, value in _foreign_part(commit.properties).items():
            if own.get(name) != value:
                self.foreign_properties[name] = value
        rows = commit.rows
        if foreign.is_certain:
            wanted = (self.rows | foreign.added) - foreign.deleted
            if set(rows) != wanted:
                self._fault(commit, f"after {foreign.what}: {_difference(wanted, set(rows))}")
        self._learn_rows(commit, rows)

    def _learn_rows(self, commit: Commit, rows: Mapping[int, Mapping[int, Any]]) -> None:
        for row, values in rows.items():
            for number, value in values.items():
                at, is_new = (row, number), row not in self.rows
                if is_new or (value is not None and value != self.seen.get(at)):
                    self.written[at] = value
                    self.hidden.discard(at)
                elif value is None and self._known(row, number) is not None and at not in self.hidden:
                    self._miss(commit, row, number, "after another client's commit")
                self.seen[at] = value
        self.rows = set(rows)

    # A commit of the product.

    def _judge_fields(self, commit: Commit) -> None:
        before = self.before
        known = before.fields if before is not None else {}
        for number, column in commit.fields.items():
            if number not in self.creator:
                if before is not None and number <= before.last_column_id:
                    self._fault(commit, f"column {column.name} has the field id {number} of another one")
                self.creator[number] = "product"
            if self.creator[number] == "product" and number not in self.column:
                self._name(commit, number, column)
        for number, creator in self.creator.items():
            now = commit.fields.get(number)
            if creator == "foreign":
                if now != known.get(number):
                    was = known.get(number)
                    self._fault(commit, f"another client's column {was} (field id {number}) became {now}")
                continue
            allowed = self.columns.get(self.column.get(number, ("", "")), frozenset())
            passing = now is None or self.temporary_names or TEMPORARY in now.name
            if now not in allowed and not (creator == "product" and passing) and not self._may_pass(now):
                self._fault(commit, f"column {self.column.get(number)} (field id {number}) became {now}")

    def _may_pass(self, now: Column | None) -> bool:
        # Statements on the table itself swap two names over a third one, one after the other.
        return now is not None and (self.temporary_names or TEMPORARY in now.name)

    def _name(self, commit: Commit, number: int, column: Column) -> None:
        if TEMPORARY in column.name:
            return
        able = [
            key
            for key, states in self.columns.items()
            if key[0] != self.key[0] or self.before is None or key not in self.column.values()
            if any(state is not None and state.name == column.name for state in states)
        ]
        able = [k for k in able if Column(column.name, column.type) in self.columns[k]] or able
        if not able:
            if not self.temporary_names:
                self._fault(commit, f"no migration declares the column {column.name}")
            return
        self.column[number] = able[-1]

    def _judge_rows(self, commit: Commit) -> None:
        rows = commit.rows
        if set(rows) != self.rows:
            self._fault(commit, f"rows: {_difference(self.rows, set(rows))}")
        filled: set[int] = set()
        for row, values in rows.items():
            for number, value in values.items():
                at = (row, number)
                if value != self.seen.get(at) and value is not None and value in self._fills(row, number):
                    filled.add(number)
                if value is None and self._known(row, number) is not None:
                    if at not in self.hidden and not self._is_unfilled(row, number):
                        self._miss(commit, row, number, "")
                elif value is not None and value not in self._legal(row, number):
                    if value == commit.brought_along(row, number):
                        self.written[row, number] = self.seen[at] = value
                        continue
                    name = commit.fields[number].name
                    self._fault(
                        commit, f"row {row}: {name} is {value!r}, not one of {self._legal(row, number)}"
                    )
                else:
                    self.hidden.discard(at)
                self.seen[at] = value
        for number in filled:
            # Rows are published together: `docs/applying.md`, Rows, 3 to 5.
            self._judge_filled(commit, number, rows)
        self.rows = set(rows)

    def _judge_filled(self, commit: Commit, number: int, rows: Mapping[int, Mapping[int, Any]]) -> None:
        for row, values in rows.items():
            if values[number] not in self._filled(row, number):
                name = commit.fields[number].name
                self._fault(commit, f"row {row}: {name} is {values[number]!r} where other rows were filled")

    def _miss(self, commit: Commit, row: int, number: int, when: str) -> None:
        """A value is not there: that is the file's fault, or a fault."""
        if commit.was_written_with(row, number):
            text = f"row {row}: {commit.fields[number].name} lost {self._known(row, number)!r} {when}"
            self._fault(commit, text.strip())
        self.hidden.add((row, number))

    def _known(self, row: int, number: int) -> Any:
        """What was written to the row last, by whomever."""
        seen = self.seen.get((row, number))
        return seen if seen is not None else self.written.get((row, number))

    def _is_unfilled(self, row: int, number: int) -> bool:
        """Whether the row has no value of its own, so that taking a fill back leaves none."""
        return self.written.get((row, number)) is None

    def _source(self, fill: Fill, row: int) -> set[Any]:
        number = next((n for n, key in self.column.items() if key == fill.source), -1)
        value = self.written.get((row, number))
        return {value, None} if (row, number) in self.hidden else {value}

    def _before(self, row: int, number: int) -> set[Any]:
        value = self.written.get((row, number))
        return {value, None} if (row, number) in self.hidden else {value}

    def _fills(self, row: int, number: int) -> set[Any]:
        """The values that migrations give to the row; a later one fills what an earlier one has filled."""
        key = self.column.get(number)
        # While a column has a temporary name, it is that of any retype.
        able = [f for f in self.fills if f.column == key or (key is None and f.kind == "text")]
        values, filled = self._before(row, number), set[Any]()
        for fill in sorted(able, key=lambda fill: fill.version):
            filled |= {
                fill.value(row, before, source)
                for before in values | filled
                for source in self._source(fill, row)
            }
        return filled

    def _filled(self, row: int, number: int) -> set[Any]:
        fills = self._fills(row, number)
        # A retype whose source has no value leaves what the row has.
        own = self.written.get((row, number))
        return fills | {own} if fills == {None} or (own is not None and self._has_retype(number)) else fills

    def _has_retype(self, number: int) -> bool:
        return any(f.kind == "text" and f.column == self.column.get(number) for f in self.fills)

    def _legal(self, row: int, number: int) -> set[Any]:
        return {self.written.get((row, number))} | self._fills(row, number)

    # At rest.

    def settle(self, expected: Expected) -> None:
        """Compare the table, once no command runs, with what the applied migrations declare."""
        commit = self.before
        assert commit is not None
        self._settle_columns(commit, expected)
        self._settle_rest(commit, expected)
        if commit.snapshot is not None:
            self._settle_rows(commit, expected)

    def _settle_columns(self, commit: Commit, expected: Expected) -> None:
        ours = {n: c for n, c in commit.fields.items() if self.creator.get(n) != "foreign"}
        theirs = {n: c for n, c in commit.fields.items() if self.creator.get(n) == "foreign"}
        if theirs != self.foreign_fields:
            self._fault(commit, f"columns of others are {theirs}, not {self.foreign_fields}")
        wanted = {k: c for k, c in expected.declared.columns.items() if k not in self.adopted}
        for number, column in ours.items():
            key = self.column.get(number, ("", ""))
            declared = wanted.pop(key, None)
            if declared != column and not (expected.relaxed and column in self.columns.get(key, ())):
                self._fault(commit, f"at rest, column {key} (field id {number}) is {column}, not {declared}")
        for key, column in wanted.items():
            if not (expected.relaxed and None in self.columns.get(key, ())):
                self._fault(commit, f"at rest, column {key} is missing: {column}")

    def _settle_rest(self, commit: Commit, expected: Expected) -> None:
        terms = {(transform, self.column.get(n)) for transform, n in commit.partition}
        if terms != set(expected.declared.partition) and not expected.relaxed:
            self._fault(commit, f"at rest, it is partitioned by {terms}, not {expected.declared.partition}")
        wanted = self.first_properties | dict(expected.declared.properties) | self.foreign_properties
        properties = _foreign_part(commit.properties)
        if properties != wanted and not expected.relaxed:
            self._fault(commit, f"at rest, its properties are {properties}, not {wanted}")
        for name, kind in commit.references.items():
            if kind == "branch" and name != "main":
                self._fault(commit, f"at rest, there is a branch {name}")
            if kind == "tag" and any(f"-{version}" in name for version in expected.unapplied):
                self._fault(commit, f"at rest, there is a tag {name} of a version that was not applied")

    def _settle_rows(self, commit: Commit, expected: Expected) -> None:
        applied = {fill.version for fill in expected.declared.fills}
        rows = commit.rows
        if set(rows) != self.rows:
            self._fault(commit, f"at rest, rows: {_difference(self.rows, set(rows))}")
        for number in commit.fields:
            fills = [f for f in self.fills if f.column == self.column.get(number)]
            done = [f for f in fills if f.version in applied]
            for row in sorted(self.first_rows & set(rows)):
                value = rows[row].get(number)
                own = self.written.get((row, number))
                away = value is None and not commit.was_written_with(row, number)
                if done and value not in self._filled(row, number) and not away:
                    name = commit.fields[number].name
                    self._fault(commit, f"at rest, row {row}: {name} is {value!r} and was never filled")
                if fills and not done and not expected.relaxed and value not in (own, None):
                    name = commit.fields[number].name
                    self._fault(commit, f"at rest, row {row}: {name} is {value!r}, not {own!r} as before")
        if expected.refilled:
            for row, number in sorted(self.hidden):
                if number in commit.fields and row in rows:
                    name, value = commit.fields[number].name, self.written.get((row, number))
                    self._fault(commit, f"row {row}: {name} is not back as {value!r} after a refill")
        for text in commit.partition_faults():
            self._fault(commit, text)


def _difference(wanted: set[int], there: set[int]) -> str:
    return f"lost {sorted(wanted - there)}, appeared {sorted(there - wanted)}"


def _is_other(foreign: Foreign, before: Commit, commit: Commit) -> bool:
    """Whether a commit that raced with another client's changes columns that the client's action does not."""
    if foreign.is_certain or before.fields == commit.fields:
        return False
    if not foreign.column:
        return not foreign.changes_fields
    names = ([column.name for column in one.fields.values()] for one in (before, commit))
    was_there, is_there = (foreign.column in one for one in names)
    return was_there == is_there


def _foreign_part(properties: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in properties.items() if not k.startswith(_OWN_PROPERTIES)}


def walk(
    judge: TableJudge,
    commits: Sequence[Commit],
    foreign: Mapping[str, Foreign],
    at_rest: Mapping[str, Sequence[Expected]],
) -> None:
    """Judge all commits of a table since the run began.

    :param commits: the first one is the table as it was before the run.
    :param foreign: by location, what other clients did.
    :param at_rest: by location, what the table must be right behind a commit.
    """
    for number, commit in enumerate(commits):
        if number == 0:
            judge.begin(commit)
        else:
            judge.follow(commit, foreign.get(commit.location))
        for expected in at_rest.get(commit.location, ()):
            with suppress(FilesAreGone, FileNotFoundError):
                judge.settle(expected)
    try:
        commits[-1].rows  # noqa: B018
        commits[-1].partition_faults()
    except (FilesAreGone, FileNotFoundError) as error:
        judge.faults.append(f"{judge.key[1]}: files of the current snapshot are gone: {error}")
    missing = set(foreign) - {commit.location for commit in commits}
    if missing:
        whats = ", ".join(foreign[location].what for location in sorted(missing))
        judge.faults.append(f"{judge.key[1]}: commits of other clients are gone: {whats}")
