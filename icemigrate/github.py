"""Comments of a pull request through GitHub's REST API.

(https://docs.github.com/rest/issues/comments: a pull request is an issue there.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from icemigrate.errors import CodeHostError, why

_TIMEOUT_S = 30
_VERSION = "2022-11-28"
_NEXT = re.compile(r'<([^>]+)>;\s*rel="next"')
_REFUSED = (401, 403, 404)
"""What GitHub answers to a token that may not do something; 404 where it may not even know."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment.

    :param author: login of who wrote it; empty where the account is gone.
    :param is_by_bot: whether that is an app, as the one behind ``GITHUB_TOKEN`` is.
    :param page: where a person reads it.
    """

    id: int
    body: str
    author: str
    is_by_bot: bool
    page: str


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request, and the right to speak there.

    :param api: address of the API, e.g. ``https://api.github.com``.
    :param repository: ``owner/name``.
    """

    api: str
    repository: str
    number: int
    token: str = field(repr=False)

    def comments(self) -> Iterator[Comment]:
        """All comments, the oldest first.

        :raises CodeHostError: as all methods here.
        """
        url: str | None = f"{self._issues}/{self.number}/comments?per_page=100"
        while url:
            found, url = self._call("GET", url)
            yield from (_comment(one) for one in found)

    def login(self) -> str | None:
        """Who we are; ``None`` for an app, which may not ask."""
        try:
            return str(self._call("GET", f"{self.api}/user")[0]["login"])
        except CodeHostError as error:
            if error.status in _REFUSED:
                return None
            raise

    def create(self, body: str) -> Comment:
        """Write a new comment."""
        return _comment(self._call("POST", f"{self._issues}/{self.number}/comments", {"body": body})[0])

    def update(self, comment: Comment, body: str) -> Comment:
        """Write a comment anew."""
        return _comment(self._call("PATCH", f"{self._issues}/comments/{comment.id}", {"body": body})[0])

    @property
    def _issues(self) -> str:
        return f"{self.api}/repos/{self.repository}/issues"

    def _call(self, method: str, url: str, content: object = None) -> tuple[Any, str | None]:
        """An answer, and where it goes on."""
        data = None if content is None else json.dumps(content).encode()
        request = Request(url, data, method=method)  # noqa: S310 (`pull_request_of` saw to the scheme)
        request.add_header("Accept", "application/vnd.github+json")
        request.add_header("Content-Type", "application/json")
        request.add_header("User-Agent", "icemigrate")
        request.add_header("X-GitHub-Api-Version", _VERSION)
        # Not sent on to wherever an answer redirects us.
        request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
                following = _NEXT.search(answer.headers.get("Link") or "")
                # The token goes to this API alone.
                is_here = following is not None and following[1].startswith(f"{self.api}/")
                return json.load(answer), following[1] if following and is_here else None
        except HTTPError as error:
            raise _refusal(error, method, url) from error
        except (URLError, HTTPException, OSError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            raise CodeHostError(f"`{self.api}` does not answer: {reason}") from error
        except ValueError as error:
            raise CodeHostError(f"`{self.api}` answers with something that is no JSON") from error


def pull_request_of(environment: Mapping[str, str]) -> PullRequest:
    """The pull request that a run of GitHub Actions is about, from the environment of its steps.

    :raises CodeHostError: this is no such run, or there is no token.
    """
    repository = environment.get("GITHUB_REPOSITORY", "")
    path = environment.get("GITHUB_EVENT_PATH", "")
    if not repository or not path:
        raise CodeHostError(
            "this is no run of GitHub Actions: `GITHUB_REPOSITORY` or `GITHUB_EVENT_PATH` is not set"
        )
    number = _number(_event(Path(path)))
    if number is None:
        raise CodeHostError("this run is about no pull request", "let `on: pull_request` start the workflow")
    token = environment.get("GITHUB_TOKEN", "")
    if not token:
        raise CodeHostError(
            "`GITHUB_TOKEN` is not set", "give it to the step: `env: {GITHUB_TOKEN: ${{ github.token }}}`"
        )
    api = environment.get("GITHUB_API_URL") or "https://api.github.com"
    if not api.startswith(("https://", "http://")):
        raise CodeHostError(f"`GITHUB_API_URL` is no address of an API: `{api}`")
    return PullRequest(api.rstrip("/"), repository, number, token)


def _event(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CodeHostError(
            f"`{path}`, which `GITHUB_EVENT_PATH` names, cannot be read: {why(error)}"
        ) from error
    except ValueError as error:
        raise CodeHostError(f"`{path}`, which `GITHUB_EVENT_PATH` names, is no JSON") from error


def _number(event: Any) -> int | None:
    """Of the pull request, or of the issue that is one."""
    if not isinstance(event, dict):
        return None
    issue = event.get("issue")
    about = event.get("pull_request") or (
        issue if isinstance(issue, dict) and "pull_request" in issue else {}
    )
    number = about.get("number") if isinstance(about, dict) else None
    return number if isinstance(number, int) else None


def _comment(found: Any) -> Comment:
    user = found.get("user") or {}
    return Comment(
        id=found["id"],
        body=found.get("body") or "",
        author=user.get("login", ""),
        is_by_bot=user.get("type") == "Bot",
        page=found.get("html_url", ""),
    )


def _refusal(error: HTTPError, method: str, url: str) -> CodeHostError:
    with error:
        try:
            said = json.load(error).get("message")
        except (ValueError, AttributeError, OSError):
            said = None
    hint = None
    if error.code in _REFUSED:
        hint = (
            "the job needs `permissions: {pull-requests: write}`; pull requests from forks have no such token"
        )
    return CodeHostError(f"{method} {url}: {error.code} {said or error.reason}", hint, status=error.code)
