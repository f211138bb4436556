"""Files of a repository: what may be read and written, and what leads out."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from icemigrate.system.file_reads import InsideFolder, open_inside, open_named
from icemigrate.system.file_writes import (
    create_inside,
    make_folder_inside,
    remove_inside,
    rename_inside,
    replace_inside,
    replace_named,
)
from icemigrate.system.path_patterns import find_matching_files
from icemigrate.system.repository_boundary import OutsideRepository, repository_top, resolve_inside, user_path

OpenFile = Callable[[Path, Path], BinaryIO]


def open_in_folder(path: Path, top: Path) -> BinaryIO:
    """Open a file in its folder, which is opened first."""
    with InsideFolder(path.parent, top) as folder:
        return folder.open_file(path.name)


@pytest.fixture(params=[open_inside, open_in_folder])
def open_file(request: pytest.FixtureRequest) -> OpenFile:
    opened: OpenFile = request.param
    return opened


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository beside a folder `outside` that holds a file."""
    made = tmp_path / "repository"
    (made / ".git").mkdir(parents=True)
    (made / "lake" / "migrations").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("outside")
    return made


def test_a_repository_begins_at_the_nearest_folder_with_git(top: Path) -> None:
    assert repository_top(top / "lake" / "migrations") == top
    (top / "lake" / ".git").write_text("gitdir: ../.git/modules/lake\n")
    assert repository_top(top / "lake" / "migrations") == top / "lake"


def test_a_folder_in_no_repository_is_its_own_top(tmp_path: Path) -> None:
    assert repository_top(tmp_path / "a") == tmp_path / "a"


@pytest.mark.parametrize(
    "path",
    ["../outside/file", "/etc/passwd", ".git/config", "lake/../.GIT/config", "..", "lake/../../outside"],
)
def test_paths_that_lead_out(top: Path, path: str) -> None:
    with pytest.raises(OutsideRepository):
        resolve_inside(top / path, top)


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("lake/a", "../../outside/file"),
        ("lake/a", "../.git/config"),
        ("lake/a", "/etc/passwd"),
        ("lake/deep", "../../outside"),
    ],
)
def test_links_that_lead_out(open_file: OpenFile, top: Path, link: str, target: str) -> None:
    (top / link).symlink_to(target)
    path = top / link if link == "lake/a" else top / link / "file"
    with pytest.raises(OutsideRepository):
        open_file(path, top)
    with pytest.raises(OSError, match=r"leads|is a link"):
        replace_inside(path, b"mine", top)
    assert (top.parent / "outside" / "file").read_text() == "outside"


@pytest.mark.parametrize("target", ["../.env", ".env", "../.aws/credentials", "linked"])
def test_a_link_does_not_lead_to_hidden_files(open_file: OpenFile, top: Path, target: str) -> None:
    for name in (".env", "lake/.env", ".aws/credentials"):
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text("TOKEN=x")
    (top / "lake" / "linked").symlink_to("../.env")
    (top / "lake" / "a.yaml").symlink_to(target)
    with pytest.raises(OutsideRepository, match="leads to a hidden file"):
        open_file(top / "lake" / "a.yaml", top)
    with open_file(top / ".env", top) as stream:
        assert stream.read() == b"TOKEN=x", "a path that says so itself"


def test_files_that_kubernetes_mounts_are_read(open_file: OpenFile, top: Path) -> None:
    folder = top / "lake" / "migrations"
    (folder / "..2026_11_28").mkdir()
    (folder / "..2026_11_28" / "0001_a.yaml").write_text("text")
    (folder / "..data").symlink_to("..2026_11_28")
    (folder / "0001_a.yaml").symlink_to("..data/0001_a.yaml")
    with open_file(folder / "0001_a.yaml", top) as stream:
        assert stream.read() == b"text"


def test_a_link_that_stays_inside_is_read_and_not_written_through(open_file: OpenFile, top: Path) -> None:
    (top / "real").write_text("inside")
    (top / "lake" / "a").symlink_to("../real")
    with open_file(top / "lake" / "a", top) as stream:
        assert stream.read() == b"inside"
    with pytest.raises(OutsideRepository, match="links are not followed"):
        replace_inside(top / "lake" / "a", b"mine", top)
    assert (top / "real").read_text() == "inside"


def test_a_link_that_appears_after_the_check_is_not_followed(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path is resolved first; then each part is opened without following a link."""
    folder = top / "lake" / "migrations"
    (folder / "a.yaml").write_text("inside")
    realpath = os.path.realpath

    def swapped(path: Path) -> str:
        found = realpath(path)
        if Path(path).name == "a.yaml" and not folder.is_symlink():
            folder.rename(top / "lake" / "before")
            (top.parent / "outside" / "a.yaml").write_text("outside")
            folder.symlink_to(top.parent / "outside")
        return found

    monkeypatch.setattr(os.path, "realpath", swapped)
    with pytest.raises(OSError, match=r"[Nn]ot a directory|symbolic links"):
        open_inside(folder / "a.yaml", top)


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket"])
def test_what_is_no_regular_file_is_neither_read_nor_replaced(
    open_file: OpenFile, top: Path, kind: str
) -> None:
    path = top / "lake" / "a"
    if kind == "folder":
        path.mkdir()
    else:
        os.mknod(path, (stat.S_IFIFO if kind == "pipe" else stat.S_IFSOCK) | 0o600)
    with pytest.raises(OSError, match=r"regular|[Dd]irectory|such device"):
        open_file(path, top)
    with pytest.raises(OSError, match=r"regular|directory"):
        replace_inside(path, b"", top)


def test_a_file_is_created_with_the_folders_above_it(top: Path) -> None:
    create_inside(top / "a" / "b" / "c.yaml", b"text", top)
    assert (top / "a" / "b" / "c.yaml").read_bytes() == b"text"
    with pytest.raises(FileExistsError):
        create_inside(top / "a" / "b" / "c.yaml", b"other", top)
    (top / "gone").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        create_inside(top / "gone", b"other", top)


def test_folders_and_files_are_not_made_through_links(top: Path) -> None:
    (top / "a").symlink_to("../outside")
    for make in (
        lambda: make_folder_inside(top / "a" / "b", top),
        lambda: create_inside(top / "a" / "c", b"", top),
    ):
        with pytest.raises(OutsideRepository):
            make()
    assert [path.name for path in (top.parent / "outside").iterdir()] == ["file"]


def test_a_file_is_renamed_and_removed_as_itself(top: Path) -> None:
    folder = top / "lake" / "migrations"
    (folder / "a").symlink_to(top.parent / "outside" / "file")
    rename_inside(folder, "a", "b", top)
    assert (folder / "b").is_symlink()
    (folder / "c").write_text("c")
    with pytest.raises(FileExistsError):
        rename_inside(folder, "b", "c", top)
    remove_inside(folder / "b", top)
    assert sorted(path.name for path in folder.iterdir()) == ["c"]
    assert (top.parent / "outside" / "file").read_text() == "outside"


def test_a_path_of_the_user_is_free_outside_of_the_repository(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(top / "lake")
    outside = top.parent / "outside"
    (outside / "link").symlink_to("file")
    assert user_path(Path("../../outside/link")) == (outside / "link", None)
    replace_named(outside / "link", b"written")
    assert (outside / "link").is_symlink()
    assert (outside / "file").read_bytes() == b"written"
    with open_named(Path("../../outside/link")) as stream:
        assert stream.read() == b"written"


def test_a_pipe_of_the_user_is_read_where_that_is_asked_for(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(top)
    here, there = os.pipe()
    os.write(there, b"text")
    os.close(there)
    with open_named(Path(f"/dev/fd/{here}"), may_be_pipe=True) as stream:
        assert stream.read() == b"text"
    with pytest.raises(OSError, match="not a regular file"):
        open_named(Path(f"/dev/fd/{here}"))
    os.close(here)


def test_a_path_of_the_user_inside_the_repository_stays_inside(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(top / "lake")
    (top / "out.json").symlink_to("../outside/file")
    assert user_path(Path("../out.json")) == (top / "out.json", top)
    with pytest.raises(OutsideRepository):
        replace_named(Path("../out.json"), b"mine")
    with pytest.raises(OutsideRepository):
        open_named(Path("../out.json"))
    assert (top.parent / "outside" / "file").read_text() == "outside"


FILES = (
    *("a.sql", "models/a.sql", "models/b.py", "models/.hidden.sql", "models/x/c.sql", "models/x/y/d.sql"),
    *("models/.git2/e.sql", "jobs/[1].sql", "jobs/é.sql"),
)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "*.sql",
            "**",
            "**/*.sql",
            "models/*",
            "models/**",
            "models/**/*.sql",
            "models/*/*.sql",
            "m*/?.sql",
        ),
        *(
            "**/x/**",
            "**/**/d.sql",
            "models/x/y/d.sql",
            "jobs/[[]1].sql",
            "[!a]*/a.sql",
            "nothing/*",
            "*/.hidden.sql",
        ),
    ],
)
def test_patterns_fit_what_they_fit_elsewhere(top: Path, pattern: str) -> None:
    """As Python's `glob` has it, with the files below each folder that fits."""
    for name in FILES:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("")
    expected = set()
    for found in glob.glob(pattern, root_dir=top, recursive=True):  # noqa: PTH207
        path = top / found
        below = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
        hidden = [p for p in below if any(part.startswith(".") for part in p.relative_to(path).parts)]
        expected |= {p for p in below if p not in hidden}
    assert set(find_matching_files(top, pattern, top)) == expected


def test_a_loop_of_links_ends(top: Path) -> None:
    for name in ("a", "b", "c"):
        (top / "lake" / name).symlink_to("..")
    (top / "lake" / "q.sql").write_text("")
    assert find_matching_files(top, "lake/**/*.sql", top) == [top / "lake" / "q.sql"]
    assert find_matching_files(top, "**/*.sql", top) == [top / "lake" / "q.sql"]


def test_a_pattern_is_limited_in_length(top: Path) -> None:
    with pytest.raises(OSError, match="more than 1,000 characters"):
        find_matching_files(top, "**/" * 500, top)


def test_a_pattern_of_many_wildcards_ends(top: Path) -> None:
    deep = top.joinpath(*["d"] * 40)
    deep.mkdir(parents=True)
    (deep / "q.sql").write_text("")
    assert find_matching_files(top, "/".join([*["**", "d"] * 30, "nothing"]), top) == []


@pytest.mark.parametrize(
    "pattern", ["/", "/**", "../**", "../outside/*", "lake/../../outside/file", "out/*", ".git/**"]
)
def test_a_pattern_that_begins_outside_is_refused(top: Path, pattern: str) -> None:
    (top / "out").symlink_to("../outside")
    with pytest.raises(OutsideRepository):
        find_matching_files(top, pattern, top)
