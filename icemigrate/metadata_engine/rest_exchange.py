"""One request that changes something on a REST server, and what its answer or its failure means."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.rest_client import is_answer_of_a_catalog
from icemigrate.metadata_engine.uncertain_outcome import LostAnswer
from icemigrate.spark.java_errors import NEWER_ROWS
from icemigrate.system.deadline import DeadlineExceeded, call_with_deadline

if TYPE_CHECKING:
    from requests import Response

_NOT_IMPLEMENTED = 501
_TOO_MANY_REQUESTS = 429
_NEVER_CONNECTED = frozenset({"NewConnectionError", "NameResolutionError", "ConnectTimeoutError"})


def exchange(settings: CatalogSettings, request: Callable[[], Response]) -> Response:
    """The answer to a request, in the catalog's time.

    :raises LostAnswer: the server may have done what the request asks for.
    :raises requests.RequestException: the request never reached it.
    """
    from requests import RequestException

    try:
        response = call_with_deadline(settings.timeout_s, request)
    except DeadlineExceeded as error:
        raise LostAnswer from error
    except RequestException as error:
        if _never_connected(error):
            raise
        raise LostAnswer from error
    status = response.status_code
    if status == _TOO_MANY_REQUESTS or (status >= 500 and status != _NOT_IMPLEMENTED):
        raise LostAnswer
    return response


def conflict_text(response: Response) -> str | None:
    """Why a server refused a commit whose base is no longer current; ``None`` for any other answer."""
    status = response.status_code
    if status < 400 or not is_answer_of_a_catalog(response):
        return "the server answered 409" if status == 409 else None
    text = str((response.json()["error"] or {}).get("message", ""))
    if status in (404, 409) or NEWER_ROWS.search(text):
        return text or f"the server answered {status}"
    return None


def _never_connected(error: BaseException) -> bool:
    """Whether no connection was made, so that the server cannot have the request."""
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return any(kind.__name__ in _NEVER_CONNECTED for kind in type(reason).__mro__)
