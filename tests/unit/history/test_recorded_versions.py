"""What a run was asked for is in its intent; an older intent is read as one that asked nothing."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest

from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.history.recorded_versions import (
    AppliedVersion,
    Intent,
    VersionState,
    decode_recorded,
    encode_recorded,
    encode_versions,
)
from icemigrate.planning.plan import Direction

BEGUN = Intent(
    version=Version.parse("0002"),
    direction=Direction.ROLLBACK,
    started_at=datetime(2026, 11, 28, tzinfo=timezone.utc),
    user="ana",
    host="ci",
    run="c0ffee",
    choices=("--partial", "--no-refill"),
)


def test_an_intent_is_read_as_it_was_written() -> None:
    assert decode_recorded(encode_recorded(BEGUN), Intent) == BEGUN
    assert BEGUN.command == "rollback --partial --no-refill"


def test_an_intent_of_an_older_icemigrate_is_read() -> None:
    written = json.loads(encode_recorded(BEGUN))
    del written["choices"]
    read = decode_recorded(json.dumps(written), Intent)
    assert (read.choices, read.is_redo, read.command) == ((), False, "rollback")


RECORDED = (
    '[{"version":"0001","checksum":"abc","description":"Begin – café",'
    '"applied_at":"2026-11-27T12:00:00+00:00","applied_by":"ann","duration_ms":1200,"standing":"held",'
    '"fingerprint":"f00d","since":"0001","stays":["tag kept"]}]'
)
APPLIED = AppliedVersion(
    version=Version.parse("0001"),
    checksum="abc",
    description="Begin – café",
    applied_at=datetime(2026, 11, 27, 12, tzinfo=timezone.utc),
    applied_by="ann",
    duration_ms=1200,
    state=VersionState.ROLLED_BACK,
    fingerprint="f00d",
    since="0001",
    remaining_effects=("tag kept",),
)


def test_versions_are_written_as_earlier_releases_wrote_them() -> None:
    assert encode_versions([APPLIED]) == RECORDED
    (read,) = decode_recorded(RECORDED, tuple[AppliedVersion, ...])
    assert (read, read.version.text) == (APPLIED, "0001")


def test_a_version_of_the_first_release_is_read() -> None:
    text = RECORDED.replace(
        '"fingerprint":"f00d","since":"0001","stays":["tag kept"]', '"of_a_later_release":[1]'
    )
    (read,) = decode_recorded(text, tuple[AppliedVersion, ...])
    assert read == replace(APPLIED, fingerprint="", since="", remaining_effects=())


def test_the_version_before_an_intent_is_read() -> None:
    begun = replace(BEGUN, was=APPLIED, metadata={"db.t": "s3://b/m.json"}, is_redo=True)
    assert decode_recorded(encode_recorded(begun), Intent) == begun
    assert '"redo":true' in encode_recorded(begun)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "truncated"),
        ('[{"version":"0001"}]', r"missing required field `checksum` - at `\$\[0\]`"),
        (RECORDED.replace('"held"', '"unheard of"'), r"unheard of.*\$\[0\].standing"),
        (RECORDED.replace("1200", '"1200"'), r"Expected `int`, got `str` - at `\$\[0\].duration_ms`"),
        (RECORDED.replace('"0001","checksum"', '"x","checksum"'), "a version is 1 to 18 digits"),
    ],
)
def test_what_was_altered_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode_recorded(text, tuple[AppliedVersion, ...])
