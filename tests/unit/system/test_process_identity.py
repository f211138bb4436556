"""A process that has ended is recognized; one that may run is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from icemigrate.system.process_identity import has_ended, process_identity, seconds_since_start

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux shows processes")


def started() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


def test_a_process_that_runs_has_not_ended() -> None:
    assert process_identity()
    assert not has_ended(os.getpid(), process_identity())


def test_a_process_that_was_killed_has_ended_before_and_after_its_parent_asks() -> None:
    child = started()
    identity = process_identity(child.pid)
    assert not has_ended(child.pid, identity)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert has_ended(child.pid, identity), "it is a zombie"
    child.wait()
    assert has_ended(child.pid, identity)


def test_another_process_with_the_same_number_is_not_the_same() -> None:
    child = started()
    boot, namespace, start = process_identity(child.pid).split(" ")
    assert has_ended(child.pid, f"{boot} {namespace} {int(start) - 1}")
    child.kill()
    child.wait()


@pytest.mark.parametrize("change", ["boot", "namespace", "nothing is known"])
def test_of_another_machine_or_container_nothing_is_known(change: str) -> None:
    child = started()
    boot, namespace, start = process_identity(child.pid).split(" ")
    child.kill()
    child.wait()
    other = {
        "boot": f"0{boot[1:]}x {namespace} {start}",
        "namespace": f"{boot} pid:[1] {start}",
        "nothing is known": "",
    }[change]
    assert not has_ended(child.pid, other)


def test_a_system_that_shows_no_processes(tmp_path: Path) -> None:
    assert process_identity(proc=tmp_path) == ""
    assert not has_ended(1, process_identity(), tmp_path)


def test_a_program_may_have_brackets_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("boot")
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to("pid:[1]")
    (tmp_path / "7").mkdir()
    fields = ["S", *map(str, range(4, 22)), "4711", "0"]
    (tmp_path / "7" / "stat").write_text(f"7 (odd ) name) {' '.join(fields)}")
    assert process_identity(7, tmp_path) == "boot pid:[1] 4711"


def test_the_age_of_a_process_counts_from_its_start(tmp_path: Path) -> None:
    code = "from icemigrate.system.process_identity import seconds_since_start; print(seconds_since_start())"
    before = seconds_since_start()
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert 0 < float(ran.stdout) <= seconds_since_start() - before + 2 * tick
    assert seconds_since_start(tmp_path) == 0, "the system does not show it"
