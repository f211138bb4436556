"""Traces of the batches of a run, sent with OTLP over HTTP.

The standard variables of OpenTelemetry configure them, such as ``OTEL_EXPORTER_OTLP_ENDPOINT``
(`OpenTelemetry Environment Variable Specification
<https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>`_).  The spans of a batch
are made when the batch is complete, from the times of its phases.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import nlargest
from typing import Any

from icemigrate.errors import IcemigrateError, MissingExtra, extra_hint
from icemigrate.pipeline.batch_result import BatchPhase, BatchResult
from icemigrate.redaction import redact_secrets
from icemigrate.versions import ICEMIGRATE

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_MOST_TABLES = 100
"""Commits of a batch that have a span: those that take longest, and those of tables with a problem."""
_LONGEST_TEXT = 2000


def is_tracing(variables: Mapping[str, str]) -> bool:
    """Whether the variables ask for traces: they name an endpoint or the exporter ``otlp``."""
    if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = variables.get("OTEL_TRACES_EXPORTER", "").strip()
    if exporter:
        return exporter == "otlp"
    return any(variables.get(name, "").strip() for name in _ENDPOINTS)


@contextmanager
def batch_traces(
    notice: Callable[[str], None], variables: Mapping[str, str] = os.environ
) -> Iterator[BatchTraces | None]:
    """Send traces until the block ends; ``None`` where the variables ask for none.

    :param notice: gets a line where traces cannot be sent, which is no error of the run.
    """
    if not is_tracing(variables):
        yield None
        return
    protocol = next((variables[name] for name in _PROTOCOLS if variables.get(name)), "http/protobuf")
    if protocol != "http/protobuf":
        notice(f"Traces are not sent: the protocol is `{protocol}`, and only `http/protobuf` is supported")
        yield None
        return
    try:
        traces = BatchTraces(notice, variables)
    except MissingExtra as error:
        notice(f"Traces are not sent: {error.message}; {error.hint}")
        yield None
        return
    try:
        yield traces
    except IcemigrateError as error:
        traces.fail(error)
        raise
    finally:
        traces.close()


class BatchTraces:
    """Makes the spans of batches and sends them in the background.

    :raises MissingExtra: OpenTelemetry's SDK or its exporter is not installed.
    """

    def __init__(self, notice: Callable[[str], None], variables: Mapping[str, str]) -> None:
        try:
            import opentelemetry.trace as trace_api
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise MissingExtra("OpenTelemetry's SDK is not installed", extra_hint("tracing")) from error
        # Its texts go to standard error as they are; the exporter below reports failures.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)
        is_named = "OTEL_SERVICE_NAME" in variables or "service.name=" in variables.get(
            "OTEL_RESOURCE_ATTRIBUTES", ""
        )
        resource = Resource.create({} if is_named else {"service.name": "icemigrate"})
        self._trace = trace_api
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(_Exporter(OTLPSpanExporter(), notice)))
        self._tracer = self._provider.get_tracer("icemigrate.ingest", ICEMIGRATE)

    def add(self, batch: BatchResult) -> None:
        """Send the spans of a complete batch."""
        problems = {table.table: table.problem for table in batch.tables if table.problem is not None}
        attributes = {
            "icemigrate.batch": batch.number,
            "icemigrate.entries": batch.entries,
            "icemigrate.rows": batch.rows,
            "icemigrate.tables": batch.table_count,
            "icemigrate.quarantined": batch.quarantined,
            "icemigrate.deferred": batch.deferred,
        }
        root = self._tracer.start_span(
            "ingest batch", self._empty_context(), attributes=attributes, start_time=batch.began_ns
        )
        context = self._trace.set_span_in_context(root, self._empty_context())
        for phase in shown_phases(batch.phases, problems):
            table = {} if phase.table is None else {"icemigrate.table": _text(phase.table)}
            span = self._tracer.start_span(phase.name, context, attributes=table, start_time=phase.began_ns)
            if phase.table is not None and (problem := problems.get(phase.table)) is not None:
                span.set_status(self._trace.StatusCode.ERROR, _text(problem))
            span.end(phase.ended_ns)
        root.end(max((phase.ended_ns for phase in batch.phases), default=batch.began_ns))

    def fail(self, error: IcemigrateError) -> None:
        """Send a span of the error that ends the run."""
        now_ns = time.time_ns()
        span = self._tracer.start_span("ingest error", self._empty_context(), start_time=now_ns)
        span.set_status(self._trace.StatusCode.ERROR, _text(error.message))
        span.end(now_ns)

    def close(self) -> None:
        """Send what is left, within the timeout of the exporter."""
        self._provider.shutdown()

    @staticmethod
    def _empty_context() -> Any:
        from opentelemetry.context import Context

        return Context()


def shown_phases(phases: Sequence[BatchPhase], problems: Mapping[str, str | None]) -> tuple[BatchPhase, ...]:
    """The phases that have a span: all but the shortest commits of a batch with many tables."""
    commits = [phase for phase in phases if phase.table is not None]
    if len(commits) <= _MOST_TABLES:
        return tuple(phases)
    order = [
        (phase.table in problems, phase.ended_ns - phase.began_ns, -index)
        for index, phase in enumerate(commits)
    ]
    longest = {-index for _, _, index in nlargest(_MOST_TABLES, order)}
    left_out = {id(phase) for index, phase in enumerate(commits) if index not in longest}
    return tuple(phase for phase in phases if id(phase) not in left_out)


def _text(text: str) -> str:
    return redact_secrets(text)[:_LONGEST_TEXT]


class _Exporter:
    """Exports spans, and reports once that this fails.

    :param exporter: the ``SpanExporter`` of OpenTelemetry.
    """

    def __init__(self, exporter: Any, notice: Callable[[str], None]) -> None:
        self._exporter, self._notice = exporter, notice
        self._is_reported = False

    def export(self, spans: Any) -> Any:
        """Export spans."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        try:
            result = self._exporter.export(spans)
        except Exception:  # of the libraries below; a run does not depend on its traces
            result = SpanExportResult.FAILURE
        if result is not SpanExportResult.SUCCESS and not self._is_reported:
            self._is_reported = True
            self._notice("Traces are lost: the endpoint of OTLP does not take them")
        return result

    def shutdown(self) -> None:
        """Close the exporter."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what the exporter keeps."""
        return bool(self._exporter.force_flush(timeout_millis))
