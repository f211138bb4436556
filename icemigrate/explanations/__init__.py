"""What every identifier in square brackets means, and what to do about it: one text each.

Rules of ``check`` with an id such as ``IM104`` have pages of their own, see :mod:`icemigrate.rules`.  An
identifier is permanent: one that is given up is never given another meaning.
"""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.explanations.declaration_codes import DECLARATION_CODES
from icemigrate.explanations.file_codes import FILE_CODES
from icemigrate.explanations.history_codes import HISTORY_CODES
from icemigrate.explanations.table_codes import TABLE_CODES

EXPLANATION_GROUPS: Mapping[str, Mapping[str, str]] = {
    "Reading files": FILE_CODES,
    "Contents of migration files": DECLARATION_CODES,
    "Requirements for tables": TABLE_CODES,
    "Files, history and catalog": HISTORY_CODES,
}
"""The texts by what they are about."""

EXPLANATIONS: Mapping[str, str] = {
    word: text for part in EXPLANATION_GROUPS.values() for word, text in part.items()
}
"""All identifiers."""
