"""Consents to hazards that a user gives outside of a migration file: with `--allow`, or in Python."""

from __future__ import annotations

from collections.abc import Iterable

from icemigrate.changes.change import HazardKind
from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import UsageError
from icemigrate.planning.plan import Consent


def parse_consents(texts: Iterable[str]) -> tuple[Consent, ...]:
    """The consents of texts, each once.

    :param texts: as in a file: ``destructive``, or ``destructive market_data.trades.tags``.
    :raises UsageError: a consent is invalid.
    """
    kinds = [kind.value for kind in HazardKind]
    consents = []
    for text in texts:
        kind, _, scope = text.strip().partition(" ")
        if kind not in kinds:
            hint = did_you_mean(kind, kinds) or f"use one of {', '.join(kinds)}, and add a scope"
            raise UsageError(f"--allow {text}: there is no consent kind `{kind}`", hint)
        consents.append(Consent(kind, scope.strip() or None))
    return tuple(dict.fromkeys(consents))
