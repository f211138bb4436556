"""Columns are filled from SQL expressions, in the rows that a condition names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import ClassVar

from icemigrate.changes.base import Hazard, HazardKind, Problem, Reversal, Reversible, Sql, Subject
from icemigrate.data.base import TABLE_MARK, DataStatement, Ground, RowWork, Stage, strange_word, with_ends
from icemigrate.data.check import Check
from icemigrate.frozen import replace
from icemigrate.model.names import BadName, Path, format_path, parse_path
from icemigrate.sql.names import path_sql


class Backfill(RowWork):
    """One ``UPDATE``.

    :param sets: columns or fields of structs, dotted, each with the expression that gives its values; all of
        them see the row as it was.
    :param where: which rows; ``None`` for all.
    :param number: its place in the list of the file, from 0.
    """

    kind: ClassVar[str] = "backfill"

    sets: tuple[tuple[str, str], ...]
    where: str | None = None
    number: int = 0

    @property
    def stage(self) -> Stage:
        """It writes."""
        return Stage.WRITE

    @property
    def subject(self) -> Subject:
        """Its item of the list."""
        return ("backfill", str(self.number))

    @property
    def paths(self) -> tuple[Path, ...]:
        """What it sets."""
        return tuple(parse_path(column) for column, _ in self.sets)

    def parts(self) -> Iterator[tuple[Subject, RowWork]]:
        """Column by column, and the condition."""
        for column, value in self.sets:
            yield (*self.subject, "set", column), replace(self, sets=((column, value),), where=None)
        if self.where is not None:
            subject, column = (*self.subject, "where"), self.sets[0][0]
            # Of the condition of an UPDATE that is none, Spark tells with an internal error.
            yield subject, Check(f"SELECT 1 FROM {TABLE_MARK} WHERE {self.where}", "[]", is_after=True)
            yield subject, replace(self, sets=((column, path_sql(parse_path(column))),))

    def statements(self, rows: str) -> tuple[DataStatement, ...]:
        """One ``UPDATE``."""
        sets = ", ".join(f"{path_sql(parse_path(column))} = {value}" for column, value in self.sets)
        where = "" if self.where is None else f" WHERE {self.where}"
        return (Sql(f"UPDATE {rows} SET {sets}{where}"),)

    def late(self, rows: str, required: Collection[Path]) -> tuple[DataStatement, ...]:
        """What becomes required, where it has no value."""
        pairs = zip(self.paths, self.sets, strict=True)
        values = {path_sql(path): value for path, (_, value) in pairs if path in required}
        if not values:
            return ()
        empty = " OR ".join(f"{name} IS NULL" for name in values)
        only = replace(
            self,
            sets=tuple((column, f"coalesce({column}, {value})") for column, value in values.items()),
            where=f"({empty})" if self.where is None else f"({self.where}) AND ({empty})",
        )
        return only.statements(rows)

    def problems(self, ground: Ground) -> Iterator[Problem]:
        """A column that somebody else has taken away meanwhile."""
        for path in self.paths:
            if ground.table.schema.find(path) is None:
                yield Problem(
                    "unknown-column",
                    ground.declared,
                    (*self.subject, "set", format_path(path)),
                    f"table `{ground.table.name}` has no column `{format_path(path)}` to fill",
                )

    def doubts(self, ground: Ground) -> Iterator[Problem]:
        """What is a word by itself."""
        for column, value in self.sets:
            yield from strange_word(value, (*self.subject, "set", column), ground)
        if self.where is not None:
            yield from strange_word(self.where, (*self.subject, "where"), ground)

    def hazards(self, ground: Ground) -> tuple[Hazard, ...]:
        """Values that were there before, and that it may replace."""
        return tuple(
            Hazard(HazardKind.DESTRUCTIVE, reason, f"{ground.declared}.{format_path(path)}")
            for path in self.paths
            for reason in self._overwritten(path, ground)
        )

    def _overwritten(self, path: Path, ground: Ground) -> Iterator[str]:
        if ground.is_old(path) and path not in self._said("null"):
            name, unless = format_path(path), ""
            if ground.is_back(path):
                unless = f", unless the condition says {name} is null"
            yield f"values of {name} that {'come back' if unless else 'are there'} are overwritten{unless}"
        struct = self._made(path, ground)
        if struct is not None:
            name = format_path(struct)
            yield f"{name} becomes a struct where it is null, unless the condition says {name} is not null"

    def _made(self, path: Path, ground: Ground) -> Path | None:
        """The struct around a field that comes to be where it was null, since Spark sets the field in it."""
        for depth in range(1, len(path)):
            struct = ground.table.schema.find(path[:depth])
            is_there = any(name[:depth] == path[:depth] for name in self._said("not null"))
            if struct is not None and not struct.required and ground.is_old(path[:depth]) and not is_there:
                return path[:depth]
        return None

    def overwrites(self, ground: Ground) -> bool:
        """Whether it sets a column that had values, nulls included."""
        return any(ground.is_old(path) or self._made(path, ground) is not None for path in self.paths)

    def reversal(self, ground: Ground) -> Reversal:
        """What was added with the migration goes with it; else the rows go back."""
        if not self.overwrites(ground):
            return Reversal(Reversible.YES, with_ends("the columns go as they came", ground.gone))
        condition = "no row is written after it and the snapshot before it has not expired"
        return Reversal(Reversible.WHILE, with_ends(condition, ground.gone))

    def leaves_values_alone(self, path: Path) -> bool:
        """Whether it writes each row, but those in which a column has a value already."""
        return self.where is not None and _IS.fullmatch(self.where) is not None and path in self._said("null")

    def describe(self) -> str:
        """What is set, and where."""
        sets = ", ".join(f"{column} = {' '.join(value.split())}" for column, value in self.sets)
        return f"fill {sets}" + ("" if self.where is None else f" where {' '.join(self.where.split())}")

    def _said(self, what: str) -> tuple[Path, ...]:
        """The columns that the condition says for sure to be ``null`` or ``not null``, where it is plain."""
        if self.where is None or _NOT_PLAIN.search(self.where):
            return ()
        parts = re.split(r"\s+and\s+", self.where.strip(), flags=re.I)
        found = (m for m in map(_IS.fullmatch, parts) if m is not None)
        return tuple(_names(m[1]) for m in found if " ".join(m[2].lower().split()) == what)


_NOT_PLAIN = re.compile(r"['\"()]|--|/\*|\b(or|case|between)\b", re.I)
_IS = re.compile(r"\s*([\w.`]+)\s+is\s+((?:not\s+)?null)\s*", re.I)


def _names(text: str) -> Path:
    try:
        return parse_path(text)
    except BadName:
        return ()
