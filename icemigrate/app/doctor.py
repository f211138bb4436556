"""``doctor``: try everything that an environment needs, and say what works; reading alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Literal

from icemigrate.app.abilities import abilities
from icemigrate.app.mapping import Names, catalog_settings
from icemigrate.app.spark import open_engine, spark_settings
from icemigrate.app.world import Opened
from icemigrate.catalog import Catalog, open_catalog
from icemigrate.catalog.capabilities import MATRIX, Capabilities, kind_of
from icemigrate.catalog.file_io import file_io
from icemigrate.catalog.files import local_path, read_metadata
from icemigrate.declare.source import shown_path
from icemigrate.engine import jars, java
from icemigrate.errors import EngineError, IcemigrateError, Mistakes, UsageError, extra_hint
from icemigrate.history.properties import History
from icemigrate.model.names import TableName
from icemigrate.project import Environment, Project, choose_environment
from icemigrate.results import Checkup, DoctorResult
from icemigrate.versions import CURRENT, SparkRelease, spark_release


def doctor(project: Project, environment: str | None = None, *, spark: bool = False) -> DoctorResult:
    """Try Java, Spark, jars, catalog, storage, history.

    :param environment: ``None`` for the project's default.
    :param spark: start Spark too, and let it read the catalog.
    :raises UsageError: there is no such environment.
    """
    visit = _Visit(project)
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
        abilities(capabilities or MATRIX[kind]),
    )


@dataclass(slots=True)
class _Visit:
    """One call of :func:`doctor`: every method tries one thing, and none of them raises a fault.

    :param scrub: takes the environment's secrets out of what drivers say.
    """

    project: Project
    checkups: list[Checkup] = field(default_factory=list)
    scrub: Callable[[str], str] = str

    def say(
        self,
        name: str,
        state: Literal["ok", "note", "failed", "skipped"],
        text: str,
        hint: str | None = None,
    ) -> None:
        self.checkups.append(Checkup(name, state, self.scrub(text), hint))

    @contextmanager
    def trying(self, name: str) -> Iterator[None]:
        """What fails inside is said, and the visit goes on."""
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
        where = self.project.file or "no project file: the embedded default"
        self.say("environment", "ok", f"`{chosen.name}` of project `{self.project.name}` ({where})")
        with self.trying("environment"):
            Names(chosen)
        self._sharing(chosen)
        return chosen

    def _sharing(self, chosen: Environment) -> None:
        """Environments with one catalog share the history, and so the versions that count as applied."""
        for name in self.project.environments:
            if name == chosen.name:
                continue
            try:
                other = choose_environment(self.project, name, dict(os.environ))
            except (Mistakes, UsageError):
                continue  # its variables are not set here, so nobody works with it from here
            if _place(other) == _place(chosen):
                self.say(
                    "environment",
                    "note",
                    f"`{chosen.name}` and `{name}` are one catalog with one history: "
                    f"what is applied in one counts as applied in the other",
                    "give each a catalog, or each a project file of its own with another `history:`",
                )

    def spark_parts(self, chosen: Environment) -> None:
        """Everything that Spark needs, without starting it."""
        release = CURRENT
        with self.trying("pyspark"):
            release = self._pyspark()
        with self.trying("java"):
            self.say("java", "ok", str(java.find(release.java)))
            wrong = java.wrong_home(release.java)
            if wrong is not None:
                self.say("java", "note", f"{wrong}, and is passed over", java.home_hint(release.java))
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
        self.say("pyspark", "ok", f"PySpark {version}, for which there is Iceberg {release.iceberg}")
        return release

    def _jars(self, chosen: Environment, release: SparkRelease) -> None:
        settings = spark_settings(chosen)
        ivy = settings.conf.get("spark.jars.ivy")
        found = jars.locate(
            jars.needed(release, settings.catalog_conf),
            settings.packages,
            settings.jars_dir,
            Path(ivy).expanduser() if ivy else None,
        )
        if found.packages:
            names = ", ".join(package.split(":", 1)[1] for package in found.packages)
            hint = f"without a network, put them into a folder and name it in {jars.JARS_VARIABLE}"
            self.say("jars", "note", f"Spark will fetch {names} when it first starts", hint)
        else:
            self.say("jars", "ok", ", ".join(file.name for file in found.files))

    def catalog(self, chosen: Environment) -> Capabilities | None:
        """The catalog, what it holds, and the history in it; its exact capabilities where it answers."""
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
                    self.say(name, "skipped", "not tried, since the catalog does not answer")
                return None
            known = "1 namespace" if len(namespaces) == 1 else f"{len(namespaces)} namespaces"
            self.say("catalog", "ok", f"{catalog.identity} answers, and shows {known}")
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
            self.say("storage", "skipped", "there is no table yet whose files could be read")
            return
        location = catalog.metadata_location(name)
        if location is None:
            self.say("storage", "skipped", f"the catalog does not say where the files of `{name}` are")
            return
        # The answers of a REST catalog hold the metadata, so planning there need never touch a file.
        read_metadata(name, location, file_io(catalog.settings))
        self.say("storage", "ok", f"the files of `{name}` can be read ({location})")

    def _folder(self, folder: Path) -> None:
        there = next(p for p in (folder, *folder.parents) if p.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            self.say(
                "storage",
                "failed",
                f"nothing can be written to the warehouse {shown_path(folder)}",
                f"give this user the right to write to {there}, or set another `warehouse`",
            )
        elif there == folder:
            self.say("storage", "ok", f"the warehouse {shown_path(folder)} can be written to")
        else:
            self.say("storage", "ok", f"the warehouse {shown_path(folder)} will be made by the first `apply`")

    def _history(self, chosen: Environment, catalog: Catalog) -> None:
        world = Opened(self.project, chosen, catalog, Names(chosen))
        name = world.history_name
        if catalog.metadata_location(name) is None:
            self.say("history", "ok", f"nothing was applied yet: `{name}` is made by the first `apply`")
            return
        history = world.history()
        last = max((a.version for a in history.applied if a.standing == "applied"), default=None)
        at = f"at version {last}" if last else "at no version"
        self.say("history", "ok", f"`{name}` is sound, {at}")
        self._lock(history)

    def _lock(self, history: History) -> None:
        if history.lock is not None:
            self.say(
                "lock",
                "note",
                f"held by {history.lock.words()}",
                "wait for it; `icemigrate unlock` takes it away from a process that is gone",
            )
        else:
            self.say("lock", "ok", "nobody is changing tables")
        for applied in history.applied:
            if applied.standing == "interrupted":
                self.say(
                    "lock",
                    "note",
                    f"migration {applied.version} was interrupted",
                    "`icemigrate apply` finishes it, `icemigrate rollback` undoes it",
                )

    def whole_spark(self, chosen: Environment) -> None:
        """Start Spark, and let it read what the catalog's reader reads."""
        if any(c.state == "failed" and c.name in ("pyspark", "java", "jars") for c in self.checkups):
            self.say("session", "skipped", "Spark was not started, since it lacks what is said above")
            return
        from icemigrate.engine.explain import explained

        with self.trying("session"):
            if chosen.catalog.type == "sqlite" and not Path(chosen.catalog.uri or "").exists():
                # Iceberg would make the file.
                self.say("session", "skipped", "Spark was not started: the first `apply` makes the catalog")
                return
            engine = open_engine(chosen, None)
            history = TableName.parse(self.project.history)
            location = engine.metadata_location(history)
            if location is None:
                self.say("session", "ok", f"Spark starts, and reaches catalog `{chosen.catalog.name}`")
                return
            # A REST catalog hands the metadata out, so loading a table need not touch a file.
            with explained():
                there = bool(engine.java.table(history).io().newInputFile(location).exists())
            if not there:
                raise EngineError(f"Spark finds no file {location}, though the catalog names it")
            self.say(
                "session",
                "ok",
                f"Spark starts, reaches catalog `{chosen.catalog.name}`, and reads the files of `{history}`",
            )


def _place(environment: Environment) -> tuple[str, tuple[object, ...]]:
    """What makes two environments one place: the catalog, whatever login is used for it."""
    settings = catalog_settings(environment)
    name = settings.name if settings.type in ("sqlite", "sql") else ""
    return settings.type, (settings.public_uri, settings.warehouse, name)
