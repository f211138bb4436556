"""The read-only interface of every catalog.

What changes a catalog is in :mod:`icemigrate.spark` and :mod:`icemigrate.metadata_engine`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from icemigrate.catalog.capabilities import Capabilities
from icemigrate.iceberg.file_evidence_values import FieldQuery, MissingValues, ValueShare, WiderFiles
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partition_evolution import FilesBySpec
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Type
from icemigrate.iceberg.views import View
from icemigrate.redaction import MASK, is_secret_setting, redact_secrets
from icemigrate.system.deadline import DEFAULT_SECONDS


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """How to reach one catalog; every ``${NAME}`` is already replaced.

    :param name: the catalog's name; on SQL catalogs it is the key of the rows, so Spark must use the same.
    :param type: ``sqlite``, ``sql``, ``rest``, ``glue`` or ``hive``.
    :param uri: for ``sqlite`` a path, ``sqlite:///path`` or ``jdbc:sqlite:path``; otherwise in PyIceberg's
        form.
    :param warehouse: root of the tables' locations; for ``rest`` the server's warehouse.
    :param properties: all other settings, under PyIceberg's keys (``s3.endpoint``, ``credential``, …).
    :param timeout_s: the maximum time for one answer.
    """

    name: str
    type: str
    uri: str | None = None
    warehouse: str | None = None
    # Never shown: these contain credentials.
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = DEFAULT_SECONDS

    def with_properties(self, properties: Mapping[str, str]) -> CatalogSettings:
        """The same settings with more properties, which override those of the same names."""
        merged = {**self.properties, **properties}
        return CatalogSettings(self.name, self.type, self.uri, self.warehouse, merged, self.timeout_s)

    def scrub(self, text: str) -> str:
        """A text, such as an error of a driver, without the secrets of this catalog."""
        secrets = [v for k, v in self.properties.items() if is_secret_setting(k)]
        # A credential is `key:secret`, and drivers quote either half.
        secrets += [part for value in secrets for part in value.split(":")]
        if self.uri and (password := _password(self.uri)):
            secrets.append(password)
        for secret in sorted(filter(None, secrets), key=len, reverse=True):
            # As a separate word: a short secret is part of many words.
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", MASK, text)
        return redact_secrets(text)

    @property
    def public_uri(self) -> str:
        """The URI without user, password and query, which contain secrets."""
        before, separator, after = (self.uri or "").partition("?")[0].partition("://")
        if not separator:
            return before
        host, slash, path = after.partition("/")
        return f"{before}://{host.rpartition('@')[2]}{slash}{path}"


def _password(uri: str) -> str | None:
    try:
        return urlsplit(uri).password
    except ValueError:
        return None


class Catalog(Protocol):
    """A catalog that can be read.

    Every method may raise :class:`~icemigrate.errors.CatalogError` (not reached, not allowed, not a catalog)
    or :class:`~icemigrate.errors.MetadataError` (a table's metadata file is missing or damaged).
    """

    @property
    def settings(self) -> CatalogSettings:
        """The settings that it was opened with."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of this kind of catalog."""
        ...

    @property
    def identity(self) -> str:
        """Which catalog this is, for a saved plan to be bound to: without secrets, and equal on every machine
        that reaches the same one by the same address."""
        ...

    def load(
        self,
        names: Iterable[TableName],
        *,
        with_writers: bool = False,
        known: Mapping[TableName, Table] | None = None,
    ) -> Mapping[TableName, Table | None]:
        """The tables of these names; ``None`` for a name without a table.  A view does not count as a table.

        :param with_writers: include recent writers; a server has to send every snapshot for that.
        :param known: tables as they are recorded: an equal column becomes the same object, which makes
            comparisons fast.
        """
        ...

    def metadata_json(self, name: TableName) -> dict[str, Any] | None:
        """A table's complete metadata file as JSON; ``None`` where there is no such table.

        :raises MetadataError: a part of it is damaged, even one that :meth:`load` does not read.
        """
        ...

    def metadata_at(self, name: TableName, location: str) -> dict[str, Any] | None:
        """An older metadata file of a table as JSON; ``None`` where it is gone or cannot be read."""
        ...

    def layout(self, name: TableName) -> FilesBySpec | None:
        """The number of a table's data files for each of its partition specs.

        ``None`` where there is no such table, or where its manifest list does not show that or cannot be
        read, which is not an error.
        """
        ...

    def rows_with_values(
        self, name: TableName, fields: Mapping[int, frozenset[int]]
    ) -> Mapping[int, ValueShare] | None:
        """By field, how many rows are in files that contain values of it.

        ``None`` where there is no such table, or where its manifests do not show that quickly.

        :param fields: each with the fields that have metrics of their own: itself, or its nested fields.
        """
        ...

    def missing_values(
        self, name: TableName, snapshot_id: int, fields: Mapping[int, FieldQuery]
    ) -> Mapping[int, MissingValues] | None:
        """By field, how many rows of a snapshot have no value of it.

        ``None`` as in :meth:`rows_with_values`, and where the snapshot has expired.
        """
        ...

    def wider_files(self, name: TableName, fields: Mapping[int, Type]) -> Mapping[int, WiderFiles] | None:
        """By field, the live files of all branches that cannot be read under a type.

        ``None`` where there is no such table.

        :param fields: leaf fields, each with the type.
        """
        ...

    def metadata_location(self, name: TableName) -> str | None:
        """The location of a table's current metadata file; ``None`` where there is no such table."""
        ...

    def read_file(self, location: str) -> bytes:
        """The content of a manifest or a manifest list of a table.

        :raises Exception: any exception of the storage's library.
        """
        ...

    def tables(self, namespace: tuple[str, ...] | None = None) -> tuple[TableName, ...]:
        """The tables directly in the namespace, or of the whole catalog; sorted."""
        ...

    def views(self, namespace: tuple[str, ...]) -> tuple[TableName, ...]:
        """The views directly in the namespace, sorted; none where the catalog has no views."""
        ...

    def load_views(self, names: Iterable[TableName]) -> tuple[View, ...]:
        """The views of these names; one that cannot be read has the reason, one that is gone is missing."""
        ...

    def namespaces(self, among: Iterable[tuple[str, ...]] | None = None) -> tuple[tuple[str, ...], ...]:
        """All namespaces at all depths, or those of ``among`` that exist; sorted.

        A server is asked for all of them one by one, and for some only at the namespaces directly above.
        """
        ...

    def default_location(self, name: TableName) -> str:
        """Where Spark would put a table of this name that is created without a location."""
        ...

    def close(self) -> None:
        """Close connections; the catalog is not used after that."""
        ...
