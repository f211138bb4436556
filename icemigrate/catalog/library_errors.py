"""Errors of PyIceberg, SQLAlchemy and their drivers, as one message without secrets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.pyiceberg_files import first_line, missing_extra
from icemigrate.errors import CatalogError, IcemigrateError
from icemigrate.system.deadline import duration_text

TIMEOUT_HINT = (
    "check that it is running and that this machine can reach it; `timeout` of the environment's catalog "
    "allows more time"
)

# By the name of the class, because the classes come from libraries that may not be installed.
_HINTS: tuple[tuple[str, str], ...] = (
    ("Unauthorized", "the server does not accept the credential: check it"),
    ("OAuth", "the server does not accept the credential: check it"),
    ("Forbidden", "the credential is accepted, but has no right to this: planning needs to read metadata"),
    ("AccessDenied", "the credential is accepted, but has no right to this: planning needs to read metadata"),
    ("ConnectionError", "check the address, and that the server is running"),
    ("Timeout", "check the address, and that the server is running"),
    ("OperationalError", "check the address and the password, and that the database is running"),
    ("ServerError", "the server failed: see its log"),
    ("ServiceUnavailable", "the server failed: see its log"),
)


def is_timeout(error: BaseException) -> bool:
    """Whether a library or a driver waited in vain for an answer."""
    kinds = [kind.__name__ for kind in type(error).__mro__]
    text = str(error).lower()
    by_text = "OperationalError" in kinds and ("timeout" in text or "timed out" in text)
    return isinstance(error, TimeoutError) or any("Timeout" in kind for kind in kinds) or by_text


@contextmanager
def convert_library_errors(settings: CatalogSettings) -> Iterator[None]:
    """Convert errors of PyIceberg, SQLAlchemy, boto or a driver to one without secrets.

    :raises CatalogError: the catalog cannot be reached, or refuses the request.
    :raises MissingExtra: a library is not installed.
    """
    try:
        yield
    except IcemigrateError:
        raise
    except ImportError as error:
        raise missing_extra(settings, error) from error
    # Four libraries and their drivers have no common base class of exceptions.
    except Exception as error:
        if type(error).__name__ == "NotInstalledError":
            raise missing_extra(settings, error) from error
        if is_timeout(error):
            raise CatalogError(
                f"{_described(settings)} did not answer within {duration_text(settings.timeout_s)}",
                TIMEOUT_HINT,
            ) from None
        names = " ".join(class_.__name__ for class_ in type(error).__mro__)
        hint = next((hint for word, hint in _HINTS if word in names), None)
        what = first_line(settings.scrub(str(error))) or type(error).__name__
        raise CatalogError(f"{_described(settings)}: {what}", hint) from None


def _described(settings: CatalogSettings) -> str:
    return f"catalog `{settings.name}` ({settings.type}, {settings.public_uri or 'no address'})"
