"""Addresses of sources: what they say, and one error for each that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.errors import UsageError
from icemigrate.otlp.tenant_requests import TenantRule
from icemigrate.project.telemetry_sources import FileSource, KafkaSource, TelemetrySource, parse_source
from icemigrate.wal.entries import EntryKind

ROOT = Path("/project")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("file:otel/traces.json", FileSource("/project/otel/traces.json", TenantRule())),
        ("file:///otel/a%20b.json", FileSource("/otel/a b.json", TenantRule())),
        ("file:/o/t?tenant=acme&kind=logs", FileSource("/o/t", TenantRule("acme", kind=EntryKind.LOGS))),
        ("file:/o/t?tenant_attribute=team.id", FileSource("/o/t", TenantRule(attribute="team.id"))),
        ("file:/o/*/t.json", FileSource("/o/*/t.json", TenantRule(), has_tenant_in_path=True)),
        ("file:/o/*.json?tenant=acme", FileSource("/o/*.json", TenantRule("acme"))),
        (
            "kafka://a:9092,[::1]:9093/otlp_spans?kind=traces",
            KafkaSource("a:9092,[::1]:9093", "otlp_spans", TenantRule(kind=EntryKind.TRACES)),
        ),
        (
            "kafka://a:1/t-*?kind_header=k&records_per_batch=5&kafka.security.protocol=SSL",
            KafkaSource(
                "a:1",
                "t-*",
                TenantRule(),
                has_tenant_in_topic=True,
                kind_header="k",
                records_per_batch=5,
                client={"kafka.security.protocol": "SSL"},
            ),
        ),
        ("file:/o/*.json?tenant_attribute=x", FileSource("/o/*.json", TenantRule(attribute="x"))),
    ],
)
def test_an_address(text: str, wanted: TelemetrySource) -> None:
    assert parse_source(text, ROOT) == wanted


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("otel/traces.json", "does not begin with `file:`", "for example"),
        ("file:", "names no file", "give the `path`"),
        ("file:otel/", "names no file", "give the `path`"),
        ("file://host/otel.json", "names no file", "give the `path`"),
        ("file:a/*/*.json", "has more than one `*`", "write `*` once"),
        ("file:a?tenat=x", "the option `tenat`", "did you mean `tenant`?"),
        ("file:a?format=proto", "the option `format`", "the options are `tenant`, "),
        ("file:a?tenant", "is no address: ", "for example"),
        ("file:a?tenant=x&tenant=y", "does not have one value", "write it once"),
        ("file:a?tenant=", "does not have one value", "write it once"),
        ("file:a?tenant=../x", "'../x' cannot be the id of a tenant", "use 1 to 128 ASCII letters"),
        ("file:a?tenant=x&tenant_attribute=y", "has both `tenant` and `tenant_attribute`", "keep `tenant`"),
        ("file:a?kind=span", "has the unknown kind `span`", "the kinds are"),
        ("file:a?kind=trace", "has the unknown kind `trace`", "did you mean `traces`?"),
        ("file://[x", "is no address: ", "for example"),
        ("kafka://a/t?kind=logs", "names no broker", "give host and port"),
        ("kafka:t?kind=logs", "names no broker", "give host and port"),
        ("kafka://u@a:1/t?kind=logs", "names no broker", "give host and port"),
        ("kafka://a:1/?kind=logs", "names no topic", "give a name"),
        ("kafka://a:1/a/b?kind=logs", "names no topic", "give a name"),
        ("kafka://a:1/*-*?kind=logs", "names no topic", "give a name"),
        ("kafka://a:1/t", "has not one of `kind` and `kind_header`", "add `kind=traces`"),
        ("kafka://a:1/t?kind=logs&kind_header=k", "has not one of `kind`", "add `kind=traces`"),
        ("kafka://a:1/t?kind=logs&records_per_batch=0", "is no number from 1 to", "for example"),
        ("kafka://a:1/t?kind=logs&tenant_key=no", "is not `true`", "write `tenant_key=true`"),
        ("kafka://a:1/t?kind=logs&tenant=x&tenant_header=y", "both `tenant` and `tenant_header`", "keep"),
        ("kafka://a:1/t?kind=logs&topic=y", "the option `topic`", "the options are"),
    ],
)
def test_a_wrong_address_is_one_error(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_source(text, ROOT)
    assert text in error.value.message
    assert message in error.value.message
    assert (error.value.hint or "").startswith(hint)


def test_a_secret_is_not_shown() -> None:
    with pytest.raises(UsageError) as error:
        parse_source("kafka://a:1/t?kind=logs&kafka.ssl.key.password=hunter2", ROOT)
    assert "`kafka.ssl.key.password`, which can be secret" in error.value.message
    assert "hunter2" not in str(error.value)
