"""``comment``: one comment of a pull or merge request, written anew instead of followed by another one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from icemigrate.errors import IcemigrateError, UsageError, os_error_reason
from icemigrate.render.markdown_text import COMMENT_LIMIT, comment_size, cut_to_limit
from icemigrate.system.file_reads import open_named
from icemigrate.vcs.code_host import Comment, CommentThread
from icemigrate.vcs.github import pull_request_of
from icemigrate.vcs.gitlab import merge_request_of

_KEY = re.compile(r"[\w./]+(?:[ -][\w./]+)*\Z", re.ASCII)


def comment(files: Sequence[Path], key: str, environment: Mapping[str, str]) -> str:
    """Put Markdown files, one after the other, into the comment with a key.

    :param key: distinguishes several such comments of a pull request.
    :param environment: of the process, as GitHub Actions or GitLab CI sets it.
    :returns: the action, in one line.
    :raises UsageError: the key has invalid characters.
    :raises IcemigrateError: a file cannot be read; the code host refuses.
    """
    # One `-` at a time: two would end the mark, which is a comment of HTML.
    if not _KEY.match(key):
        raise UsageError(
            f"`{key}` is not a valid key", "use letters, digits, `_`, `.`, `/`, and single `-` between them"
        )
    mark = f"<!-- icemigrate: {key} -->"
    body = f"{mark}\n{_joined([_read(path) for path in files])}"
    conversation = _conversation(environment)
    old = next(_ours(conversation, mark), None)
    if old is None:
        return f"commented: {conversation.create(body).page}"
    if _plain(old.body) == _plain(body):
        return f"the comment is up to date: {old.page}"
    return f"updated the comment: {conversation.update(old, body).page}"


def _conversation(environment: Mapping[str, str]) -> CommentThread:
    """The comments of the pull or merge request of a CI run."""
    return merge_request_of(environment) if environment.get("GITLAB_CI") else pull_request_of(environment)


def _ours(conversation: CommentThread, mark: str) -> Iterator[Comment]:
    """Comments that begin with the mark and that we wrote, since anybody can write a mark."""
    own: str | None = None
    is_asked = False
    for found in conversation.comments():
        if not found.body.startswith(mark):
            continue
        if not found.is_by_bot and not is_asked:
            own, is_asked = conversation.login(), True
        if found.is_by_bot or (own is not None and found.author == own):
            yield found


def _joined(texts: Sequence[str]) -> str:
    """Texts up to the maximum length, the first ones first."""
    room = COMMENT_LIMIT
    parts = []
    for number, text in enumerate(texts):
        # Each remaining file gets at least a line.
        part = cut_to_limit(text, room - 1000 * (len(texts) - number - 1))
        room -= comment_size(part) + 1
        parts.append(part)
    return "\n".join(parts)


def _plain(body: str) -> str:
    """As a host may give it back: with other line breaks, without space at the end."""
    return "\n".join(body.split("\r\n")).strip()


def _read(path: Path) -> str:
    try:
        with open_named(path, may_be_pipe=True) as stream:
            return stream.read().decode("utf-8").strip() + "\n"
    except OSError as error:
        raise IcemigrateError(f"`{path}` cannot be read: {os_error_reason(error)}") from error
    except UnicodeDecodeError as error:
        raise IcemigrateError(f"`{path}` is not UTF-8 text") from error
