"""``check``: every file and every step between versions, planned against a catalog that begins empty."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.app.findings import is_of_rule
from icemigrate.app.git_base import GitBase
from icemigrate.app.lock_file import fix_lock, lock_findings
from icemigrate.app.offline import Rehearsed, rehearse
from icemigrate.app.older import Older, without_older
from icemigrate.app.opening import load_files
from icemigrate.declare.files import Loaded
from icemigrate.declare.replacing import replaced_by, squash_mistakes
from icemigrate.diagnostics import Diagnostic, Severity, has_errors, sort_key
from icemigrate.errors import GitError
from icemigrate.frozen import replace
from icemigrate.model.collecting import collector_at_rest
from icemigrate.project.values import Project
from icemigrate.results import CheckResult


@collector_at_rest()
def check(
    project: Project, base: GitBase | None = None, *, fix: bool = False, leaves_older: bool = False
) -> CheckResult:
    """Check every file and every step between versions; reads the files alone.

    Steps are checked up to the first file that has a mistake of its own.

    :param base: what the change under review is compared with, so that only what it adds is told.
    :param fix: write the lock file as the files are now.
    :param leaves_older: leave warnings and notes out whose files are on the main branch already.
    :raises GitError: Git cannot tell what the base is that the user named.
    :raises IcemigrateError: the folder cannot be read, or the lock file not be written.
    """
    loaded = load_files(project)
    judged = _judge(project, loaded)
    are_sound = not has_errors(d for d in judged.diagnostics if not is_of_rule(d))
    of_lock = fix_lock(project, loaded, are_sound=are_sound) if fix else None
    told: Sequence[Diagnostic]
    told = (*judged.diagnostics, *lock_findings(project, loaded), *((of_lock,) if of_lock else ()))
    ref, new = None, None
    if base is not None:
        told, ref, new = _compared(project, base, loaded, told)
    if project.impact:
        from icemigrate.app.impact import sql_findings

        told = (*told, *sql_findings(project, judged, new))
    older = Older(tuple(dict.fromkeys(told)))
    if leaves_older:
        older = without_older(project, older.told)
    return CheckResult(
        project=project.name,
        migrations=len(loaded.migrations) + len(loaded.broken),
        tables=len(judged.state.tables),
        diagnostics=tuple(sorted(older.told, key=sort_key)),
        base=ref,
        older=older.count,
        older_base=older.base,
    )


def _compared(
    project: Project, base: GitBase, loaded: Loaded, found: Sequence[Diagnostic]
) -> tuple[tuple[Diagnostic, ...], str | None, frozenset[str] | None]:
    """What a change adds, to what, and by which migrations.

    All that was found, where CI speaks of what its clone does not have.
    """
    from icemigrate.app.reviewing import reviewed

    try:
        review = reviewed(project, base, loaded, found, _judge_with_lock)
        return review.told, base.ref, review.new
    except GitError as error:
        if base.is_named:
            raise
        message = f"all files are told of, not only those of this change: {error.message}"
        return (*found, Diagnostic("no-git-base", message, None, error.hint, Severity.WARNING)), None, None


def _judge_with_lock(project: Project, loaded: Loaded) -> tuple[Diagnostic, ...]:
    """What is found in files, and what the lock file on disk says of them."""
    return (*_judge(project, loaded).diagnostics, *lock_findings(project, loaded))


def _judge(project: Project, loaded: Loaded) -> Rehearsed:
    """All files planned, with everything that is found in them and in their steps."""
    # Other commands plan files too, and none of them needs the rules.
    from icemigrate.app.ruling import rule_findings

    # What comes after a file that cannot be read would be blamed for what is missing.
    telling = [f for f in loaded.migrations if not loaded.broken or f.version < loaded.broken[0]]
    squashed = replaced_by(loaded.migrations)
    rehearsed = rehearse(project, [f for f in telling if f.version.number not in squashed])
    found = (*loaded.diagnostics, *squash_mistakes(loaded.migrations), *rehearsed.diagnostics)
    of_rules = rule_findings(project.rules, rehearsed.folding, rehearsed.plans, found)
    return replace(rehearsed, diagnostics=tuple(dict.fromkeys((*found, *of_rules))))
