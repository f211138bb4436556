"""The result of ``ingest status``."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count

Seconds: TypeAlias = Annotated[float, Meta(ge=0)]


class TenantIngestStatus(Frozen):
    """The entries of one tenant and kind.

    :param tenant: ``None``, as the kind, for bytes that are no entry of a tenant.
    :param kind: ``traces``, ``logs`` or ``metrics``.
    :param waiting: entries of the log that are in no table yet.
    :param oldest_age_s: how long ago the oldest of them was received, in seconds; ``None`` where none waits.
    :param ingested: entries that the table got.
    :param rows: rows of these entries.
    :param quarantined: entries that cannot be read; the quarantine got them.
    :param problem: why entries stay in the log; ``None`` where none do.
    """

    tenant: str | None
    kind: str | None
    waiting: Count
    oldest_age_s: Seconds | None
    ingested: Count
    rows: Count
    quarantined: Count
    problem: str | None


class IngestStatus(Frozen):
    """What waits in a log, and what is ingested.

    :param log: its folder.
    :param batches: complete batches.
    :param waiting: entries that are in no table yet.
    :param oldest_age_s: how long ago the oldest of them was received, in seconds; ``None`` where none waits.
    :param ingested: entries that tables got.
    :param quarantined: entries that the quarantine got.
    :param drained_segments: segments that are drained and not removed.
    :param tenants: by tenant and kind; first those that wait the longest.
    """

    log: str
    batches: Count
    waiting: Count
    oldest_age_s: Seconds | None
    ingested: Count
    quarantined: Count
    drained_segments: Count
    tenants: tuple[TenantIngestStatus, ...]
