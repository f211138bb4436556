"""The result of ``ingest status``."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count

Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
Rate: TypeAlias = Annotated[float, Meta(ge=0)]


class TenantIngestStatus(Frozen):
    """The entries of one tenant and kind.

    :param tenant: ``None``, as the kind, for bytes that are no entry of a tenant.
    :param kind: ``traces``, ``logs`` or ``metrics``.
    :param waiting: entries of the log that are in no table yet.
    :param oldest_age_s: how long ago the oldest of them was received, in seconds; ``None`` where none waits.
    :param ingested: entries that the table got.
    :param rows: rows of these entries.
    :param quarantined: entries that cannot be read; the quarantine got them.
    :param entries_per_s: entries that the table got in a second, on average of the last 5 to 10 minutes.
    :param problem: why entries stay in the log; ``None`` where none do.
    :param failures: batches in a row whose entries stay in the log.
    :param problem_age_s: how long ago the first of them was, in seconds; ``None`` where there is none.
    """

    tenant: str | None
    kind: str | None
    waiting: Count
    oldest_age_s: Seconds | None
    ingested: Count
    rows: Count
    quarantined: Count
    entries_per_s: Rate
    problem: str | None
    failures: Count
    problem_age_s: Seconds | None


class UnreadCollectorFile(Frozen):
    """A file of the Collector, of which a part is in no segment of the log.

    :param path: absolute.
    :param tenant: where the address or the path of the file gives one; ``None`` where its requests do.
    :param unread_bytes: how long that part is; it can end with half a request.
    :param written_age_s: how long ago the file was written last, in seconds.
    """

    path: str
    tenant: str | None
    unread_bytes: Count
    written_age_s: Seconds


class KafkaPartition(Frozen):
    """A partition of a topic, of which the log has no copy.

    :param topic: its name.
    :param partition: its number.
    :param tenant: where the address or the name of the topic gives one; ``None`` where records do.
    :param next_offset: the first one that no complete batch has; ``None`` where none has records of it.
    :param waiting: records from there on; ``None`` where the brokers were not asked.
    :param oldest_age_s: how old the first of them is, in seconds; ``None`` where none waits.
    """

    topic: str
    partition: Count
    tenant: str | None
    next_offset: Count | None
    waiting: Count | None
    oldest_age_s: Seconds | None


class UnfilledName(Frozen):
    """A column that nothing fills.

    :param column: its name, or the path of a field inside it.
    :param did_you_mean: the field of telemetry that can be meant; ``None`` where none is similar.
    """

    column: str
    did_you_mean: str | None


class UnfilledColumns(Frozen):
    """The columns of the declared tables of one kind that are null in every row (rule IM405).

    :param kind: ``traces``, ``logs`` or ``metrics``.
    :param pattern: the name of the tables, with the placeholder of the tenant.
    :param columns: the columns, in the order of the tables.
    """

    kind: str
    pattern: str
    columns: tuple[UnfilledName, ...]


class IngestStatus(Frozen):
    """What waits in a log, and what is ingested.

    :param log: its folder.
    :param batches: complete batches.
    :param waiting: entries that are in no table yet.
    :param oldest_age_s: how long ago the oldest of them was received, in seconds; ``None`` where none waits.
    :param ingested: entries that tables got.
    :param quarantined: entries that the quarantine got.
    :param entries_per_s: entries that tables got in a second, on average of the last 5 to 10 minutes.
    :param rows_per_s: rows of these entries.
    :param drained_segments: segments that are drained and not removed.
    :param tenants: by tenant and kind; first those that wait the longest.
    :param unfilled_columns: columns of the declared tables that nothing fills, by kind.
    :param unread_files: files of the Collector that have more than the log, in the order of their reading.
    :param kafka: the partitions of topics of Kafka.
    :param kafka_problem: why brokers were not asked, as a clause; ``None`` where they were.
    """

    log: str
    batches: Count
    waiting: Count
    oldest_age_s: Seconds | None
    ingested: Count
    quarantined: Count
    entries_per_s: Rate
    rows_per_s: Rate
    drained_segments: Count
    tenants: tuple[TenantIngestStatus, ...]
    unfilled_columns: tuple[UnfilledColumns, ...] = ()
    unread_files: tuple[UnreadCollectorFile, ...] = ()
    kafka: tuple[KafkaPartition, ...] = ()
    kafka_problem: str | None = None
