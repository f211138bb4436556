"""Reads an environment's node as :class:`Environment`, with ``${NAME}`` replaced for the chosen one only."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping as Dict
from pathlib import Path
from typing import Literal, cast
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import IcemigrateError, Mistakes, UsageError, os_error_reason
from icemigrate.files.parse.json_schemas import load_schema
from icemigrate.files.parse.schema_validation import validate_node
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode
from icemigrate.files.read.migration_file import UNSET
from icemigrate.files.read.node_values import (
    as_mapping,
    list_items,
    mapping_entries,
    read_duration,
    read_flag,
    read_properties,
    read_retention,
    scalar_text,
)
from icemigrate.project.environment_variables import VariableResolver
from icemigrate.project.project_checks import catalog_mistakes
from icemigrate.project.project_values import (
    ApplyWith,
    CatalogDescription,
    CatalogType,
    Environment,
    Project,
    Secret,
    Setting,
    SparkConfig,
    StorageSettings,
    TableOverride,
)
from icemigrate.redaction import hide_credentials, is_secret_setting, parameters_in, register_secret
from icemigrate.system.deadline import DEFAULT_SECONDS
from icemigrate.system.repository_boundary import OutsideRepository, resolve_inside

STATE_FOLDER = ".icemigrate"


def embedded_environment(root: Path, name: str = "local") -> Environment:
    """The default that needs no file: a SQLite catalog and a warehouse in ``.icemigrate/``."""
    state = root / STATE_FOLDER
    return Environment(
        name, CatalogDescription(name, "sqlite", str(state / "catalog.db"), str(state / "warehouse"))
    )


def local_state(project: Project) -> tuple[Path, ...]:
    """The files of catalogs and the folders of tables on this machine, as the project file names them."""
    catalogs = [environment.catalog for environment in project.environments.values()]
    files = [one.uri for one in catalogs if one.type == "sqlite" and one.uri is not None]
    folders = [one.warehouse for one in catalogs if one.warehouse is not None]
    paths = (text.removeprefix("file:") for text in (*files, *folders) if "${" not in text)
    return tuple(Path(path) for path in paths if path.startswith("/"))


def choose_environment(project: Project, name: str | None, environ: Dict[str, str]) -> Environment:
    """The chosen environment, its ``${NAME}`` replaced.

    :param name: ``None`` for the project's default.
    :param environ: the process environment.
    :raises UsageError: there is no such environment.
    :raises Mistakes: variables are missing (all are named), or have invalid values.
    :raises IcemigrateError: a link leads a file of the environment out of the repository.
    """
    known = ", ".join(project.environments)
    if name is None:
        name = project.default_environment
        if name is None:
            raise UsageError("no environment is chosen", f"choose one with `--env`: {known}")
    if name not in project.environments:
        hint = did_you_mean(name, project.environments) or f"known environments: {known}"
        raise UsageError(f"there is no environment `{name}`", hint)
    chosen = _chosen(project, name, environ)
    _require_inside(project, chosen)
    return dataclasses.replace(chosen, apply_with=project.apply_with or chosen.apply_with)


def _require_inside(project: Project, environment: Environment) -> None:
    """Refuse a catalog, a warehouse or jars that a link in the repository leads out of it.

    A path that is outside as written is the choice of its author, and visible to a reviewer.

    :raises IcemigrateError: there is such a link.
    """
    catalog = environment.catalog
    files = (catalog.uri, catalog.warehouse) if catalog.type == "sqlite" else ()
    local = [Path(file) for file in files if file is not None and ":/" not in file]
    for path in (*local, *filter(None, (environment.spark.jars,))):
        absolute = Path(os.path.normpath(project.root.resolve() / os.path.relpath(path, project.root)))
        if absolute.is_relative_to(project.top):
            try:
                resolve_inside(absolute, project.top)
            except OutsideRepository as error:
                raise IcemigrateError(
                    f"`{path}` of environment `{environment.name}` is not used: {os_error_reason(error)}",
                    "write the real path in the project file",
                ) from error


def _chosen(project: Project, name: str, environ: Dict[str, str]) -> Environment:
    if name not in project.nodes:
        return project.environments[name]
    variables = VariableResolver(environ, project.public_variables)
    node = variables.put_in(project.nodes[name])
    if variables.mistakes:
        raise Mistakes(tuple(variables.mistakes))
    schema = load_schema("project")
    wrong = validate_node(node, schema, schema.definitions["environment"], name)
    wrong = wrong or tuple(catalog_mistakes(as_mapping(as_mapping(node).get("catalog"))))
    if wrong:
        raise Mistakes(variables.without_values(wrong))
    return build_environment(name, as_mapping(node), project.root)


def build_environment(name: str, node: YamlMapping, root: Path) -> Environment:
    """Read an environment that fits the schema and :mod:`icemigrate.project.project_checks`."""
    record, publish = _text(node, "record") or "tags", _text(node, "publish") or "atomic"
    return Environment(
        name,
        _catalog(name, as_mapping(node.get("catalog")), root),
        _storage(node.get("storage")),
        _spark(node.get("spark"), root),
        {key.text: scalar_text(value) for key, value in mapping_entries(node.get("namespaces"))},
        tuple(_override(as_mapping(item)) for item in list_items(node.get("overrides"))),
        cast('Literal["tags", "history"]', record),
        cast('Literal["atomic", "direct"]', publish),
        None if node.get("keep_tags") is None else read_duration(node.get("keep_tags")),
        read_flag(node.get("disposable")) is True,
        cast("ApplyWith | None", _text(node, "apply_with")),
    )


def _text(node: YamlMapping, key: str) -> str | None:
    value = node.get(key)
    return None if value is None else scalar_text(value)


def _secret(node: YamlMapping, key: str) -> Secret | None:
    written = _text(node, key)
    return None if written is None else Secret(written)


def _settings(node: YamlNode | None) -> dict[str, Setting]:
    given = {key: value or "" for key, value in read_properties(node).items()}
    return {key: Secret(value) if is_secret_setting(key) else value for key, value in given.items()}


def _catalog(environment: str, node: YamlMapping, root: Path) -> CatalogDescription:
    written = scalar_text(node.get("type"))
    kind = cast(CatalogType, "sql" if written == "jdbc" else written)
    uri, warehouse = _text(node, "uri"), _text(node, "warehouse")
    for address in filter(None, (uri, warehouse)):
        hide_credentials(address)
    user, password = _text(node, "user"), _secret(node, "password")
    if kind == "sqlite":
        file = re.sub(r"^(jdbc:sqlite:|sqlite:///)", "", uri or f"{STATE_FOLDER}/catalog.db")
        uri = str(_below(root, file))
        warehouse = warehouse or f"{STATE_FOLDER}/warehouse"
    elif kind == "sql" and uri is not None:
        uri, own_user, own_password = split_credentials(uri)
        user = user or own_user
        password = password or (Secret(own_password) if own_password else None)
    if warehouse is not None and kind == "sqlite" and ":/" not in warehouse:
        warehouse = str(_below(root, warehouse))
    return CatalogDescription(
        _text(node, "name") or environment,
        kind,
        uri,
        warehouse,
        user,
        password,
        _secret(node, "credential"),
        _secret(node, "token"),
        _settings(node.get("properties")),
        DEFAULT_SECONDS
        if node.get("timeout") is None
        else read_duration(node.get("timeout")).total_seconds(),
    )


def _below(root: Path, path: str) -> Path:
    return root / Path(path).expanduser()


def split_credentials(uri: str) -> tuple[str, str | None, str | None]:
    """A database URL without user and password, and those two.

    ``postgresql+psycopg2://me:pw@host/db``, ``jdbc:postgresql://host/db?user=me&password=pw`` and mixtures.
    A text that is not a URL, such as an unreplaced ``${NAME}``, is returned as it is.
    """
    try:
        parts = urlsplit(uri.removeprefix("jdbc:"))
    except ValueError:
        return uri, None, None
    userinfo, _, host = parts.netloc.rpartition("@")
    user, _, password = userinfo.partition(":")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    user, password = unquote(user) or query.pop("user", ""), unquote(password) or query.pop("password", "")
    bare = parts._replace(netloc=host, query=urlencode(query)).geturl()
    return bare, user or None, password or None


def _storage(node: YamlNode | None) -> StorageSettings:
    if node is None:
        return StorageSettings()
    given = as_mapping(node)
    return StorageSettings(
        _text(given, "endpoint"),
        None if given.get("path_style") is None else read_flag(given.get("path_style")),
        _text(given, "region"),
        _secret(given, "access_key"),
        _secret(given, "secret_key"),
        _secret(given, "session_token"),
        _settings(given.get("properties")),
    )


def _spark(node: YamlNode | None, root: Path) -> SparkConfig:
    if node is None:
        return SparkConfig()
    given = as_mapping(node)
    jars, remote = _text(given, "jars"), _text(given, "remote")
    for name, value in parameters_in(remote or ""):
        if is_secret_setting(name):
            register_secret(unquote(value))
    return SparkConfig(
        _text(given, "master"),
        remote,
        None if jars is None else _below(root, jars),
        _settings(given.get("conf")),
        _secret(given, "token"),
    )


def _override(node: YamlMapping) -> TableOverride:
    policy, tables = node.get("retention"), node.get("tables")
    assert tables is not None
    kept = UNSET if policy is None else read_retention(policy)
    return TableOverride(
        scalar_text(tables),
        tables.place,
        read_properties(node.get("properties")),
        kept,
        _text(node, "location"),
    )
