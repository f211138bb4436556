"""The common part of code hosts' APIs: comments of a change, read and written over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from icemigrate.errors import CodeHostError
from icemigrate.frozen import Frozen
from icemigrate.system.deadline import DeadlineExceeded, call_with_deadline

REFUSED_STATUS_CODES = (401, 403, 404)
"""Status codes for a token without permission; 404 where it may not even see the object."""

_TIMEOUT_S = 30
_NEXT = re.compile(r'<([^>]+)>;\s*rel="next"')


class Comment(Frozen):
    """A comment.

    :param author: login of its author; empty where the account is gone.
    :param is_by_bot: whether that is an app, such as the one behind ``GITHUB_TOKEN``.
    :param page: its web page.
    """

    id: int
    body: str
    author: str
    is_by_bot: bool
    page: str


class CommentThread(Protocol):
    """The comments of a change, and the right to write there; all methods raise ``CodeHostError``."""

    def comments(self) -> Iterator[Comment]:
        """All comments, the oldest first."""

    def login(self) -> str | None:
        """Our login; ``None`` for an app, which may not read it."""

    def create(self, body: str) -> Comment:
        """Write a new comment."""

    def update(self, comment: Comment, body: str) -> Comment:
        """Write a comment anew."""


@dataclass(frozen=True, slots=True)
class JsonApi:
    """A JSON API.

    :param url: its address, without a slash at the end.
    :param token: the header with the token, name and value.
    :param hint: what to do where it refuses.
    """

    url: str
    token: tuple[str, str] = field(repr=False)
    hint: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def call(self, method: str, url: str, content: object = None) -> tuple[Any, str | None]:
        """An answer, and the address of its next page.

        :raises CodeHostError: it does not answer, refuses, or answers with something else.
        """
        data = None if content is None else json.dumps(content).encode()
        request = Request(url, data, method=method)  # noqa: S310 (whoever made this saw to the scheme)
        for name, value in {**self.headers, "Content-Type": "application/json"}.items():
            request.add_header(name, value)
        request.add_header("User-Agent", "icemigrate")
        # Not sent to the target of a redirect.
        request.add_unredirected_header(*self.token)
        try:
            return call_with_deadline(_TIMEOUT_S, lambda: self._answer(request), f"`{self.url}`")
        except DeadlineExceeded as error:
            hint = "check that the server is running and that this machine can reach it"
            raise CodeHostError(f"`{self.url}` did not answer within {_TIMEOUT_S} s", hint) from error
        except HTTPError as error:
            raise self._refusal(error, method, url) from error
        except (URLError, HTTPException, OSError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            raise CodeHostError(f"`{self.url}` does not answer: {reason}") from error
        except ValueError as error:
            raise CodeHostError(f"`{self.url}` does not answer with JSON") from error

    def _answer(self, request: Request) -> tuple[Any, str | None]:
        with urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            following = _NEXT.search(answer.headers.get("Link") or "")
            # The token goes to this API only.
            is_here = following is not None and following[1].startswith(f"{self.url}/")
            return json.load(answer), following[1] if following and is_here else None

    def pages(self, url: str) -> Iterator[Any]:
        """The items of a list that may have several pages."""
        following: str | None = url
        while following:
            found, following = self.call("GET", following)
            yield from found

    def _refusal(self, error: HTTPError, method: str, url: str) -> CodeHostError:
        with error:
            try:
                said = json.load(error).get("message")
            except (ValueError, AttributeError, OSError):
                said = None
        hint = self.hint if error.code in REFUSED_STATUS_CODES else None
        return CodeHostError(f"{method} {url}: {error.code} {said or error.reason}", hint, status=error.code)


def api_address(environment: Mapping[str, str], variable: str, default: str) -> str:
    """The address in a variable.

    :raises CodeHostError: it is not an address.
    """
    url = environment.get(variable) or default
    if not url.startswith(("https://", "http://")):
        raise CodeHostError(f"`{variable}` is not an API address: `{url}`")
    return url.rstrip("/")
