"""The folder of migrations: which files count, in which order, and which are named wrongly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from icemigrate.declare.checksum import fingerprint
from icemigrate.declare.expand import CopyBudget, Lists
from icemigrate.declare.migration import AnyFile, MigrationFile, UnreadFile
from icemigrate.declare.reading import Read, read_migration
from icemigrate.declare.source import decode, read_bytes, shown_path
from icemigrate.declare.version import MAX_DIGITS, Version
from icemigrate.diagnostics import Diagnostic, Place, Severity, sort_key
from icemigrate.errors import IcemigrateError, why
from icemigrate.files.boundary import OutsideRepository, is_inside, repository_top
from icemigrate.files.reading import names_in
from icemigrate.frozen import Frozen, replace
from icemigrate.model.collecting import collector_at_rest

_NAME = re.compile(r"([0-9]+)_([^/]+)\.(yaml|yml)", re.DOTALL)
_EXTENSIONS = frozenset({".yaml", ".yml"})
_NEAR = re.compile(r"[vV]?([0-9]{1,18})[-_. ]*(.*)", re.DOTALL)


class FoundFile(Frozen):
    """A file that is a migration by its name.

    :param top: the top of the repository that the file must lie in.
    """

    version: Version
    name: str
    path: Path
    shown: str
    top: Path


class Listing(Frozen):
    """The files of a folder in the order of their versions.

    :param doubles: files whose version an earlier one has; they are not among ``files``.
    """

    files: tuple[FoundFile, ...]
    diagnostics: tuple[Diagnostic, ...]
    doubles: tuple[FoundFile, ...] = ()


class Loaded(Frozen):
    """Every migration that has no mistake of its own, in order.

    :param broken: the versions whose files have mistakes. Folding stops being telling at the first of them.
    :param unread: files that are known; without mistakes, since they were applied.
    :param doubles: the versions of files that are not read, since an earlier file has the same.
    """

    migrations: tuple[MigrationFile, ...]
    diagnostics: tuple[Diagnostic, ...]
    broken: tuple[Version, ...] = ()
    unread: tuple[UnreadFile, ...] = ()
    doubles: tuple[Version, ...] = ()

    @property
    def files(self) -> tuple[AnyFile, ...]:
        """Those that were read and those that were not, in order."""
        return tuple(sorted((*self.migrations, *self.unread), key=lambda file: file.version))


class Known(Frozen):
    """What the history says of a file that is applied."""

    fingerprint: str
    checksum: str
    description: str


NOTHING_KNOWN: Mapping[int, Known] = {}


def load_migrations(
    folder: Path,
    lists: Lists | None = None,
    known: Mapping[int, Known] = NOTHING_KNOWN,
    *,
    top: Path | None = None,
) -> Loaded:
    """Read every file of a folder, the others too when some are broken.

    :param lists: the project's lists, which ``for_each`` may name.
    :param known: by the number of the version; files with the same fingerprint are not read.
    :param top: see :func:`list_migrations`.
    :raises IcemigrateError: when the folder itself is missing or cannot be read.
    """
    listing = list_migrations(folder, top)
    diagnostics = list(listing.diagnostics)
    migrations: list[MigrationFile] = []
    broken: list[Version] = []
    unread: list[UnreadFile] = []
    budget = CopyBudget()
    with collector_at_rest():
        for file in listing.files:
            found = _load(file, lists or {}, known.get(file.version.number), budget)
            if isinstance(found, UnreadFile):
                unread.append(found)
                continue
            diagnostics.extend(found.diagnostics)
            if found.migration is None:
                broken.append(file.version)
            else:
                migrations.append(found.migration)
    told = tuple(sorted(diagnostics, key=sort_key))
    doubles = tuple(file.version for file in listing.doubles)
    return Loaded(tuple(migrations), told, tuple(broken), tuple(unread), doubles)


def load_one(file: FoundFile, lists: Lists | None = None) -> Read:
    """Read one file."""
    read = _load(file, lists or {}, None, CopyBudget())
    assert isinstance(read, Read), "nothing is known of it"
    return read


def _load(file: FoundFile, lists: Lists, known: Known | None, budget: CopyBudget) -> Read | UnreadFile:
    content = read_bytes(file.path, file.shown, file.top)
    if isinstance(content, Diagnostic):
        return Read(None, (content,))
    print_ = fingerprint(content, lists)
    if known is not None and known.fingerprint == print_:
        return UnreadFile(file.version, file.shown, file.name, known.checksum, known.description)
    return _read(file, content, lists, print_, budget)


def read_content(file: FoundFile, content: bytes, lists: Lists) -> Read:
    """Read a file whose bytes are known, such as those of another commit."""
    return _read(file, content, lists, fingerprint(content, lists), CopyBudget())


def _read(file: FoundFile, content: bytes, lists: Lists, print_: str, budget: CopyBudget) -> Read:
    source = decode(content, file.shown)
    if isinstance(source, Diagnostic):
        return Read(None, (source,))
    read = read_migration(source, file.version, file.name, lists, budget)
    if read.migration is None:
        return read
    return replace(read, migration=replace(read.migration, fingerprint=print_))


def list_migrations(folder: Path, top: Path | None = None) -> Listing:
    """Find the files without reading them.

    :param top: the top of the repository that the folder must lie in; that of the folder above it where
        left out.
    :raises IcemigrateError: when the folder itself is missing or cannot be read.
    """
    shown = shown_path(folder)
    top = repository_top(folder.absolute().parent) if top is None else top
    try:
        names = names_in(folder, top)
    except FileNotFoundError as error:
        hint = "`icemigrate init` makes one, or name another under `migrations` in the project file"
        raise IcemigrateError(f"the migrations folder `{shown}` does not exist", hint) from error
    except OutsideRepository as error:
        hint = "put the migrations into the repository, and name their folder under `migrations`"
        raise IcemigrateError(f"the migrations folder `{shown}` is not read: {why(error)}", hint) from error
    except OSError as error:
        raise IcemigrateError(f"the migrations folder `{shown}` cannot be read: {why(error)}") from error
    files: list[FoundFile] = []
    diagnostics: list[Diagnostic] = []
    for name in names:
        path = folder / name
        if not name.startswith((".", "__")) and not name.endswith("~"):
            found = _classify(path, shown_path(path), top)
            if isinstance(found, FoundFile):
                files.append(found)
            elif found is not None:
                diagnostics.append(found)
    files.sort(key=lambda file: (file.version, file.shown))
    kept = _without_doubles(files, diagnostics)
    if not files and not diagnostics:
        message = f"there is no migration in `{shown}`"
        hint = '`icemigrate new "create trades"` writes the first one'
        diagnostics.append(Diagnostic("no-migrations", message, Place(shown), hint, Severity.WARNING))
    first = {file.path for file in kept}
    doubles = tuple(file for file in files if file.path not in first)
    return Listing(kept, tuple(diagnostics), doubles)


def named_as_migration(folder: Path, name: str, top: Path) -> FoundFile | None:
    """What a file of this name in the folder is; ``None`` where it is no migration by its name."""
    found = _NAME.fullmatch(name)
    if found is None or not found.group(2).strip() or len(found.group(1)) > MAX_DIGITS:
        return None
    path = folder / name
    return FoundFile(Version.parse(found.group(1)), found.group(2), path, shown_path(path), top)


def _without_doubles(files: list[FoundFile], diagnostics: list[Diagnostic]) -> tuple[FoundFile, ...]:
    kept: dict[Version, FoundFile] = {}
    for file in files:
        first = kept.setdefault(file.version, file)
        if first is not file:
            message = f"version {file.version} is taken already, by `{first.path.name}`"
            hint = "`icemigrate rebase` renumbers a file that came late"
            diagnostics.append(Diagnostic("duplicate-version", message, Place(file.shown), hint))
    return tuple(kept.values())


def _classify(path: Path, shown: str, top: Path) -> FoundFile | Diagnostic | None:
    """A migration, a file that was meant to be one, or nothing of ours."""
    if path.is_dir() and is_inside(path, top):
        return _folder(path, shown, top)
    if (migration := named_as_migration(path.parent, path.name, top)) is not None:
        return migration
    found = _NAME.fullmatch(path.name)
    if found is not None and found.group(2).strip():
        digits = len(found.group(1))
        return _misnamed(shown, f"the version has {digits} digits, more than {MAX_DIGITS}", None)
    suffix = path.suffix.lower()
    near = _NEAR.fullmatch(path.stem)
    if suffix in _EXTENSIONS:
        return _misnamed(shown, "a migration is named `<digits>_<name>.yaml`", near)
    if near is not None:
        message = f"the file is not read: a migration ends in `.yaml`, not in `{path.suffix}`"
        return Diagnostic("wrong-extension", message, Place(shown), None, Severity.WARNING)
    return None


def _folder(path: Path, shown: str, top: Path) -> Diagnostic | None:
    try:
        holds = any(Path(name).suffix.lower() in _EXTENSIONS for name in names_in(path, top))
    except OSError:
        holds = False
    if not holds and path.suffix.lower() not in _EXTENSIONS:
        return None
    message = "a folder inside the migrations folder is not read, but this one looks like migrations"
    return Diagnostic("folder-not-read", message, Place(shown), "move its files up")


def _misnamed(shown: str, message: str, near: re.Match[str] | None) -> Diagnostic:
    hint = "give it the next version"
    if near is not None:
        words = re.sub(r"[^A-Za-z0-9]+", "_", near.group(2)).strip("_").lower() or "name"
        hint = f"for example `{near.group(1).zfill(4)}_{words}.yaml`"
    return Diagnostic("misnamed-file", message, Place(shown), hint)
