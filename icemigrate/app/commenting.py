"""``comment``: one comment of a pull or merge request, written anew instead of followed by another one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from icemigrate.code_host import Comment, Conversation
from icemigrate.errors import IcemigrateError, UsageError, why
from icemigrate.files.reading import open_named
from icemigrate.github import pull_request_of
from icemigrate.gitlab import merge_request_of
from icemigrate.render.markdown import LIMIT, cut, size

_KEY = re.compile(r"[\w./]+(?:[ -][\w./]+)*\Z", re.ASCII)


def comment(files: Sequence[Path], key: str, environment: Mapping[str, str]) -> str:
    """Put files of markdown, one below the other, into the comment of a key.

    :param key: tells several such comments of a pull request apart.
    :param environment: of the process, as GitHub Actions or GitLab CI sets it.
    :returns: what was done, in one line.
    :raises UsageError: the key cannot stand in a mark.
    :raises IcemigrateError: a file cannot be read; the code host refuses.
    """
    # One `-` at a time: two would end the mark, which is a comment of HTML.
    if not _KEY.match(key):
        raise UsageError(f"`{key}` is no key", "letters, digits, `_`, `.`, `/`, and single `-` between them")
    mark = f"<!-- icemigrate: {key} -->"
    body = f"{mark}\n{_joined([_read(path) for path in files])}"
    conversation = _conversation(environment)
    old = next(_ours(conversation, mark), None)
    if old is None:
        return f"commented: {conversation.create(body).page}"
    if _plain(old.body) == _plain(body):
        return f"the comment says so already: {old.page}"
    return f"updated the comment: {conversation.update(old, body).page}"


def _conversation(environment: Mapping[str, str]) -> Conversation:
    """What is said below the change that a run is about."""
    return merge_request_of(environment) if environment.get("GITLAB_CI") else pull_request_of(environment)


def _ours(conversation: Conversation, mark: str) -> Iterator[Comment]:
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
    """Texts as far as they fit, the first ones rather than the last."""
    room = LIMIT
    parts = []
    for number, text in enumerate(texts):
        # What is still to come gets a line at least.
        part = cut(text, room - 1000 * (len(texts) - number - 1))
        room -= size(part) + 1
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
        raise IcemigrateError(f"`{path}` cannot be read: {why(error)}") from error
    except UnicodeDecodeError as error:
        raise IcemigrateError(f"`{path}` is no text in UTF-8") from error
