"""How random courses on Spark are drawn, and counted: so many in CI, the same each time; others in a soak."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from zlib import crc32

from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

SOAKS = "SOAK_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("SOAK_EXAMPLES", "1"))
"""How often each case of a test is run with projects of its own; `make soak` asks for more."""

COUNTED: Counter[tuple[str, str]] = Counter()
"""Examples that came to a good end, by what they are and their format version."""


def run(case: str, course: Callable[[st.DataObject], None]) -> None:
    """Run a course on random examples.

    :param case: what tells this case from others of the test: each has examples of its own.
    """

    @settings(
        max_examples=EXAMPLES,
        database=None,
        # To make a failing example smaller takes as long as it took to find it, many times over.
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def drawn(data: st.DataObject) -> None:
        # Hypothesis begins with the simplest example that there is: of a few it would be one.
        assume(data.draw(st.integers(0, 2**32 - 1)) > 0)
        course(data)

    (drawn if SOAKS else seed(crc32(case.encode()))(drawn))()


def summary() -> list[str]:
    """What was counted, a line for each kind of example."""
    lines = []
    for what in sorted({what for what, _ in COUNTED}):
        of_it = {version: n for (kind, version), n in sorted(COUNTED.items()) if kind == what}
        each = ", ".join(f"{n} in {version}" for version, n in of_it.items())
        lines.append(f"{sum(of_it.values())} {what}: {each}")
    return lines


__all__ = ["COUNTED", "EXAMPLES", "SOAKS", "run", "summary"]
