"""The lock file: written by commands, read by ``check``, and in conflict where branches meet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from icemigrate.commands.check import check
from icemigrate.commands.check import lock as lock_files
from icemigrate.commands.init import new
from icemigrate.commands.plan import plan
from icemigrate.commands.project_files import load_files
from icemigrate.commands.rebase import rebase
from icemigrate.commands.revert import revert
from icemigrate.commands.squash import squash
from icemigrate.commands.status import status
from icemigrate.diagnostics import Severity
from icemigrate.errors import IcemigrateError
from icemigrate.files.lock_file import FILE_NAME, lock_text
from icemigrate.project import open_project
from tests.support.embedded_project import Embedded
from tests.support.git_projects import QUOTES, TRADES, GitProject, column, is_of_rule

FOUR = "tables: [{name: db.trades, columns: [{name: venue, type: string}, {name: side, type: string}]}]\n"


@pytest.fixture
def shop(tmp_path: Path) -> GitProject:
    """Two migrations, a lock file, all committed."""
    shop = GitProject.make(tmp_path / "shop")
    shop.write("0001_trades.yaml", TRADES)
    shop.write("0002_quotes.yaml", QUOTES)
    fix(shop)
    shop.commit()
    return shop


def fix(shop: GitProject) -> list[str]:
    return shop.findings(None, fix=True)


def lock(shop: GitProject) -> list[str]:
    """The lock file's lines, without the remark at its top."""
    return [line for line in shop.path(FILE_NAME).read_text().splitlines() if not line.startswith("#")]


def locked(shop: GitProject) -> list[str]:
    return [line.partition(" ")[0] for line in lock(shop)]


def merge(shop: GitProject, branch: str, *, conflicts: bool) -> str:
    return shop.git("merge", "--quiet", "--no-edit", branch, fails=conflicts)


def test_a_project_without_a_lock_file_is_fine(tmp_path: Path) -> None:
    shop = GitProject.make(tmp_path)
    shop.write("0001_trades.yaml", TRADES)
    assert shop.findings(None) == []
    assert not shop.path(FILE_NAME).exists()


def test_fix_writes_it_and_says_so_once(tmp_path: Path) -> None:
    shop = GitProject.make(tmp_path)
    shop.write("0001_trades.yaml", TRADES)
    assert fix(shop) == ["icemigrate.lock:1 lock-written"]
    assert locked(shop) == ["0001"]
    assert fix(shop) == []
    assert shop.findings(None) == []


def test_each_line_depends_on_the_line_before(shop: GitProject) -> None:
    before = [line.split() for line in lock(shop)]
    shop.write("0001_trades.yaml", TRADES.replace("double", "float"))
    fix(shop)
    after = [line.split() for line in lock(shop)]
    assert before[1][:2] == after[1][:2]
    assert before[1][2] != after[1][2]


def test_a_stale_lock_file_fails_and_names_every_file(shop: GitProject) -> None:
    shop.write("0001_trades.yaml", TRADES.replace("double", "float"))
    shop.path("0002_quotes.yaml").unlink()
    shop.write("0003_venue.yaml", column("venue"))
    result = check(open_project(shop.folder))
    assert not result.ok
    found = [d for d in result.diagnostics if not is_of_rule(d)]
    told = [(d.code, Path(d.place.file).name if d.place else "", d.hint or "") for d in found]
    assert [one[:2] for one in told] == [
        ("lock-stale", "0001_trades.yaml"),
        ("lock-stale", "0003_venue.yaml"),
        ("lock-stale", FILE_NAME),
    ]
    assert all("check --fix" in hint for _, _, hint in told)
    # What is the rule comes first, what is the exception after it; files do not tell what was rolled back.
    assert told[0][2].startswith("if you edited it on purpose, run ")
    assert "if `icemigrate status` shows it as `edited`, another content is applied: restore" in told[0][2]
    fix(shop)
    assert shop.findings(None) == []


def test_a_file_that_is_not_committed_is_a_warning_after_the_errors(shop: GitProject) -> None:
    name = Path(new(open_project(shop.folder), "third")).name
    shop.write(name, column("venue", "db.unknown"))
    fixes = check(open_project(shop.folder)).diagnostics
    assert fixes[-1].code == "lock-stale"
    assert (fixes[-1].severity, fixes[-1].hint) == (
        Severity.WARNING,
        "run `icemigrate check --fix` when the file is ready",
    )
    shop.write(name, column("venue"))
    assert check(open_project(shop.folder)).ok
    shop.commit()
    (found,) = [d for d in check(open_project(shop.folder)).diagnostics if d.code == "lock-stale"]
    assert found.severity is Severity.ERROR


def test_a_committed_template_may_be_edited(shop: GitProject) -> None:
    name = Path(new(open_project(shop.folder), "third")).name
    shop.commit()
    shop.write(name, column("venue"))
    assert check(open_project(shop.folder)).ok
    fix(shop)
    shop.commit()
    shop.write(name, column("side"))
    assert not check(open_project(shop.folder)).ok


def test_without_git_only_what_new_wrote_is_in_progress(tmp_path: Path) -> None:
    shop = Embedded(tmp_path)
    shop.write("0001_trades.yaml", TRADES)
    name = Path(new(open_project(shop.folder), "second")).name
    shop.write(name, column("venue"))
    assert check(open_project(shop.folder)).ok
    shop.write("0001_trades.yaml", TRADES.replace("double", "float"))
    assert not check(open_project(shop.folder)).ok


def test_comments_and_layout_make_nothing_stale(shop: GitProject) -> None:
    shop.write("0001_trades.yaml", f"# Trades.\r\ndescription: Of trades\r\n{TRADES}")
    assert shop.findings(None) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\x00\x01", "icemigrate.lock:1 lock-unreadable"),
        ("hello\n", "icemigrate.lock:1 lock-unreadable"),
        ("# ok\n0001 abc def\n", "icemigrate.lock:2 lock-unreadable"),
        (
            f"<<<<<<< HEAD\n0003 {'a' * 64} {'b' * 16}\n=======\n>>>>>>> other\n",
            "icemigrate.lock:1 lock-conflict",
        ),
        (f"0001 {'a' * 64} {'b' * 16}\n", "icemigrate.lock:1 lock-chain"),
    ],
)
def test_what_is_no_lock_file_is_one_finding(shop: GitProject, text: str, found: str) -> None:
    shop.path(FILE_NAME).write_text(text)
    assert shop.findings(None) == [found]
    assert fix(shop) == ["icemigrate.lock:1 lock-written"]


def test_a_lock_file_that_is_a_folder_is_a_finding_and_a_fault(shop: GitProject) -> None:
    shop.path(FILE_NAME).unlink()
    shop.path(FILE_NAME).mkdir()
    assert shop.findings(None) == ["icemigrate.lock:1 unreadable-file"]
    with pytest.raises(IcemigrateError, match="cannot be read: is a directory"):
        fix(shop)


def test_windows_line_breaks_are_read(shop: GitProject) -> None:
    path = shop.path(FILE_NAME)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert shop.findings(None) == []
    assert fix(shop) == []


def test_two_branches_that_add_a_migration_conflict(shop: GitProject) -> None:
    shop.branch("venue")
    shop.write("0003_venue.yaml", column("venue"))
    fix(shop)
    shop.commit()
    shop.switch("main")
    shop.branch("side")
    shop.write("0004_side.yaml", column("side"))
    fix(shop)
    shop.commit()
    merge(shop, "venue", conflicts=True)
    assert shop.git("diff", "--name-only", "--diff-filter=U").split() == [f"migrations/{FILE_NAME}"]
    assert [f.split()[1] for f in shop.findings(None)] == ["lock-conflict"]
    fix(shop)
    assert locked(shop) == ["0001", "0002", "0003", "0004"]
    assert shop.findings(None) == []


def test_a_branch_that_adds_at_the_end_conflicts_with_one_that_adds_in_between(shop: GitProject) -> None:
    shop.write("0010_ten.yaml", column("ten"))
    fix(shop)
    shop.commit()
    for name, file in (("between", "0005_five"), ("end", "0011_eleven")):
        shop.switch("main")
        shop.branch(name)
        shop.write(f"{file}.yaml", column(name))
        fix(shop)
        shop.commit()
    merge(shop, "between", conflicts=True)


def test_one_branch_after_the_other_does_not_conflict(shop: GitProject) -> None:
    shop.branch("venue")
    shop.write("0003_venue.yaml", column("venue"))
    fix(shop)
    shop.commit()
    shop.switch("main")
    (shop.top / "README").write_text("Something else goes on here.\n")
    shop.commit()
    merge(shop, "venue", conflicts=False)
    shop.branch("side")
    shop.write("0004_side.yaml", column("side"))
    fix(shop)
    shop.commit()
    shop.switch("main")
    merge(shop, "side", conflicts=False)
    assert shop.findings(None) == []


def test_lines_that_a_merge_driver_joined_are_seen(shop: GitProject) -> None:
    (shop.top / ".gitattributes").write_text("*.lock merge=union\n")
    shop.commit()
    for name, version in (("venue", "0003"), ("side", "0004")):
        shop.switch("main")
        shop.branch(name)
        shop.write(f"{version}_{name}.yaml", column(name))
        fix(shop)
        shop.commit()
    merge(shop, "venue", conflicts=False)
    assert [f.split()[1] for f in shop.findings(None)] == ["lock-chain"]


def test_new_begins_it_and_adds_to_it(tmp_path: Path) -> None:
    shop = GitProject.make(tmp_path)
    new(open_project(shop.folder), "first")
    assert locked(shop) == ["0001"]
    new(open_project(shop.folder), "second")
    assert locked(shop) == ["0001", "0002"]
    assert "lock-stale" not in str(shop.findings(None))


def test_a_command_takes_over_nothing_but_what_it_wrote(shop: GitProject) -> None:
    shop.write("0001_trades.yaml", TRADES.replace("double", "float"))
    new(open_project(shop.folder), "third")
    assert locked(shop) == ["0001", "0002", "0003"]
    assert shop.findings(None) == ["0001_trades.yaml:1 lock-stale", "0003_third.yaml:1 empty-migration"]


def test_a_command_leaves_what_it_cannot_read(shop: GitProject) -> None:
    shop.path(FILE_NAME).write_text("<<<<<<< HEAD\n")
    new(open_project(shop.folder), "third")
    assert shop.path(FILE_NAME).read_text() == "<<<<<<< HEAD\n"


def test_revert_rebase_and_squash_keep_it(shop: GitProject) -> None:
    shop.write("0003_venue.yaml", column("venue"))
    fix(shop)
    project = open_project(shop.folder)
    revert(project, "0003")
    assert locked(shop) == ["0001", "0002", "0003", "0004"]
    shop.write("0004_b.yaml", column("side"))
    rebase(project, ["0004_b.yaml"])
    assert locked(shop) == ["0001", "0002", "0003", "0004", "0005"]
    assert shop.findings(None) == []
    squash(project, "0003")
    assert locked(shop) == ["0003", "0004", "0005"]
    assert shop.findings(None) == []


def test_the_page_names_every_command_that_writes_to_it() -> None:
    root = Path(__file__).resolve().parents[3]
    writes = re.compile(r"(?<!def )\b(update_lock_file|write_next_file|write_migration)\(")
    on_behalf = {"next_migration_file", "migration_draft", "lock_file_checks"}
    found = {p.stem for p in (root / "icemigrate" / "commands").glob("*.py") if writes.search(p.read_text())}
    commands = {
        "init": "new",
        "diff": "diff",
        "import_tables": "import",
        "drift_accept": "drift --accept",
        "revert": "revert",
        "rebase": "rebase",
        "squash": "squash",
        "ingest_propose": "ingest propose",
    }
    assert found - on_behalf == set(commands)
    page = " ".join((root / "docs" / "pull-requests.md").read_text(encoding="utf-8").split())
    told = page.partition("create the lock file. ")[2].partition(" record only their own changes")[0]
    assert set(re.findall("`(.*?)`", told)) == set(commands.values())


def test_rebase_warns_of_a_file_that_the_main_branch_has(shop: GitProject) -> None:
    shop.branch("work")
    shop.write("0003_venue.yaml", column("venue"))
    project = open_project(shop.folder)
    assert rebase(project, ["0003"]).notes == (), "nobody else has it"
    (note,) = rebase(project, ["0002"]).notes
    assert note.startswith("`main` already has `")
    assert "0002_quotes.yaml`: environments that applied 0002 will report it as missing" in note


def test_rebase_squash_and_revert_begin_none(shop: GitProject) -> None:
    shop.path(FILE_NAME).unlink()
    squash(open_project(shop.folder), "0002")
    assert not shop.path(FILE_NAME).exists()


def test_fix_waits_for_files_that_can_be_read(shop: GitProject) -> None:
    before = lock(shop)
    shop.write("0002_quotes.yaml", "tables: [")
    result = check(open_project(shop.folder), fix=True)
    assert "lock-kept" in [d.code for d in result.diagnostics if d.severity is Severity.NOTE]
    assert lock(shop) == before
    assert "lock-stale" not in [d.code for d in result.diagnostics]


MISTAKES = {
    "a step that cannot be": "tables: [{name: db.trades, drop_columns: [nothing]}]\n",
    "a consent is missing": "tables: [{name: db.trades, drop_columns: [price]}]\n",
    "no YAML": "tables: [",
}


@pytest.mark.parametrize("text", MISTAKES.values(), ids=MISTAKES)
def test_fix_waits_for_whatever_has_to_be_mended_in_the_files(shop: GitProject, text: str) -> None:
    before = lock(shop)
    shop.write("0003_wrong.yaml", text)
    shop.write("0004_not_locked.yaml", column("later"))
    result = check(open_project(shop.folder), fix=True)
    assert not result.ok
    (error,) = [d for d in result.diagnostics if d.severity is Severity.ERROR]
    assert error.place is not None
    assert error.place.file.endswith("0003_wrong.yaml")
    (shop.folder / "migrations" / "0004_not_locked.yaml").unlink()
    (note,) = [d for d in result.diagnostics if d.severity is Severity.NOTE]
    assert (note.code, note.message) == (
        "lock-kept",
        "the lock file was not updated, because a migration has an error",
    )
    assert lock(shop) == before
    shop.write("0003_wrong.yaml", column("venue"))
    assert fix(shop) == [f"{FILE_NAME}:1 lock-written"]


def test_what_rules_find_keeps_no_lock_file_from_being_written(shop: GitProject) -> None:
    (shop.folder / "icemigrate.yaml").write_text("rules: {IM104: error}\n")
    shop.write("0003_drop.yaml", f"allow: [destructive]\n{MISTAKES['a consent is missing']}")
    result = check(open_project(shop.folder), fix=True)
    assert not result.ok
    assert [d.code for d in result.diagnostics if d.code.startswith("lock")] == ["lock-written"]
    assert locked(shop) == ["0001", "0002", "0003"]


def test_fix_says_nothing_of_a_lock_file_that_is_right(shop: GitProject) -> None:
    shop.write("0003_drop.yaml", MISTAKES["a consent is missing"])
    there = load_files(open_project(shop.folder)).files
    shop.path(FILE_NAME).write_text(lock_text((f.version, f.checksum) for f in there))
    assert [f.partition(" ")[2] for f in fix(shop)] == ["missing-allow"]


def test_the_reference_project_has_one_that_is_fresh() -> None:
    root = Path(__file__).resolve().parents[3]
    assert (root / "migrations" / FILE_NAME).is_file()
    assert [d for d in check(open_project(root)).diagnostics if d.code.startswith("lock")] == []


def test_what_a_change_does_to_the_lock_file_is_not_said_to_be_in_the_base(shop: GitProject) -> None:
    shop.branch("work")
    shop.path("0002_quotes.yaml").unlink()
    assert shop.findings() == ["0002_quotes.yaml:1 deleted-migration", f"{FILE_NAME}:3 lock-stale"]


def test_a_lock_file_that_is_stale_in_the_base_is_told_as_such(shop: GitProject) -> None:
    shop.commit(_0003_venue=column("venue"))
    shop.branch("work")
    stale = shop.findings(None)
    assert stale
    assert shop.findings() == [f"!{one}" for one in stale]


@pytest.mark.parametrize("is_inside", [True, False])
def test_a_lock_file_that_is_a_link_is_not_written_through(
    shop: GitProject, tmp_path: Path, is_inside: bool
) -> None:
    real = (shop.folder if is_inside else tmp_path) / "real.lock"
    shop.path(FILE_NAME).rename(real)
    shop.path(FILE_NAME).symlink_to(real)
    before = real.read_bytes()
    shop.write("0003_venue.yaml", column("venue"))
    expected = "it is a link, and links are not followed" if is_inside else "it leads out of the repository"
    with pytest.raises(IcemigrateError, match=expected):
        fix(shop)
    assert real.read_bytes() == before
    assert shop.path(FILE_NAME).is_symlink()


def test_plan_warns_of_what_check_refuses_and_the_advice_works_for_an_applied_file(tmp_path: Path) -> None:
    shop = Embedded(tmp_path)
    shop.write("0001_trades.yaml", TRADES)
    project = open_project(shop.folder)
    lock_files(project)
    shop.write("0001_trades.yaml", TRADES.replace("double", "float"))
    found = plan(project)
    assert found.ready
    assert [(d.code, d.severity) for d in found.diagnostics] == [("lock-stale", Severity.WARNING)]
    shop.apply()
    (refused,) = [d for d in check(project).diagnostics if d.code == "lock-stale"]
    assert refused.hint is not None
    assert "if `icemigrate status` shows it as `edited`" in refused.hint
    assert [m.state for m in status(project).migrations] == ["applied"]
    lock_files(project)
    assert "lock-stale" not in [d.code for d in (*plan(project).diagnostics, *check(project).diagnostics)]
