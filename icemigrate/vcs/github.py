"""Comments of a pull request through GitHub's REST API.

(https://docs.github.com/rest/issues/comments: a pull request is an issue there.)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from icemigrate.errors import CodeHostError, os_error_reason
from icemigrate.frozen import Frozen
from icemigrate.system.file_reads import open_regular
from icemigrate.vcs.code_host import REFUSED_STATUS_CODES, Comment, JsonApi, api_address

_VERSION = "2022-11-28"
_HINT = (
    "the job needs `permissions: {pull-requests: write}`; pull requests from forks cannot have such a token"
)


class PullRequest(Frozen):
    """A pull request, and the right to write there.

    :param repository: ``owner/name``.
    """

    api: JsonApi
    repository: str
    number: int

    def comments(self) -> Iterator[Comment]:
        """All comments, the oldest first.

        :raises CodeHostError: as all methods here.
        """
        yield from map(_comment, self.api.pages(f"{self._issues}/{self.number}/comments?per_page=100"))

    def login(self) -> str | None:
        """Our login; ``None`` for an app, which may not read it."""
        try:
            return str(self.api.call("GET", f"{self.api.url}/user")[0]["login"])
        except CodeHostError as error:
            if error.status in REFUSED_STATUS_CODES:
                return None
            raise

    def create(self, body: str) -> Comment:
        """Write a new comment."""
        return _comment(self.api.call("POST", f"{self._issues}/{self.number}/comments", {"body": body})[0])

    def update(self, comment: Comment, body: str) -> Comment:
        """Write a comment anew."""
        return _comment(self.api.call("PATCH", f"{self._issues}/comments/{comment.id}", {"body": body})[0])

    @property
    def _issues(self) -> str:
        return f"{self.api.url}/repos/{self.repository}/issues"


def pull_request_of(environment: Mapping[str, str]) -> PullRequest:
    """The pull request of a GitHub Actions run, from the environment of its steps.

    :raises CodeHostError: this is no such run, or there is no token.
    """
    repository = environment.get("GITHUB_REPOSITORY", "")
    path = environment.get("GITHUB_EVENT_PATH", "")
    if not repository or not path:
        raise CodeHostError(
            "not a run of GitHub Actions: `GITHUB_REPOSITORY` or `GITHUB_EVENT_PATH` is not set"
        )
    number = _number(_event(Path(path)))
    if number is None:
        raise CodeHostError("this run has no pull request", "start the workflow with `on: pull_request`")
    token = environment.get("GITHUB_TOKEN", "")
    if not token:
        raise CodeHostError(
            "`GITHUB_TOKEN` is not set", "pass it to the step: `env: {GITHUB_TOKEN: ${{ github.token }}}`"
        )
    url = api_address(environment, "GITHUB_API_URL", "https://api.github.com")
    headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": _VERSION}
    return PullRequest(JsonApi(url, ("Authorization", f"Bearer {token}"), _HINT, headers), repository, number)


def _event(path: Path) -> Any:
    try:
        with open_regular(path) as stream:
            return json.loads(stream.read().decode("utf-8"))
    except OSError as error:
        raise CodeHostError(
            f"`{path}`, which `GITHUB_EVENT_PATH` names, cannot be read: {os_error_reason(error)}"
        ) from error
    except ValueError as error:
        raise CodeHostError(f"`{path}`, which `GITHUB_EVENT_PATH` names, is not JSON") from error


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
