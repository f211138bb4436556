"""Migrations that a command writes: as the next file, with the consents that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from icemigrate.app.next_file import header, next_name, put
from icemigrate.app.offline import rehearse
from icemigrate.declare.author import dump
from icemigrate.declare.migration import MigrationFile
from icemigrate.declare.reading import read_migration
from icemigrate.declare.source import Source
from icemigrate.declare.version import Version
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import Mistakes
from icemigrate.frozen import Frozen, replace
from icemigrate.plan import MigrationPlan
from icemigrate.project.values import Project
from icemigrate.results import errors_of


class Written(Frozen):
    """A migration that is written by us.

    :param entries: of its tables.
    :param title: its description.
    :param words: what the file's name is made of.
    :param because: why its consents are given, where it needs any.
    """

    entries: Sequence[Mapping[str, Any]]
    title: str
    words: str
    because: str | None = None

    def text(self, allow: Iterable[str], header: str | None = None) -> str:
        """The file, with these consents."""
        allowed = list(allow)
        because = self.because if allowed else None
        return dump(self.entries, description=self.title, allow=allowed, because=because, header=header)


def write_migration(
    project: Project,
    behind: Sequence[MigrationFile],
    written: Written,
    refusal: str,
    *,
    begins_lock: bool = False,
) -> str:
    """Write the next file.

    :param behind: the files that it is to stand behind; it is planned on what they declare.
    :param refusal: what is said before a mistake that it would make.
    :param begins_lock: whether a lock file is begun where there is none.
    :returns: its path, as it is shown.
    :raises UsageError: the file exists.
    :raises Mistakes: it holds something that no migration may do.
    :raises IcemigrateError: the file cannot be written.
    """
    name = next_name(project, written.words, (f.version for f in behind))
    allow = consents(project, behind, name, written, refusal)
    return put(project, name, written.text(allow, header(project)), begins_lock=begins_lock)


def consents(
    project: Project, behind: Sequence[MigrationFile], name: str, written: Written, refusal: str
) -> tuple[str, ...]:
    """The ``allow`` that a new file needs: it is planned as ``check`` would plan it.

    :raises Mistakes: it holds something that no migration may do.
    """
    version = Version.parse(name.partition("_")[0])
    read = read_migration(Source(name, written.text(())), version, name)
    if read.migration is None:
        raise Mistakes(tuple(_told(d, refusal) for d in read.diagnostics))
    rehearsed = rehearse(project, (*behind, read.migration))
    wrong = [d for d in errors_of(rehearsed.diagnostics) if d.code != "missing-allow"]
    here = tuple(_told(d, refusal) for d in wrong if d.place is not None and d.place.file == name)
    if here:
        raise Mistakes(here)
    plan: MigrationPlan = rehearsed.plans[-1]
    return tuple(dict.fromkeys(f"{h.kind.value} {h.scope}" for h in plan.unconsented))


def _told(found: Diagnostic, refusal: str) -> Diagnostic:
    """A mistake of a file that was not written: it has no place."""
    return replace(found, place=None, message=f"{refusal}: {found.message}")
