"""Who applies, and by what means."""

from __future__ import annotations

import getpass
import socket

from icemigrate.engine.port import Engine
from icemigrate.engine.publish import Publisher
from icemigrate.engine.publish_direct import DirectPublisher
from icemigrate.frozen import Frozen


class Operator(Frozen):
    """Who applies, and from where."""

    user: str
    host: str


def operator() -> Operator:
    """Who runs this process, by the operating system."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = "unknown"
    return Operator(user, socket.gethostname())


class Ways(Frozen):
    """How changes come to tables.

    :param marked: publishes with the migration's marker.
    :param unmarked: publishes without it, for undoing.
    """

    marked: Publisher
    unmarked: Publisher


def directly(engine: Engine) -> Ways:
    """Statements on the tables themselves."""
    return Ways(DirectPublisher(engine), DirectPublisher(engine, tags=False))
