"""Comments of a merge request through GitLab's REST API, where they are called notes.

(https://docs.gitlab.com/api/notes/#merge-requests; variables: https://docs.gitlab.com/ci/variables/predefined_variables/)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from icemigrate.errors import CodeHostError
from icemigrate.frozen import Frozen
from icemigrate.vcs.code_host import Comment, JsonApi, api_address

_HINT = "the token needs the scope `api` and a role that can comment; `CI_JOB_TOKEN` cannot"


class MergeRequest(Frozen):
    """A merge request, and the right to write there.

    :param project: number of the target project.
    :param number: of the merge request within the project.
    :param page: its web page; empty where it is unknown.
    """

    api: JsonApi
    project: str
    number: str
    page: str

    def comments(self) -> Iterator[Comment]:
        """All comments of people and programs, the oldest first.

        :raises CodeHostError: as all methods here.
        """
        found = self.api.pages(f"{self._notes}?per_page=100&sort=asc&order_by=created_at")
        return (self._comment(one) for one in found if not one.get("system"))

    def login(self) -> str | None:
        """The owner of the token."""
        return str(self.api.call("GET", f"{self.api.url}/user")[0]["username"])

    def create(self, body: str) -> Comment:
        """Write a new comment."""
        return self._comment(self.api.call("POST", self._notes, {"body": body})[0])

    def update(self, comment: Comment, body: str) -> Comment:
        """Write a comment anew."""
        return self._comment(self.api.call("PUT", f"{self._notes}/{comment.id}", {"body": body})[0])

    @property
    def _notes(self) -> str:
        return f"{self.api.url}/projects/{self.project}/merge_requests/{self.number}/notes"

    def _comment(self, found: Any) -> Comment:
        author = (found.get("author") or {}).get("username", "")
        page = f"{self.page}#note_{found['id']}" if self.page else f"note {found['id']}"
        # The bot of a project's token is an ordinary account: it is identified by its name.
        return Comment(found["id"], found.get("body") or "", author, is_by_bot=False, page=page)


def merge_request_of(environment: Mapping[str, str]) -> MergeRequest:
    """The merge request of a GitLab CI job, from its environment.

    :raises CodeHostError: it has none, or there is no token.
    """
    project, number = (environment.get(f"CI_MERGE_REQUEST_{name}", "") for name in ("PROJECT_ID", "IID"))
    if not (project.isdecimal() and number.isdecimal()):
        hint = 'start the job with `if: $CI_PIPELINE_SOURCE == "merge_request_event"`'
        raise CodeHostError("this job has no merge request", hint)
    token = environment.get("GITLAB_TOKEN", "")
    if not token:
        hint = "create a project access token with the scope `api`, and store it as a masked variable"
        raise CodeHostError("`GITLAB_TOKEN` is not set", hint)
    url = api_address(environment, "CI_API_V4_URL", "https://gitlab.com/api/v4")
    address = environment.get("CI_MERGE_REQUEST_PROJECT_URL", "")
    page = f"{address}/-/merge_requests/{number}" if address else ""
    return MergeRequest(JsonApi(url, ("PRIVATE-TOKEN", token), _HINT), project, number, page)
