"""A REST catalog over the tables of a lake, whose answers take one round trip of a network.

``python -m bench.rest_server FOLDER MILLISECONDS`` prints the address and serves until its input ends.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import sys
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_CONFIG = {
    "defaults": {},
    "overrides": {},
    "endpoints": [
        "GET /v1/{prefix}/namespaces",
        "GET /v1/{prefix}/namespaces/{namespace}",
        "GET /v1/{prefix}/namespaces/{namespace}/tables",
    ],
}


class Server(ThreadingHTTPServer):
    """The catalog's tables.

    :param database: the catalog that :func:`bench.lake.make` wrote.
    :param delay_s: how long each answer waits.
    :ivar requests: the paths that clients asked for, in order.
    """

    request_queue_size = 64

    def __init__(self, database: Path, delay_s: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.delay_s = delay_s
        self.requests: list[str] = []
        with closing(sqlite3.connect(database)) as connection:
            rows = connection.execute(
                "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables"
            ).fetchall()
        self.files: dict[tuple[tuple[str, ...], str], str] = {
            (tuple(namespace.split(".")), name): location for namespace, name, location in rows
        }

    def children(self, parent: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The namespaces directly in another one."""
        depth = len(parent) + 1
        inner = (namespace[:depth] for namespace, _ in self.files if len(namespace) >= depth)
        return sorted({namespace for namespace in inner if namespace[:-1] == parent})

    def document(self, key: tuple[tuple[str, ...], str]) -> bytes:
        """The answer to the load of a table."""
        location = self.files[key]
        metadata = gzip.decompress(Path(location.removeprefix("file://")).read_bytes())
        return b'{"metadata-location": %s, "metadata": %s}' % (json.dumps(location).encode(), metadata)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        server.requests.append(self.path)
        time.sleep(server.delay_s)
        url = urlsplit(self.path)
        parts = [unquote(part) for part in url.path.removeprefix("/v1/").split("/")]
        namespace = tuple(parts[1].split("\x1f")) if len(parts) > 1 else ()
        if parts == ["config"]:
            self._send_json(200, _CONFIG)
        elif parts == ["namespaces"]:
            parent = url.query.partition("parent=")[2].partition("&")[0]
            found = server.children(tuple(unquote(parent).split("\x1f")) if parent else ())
            self._send_json(200, {"namespaces": found})
        elif len(parts) == 2:
            self._send_json(200, {"namespace": namespace, "properties": {}})
        elif len(parts) == 3:
            names = [name for there, name in server.files if there == namespace]
            tables = [{"namespace": namespace, "name": name} for name in names]
            self._send_json(200, {"identifiers": tables})
        elif (namespace, parts[3]) in server.files:
            self._send(200, server.document((namespace, parts[3])))
        else:
            error = {"message": "no such table", "type": "NoSuchTableException", "code": 404}
            self._send_json(404, {"error": error})

    def _send_json(self, code: int, value: Any) -> None:
        self._send(code, json.dumps(value).encode())

    def _send(self, code: int, content: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


def main() -> None:
    """Serve a folder that :func:`bench.lake.make` wrote, until the standard input ends."""
    if len(sys.argv) != 3:
        return
    folder, milliseconds = sys.argv[1:]
    with Server(Path(folder) / "catalog.db", int(milliseconds) / 1000) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        sys.stdin.read()
        server.shutdown()


if __name__ == "__main__":
    main()
