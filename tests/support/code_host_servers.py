"""GitHub's and GitLab's APIs of comments as servers on this machine: what `icemigrate comment` asks for.

Answers are shaped as in https://docs.github.com/rest/issues/comments and https://docs.gitlab.com/api/notes/.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

BOT = {"login": "github-actions[bot]", "type": "Bot"}
REPOSITORY = "acme/lake"
NUMBER = 17
LONGEST = 65_536


@dataclass
class CodeHost:
    """The comments of one pull request.

    :param user: who the token belongs to.
    :param may_write: whether the token may, as it may not for pull requests from forks.
    :param asked: every request, as `METHOD path`.
    """

    url: str = ""
    user: Mapping[str, str] = field(default_factory=lambda: BOT)
    token: str = "t0ken"
    may_write: bool = True
    comments: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    header = "Authorization"
    scheme = "Bearer "

    def add(self, body: str, user: Mapping[str, str] | None = None) -> dict[str, Any]:
        """A comment that is there."""
        number = len(self.comments) + 1
        page = f"https://code.example.com/{REPOSITORY}/pull/{NUMBER}#issuecomment-{number}"
        self.comments.append({"id": number, "body": body, "user": dict(user or self.user), "html_url": page})
        return self.comments[-1]

    def environment(self, folder: Path, head: str = REPOSITORY) -> dict[str, str]:
        """What GitHub sets for the steps of a run about the pull request.

        :param head: the repository that the branch is in; another one for a fork.
        """
        event = folder / "event.json"
        pull_request = {"number": NUMBER, "head": {"repo": {"full_name": head}}}
        event.write_text(
            json.dumps({"action": "synchronize", "number": NUMBER, "pull_request": pull_request})
        )
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.url,
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_TOKEN": self.token,
            "no_proxy": "*",
        }

    def answer(self, method: str, path: str, content: Any) -> tuple[int, Any, dict[str, str]]:
        """Status, content and headers."""
        url = urlsplit(path)
        issues = f"/repos/{REPOSITORY}/issues"
        if url.path == "/user" and method == "GET":
            if self.user["type"] == "Bot":
                return 403, {"message": "Resource not accessible by integration"}, {}
            return 200, dict(self.user), {}
        if url.path == f"{issues}/{NUMBER}/comments" and method == "GET":
            query = parse_qs(url.query)
            size, page = int(query["per_page"][0]), int(query.get("page", ["1"])[0])
            following = f'<{self.url}{url.path}?per_page={size}&page={page + 1}>; rel="next", <x>; rel="last"'
            has_more = len(self.comments) > page * size
            shown = self.comments[(page - 1) * size : page * size]
            return 200, shown, {"Link": following} if has_more else {}
        if not self.may_write:
            return 403, {"message": "Resource not accessible by integration"}, {}
        if len(content["body"]) > LONGEST:
            return 422, {"message": "Validation Failed: body is too long (maximum is 65536 characters)"}, {}
        if url.path == f"{issues}/{NUMBER}/comments" and method == "POST":
            return 201, self.add(content["body"]), {}
        if (found := re.fullmatch(rf"{issues}/comments/(\d+)", url.path)) and method == "PATCH":
            comment = self.comments[int(found[1]) - 1]
            comment["body"] = content["body"].replace("\n", "\r\n")
            return 200, comment, {}
        return 404, {"message": "Not Found"}, {}


@dataclass
class GitLab(CodeHost):
    """The notes of one merge request, and who wrote them."""

    user: Mapping[str, str] = field(default_factory=lambda: {"username": "project_7_bot_1"})
    header = "PRIVATE-TOKEN"
    scheme = ""

    def add(self, body: str, user: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
        number = len(self.comments) + 1
        self.comments.append({"id": number, "body": body, "author": dict(user or self.user), **more})
        return self.comments[-1]

    def environment(self, folder: Path, head: str = REPOSITORY) -> dict[str, str]:
        """What GitLab sets for a job about the merge request, and the token that somebody made."""
        return {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": f"{self.url}/api/v4",
            "CI_MERGE_REQUEST_IID": str(NUMBER),
            "CI_MERGE_REQUEST_PROJECT_ID": "7",
            "CI_MERGE_REQUEST_PROJECT_URL": f"https://code.example.com/{REPOSITORY}",
            "GITLAB_TOKEN": self.token,
            "no_proxy": "*",
        }

    def answer(self, method: str, path: str, content: Any) -> tuple[int, Any, dict[str, str]]:
        """Status, content and headers."""
        url = urlsplit(path)
        notes = f"/api/v4/projects/7/merge_requests/{NUMBER}/notes"
        if (method, url.path) == ("GET", "/api/v4/user"):
            return 200, dict(self.user), {}
        if (method, url.path) == ("GET", notes):
            query = parse_qs(url.query)
            size, page = int(query["per_page"][0]), int(query.get("page", ["1"])[0])
            assert (query["sort"], query["order_by"]) == (["asc"], ["created_at"])
            rest = f"per_page={size}&sort=asc&order_by=created_at&page={page + 1}"
            following = f'<{self.url}{url.path}?{rest}>; rel="next"'
            has_more = len(self.comments) > page * size
            shown = self.comments[(page - 1) * size : page * size]
            return 200, shown, {"Link": following} if has_more else {}
        if not self.may_write:
            return 403, {"message": "403 Forbidden"}, {}
        if (method, url.path) == ("POST", notes):
            return 201, self.add(content["body"]), {}
        if (found := re.fullmatch(rf"{notes}/(\d+)", url.path)) and method == "PUT":
            self.comments[int(found[1]) - 1]["body"] = content["body"]
            return 200, self.comments[int(found[1]) - 1], {}
        return 404, {"message": "404 Not Found"}, {}


@contextmanager
def code_host(host: CodeHost | None = None, **settings: Any) -> Iterator[CodeHost]:
    """A host that answers while the block runs; GitHub where no other is given."""
    host = CodeHost(**settings) if host is None else host

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is written."""

        def _answer(self) -> None:
            host.asked.append(f"{self.command} {self.path}")
            length = int(self.headers.get("Content-Length") or 0)
            content = json.loads(self.rfile.read(length)) if length else None
            if self.headers.get(host.header) == f"{host.scheme}{host.token}":
                status, answer, headers = host.answer(self.command, self.path, content)
            else:
                status, answer, headers = 401, {"message": "Bad credentials"}, {}
            body = json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        # The names that `http.server` calls.
        do_GET = do_POST = do_PATCH = do_PUT = _answer  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    host.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
