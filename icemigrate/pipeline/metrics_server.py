"""An HTTP server with the metrics and the health of a run: ``/metrics``, ``/health``, ``/health/live`` and
``/health/ready``.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Thread
from typing import Any

from icemigrate.errors import EngineError, os_error_reason
from icemigrate.pipeline.pipeline_metrics import PipelineMetrics
from icemigrate.pipeline.run_health import RunHealth
from icemigrate.project.listen_address import ListenAddress

_REQUEST_SECONDS = 2
"""A client that sends nothing for so long is disconnected."""
_MOST_CONNECTIONS = 16
_TEXT = "text/plain; charset=utf-8"


class _Handler(BaseHTTPRequestHandler):
    """Answers ``GET`` and ``HEAD``."""

    server: _Server
    timeout = _REQUEST_SECONDS
    server_version, sys_version = "icemigrate", ""

    def do_GET(self) -> None:
        """Answer."""
        status, type_, content = self.server.page(self.path.partition("?")[0], self.headers.get("Accept", ""))
        self.send_response(status)
        self.send_header("Content-Type", type_)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_HEAD = do_GET  # noqa: N815 (the name that the standard library calls)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the texts are those of the client."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: ListenAddress, metrics: PipelineMetrics, health: RunHealth) -> None:
        self._metrics, self._health = metrics, health
        self._connections = BoundedSemaphore(_MOST_CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        super().__init__((address.host, address.port), _Handler)

    def server_bind(self) -> None:
        """Bind without the look-up of this machine's name, which can take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), int(port)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own; further clients than the most are disconnected."""
        if not self._connections.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one client."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that went away."""

    def page(self, path: str, accepted: str) -> tuple[int, str, bytes]:
        """The status, the type and the content of a page."""
        if path == "/metrics":
            from prometheus_client.exposition import choose_encoder

            encode, type_ = choose_encoder(accepted)
            return 200, type_, encode(self._metrics.registry)
        if path == "/health/live":
            return _health_page(self._health.problem())
        if path in ("/health", "/health/ready"):
            return _health_page(self._health.reason_not_ready())
        return 404, _TEXT, b"the pages are /metrics, /health, /health/live and /health/ready\n"


def _health_page(problem: str | None) -> tuple[int, str, bytes]:
    return (200, _TEXT, b"ok\n") if problem is None else (503, _TEXT, f"{problem}\n".encode())


@contextmanager
def serve_metrics(
    address: ListenAddress, metrics: PipelineMetrics, health: RunHealth
) -> Iterator[ListenAddress]:
    """Serve, until the block ends.

    :returns: where the server listens, with its port.
    :raises EngineError: it cannot listen there.
    """
    try:
        server = _Server(address, metrics, health)
    except OSError as error:
        raise EngineError(
            f"the server of metrics cannot listen at {address}: {os_error_reason(error)}",
            "give another address with `--metrics-address`",
        ) from error
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    thread.start()
    try:
        yield ListenAddress(address.host, server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
