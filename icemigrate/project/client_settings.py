"""One description of a catalog → the settings of both clients. Only here secrets are revealed."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from icemigrate.project.project_values import (
    CatalogDescription,
    Environment,
    Secret,
    Setting,
    StorageSettings,
)

_BUSY_SECONDS = 60
"""How long either client waits for a SQLite file that another one has locked."""


_S3_PATIENCE = {
    "s3.retry.num-retries": "3",
    "s3.retry.min-wait-ms": "500",
    "s3.retry.max-wait-ms": "4000",
    "http-client.apache.connection-timeout-ms": "3000",
    "http-client.apache.socket-timeout-ms": "10000",
}
"""Retry settings of Spark's S3 client: Iceberg's own five attempts take longer than a minute, in which the
lock of a migration ends.
"""


_OF_STORAGE = ("s3.", "client.", "hdfs.", "gcs.", "adls.")
"""How keys of PyIceberg's storages begin."""


def spark_conf(environment: Environment) -> dict[str, str]:
    """Spark settings for the environment's catalog and storage, then ``spark.conf``.

    The session's settings (master, jars, Iceberg's extensions) belong to the engine.
    """
    catalog = environment.catalog
    prefix = f"spark.sql.catalog.{catalog.name}"
    inner = {
        **_spark_catalog(catalog),
        **_spark_timeouts(catalog),
        **_spark_storage(environment.storage, catalog.warehouse),
    }
    inner.update(_revealed(environment.storage.properties))
    inner.update(_revealed(catalog.properties))
    conf = {prefix: "org.apache.iceberg.spark.SparkCatalog"}
    conf.update({f"{prefix}.{key}": value for key, value in inner.items()})
    conf.update(_revealed(environment.spark.conf))
    return conf


def pyiceberg_properties(environment: Environment) -> dict[str, str]:
    """The properties of ``pyiceberg.catalog.load_catalog(name, **properties)``."""
    catalog = environment.catalog
    found = {**_pyiceberg_catalog(catalog), **_pyiceberg_storage(environment.storage)}
    if catalog.type == "glue" and environment.storage.region is not None:
        found["glue.region"] = environment.storage.region
    found.update(_revealed(environment.storage.properties))
    found.update(_revealed(catalog.properties))
    return found


def storage_properties(environment: Environment) -> dict[str, str]:
    """Of :func:`pyiceberg_properties`, those that say how to sign in to the storage."""
    return {
        key: value for key, value in pyiceberg_properties(environment).items() if key.startswith(_OF_STORAGE)
    }


def _revealed(settings: Mapping[str, Setting]) -> dict[str, str]:
    return {key: value.reveal() if isinstance(value, Secret) else value for key, value in settings.items()}


def _given(settings: Mapping[str, Setting | None]) -> dict[str, str]:
    return _revealed({key: value for key, value in settings.items() if value is not None})


def _location(warehouse: str | None) -> str | None:
    """A folder as a URI, so that Spark does not search it in a cluster's default file system."""
    return f"file://{warehouse}" if warehouse is not None and warehouse.startswith("/") else warehouse


def _spark_catalog(catalog: CatalogDescription) -> dict[str, str]:
    warehouse = _location(catalog.warehouse)
    if catalog.type == "sqlite":
        uri = f"jdbc:sqlite:{catalog.uri}?busy_timeout={_BUSY_SECONDS * 1000}"
        return _given({"type": "jdbc", "uri": uri, "jdbc.schema-version": "V1", "warehouse": warehouse})
    if catalog.type == "sql":
        assert catalog.uri is not None
        scheme, rest = catalog.uri.split("://", 1)
        return _given(
            {
                "type": "jdbc",
                "uri": f"jdbc:{scheme.split('+')[0]}://{rest}",
                "jdbc.schema-version": "V1",
                "jdbc.user": catalog.user,
                "jdbc.password": catalog.password,
                "warehouse": warehouse,
            }
        )
    return _given(_plain(catalog))


def _spark_timeouts(catalog: CatalogDescription) -> dict[str, str]:
    """How long the JVM's client waits for a connection and for each answer."""
    seconds = max(1, round(catalog.timeout_s))
    milliseconds = str(seconds * 1000)
    if catalog.type == "rest":
        connect, answer = "rest.client.connection-timeout-ms", "rest.client.socket-timeout-ms"
        return {connect: milliseconds, answer: milliseconds}
    if catalog.type == "glue":
        connect, answer = "connection-timeout-ms", "socket-timeout-ms"
        return {f"http-client.apache.{key}": milliseconds for key in (connect, answer)}
    if catalog.type == "hive":
        return {"hadoop.hive.metastore.client.socket.timeout": f"{seconds}s"}
    uri = catalog.uri or ""
    if catalog.type == "sql" and uri.startswith("postgresql"):
        keys = ("connectTimeout", "loginTimeout", "socketTimeout")
        return {f"jdbc.{key}": str(seconds) for key in keys} | {"jdbc.tcpKeepAlive": "true"}
    if catalog.type == "sql" and uri.startswith(("mysql", "mariadb")):
        return {f"jdbc.{key}": milliseconds for key in ("connectTimeout", "socketTimeout")}
    return {}


def _pyiceberg_catalog(catalog: CatalogDescription) -> dict[str, str]:
    if catalog.type == "sqlite":
        uri = f"sqlite:///{catalog.uri}?timeout={_BUSY_SECONDS}"
        return _given({"type": "sql", "uri": uri, "warehouse": _location(catalog.warehouse)})
    if catalog.type == "sql":
        return _given({"type": "sql", "uri": _sqlalchemy(catalog), "warehouse": _location(catalog.warehouse)})
    return _given(_plain(catalog))


def _plain(catalog: CatalogDescription) -> dict[str, Setting | None]:
    """Settings with the same names in both clients, for REST, Hive and Glue."""
    return {
        "type": catalog.type,
        "uri": catalog.uri,
        "warehouse": _location(catalog.warehouse) if catalog.type == "hive" else catalog.warehouse,
        "credential": catalog.credential,
        "token": catalog.token,
    }


def _sqlalchemy(catalog: CatalogDescription) -> str:
    assert catalog.uri is not None
    if catalog.user is None:
        return catalog.uri
    login = quote(catalog.user, safe="")
    if catalog.password is not None:
        login += ":" + quote(catalog.password.reveal(), safe="")
    parts = urlsplit(catalog.uri)
    return parts._replace(netloc=f"{login}@{parts.netloc}").geturl()


def _spark_storage(storage: StorageSettings, warehouse: str | None) -> dict[str, str]:
    on_s3 = storage.endpoint is not None or (warehouse or "").startswith(("s3://", "s3a://"))
    path_style = None if storage.path_style is None else str(storage.path_style).lower()
    return _given(
        {
            **(_S3_PATIENCE if on_s3 else {}),
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO" if on_s3 else None,
            "s3.endpoint": storage.endpoint,
            "s3.path-style-access": path_style,
            "client.region": storage.region,
            "s3.access-key-id": storage.access_key,
            "s3.secret-access-key": storage.secret_key,
            "s3.session-token": storage.session_token,
        }
    )


def _pyiceberg_storage(storage: StorageSettings) -> dict[str, str]:
    virtual = None if storage.path_style is None else str(not storage.path_style).lower()
    return _given(
        {
            "s3.endpoint": storage.endpoint,
            "s3.force-virtual-addressing": virtual,
            "s3.region": storage.region,
            "s3.access-key-id": storage.access_key,
            "s3.secret-access-key": storage.secret_key,
            "s3.session-token": storage.session_token,
        }
    )
