"""A project and its environments as frozen values that cannot print a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal, NoReturn, TypeAlias

from icemigrate.deadline import DEFAULT_SECONDS
from icemigrate.declare.migration import UNSET, Retention, Unset
from icemigrate.declare.nodes import Node
from icemigrate.diagnostics import Place
from icemigrate.files.boundary import repository_top
from icemigrate.redaction import MASK, hide


class Secret:
    """A text that shows itself as ``***`` wherever it is printed, formatted, copied or logged.

    Only :meth:`reveal` gives the text. It cannot be pickled, and JSON refuses it.  Every output masks it from
    the moment it is made (:mod:`icemigrate.redaction`), since exceptions of drivers quote it.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text
        if "${" not in text:
            hide(text)
            # A credential is `id:secret`, and drivers quote either half.
            for part in text.split(":"):
                hide(part)

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
    """One description of a catalog for Spark and PyIceberg alike.

    :param name: Spark's name for it; for SQL catalogs also the name in its rows.
    :param type: ``jdbc`` in the file is ``sql`` here.
    :param uri: for ``sqlite`` the absolute path of the file; for ``sql`` a URL without user and password.
    :param warehouse: absolute where it is a folder.
    :param timeout_s: how long it may take for one answer.
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
    """The object store that holds the files of the tables."""

    endpoint: str | None = None
    path_style: bool | None = None
    region: str | None = None
    access_key: Secret | None = None
    secret_key: Secret | None = None
    session_token: Secret | None = None
    properties: Mapping[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """The Spark that carries changes out.

    :param master: ``None`` for local mode.
    :param remote: a Spark Connect server; at most one of it and ``master`` is given.
    :param jars: an absolute folder that holds Iceberg's jars.
    """

    master: str | None = None
    remote: str | None = None
    jars: Path | None = None
    conf: Mapping[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Override:
    """What differs in one environment for the tables that fit a pattern; never their schema."""

    tables: str
    place: Place = field(compare=False)
    properties: Mapping[str, str | None] = field(default_factory=dict)
    retention: Retention | Unset = UNSET
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """Where migrations are applied.

    :param keep_tags: how long the tags of a migration are kept; ``None`` for ever.
    """

    name: str
    catalog: CatalogDescription
    storage: StorageSettings = StorageSettings()
    spark: SparkSettings = SparkSettings()
    namespaces: Mapping[str, str] = field(default_factory=dict)
    overrides: tuple[Override, ...] = ()
    record: Literal["tags", "history"] = "tags"
    publish: Literal["atomic", "direct"] = "atomic"
    keep_tags: timedelta | None = None


@dataclass(frozen=True, slots=True)
class RuleSetting:
    """What a project says to one rule of ``check``.

    :param level: ``off``, ``note``, ``warning`` or ``error``; ``None`` where it stays as it is.
    :param options: by key; an age is in milliseconds.
    """

    level: str | None = None
    options: Mapping[str, str | int] = field(default_factory=dict)


NO_SETTING = RuleSetting()


@dataclass(frozen=True, slots=True)
class SqlFiles:
    """SQL that is searched for what migrations change.

    :param paths: files, folders and patterns, below the folder of the project file, each with its place.
    :param dialect: as SQLGlot calls it.
    :param namespace: what a table without one belongs to; empty where the file does not say it.
    """

    paths: tuple[tuple[str, Place], ...]
    dialect: str
    dialect_place: Place = field(compare=False)
    namespace: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Project:
    """The project file, or what stands in for it where there is none.

    :param root: the absolute folder of the project file; relative paths in it begin here.
    :param environments: as written, ``${NAME}`` and all;
        :func:`~icemigrate.project.choose_environment` gives one to work with.
    :param default_environment: ``None`` when there are several and the file does not say which.
    :param history: the table that holds the project's history.
    :param rules: what the file says to rules, by their ids.
    :param trash_max_age: how long dropped tables stay in the trash before ``maintain`` drops them for good.
    :param impact: SQL that reads or writes the tables.
    :param public_variables: names of variables of the environment whose values may be printed and stored.
    :param file: the project file, as shown to the user; ``None`` where there is none.
    """

    name: str
    root: Path
    migrations_dir: Path
    environments: Mapping[str, Environment]
    default_environment: str | None
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    history: str = "icemigrate.history"
    file: str | None = None
    nodes: Mapping[str, Node] = field(default_factory=dict, compare=False, repr=False)
    rules: Mapping[str, RuleSetting] = field(default_factory=dict)
    trash_max_age: timedelta = timedelta(days=30)
    impact: tuple[SqlFiles, ...] = ()
    public_variables: frozenset[str] = frozenset()

    @property
    def top(self) -> Path:
        """The top of the repository that all files of the project must lie in."""
        return repository_top(self.root)
