"""Secrets, masked in every text that leaves the process.

Two things are masked.  *Values* that are known to be secret: each
:class:`~icemigrate.project.project_values.Secret`, and what variables of the environment give
(:func:`register_secret`). *Places* that hold credentials by their form: the password in
``user:password@host``, parameters such as ``sig=`` and ``X-Amz-Signature=``, ``;SharedAccessKey=``, members
of JSON such as ``"client_secret": "…"``, bearer tokens.

Values are remembered for the whole process: an exception of a driver, of PyIceberg or of Java quotes them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any
from urllib.parse import quote, quote_plus, unquote

MASK = "***"
MIN_SECRET_LENGTH = 4
"""Characters of the shortest value that is masked alone: a shorter one is part of every text."""
_LONG = 8
"""From this length on a value is masked within words too."""

_WORDS = (
    "passw(?:or)?d|passphrase|secret|token|credential|signature|authorization"
    "|(?:api|access|account|private|shared|signing)[-_.]?(?:access[-_.]?)?key"
)
_WORD = re.compile(_WORDS, re.IGNORECASE)
_SHORT_WORD = re.compile(r"(?<![A-Za-z])(?:pwd|sas|sig)(?![A-Za-z])", re.IGNORECASE)
_SETTING = re.compile(r"key|(?<![A-Za-z])(?:pass|auth)(?![A-Za-z])", re.IGNORECASE)
_NAME_OF_FILE = re.compile(r"(?:file|path|dir|folder|application_credentials)$", re.IGNORECASE)
_FLAGS = frozenset({"", "true", "false", "null", "none", MASK})

_USER = re.compile(r"(?<=://)([^\s/:@?#'\"`]*):[^\s/?#'\"`]+@")
_LONE_USER = re.compile(r"(https?://)[^\s/:@?#'\"`]+@", re.IGNORECASE)
_PARAMETER = re.compile(
    rf"([?&;]|%3F|%26)((?:[\w.-]{{0,40}}?(?:{_WORDS})[\w.-]{{0,40}}|pwd|pass|sas|sig|key|auth)=)([^\s&;#'\"`<>]+)",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(
    rf"(?<![\w.-])([\w.-]{{0,40}}?(?:{_WORDS})[\w.-]{{0,40}}=)([^\s&;#'\"`<>=,()…]+)", re.IGNORECASE
)
_MEMBER = re.compile(
    rf"""(\\*['"])([\w.-]{{0,80}}?(?:{_WORDS})[\w.-]{{0,80}})\1(\s*[:=]\s*)(\\*['"])((?:\\.|(?!\4).)*?)\4""",
    re.IGNORECASE,
)
_JDBC_LOGIN = re.compile(r"jdbc:\w+:\w+:[^\s/:@]*/([^\s@]+)@", re.IGNORECASE)
"""``jdbc:oracle:thin:user/password@host``."""
_ORDINARY = re.compile(r"-{0,2}[a-z][a-z_-]{0,15}|[A-Z]?[a-z]+|[0-9]{0,5}|utf-?8")
_BEARER = re.compile(r"\b(bearer|basic)(\s+)(?=\S*[0-9])[A-Za-z0-9+/._~-]{12,}=*", re.IGNORECASE)
_SHAPES = re.compile(
    r"\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20,}"
)
_NAMED = (
    "passw",
    "passphrase",
    "secret",
    "token",
    "credential",
    "signature",
    "authorization",
    "key",
    "sig",
    "sas",
)
_NAMED_SHORT = ("pwd=", "pass=", "auth=")
_BY_SHAPE = ("eyj", "akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_")
"""In lower case, what a credential of a form has in it: these are looked for first, since that is quick."""

_SHORTEST_FORM = 6
"""Characters of `?key=x`."""

_SHORT = 64
"""Up to this length, what a text comes to is remembered."""

_values: set[str] = set()


@lru_cache(20_000)
def is_secret_name(name: str) -> bool:
    """Whether a table's property, or a variable of the environment, is named like a credential."""
    return bool(_WORD.search(name) or _SHORT_WORD.search(name)) and ".column." not in name


def holds_secret(name: str, value: str) -> bool:
    """Whether the value of a property of this name is masked; a flag is no secret."""
    return value.lower() not in _FLAGS and is_secret_name(name)


def is_secret_property(name: str, value: str) -> bool:
    """Whether a property holds a credential, by its name or by its value's form; no file may say it."""
    return holds_secret(name, value) or redact_secrets(value) != value


def is_secret_setting(name: str) -> bool:
    """Whether a setting of a client may hold a credential; no output needs one, so more names count."""
    return bool(_WORD.search(name) or _SHORT_WORD.search(name) or _SETTING.search(name))


def register_secret(value: str) -> None:
    """Mask a value from now on, also as URLs and JSON write it."""
    found = {value, quote(value, safe=""), quote(value), quote_plus(value), unquote(value)}
    found |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    new = {one for one in found if len(one.strip()) >= MIN_SECRET_LENGTH} - _values
    if new:
        _values.update(new)
        _clear()


def credentials_in(address: str) -> Iterator[str]:
    """The passwords, keys and signatures in an address, as it has them."""
    for pattern in (_USER, _LONE_USER):
        for found in pattern.finditer(address):
            login = found[0].removesuffix("@").rpartition("//")[2]
            yield login.partition(":")[2] if pattern is _USER else login
    yield from (found[3] for found in _PARAMETER.finditer(address))


def parameters_in(address: str) -> Iterator[tuple[str, str]]:
    """The name and the value of each parameter in an address, and the passwords of JDBC addresses, whose name
    is empty.
    """
    for pair in re.split(r"[?&;#]", address)[1:]:
        name, equals, value = pair.partition("=")
        yield (name, value) if equals else ("", name)
    if (login := _JDBC_LOGIN.match(address)) is not None:
        yield "", login[1]


def hide_parameters(address: str) -> None:
    """Mask the parameters in an address whose value comes from a private variable, wherever they are quoted.

    A value that is an ordinary word or a number (``sslmode=require``) is masked together with its name only:
    the word alone is part of every text.
    """
    for name, value in parameters_in(address):
        plain = unquote(value)
        parts = {value, plain, *re.split(r"[\s=/?#@:&;,]", plain)}
        for part in parts:
            if not _ORDINARY.fullmatch(part):
                register_secret(part)
        if name and _ORDINARY.fullmatch(value):
            register_secret(f"{name}={value}")


def hide_credentials(address: str) -> None:
    """Mask the credentials in an address from now on, wherever they are quoted without it."""
    for secret in credentials_in(address):
        hide_part_of_address(secret)


def hide_part_of_address(secret: str) -> None:
    """Mask a credential from now on, and its parts, which errors quote where a stray ``/`` ends the host."""
    for part in (secret, unquote(secret), *re.split(r"[/?#@:&]", secret)):
        register_secret(part)


def hide_environment(environ: Iterable[tuple[str, str]]) -> None:
    """Mask the values of variables that are named like credentials; a path to a file is none.

    A credential in Base64 may begin with ``/`` too.
    """
    for name, value in environ:
        is_path = value.startswith("/") and (_NAME_OF_FILE.search(name) is not None or os.path.lexists(value))
        if len(value) >= _LONG and not is_path and _WORD.search(name):
            register_secret(value)


def forget_secrets() -> None:
    """Forget every value: for tests, each of which is a process of its own."""
    _values.clear()
    _clear()


def _clear() -> None:
    _known.cache_clear()
    _redact_short.cache_clear()


@cache
def _known() -> re.Pattern[str] | None:
    parts = [
        re.escape(value) if len(value) >= _LONG else rf"(?<!\w){re.escape(value)}(?!\w)"
        for value in sorted(_values, key=len, reverse=True)
    ]
    return re.compile("|".join(parts)) if parts else None


def redact_secrets(text: str) -> str:
    """The text with every secret masked."""
    return _redact_short(text) if len(text) <= _SHORT else _redact(text)


@lru_cache(20_000)
def _redact_short(text: str) -> str:
    """Names and types occur in a plan thousands of times."""
    return _redact(text)


def _redact(text: str) -> str:
    known = _known()
    if known is not None:
        text = known.sub(MASK, text)
    if len(text) < _SHORTEST_FORM:
        return text
    if "\n" in text:
        return "\n".join(map(_masked, text.split("\n")))
    return _masked(text)


def _masked(text: str) -> str:
    """One line with what is a credential by its form masked."""
    if "://" in text and "@" in text:
        text = _USER.sub(rf"\1:{MASK}@", text)
        text = _LONE_USER.sub(rf"\1{MASK}@", text)
    lower = text.lower()
    is_assigned = "=" in text
    is_quoted = (is_assigned or ":" in text) and ("'" in text or '"' in text)
    if (is_assigned or is_quoted) and any(word in lower for word in (*_NAMED, *_NAMED_SHORT)):
        if is_assigned:
            text = _PARAMETER.sub(_parameter, text)
            text = _ASSIGNED.sub(_assigned, text)
        if is_quoted:
            text = _MEMBER.sub(_member, text)
    if "bearer" in lower or "basic" in lower:
        text = _BEARER.sub(rf"\1\2{MASK}", text)
    return _SHAPES.sub(MASK, text) if any(shape in lower for shape in _BY_SHAPE) else text


def guard_logging() -> None:
    """Mask what a library logs while logging is not configured: messages may quote addresses."""
    import logging

    class Masked(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return redact_secrets(super().format(record))

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Masked())


def redact_document(value: Any, name: str = "") -> Any:
    """The values of a JSON document with every secret masked.

    :param name: the key that the value belongs to.
    """
    if isinstance(value, str):
        return MASK if name and holds_secret(name, value) else redact_secrets(value)
    if isinstance(value, dict):
        # A saved change of a property: `{"kind": "set_property", "key": "x.token", "value": "…"}`.
        key = value.get("key") if str(value.get("kind")).endswith("set_property") else None
        if isinstance(key, str) and is_secret_name(key):
            value = {**value, **{k: MASK for k in ("value", "before") if isinstance(value.get(k), str)}}
        return {redact_secrets(key): redact_document(item, key) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_document(item) for item in value]
    return value


def _parameter(found: re.Match[str]) -> str:
    return found[0] if found[3].lower() in _FLAGS else f"{found[1]}{found[2]}{MASK}"


def _assigned(found: re.Match[str]) -> str:
    return found[0] if found[2].lower() in _FLAGS else f"{found[1]}{MASK}"


def _member(found: re.Match[str]) -> str:
    if found[5].lower() in _FLAGS or ".column." in found[2]:
        return found[0]
    return f"{found[1]}{found[2]}{found[1]}{found[3]}{found[4]}{MASK}{found[4]}"
