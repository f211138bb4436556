"""Where ``ingest`` writes the rows of each tenant, so that a service can move tenant by tenant."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen, field

if TYPE_CHECKING:
    from icemigrate.wal.storage_path import AnyPath


class SinkKind(str, Enum):
    """What the rows of a tenant are written to."""

    PARQUET = "parquet"
    ICEBERG = "iceberg"
    BOTH = "both"

    def __str__(self) -> str:
        return self.value

    @property
    def has_tables(self) -> bool:
        """Whether the rows are in the tenant's tables."""
        return self is not SinkKind.PARQUET

    @property
    def has_files(self) -> bool:
        """Whether the rows are in Parquet files of the tenant's folder."""
        return self is not SinkKind.ICEBERG


def parse_parquet_folder(text: str, root: Path) -> AnyPath:
    """The absolute folder of Parquet files; one on a storage has no settings yet.

    :param root: to which a relative one is.
    :raises UsageError: it is a URL that cannot be used.
    """
    # Every command reads the project file; most projects have no such key.
    from icemigrate.wal.storage_path import StoragePath, open_path

    found = open_path(text)
    return found if isinstance(found, StoragePath) else root / found


class SinkChoice(Frozen):
    """The sink of each tenant.

    :param default: of tenants without one of their own.
    :param tenants: by the tenant's id.
    :param folder: the absolute folder of Parquet files, or one on a storage; ``None`` where no tenant needs
        it.
    """

    default: SinkKind = SinkKind.ICEBERG
    tenants: Mapping[str, SinkKind] = field(default_factory=dict)
    folder: AnyPath | None = None

    def of(self, tenant: str) -> SinkKind:
        """The sink of a tenant."""
        return self.tenants.get(tenant, self.default)

    def require_folder(self) -> SinkChoice:
        """The choice itself, which names a folder where a sink needs one.

        :raises UsageError: it names none.
        """
        if self.folder is None and any(kind.has_files for kind in (self.default, *self.tenants.values())):
            raise UsageError(
                "no folder for Parquet files is given",
                "give `--parquet-folder`, or write `parquet_folder` below `pipeline` in the project file",
            )
        return self
