"""Requests to a server of Iceberg's REST protocol, with raw JSON, so that unknown keys and types survive.

Session, sign-in and the server's configuration are PyIceberg's; only this file and
:mod:`~icemigrate.catalog.pyiceberg_kinds` use parts of it that are not its public API.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from icemigrate.catalog.catalog_kind import THREADS
from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.iceberg.json_text import read_json, write_json
from icemigrate.iceberg.names import TableName

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import RestCatalog
    from requests import Response, Session

_EXPIRED_TOKEN = (401, 419)


class RestClient:
    """A signed-in client of one catalog; opening it asks the server for its configuration.

    :ivar catalog: PyIceberg's client, for the requests that it makes itself.
    """

    def __init__(self, settings: CatalogSettings) -> None:
        from pyiceberg.catalog.rest import RestCatalog

        class InTime(RestCatalog):
            """A session whose connections wait no longer than the catalog's timeout."""

            def _create_session(self) -> Session:
                session = super()._create_session()
                # The deadline of the whole call ends first; this frees the socket and its thread.
                patient = partial(session.request, timeout=settings.timeout_s + 1)
                session.request = patient  # type: ignore[method-assign]
                return session

        self.catalog: RestCatalog = InTime(settings.name, **catalog_properties(settings))
        # As many connections as threads, or some are opened and thrown away.
        adapter = self.catalog._session.get_adapter(self.catalog.uri)
        adapter.init_poolmanager(THREADS, THREADS)  # type: ignore[attr-defined]

    @property
    def properties(self) -> Mapping[str, str]:
        """The catalog's properties, with those that the server's configuration sets."""
        return self.catalog.properties

    @property
    def endpoints(self) -> frozenset[str]:
        """The endpoints that the server lists in its configuration: a method and a path each."""
        return frozenset(map(str, self.catalog._supported_endpoints))

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Mapping[str, Any] | None = None,
    ) -> Response:
        """The answer to a request, whatever its status; an expired token is renewed once.

        :param path: below the server's prefix, with names that are encoded already.
        """
        response = self._send(method, path, params, json)
        if response.status_code in _EXPIRED_TOKEN:
            # As in PyIceberg's own calls.
            self.catalog._refresh_token()
            response = self._send(method, path, params, json)
        return response

    def _send(
        self, method: str, path: str, params: Mapping[str, str] | None, json: Mapping[str, Any] | None
    ) -> Response:
        # Braces in a name must not be read as placeholders of `url`.
        url = self.catalog.url("{path}", path=path)
        data = None if json is None else write_json(json).encode("utf-8", "surrogatepass")
        # A redirected change would become a GET.
        return self.catalog._session.request(
            method, url, params=params, data=data, allow_redirects=method == "GET"
        )

    def find(self, path: str, params: Mapping[str, str], form: Any = Any) -> dict[str, Any] | None:
        """The JSON of something that may not exist; ``None`` where it does not.

        :param form: see :func:`~icemigrate.iceberg.json_text.read_json`.
        """
        response = self.request("GET", path, params=params)
        if response.status_code == 404 and is_answer_of_a_catalog(response):
            return None
        require_success(response)
        answer = read_json(response.content, form)
        if not isinstance(answer, dict):
            raise ValueError("the server's answer is not a JSON object")
        return answer

    def namespace_path(self, namespace: tuple[str, ...]) -> str:
        """The path of a namespace."""
        return f"namespaces/{self.catalog._encode_namespace_path(namespace)}"

    def path(self, name: TableName, kind: str = "tables") -> str:
        """The path of a table or a view.

        :param kind: ``tables`` or ``views``.
        """
        return f"{self.namespace_path(name.namespace)}/{kind}/{quote(name.name, safe='')}"

    def close(self) -> None:
        """Close connections."""
        self.catalog.close()


def catalog_properties(settings: CatalogSettings) -> dict[str, str]:
    """The settings as PyIceberg's properties."""
    named = {"uri": settings.uri, "warehouse": settings.warehouse}
    return {**settings.properties, **{key: value for key, value in named.items() if value}}


def is_answer_of_a_catalog(response: Response) -> bool:
    """Whether an error has the protocol's form: a proxy's 404 does not mean that there is no such table."""
    try:
        return "error" in response.json()
    except ValueError:
        return False


def require_success(response: Response) -> None:
    """Raise PyIceberg's exception for an answer that is an error, or a redirect that was not followed."""
    from pyiceberg.catalog.rest.response import _handle_non_200_response
    from requests import HTTPError

    if not 200 <= response.status_code < 300:
        _handle_non_200_response(HTTPError(response=response), {})
