"""``manifest.json``, in which dbt writes the compiled code of models and the names of relations.

The file is data from a repository: it has a limit, and nothing in it is executed.  Compiled code counts only
where the model and its macros still have the text that dbt compiled, and only adds to what the files say.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from icemigrate.diagnostics import Diagnostic, FilePosition, Severity
from icemigrate.files.parse.source_text import SourceText, read_bytes, read_text, shown_path
from icemigrate.frozen import Frozen, field
from icemigrate.sql_impact.dbt_project import PROJECT_FILE, DbtProject
from icemigrate.sql_impact.script import Parts
from icemigrate.system.repository_boundary import resolve_inside

MANIFEST_LIMIT = 64 * 1024 * 1024
"""Bytes. dbt writes some ten kilobytes for each model, test and macro."""
_MOST_MACROS = 200
"""How many macros of one file are compared with it; a file with more counts as changed."""
_MOST_MACRO_FILES = 5000
"""How many files of macros are read; the macros of others count as changed."""
_EPHEMERAL = "__dbt__cte__"
"""How compiled code calls the queries of ephemeral models, which it contains."""


class _Checksum(Frozen):
    name: str = ""
    checksum: str = ""


class _DependsOn(Frozen):
    macros: tuple[str, ...] = ()


class _Node(Frozen):
    """A model, a snapshot, a source or a macro: the keys that the search uses."""

    name: str = ""
    package_name: str = ""
    original_file_path: str = ""
    database: str | None = None
    schema: str | None = None
    alias: str | None = None
    identifier: str | None = None
    source_name: str | None = None
    compiled_code: str | None = None
    compiled_sql: str | None = None
    macro_sql: str | None = None
    checksum: _Checksum = field(default_factory=_Checksum)
    depends_on: _DependsOn = field(default_factory=_DependsOn)


class _Metadata(Frozen):
    adapter_type: str | None = None


class _Content(Frozen):
    metadata: _Metadata
    nodes: dict[str, _Node]
    sources: dict[str, _Node] = field(default_factory=dict)
    macros: dict[str, _Node] = field(default_factory=dict)


class DbtManifest(Frozen):
    """What a manifest says.

    :param shown: its path as shown to the user.
    :param dialect: of the compiled code, by the name of dbt's adapter; empty where it is unknown.
    :param sources: the parts of each source's name, by the names of the source and its table.
    :param relations: the model or snapshot that a relation is, by the namespace and the name of the relation.
    """

    shown: str
    dialect: str
    sources: Mapping[tuple[str, str], Parts]
    relations: Mapping[Parts, str]
    project: DbtProject
    nodes: Mapping[str, Sequence[_Node]]
    changed_macros: frozenset[str]
    is_older: bool

    def compiled_code(self, file: Path, text: str) -> str | None:
        """The compiled code of a file; empty without one, ``None`` where it is that of another text."""
        try:
            path = file.absolute().relative_to(self.project.folder).as_posix()
        except ValueError:
            return ""
        codes = [(node, node.compiled_code or node.compiled_sql or "") for node in self.nodes.get(path, ())]
        codes = [(node, code) for node, code in codes if code and _EPHEMERAL not in code]
        if not codes:
            return ""
        checksums = frozenset(_checksums(text))
        is_changed = any(
            node.checksum.checksum not in checksums
            or not self.changed_macros.isdisjoint(node.depends_on.macros)
            for node, _ in codes
        )
        return None if self.is_older or is_changed else ";\n".join(code for _, code in codes)


def read_manifest(file: Path, project: DbtProject, top: Path) -> DbtManifest | Diagnostic:
    """Read a manifest.

    :param top: the root of the repository; no file outside it is read.
    """
    shown = shown_path(file)
    data = read_bytes(file, shown, top, MANIFEST_LIMIT)
    if isinstance(data, Diagnostic):
        return data
    place = FilePosition(shown)
    if len(data) > MANIFEST_LIMIT:
        message = f"the manifest is larger than {MANIFEST_LIMIT // (1024 * 1024)} MiB, and is not read"
        return Diagnostic("too-large", message, place, None, Severity.WARNING)
    try:
        content = msgspec.json.decode(data, type=_Content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"the manifest of dbt cannot be read: {error}"
        hint = "write it again with `dbt compile`; the models are searched without it"
        return Diagnostic("unreadable-manifest", message, place, hint, Severity.WARNING)
    nodes: dict[str, list[_Node]] = {}
    relations: dict[Parts, str] = {}
    for node in content.nodes.values():
        if node.package_name == project.name:
            path = node.original_file_path.replace("\\", "/")
            nodes.setdefault(path, []).append(node)
        if node.schema:
            relations[node.schema.lower(), (node.alias or node.name).lower()] = node.name.lower()
    sources = {
        ((one.source_name or "").lower(), one.name.lower()): (
            *(one.schema or "").lower().split("."),
            (one.identifier or one.name).lower(),
        )
        for one in content.sources.values()
    }
    dialect = (content.metadata.adapter_type or "").lower()
    changed = _changed_macros(content.macros, project, top)
    return DbtManifest(
        shown, dialect, sources, relations, project, nodes, changed, _is_older(file, project, top)
    )


def _checksums(text: str) -> Iterator[str]:
    """The checksums that releases of dbt write for a file, with either line break."""
    for one in (text, text.strip()):
        for written in (one, one.replace("\n", "\r\n")):
            yield hashlib.sha256(written.encode()).hexdigest()


def _is_older(file: Path, project: DbtProject, top: Path) -> bool:
    """Whether the project file, with the variables, was changed after the manifest."""
    try:
        written = resolve_inside(file, top).stat().st_mtime
        return resolve_inside(project.folder / PROJECT_FILE, top).stat().st_mtime > written
    except OSError:
        return True


def _changed_macros(macros: Mapping[str, _Node], project: DbtProject, top: Path) -> frozenset[str]:
    """The macros of the project whose text is no longer that of their file, and those that call them."""
    by_file: dict[str, list[str]] = {}
    for key, macro in macros.items():
        if macro.package_name == project.name:
            path = posixpath.normpath(macro.original_file_path.replace("\\", "/"))
            by_file.setdefault(path, []).append(key)
    changed: set[str] = set()
    for number, (path, keys) in enumerate(by_file.items()):
        if len(keys) > _MOST_MACROS or number >= _MOST_MACRO_FILES:
            changed |= set(keys)
            continue
        read = read_text(project.folder / path, top=top)
        text = _spaced(read.text) if isinstance(read, SourceText) else ""
        changed |= {key for key in keys if _spaced(macros[key].macro_sql or "") not in text or not text}
    return frozenset(_with_callers(changed, macros))


def _spaced(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _with_callers(changed: set[str], macros: Mapping[str, _Node]) -> set[str]:
    callers: dict[str, list[str]] = {}
    for key, macro in macros.items():
        for called in macro.depends_on.macros:
            callers.setdefault(called, []).append(key)
    waiting, found = list(changed), set(changed)
    while waiting:
        for key in callers.get(waiting.pop(), ()):
            if key not in found:
                found.add(key)
                waiting.append(key)
    return found
