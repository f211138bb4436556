"""``check --fix``: corrects misspelled keys and types of migration files, and keys of other tools whose value
may stay, and leaves the rest as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from icemigrate.commands.user_files import write_file
from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.frozen import Frozen
from icemigrate.project.project_values import Project
from icemigrate.system.file_reads import open_inside

_WRONG_KEY = re.compile(r"`([^`]+)` is not a key of .*", re.DOTALL)
_WRONG_TYPE = re.compile(r".*unknown type `(\w+)`.*", re.DOTALL)
_WRONG_WORDS = {"unknown-key": _WRONG_KEY, "bad-type": _WRONG_TYPE}
"""By the code of a diagnostic, where its message has the misspelled word."""
_ONE_SUGGESTION = re.compile(r"did you mean `([A-Za-z0-9_]+)`\?")
_SAME_VALUE = re.compile(r"write `([a-z_]+): (.+)`", re.DOTALL)
"""The hint about a key of another tool, whose value may stay."""


class SpellingFix(Frozen):
    """One misspelled word.

    :param right: the word that the diagnostic suggests.
    :param value: the value that a key must have for the fix; empty where any is right.
    """

    found: Diagnostic
    wrong: str
    right: str
    value: str = ""

    def note(self) -> Diagnostic:
        """What was done."""
        message = f"replaced `{self.wrong}` with `{self.right}`"
        return Diagnostic("spelling-fixed", message, self.found.place, None, Severity.NOTE)


def find_spelling_fixes(found: Iterable[Diagnostic]) -> tuple[SpellingFix, ...]:
    """The errors with exactly one suggestion for one word."""
    fixes = []
    for diagnostic in found:
        pattern = _WRONG_WORDS.get(diagnostic.code)
        wrong = None if pattern is None else pattern.fullmatch(diagnostic.message)
        hint = diagnostic.hint or ""
        right = _ONE_SUGGESTION.fullmatch(hint) or (
            _SAME_VALUE.fullmatch(hint) if diagnostic.code == "unknown-key" else None
        )
        if wrong is not None and right is not None and diagnostic.place is not None:
            fixes.append(SpellingFix(diagnostic, wrong[1], *right.groups()))
    return tuple(dict.fromkeys(fixes))


def apply_spelling_fixes(project: Project, fixes: Iterable[SpellingFix]) -> tuple[Diagnostic, ...]:
    """Write right what is misspelled; comments and layout stay.

    :returns: a note for each word that was replaced.
    :raises IcemigrateError: a file cannot be written.
    """
    by_file: dict[str, list[SpellingFix]] = {}
    for fix in fixes:
        if fix.found.place is not None:
            by_file.setdefault(Path(fix.found.place.file).name, []).append(fix)
    notes: list[Diagnostic] = []
    for name, of_file in by_file.items():
        path = project.migrations_dir / name
        try:
            with open_inside(path, project.top) as stream:
                text = stream.read().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            continue  # reading it reports why
        lines, done = text.split("\n"), list[SpellingFix]()
        # From the end of each line, so that the columns before it stay.
        for fix in sorted(of_file, key=_column, reverse=True):
            if (line := _replaced(lines, fix)) is not None:
                assert fix.found.place is not None
                lines[fix.found.place.line - 1] = line
                done.append(fix)
        if done:
            write_file(path, "\n".join(lines), project.top)
            notes += [fix.note() for fix in reversed(done)]
    return tuple(notes)


def _column(fix: SpellingFix) -> int:
    return 0 if fix.found.place is None else fix.found.place.column


def _replaced(lines: list[str], fix: SpellingFix) -> str | None:
    """The line with the right word; ``None`` where the wrong one is not at its position."""
    place = fix.found.place
    if place is None or place.line > len(lines):
        return None
    line, start = lines[place.line - 1], place.column - 1
    word = rf"(?<!\w){re.escape(fix.wrong)}(?!\w)"
    found = re.compile(rf"[\"']?{word}" if fix.found.code == "unknown-key" else rf".*?{word}").match(
        line, start
    )
    if found is None:
        return None
    rest = line[found.end() :].lstrip("\"'").lstrip(": ")
    if not rest.startswith(fix.value):
        return None  # the hint has another value, or another form of it
    return line[: found.end() - len(fix.wrong)] + fix.right + line[found.end() :]
