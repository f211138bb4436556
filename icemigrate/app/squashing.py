"""``squash``: one file for all files up to a version; reads and writes files alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from icemigrate.app.lock_file import keep_lock
from icemigrate.app.next_file import header
from icemigrate.app.offline import Rehearsed, rehearse
from icemigrate.app.opening import as_mistakes, known_version, sound_files
from icemigrate.declare.author import document, dump
from icemigrate.declare.differences import differences
from icemigrate.declare.fold import fold
from icemigrate.declare.migration import MigrationFile
from icemigrate.declare.reading import read_migration
from icemigrate.declare.replacing import digest, squash_mistakes
from icemigrate.declare.scaffold import write_new
from icemigrate.declare.source import Source, shown_path
from icemigrate.declare.version import Version
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import IcemigrateError, UsageError, why
from icemigrate.files.writing import remove_inside
from icemigrate.model.names import TableName, format_path
from icemigrate.model.sides import EMPTY_STATE, State
from icemigrate.project.values import Project
from icemigrate.results import SquashResult, errors_of


def squash(project: Project, through: str) -> SquashResult:
    """Write what is declared at a version as one file, and remove the files that it stands for.

    The file has the version of the last of them.  Where all of them were applied it is only recorded, where
    none was it runs, and where some were it is refused.

    :param through: the last version.
    :raises UsageError: there is no such version, or nothing to squash.
    :raises Mistakes: files hold mistakes, or a later file needs what a squash forgets.
    :raises IcemigrateError: a file cannot be written or removed.
    """
    files = sound_files(project)
    as_mistakes(squash_mistakes(files))
    number = known_version(files, through, "--through")
    chosen = [f for f in files if f.version.number <= number]
    if len(chosen) < 2:
        raise UsageError(f"--through {through}: there is one file up to it, and nothing to squash")
    _sound(rehearse(project, files))
    name, text = _written(project, files, chosen)
    folder = project.migrations_dir
    (path,) = write_new(folder, {name: text}, project.top)
    for file in chosen:
        _remove(folder / Path(file.path).name, project.top)
    keep_lock(project, [name], [Path(file.path).name for file in chosen])
    return SquashResult(project.name, shown_path(path), tuple(f.path for f in chosen))


def _written(
    project: Project, files: Sequence[MigrationFile], chosen: Sequence[MigrationFile]
) -> tuple[str, str]:
    """The name and the text of the new file, which is seen to lead where the old ones led."""
    last, first = chosen[-1].version, _first(chosen[0])
    name = f"{last}_squash_{first}_to_{last}.yaml"
    rehearsed = rehearse(project, chosen)
    adopted = _adopted(chosen)
    entries = [
        document(rehearsed.state.tables[n]) | ({"adopt": True} if n in adopted else {})
        for n in sorted(rehearsed.state.tables)
    ]
    _refuse_rows(chosen, adopted)
    inhabited = {n.namespace for n in rehearsed.state.tables}

    def text(allow: Iterable[str]) -> str:
        return dump(
            entries,
            description=f"All that {first} to {last} declared",
            allow=allow,
            namespaces=sorted(format_path(n) for n in rehearsed.state.namespaces - inhabited),
            header=header(project),
            replaces=_replaces(first, chosen),
        )

    file = _read(name, last, text(()))
    later = [f for f in files if f.version > last]
    planned = rehearse(project, [file, *later])
    _refuse_unfit(planned, later)
    _refuse_other(rehearsed.state, rehearse(project, [file]).state, last)
    _refuse_other(rehearse(project, files).state, planned.state, last)
    hazards = planned.plans[0].unconsented
    return name, text(dict.fromkeys(f"{h.kind.value} {h.scope}" for h in hazards))


def _first(file: MigrationFile) -> Version:
    """Where the range begins: a squash is squashed with all that it stands for."""
    return file.version if file.replaces is None else file.replaces.first


def _replaces(first: Version, chosen: Sequence[MigrationFile]) -> dict[str, Any]:
    return {
        "from": first.text,
        "to": chosen[-1].version.text,
        "digest": digest(f.checksum for f in chosen),
        "versions": {f.version.text: f.checksum for f in chosen},
    }


def _refuse_rows(files: Sequence[MigrationFile], adopted: set[TableName]) -> None:
    """Refuse to forget what is done to rows that may be there already.

    A table that the new file makes has none; one that it adopts may have those that were to be filled.

    :raises Mistakes: with the places of the data steps.
    """
    as_mistakes(
        tuple(
            Diagnostic(
                "squash-rows",
                f"`{entry.name or entry.match}` has its rows changed, and an adopted table may have some",
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
        folded = fold(state, file)
        for wanted in folded.wanted:
            is_adopted = wanted.adopt or (wanted.formerly is not None and wanted.formerly in adopted)
            if wanted.formerly is not None:
                adopted.discard(wanted.formerly)
            if is_adopted and wanted.table is not None:
                adopted.add(wanted.name)
            state = state.after(wanted.name, wanted.formerly, wanted.table)
    return adopted


def _read(name: str, version: Version, text: str) -> MigrationFile:
    read = read_migration(Source(name, text), version, name.partition("_")[2].removesuffix(".yaml"))
    if read.migration is None:
        as_mistakes(read.diagnostics)
    assert read.migration is not None
    return read.migration


def _sound(rehearsed: Rehearsed) -> None:
    as_mistakes(errors_of(rehearsed.diagnostics))


def _refuse_unfit(planned: Rehearsed, later: Sequence[MigrationFile]) -> None:
    """Refuse a squash after which a later file does not fit, since it spoke of something from before.

    :raises Mistakes: with what `check` would say of it.
    """
    paths = {f.path for f in later}
    wrong = [
        d
        for d in errors_of(planned.diagnostics)
        if d.code != "missing-allow" or (d.place is not None and d.place.file in paths)
    ]
    as_mistakes(
        tuple(
            Diagnostic(
                d.code,
                f"after a squash this would not fit any more: {d.message}",
                d.place if d.place is not None and d.place.file in paths else None,
                "nothing was written; squash through an earlier version, or through this one too",
            )
            for d in wrong
        )
    )


def _refuse_other(before: State, after: State, last: Version) -> None:
    """Refuse a squash that leads elsewhere: one file cannot say all of it.

    :raises Mistakes: with what differs.
    """
    names = sorted({*before.tables, *after.tables})
    found = [
        text
        for name in names
        for text in differences(before.tables.get(name), after.tables.get(name), ("files", "squash"))
    ]
    as_mistakes(
        tuple(
            Diagnostic(
                "squash-differs",
                f"one file cannot declare what the files up to {last} do: {text}",
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
            f"`{path}` cannot be removed: {why(error)}",
            "the squash is written; remove the files that it replaces",
        ) from error
