"""A project on a catalog of its own, in the suite's JVM."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from icemigrate import Project
from icemigrate.execution.spark_start import open_engine
from icemigrate.project import choose_environment, open_project

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_numbers = count(1)


class OwnProject:
    """The project, its catalog, and a session that has it.

    :param name: of the project.
    :param catalog: how the catalog's name begins.
    :param settings: further keys of its environment, in YAML's flow style, with a comma before each.
    :param catalog_settings: further keys of its catalog, in the same form.
    """

    def __init__(
        self,
        folder: Path,
        spark: SparkSession,
        name: str,
        catalog: str,
        settings: str = "",
        catalog_settings: str = "",
    ) -> None:
        self.folder = folder
        self.catalog = f"{catalog}{next(_numbers)}"
        (folder / "migrations").mkdir(parents=True)
        (folder / "icemigrate.yaml").write_text(
            f"project: {name}\nenvironments:\n"
            f"  local: {{catalog: {{type: sqlite, name: {self.catalog}{catalog_settings}}}{settings}}}\n"
            "default_environment: local\n",
            encoding="utf-8",
        )
        self.project = Project(folder)
        self.opened = open_project(folder)
        self.environment = choose_environment(self.opened, None, {})
        self.engine = open_engine(self.environment, spark)
        self.spark = self.engine.session
