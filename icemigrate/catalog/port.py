"""What icemigrate asks of a catalog, whatever kind it is; reading only.

Everything that changes a catalog goes through Spark (:mod:`icemigrate.engine`), so that there is one writer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from icemigrate.catalog.capabilities import Capabilities
from icemigrate.deadline import DEFAULT_SECONDS
from icemigrate.model.evidence import Gaps, Share, Sought, WiderFiles
from icemigrate.model.layout import Layout
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.model.types import Type
from icemigrate.redaction import MASK, is_secret_setting, redact


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """How to reach one catalog; every ``${NAME}`` is already replaced.

    :param name: the catalog's name; on SQL catalogs it is the key of the rows, so Spark must use the same.
    :param type: ``sqlite``, ``sql``, ``rest``, ``glue`` or ``hive``.
    :param uri: for ``sqlite`` a path, ``sqlite:///path`` or ``jdbc:sqlite:path``; else as PyIceberg has it.
    :param warehouse: root of the tables' locations; for ``rest`` what the server calls a warehouse.
    :param properties: everything else, under PyIceberg's keys (``s3.endpoint``, ``credential``, …).
    :param timeout_s: how long it may take for one answer.
    """

    name: str
    type: str
    uri: str | None = None
    warehouse: str | None = None
    # Never shown: credentials stand in here.
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = DEFAULT_SECONDS

    def scrub(self, text: str) -> str:
        """A text that may hold secrets of this catalog (an error of a driver), without them."""
        secrets = [v for k, v in self.properties.items() if is_secret_setting(k)]
        # A credential is `key:secret`, and drivers quote either half.
        secrets += [part for value in secrets for part in value.split(":")]
        if self.uri and (password := _password(self.uri)):
            secrets.append(password)
        for secret in sorted(filter(None, secrets), key=len, reverse=True):
            # As a word of its own: a short one stands in half the words of a sentence.
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", MASK, text)
        return redact(text)

    @property
    def public_uri(self) -> str:
        """The URI without user, password and query, which is where secrets stand."""
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
        """What it was opened with."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What this kind of catalog can do."""
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
        """The tables of these names; ``None`` for a name that no table has.  A view counts as no table.

        :param with_writers: with those who wrote them of late; a server has to send every snapshot for it.
        :param known: the tables as they are known to be: a column that is written so is the same object, and
            takes no time to compare.
        """
        ...

    def metadata_json(self, name: TableName) -> dict[str, Any] | None:
        """A table's whole metadata file as JSON; ``None`` where there is no such table."""
        ...

    def metadata_at(self, name: TableName, location: str) -> dict[str, Any] | None:
        """An older metadata file of a table as JSON; ``None`` where it is gone or cannot be read."""
        ...

    def layout(self, name: TableName) -> Layout | None:
        """How a table's data files are spread over the ways it was partitioned.

        ``None`` where there is no such table, or where that cannot be found out from its manifest list: it is
        no fault if that may not be read.
        """
        ...

    def held(self, name: TableName, fields: Mapping[int, frozenset[int]]) -> Mapping[int, Share] | None:
        """By field, how many rows stand in files that hold values of it.

        ``None`` where there is no such table, or where its manifests do not tell it quickly.

        :param fields: each with the fields that have metrics of their own: itself, or those below it.
        """
        ...

    def gaps(
        self, name: TableName, snapshot_id: int, fields: Mapping[int, Sought]
    ) -> Mapping[int, Gaps] | None:
        """By field, how many rows of a snapshot have no value of it.

        ``None`` as in :meth:`held`, and where the snapshot has expired.
        """
        ...

    def wider_files(self, name: TableName, fields: Mapping[int, Type]) -> Mapping[int, WiderFiles] | None:
        """By field, the live files of all branches that cannot be read under a type.

        ``None`` where there is no such table.

        :param fields: fields without fields below them, each with the type.
        """
        ...

    def metadata_location(self, name: TableName) -> str | None:
        """Where a table's current metadata file lies; ``None`` where there is no such table."""
        ...

    def tables(self, namespace: tuple[str, ...] | None = None) -> tuple[TableName, ...]:
        """The tables right in a namespace, or of the whole catalog; sorted."""
        ...

    def namespaces(self) -> tuple[tuple[str, ...], ...]:
        """All namespaces at all depths; sorted."""
        ...

    def default_location(self, name: TableName) -> str:
        """Where Spark would put a table of this name that is created without a location."""
        ...

    def close(self) -> None:
        """Let go of connections; the catalog is not used after it."""
        ...
