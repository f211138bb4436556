"""Settings, kinds and files."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

from icemigrate.catalog import CATALOG_READERS, CatalogSettings, metadata_files, open_catalog
from icemigrate.catalog.capabilities import CAPABILITY_MATRIX, kind_of, with_endpoints
from icemigrate.catalog.metadata_files import decode_metadata, local_path, read_metadata
from icemigrate.errors import CatalogError, MetadataError, MissingExtra, extra_hint
from icemigrate.iceberg.names import TableName
from icemigrate.system.inflate import MIB

SECRETIVE = CatalogSettings(
    "lake",
    "rest",
    "https://me:hush@host:8181/api?token=quiet",
    "s3://lake",
    {"credential": "id:topsecret", "s3.secret-access-key": "SECRET", "s3.endpoint": "https://s3"},
)


def test_an_unknown_kind_is_answered_with_the_nearest() -> None:
    with pytest.raises(CatalogError, match="no kind of catalog named `sqllite`") as raised:
        open_catalog(CatalogSettings("lake", "sqllite"))
    assert raised.value.hint == "did you mean `sqlite`?"
    with pytest.raises(CatalogError) as raised:
        open_catalog(CatalogSettings("lake", "zzz"))
    assert raised.value.hint == "known are sqlite, sql, rest, glue, hive"


def test_secrets_are_never_shown() -> None:
    assert "topsecret" not in repr(SECRETIVE)
    assert SECRETIVE.public_uri == "https://host:8181/api"
    text = "login of id:topsecret with hush and SECRET at https://s3 failed, topsecret"
    assert SECRETIVE.scrub(text) == "login of *** with *** and *** at https://s3 failed, ***"
    assert open_catalog(SECRETIVE).identity == "rest:https://host:8181/api#s3://lake"


def test_a_short_secret_does_not_garble_other_words() -> None:
    settings = CatalogSettings("lake", "rest", "http://host", None, {"token": "a"})
    assert settings.scrub("a bad token: a") == "*** bad token: ***"


@pytest.mark.parametrize("uri", ["http://[broken", None, "catalog.db"])
def test_an_address_without_a_password_hides_nothing(uri: str | None) -> None:
    settings = CatalogSettings("lake", "rest", uri)
    assert settings.scrub("text") == "text"
    assert settings.public_uri == (uri or "")


def test_identities_tell_catalogs_apart() -> None:
    def identity(type_: str, uri: str | None, name: str = "lake", **properties: str) -> str:
        keys = {key.replace("_", "."): value for key, value in properties.items()}
        return open_catalog(CatalogSettings(name, type_, uri, "s3://lake", keys)).identity

    assert identity("sql", "postgresql://me:hush@host/db") == "sql:postgresql://host/db#lake"
    assert identity("sql", "postgresql://host/db", "sea") == "sql:postgresql://host/db#sea"
    assert identity("rest", "https://host", "sea") == identity("rest", "https://host", "lake")
    assert (
        identity("glue", None, glue_region="eu-central-1", glue_id="42") == "glue:eu-central-1/42#s3://lake"
    )


@pytest.mark.parametrize("kind", CATALOG_READERS)
def test_every_kind_has_its_capabilities(kind: str) -> None:
    assert CAPABILITY_MATRIX[kind].compare_and_swap


def test_s3_tables_is_known_by_its_address() -> None:
    kind = kind_of("rest", "https://s3tables.eu-west-1.amazonaws.com/iceberg")
    assert not CAPABILITY_MATRIX[kind].tags
    assert kind_of("rest", "https://catalog.example.com") == "rest"
    assert kind_of("rest", None) == "rest"


def test_a_rest_server_says_whether_it_commits_several_tables() -> None:
    listed = ("GET /v1/{prefix}/namespaces", "POST /v1/{prefix}/transactions/commit")
    assert with_endpoints(CAPABILITY_MATRIX["rest"], listed).multi_table_commit
    assert not with_endpoints(CAPABILITY_MATRIX["rest"], listed[:1]).multi_table_commit


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a/b", "/a/b"),
        ("a/b", "a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("file:///a/b%20c", "/a/b c"),
        ("file:/a/b c", "/a/b c"),
        ("s3://lake/a", None),
        ("hdfs:/a", None),
    ],
)
def test_which_locations_are_on_this_machine(location: str, path: str | None) -> None:
    assert local_path(location) == (None if path is None else Path(path))


def test_a_percent_sign_may_be_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "b%20c").touch()
    assert local_path(f"file:{tmp_path}/b%20c") == tmp_path / "b%20c"


def test_gzip_is_known_by_its_first_bytes() -> None:
    assert decode_metadata(gzip.compress(b'{"a": 1}')) == {"a": 1}
    assert decode_metadata(b'{"a": 1}') == {"a": 1}


def test_a_file_that_is_too_large_or_cut_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_files, "_MOST_BYTES", MIB)
    file = tmp_path / "v1.metadata.json"
    for content, why in (
        (gzip.compress(b" " * (MIB + 1)), "its compressed data holds more than 1 MiB"),
        (gzip.compress(b'{"a": 1}')[:-4], "its compressed data is damaged: it ends early"),
        (b"\x1f\x8b\x08" + b"x" * 40, "its compressed data is damaged: Error -3"),
    ):
        file.write_bytes(content)
        with pytest.raises(MetadataError) as caught:
            read_metadata(TRADES, str(file))
        assert caught.value.message.startswith(
            f"table `db.trades`: its metadata file {file} is damaged: {why}"
        )


TRADES = TableName(("db",), "trades")


@pytest.mark.parametrize(
    ("settings", "module", "extra"),
    [
        (CatalogSettings("lake", "sql", "sqlite:///x.db"), "sqlalchemy", "sql"),
        (CatalogSettings("lake", "sql", "postgresql://me:hush@host/db"), "sqlalchemy", "postgres"),
        (CatalogSettings("lake", "rest", "http://127.0.0.1:1"), "pyiceberg.catalog.rest", "rest"),
        (
            CatalogSettings("lake", "rest", "http://127.0.0.1:1", None, {"rest.sigv4-enabled": "true"}),
            "pyiceberg.catalog.rest",
            "sigv4",
        ),
        (CatalogSettings("lake", "glue"), "pyiceberg.catalog.glue", "glue"),
        (CatalogSettings("lake", "hive", "thrift://127.0.0.1:1"), "pyiceberg.catalog.hive", "hive"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    settings: CatalogSettings, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as raised:
        open_catalog(settings).load([TRADES])
    assert raised.value.hint == extra_hint(extra)
    assert "hush" not in raised.value.message


def test_a_server_that_does_not_answer() -> None:
    settings = CatalogSettings("lake", "rest", "http://127.0.0.1:1", None, {"token": "hush"})
    with pytest.raises(CatalogError, match=r"catalog `lake` \(rest, http://127.0.0.1:1\): ") as raised:
        open_catalog(settings).tables()
    assert raised.value.hint == "check the address, and that the server is running"
    assert "hush" not in raised.value.message
    assert "\n" not in raised.value.message


def test_a_sql_catalog_needs_an_address() -> None:
    with pytest.raises(CatalogError, match="catalog `lake` has no `uri`"):
        open_catalog(CatalogSettings("lake", "sql")).tables()
