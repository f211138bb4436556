"""Parts of messages about the content of a file."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN_LENGTH = 40
"""The number of characters of a user's text that a message shows."""


def with_article(noun: str) -> str:
    """``table`` → ``a table``; ``environment`` → ``an environment``."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def shorten_text(text: str) -> str:
    """A text for a message: one line, not too long, in backticks."""
    flat = " ".join(text.split())
    return f"`{flat if len(flat) <= SHOWN_LENGTH else flat[: SHOWN_LENGTH - 1] + '…'}`"


def or_list(words: Sequence[str]) -> str:
    """``a, b or c``."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]
