"""Two files with one version: which one is new, as `check` reports it and `rebase` renames it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from icemigrate.commands.check import check
from icemigrate.commands.comparison_base import GitBase
from icemigrate.commands.rebase import rebase
from icemigrate.errors import UsageError
from icemigrate.project import open_project
from tests.support.git_projects import TRADES, GitProject, column

CITY, PHONE = "0002_city.yaml", "0002_phone.yaml"


@pytest.fixture
def shop(tmp_path: Path) -> GitProject:
    """The branch ``city`` is checked out and has 0002_city; ``main`` has 0002_phone by now."""
    shop = GitProject.make(tmp_path)
    shop.write("../.gitignore", ".icemigrate/\n")
    shop.commit(_0001_trades=TRADES)
    shop.branch("city")
    shop.commit(_0002_city=column("city"))
    shop.switch("main")
    shop.commit(_0002_phone=column("phone"))
    shop.switch("city")
    return shop


def blamed(shop: GitProject) -> list[str]:
    """The files that `check` wants renumbered."""
    found = check(open_project(shop.folder)).diagnostics
    return [Path(d.place.file).name for d in found if d.code == "duplicate-version" and d.place]


def renamed(shop: GitProject, *chosen: str) -> list[str]:
    result = rebase(open_project(shop.folder), chosen)
    return [f"{Path(one.old).name} {Path(one.new).name}" for one in result.renamed]


def merged(shop: GitProject) -> None:
    shop.git("merge", "--quiet", "main")


def in_a_merge(shop: GitProject) -> None:
    shop.git("merge", "--quiet", "--no-commit", "--no-ff", "main")


def rebased(shop: GitProject) -> None:
    shop.git("rebase", "--quiet", "main")


def in_the_merge_of_a_remote(shop: GitProject) -> None:
    shop.git("clone", "--quiet", "--bare", str(shop.top), str(shop.top / ".git" / "elsewhere"))
    shop.git("remote", "add", "origin", str(shop.top / ".git" / "elsewhere"))
    shop.git("fetch", "--quiet", "origin")
    shop.git("branch", "--quiet", "--force", "main", "main~")
    shop.git("merge", "--quiet", "--no-commit", "--no-ff", "origin/main")


def merged_into_main(shop: GitProject) -> None:
    shop.switch("main")
    shop.git("merge", "--quiet", "city")


def in_a_merge_into_main(shop: GitProject) -> None:
    shop.switch("main")
    shop.git("merge", "--quiet", "--no-commit", "--no-ff", "city")


def uncommitted_on_main(shop: GitProject) -> None:
    shop.switch("main")
    shop.write(CITY, column("city"))


@pytest.mark.parametrize(
    "step",
    [
        merged,
        in_a_merge,
        rebased,
        in_the_merge_of_a_remote,
        merged_into_main,
        in_a_merge_into_main,
        uncommitted_on_main,
    ],
)
def test_the_file_that_the_main_branch_lacks_is_the_new_one(
    shop: GitProject, step: Callable[[GitProject], None]
) -> None:
    step(shop)
    assert blamed(shop) == [CITY]
    assert renamed(shop) == [f"{CITY} 0003_city.yaml"]
    assert blamed(shop) == []


def test_the_order_of_names_does_not_decide(shop: GitProject) -> None:
    shop.switch("main")
    shop.git("mv", "migrations/0002_phone.yaml", "migrations/0002_address.yaml")
    shop.commit()
    shop.switch("city")
    shop.git("merge", "--quiet", "main")
    assert renamed(shop) == ["0002_city.yaml 0003_city.yaml"]


@pytest.mark.parametrize("step", [merged, in_a_merge])
def test_where_git_does_not_show_the_new_file_the_user_names_it(
    shop: GitProject, step: Callable[[GitProject], None]
) -> None:
    shop.git("branch", "--quiet", "--move", "main", "trunk")
    shop.git("branch", "--quiet", "main", "trunk~")
    shop.git("branch", "--quiet", "--delete", "--force", "main")
    shop.git("merge", "--quiet", "--no-commit", "--no-ff", "trunk")
    if step is merged:
        shop.commit()
    with pytest.raises(UsageError, match="Git does not show which of two files is the newer one") as error:
        renamed(shop)
    assert f"`icemigrate rebase {PHONE}`" in (error.value.hint or "")
    assert renamed(shop, CITY) == [f"{CITY} 0003_city.yaml"]


def test_a_wrong_renumbering_is_recognized_by_content(shop: GitProject) -> None:
    merged(shop)
    shop.git("mv", "migrations/0002_phone.yaml", "migrations/0003_phone.yaml")
    assert shop.findings("main") == [
        f"{CITY}:1 version-taken",
        "0003_phone.yaml:1 renumbered-migration",
    ]
    (found,) = [
        d
        for d in check(open_project(shop.folder), GitBase("main", "main")).diagnostics
        if d.code == "renumbered-migration"
    ]
    assert found.hint is not None
    assert "git mv" in found.hint
    shop.git("mv", "migrations/0003_phone.yaml", "migrations/0002_phone.yaml")
    renamed(shop, CITY)
    assert shop.findings("main") == []
