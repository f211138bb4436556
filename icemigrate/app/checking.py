"""``check``: every file and every step between versions, planned against a catalog that begins empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icemigrate.app.folding import Folding
from icemigrate.app.opening import load_files
from icemigrate.declare.files import collector_at_rest
from icemigrate.declare.migration import MigrationFile
from icemigrate.declare.replacing import replaced_by, squash_mistakes
from icemigrate.diagnostics import Diagnostic, sort_key
from icemigrate.model.sides import EMPTY_STATE, State
from icemigrate.plan import MigrationPlan
from icemigrate.plan_table import Surroundings
from icemigrate.planner import plan_migrations
from icemigrate.project.values import Project
from icemigrate.results import CheckResult

CATALOG_NAME = "catalog"
"""How the catalog is called in statements that nobody runs."""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """All files planned one after another on an empty catalog."""

    plans: tuple[MigrationPlan, ...]
    state: State
    diagnostics: tuple[Diagnostic, ...]


def check(project: Project) -> CheckResult:
    """Check every file and every step between versions; reads the files alone.

    Steps are checked up to the first file that has a mistake of its own.

    :raises IcemigrateError: the folder cannot be read.
    """
    loaded = load_files(project)
    # What comes after a file that cannot be read would be blamed for what is missing.
    telling = [f for f in loaded.migrations if not loaded.broken or f.version < loaded.broken[0]]
    squashed = replaced_by(loaded.migrations)
    rehearsed = rehearse(project, [f for f in telling if f.version.number not in squashed])
    found = dict.fromkeys((*loaded.diagnostics, *squash_mistakes(loaded.migrations), *rehearsed.diagnostics))
    return CheckResult(
        project=project.name,
        migrations=len(loaded.migrations) + len(loaded.broken),
        tables=len(rehearsed.state.tables),
        diagnostics=tuple(sorted(found, key=sort_key)),
    )


def rehearse(
    project: Project, files: Sequence[MigrationFile], *, are_statements_read: bool = False
) -> Rehearsed:
    """Plan files one after another on an empty catalog.

    :param are_statements_read: whether the plans need their statements, which take time.
    """
    folding = Folding()
    with collector_at_rest():
        planned = plan_migrations(
            folding.pending(files),
            EMPTY_STATE,
            {},
            Surroundings(project.name, CATALOG_NAME, are_statements_read=are_statements_read),
        )
    return Rehearsed(planned.migrations, planned.state, folding.diagnostics(planned.migrations))
