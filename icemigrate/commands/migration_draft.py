"""Migrations that a command writes: as the next file, with the consents that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from icemigrate.commands.next_migration_file import next_name, schema_header, write_next_file
from icemigrate.commands.plan_from_empty import OfflinePlan, plan_from_empty
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import Mistakes
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.version_number import Version
from icemigrate.files.write.migration_entries import format_migration_file
from icemigrate.frozen import Frozen, replace
from icemigrate.planning.plan import MigrationPlan
from icemigrate.project.project_values import Project
from icemigrate.results.command_results import errors_besides_consents


class MigrationDraft(Frozen):
    """A migration file that a command writes.

    :param entries: of its tables.
    :param title: its description.
    :param words: the words of the file's name.
    :param because: the reason of its consents, if it needs any.
    :param namespaces: that it declares.
    :param comments: lines of a comment at its beginning.
    """

    entries: Sequence[Mapping[str, Any]]
    title: str
    words: str
    because: str | None = None
    namespaces: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()

    def text(self, allow: Iterable[str], header: str | None = None) -> str:
        """The file, with these consents."""
        allowed = list(allow)
        because = self.because if allowed else None
        return format_migration_file(
            self.entries,
            description=self.title,
            allow=allowed,
            because=because,
            namespaces=self.namespaces,
            header=header,
            comments=self.comments,
        )


def write_migration(
    project: Project,
    behind: Sequence[MigrationFile],
    written: MigrationDraft,
    refusal: str,
    *,
    begins_lock: bool = False,
) -> str:
    """Write the next file.

    :param behind: the files before it; it is planned on their declared state.
    :param refusal: the beginning of the message for an error in the new file.
    :param begins_lock: whether to create a missing lock file.
    :returns: its path, as it is shown.
    :raises UsageError: the file exists.
    :raises Mistakes: the migration would not be valid.
    :raises IcemigrateError: the file cannot be written.
    """
    name = next_name(project, written.words, (f.version for f in behind))
    allow = required_consents(project, behind, name, written, refusal)
    return write_next_file(
        project, name, written.text(allow, schema_header(project)), begins_lock=begins_lock
    )


def required_consents(
    project: Project, behind: Sequence[MigrationFile], name: str, written: MigrationDraft, refusal: str
) -> tuple[str, ...]:
    """The ``allow`` that a new file needs: it is planned as ``check`` would plan it.

    :raises Mistakes: the migration would not be valid.
    """
    return consents_of(plan_draft(project, behind, name, written, refusal))


def consents_of(planned: OfflinePlan) -> tuple[str, ...]:
    """The ``allow`` that the last of the planned files needs."""
    plan: MigrationPlan = planned.plans[-1]
    return tuple(dict.fromkeys(f"{h.kind.value} {h.scope}" for h in plan.unconsented))


def plan_draft(
    project: Project, behind: Sequence[MigrationFile], name: str, written: MigrationDraft, refusal: str
) -> OfflinePlan:
    """The files and the new one, planned as ``check`` would plan them.

    :param name: of the new file.
    :raises Mistakes: the migration would not be valid.
    """
    version = Version.parse(name.partition("_")[0])
    read = read_migration(SourceText(name, written.text(())), version, name, project.lists)
    if read.migration is None:
        raise Mistakes(tuple(_with_refusal(d, refusal) for d in read.diagnostics))
    rehearsed = plan_from_empty(project, (*behind, read.migration))
    wrong = errors_besides_consents(rehearsed.diagnostics)
    here = tuple(_with_refusal(d, refusal) for d in wrong if d.place is not None and d.place.file == name)
    if here:
        raise Mistakes(here)
    return rehearsed


def _with_refusal(found: Diagnostic, refusal: str) -> Diagnostic:
    """An error in a file that was not written, without a position."""
    return replace(found, place=None, message=f"{refusal}: {found.message}")
