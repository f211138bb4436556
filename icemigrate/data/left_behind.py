"""The rows of other branches, which stay as they are: what a migration does to rows, it does on main alone.

A branch is read under the table's schema, so a column that is filled or retyped reads null there.  What
becomes required without being there is refused, see :mod:`icemigrate.model.legality.referring`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icemigrate.changes.base import Problem, Sql
from icemigrate.data.backfill import Backfill
from icemigrate.data.base import Ground, RowWork
from icemigrate.data.retype import Retype
from icemigrate.frozen import Frozen
from icemigrate.model.legality.referring import named
from icemigrate.model.names import Path, format_path
from icemigrate.model.table import Head, Table
from icemigrate.model.types import Field
from icemigrate.sql.branches import branch_sql, move_branch_sql
from icemigrate.sql.names import quote, table_sql

_SHOWN = 3
"""For how many branches of a table the way is told; it may have hundreds."""


class _Left(Frozen):
    """What a branch is left with.

    :param works: those that change no row of it.
    :param null: columns that read null there, under their names in the end.
    :param default: those that read the default that older rows have.
    :param kept: those that keep what is there.
    """

    name: str
    head: Head
    works: tuple[RowWork, ...]
    null: tuple[Path, ...]
    default: tuple[Path, ...]
    kept: tuple[Path, ...]

    @property
    def message(self) -> str:
        """What whoever reads the branch sees."""
        parts = [
            f"{verb} {', '.join(f'`{format_path(path)}`' for path in paths)}"
            for verb, paths in (
                ("reads null in", self.null),
                ("reads the default in", self.default),
                ("keeps what it has in", self.kept),
            )
            if paths
        ]
        branch = f"branch `{self.name}` ({self.head.rows_text})"
        return f"rows are changed on main alone: {branch} {', and '.join(parts)}"


def rows_left(
    works: Sequence[RowWork], ground: Ground, there: Table, after: Table, catalog: str
) -> Iterator[Problem]:
    """What stays as it is on others' branches, and the SQL that changes it there too.

    :param there: the table as it is before the migration.
    :param after: as the migration leaves it.
    :param catalog: the catalog's name in Spark SQL.
    """
    heads = {n: h for n, h in sorted(there.heads.items()) if n in after.refs and h.has_rows}
    left = [found for name, head in heads.items() if (found := _left(name, head, works, ground, after))]
    for one in left[:_SHOWN]:
        yield Problem(
            "rows-left-on-branch",
            ground.declared,
            one.works[0].subject,
            one.message,
            f"to bring the values over when it is done: {_way(one, ground, there, after, catalog)}",
        )
    if len(left) > _SHOWN:
        names = named("branch", [one.name for one in left[_SHOWN:]])
        yield Problem(
            "rows-left-on-branch",
            ground.declared,
            left[_SHOWN].works[0].subject,
            f"rows are changed on main alone, and so it is with {names}",
            "drop the branches that nobody needs",
        )


def _left(name: str, head: Head, works: Sequence[RowWork], ground: Ground, after: Table) -> _Left | None:
    """What a branch is left with; ``None`` where nothing is missed there, or where more is wrong with it."""
    found: dict[str, list[Path]] = {"null": [], "default": [], "kept": []}
    of: list[RowWork] = []
    for work in works:
        for path, field in _set(work, head, ground):
            known, end = head.schema, after.schema.by_id(field.id)
            is_there = known is not None and known.by_id(field.id) is not None
            if end is None:
                continue  # it is dropped by the same migration
            if end.required and not is_there and end.initial_default is None:
                continue  # which is refused
            kind = "kept" if is_there else "null" if end.initial_default is None else "default"
            found[kind].append(after.schema.path_of(field.id) or path)
            of.append(work)
    if not of:
        return None
    paths = {kind: tuple(dict.fromkeys(of_kind)) for kind, of_kind in found.items()}
    return _Left(name, head, tuple(dict.fromkeys(of)), paths["null"], paths["default"], paths["kept"])


def _set(work: RowWork, head: Head, ground: Ground) -> Iterator[tuple[Path, Field]]:
    """The fields that a step sets, as they are called then; without those that have nothing to come from."""
    if isinstance(work, Retype):
        if head.schema is not None and head.schema.by_id(work.field_id) is None:
            return  # a branch from before the column: it read null there all along
        paths: tuple[Path, ...] = (work.temporary,)
    else:
        paths = work.paths if isinstance(work, Backfill) else ()
    for path in paths:
        field = ground.table.schema.find(path)
        if field is not None:
            yield path, field


def _way(left: _Left, ground: Ground, there: Table, after: Table, catalog: str) -> str:
    """What brings the values over to a branch."""
    table = ground.table.name
    branch = branch_sql(catalog, table, left.name)
    goes = any(after.schema.by_id(field.id) is None for field in there.schema.fields)
    if goes or any(isinstance(work, Retype) for work in left.works):
        way = _overwrite(left, ground, after, catalog)
    else:
        way = "; ".join(s.text for work in left.works for s in work.statements(branch) if isinstance(s, Sql))
    moved = move_branch_sql(catalog, table, left.name)
    return f"{way}; or make it what main is: {moved}" if left.head.is_behind else way


def _overwrite(left: _Left, ground: Ground, after: Table, catalog: str) -> str:
    """The branch written anew out of its rows as they were: what the values come from is not in the table's
    schema any more, and still in that of the snapshot."""
    table, branch = table_sql(catalog, ground.table.name), branch_sql(catalog, ground.table.name, left.name)
    source = f"{table} VERSION AS OF {left.head.snapshot.id}"
    values = _values(left.works)
    if values is None or left.head.schema is None:
        return f"INSERT OVERWRITE {branch} with what comes of SELECT * FROM {source}"
    between = {field.id: field.name for field in ground.table.schema.fields}
    fields = left.head.schema.fields
    renamed = [(f.name, between[f.id]) for f in fields if between.get(f.id, f.name) != f.name]
    if renamed:
        given = ", ".join(f"{quote(old)} AS {quote(new)}" for old, new in renamed)
        source = f"(SELECT * EXCEPT ({_listed([old for old, _ in renamed])}), {given} FROM {source})"
    stay = {field.id for field in after.schema.fields}
    names = [between.get(f.id, f.name) for f in fields if f.id not in stay or between.get(f.id) in values]
    but = f" EXCEPT ({_listed(names)})" if names else ""
    given = ", ".join(f"{value} AS {quote(name)}" for name, value in values.items())
    return f"INSERT OVERWRITE {branch} BY NAME SELECT *{but}, {given} FROM {source}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quote, names))


def _values(works: Sequence[RowWork]) -> dict[str, str] | None:
    """The columns that are set, each with its expression; ``None`` where one ``SELECT`` cannot say it."""
    values: dict[str, str] = {}
    for work in works:
        if isinstance(work, Retype):
            pairs: tuple[tuple[Path, str], ...] = ((work.path, work.using),)
        else:
            assert isinstance(work, Backfill), "nothing else sets columns"
            if work.where is not None:
                return None
            pairs = tuple(zip(work.paths, (value for _, value in work.sets), strict=True))
        for path, value in pairs:
            if len(path) > 1 or path[0] in values:
                return None
            values[path[0]] = " ".join(value.split())
    return values
