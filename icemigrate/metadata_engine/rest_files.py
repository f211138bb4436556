"""Files of the tables of a REST catalog, with the credentials that its server hands out for each table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.metadata_engine.file_stores import TableFiles

_VENDED = frozenset(
    {
        "adls.account-host",
        "adls.account-key",
        "adls.account-name",
        "adls.sas-token",
        "adls.token",
        "client.access-key-id",
        "client.region",
        "client.secret-access-key",
        "client.session-token",
        "gcs.oauth2.token",
        "gcs.oauth2.token-expires-at",
        "gcs.project-id",
        "gcs.service.host",
        "s3.access-key-id",
        "s3.endpoint",
        "s3.force-virtual-addressing",
        "s3.region",
        "s3.secret-access-key",
        "s3.session-token",
    }
)
"""What a server may set for a table's files.  Others name programs (``py-io-impl``,
``s3.retry-strategy-impl``) or settings of this machine (``s3.profile-name``)."""
_VENDED_PREFIX = "adls.sas-token."


class RestFiles:
    """See :class:`~icemigrate.metadata_engine.table_store.FileStore`.

    A location uses the credentials of the longest prefix that the server named, else the catalog's settings.
    """

    def __init__(self, settings: CatalogSettings) -> None:
        self._settings = settings
        self._default = TableFiles(settings)
        self._lock = Lock()
        self._by_prefix: dict[str, tuple[Mapping[str, str], TableFiles]] = {}
        # A run has thousands of prefixes, of few lengths: one look-up for each length, not for each prefix.
        self._lengths: tuple[int, ...] = ()

    def read(self, location: str) -> bytes:
        """See :class:`~icemigrate.metadata_engine.table_store.FileStore`."""
        return self._files(location).read(location)

    def write(self, location: str, *content: bytes) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.FileStore`."""
        self._files(location).write(location, *content)

    def write_file(self, location: str, source: Path) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.FileStore`."""
        self._files(location).write_file(location, source)

    def delete(self, location: str) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.FileStore`."""
        self._files(location).delete(location)

    def use_credentials_of(self, answer: Mapping[str, Any], location: str) -> None:
        """Use the credentials in a server's answer for a table's files.

        :param answer: as in the schema ``LoadTableResult``; parts of another form are ignored.
        :param location: the table's.
        """
        config = _vended(answer.get("config"))
        prefixes = {location.rstrip("/") + "/": config}
        credentials = answer.get("storage-credentials")
        for part in credentials if isinstance(credentials, list) else ():
            if isinstance(part, Mapping) and isinstance(part.get("prefix"), str):
                prefixes[part["prefix"]] = {**config, **_vended(part.get("config"))}
        with self._lock:
            for prefix, properties in prefixes.items():
                known = self._by_prefix.get(prefix)
                if known is None or known[0] != properties:
                    files = TableFiles(self._settings.with_properties(properties))
                    self._by_prefix[prefix] = (properties, files)
                    if len(prefix) not in self._lengths:
                        self._lengths = tuple(sorted({*self._lengths, len(prefix)}, reverse=True))

    def _files(self, location: str) -> TableFiles:
        with self._lock:
            for length in self._lengths:
                if (found := self._by_prefix.get(location[:length])) is not None:
                    return found[1]
            return self._default


def _vended(config: object) -> dict[str, str]:
    if not isinstance(config, Mapping):
        return {}
    return {
        key: str(value) for key, value in config.items() if key in _VENDED or key.startswith(_VENDED_PREFIX)
    }
