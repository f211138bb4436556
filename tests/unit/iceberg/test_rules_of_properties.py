"""Where a migration changes only properties, only the rules that read properties run."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
from hypothesis import given

from icemigrate.frozen import replace
from icemigrate.iceberg import validation
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.validation.violation import ValidationContext, ValidationRule, Violation
from tests.support.evolution_strategies import befores
from tests.support.small_tables import table, with_columns

BASE = replace(table("id: required long, v: int"), properties={"k": "1"})
EDITED = replace(BASE, properties={"k": "2"})


def rules_run(
    monkeypatch: pytest.MonkeyPatch, after: Table, before: Table | None, written: Table | None = None
) -> set[ValidationRule]:
    run = set[ValidationRule]()

    def counting(rule: ValidationRule) -> ValidationRule:
        def call(view: ValidationContext) -> Iterator[Violation]:
            run.add(rule)
            return rule(view)

        return call

    counted = {rule: counting(rule) for rule in validation.VALIDATION_RULES}
    monkeypatch.setattr(validation, "VALIDATION_RULES", tuple(counted.values()))
    chosen = tuple(counted[rule] for rule in validation._RULES_OF_PROPERTIES)
    monkeypatch.setattr(validation, "_RULES_OF_PROPERTIES", chosen)
    assert list(validation.find_violations(after, before, written)) == []
    return run


def test_the_rules_that_read_properties_are_listed() -> None:
    reading = [rule for rule in validation.VALIDATION_RULES if ".properties" in inspect.getsource(rule)]
    assert reading == list(validation._RULES_OF_PROPERTIES)


def test_an_edit_of_a_property_runs_only_these(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = set(validation._RULES_OF_PROPERTIES)
    assert rules_run(monkeypatch, EDITED, BASE) == expected


@pytest.mark.parametrize(
    ("after", "before", "written"),
    [
        (EDITED, None, None),
        (EDITED, BASE, EDITED),
        (with_columns(EDITED, "id: required long, v: long"), BASE, None),
        (replace(EDITED, schema=replace(EDITED.schema, identifier_ids=frozenset({1}))), BASE, None),
        (replace(EDITED, format_version=3), BASE, None),
        (replace(EDITED, name=replace(EDITED.name, name="other")), BASE, None),
    ],
)
def test_any_other_edit_runs_all(
    monkeypatch: pytest.MonkeyPatch, after: Table, before: Table | None, written: Table | None
) -> None:
    expected = set(validation.VALIDATION_RULES)
    assert rules_run(monkeypatch, after, before, written) == expected


@given(before=befores(), other=befores())
def test_the_other_rules_find_nothing_new(before: Table, other: Table) -> None:
    after = replace(
        before, properties={**other.properties, "icemigrate.owner": "x", "write.format.default": "orc"}
    )
    view, whole = ValidationContext(after, before), ValidationContext(before, before, is_whole=True)
    for rule in validation.VALIDATION_RULES:
        if rule not in validation._RULES_OF_PROPERTIES:
            assert set(rule(view)) <= set(rule(whole)), rule.__name__
