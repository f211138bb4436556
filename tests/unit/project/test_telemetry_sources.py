"""Addresses of sources: what they say, and one error for each that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.errors import UsageError
from icemigrate.otlp.tenant_requests import TenantRule
from icemigrate.project.telemetry_sources import FileSource, parse_source
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
        ("file:/o/*.json?tenant_attribute=x", FileSource("/o/*.json", TenantRule(attribute="x"))),
    ],
)
def test_an_address(text: str, wanted: FileSource) -> None:
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
        ("file:a?tenant=../x", "'../x' cannot be the id of a tenant", "use letters"),
        ("file:a?tenant=x&tenant_attribute=y", "has both `tenant` and `tenant_attribute`", "keep `tenant`"),
        ("file:a?kind=span", "has the unknown kind `span`", "the kinds are"),
        ("file:a?kind=trace", "has the unknown kind `trace`", "did you mean `traces`?"),
        ("file://[x", "is no address: ", "for example"),
    ],
)
def test_a_wrong_address_is_one_error(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_source(text, ROOT)
    assert text in error.value.message
    assert message in error.value.message
    assert (error.value.hint or "").startswith(hint)
