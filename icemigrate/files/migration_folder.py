"""The migrations folder: which files are migrations, their order, and which names are invalid."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import groupby
from pathlib import Path

from icemigrate.diagnostics import Diagnostic, FilePosition, Severity, renew_hints, sort_key
from icemigrate.errors import IcemigrateError, os_error_reason
from icemigrate.files.checksum import fingerprint
from icemigrate.files.parse.source_text import (
    decode_source,
    hidden_in_name,
    read_bytes,
    read_bytes_in,
    shown_path,
)
from icemigrate.files.read.for_each import CopyBudget, Lists
from icemigrate.files.read.migration_file import AnyFile, MigrationFile, UnreadFile
from icemigrate.files.read.migration_reader import MigrationReadResult, read_migration
from icemigrate.files.version_number import MAX_DIGITS, Version
from icemigrate.frozen import Frozen, replace
from icemigrate.system.file_reads import InsideFolder, list_names_inside
from icemigrate.system.process import pause_garbage_collection
from icemigrate.system.repository_boundary import OutsideRepository, is_inside, repository_top

_NAME = re.compile(r"([0-9]+)_([^/]+)\.(yaml|yml)", re.DOTALL)
TESTS_FOLDER = "tests"
"""The folder of migration tests, inside the migrations folder."""
_EXTENSIONS = frozenset({".yaml", ".yml"})
_SIMILAR_NAME = re.compile(r"[vV]?([0-9]{1,18})[-_. ]*(.*)", re.DOTALL)


class ListedMigration(Frozen):
    """A file whose name is the name of a migration.

    :param top: the root of the repository; the file must be inside it.
    """

    version: Version
    name: str
    path: Path
    shown: str
    top: Path


class MigrationListing(Frozen):
    """The files of a folder in the order of their versions.

    :param doubles: files whose version an older one has; they are not among ``files``.
    :param unclear: versions of which it is not known which file is the older one.
    """

    files: tuple[ListedMigration, ...]
    diagnostics: tuple[Diagnostic, ...]
    doubles: tuple[ListedMigration, ...] = ()
    unclear: frozenset[Version] = frozenset()


VersionOrder = Callable[[Sequence[ListedMigration]], tuple[Sequence[ListedMigration], bool]]
"""Orders files that have one version, the oldest first; the second value is whether the order is known."""


def order_by_name(files: Sequence[ListedMigration]) -> tuple[Sequence[ListedMigration], bool]:
    """The order of files with one version where nothing is known of their age."""
    return files, True


class LoadedMigrations(Frozen):
    """Every migration whose file has no error, in order.

    :param broken: versions whose files have errors. Replay is not reliable from the first of them.
    :param unread: files with a recorded fingerprint; they were applied, so they have no errors.
    :param doubles: versions of files that are not read, because an earlier file has the same version.
    """

    migrations: tuple[MigrationFile, ...]
    diagnostics: tuple[Diagnostic, ...]
    broken: tuple[Version, ...] = ()
    unread: tuple[UnreadFile, ...] = ()
    doubles: tuple[Version, ...] = ()

    @property
    def files(self) -> tuple[AnyFile, ...]:
        """Read and unread files together, in order."""
        return tuple(sorted((*self.migrations, *self.unread), key=lambda file: file.version))


class AppliedFile(Frozen):
    """The history's record of an applied file."""

    fingerprint: str
    checksum: str
    description: str


NOTHING_KNOWN: Mapping[int, AppliedFile] = {}


def load_migrations(
    folder: Path,
    lists: Lists | None = None,
    known: Mapping[int, AppliedFile] = NOTHING_KNOWN,
    *,
    top: Path | None = None,
    is_expansion_limited: bool = True,
    order: VersionOrder = order_by_name,
) -> LoadedMigrations:
    """Read every file of a folder, the others too when some are broken.

    :param lists: the project's lists, which ``for_each`` may name.
    :param known: by the number of the version; files with the same fingerprint are not read.
    :param top: see :func:`list_migrations`.
    :param is_expansion_limited: whether all files share one limit for ``for_each``.  Where not, each file
        has a limit of its own.
    :param order: see :func:`list_migrations`.
    :raises IcemigrateError: when the folder itself is missing or cannot be read.
    """
    listing = list_migrations(folder, top, order=order)
    diagnostics = list(listing.diagnostics)
    migrations: list[MigrationFile] = []
    broken: list[Version] = []
    unread: list[UnreadFile] = []
    budget = CopyBudget()
    renew_hints(for_all_files=True)
    top = listing.files[0].top if listing.files else None
    with pause_garbage_collection(), _opened(folder, top) as inside:
        for file in listing.files:
            if not is_expansion_limited:
                budget = CopyBudget()
            found = _load(file, lists or {}, known.get(file.version.number), budget, inside)
            if isinstance(found, UnreadFile):
                unread.append(found)
                continue
            diagnostics.extend(found.diagnostics)
            if found.migration is None:
                broken.append(file.version)
            else:
                migrations.append(found.migration)
    ordered = tuple(sorted(diagnostics, key=sort_key))
    doubles = tuple(file.version for file in listing.doubles)
    return LoadedMigrations(tuple(migrations), ordered, tuple(broken), tuple(unread), doubles)


def load_one(file: ListedMigration, lists: Lists | None = None) -> MigrationReadResult:
    """Read one file."""
    read = _load(file, lists or {}, None, CopyBudget())
    assert isinstance(read, MigrationReadResult), "nothing is known of it"
    return read


@contextmanager
def _opened(folder: Path, top: Path | None) -> Iterator[InsideFolder | None]:
    """The folder, open; ``None`` where that fails: reading a file reports the reason."""
    with ExitStack() as ends:
        inside = None
        if top is not None:
            with suppress(OSError):
                inside = ends.enter_context(InsideFolder(folder, top))
        yield inside


def _load(
    file: ListedMigration,
    lists: Lists,
    known: AppliedFile | None,
    budget: CopyBudget,
    inside: InsideFolder | None = None,
) -> MigrationReadResult | UnreadFile:
    content = (
        read_bytes(file.path, file.shown, file.top)
        if inside is None
        else read_bytes_in(inside, file.path.name, file.shown)
    )
    if isinstance(content, Diagnostic):
        return MigrationReadResult(None, (content,))
    budget.add_file(len(content))
    print_ = fingerprint(content, lists)
    if known is not None and known.fingerprint == print_:
        return UnreadFile(file.version, file.shown, file.name, known.checksum, known.description)
    return _read(file, content, lists, print_, budget)


def read_content(file: ListedMigration, content: bytes, lists: Lists) -> MigrationReadResult:
    """Read a file from its bytes, such as a file of another commit."""
    return _read(file, content, lists, fingerprint(content, lists), CopyBudget())


def _read(
    file: ListedMigration, content: bytes, lists: Lists, print_: str, budget: CopyBudget
) -> MigrationReadResult:
    source = decode_source(content, file.shown)
    if isinstance(source, Diagnostic):
        return MigrationReadResult(None, (source,))
    read = read_migration(source, file.version, file.name, lists, budget)
    if read.migration is None:
        return read
    return replace(read, migration=replace(read.migration, fingerprint=print_, size=len(content)))


def list_migrations(
    folder: Path, top: Path | None = None, *, order: VersionOrder = order_by_name
) -> MigrationListing:
    """List the migration files without reading them.

    :param top: the root of the repository, which must contain the folder; by default it is searched from
        the folder upwards.
    :param order: orders files that have one version; called for those only.
    :raises IcemigrateError: when the folder itself is missing or cannot be read.
    """
    shown = shown_path(folder)
    top = repository_top(folder.absolute().parent) if top is None else top
    try:
        names = list_names_inside(folder, top)
    except FileNotFoundError as error:
        hint = "run `icemigrate new DESCRIPTION` to create it, or set `migrations` in the project file"
        raise IcemigrateError(f"the migrations folder `{shown}` does not exist", hint) from error
    except OutsideRepository as error:
        hint = "move the migrations into the repository, and name their folder under `migrations`"
        raise IcemigrateError(
            f"the migrations folder `{shown}` is not read: {os_error_reason(error)}", hint
        ) from error
    except OSError as error:
        raise IcemigrateError(
            f"the migrations folder `{shown}` cannot be read: {os_error_reason(error)}"
        ) from error
    files: list[ListedMigration] = []
    diagnostics: list[Diagnostic] = []
    for name in names:
        path = folder / name
        if not name.startswith((".", "__")) and not name.endswith("~"):
            found = _classify(path, str(Path(shown, name)), top)
            if isinstance(found, ListedMigration):
                files.append(found)
                diagnostics += hidden_in_name(found.shown)
            elif found is not None:
                diagnostics.append(found)
    files.sort(key=lambda file: (file.version, file.shown))
    kept, unclear = _without_doubles(files, diagnostics, order)
    if not files and not diagnostics:
        message = f"there is no migration in `{shown}`"
        hint = 'run `icemigrate new "create trades"` to write the first one'
        diagnostics.append(Diagnostic("no-migrations", message, FilePosition(shown), hint, Severity.WARNING))
    first = {file.path for file in kept}
    doubles = tuple(file for file in files if file.path not in first)
    return MigrationListing(kept, tuple(diagnostics), doubles, unclear)


def named_as_migration(
    folder: Path, name: str, top: Path, shown: str | None = None
) -> ListedMigration | None:
    """The migration that a file name denotes; ``None`` where it is not the name of a migration.

    :param shown: the path as the user sees it, where it is known.
    """
    found = _NAME.fullmatch(name)
    if found is None or not found.group(2).strip() or len(found.group(1)) > MAX_DIGITS:
        return None
    path = folder / name
    shown = shown_path(path) if shown is None else shown
    return ListedMigration(Version.parse(found.group(1)), found.group(2), path, shown, top)


def _without_doubles(
    files: list[ListedMigration], diagnostics: list[Diagnostic], order: VersionOrder
) -> tuple[tuple[ListedMigration, ...], frozenset[Version]]:
    """The oldest file of each version, and the versions of which the oldest file is not known."""
    kept: list[ListedMigration] = []
    unclear: set[Version] = set()
    for version, group in groupby(files, key=lambda file: file.version):
        (first, *others), is_known = _ordered(tuple(group), order)
        kept.append(first)
        hint = "run `icemigrate rebase` to renumber this file"
        if not is_known:
            unclear.add(version)
            hint = f"renumber the newer file: `icemigrate rebase {first.path.name}`, or"
        for file in others:
            message = f"`{first.path.name}` already has version {file.version}"
            way = hint if is_known else f"{hint} `icemigrate rebase {file.path.name}`"
            diagnostics.append(Diagnostic("duplicate-version", message, FilePosition(file.shown), way))
    return tuple(kept), frozenset(unclear)


def _ordered(
    files: tuple[ListedMigration, ...], order: VersionOrder
) -> tuple[Sequence[ListedMigration], bool]:
    return order(files) if len(files) > 1 else (files, True)


def _classify(path: Path, shown: str, top: Path) -> ListedMigration | Diagnostic | None:
    """Classify a directory entry as a migration, an invalid name, or an unrelated file."""
    if path.is_dir() and is_inside(path, top):
        return None if path.name == TESTS_FOLDER else _folder(path, shown, top)
    if (migration := named_as_migration(path.parent, path.name, top, shown)) is not None:
        return migration
    found = _NAME.fullmatch(path.name)
    if found is not None and found.group(2).strip():
        digits = len(found.group(1))
        return _misnamed(shown, f"the version has {digits} digits, more than {MAX_DIGITS}", None)
    suffix = path.suffix.lower()
    near = _SIMILAR_NAME.fullmatch(path.stem)
    if suffix in _EXTENSIONS:
        return _misnamed(shown, "name a migration file `<digits>_<name>.yaml`", near)
    if near is not None:
        message = f"the file is ignored: the name of a migration file ends in `.yaml`, not in `{path.suffix}`"
        return Diagnostic("wrong-extension", message, FilePosition(shown), None, Severity.WARNING)
    return None


def _folder(path: Path, shown: str, top: Path) -> Diagnostic | None:
    try:
        holds = any(Path(name).suffix.lower() in _EXTENSIONS for name in list_names_inside(path, top))
    except OSError:
        holds = False
    if not holds and path.suffix.lower() not in _EXTENSIONS:
        return None
    message = "folders inside the migrations folder are ignored, but this one seems to contain migrations"
    return Diagnostic(
        "folder-not-read", message, FilePosition(shown), "move its files to the migrations folder"
    )


def _misnamed(shown: str, message: str, near: re.Match[str] | None) -> Diagnostic:
    hint = "give it the next version"
    if near is not None:
        words = re.sub(r"[^A-Za-z0-9]+", "_", near.group(2)).strip("_").lower() or "name"
        hint = f"for example `{near.group(1).zfill(4)}_{words}.yaml`"
    return Diagnostic("misnamed-file", message, FilePosition(shown), hint)
