"""A server that accepts connections and never finishes an answer."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Event, Thread

WAYS = ("silent", "stalls", "drips")
"""It sends nothing; the beginning of an answer and then nothing; the beginning and then byte by byte."""
HTTP = (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n",)
POSTGRES = (b"N", b"E" + (30_000).to_bytes(4, "big"))
"""No TLS; then the head of a message whose length is a lie."""


class StuckServer:
    """Accepts connections, and answers in one of :data:`WAYS`.

    :param start: how an answer begins; each part is sent when the client has said something.
    """

    def __init__(self, way: str, start: tuple[bytes, ...] = HTTP) -> None:
        self.way, self.start = way, start
        self.end = Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self.end.is_set():
                connection, _ = self.socket.accept()
                Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            for part in self.start if self.way != "silent" else ():
                connection.recv(65536)
                connection.sendall(part)
            while not self.end.wait(0.1):
                if self.way == "drips":
                    connection.sendall(b" ")

    def close(self) -> None:
        """End it and its connections."""
        self.end.set()
        self.socket.close()
