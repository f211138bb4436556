"""The lock over an in-memory head, with clocks that the tests turn themselves."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from threading import Barrier, Thread
from threading import Lock as Mutex
from typing import Any

import pytest

from icemigrate.errors import EngineError, HeadMoved, LockHeld, LockLost, Stopped
from icemigrate.frozen import replace
from icemigrate.history.head_snapshot import HistoryHead, LockInfo, head_summary, parse_head
from icemigrate.history.project_lock import POLL_S, Heartbeat, Lock, boot_clock
from icemigrate.iceberg.table import Snapshot
from icemigrate.system.process_identity import process_identity
from icemigrate.system.waits import show_waits
from tests.crash.messages import LEASE_RAN_OUT

NOON = datetime(2026, 11, 27, 12, 0, tzinfo=timezone.utc)
LOCK_LEASE_S = 60.0


def info(user: str, lease_s: float = LOCK_LEASE_S) -> LockInfo:
    return LockInfo(f"run-{user}", user, "ci", 7, NOON, lease_s)


@dataclass
class Memory:
    """A head in memory.

    :param log: what moved it.
    :param fails: raised by the next swap; by whether the swap had come through before.
    """

    now: HistoryHead = field(default_factory=lambda: HistoryHead(0))
    log: list[str] = field(default_factory=list)
    fails: tuple[Exception, bool] | None = None
    mutex: Mutex = field(default_factory=Mutex)

    def head(self) -> HistoryHead:
        return self.now

    def swap(
        self,
        expected: int | None,
        event: str,
        lock: LockInfo | None,
        rows: Sequence[Mapping[str, Any]] = (),
        properties: Mapping[str, str] | None = None,
        remove: Sequence[str] = (),
    ) -> int:
        with self.mutex:
            if self.now.id != expected:
                raise HeadMoved("somebody was faster")
            fault, self.fails = self.fails, None
            if fault is None or fault[1]:
                self.now = HistoryHead((expected or 0) + 1, lock)
                self.log.append(event)
            if fault is not None:
                raise fault[0]
            assert self.now.id is not None
            return self.now.id

    def alive(self) -> None:
        """The holder gives a sign of life."""
        self.swap(self.now.id, "step", self.now.lock)


@dataclass
class Clock:
    """Seconds that pass when somebody waits.

    :param meanwhile: called after every wait.
    """

    now: float = 1000.0
    meanwhile: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.meanwhile()


def lock(memory: Memory, user: str, clock: Clock, lease_s: float = LOCK_LEASE_S) -> Lock:
    return Lock(memory, info(user, lease_s), clock, clock.wait)


def test_a_free_lock_is_taken_told_of_and_given_back() -> None:
    memory, clock = Memory(), Clock()
    mine = lock(memory, "ana", clock)
    assert mine.acquire(0) is None
    assert memory.now.lock == info("ana")
    mine.require()
    mine.release()
    assert memory.now.lock is None
    assert memory.log == ["locked", "released"]
    mine.release()
    assert memory.log == ["locked", "released"]
    with pytest.raises(LockLost, match="not held"):
        mine.require()


def test_who_may_not_wait_is_told_who_holds_it() -> None:
    memory, clock = Memory(), Clock()
    holder = lock(memory, "ana", clock)
    holder.acquire(0)
    clock.now += 2
    holder.step("0003: ALTER TABLE")
    with pytest.raises(LockHeld) as refused:
        lock(memory, "ben", clock).acquire(0)
    held = "ana on ci (process 7) since 2026-11-27 12:00:00 UTC, at: 0003: ALTER TABLE"
    assert refused.value.message == f"the lock is held by {held}"
    assert "icemigrate unlock" in (refused.value.hint or "")
    assert refused.value.exit_code == 5
    holder.require()


def test_who_waits_gets_it_when_it_is_given_back() -> None:
    memory, clock = Memory(), Clock()
    holder = lock(memory, "ana", clock)
    holder.acquire(0)
    told: list[str] = []

    def give_back() -> None:
        if clock.now > 1005:
            holder.release()

    clock.meanwhile = give_back
    assert lock(memory, "ben", clock).acquire(30, lambda other: told.append(other.user)) is None
    assert told == ["ana"]
    assert memory.log == ["locked", "released", "locked"]


def test_a_holder_who_gives_signs_of_life_keeps_it() -> None:
    memory, clock = Memory(), Clock()
    holder = lock(memory, "ana", clock)
    holder.acquire(0)

    clock.meanwhile = holder.renew_if_due
    with pytest.raises(LockHeld):
        lock(memory, "ben", clock).acquire(10 * LOCK_LEASE_S)
    holder.require()
    beats = memory.log.count("step")
    assert 10 * LOCK_LEASE_S / (LOCK_LEASE_S / 4) - 2 <= beats <= 10 * LOCK_LEASE_S / (LOCK_LEASE_S / 4)


def test_a_silent_holder_is_followed_after_a_lease_on_the_waiters_clock() -> None:
    memory, clock = Memory(), Clock()
    lock(memory, "ana", clock).acquire(0)
    # What the holder's clock said, or what stands in the head, does not matter: only the watching does.
    clock.now += 10 * LOCK_LEASE_S
    began = clock.now
    gone = lock(memory, "ben", clock).acquire(10 * LOCK_LEASE_S)
    assert gone == info("ana")
    assert LOCK_LEASE_S <= clock.now - began <= 1.1 * LOCK_LEASE_S + POLL_S
    assert memory.log == ["locked", "taken-over"]


def test_a_wait_and_a_takeover_say_who_holds_the_lock_since_when_and_why() -> None:
    memory, clock = Memory(), Clock()
    lock(memory, "ana", clock).acquire(0)
    seen: list[str] = []
    with show_waits(seen.append):
        lock(memory, "ben", clock).acquire(120)
    ana = "ana on ci (process 7) since 2026-11-27 12:00:00 UTC"
    assert seen == [
        f"Waiting at most 2 min for the lock, which is held by {ana}. If that process is dead, the lock is "
        "free after 60 s. Ctrl-C stops waiting; nothing has changed yet.",
        f"Took over the lock, because the process that held it has not renewed it for 60 s: {ana}.",
    ]


def test_the_lease_that_counts_is_the_holders() -> None:
    memory, clock = Memory(), Clock()
    lock(memory, "ana", clock, lease_s=300).acquire(0)
    began = clock.now
    lock(memory, "ben", clock, lease_s=1).acquire(1000)
    assert clock.now - began >= 300


def test_a_holder_past_its_lease_stops() -> None:
    memory, clock = Memory(), Clock()
    holder = lock(memory, "ana", clock)
    holder.acquire(0)
    clock.now += LOCK_LEASE_S - 0.1
    holder.require()
    clock.now += 0.1
    for act in (holder.require, lambda: holder.write("started"), lambda: holder.step("x")):
        with pytest.raises(LockLost, match=f"lease of 60 s {LEASE_RAN_OUT}") as lost:
            act()
        assert lost.value.exit_code == 5
    assert memory.log == ["locked"]


def test_a_holder_stops_before_anybody_can_follow() -> None:
    """Its lease counts from before the commit, the waiter's from after it."""
    memory, clock = Memory(), Clock()

    class Slow(Memory):
        def swap(self, *args: Any, **kwargs: Any) -> int:
            done = memory.swap(*args, **kwargs)
            clock.now += 20  # the answer takes its time
            return done

        def head(self) -> HistoryHead:
            return memory.head()

    holder = Lock(Slow(), info("ana"), clock, clock.wait)
    holder.acquire(0)
    lost: list[float] = []

    def watch() -> None:
        try:
            holder.require()
        except LockLost:
            lost.append(clock.now)

    clock.meanwhile = watch
    lock(memory, "ben", clock).acquire(1000)
    assert lost
    assert lost[0] < clock.now


def test_who_was_taken_over_learns_it_from_the_head() -> None:
    memory, clock = Memory(), Clock()
    holder = lock(memory, "ana", clock)
    holder.acquire(0)
    memory.swap(memory.now.id, "taken-over", info("ben"))
    with pytest.raises(LockLost, match="taken over by ben on ci"):
        holder.write("applied")
    with pytest.raises(LockLost, match="taken over by ben on ci"):
        holder.require()
    holder.release()
    assert memory.now.lock == info("ben")


def test_a_lock_that_was_taken_away_is_not_given_back_twice() -> None:
    memory, clock = Memory(), Clock()
    holder = lock(memory, "ana", clock)
    holder.acquire(0)
    memory.swap(memory.now.id, "unlocked", None)
    with pytest.raises(LockLost, match="unlock` removed"):
        holder.write("applied")
    holder.release()
    assert memory.log == ["locked", "unlocked"]


def test_steps_are_not_written_faster_than_people_read() -> None:
    memory, clock = Memory(), Clock()
    holder = lock(memory, "ana", clock)
    holder.acquire(0)
    for i in range(10):
        holder.step(f"step {i}")
        clock.now += 0.05
    assert memory.log == ["locked"]
    holder.renew_if_due()
    assert memory.now.lock == replace(info("ana"), step="step 9")
    holder.renew_if_due()
    assert memory.log == ["locked", "step"]
    clock.now += 1
    holder.step("slow")
    assert memory.now.lock == replace(info("ana"), step="slow")


@pytest.mark.parametrize("came_through", [True, False])
def test_a_commit_of_unknown_outcome_is_looked_at(came_through: bool) -> None:
    memory, clock = Memory(), Clock()
    holder = lock(memory, "ana", clock)
    holder.acquire(0)
    memory.fails = (EngineError("the catalog did not say"), came_through)
    if came_through:
        holder.write("started")
    else:
        with pytest.raises(EngineError, match="did not say"):
            holder.write("started")
    holder.write("applied")
    assert memory.log == ["locked", *(["started"] if came_through else []), "applied"]


def test_the_user_may_stop_the_waiting() -> None:
    memory, clock = Memory(), Clock()
    lock(memory, "ana", clock).acquire(0)

    def stop() -> None:
        raise Stopped("stopped by Ctrl-C")

    clock.meanwhile = stop
    with pytest.raises(Stopped):
        lock(memory, "ben", clock).acquire(1000)
    assert memory.now.lock == info("ana")


def test_many_at_once_take_turns() -> None:
    memory = Memory()
    inside: list[str] = []
    most: list[int] = []
    barrier = Barrier(10)

    def take_a_turn(number: int) -> None:
        mine = Lock(memory, info(f"user{number}"), time.monotonic, lambda seconds: time.sleep(0.001))
        barrier.wait()
        mine.acquire(60)
        inside.append(mine.holder.user)
        most.append(len(inside))
        mine.write("started")
        inside.remove(mine.holder.user)
        mine.release()

    threads = [Thread(target=take_a_turn, args=(i,)) for i in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 10
    assert memory.log == ["locked", "started", "released"] * 10


def test_the_heartbeat_keeps_a_lock_alive_and_ends_with_it() -> None:
    memory = Memory()
    mine = Lock(memory, info("ana", lease_s=2), time.monotonic)
    mine.acquire(0)
    with Heartbeat(mine):
        end = time.monotonic() + 10
        while time.monotonic() < end and memory.log.count("step") < 3:
            time.sleep(0.01)
        mine.require()
        assert memory.log.count("step") >= 3
        memory.swap(memory.now.id, "unlocked", None)
        while mine._lost is None and time.monotonic() < end + 5:
            time.sleep(0.01)
        with pytest.raises(LockLost, match="unlock` removed"):
            mine.require()
    written = list(memory.log)
    assert written[-1] == "unlocked"


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("error", [EngineError("no answer"), ConnectionResetError("reset by peer")])
def test_the_heartbeat_outlives_a_catalog_that_does_not_answer_once(error: Exception) -> None:
    memory = Memory()
    mine = Lock(memory, info("ana", lease_s=2), time.monotonic)
    mine.acquire(0)
    memory.fails = (error, False)
    with Heartbeat(mine):
        end = time.monotonic() + 10
        while time.monotonic() < end and "step" not in memory.log:
            time.sleep(0.01)
    mine.require()
    assert "step" in memory.log


def test_the_clock_only_goes_on() -> None:
    first = boot_clock()
    assert boot_clock() >= first


def test_a_holder_of_this_machine_that_has_ended_costs_no_lease() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = process_identity(child.pid)
    memory, clock = Memory(), Clock()
    holder = replace(info("ann"), pid=child.pid, process=identity)
    memory.swap(0, "locked", holder)
    with pytest.raises(LockHeld):
        Lock(memory, info("ben"), clock, clock.wait).acquire(0)
    child.kill()
    child.wait()
    before = clock.now
    assert Lock(memory, info("ben"), clock, clock.wait).acquire(0) == holder
    assert clock.now == before
    assert memory.log[-1] == "taken-over"


def test_the_identity_of_the_holder_is_in_the_head() -> None:
    holder = replace(info("ann"), pid=os.getpid(), process=process_identity())
    notes = {key.removeprefix("icemigrate."): value for key, value in head_summary("locked", holder).items()}
    read = parse_head(Snapshot(1, timestamp_ms=0, operation="append", notes=notes))
    assert read.lock is not None
    assert read.lock.process == holder.process
    assert not read.lock.has_ended
