"""A line to a server that can be cut and mended: from outside, a server that is gone and comes back."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Lock, Thread


class Cable:
    """Passes on what comes to a port of 127.0.0.1.

    :param to: the server's port.
    """

    def __init__(self, to: int) -> None:
        self._to = to
        self._is_cut = False
        self._ends: set[socket.socket] = set()
        self._mutex = Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])

    def __enter__(self) -> Cable:
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Break every connection, and whichever is tried from now on."""
        with self._mutex:
            self._is_cut = True
            ends, self._ends = self._ends, set()
        for end in ends:
            _close(end)

    def mend(self) -> None:
        """Let new connections through."""
        self._is_cut = False

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # it was closed
            if self._is_cut:
                _close(near)
                continue
            far = socket.create_connection(("127.0.0.1", self._to))
            with self._mutex:
                self._ends |= {near, far}
            for one, other in ((near, far), (far, near)):
                Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
    _close(one)
    _close(other)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
