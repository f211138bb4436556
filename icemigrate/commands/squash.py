"""``squash``: one file for all files up to a version; reads and writes only files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from icemigrate.commands.list_templates import require_written_values
from icemigrate.commands.lock_file_checks import update_lock_file
from icemigrate.commands.next_migration_file import schema_header
from icemigrate.commands.plan_from_empty import OfflinePlan, plan_from_empty
from icemigrate.commands.project_files import known_version, load_valid_files, raise_if_errors
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import IcemigrateError, Mistakes, UsageError, os_error_reason
from icemigrate.files.parse.source_text import SourceText, shown_path
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.read.squashed_files import checksums_digest, squash_mistakes
from icemigrate.files.replay.declared_differences import declared_differences
from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.files.version_number import Version
from icemigrate.files.write.entry_parts import with_pins
from icemigrate.files.write.migration_entries import creation_entry, format_migration_file
from icemigrate.files.write.scaffold import write_new
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.planning.plan import MISSING_CONSENT
from icemigrate.project.project_values import Project
from icemigrate.results.command_results import SquashResult, errors_of
from icemigrate.system.file_writes import remove_inside


def squash(project: Project, through: str) -> SquashResult:
    """Write the declared state at a version as one file, and remove the files that it replaces.

    The file has the version of the last of them.  Where all of them were applied it is only recorded, where
    none was it runs, and where some were it is refused.

    :param through: the last version.
    :raises UsageError: there is no such version, or nothing to squash.
    :raises Mistakes: files have errors, or a later file needs facts that the squash does not keep.
    :raises IcemigrateError: a file cannot be written or removed.
    """
    # A squash reduces a project whose files together exceed the limit.
    files = load_valid_files(project, is_expansion_limited=False)
    raise_if_errors(squash_mistakes(files))
    number = known_version(files, through, "--through")
    chosen = [f for f in files if f.version.number <= number]
    require_written_values(chosen, "squash", "squash through an earlier version")
    if len(chosen) < 2:
        raise UsageError(
            f"--through {through}: there is only one file up to this version, so nothing to squash"
        )
    _require_no_errors(_planned(project, files))
    try:
        name, text = _written(project, files, chosen)
    except Mistakes as error:
        raise _with_tried_hints(error, project, files, chosen) from error
    folder = project.migrations_dir
    (path,) = write_new(folder, {name: text}, project.top)
    for file in chosen:
        _remove(folder / Path(file.path).name, project.top)
    update_lock_file(project, [name], [Path(file.path).name for file in chosen])
    return SquashResult(project.name, shown_path(path), tuple(f.path for f in chosen))


def _written(
    project: Project, files: Sequence[MigrationFile], chosen: Sequence[MigrationFile]
) -> tuple[str, str]:
    """The name and the text of the new file, which is seen to lead where the old ones led."""
    last, first = chosen[-1].version, _first(chosen[0])
    name = f"{last}_squash_{first}_to_{last}.yaml"
    rehearsed = _planned(project, chosen)
    adopted = _adopted(chosen)
    tables = [rehearsed.state.tables[n] for n in sorted(rehearsed.state.tables)]
    entries = [
        with_pins(creation_entry(t), t) | {"adopt": True} if t.name in adopted else creation_entry(t)
        for t in tables
    ]
    _refuse_rows(chosen, adopted)
    inhabited = {n.namespace for n in rehearsed.state.tables}

    def text(allow: Iterable[str]) -> str:
        return format_migration_file(
            entries,
            description=f"Everything that {first} to {last} declared",
            allow=allow,
            namespaces=sorted(format_path(n) for n in rehearsed.state.namespaces - inhabited),
            header=schema_header(project),
            replaces=_replaces(first, chosen),
        )

    file = _read(name, last, text(()))
    later = [f for f in files if f.version > last]
    planned = _planned(project, [file, *later])
    _refuse_unfit(planned, later)
    _refuse_other(rehearsed.state, _planned(project, [file]).state, last)
    _refuse_other(_planned(project, files).state, planned.state, last)
    hazards = planned.plans[0].unconsented
    return name, text(dict.fromkeys(f"{h.kind.value} {h.scope}" for h in hazards))


MAX_TRIALS = 50
"""How many shorter squashes are tried.  Each trial plans all files."""


def _with_tried_hints(
    error: Mistakes, project: Project, files: Sequence[MigrationFile], chosen: Sequence[MigrationFile]
) -> Mistakes:
    """The refusal, with a hint that names only what planning has tried."""
    hint = f"nothing was written; {_plannable_squash(project, files, chosen) or 'keep these files'}"
    return Mistakes(tuple(replace(d, hint=hint) for d in error.diagnostics))


def _plannable_squash(
    project: Project, files: Sequence[MigrationFile], chosen: Sequence[MigrationFile]
) -> str | None:
    """The longest shorter squash that can be written."""
    for count in range(len(chosen) - 1, max(1, len(chosen) - 1 - MAX_TRIALS), -1):
        if _can_squash(project, files, chosen[:count]):
            return f"`icemigrate squash --through {chosen[count - 1].version}` can be written"
    return None


def _can_squash(project: Project, files: Sequence[MigrationFile], chosen: Sequence[MigrationFile]) -> bool:
    try:
        _written(project, files, chosen)
    except Mistakes:
        return False
    return True


def _first(file: MigrationFile) -> Version:
    """The first version of the range: a squash is squashed with its whole range."""
    return file.version if file.replaces is None else file.replaces.first


def _replaces(first: Version, chosen: Sequence[MigrationFile]) -> dict[str, Any]:
    return {
        "from": first.text,
        "to": chosen[-1].version.text,
        "digest": checksums_digest(f.checksum for f in chosen),
        "versions": {f.version.text: f.checksum for f in chosen},
    }


def _refuse_rows(files: Sequence[MigrationFile], adopted: set[TableName]) -> None:
    """Refuse to drop data steps on rows that may exist already.

    A table that the new file creates has no rows; one that it adopts may have those that were to be filled.

    :raises Mistakes: with the positions of the data steps.
    """
    raise_if_errors(
        tuple(
            Diagnostic(
                "squash-rows",
                f"`{entry.name or entry.match}` changes rows, and an adopted table can contain some",
                entry.place,
                "nothing was written; squash through an earlier version",
            )
            for file in files
            for entry in file.tables
            if (entry.retype or entry.backfill) and adopted
        )
    )


def _adopted(files: Sequence[MigrationFile]) -> set[TableName]:
    """Tables that a file adopts, under the names that they have in the end."""
    state, adopted = EMPTY_STATE, set[TableName]()
    for file in files:
        replayed = replay_migration(state, file)
        for wanted in replayed.wanted:
            is_adopted = wanted.adopt or (wanted.formerly is not None and wanted.formerly in adopted)
            if wanted.formerly is not None:
                adopted.discard(wanted.formerly)
            if is_adopted and wanted.table is not None:
                adopted.add(wanted.name)
        state = state.after_all((w.name, w.formerly, w.table) for w in replayed.wanted)
    return adopted


def _read(name: str, version: Version, text: str) -> MigrationFile:
    read = read_migration(SourceText(name, text), version, name.partition("_")[2].removesuffix(".yaml"))
    if read.migration is None:
        raise_if_errors(read.diagnostics)
    assert read.migration is not None
    return read.migration


def _planned(project: Project, files: Sequence[MigrationFile]) -> OfflinePlan:
    """All files planned; a squash reduces a project whose files exceed the limit of the work."""
    return plan_from_empty(project, files, are_tables_stored=False, is_work_limited=False)


def _require_no_errors(rehearsed: OfflinePlan) -> None:
    raise_if_errors(errors_of(rehearsed.diagnostics))


def _refuse_unfit(planned: OfflinePlan, later: Sequence[MigrationFile]) -> None:
    """Refuse a squash after which a later file is invalid, because it depends on an earlier state.

    :raises Mistakes: with the errors of `check`.
    """
    paths = {f.path for f in later}
    wrong = [
        d
        for d in errors_of(planned.diagnostics)
        if d.code != MISSING_CONSENT or (d.place is not None and d.place.file in paths)
    ]
    raise_if_errors(
        tuple(
            Diagnostic(
                d.code,
                f"after the squash, this would not fit: {d.message}",
                d.place if d.place is not None and d.place.file in paths else None,
                "nothing was written; squash through an earlier version, or include this one",
            )
            for d in wrong
        )
    )


def _refuse_other(before: DeclaredState, after: DeclaredState, last: Version) -> None:
    """Refuse a squash with another result: one file cannot express the whole state.

    :raises Mistakes: with the differences.
    """
    names = sorted({*before.tables, *after.tables})
    words, only = ("files", "squash"), ("only the files declare it", "only the squash declares it")
    found = [
        text
        for name in names
        for text in declared_differences(before.tables.get(name), after.tables.get(name), words, only=only)
    ]
    raise_if_errors(
        tuple(
            Diagnostic(
                "squash-differs",
                f"one file cannot declare the same as the files up to {last}: {text}",
                None,
                "nothing was written; squash through an earlier version",
            )
            for text in found
        )
    )


def _remove(path: Path, top: Path) -> None:
    try:
        remove_inside(path, top)
    except OSError as error:
        raise IcemigrateError(
            f"`{path}` cannot be removed: {os_error_reason(error)}",
            "the squash was written; remove the files that it replaces",
        ) from error
