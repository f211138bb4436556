"""``comment`` in GitLab CI: one note of a merge request, created once and then written anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.errors import ExitCode
from tests.support.code_host_servers import CodeHost, GitLab, code_host

MARK = "<!-- icemigrate: check -->"
ADA = {"username": "ada"}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CodeHost]:
    """A host, and the environment of a job about its merge request, in a folder with findings."""
    monkeypatch.chdir(tmp_path)
    with code_host(GitLab()) as made:
        for name, value in made.environment(tmp_path).items():
            monkeypatch.setenv(name, value)
        Path("check.md").write_text("### one\n", encoding="utf-8")
        yield made


def bodies(host: CodeHost) -> list[str]:
    return [comment["body"] for comment in host.comments]


def test_it_is_created_and_then_updated_in_place(host: CodeHost, capsys: pytest.CaptureFixture[str]) -> None:
    host.add("Looks good", ADA)
    page = "https://code.example.com/acme/lake/-/merge_requests/17#note_2"
    assert main(["comment", "check.md"]) == ExitCode.OK
    assert capsys.readouterr() == (f"commented: {page}\n", "")
    Path("check.md").write_text("### größer\n", encoding="utf-8")
    assert main(["comment", "check.md"]) == ExitCode.OK
    assert capsys.readouterr().out == f"updated the comment: {page}\n"
    assert bodies(host) == ["Looks good", f"{MARK}\n### größer\n"]
    assert main(["comment", "check.md"]) == ExitCode.OK
    assert capsys.readouterr().out == f"the comment is up to date: {page}\n"
    asked = [one.split()[0] for one in host.asked]
    assert asked == ["GET", "POST", "GET", "GET", "PUT", "GET", "GET"]


def test_it_is_found_behind_hundreds_of_others(host: CodeHost) -> None:
    for number in range(250):
        host.add(f"note {number}", ADA)
    host.add(f"{MARK}\nold")
    assert main(["comment", "check.md"]) == ExitCode.OK
    assert len(host.comments) == 251
    assert bodies(host)[-1] == f"{MARK}\n### one\n"


def test_a_mark_that_somebody_else_or_gitlab_itself_wrote_is_left_alone(host: CodeHost) -> None:
    assert isinstance(host, GitLab)
    host.add(f"{MARK}\nmine, says Ada", ADA)
    host.add(f"{MARK} was changed", system=True)
    for _ in range(2):
        assert main(["comment", "check.md"]) == ExitCode.OK
    assert bodies(host) == [f"{MARK}\nmine, says Ada", f"{MARK} was changed", f"{MARK}\n### one\n"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("GITLAB_TOKEN", "", "`GITLAB_TOKEN` is not set"),
        ("GITLAB_TOKEN", "wrong", "401 Bad credentials"),
        ("CI_MERGE_REQUEST_IID", "", "this job has no merge request"),
        ("CI_MERGE_REQUEST_PROJECT_ID", "../7", "this job has no merge request"),
        ("CI_API_V4_URL", "file:///etc", "is not an API address"),
        ("CI_API_V4_URL", "http://127.0.0.1:1", "does not answer"),
    ],
)
def test_what_can_be_wrong(
    host: CodeHost,
    name: str,
    value: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(name, value)
    assert main(["comment", "check.md"]) == ExitCode.ERROR
    shown = capsys.readouterr().err
    assert said in shown
    assert "t0ken" not in shown
    assert host.comments == []


def test_a_token_that_may_not_write_is_told_with_the_way_out(
    host: CodeHost, capsys: pytest.CaptureFixture[str]
) -> None:
    host.may_write = False
    assert main(["comment", "check.md"]) == ExitCode.ERROR
    assert "the token needs the scope `api`" in capsys.readouterr().err
