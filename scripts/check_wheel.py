"""Run by CI in an environment that holds the wheel alone: every module imports that needs no
Spark, and the schemas are there.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from importlib import resources

import icemigrate

# Their classes have base classes of PySpark; they are imported only where Spark runs.
NEED_SPARK = frozenset({"icemigrate.pipeline.segment_source"})


def main() -> None:
    """Exit with a message where something is missing."""
    for module in pkgutil.walk_packages(icemigrate.__path__, "icemigrate."):
        if not module.name.endswith("__main__") and module.name not in NEED_SPARK:
            importlib.import_module(module.name)
    root = resources.files(icemigrate)
    schemas = [f for f in root.joinpath("schemas").iterdir() if f.name.endswith(".json")]
    if not schemas:
        sys.exit("the wheel holds no JSON Schema")
    for schema in schemas:
        json.loads(schema.read_text(encoding="utf-8"))
    if not root.joinpath("py.typed").is_file():
        sys.exit("the wheel holds no py.typed")


if __name__ == "__main__":
    main()
