"""A server in memory that speaks the part of Iceberg's REST protocol that changes tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import unquote, urlsplit

from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.apply_updates import apply_updates

TABLE_PATH = "/v1/{prefix}/namespaces/{namespace}/tables"
ENDPOINTS = [
    "GET /v1/{prefix}/namespaces",
    "POST /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "DELETE /v1/{prefix}/namespaces/{namespace}",
    f"GET {TABLE_PATH}",
    f"POST {TABLE_PATH}",
    *(f"{method} {TABLE_PATH}/{{table}}" for method in ("GET", "POST", "DELETE")),
    "POST /v1/{prefix}/tables/rename",
]
TRANSACTIONS = "POST /v1/{prefix}/transactions/commit"
_CURRENT = {
    "current-schema-id": "current-schema-id",
    "default-spec-id": "default-spec-id",
    "last-assigned-field-id": "last-column-id",
}


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, kind: str, message: str = "no") -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


class RestTables(ThreadingHTTPServer):
    """Tables in memory.

    :ivar root: the folder of its tables.
    :ivar creates: what it does with a table that is staged: ``staged``, ``at once``, or ``never`` commits it.
    :ivar faults: for each change of a table in turn: ``before`` fails without making it, ``after`` makes it
        and fails, ``cut`` makes it and closes the connection, ``garbled`` makes it and answers no JSON,
        ``empty`` makes it and answers an empty object, a number is a status.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.tables: dict[TableName, dict[str, Any]] = {}
        self.staged: dict[TableName, dict[str, Any]] = {}
        self.namespaces: set[tuple[str, ...]] = set()
        self.endpoints = list(ENDPOINTS)
        self.creates = "staged"
        self.root = "s3://lake"
        self.faults: list[str | int] = []
        self.config: Any = {}
        self.credentials: Any = []
        self.requests: list[str] = []
        self.bodies: list[Any] = []
        self.lock = Lock()

    @property
    def uri(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def location(self, name: TableName) -> str:
        """A new location for each version of a table's metadata."""
        return f"{self.root}/{name}/metadata/{len(self.tables[name]['metadata-log']):05d}-x.metadata.json"

    def commit(self, changes: list[Any]) -> list[TableName]:
        """Apply all changes, or none."""
        after = {}
        for change in changes:
            identifier = change["identifier"]
            name = TableName(tuple(identifier["namespace"]), identifier["name"])
            now = self.tables.get(name)
            is_creation = any(one["type"] == "assert-create" for one in change["requirements"])
            if now is None and (not is_creation or self.creates == "never"):
                raise Refused(404, "NoSuchTableException", f"Table does not exist: {name}")
            for one in change["requirements"]:
                self._require(one, now)
            previous = None if now is None else self.location(name)
            after[name] = apply_updates(now, change["updates"], previous_location=previous, now_ms=2_000)
        self.tables |= after
        return list(after)

    def _require(self, one: Any, now: Any) -> None:
        kind = one["type"].removeprefix("assert-")
        if kind == "create":
            is_met = now is None
        elif kind == "table-uuid":
            is_met = now["table-uuid"] == one["uuid"]
        elif kind == "ref-snapshot-id":
            is_met = now["refs"].get(one["ref"], {}).get("snapshot-id") == one["snapshot-id"]
        else:
            is_met = now[_CURRENT[kind]] == one[kind]
        if not is_met:
            raise Refused(409, "CommitFailedException", f"Requirement failed: {kind}")

    def create(self, name: TableName, body: Any) -> dict[str, Any]:
        """Create or stage a table, with field ids of its own."""
        if name in self.tables:
            raise Refused(409, "AlreadyExistsException")
        fields = [{**field, "id": number} for number, field in enumerate(body["schema"]["fields"], 1)]
        made = apply_updates(
            None,
            [
                {"action": "add-schema", "schema": {**body["schema"], "fields": fields}},
                {"action": "set-current-schema", "schema-id": -1},
                {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
                {"action": "set-default-spec", "spec-id": -1},
                {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
                {"action": "set-default-sort-order", "sort-order-id": -1},
                {"action": "set-location", "location": body.get("location", f"{self.root}/{name}")},
                {"action": "set-properties", "updates": body["properties"]},
            ],
            previous_location=None,
            now_ms=1_000,
        )
        if self.creates == "at once" or not body["stage-create"]:
            self.tables[name] = made
        return made


@contextmanager
def rest_tables() -> Iterator[RestTables]:
    """A running server."""
    with RestTables() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and content in one packet: a second one waits 40 ms
    server: RestTables

    def do_GET(self) -> None:
        self._handle(None)

    def do_DELETE(self) -> None:
        self._handle(None)

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self._handle(None if self.path.endswith("oauth/tokens") else json.loads(content))

    def _handle(self, body: Any) -> None:
        path = urlsplit(self.path).path.removeprefix("/v1/").split("/")
        is_change = self.command != "GET" and path[-1] != "tokens"
        with self.server.lock:
            self.server.requests.append(f"{self.command} {self.path}")
            if is_change:
                self.server.bodies.append(body)
            fault = self.server.faults.pop(0) if is_change and self.server.faults else None
            try:
                if isinstance(fault, int):
                    raise Refused(fault, "Refused")
                if fault == "before":
                    raise Refused(503, "ServiceUnavailableException")
                answer = self._answer(path, body)
            except Refused as refused:
                answer = {"error": {"message": str(refused), "type": refused.kind, "code": refused.status}}
                self._send(refused.status, json.dumps(answer).encode())
                return
        if fault == "cut":
            self.close_connection = True
        elif fault == "after":
            self._send(502, b"<html>a gateway</html>")
        else:
            contents = {"garbled": b"<html>", "empty": b"{}"}
            self._send(200, contents.get(str(fault)) or json.dumps(answer).encode())

    def _answer(self, path: list[str], body: Any) -> Any:
        server = self.server
        namespace = tuple(unquote(path[1]).split("\x1f")) if len(path) > 1 else ()
        if path == ["config"]:
            return {"defaults": {}, "overrides": {}, "endpoints": server.endpoints}
        if path[0] == "oauth":
            return {"access_token": "fresh", "token_type": "bearer"}
        if path == ["transactions", "commit"]:
            server.commit(body["table-changes"])
            return {}
        if path == ["tables", "rename"]:
            return self._rename(*(TableName(tuple(i["namespace"]), i["name"]) for i in body.values()))
        if path == ["namespaces"]:
            if body is not None:
                if tuple(body["namespace"]) in server.namespaces:
                    raise Refused(409, "AlreadyExistsException")
                server.namespaces.add(tuple(body["namespace"]))
            return {"namespaces": sorted(server.namespaces), **(body or {})}
        if namespace not in server.namespaces:
            raise Refused(404, "NoSuchNamespaceException")
        if len(path) == 2:
            if self.command == "DELETE":
                server.namespaces.remove(namespace)
            return {"namespace": namespace, "properties": {}}
        if len(path) == 3:
            if body is not None:
                name = TableName(namespace, body["name"])
                made = server.create(name, body)
                return {"metadata": made, "config": server.config, "storage-credentials": server.credentials}
            tables = [n.name for n in server.tables if n.namespace == namespace]
            return {"identifiers": [{"namespace": namespace, "name": name} for name in tables]}
        return self._table(TableName(namespace, unquote(path[3])), body)

    def _table(self, name: TableName, body: Any) -> Any:
        server = self.server
        if body is not None:
            server.commit([body])
        if name not in server.tables:
            raise Refused(404, "NoSuchTableException", f"Table does not exist: {name}")
        answer = {"metadata-location": server.location(name), "metadata": server.tables[name]}
        if self.command == "DELETE":
            del server.tables[name]
        if self.command == "GET":
            answer |= {"config": server.config, "storage-credentials": server.credentials}
        return answer

    def _rename(self, name: TableName, new: TableName) -> Any:
        tables = self.server.tables
        if name not in tables:
            raise Refused(404, "NoSuchTableException")
        if new in tables:
            raise Refused(409, "AlreadyExistsException")
        tables[new] = tables.pop(name)
        return {}

    def _send(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""
