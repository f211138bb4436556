"""The address of an HTTP server that ``ingest`` starts."""

from __future__ import annotations

import ipaddress
import re

from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen

LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(r"(?:(\[[0-9a-fA-F:.]+\]|[^:\[\]/\s]*):)?([0-9]{1,5})", re.ASCII)


class ListenAddress(Frozen):
    """Where a server listens.

    :param host: a name or an IP address; one of version 6 without brackets.
    :param port: 0 for any free one.
    """

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def parse_listen_address(text: str) -> ListenAddress:
    """Read ``HOST:PORT``; without the host it is the loopback address.

    :raises UsageError: the text has another form.
    """
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found[2]) > 65_535:
        raise UsageError(
            f"`{text}` is not the address of a server",
            f"give a host and a port, such as `{LOOPBACK}:9464`, or `0.0.0.0:9464` for all networks",
        )
    return ListenAddress((found[1] or LOOPBACK).strip("[]"), int(found[2]))
