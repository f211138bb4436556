"""``check``: every file and every step between versions, planned against a catalog that begins empty."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.commands.check_unchanged_files import UnchangedFileFilter, without_unchanged_files
from icemigrate.commands.comparison_base import GitBase
from icemigrate.commands.list_templates import placeholder_notes
from icemigrate.commands.lock_file_checks import lock_file_diagnostics, rewrite_lock_file
from icemigrate.commands.plan_from_empty import OfflinePlan, plan_from_empty
from icemigrate.commands.project_files import load_files, raise_if_errors
from icemigrate.commands.spelling_fixes import apply_spelling_fixes, find_spelling_fixes
from icemigrate.commands.template_names import name_collisions
from icemigrate.diagnostics import Diagnostic, Severity, has_errors, sort_key
from icemigrate.errors import GitError
from icemigrate.files.lock_file import FILE_NAME, STALE
from icemigrate.files.migration_folder import TESTS_FOLDER, LoadedMigrations
from icemigrate.files.parse.source_text import shown_path
from icemigrate.files.read.squashed_files import replaced_by, squash_mistakes
from icemigrate.frozen import replace
from icemigrate.planning.plan import MigrationPlan
from icemigrate.planning.replay import ReplayedFile, is_rule_finding
from icemigrate.project.project_values import Project
from icemigrate.results.command_results import CheckResult
from icemigrate.system.process import pause_garbage_collection


@pause_garbage_collection()
def check(
    project: Project,
    base: GitBase | None = None,
    *,
    fix: bool = False,
    leaves_older: bool = False,
    compares_versions: bool = False,
) -> CheckResult:
    """Check every file and every step between versions; reads only files.

    Steps are checked up to the first file with an error.

    :param base: the base of a comparison, so that only new findings are reported.
    :param fix: correct misspelled keys and types, and write the lock file for the current files.
    :param leaves_older: leave out warnings and notes about files that the main branch has.
    :param compares_versions: without a base, report versions that the main branch has got since.
    :raises GitError: Git cannot find the base that the user named.
    :raises IcemigrateError: the folder cannot be read, or the lock file cannot be written.
    """
    loaded = load_files(project, target=None if base is None else base.tip)
    judged = _validate_files(project, loaded)
    fixed: tuple[Diagnostic, ...] = ()
    while fix and len(fixed) < _MOST_FIXES and (fixes := find_spelling_fixes(judged.diagnostics)):
        notes = apply_spelling_fixes(project, fixes)
        if not notes:
            break
        # A misspelled key can hide other errors of its entry.
        fixed += notes
        loaded = load_files(project, target=None if base is None else base.tip)
        judged = _validate_files(project, loaded)
    are_sound = not has_errors(d for d in judged.diagnostics if not is_rule_finding(d))
    of_lock = rewrite_lock_file(project, loaded, are_sound=are_sound) if fix else None
    # While a file has another error, `--fix` leaves the lock file, and its old lines are no error.
    lock_errors = (d for d in lock_file_diagnostics(project, loaded) if of_lock is None or d.code != STALE)
    reported: Sequence[Diagnostic]
    reported = (
        *judged.diagnostics,
        *lock_errors,
        *fixed,
        *((of_lock,) if of_lock else ()),
    )
    ref, new = None, None
    if base is not None:
        reported, ref, new = _compared(project, base, loaded, reported)
    elif compares_versions:
        from icemigrate.commands.change_review import versions_taken_on_main

        reported = (*reported, *versions_taken_on_main(project, loaded))
    if project.impact:
        from icemigrate.commands.sql_findings import sql_findings

        reported = (*reported, *sql_findings(project, judged, new))
    reported = (*reported, *_of_tests(project, loaded, are_sound=are_sound))
    older = UnchangedFileFilter(tuple(dict.fromkeys(reported)))
    if leaves_older:
        older = without_unchanged_files(project, older.reported)
    return CheckResult(
        project=project.name,
        migrations=len(loaded.migrations) + len(loaded.broken),
        tables=len(judged.state.tables),
        diagnostics=tuple(sorted(older.reported, key=_shown_order)),
        base=ref,
        older=older.count,
        older_base=older.base,
    )


def _of_tests(project: Project, loaded: LoadedMigrations, *, are_sound: bool) -> tuple[Diagnostic, ...]:
    """What is wrong with the files of tests; their tables are checked where all migration files are valid."""
    if not (project.migrations_dir / TESTS_FOLDER).is_dir():
        return ()
    from icemigrate.commands.test_files import diagnostics_of_tests

    squashed = replaced_by(loaded.migrations)
    files = [file for file in loaded.migrations if file.version.number not in squashed]
    return diagnostics_of_tests(project, files if are_sound else None)


def _shown_order(found: Diagnostic) -> tuple[bool, tuple[str, int, int, str]]:
    """The order of places, but the lock file's warnings of files in progress last."""
    return (found.code == STALE and found.severity is not Severity.ERROR, sort_key(found))


_MOST_FIXES = 10_000
"""Ends the search for misspelled words in any case."""


def lock(project: Project) -> str:
    """Write the lock file.

    :returns: the path of the lock file, as the user would type it.
    :raises Mistakes: a file has an error that is not a rule's finding; nothing was written.
    :raises IcemigrateError: the folder cannot be read, or the lock file not be written.
    """
    loaded = load_files(project)
    found = tuple(d for d in _validate_files(project, loaded).diagnostics if not is_rule_finding(d))
    raise_if_errors(found)
    rewrite_lock_file(project, loaded, are_sound=True)
    return shown_path(project.migrations_dir / FILE_NAME)


def _compared(
    project: Project, base: GitBase, loaded: LoadedMigrations, found: Sequence[Diagnostic]
) -> tuple[tuple[Diagnostic, ...], str | None, frozenset[str] | None]:
    """The new findings, the base, and the compared migrations.

    All findings, where CI names a base that its clone does not have.
    """
    from icemigrate.commands.change_review import review_change

    try:
        review = review_change(project, base, loaded, found, _validate_with_lock_file)
        return review.reported, base.ref, review.new
    except GitError as error:
        if base.is_named:
            raise
        message = f"showing findings of all files, not only of this change: {error.message}"
        return (*found, Diagnostic("no-git-base", message, None, error.hint, Severity.WARNING)), None, None


def _validate_with_lock_file(project: Project, loaded: LoadedMigrations) -> tuple[Diagnostic, ...]:
    """The findings of files and of the lock file on disk."""
    return (*_validate_files(project, loaded).diagnostics, *lock_file_diagnostics(project, loaded))


def _validate_files(project: Project, loaded: LoadedMigrations) -> OfflinePlan:
    """All files planned, with all findings of them and of their steps."""
    # Other commands plan files too, and none of them needs the rules.
    from icemigrate.commands.rule_findings import enabled_rules, of_rules, rule_findings
    from icemigrate.project.tenant_tables import telemetry_kinds

    # Later files would get errors about tables that an unreadable file declares.
    reporting = [f for f in loaded.migrations if not loaded.broken or f.version < loaded.broken[0]]
    squashed = replaced_by(loaded.migrations)
    files = [f for f in reporting if f.version.number not in squashed]
    active, by_version = enabled_rules(project.rules), dict[str, tuple[Diagnostic, ...]]()
    kind_of = telemetry_kinds(project.pipeline)

    def look(source: ReplayedFile, plan: MigrationPlan) -> None:
        by_version[plan.version] = tuple(of_rules(active, source, plan, kind_of))

    # The search in SQL needs the tables of each plan.
    rehearsed = plan_from_empty(project, files, look=look, are_tables_stored=bool(project.impact))
    found = (
        *loaded.diagnostics,
        *squash_mistakes(loaded.migrations),
        *placeholder_notes(project, files),
        *(one.diagnostic(project) for one in name_collisions(project, files, {})),
        *rehearsed.diagnostics,
    )
    ruled = rule_findings(active, {f.version.text: f for f in files}, by_version, found)
    return replace(rehearsed, diagnostics=tuple(dict.fromkeys((*found, *ruled))))
