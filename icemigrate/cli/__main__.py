"""``python -m icemigrate.cli``, for where the script is not on the path.

Python looks for modules in the working directory first where it is started so, and that may be a repository
with a ``click.py``.  So nothing is imported before the working directory is taken off the path.
"""

from __future__ import annotations

import sys

from icemigrate.cli import forget_working_directory

forget_working_directory()

from icemigrate.cli import main  # noqa: E402

sys.exit(main())
