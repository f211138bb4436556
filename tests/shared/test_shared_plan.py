"""Every case and every change of a real schema: planned with the right verdict, and to the right table.

Each is written as YAML, read, folded and planned against a table with its history, its snapshots and its
references.  Three are judged otherwise than by comparing states:

* RN-10 and RN-22 lead to no state at all; their entries hold what the case declares, the rename.
* TY-26 changes an initial default, for which a migration has no words; the planner is handed the value.

One part of one case waits: RF-01's tag shall point at an earlier snapshot.  A file declares a tag and its
retention; where it points is where the table is when the tag is made.
"""

from __future__ import annotations

import pytest

from icemigrate.changes.change import HazardKind
from icemigrate.frozen import replace
from icemigrate.planning.plan import Plan
from icemigrate.planning.plan_file import parse_plan_file, plan_file_text
from tests.support.shared_cases import Case, evolution_cases, real_schema_steps, settled
from tests.support.shared_plans import BY_COMMIT, REFUSED_BY, judge, outcome

CASES = (*evolution_cases(), *real_schema_steps())
ALLOWED = [c for c in CASES if c.verdict == "allowed"]
FLAGGED = [c for c in CASES if c.verdict == "needs-flag"]
REFUSED = [c for c in CASES if c.verdict == "refused" and c.id not in BY_COMMIT]
each_case = pytest.mark.parametrize("case", [*ALLOWED, *FLAGGED], ids=lambda c: c.id)


@pytest.mark.parametrize("case", ALLOWED, ids=lambda c: c.id)
def test_an_allowed_case_needs_no_consent(case: Case) -> None:
    judged = judge(case)
    assert (judged.rules, judged.needed) == (frozenset(), frozenset())
    assert judged.ready
    assert judged.table.steps


@pytest.mark.parametrize("case", FLAGGED, ids=lambda c: c.id)
def test_a_case_that_needs_a_flag_needs_just_that(case: Case) -> None:
    assert case.flag_kind is not None
    without = judge(case)
    assert (without.ready, without.rules) == (False, frozenset())
    assert without.needed == {case.flag_kind}
    assert judge(case, [case.flag_kind]).ready
    others = [kind.value for kind in HazardKind if kind.value != case.flag_kind]
    assert judge(case, others).needed == {case.flag_kind}


@pytest.mark.parametrize("case", REFUSED, ids=lambda c: c.id)
def test_a_refused_case_is_refused_by_its_rule_whatever_is_allowed(case: Case) -> None:
    for allow in ([], [kind.value for kind in HazardKind]):
        judged = judge(case, allow)
        assert judged.rules == {REFUSED_BY[case.id]}
        assert not judged.ready


@each_case
def test_the_plan_leads_to_the_table_that_the_case_ends_with(case: Case) -> None:
    assert case.after is not None
    judged = judge(case)
    after, wanted = judged.after, settled(case.after, case.before)
    assert after.schema == wanted.schema
    # Each statement leaves a spec of its own, so the last one's id is not compared here.
    assert after.spec.fields == wanted.spec.fields
    assert after.sort_order == wanted.sort_order
    assert dict(after.properties) == dict(wanted.properties)
    assert (after.format_version, after.name) == (wanted.format_version, wanted.name)
    assert after.last_column_id == wanted.last_column_id
    assert after.last_partition_id == wanted.last_partition_id
    limits = {name: replace(ref, snapshot_id=0) for name, ref in after.refs.items() if name != "main"}
    assert limits == {name: replace(ref, snapshot_id=0) for name, ref in wanted.refs.items()}


@pytest.mark.parametrize("case", [c for c in CASES if c.expect], ids=lambda c: c.id)
def test_the_plan_gives_the_ids_and_names_that_the_case_expects(case: Case) -> None:
    after = judge(case).after
    assert {key: outcome(key, after, case) for key in case.expect} == case.expect


@each_case
def test_a_plan_is_the_same_after_it_was_saved(case: Case) -> None:
    judged = judge(case)
    assert judged.plan is not None
    plan = Plan("cases", "local", "sqlite", "lake", (judged.plan,), based_on={case.before.name: case.before})
    assert parse_plan_file(plan_file_text(plan), "plan.json") == plan
