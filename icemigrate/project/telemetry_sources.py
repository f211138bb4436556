"""Where ``ingest`` reads telemetry from beside its log: ``--from``, and ``from`` below ``pipeline``.

A source is an address such as ``file:otel/traces.json?tenant=acme`` or
``kafka://broker:9092/otlp_spans?kind=traces&tenant_header=tenant``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import UsageError
from icemigrate.files.read.list_sources import VALUE_RULE
from icemigrate.frozen import Frozen, field
from icemigrate.otlp.tenant_requests import DEFAULT_ATTRIBUTE, TenantRule
from icemigrate.wal.entries import EntryKind, is_tenant_id, tenant_problem

_KINDS = {kind.value: kind for kind in EntryKind}
_FILE_OPTIONS = ("tenant", "tenant_attribute", "kind")
_TENANT_OPTIONS = ("tenant", "tenant_attribute", "tenant_header", "tenant_key")
_KAFKA_OPTIONS = (*_TENANT_OPTIONS, "kind", "kind_header", "records_per_batch")
_EXAMPLE = "for example `file:otel/traces.json` or `kafka://broker:9092/otlp_spans?kind=traces`"
_CLIENT, _SECRET = "kafka.", re.compile("password|jaas|secret|token", re.IGNORECASE)
_SERVERS = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]+")
_MOST_RECORDS = 10_000_000
_TOPIC = re.compile(r"[A-Za-z0-9._*-]{1,249}")
"""As Kafka restricts the name of a topic, with ``*``."""


class FileSource(Frozen):
    """Files of the OpenTelemetry Collector's file exporter.

    :param path: absolute, as the exporter's ``path``; one ``*`` at most.
    :param has_tenant_in_path: whether the tenant is what ``*`` matches.
    """

    path: str
    rule: TenantRule
    has_tenant_in_path: bool = False


class KafkaSource(Frozen):
    """Topics of Kafka, whose records are export requests.

    :param servers: host and port of brokers, with commas between them.
    :param topic: with one ``*`` at most.
    :param has_tenant_in_topic: whether the tenant is what ``*`` matches.
    :param tenant_header: of a record, with the tenant's id.
    :param has_tenant_key: whether the tenant is the key of a record.
    :param kind_header: of a record, with the kind.
    :param records_per_batch: of all topics, at most.
    :param client: settings of Kafka's client, whose names begin with ``kafka.``.
    """

    servers: str
    topic: str
    rule: TenantRule
    has_tenant_in_topic: bool = False
    tenant_header: str | None = None
    has_tenant_key: bool = False
    kind_header: str | None = None
    records_per_batch: int = 10_000
    client: Mapping[str, str] = field(default_factory=dict)


TelemetrySource: TypeAlias = "FileSource | KafkaSource"


def parse_sources(texts: Iterable[str], folder: Path) -> tuple[TelemetrySource, ...]:
    """Read the addresses of sources.

    :param folder: absolute; paths are relative to it.
    :raises UsageError: an address is wrong.
    """
    return tuple(parse_source(text, folder) for text in texts)


def parse_source(text: str, folder: Path) -> TelemetrySource:
    """Read the address of a source.

    :param folder: absolute; paths are relative to it.
    :raises UsageError: the address is wrong.
    """
    try:
        parts = urlsplit(text)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise UsageError(f"the source `{text}` is no address: {error}", _EXAMPLE) from None
    if parts.scheme == "kafka":
        return _kafka_source(text, parts, options)
    if parts.scheme != "file":
        raise UsageError(f"the source `{text}` does not begin with `file:` or `kafka:`", _EXAMPLE)
    found = _options(text, options, _FILE_OPTIONS)
    path = unquote(parts.path)
    if parts.netloc or parts.fragment or not path.strip("/") or path.endswith("/"):
        raise UsageError(
            f"the source `{text}` names no file",
            "give the `path` of the exporter, as in `file:/otel/traces.json`",
        )
    if path.count("*") > 1:
        raise UsageError(
            f"the path of the source `{text}` has more than one `*`",
            "write `*` once, where the tenant's id is",
        )
    rule = _tenant_rule(text, found)
    has_tenant_in_path = "*" in path and not {"tenant", "tenant_attribute"} & found.keys()
    return FileSource(str(folder / path), rule, has_tenant_in_path)


def _kafka_source(text: str, parts: SplitResult, listed: list[tuple[str, str]]) -> KafkaSource:
    client = {name: value for name, value in listed if name.startswith(_CLIENT)}
    if secret := next(filter(_SECRET.search, client), None):
        raise UsageError(
            f"the address of a source has the setting `{secret}`, which can be secret",
            "give it in a file that `java.security.auth.login.config` or `kafka.ssl.keystore.location` names",
        )
    options = _options(text, [pair for pair in listed if pair[0] not in client], _KAFKA_OPTIONS)
    servers, topic = parts.netloc, parts.path.removeprefix("/")
    if not all(map(_SERVERS.fullmatch, servers.split(","))):
        raise UsageError(
            f"the source `{text}` names no broker", "give host and port, as in `kafka://broker:9092/topic`"
        )
    if _TOPIC.fullmatch(topic) is None or topic.count("*") > 1 or parts.fragment:
        raise UsageError(
            f"the source `{text}` names no topic",
            "give a name of letters, digits, `.`, `_` and `-`, and `*` once where the tenant's id is",
        )
    if ("kind" in options) == ("kind_header" in options):
        raise UsageError(
            f"the source `{text}` has not one of `kind` and `kind_header`",
            "add `kind=traces`, `kind=logs` or `kind=metrics`",
        )
    records = options.get("records_per_batch", "10000")
    if not records.isascii() or not records.isdigit() or not 0 < int(records) <= _MOST_RECORDS:
        raise UsageError(
            f"`records_per_batch` of the source `{text}` is no number from 1 to {_MOST_RECORDS}",
            "for example `records_per_batch=10000`",
        )
    if options.get("tenant_key", "true") != "true":
        raise UsageError(f"`tenant_key` of the source `{text}` is not `true`", "write `tenant_key=true`")
    return KafkaSource(
        servers,
        topic,
        _tenant_rule(text, options),
        has_tenant_in_topic="*" in topic and not set(_TENANT_OPTIONS) & options.keys(),
        tenant_header=options.get("tenant_header"),
        has_tenant_key="tenant_key" in options,
        kind_header=options.get("kind_header"),
        records_per_batch=int(records),
        client=client,
    )


def _options(text: str, listed: list[tuple[str, str]], known: tuple[str, ...]) -> Mapping[str, str]:
    found = dict[str, str]()
    for name, value in listed:
        if name not in known:
            names = ", ".join(f"`{one}`" for one in known)
            hint = did_you_mean(name, known) or f"the options are {names}"
            raise UsageError(f"the option `{name}` of the source `{text}` is unknown", hint)
        if name in found or not value:
            message = f"the option `{name}` of the source `{text}` does not have one value"
            raise UsageError(message, f"write it once, as in `{name}=…`")
        found[name] = value
    return found


def _tenant_rule(text: str, options: Mapping[str, str]) -> TenantRule:
    tenant, kind = options.get("tenant"), options.get("kind")
    given = [f"`{name}`" for name in _TENANT_OPTIONS if name in options]
    if len(given) > 1:
        raise UsageError(
            f"the source `{text}` has both {given[0]} and {given[1]}",
            "keep `tenant` if all telemetry is of one tenant",
        )
    if tenant is not None and not is_tenant_id(tenant):
        raise UsageError(f"the source `{text}`: {tenant_problem(tenant)}", VALUE_RULE)
    if kind is not None and kind not in _KINDS:
        kinds = ", ".join(f"`{one}`" for one in _KINDS)
        hint = did_you_mean(kind, _KINDS) or f"the kinds are {kinds}"
        raise UsageError(f"the source `{text}` has the unknown kind `{kind}`", hint)
    return TenantRule(
        tenant,
        options.get("tenant_attribute", DEFAULT_ATTRIBUTE),
        None if kind is None else _KINDS[kind],
    )
