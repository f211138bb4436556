"""``comment``: one comment of a pull request, created once and then written anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.errors import ExitCode
from tests.support.code_host_servers import BOT, CodeHost, code_host

MARK = "<!-- icemigrate: check -->"
PERSON = {"login": "ada", "type": "User"}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CodeHost]:
    """A host, and the environment of a run about its pull request, in a folder with findings."""
    monkeypatch.chdir(tmp_path)
    with code_host() as made:
        for name, value in made.environment(tmp_path).items():
            monkeypatch.setenv(name, value)
        Path("check.md").write_text("### one\n", encoding="utf-8")
        Path("plan.md").write_text("### two\n", encoding="utf-8")
        yield made


def bodies(host: CodeHost) -> list[str]:
    return [comment["body"].replace("\r\n", "\n") for comment in host.comments]


def test_it_is_created_and_then_updated_in_place(host: CodeHost, capsys: pytest.CaptureFixture[str]) -> None:
    host.add("Looks good", PERSON)
    assert main(["comment", "check.md", "plan.md"]) == ExitCode.OK
    page = host.comments[1]["html_url"]
    assert capsys.readouterr() == (f"commented: {page}\n", "")
    assert bodies(host)[1] == f"{MARK}\n### one\n\n### two\n"
    Path("check.md").write_text("### größer\n", encoding="utf-8")
    assert main(["comment", "check.md"]) == ExitCode.OK
    assert capsys.readouterr().out == f"updated the comment: {page}\n"
    assert bodies(host) == ["Looks good", f"{MARK}\n### größer\n"]
    assert main(["comment", "check.md"]) == ExitCode.OK
    assert capsys.readouterr().out == f"the comment is up to date: {page}\n"
    assert [asked.split()[0] for asked in host.asked] == ["GET", "POST", "GET", "PATCH", "GET"]


def test_it_is_found_behind_hundreds_of_others(host: CodeHost) -> None:
    for number in range(250):
        host.add(f"comment {number}", PERSON)
    host.add(f"{MARK}\nold")
    assert main(["comment", "check.md"]) == ExitCode.OK
    assert len(host.comments) == 251
    assert bodies(host)[-1] == f"{MARK}\n### one\n"


def test_a_mark_that_somebody_else_wrote_is_left_alone(host: CodeHost) -> None:
    host.add(f"{MARK}\nmine, says Ada", PERSON)
    host.add(f"as they say: {MARK}", BOT)
    assert main(["comment", "check.md"]) == ExitCode.OK
    assert len(host.comments) == 3
    assert main(["comment", "plan.md"]) == ExitCode.OK
    assert bodies(host)[0] == f"{MARK}\nmine, says Ada"
    assert bodies(host)[2] == f"{MARK}\n### two\n"
    assert len(host.comments) == 3


def test_with_a_persons_token_it_is_that_persons_comment(host: CodeHost) -> None:
    host.user = PERSON
    host.add(f"{MARK}\nof another", {"login": "bob", "type": "User"})
    assert main(["comment", "check.md"]) == ExitCode.OK
    assert main(["comment", "plan.md"]) == ExitCode.OK
    assert bodies(host) == [f"{MARK}\nof another", f"{MARK}\n### two\n"]


def test_there_is_one_comment_for_each_key(host: CodeHost) -> None:
    for key in ("lake-a", "lake-b", "lake-a"):
        assert main(["comment", "check.md", "--key", key]) == ExitCode.OK
    assert [body.splitlines()[0] for body in bodies(host)] == [
        "<!-- icemigrate: lake-a -->",
        "<!-- icemigrate: lake-b -->",
    ]


@pytest.mark.parametrize("key", ["a--b", "-->", "", "a\nb", "ä"])
def test_a_key_cannot_end_the_mark(host: CodeHost, key: str) -> None:
    assert main(["comment", "check.md", "--key", key]) == ExitCode.USAGE
    assert host.asked == []


def test_what_is_too_long_is_cut_and_the_first_file_counts_most(host: CodeHost) -> None:
    Path("check.md").write_text("- a finding 😀\n" * 1000, encoding="utf-8")
    Path("plan.md").write_text("- a change 😀\n" * 10_000, encoding="utf-8")
    assert main(["comment", "check.md", "plan.md"]) == ExitCode.OK
    (body,) = bodies(host)
    assert body.count("a finding") == 1000
    assert 1000 < body.count("a change") < 10_000
    assert "does not fit into a comment" in body
    assert 60_000 < len(body.encode("utf-16-le")) / 2 < 65_536


def test_a_token_that_may_not_write_is_told_with_the_way_out(
    host: CodeHost, capsys: pytest.CaptureFixture[str]
) -> None:
    host.may_write = False
    assert main(["comment", "check.md"]) == ExitCode.ERROR
    err = capsys.readouterr().err
    assert "403 Resource not accessible by integration" in err
    assert "permissions: {pull-requests: write}" in err
    assert host.token not in err


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("GITHUB_TOKEN", "", "`GITHUB_TOKEN` is not set"),
        ("GITHUB_TOKEN", "wrong", "401 Bad credentials"),
        ("GITHUB_REPOSITORY", "", "not a run of GitHub Actions"),
        ("GITHUB_EVENT_PATH", "nowhere.json", "cannot be read: no such file or directory"),
        ("GITHUB_EVENT_PATH", "check.md", "is not JSON"),
        ("GITHUB_EVENT_PATH", "push.json", "this run has no pull request"),
        ("GITHUB_API_URL", "file:///etc", "is not an API address"),
        ("GITHUB_API_URL", "http://127.0.0.1:1", "does not answer"),
    ],
)
def test_what_else_can_be_wrong(
    host: CodeHost,
    name: str,
    value: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("push.json").write_text('{"ref": "refs/heads/main", "issue": {"number": 3}}')
    monkeypatch.setenv(name, value)
    assert main(["comment", "check.md"]) == ExitCode.ERROR
    assert said in capsys.readouterr().err
    assert host.comments == []


def test_a_comment_below_a_pull_request_starts_it_too(host: CodeHost) -> None:
    Path("event.json").write_text('{"issue": {"number": 17, "pull_request": {"url": "…"}}}', encoding="utf-8")
    assert main(["comment", "check.md"]) == ExitCode.OK
    assert len(host.comments) == 1


def test_a_file_that_is_not_there(host: CodeHost, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["comment", "nowhere.md"]) == ExitCode.ERROR
    assert capsys.readouterr().err == "error: `nowhere.md` cannot be read: no such file or directory\n"
    assert host.asked == []
