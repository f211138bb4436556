"""Real schemas and their later changes as files: the rules raise no false alarm."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from icemigrate.diagnostics import Severity
from icemigrate.files.write.migration_entries import creation_entry, entry_between, format_migration_file
from icemigrate.rules import RULES
from tests.checks.corpus import found
from tests.support.shared_cases import Case, real_schema_steps

STEPS = [
    (name, tuple(steps))
    for name, steps in groupby(real_schema_steps(), lambda case: case.id.partition("/")[0])
]
ALLOWED = "allow: [destructive, incompatible, irreversible]\n"


@pytest.mark.parametrize(("name", "steps"), STEPS, ids=[name for name, _ in STEPS])
def test_no_error_where_a_change_is_allowed(name: str, steps: tuple[Case, ...], tmp_path: Path) -> None:
    texts = [format_migration_file([creation_entry(steps[0].before)])]
    for case in steps:
        if case.verdict != "refused":
            assert case.after is not None
            texts.append(ALLOWED + format_migration_file([entry_between(case.before, case.after)]))
    told = found(tmp_path, tuple(texts))
    assert len(texts) > 1, name
    assert [str(d) for d in told if d.severity is Severity.ERROR] == []
    assert {d.code for d in told} & {rule.id for rule in RULES}
