"""Connections to a Hive metastore, without a server; the metastore itself is in ``tests/servers``."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

from icemigrate.catalog import CatalogSettings
from icemigrate.metadata_engine.hive_client import HiveClient

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_connection_that_cannot_be_closed_does_not_undo_a_change() -> None:
    @contextmanager
    def connect() -> Iterator[object]:
        yield object()
        raise OSError("the transport is closed")

    client = HiveClient(CatalogSettings("lake", "hive", "thrift://metastore:9083"))
    client.__dict__["_kind"] = SimpleNamespace(connect=connect)
    done = []
    with client.connected():
        done.append("swapped")
    assert done == ["swapped"]
