"""A project and its environments as frozen values that cannot print a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal, NoReturn, TypeAlias

from icemigrate.diagnostics import FilePosition
from icemigrate.files.parse.yaml_nodes import YamlNode
from icemigrate.files.read.for_each import Lists
from icemigrate.files.read.migration_file import UNSET, Retention, Unset
from icemigrate.project.sink_choice import SinkChoice
from icemigrate.redaction import MASK, register_secret
from icemigrate.system.deadline import DEFAULT_SECONDS
from icemigrate.system.repository_boundary import repository_top


class Secret:
    """A text that is ``***`` wherever it is printed, formatted, copied or logged.

    Only :meth:`reveal` returns the text.  It cannot be pickled, and JSON refuses it.  Every output masks it
    from its creation on (:mod:`icemigrate.redaction`), because exceptions of drivers quote it.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text
        if "${" not in text:
            register_secret(text)
            # A credential is `id:secret`, and drivers quote either half.
            for part in text.split(":"):
                register_secret(part)

    def reveal(self) -> str:
        """The text itself, for the client that needs it."""
        return self._text

    def __repr__(self) -> str:
        return MASK

    def __format__(self, _spec: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, _memo: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written anywhere")


Setting: TypeAlias = "str | Secret"
CatalogType: TypeAlias = Literal["sqlite", "sql", "rest", "hive", "glue"]


@dataclass(frozen=True, slots=True)
class CatalogDescription:
    """One description of a catalog for both Spark and PyIceberg.

    :param name: Spark's name for it; for SQL catalogs also the name in its rows.
    :param type: ``jdbc`` in the file is ``sql`` here.
    :param uri: for ``sqlite`` the absolute path of the file; for ``sql`` a URL without user and password.
    :param warehouse: absolute where it is a folder.
    :param timeout_s: the maximum time for one answer.
    """

    name: str
    type: CatalogType
    uri: str | None = field(default=None, repr=False)
    warehouse: str | None = None
    user: str | None = None
    password: Secret | None = None
    credential: Secret | None = None
    token: Secret | None = None
    properties: Mapping[str, Setting] = field(default_factory=dict)
    timeout_s: float = DEFAULT_SECONDS


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """The object store of the tables' files."""

    endpoint: str | None = None
    path_style: bool | None = None
    region: str | None = None
    access_key: Secret | None = None
    secret_key: Secret | None = None
    session_token: Secret | None = None
    properties: Mapping[str, Setting] = field(default_factory=dict)


ApplyWith: TypeAlias = Literal["spark", "metadata", "auto"]


@dataclass(frozen=True, slots=True)
class SparkConfig:
    """The Spark that applies changes.

    :param master: ``None`` for local mode.
    :param remote: a Spark Connect server; at most one of it and ``master`` is given.
    :param jars: an absolute folder with Iceberg's jars.
    :param token: what the server asks for.
    """

    master: str | None = None
    remote: str | None = field(default=None, repr=False)
    jars: Path | None = None
    conf: Mapping[str, Setting] = field(default_factory=dict)
    token: Secret | None = None


@dataclass(frozen=True, slots=True)
class TableOverride:
    """Settings of one environment for the tables that match a pattern; never their schema."""

    tables: str
    place: FilePosition = field(compare=False)
    properties: Mapping[str, str | None] = field(default_factory=dict)
    retention: Retention | Unset = UNSET
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """A catalog with settings, where migrations are applied.

    :param keep_tags: how long the tags of a migration are kept; ``None`` for ever.
    :param disposable: whether ``reset`` may drop its tables.
    :param apply_with: what commits changes of metadata: Spark, Python alone, or Python with Spark for steps
        that need it; ``None`` for Spark in ``apply`` and Python for undos and the history.
    """

    name: str
    catalog: CatalogDescription
    storage: StorageSettings = StorageSettings()
    spark: SparkConfig = SparkConfig()
    namespaces: Mapping[str, str] = field(default_factory=dict)
    overrides: tuple[TableOverride, ...] = ()
    record: Literal["tags", "history"] = "tags"
    publish: Literal["atomic", "direct"] = "atomic"
    keep_tags: timedelta | None = None
    disposable: bool = False
    apply_with: ApplyWith | None = None


@dataclass(frozen=True, slots=True)
class RuleSetting:
    """The project's settings of one rule of ``check``.

    :param level: ``off``, ``note``, ``warning`` or ``error``; ``None`` for the default.
    :param options: by key; an age is in milliseconds.
    """

    level: str | None = None
    options: Mapping[str, str | int] = field(default_factory=dict)


NO_SETTING = RuleSetting()


@dataclass(frozen=True, slots=True)
class SqlFiles:
    """SQL files that are searched for uses of changed objects.

    :param paths: files, folders and patterns, inside the folder of the project file, each with its position.
    :param dialect: SQLGlot's name of it.
    :param namespace: the default namespace; empty where the file sets none.
    :param manifest: the manifest of dbt, where it is not in the folder that dbt writes to.
    """

    paths: tuple[tuple[str, FilePosition], ...]
    dialect: str
    dialect_place: FilePosition = field(compare=False)
    namespace: tuple[str, ...] = ()
    manifest: tuple[str, FilePosition] | None = None


DEFAULT_QUARANTINE = "telemetry.quarantine"


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """What ``ingest`` drains, where its options give nothing else.

    :param log: the absolute folder of the segments, or its URL.
    :param checkpoint: the absolute folder of the progress, or its URL.
    :param tables: patterns by kind, such as ``otel.${tenant}_traces``.
    :param quarantine: the table of entries that cannot be read.
    :param retention: how long drained segments stay; ``None`` for ever.
    :param segments_per_batch: at most.
    :param metrics_address: where the server of metrics listens; ``None`` for no server.
    :param health_limit: how long entries may wait without a batch that completes.
    :param sources: addresses, such as ``file:otel/traces.json?tenant=acme``.
    :param sinks: where the rows of each tenant go.
    :param batch_bytes: of the segments of a batch, at most; ``None`` where their number is the limit.
    :param min_batch_bytes: of the segments that wait, which start a batch of a continuous run; ``None`` where
        each interval starts one.
    :param max_batch_delay: how long entries wait for ``min_batch_bytes`` at most.
    :param column_kinds: words of the kinds whose unknown attributes are counted for columns.
    """

    log: str | None = None
    checkpoint: str | None = None
    tables: Mapping[str, str] = field(default_factory=dict)
    quarantine: str = DEFAULT_QUARANTINE
    retention: timedelta | None = None
    segments_per_batch: int = 64
    metrics_address: str | None = None
    health_limit: timedelta = timedelta(minutes=10)
    sources: tuple[str, ...] = ()
    sinks: SinkChoice = field(default_factory=SinkChoice)
    batch_bytes: int | None = None
    min_batch_bytes: int | None = None
    max_batch_delay: timedelta = timedelta(minutes=1)
    column_kinds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Project:
    """The project file, or its defaults where there is none.

    :param root: the absolute folder of the project file, to which paths in it are relative.
    :param environments: as written, with ``${NAME}``; :func:`~icemigrate.project.choose_environment` returns
        a usable one.
    :param default_environment: ``None`` when there are several and the file does not choose one.
    :param history: the table of the project's history.
    :param rules: settings of rules, by their ids.
    :param trash_max_age: how long dropped tables stay in the trash before ``maintain`` drops them
        permanently.
    :param impact: SQL that reads or writes the tables.
    :param public_variables: names of environment variables whose values may be printed and stored.
    :param file: the project file, as shown to the user; ``None`` where there is none.
    :param pipeline: the log that ``ingest`` drains, and its tables.
    :param apply_with: replaces that of every environment, see :class:`Environment`.
    """

    name: str
    root: Path
    migrations_dir: Path
    environments: Mapping[str, Environment]
    default_environment: str | None
    lists: Lists = field(default_factory=dict)
    history: str = "icemigrate.history"
    file: str | None = None
    nodes: Mapping[str, YamlNode] = field(default_factory=dict, compare=False, repr=False)
    rules: Mapping[str, RuleSetting] = field(default_factory=dict)
    trash_max_age: timedelta = timedelta(days=30)
    impact: tuple[SqlFiles, ...] = ()
    public_variables: frozenset[str] = frozenset()
    pipeline: PipelineSettings = PipelineSettings()
    apply_with: ApplyWith | None = None

    @property
    def top(self) -> Path:
        """The root of the repository, inside which all files of the project must be."""
        return repository_top(self.root)
