"""Object storage that DuckDB reads itself: S3, and what speaks its protocol, with keys from the project file.

All other ways to sign in (profiles, roles, tokens of a catalog) are left to PyIceberg.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from icemigrate.frozen import Frozen
from icemigrate.table_data.duckdb_session import text_literal

_SCHEMES = ("s3", "s3a", "s3n")
"""Names of one storage: a manifest may write another one than the table's metadata."""
_UNDERSTOOD = frozenset(
    {
        "s3.endpoint",
        "s3.region",
        "s3.access-key-id",
        "s3.secret-access-key",
        "s3.session-token",
        "s3.force-virtual-addressing",
    }
)
"""PyIceberg's settings; with any other one, such as a proxy, DuckDB could read something else."""
_DEFAULT_REGION = "us-east-1"


class ObjectStorage(Frozen):
    """A storage that DuckDB signs in to.

    :param secret: the parameters of ``CREATE SECRET``, in SQL.
    """

    secret: Mapping[str, str]

    @property
    def statement(self) -> str:
        """What lets DuckDB read the storage."""
        listed = ", ".join(f"{name} {value}" for name, value in self.secret.items())
        return f"CREATE TEMPORARY SECRET icemigrate (TYPE s3, {listed})"


def find_object_storage(properties: Mapping[str, str]) -> ObjectStorage | None:
    """The storage of a catalog's settings; ``None`` where DuckDB does not know how to sign in.

    :param properties: PyIceberg's.
    """
    key, secret = properties.get("s3.access-key-id"), properties.get("s3.secret-access-key")
    others = {name for name in properties if name.startswith(("s3.", "client."))} - _UNDERSTOOD
    if not key or not secret or others:
        return None
    found = {"KEY_ID": text_literal(key), "SECRET": text_literal(secret)}
    if token := properties.get("s3.session-token"):
        found["SESSION_TOKEN"] = text_literal(token)
    found["REGION"] = text_literal(properties.get("s3.region") or _DEFAULT_REGION)
    is_virtual = properties.get("s3.force-virtual-addressing", "").lower()
    if endpoint := properties.get("s3.endpoint"):
        url = urlsplit(endpoint)
        if url.scheme not in ("http", "https") or not url.netloc or url.path.strip("/"):
            return None
        found["ENDPOINT"] = text_literal(url.netloc)
        found["USE_SSL"] = "true" if url.scheme == "https" else "false"
        is_virtual = is_virtual or "false"
    found["URL_STYLE"] = "'path'" if is_virtual == "false" else "'vhost'"
    return ObjectStorage(found)


def object_folders(location: str) -> tuple[str, ...]:
    """A folder of such a storage under each of its names, with a slash at its end; empty for others."""
    scheme, separator, path = location.partition("://")
    if not separator or scheme not in _SCHEMES:
        return ()
    return tuple(f"{name}://{path.rstrip('/')}/" for name in _SCHEMES)
