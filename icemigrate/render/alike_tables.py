"""What outputs show about tables, such as those of tenants: equal blocks once, with the other names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from icemigrate.diagnostics import format_count
from icemigrate.frozen import Frozen
from icemigrate.planning.plan import TablePlan

FEWEST_ALIKE = 4
"""Fewer tables are shown one by one."""
FEWEST_ROWS = 20
"""Fewer rows of a report are shown one by one."""
_SHOWN_NAMES = 3


class TableLines(Frozen):
    """What an output shows about one table.

    :param names: its names; lists of equal tables show the first one.
    :param lines: the text.
    :param compared: the text that equal tables share, without times or counts; by default the lines.
    """

    names: tuple[str, ...]
    lines: tuple[str, ...]
    compared: tuple[str, ...] | None = None


class AlikeTables(Frozen):
    """Tables whose texts differ in names only.

    :param lines: the text of the first one.
    :param others: names of the others, in order.
    :param members: positions of all of them in what was grouped.
    """

    lines: tuple[str, ...]
    others: tuple[str, ...] = ()
    members: tuple[int, ...] = ()

    def others_text(self, quote: Callable[[str], str] = str) -> str | None:
        """The number of the others and some of their names; ``None`` where there are none.

        :param quote: writes a name.
        """
        return others_text(self.others, "other table", quote) if self.others else None


def others_text(names: Sequence[str], noun: str, quote: Callable[[str], str] = str) -> str:
    """``also 199 other tables: a, b, c, …, z``."""
    return f"also {format_count(len(names), noun)}: {', '.join(some_names(names, quote))}"


def some_names(
    names: Sequence[str], quote: Callable[[str], str] = str, *, shows_all: bool = False
) -> list[str]:
    """All of a few names; of many, the first ones and the last one.

    :param shows_all: whether each name is shown.
    """
    many = len(names) > _SHOWN_NAMES + 1 and not shows_all
    return [*map(quote, names[:_SHOWN_NAMES]), "…", quote(names[-1])] if many else [*map(quote, names)]


def planned_tables(
    tables: Iterable[TablePlan], lines_of: Callable[[TablePlan], Iterator[str]]
) -> Iterator[TableLines]:
    """The plans of tables as :func:`alike_tables` takes them."""
    for table in tables:
        names = (table.declared, table.name, table.formerly)
        yield TableLines(
            tuple(dict.fromkeys(str(name) for name in names if name is not None)), tuple(lines_of(table))
        )


def alike_tables(
    tables: Iterable[TableLines],
    escape: Callable[[str], str] = str,
    *,
    shows_all: bool = False,
    values: Iterable[str] = (),
) -> Iterator[AlikeTables]:
    """Group tables, each group in the position of its first table.

    :param escape: writes a name as the text has it.
    :param shows_all: whether each table is shown.
    :param values: of the lists of templates: texts may have the one that is in the name of their table.
    """
    tables = tuple(tables)
    if shows_all or len(tables) < FEWEST_ALIKE:
        yield from (AlikeTables(table.lines, (), (at,)) for at, table in enumerate(tables))
        return
    longest_first = sorted(values, key=len, reverse=True)
    groups: dict[str, list[int]] = {}
    for at, table in enumerate(tables):
        groups.setdefault(_without_names(table, escape, longest_first), []).append(at)
    single = ((at,) for group in groups.values() if len(group) < FEWEST_ALIKE for at in group)
    shown = (*single, *(tuple(group) for group in groups.values() if len(group) >= FEWEST_ALIKE))
    for members in sorted(shown):
        others = tuple(tables[at].names[0] for at in members[1:])
        yield AlikeTables(tables[members[0]].lines, others, members)


def _without_names(table: TableLines, escape: Callable[[str], str], values: Sequence[str]) -> str:
    """The text of a table without its own names."""
    text = "\n".join(table.lines if table.compared is None else table.compared)
    first = table.names[0]
    names = sorted({*table.names, *(name.rpartition(".")[2] for name in table.names)}, key=len, reverse=True)
    if (value := next((value for value in values if value in first), None)) is not None:
        names.append(value)
    for name in names:
        text = text.replace(name, "\0").replace(escape(name), "\0")
    return text


def alike_lines(
    named: Iterable[tuple[str, str]], *, shows_all: bool = False, escape: Callable[[str], str] = str
) -> Iterator[str]:
    """Lines about tables; of equal ones the first, with the names of the others in the same line.

    :param named: the name of a table, and its line.
    :param escape: writes a name as the line has it.
    """
    tables = [TableLines((name,), (line,), (without_ids(line),)) for name, line in named]
    for group in alike_tables(tables, escape, shows_all=shows_all):
        others = group.others_text(escape)
        yield group.lines[0] if others is None else f"{group.lines[0]} ({others})"


_ID = re.compile(r"\b(?:[0-9]{12,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b")


def without_ids(text: str) -> str:
    """A text without ids of snapshots and uuids of tables, in which equal tables differ."""
    return _ID.sub("\0", text)


_NUMBER = re.compile(r"(?<![\w:.-])[0-9][0-9,]*(?:\.[0-9]+)?(?![\w:-])")
"""A count or a size, no part of a time, an id or a name."""


def without_numbers(text: str) -> str:
    """A text without its numbers, for :func:`number_ranges`."""
    return _NUMBER.sub("\0", text)


def number_ranges(texts: Sequence[str]) -> str:
    """One text for those that differ in numbers only: ``expire 2 to 5 of 9 snapshots``.

    The first text where they differ in more.
    """
    numbers = [_NUMBER.findall(text) for text in texts]
    if len({len(row) for row in numbers}) > 1:
        return texts[0]
    columns = zip(*numbers, strict=True)
    ends = ((min(column, key=_as_number), max(column, key=_as_number)) for column in columns)
    return _NUMBER.sub(lambda _: " to ".join(dict.fromkeys(next(ends))), texts[0])


def _as_number(written: str) -> float:
    return float(written.replace(",", ""))


def alike_rows(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The rows of a report; of many that differ in their first cell only, the first one with their number."""
    counts = Counter(row[1:] for row in rows)
    shown, found = set[tuple[str, ...]](), list[tuple[str, ...]]()
    for row in rows:
        name, *cells = row
        key = tuple(cells)
        if counts[key] < FEWEST_ROWS:
            found.append(row)
        elif key not in shown:
            shown.add(key)
            found.append((f"{name} and {counts[key] - 1:,} more", *cells))
    return found
