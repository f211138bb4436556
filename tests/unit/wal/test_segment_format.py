"""The bytes of segments: whatever happens to them, each entry that is read was written."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icemigrate.wal import BadEntry, Entry, EntryKind, PayloadEncoding
from icemigrate.wal.entries import LONGEST_PAYLOAD, UnreadableBytes, require_valid
from icemigrate.wal.segment_format import HEADER_SIZE, SegmentEncoder, decode_segment

ENTRIES = st.lists(
    st.builds(
        Entry,
        st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,20}", fullmatch=True),
        st.sampled_from(EntryKind),
        st.integers(0, 2**63 - 1),
        st.binary(min_size=1, max_size=60),
        st.sampled_from(PayloadEncoding),
    ),
    max_size=6,
)


def segment(entries: list[Entry]) -> tuple[bytes, list[int], bytes]:
    """A segment without its footer, where each entry ends, and the footer."""
    encoder = SegmentEncoder()
    data, ends = encoder.header, []
    for entry in entries:
        data += encoder.encode_entry(entry)
        ends.append(len(data))
    return data, ends, encoder.encode_footer(len(entries))


def entries_of(data: bytes) -> list[Entry]:
    return [stored.entry for stored in decode_segment(data).entries]


@given(ENTRIES)
def test_a_sealed_segment_has_its_entries(entries: list[Entry]) -> None:
    data, ends, footer = segment(entries)
    content = decode_segment(data + footer)
    assert [stored.entry for stored in content.entries] == entries
    assert content.is_sealed
    assert content.damaged == ()
    assert content.end == (ends[-1] if ends else HEADER_SIZE)
    assert [stored.offset for stored in content.entries] == [HEADER_SIZE, *ends][: len(entries)]


@given(ENTRIES, st.data())
def test_a_torn_tail_is_no_entry(entries: list[Entry], random: st.DataObject) -> None:
    data, ends, footer = segment(entries)
    cut = random.draw(st.integers(0, len(data + footer) - 1))
    content = decode_segment((data + footer)[:cut])
    whole = [end for end in ends if end <= cut]
    assert [stored.entry for stored in content.entries] == entries[: len(whole)]
    assert not content.is_sealed
    if cut >= HEADER_SIZE:
        assert content.end == ([HEADER_SIZE, *whole])[-1]
        assert sum(part.length for part in content.damaged) == cut - content.end


@given(ENTRIES.filter(len), st.data())
def test_no_damaged_byte_makes_an_entry_or_hides_another_one(
    entries: list[Entry], random: st.DataObject
) -> None:
    data, ends, footer = segment(entries)
    at = random.draw(st.integers(HEADER_SIZE, len(data) - 1))
    damaged = bytearray(data + footer)
    damaged[at] ^= random.draw(st.integers(1, 255))
    content = decode_segment(bytes(damaged))
    hit = next(n for n, end in enumerate(ends) if at < end)
    assert [stored.entry for stored in content.entries] == entries[:hit] + entries[hit + 1 :]
    # The footer counts the entry that is missing.
    assert [part.reason for part in content.damaged][-1].startswith("the footer counts ")
    assert len(content.damaged) == 2


@given(ENTRIES, st.binary(max_size=60), st.text(max_size=1500), st.data())
def test_unreadable_bytes_are_reported_with_their_problem(
    entries: list[Entry], payload: bytes, problem: str, random: st.DataObject
) -> None:
    encoder = SegmentEncoder()
    frame = encoder.encode_unreadable(UnreadableBytes(payload, problem))
    encoded = [encoder.encode_entry(entry) for entry in entries]
    at = random.draw(st.integers(0, len(entries)))
    data = b"".join((encoder.header, *encoded[:at], frame, *encoded[at:]))
    whole = data + encoder.encode_footer(len(entries) + 1)
    content = decode_segment(whole)
    assert [stored.entry for stored in content.entries] == entries
    assert content.is_sealed
    (part,) = content.damaged
    assert whole[part.offset : part.offset + part.length] == payload
    assert problem.startswith(part.reason.rstrip("\ufffd"))
    assert decode_segment(data).end == len(data)


def test_no_entry_is_read_out_of_a_damaged_payload() -> None:
    inner = SegmentEncoder()
    forged = inner.encode_entry(Entry("victim", EntryKind.LOGS, 1, b"forged"))
    data, _, footer = segment([Entry("attacker", EntryKind.LOGS, 1, inner.header + forged + forged)])
    torn = bytearray(data + footer)
    torn[HEADER_SIZE + 9] ^= 1
    assert entries_of(bytes(torn)) == []


@pytest.mark.parametrize(
    ("time_ns", "tenant_length", "reason"),
    [
        (2**63, 4, f"the time {2**63} of the entry is after 2262"),
        (1, 6, "the entry ends within its tenant, which has 6 bytes"),
    ],
)
def test_an_entry_with_a_checksum_and_impossible_values_is_damaged(
    time_ns: int, tenant_length: int, reason: str
) -> None:
    encoder, good = SegmentEncoder(), Entry("globex", EntryKind.LOGS, 1, b"{}")
    body = struct.pack("<BBQH", 2, 1, time_ns, tenant_length) + b"acmex"
    checksum = crc32(body, crc32(struct.pack("<I", len(body))))
    frame = encoder.header[8:] + b"E" + struct.pack("<II", len(body), checksum) + body
    content = decode_segment(encoder.header + frame + encoder.encode_entry(good) + encoder.encode_footer(2))
    assert [stored.entry for stored in content.entries] == [good]
    assert [part.reason for part in content.damaged] == [
        reason,
        "the footer counts 2 entries, and 1 can be read",
    ]


def test_unreadable_bytes_that_end_within_their_problem_are_damaged() -> None:
    encoder = SegmentEncoder()
    body = struct.pack("<H", 9) + b"short"
    checksum = crc32(body, crc32(struct.pack("<I", len(body))))
    frame = encoder.header[8:] + b"U" + struct.pack("<II", len(body), checksum) + body
    content = decode_segment(encoder.header + frame + encoder.encode_footer(1))
    first = content.damaged[0]
    assert (first.offset, first.length) == (HEADER_SIZE, len(frame))
    assert content.is_sealed


def test_what_is_no_segment_is_damaged_as_a_whole() -> None:
    for data in (b"x", b"PAR1" * 100, SegmentEncoder().header[:-1]):
        (part,) = decode_segment(data).damaged
        assert (part.offset, part.length) == (0, len(data))
    assert decode_segment(b"").parts == ()


@pytest.mark.parametrize(
    "tenant", ["../x", "a.b", "", "-a", "a\n", "a b", "a/b", "a'b", "a`b", "а", "é", "a" * 129]
)
def test_an_id_that_could_leave_a_name_is_refused(tenant: str) -> None:
    with pytest.raises(BadEntry) as error:
        require_valid(Entry(tenant, EntryKind.LOGS, 1, b"x"))
    assert error.value.message == f"{tenant[:128]!r} cannot be the id of a tenant"


@pytest.mark.parametrize(
    ("time_ns", "payload", "message"),
    [
        (-1, b"x", "the time -1 is not between 1970 and 2262"),
        (2**63, b"x", f"the time {2**63} is not between 1970 and 2262"),
        (1, b"", f"the payload has 0 bytes, and an entry takes 1 to {LONGEST_PAYLOAD:,}"),
    ],
)
def test_an_entry_that_no_segment_can_have_is_refused(time_ns: int, payload: bytes, message: str) -> None:
    with pytest.raises(BadEntry) as error:
        require_valid(Entry("a", EntryKind.LOGS, time_ns, payload))
    assert error.value.message == message
