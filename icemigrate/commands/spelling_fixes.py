"""``check --fix``: corrects words of migration files that have one correction, and leaves the rest as it is.

They are misspelled keys and types, keys of other tools whose value may stay, and terms of a partitioning or
an order in the form of another tool.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from icemigrate.commands.user_files import write_file
from icemigrate.diagnostics import Diagnostic, FilePosition, Replacement, Severity
from icemigrate.frozen import Frozen
from icemigrate.project.project_values import Project
from icemigrate.system.file_reads import open_inside

_QUOTES = ("'", '"')


class SpellingFix(Frozen):
    """One correction, and the position of the diagnostic that has it."""

    replacement: Replacement
    place: FilePosition

    def note(self) -> Diagnostic:
        """What was done."""
        message = f"replaced `{self.replacement.old}` with `{self.replacement.new}`"
        return Diagnostic("spelling-fixed", message, self.place, None, Severity.NOTE)


def find_spelling_fixes(found: Iterable[Diagnostic]) -> tuple[SpellingFix, ...]:
    """The corrections of diagnostics that have one."""
    return tuple(
        dict.fromkeys(
            SpellingFix(one.replacement, one.place)
            for one in found
            if one.replacement is not None and one.place is not None
        )
    )


def apply_spelling_fixes(project: Project, fixes: Iterable[SpellingFix]) -> tuple[Diagnostic, ...]:
    """Write the corrections; comments and layout stay.

    :returns: a note for each word that was replaced.
    :raises IcemigrateError: a file cannot be written.
    """
    by_file: dict[str, list[SpellingFix]] = {}
    for fix in fixes:
        by_file.setdefault(Path(fix.place.file).name, []).append(fix)
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
        for fix in sorted(of_file, key=lambda one: one.place.column, reverse=True):
            if (line := _replaced(lines, fix)) is not None:
                lines[fix.place.line - 1] = line
                done.append(fix)
        if done:
            write_file(path, "\n".join(lines), project.top)
            notes += [fix.note() for fix in reversed(done)]
    return tuple(notes)


def _replaced(lines: list[str], fix: SpellingFix) -> str | None:
    """The line with the correction; ``None`` where the old text is not behind the position."""
    if fix.place.line > len(lines):
        return None
    line, start = lines[fix.place.line - 1], fix.place.column - 1
    start += fix.replacement.offset + (line[start : start + 1] in _QUOTES)
    if not line.startswith(fix.replacement.old, start):
        return None  # the value has escapes, or begins in another line
    return line[:start] + fix.replacement.new + line[start + len(fix.replacement.old) :]
