"""The dbt projects and manifests beside the files that ``check`` searches, each read once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from icemigrate.diagnostics import Diagnostic, FilePosition, Severity
from icemigrate.files.parse.source_text import SourceText, shown_path
from icemigrate.frozen import replace
from icemigrate.project.project_values import Project, SqlFiles
from icemigrate.sql_impact.dbt_manifest import DbtManifest, read_manifest
from icemigrate.sql_impact.dbt_project import DbtProject, DbtProjects
from icemigrate.sql_impact.name_resolver import DbtNames
from icemigrate.sql_impact.script import Parts
from icemigrate.sql_impact.sql_parser import sql_dialects


class DbtFiles:
    """What dbt says about the files of a search.

    After the files are read, ``reported`` holds the problems of the manifests.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.projects = DbtProjects(project.top)
        self.reported: list[Diagnostic] = []
        self._manifests: dict[Path, DbtManifest | None] = {}
        self._stale: dict[str, list[str]] = {}

    def manifest(self, dbt: DbtProject, files: SqlFiles) -> DbtManifest | None:
        """The manifest of a dbt project; ``None`` where there is none that can be read."""
        named, target = files.manifest, dbt.folder / dbt.target / "manifest.json"
        path = target if named is None else self.project.root / named[0]
        if path not in self._manifests:
            found = read_manifest(path, dbt, self.project.top)
            # Without a path in the project file, there need not be one.
            is_missing = named is None and not os.path.lexists(path)
            if isinstance(found, Diagnostic) and not is_missing:
                self.reported.append(_of_manifest(found, path, None if named is None else named[1]))
            self._manifests[path] = None if isinstance(found, Diagnostic) else found
        return self._manifests[path]

    def compiled(
        self, manifest: DbtManifest, path: Path, source: SourceText, dialect: str
    ) -> tuple[str, str]:
        """The compiled code of a file and its dialect; no code where the file has changed since."""
        code = manifest.compiled_code(path, source.text)
        if code is None:
            self._stale.setdefault(manifest.shown, []).append(source.path)
        return code or "", manifest.dialect if manifest.dialect in sql_dialects() else dialect

    def names(self) -> DbtNames:
        """The names of tables in all manifests."""
        sources: dict[tuple[str, str], Parts] = {}
        relations: dict[Parts, str] = {}
        for manifest in self._manifests.values():
            if manifest is not None:
                sources |= manifest.sources
                relations |= manifest.relations
        return DbtNames(sources, relations)

    def stale(self) -> Iterator[Diagnostic]:
        """One note for each manifest that is older than files."""
        for shown, files in self._stale.items():
            count = f"{len(files):,} files, such as `{files[0]}`" if len(files) > 1 else f"`{files[0]}`"
            message = f"the manifest is not of the present text of {count}: the compiled code is not used"
            hint = "run `dbt compile`; until then, only the text of the files is searched"
            yield Diagnostic("stale-manifest", message, FilePosition(shown), hint, Severity.NOTE)


def _of_manifest(found: Diagnostic, path: Path, place: FilePosition | None) -> Diagnostic:
    """A problem of a manifest, at the setting that names it."""
    if place is not None:
        found = replace(found, place=place, message=f"`{shown_path(path)}`: {found.message}")
    return replace(found, severity=Severity.WARNING)
