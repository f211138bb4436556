"""``doctor``: tests everything that an environment needs, and reports the results; read-only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Literal

from icemigrate.catalog import Catalog, open_catalog
from icemigrate.catalog.capabilities import CAPABILITY_MATRIX, Capabilities, kind_of
from icemigrate.catalog.metadata_files import local_path, read_metadata
from icemigrate.catalog.pyiceberg_files import file_io
from icemigrate.commands.capability_report import capability_statuses
from icemigrate.errors import EngineError, IcemigrateError, Mistakes, UsageError, extra_hint
from icemigrate.execution.connect_start import connect_settings, uses_connect
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.execution.spark_start import open_engine, spark_settings
from icemigrate.files.parse.source_text import shown_path
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import VersionState
from icemigrate.iceberg.names import TableName
from icemigrate.project import Environment, Project, choose_environment
from icemigrate.project.namespace_mapping import NamespaceMapping, catalog_settings
from icemigrate.results.command_results import DoctorCheck, DoctorResult
from icemigrate.spark import find_java
from icemigrate.spark.connect_session import open_connect_session, require_client
from icemigrate.spark.jars import JARS_VARIABLE, jar_folders, locate_jars
from icemigrate.versions import CURRENT, SparkRelease, spark_release


def doctor(project: Project, environment: str | None = None, *, spark: bool = False) -> DoctorResult:
    """Test Java, Spark, jars, catalog, storage and history.

    :param environment: ``None`` for the project's default.
    :param spark: whether to start Spark too, and let it read the catalog.
    :raises UsageError: there is no such environment.
    """
    visit = _DoctorRun(project)
    chosen = visit.environment(environment)
    if chosen is None:
        name = environment or project.default_environment or ""
        return DoctorResult(project.name, name, tuple(visit.checkups))
    visit.spark_parts(chosen)
    capabilities = visit.catalog(chosen)
    if spark:
        visit.whole_spark(chosen)
    else:
        visit.say("session", "skipped", "Spark was not started", "`icemigrate doctor --spark` starts it")
    settings = catalog_settings(chosen)
    kind = kind_of(settings.type, settings.uri)
    return DoctorResult(
        project.name,
        chosen.name,
        tuple(visit.checkups),
        kind,
        capability_statuses(capabilities or CAPABILITY_MATRIX[kind]),
    )


@dataclass(slots=True)
class _DoctorRun:
    """One call of :func:`doctor`: every method tests one thing, and reports errors instead of raising them.

    :param scrub: removes the environment's secrets from messages of drivers.
    """

    project: Project
    checkups: list[DoctorCheck] = field(default_factory=list)
    scrub: Callable[[str], str] = str

    def say(
        self,
        name: str,
        state: Literal["ok", "note", "failed", "skipped"],
        text: str,
        hint: str | None = None,
    ) -> None:
        self.checkups.append(DoctorCheck(name, state, self.scrub(text), hint))

    @contextmanager
    def trying(self, name: str) -> Iterator[None]:
        """A block whose errors are reported, so that the next test runs."""
        try:
            yield
        except IcemigrateError as fault:
            self.say(name, "failed", fault.message, fault.hint)

    def environment(self, name: str | None) -> Environment | None:
        try:
            chosen = choose_environment(self.project, name, dict(os.environ))
        except Mistakes as mistakes:
            for d in mistakes.diagnostics:
                self.say("environment", "failed", f"{d.place}: {d.message}" if d.place else d.message, d.hint)
            return None
        self.scrub = catalog_settings(chosen).scrub
        where = self.project.file or "no project file: using the embedded default"
        self.say("environment", "ok", f"`{chosen.name}` of project `{self.project.name}` ({where})")
        with self.trying("environment"):
            NamespaceMapping(chosen)
        self._sharing(chosen)
        return chosen

    def _sharing(self, chosen: Environment) -> None:
        """Environments with one catalog, which share the history and its applied versions."""
        for name in self.project.environments:
            if name == chosen.name:
                continue
            try:
                other = choose_environment(self.project, name, dict(os.environ))
            except (Mistakes, UsageError):
                continue  # its variables are not set here, so it is not used from here
            if _catalog_key(other) == _catalog_key(chosen):
                self.say(
                    "environment",
                    "note",
                    f"`{chosen.name}` and `{name}` share one catalog and one history: a migration applied "
                    "in one counts as applied in the other",
                    "give each its own catalog, or its own project file with another `history:`",
                )

    def spark_parts(self, chosen: Environment) -> None:
        """Everything that Spark needs, without starting it."""
        if uses_connect(chosen, None):
            with self.trying("connect"):
                server = connect_settings(chosen).server
                require_client()
                self.say("connect", "ok", f"the client of Spark Connect is installed; the server is {server}")
            return
        release = CURRENT
        with self.trying("pyspark"):
            release = self._pyspark()
        with self.trying("java"):
            self.say("java", "ok", str(find_java.find_java(release.java)))
            wrong = find_java.wrong_home(release.java)
            if wrong is not None:
                self.say("java", "note", f"{wrong}; it is ignored", find_java.home_hint(release.java))
        with self.trying("jars"):
            self._jars(chosen, release)

    def _pyspark(self) -> SparkRelease:
        try:
            version = metadata.version("pyspark")
        except metadata.PackageNotFoundError:
            raise EngineError(
                "PySpark is not installed: `plan` and `check` work, `apply` does not",
                extra_hint("spark"),
            ) from None
        release = spark_release(version)
        self.say("pyspark", "ok", f"PySpark {version}, with Iceberg {release.iceberg}")
        return release

    def _jars(self, chosen: Environment, release: SparkRelease) -> None:
        settings = spark_settings(chosen)
        found = locate_jars(settings, release)
        if found.missing:
            names = ", ".join(package.split(":", 1)[1] for package in found.missing)
            hint = f"without network access, put them into a folder and set {JARS_VARIABLE} to it"
            folder = jar_folders(settings)[0]
            self.say("jars", "note", f"the first `apply` downloads {names} into {folder}", hint)
        else:
            self.say("jars", "ok", ", ".join(map(str, found.files)))

    def catalog(self, chosen: Environment) -> Capabilities | None:
        """Test the catalog, its tables, and the history; reports its exact capabilities where it answers."""
        capabilities = None
        try:
            catalog = open_catalog(catalog_settings(chosen))
        except IcemigrateError as fault:
            self.say("catalog", "failed", fault.message, fault.hint)
            return None
        try:
            try:
                namespaces = catalog.namespaces()
                capabilities = catalog.capabilities
            except IcemigrateError as fault:
                self.say("catalog", "failed", fault.message, fault.hint)
                for name in ("storage", "history"):
                    self.say(name, "skipped", "not checked: the catalog does not answer")
                return None
            known = "1 namespace" if len(namespaces) == 1 else f"{len(namespaces)} namespaces"
            self.say("catalog", "ok", f"{catalog.identity} answers: {known}")
            with self.trying("storage"):
                self._storage(catalog, namespaces)
            with self.trying("history"):
                self._history(chosen, catalog)
        finally:
            catalog.close()
        return capabilities

    def _storage(self, catalog: Catalog, namespaces: tuple[tuple[str, ...], ...]) -> None:
        warehouse = catalog.settings.warehouse
        folder = None if warehouse is None else local_path(warehouse)
        if folder is not None:
            self._folder(Path(folder))
        name = next((t for n in namespaces for t in catalog.tables(n)), None)
        if name is None:
            self.say("storage", "skipped", "the catalog has no table to read")
            return
        location = catalog.metadata_location(name)
        if location is None:
            self.say("storage", "skipped", f"the catalog does not say where the files of `{name}` are")
            return
        # The answers of a REST catalog contain the metadata, so planning there may read no file.
        read_metadata(name, location, file_io(catalog.settings))
        self.say("storage", "ok", f"the files of `{name}` are readable ({location})")

    def _folder(self, folder: Path) -> None:
        there = next(p for p in (folder, *folder.parents) if p.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            self.say(
                "storage",
                "failed",
                f"the warehouse {shown_path(folder)} is not writable",
                f"give this user write access to {there}, or set another `warehouse`",
            )
        elif there == folder:
            self.say("storage", "ok", f"the warehouse {shown_path(folder)} is writable")
        else:
            self.say("storage", "ok", f"the first `apply` creates the warehouse {shown_path(folder)}")

    def _history(self, chosen: Environment, catalog: Catalog) -> None:
        session = EnvironmentSession(self.project, chosen, catalog, NamespaceMapping(chosen))
        name = session.history_name
        if catalog.metadata_location(name) is None:
            self.say("history", "ok", f"no migration was applied yet: the first `apply` creates `{name}`")
            return
        history = session.history()
        last = max((a.version for a in history.applied if a.state is VersionState.APPLIED), default=None)
        at = f"at version {last}" if last else "at no version"
        self.say("history", "ok", f"`{name}` is valid, {at}")
        self._lock(history)

    def _lock(self, history: History) -> None:
        if history.lock is not None:
            self.say(
                "lock",
                "note",
                f"held by {history.lock.words()}",
                "wait for it; `icemigrate unlock` releases the lock of a process that hangs",
            )
        else:
            self.say("lock", "ok", "no process holds the lock")
        for applied in history.applied:
            if applied.state is VersionState.INTERRUPTED:
                self.say(
                    "lock",
                    "note",
                    f"migration {applied.version} was interrupted",
                    "`icemigrate apply` finishes it, `icemigrate rollback` undoes it",
                )

    def whole_spark(self, chosen: Environment) -> None:
        """Start Spark, and let it read the tables that the catalog's reader reads."""
        if any(
            c.state == "failed" and c.name in ("pyspark", "java", "jars", "connect") for c in self.checkups
        ):
            self.say("session", "skipped", "Spark was not started: see the failed checks above")
            return
        from icemigrate.spark.java_errors import convert_java_errors

        with self.trying("session"):
            if uses_connect(chosen, None):
                opened = open_connect_session(connect_settings(chosen))
                text = f"runs Spark {opened.version} and has catalog `{chosen.catalog.name}`"
                opened.stop()
                self.say("session", "ok", f"the Spark Connect server answers: it {text}")
                return
            if chosen.catalog.type == "sqlite" and not Path(chosen.catalog.uri or "").exists():
                # Iceberg would make the file.
                self.say("session", "skipped", "Spark was not started: the first `apply` creates the catalog")
                return
            engine = open_engine(chosen, None)
            history = TableName.parse(self.project.history)
            location = engine.metadata_location(history)
            if location is None:
                self.say("session", "ok", f"Spark starts and reaches catalog `{chosen.catalog.name}`")
                return
            # A REST catalog returns the metadata, so loading a table may read no file.
            with convert_java_errors():
                there = bool(engine.java.table(history).io().newInputFile(location).exists())
            if not there:
                raise EngineError(f"Spark cannot find file {location}, which the catalog names")
            self.say(
                "session",
                "ok",
                f"Spark starts, reaches catalog `{chosen.catalog.name}`, and reads the files of `{history}`",
            )


def _catalog_key(environment: Environment) -> tuple[str, tuple[object, ...]]:
    """The identity of an environment's catalog, without its credentials."""
    settings = catalog_settings(environment)
    name = settings.name if settings.type in ("sqlite", "sql") else ""
    return settings.type, (settings.public_uri, settings.warehouse, name)
