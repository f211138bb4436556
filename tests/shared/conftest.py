"""Tests on cases that are kept beside the project, collected only where those are.

See ``tests/support/shared_cases.py`` for where they are looked for.
"""

from __future__ import annotations

from tests.support.shared_cases import FOLDER

collect_ignore_glob = [] if FOLDER.is_dir() else ["test_*.py"]
