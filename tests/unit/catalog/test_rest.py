"""The REST reader against a small server that speaks the part of the protocol that reading needs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from icemigrate.catalog import Catalog, CatalogSettings, open_catalog
from icemigrate.catalog.pyiceberg_files import first_line
from icemigrate.errors import CatalogError, MetadataError
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.views import ViewQuery
from tests.support.metadata_samples import VIEW, sample

NAMES = {
    TableName(("db",), "trades"): "spark-v2",
    TableName(("db",), "odd {name}/x"): "pyiceberg-v2",
    TableName(("db", "deep"), "flexible"): "spark-v3-variant",
}
TRADES = TableName(("db",), "trades")
LOCATIONS = {("db",): "s3://lake/here/", ("db", "deep"): None}


class Server(ThreadingHTTPServer):
    """Tables, and what was asked of it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.tables: dict[TableName, Any] = {name: sample(file) for name, file in NAMES.items()}
        self.views: dict[TableName, Any] = {}
        self.has_views = True
        self.refuse: list[int] = []
        self.prefix = "/"


class Handler(BaseHTTPRequestHandler):
    """Answers as the REST specification says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        url = urlsplit(self.path)
        server.asked.append(self.path)
        if not url.path.startswith(server.prefix):
            self.send(404, b"<html>nothing here</html>")
        elif server.refuse and "/tables/" in url.path:
            self.fail(server.refuse.pop(), "refused")
        else:
            self.answer(server, url.path.removeprefix("/v1/").split("/"), parse_qs(url.query))

    def answer(self, server: Server, parts: list[str], query: dict[str, list[str]]) -> None:
        namespace = tuple(unquote(parts[1]).split("\x1f")) if len(parts) > 1 else ()
        if parts == ["config"]:
            endpoints = ["GET /v1/{prefix}/namespaces", "GET /v1/{prefix}/namespaces/{namespace}/tables"]
            endpoints += ["GET /v1/{prefix}/namespaces/{namespace}", "POST /v1/{prefix}/transactions/commit"]
            if server.has_views:
                endpoints += [
                    f"GET /v1/{{prefix}}/namespaces/{{namespace}}/views{one}" for one in ("", "/{view}")
                ]
            self.done({"defaults": {}, "overrides": {}, "endpoints": endpoints})
        elif parts == ["namespaces"]:
            parent = tuple(query["parent"][0].split("\x1f")) if "parent" in query else ()
            found = {
                n.namespace[: len(parent) + 1] for n in server.tables if n.namespace[: len(parent)] == parent
            }
            # As some servers do: one without children is answered with the top.
            self.done({"namespaces": sorted(n for n in found if n != parent) or [["db"]]})
        elif len(parts) == 2:
            location = LOCATIONS.get(namespace)
            self.done({"namespace": namespace, "properties": {"location": location} if location else {}})
        elif len(parts) == 3:
            listed = server.views if parts[2] == "views" else server.tables
            found_tables = [n.name for n in listed if n.namespace == namespace]
            if not found_tables:
                self.fail(404, "NoSuchNamespaceException")
                return
            self.done({"identifiers": [{"namespace": namespace, "name": name} for name in found_tables]})
        else:
            name = TableName(namespace, unquote(parts[3]))
            listed = server.views if parts[2] == "views" else server.tables
            if name not in listed:
                self.fail(404, "NoSuchTableException")
                return
            self.done({"metadata-location": f"s3://lake/{name.name}.json", "metadata": listed[name]})

    def done(self, value: Any) -> None:
        self.send(200, json.dumps(value).encode())

    def fail(self, code: int, kind: str) -> None:
        self.send(code, json.dumps({"error": {"message": "no", "type": kind, "code": code}}).encode())

    def send(self, code: int, content: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _open(server: Server, warehouse: str | None = "s3://lake") -> Catalog:
    uri = f"http://127.0.0.1:{server.server_port}"
    return open_catalog(CatalogSettings("lake", "rest", uri, warehouse, {"token": "hush"}))


@pytest.fixture
def catalog(server: Server) -> Iterator[Catalog]:
    catalog = _open(server)
    yield catalog
    catalog.close()


def test_everything_is_listed(catalog: Catalog) -> None:
    assert catalog.namespaces() == (("db",), ("db", "deep"))
    assert catalog.tables() == tuple(sorted(NAMES))
    assert catalog.tables(("nowhere",)) == ()


def test_some_namespaces_are_found_by_listing_those_above_them(server: Server, catalog: Catalog) -> None:
    assert catalog.namespaces([("db",), ("nowhere",), ("db", "deep")]) == (("db",), ("db", "deep"))
    assert catalog.namespaces([("db", "deep", "deeper")]) == ()
    asked = [parse_qs(urlsplit(path).query).get("parent") for path in server.asked if "namespaces" in path]
    assert sorted(filter(None, asked)) == [["db"], ["db\x1fdeep"]]
    assert len(asked) == 3


def test_tables_are_what_the_server_says(catalog: Catalog) -> None:
    nowhere = TableName(("db",), "nowhere")
    loaded = catalog.load([*NAMES, nowhere])
    assert loaded == {
        **{name: table_from_json(sample(file), name) for name, file in NAMES.items()},
        nowhere: None,
    }


def test_only_referenced_snapshots_are_asked_for_unless_all_are_wanted(
    catalog: Catalog, server: Server
) -> None:
    catalog.load([TRADES])
    assert server.asked[-1] == "/v1/namespaces/db/tables/trades?snapshots=refs"
    assert catalog.metadata_json(TRADES) == sample("spark-v2")
    assert server.asked[-1] == "/v1/namespaces/db/tables/trades?snapshots=all"


def test_the_metadata_files_place_is_known(catalog: Catalog) -> None:
    assert catalog.metadata_location(TRADES) == "s3://lake/trades.json"
    assert catalog.metadata_location(TableName(("db",), "nowhere")) is None


def test_a_namespaces_own_location_goes_first(catalog: Catalog, server: Server) -> None:
    assert catalog.default_location(TableName(("db",), "new")) == "s3://lake/here/new"
    deep = TableName(("db", "deep"), "new")
    assert catalog.default_location(deep) == "s3://lake/db/deep/new"
    with pytest.raises(CatalogError, match=r"only the catalog `lake` knows .* `db.deep.new`") as raised:
        _open(server, "a warehouse by name").default_location(deep)
    assert raised.value.hint == "write the table's `location`"


def test_the_server_lists_what_it_can_do(catalog: Catalog) -> None:
    assert catalog.capabilities.multi_table_commit


def test_views_are_listed_by_one_request(catalog: Catalog, server: Server) -> None:
    odd = TableName(("db", "deep"), "odd {name}/x")
    server.views = {odd: sample(VIEW), TableName(("db", "deep"), "damaged"): {"versions": []}}
    assert catalog.capabilities.views
    names = catalog.views(("db", "deep"))
    assert server.asked[-1] == "/v1/namespaces/db%1Fdeep/views"
    assert names == tuple(sorted(server.views))
    damaged, read = catalog.load_views([*names, TRADES])
    assert damaged.problem == "it is not the metadata of a view"
    query = ViewQuery("spark", "SELECT 1 AS one")
    assert (read.name, read.queries, read.namespace) == (odd, (query,), ("default",))
    assert (read.properties["engine_version"], read.created_ms) == ("Spark 4.1.4", 1795824084578)
    assert catalog.views(("nowhere",)) == ()


def test_views_are_not_requested_from_a_server_that_does_not_list_them(server: Server) -> None:
    server.has_views = False
    catalog = _open(server)
    assert not catalog.capabilities.views
    assert catalog.views(("db",)) == ()
    assert not any("views" in asked for asked in server.asked)
    catalog.close()


def test_a_token_that_ran_out_is_renewed_once(catalog: Catalog, server: Server) -> None:
    server.refuse = [419]
    assert catalog.load([TRADES])[TRADES] is not None


@pytest.mark.parametrize(
    ("codes", "hint"),
    [
        ([401, 401], "the server does not accept the credential: check it"),
        ([403], "the credential is accepted, but has no right to this: planning needs to read metadata"),
        ([500], "the server failed: see its log"),
        ([503], "the server failed: see its log"),
    ],
)
def test_a_refusal_is_said_with_what_to_do(
    catalog: Catalog, server: Server, codes: list[int], hint: str
) -> None:
    server.refuse = codes
    with pytest.raises(
        CatalogError, match=r"catalog `lake` \(rest, http://127.0.0.1:\d+\): refused: no"
    ) as raised:
        catalog.load([TRADES])
    assert raised.value.hint == hint


def test_a_proxys_404_is_not_taken_for_a_missing_table(catalog: Catalog, server: Server) -> None:
    """Else every table would be planned as one to create."""
    assert catalog.load([TRADES])[TRADES] is not None
    server.prefix = "/moved/"
    with pytest.raises(CatalogError, match="404"):
        catalog.load([TRADES])


def test_damaged_metadata_is_named(catalog: Catalog, server: Server) -> None:
    del server.tables[TRADES]["location"]
    with pytest.raises(MetadataError, match=r"s3://lake/trades.json is damaged: `location`"):
        catalog.load(list(NAMES))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "HTTPConnectionPool(host='127.0.0.1', port=9): Max retries exceeded with url: /v1 (Caused by "
            "NewConnectionError(\"HTTPConnection(host='127.0.0.1', port=9): Failed to establish a new "
            'connection: [Errno 111] Connection refused"))',
            "the connection failed: Connection refused",
        ),
        (
            "HTTPSConnectionPool(host='nowhere', port=443): Max retries exceeded with url: /v1 (Caused by "
            "NameResolutionError(\"HTTPSConnection(host='nowhere', port=443): Failed to resolve 'nowhere' "
            '([Errno -2] Name or service not known)"))',
            "the host `nowhere` is not known",
        ),
        (
            '(psycopg2.OperationalError) connection to server at "db", port 9 failed: Connection refused\n'
            "\tIs the server running?",
            'connection to server at "db", port 9 failed: Connection refused',
        ),
    ],
)
def test_a_failed_connection_is_one_plain_line(text: str, line: str) -> None:
    assert first_line(text) == line
