"""``python -m icemigrate.cli``, for where the script is not on the path."""

from __future__ import annotations

import sys

from icemigrate.cli import main

sys.exit(main())
