"""A proxy that loses a request or its answer: the client sees a broken connection, and nothing else."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Event, Lock, Thread


class CuttingProxy:
    """Passes on what comes to a port of 127.0.0.1, and breaks connections that :attr:`cuts` asks for.

    :param to: the server's port.
    :param marker: what the client sends in a request whose answer is lost.
    """

    def __init__(self, to: int, marker: bytes) -> None:
        self._to, self._marker = to, marker
        self._lock = Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.cuts: list[str] = []
        """For each request with the marker in turn: ``answer`` loses its answer, ``request`` the request."""
        self.seen = 0
        """The number of requests with the marker."""

    def __enter__(self) -> CuttingProxy:
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                is_cut = Event()
                Thread(target=self._requests, args=(near, far, is_cut), daemon=True).start()
                Thread(target=self._answers, args=(near, far, is_cut), daemon=True).start()

    def _requests(self, near: socket.socket, far: socket.socket, is_cut: Event) -> None:
        with suppress(OSError):
            while data := near.recv(1 << 20):
                cut = self._cut(data)
                if cut == "answer":
                    is_cut.set()
                if cut == "request":
                    break
                far.sendall(data)
        if not is_cut.is_set():
            _close(near, far)

    def _answers(self, near: socket.socket, far: socket.socket, is_cut: Event) -> None:
        with suppress(OSError):
            while data := far.recv(1 << 20):
                if is_cut.is_set():
                    break
                near.sendall(data)
        _close(near, far)

    def _cut(self, data: bytes) -> str | None:
        with self._lock:
            if self._marker not in data:
                return None
            self.seen += 1
            return self.cuts.pop(0) if self.cuts else None


def _close(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
