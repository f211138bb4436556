"""Tables with the same plan, such as those of tenants: shown once, with the names of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from icemigrate.diagnostics import format_count
from icemigrate.frozen import Frozen
from icemigrate.planning.plan import TablePlan

FEWEST_ALIKE = 4
"""Fewer tables are shown one by one."""
FEWEST_ROWS = 20
"""Fewer rows of a report are shown one by one."""
_SHOWN_NAMES = 3


class AlikeTables(Frozen):
    """Tables whose plans differ in names only.

    :param lines: the text of the first one.
    :param others: declared names of the others, in order.
    """

    lines: tuple[str, ...]
    others: tuple[str, ...] = ()

    def others_text(self, quote: Callable[[str], str] = str) -> str | None:
        """The number of the others and some of their names; ``None`` where there are none.

        :param quote: writes a name.
        """
        if not self.others:
            return None
        names = [quote(name) for name in self.others]
        if len(names) > _SHOWN_NAMES + 1:
            names = [*names[:_SHOWN_NAMES], "…", names[-1]]
        return f"also {format_count(len(self.others), 'other table')}: {', '.join(names)}"


def alike_tables(
    tables: Sequence[TablePlan],
    lines_of: Callable[[TablePlan], Iterator[str]],
    escape: Callable[[str], str] = str,
) -> Iterator[AlikeTables]:
    """Group tables, each group in the position of its first table.

    :param lines_of: the text of a table.
    :param escape: writes a name as the text has it.
    """
    if len(tables) < FEWEST_ALIKE:
        yield from (AlikeTables(tuple(lines_of(table))) for table in tables)
        return
    texts = [tuple(lines_of(table)) for table in tables]
    keys = [_without_names(table, lines, escape) for table, lines in zip(tables, texts, strict=True)]
    counts, shown = Counter(keys), set[str]()
    others: dict[str, list[str]] = {}
    for table, key in zip(tables, keys, strict=True):
        others.setdefault(key, []).append(str(table.declared))
    for lines, key in zip(texts, keys, strict=True):
        if counts[key] < FEWEST_ALIKE:
            yield AlikeTables(lines)
        elif key not in shown:
            shown.add(key)
            yield AlikeTables(lines, tuple(others[key][1:]))


def _without_names(table: TablePlan, lines: Sequence[str], escape: Callable[[str], str]) -> str:
    """The text of a table without its own names."""
    text = "\n".join(lines)
    names = {str(name) for name in (table.name, table.declared, table.formerly) if name is not None}
    for name in (*sorted(names, key=len, reverse=True), table.name.name):
        text = text.replace(name, "\0").replace(escape(name), "\0")
    return text


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
