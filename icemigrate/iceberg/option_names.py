"""Names of columns in options and arguments of the command line, and the characters that separate them.

A name is written as it is, or in SQL's double quotes, or in backticks as in migration files; inside quotes no
character separates, and a doubled quote is one.  No other module splits names in options.
"""

from __future__ import annotations

import re

from icemigrate.iceberg.names import BadName, FieldPath

_QUOTED = re.compile(r'"((?:[^"]|"")+)"|`((?:[^`]|``)+)`')
_QUOTE = re.compile('["`]')


def parse_column_names(text: str) -> tuple[str, ...]:
    """Names of columns, separated by commas; a dot is part of a name.

    :raises BadName: a name is missing or has a quote inside, or a quote is not closed or has text after it.
    """
    return tuple(name for (name,) in _list(text, has_dots=False))


def parse_column_path(text: str) -> FieldPath:
    """The path of one column: a dot outside quotes leads into a struct.

    :raises BadName: as :func:`parse_column_names`.
    """
    path, _ = _path(text, 0, "", has_dots=True)
    return path


def parse_column_paths(text: str) -> tuple[FieldPath, ...]:
    """Paths of columns, separated by commas.

    :raises BadName: as :func:`parse_column_names`.
    """
    return tuple(_list(text, has_dots=True))


def parse_assignment(text: str) -> tuple[str, str | None]:
    """The column before the first `=` outside quotes, and the text after it.

    :returns: the text is ``None`` where there is no `=`.
    :raises BadName: as :func:`parse_column_names`.
    """
    (name,), end = _path(text, 0, "=", has_dots=False)
    return name, text[end + 1 :].strip() if end < len(text) else None


def parse_rename(text: str) -> tuple[FieldPath, FieldPath | None]:
    """The paths on both sides of `=`.

    :returns: the second is ``None`` where there is no `=`.
    :raises BadName: as :func:`parse_column_names`.
    """
    old, end = _path(text, 0, "=", has_dots=True)
    if end == len(text):
        return old, None
    new, end = _path(text, end + 1, "=", has_dots=True)
    if end < len(text):
        raise BadName(f"a second `=` in {_shown(text)}: quote the name that contains it", end)
    return old, new


def _list(text: str, *, has_dots: bool) -> list[FieldPath]:
    path, end = _path(text, 0, ",", has_dots=has_dots)
    found = [path]
    while end < len(text):
        path, end = _path(text, end + 1, ",", has_dots=has_dots)
        found.append(path)
    return found


def _path(text: str, start: int, separator: str, *, has_dots: bool) -> tuple[FieldPath, int]:
    """The names of a path, and where it ends: at the separator, or at the end of the text."""
    names: list[str] = []
    ends = separator + "." * has_dots
    at = _after_spaces(text, start)
    while True:
        if quoted := _QUOTED.match(text, at):
            name = quoted[0][1:-1].replace(quoted[0][0] * 2, quoted[0][0])
            at = _after_spaces(text, quoted.end())
            if at < len(text) and text[at] not in ends:
                raise BadName(f"text after a closing quote in {_shown(text)}: quote the whole name", at)
        else:
            end = next((n for n in range(at, len(text)) if text[n] in ends), len(text))
            name = text[at:end].rstrip()
            if quote := _QUOTE.search(name):
                raise _quote_problem(text, at + quote.start(), is_first=quote.start() == 0)
            at = end
        if not name:
            raise BadName(f"a name is missing in {_shown(text)}", at)
        names.append(name)
        if at == len(text) or text[at] != "." or not has_dots:
            return tuple(names), at
        at = _after_spaces(text, at + 1)


def _quote_problem(text: str, at: int, *, is_first: bool) -> BadName:
    what = f"the quote at character {at + 1} of {_shown(text)}"
    if text[at : at + 2] == text[at] * 2 != text[at + 1 : at + 3]:
        return BadName(f"{what} has no name before the closing one", at)
    if is_first:
        return BadName(f"{what} is not closed", at)
    other = "`" if text[at] == '"' else '"'
    return BadName(f"{what} is inside a name: write the whole name in {_KINDS[other]}", at)


_KINDS = {'"': "double quotes", "`": "backticks"}


def _after_spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _shown(text: str) -> str:
    return f'"{text}"' if "`" in text else f"`{text}`"
