"""Where ``ingest`` reads telemetry from beside its log: ``--from``, and ``from`` below ``pipeline``.

A source is an address such as ``file:otel/traces.json?tenant=acme``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen
from icemigrate.otlp.tenant_requests import DEFAULT_ATTRIBUTE, TenantRule
from icemigrate.wal.entries import EntryKind, is_tenant_id, tenant_problem

_KINDS = {kind.value: kind for kind in EntryKind}
_FILE_OPTIONS = ("tenant", "tenant_attribute", "kind")
_EXAMPLE = "for example `file:otel/traces.json?tenant=acme`"


class FileSource(Frozen):
    """Files of the OpenTelemetry Collector's file exporter.

    :param path: absolute, as the exporter's ``path``; one ``*`` at most.
    :param has_tenant_in_path: whether the tenant is what ``*`` matches.
    """

    path: str
    rule: TenantRule
    has_tenant_in_path: bool = False


def parse_sources(texts: Iterable[str], folder: Path) -> tuple[FileSource, ...]:
    """Read the addresses of sources.

    :param folder: absolute; paths are relative to it.
    :raises UsageError: an address is wrong.
    """
    return tuple(parse_source(text, folder) for text in texts)


def parse_source(text: str, folder: Path) -> FileSource:
    """Read the address of a source.

    :param folder: absolute; paths are relative to it.
    :raises UsageError: the address is wrong.
    """
    try:
        parts = urlsplit(text)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise UsageError(f"the source `{text}` is no address: {error}", _EXAMPLE) from None
    if parts.scheme != "file":
        raise UsageError(f"the source `{text}` does not begin with `file:`", _EXAMPLE)
    found = _options(text, options)
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


def _options(text: str, listed: list[tuple[str, str]]) -> Mapping[str, str]:
    found = dict[str, str]()
    for name, value in listed:
        if name not in _FILE_OPTIONS:
            known = ", ".join(f"`{one}`" for one in _FILE_OPTIONS)
            hint = did_you_mean(name, _FILE_OPTIONS) or f"the options are {known}"
            raise UsageError(f"the option `{name}` of the source `{text}` is unknown", hint)
        if name in found or not value:
            message = f"the option `{name}` of the source `{text}` does not have one value"
            raise UsageError(message, f"write it once, as in `{name}=…`")
        found[name] = value
    return found


def _tenant_rule(text: str, options: Mapping[str, str]) -> TenantRule:
    tenant, kind = options.get("tenant"), options.get("kind")
    if tenant is not None and "tenant_attribute" in options:
        raise UsageError(
            f"the source `{text}` has both `tenant` and `tenant_attribute`",
            "keep `tenant` if all telemetry is of one tenant",
        )
    if tenant is not None and not is_tenant_id(tenant):
        raise UsageError(f"the source `{text}`: {tenant_problem(tenant)}", "use letters, digits, `_` and `-`")
    if kind is not None and kind not in _KINDS:
        kinds = ", ".join(f"`{one}`" for one in _KINDS)
        hint = did_you_mean(kind, _KINDS) or f"the kinds are {kinds}"
        raise UsageError(f"the source `{text}` has the unknown kind `{kind}`", hint)
    return TenantRule(
        tenant,
        options.get("tenant_attribute", DEFAULT_ATTRIBUTE),
        None if kind is None else _KINDS[kind],
    )
