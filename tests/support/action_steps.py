"""Steps of GitHub Actions, run here: the scripts of an action or of a job, with what GitHub sets for them.

Of the expressions only what our own files hold is known; anything else fails.
(https://docs.github.com/actions/reference/workflows-and-actions/expressions)
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_TERM = re.compile(r"[\w.-]+\Z")
_SHELLS = {"bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"], "": ["bash", "-e"]}
"""As GitHub calls them, with and without `shell: bash`."""


def load(path: Path) -> Any:
    """A document whose values all stay texts: `on` is no truth value there."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


@dataclass
class Runner:
    """A machine that runs steps in a checked-out repository.

    :param workspace: the repository.
    :param temp: where GitHub's own files are.
    :param environment: beside what every step gets, e.g. what is particular to an event.
    :param context: what expressions read: ``inputs.args`` → text.
    """

    workspace: Path
    temp: Path
    environment: Mapping[str, str]
    context: dict[str, str] = field(default_factory=dict)
    log: str = ""
    ran: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """What was written to the summary."""
        return self._file("GITHUB_STEP_SUMMARY").read_text(encoding="utf-8")

    def run(self, steps: list[dict[str, Any]], environment: Mapping[str, str] | None = None) -> int:
        """Run the scripts of the steps, one after another.

        :param environment: of the job.
        :returns: the code of the first that failed, else 0.
        """
        failed = 0
        for step in steps:
            if not self._is_run(step.get("if", ""), failed):
                continue
            if "uses" in step:
                assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]), "only what GitHub itself gives"
                continue
            self.ran.append(step["name"])
            code = self._script(step, environment or {})
            failed = failed or code
        return failed

    def _script(self, step: dict[str, Any], environment: Mapping[str, str]) -> int:
        output = self._file("GITHUB_OUTPUT")
        output.write_text("")
        given = {**environment, **step.get("env", {})}
        script = self.temp / "step.sh"
        assert not _EXPRESSION.search(step["run"]), "what comes from outside is no part of a script"
        script.write_text(step["run"], encoding="utf-8")
        ran = subprocess.run(
            [*_SHELLS[step.get("shell", "")], str(script)],
            cwd=self.workspace,
            env={
                **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
                "CI": "true",
                "RUNNER_TEMP": str(self.temp),
                "GITHUB_WORKSPACE": str(self.workspace),
                "GITHUB_STEP_SUMMARY": str(self._file("GITHUB_STEP_SUMMARY")),
                "GITHUB_OUTPUT": str(output),
                **{k: v for k, v in self.environment.items() if k != "GITHUB_TOKEN"},
                **{name: self.value(text) for name, text in given.items()},
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        self.log += ran.stdout
        for line in output.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            self.context[f"steps.{step['id']}.outputs.{name}"] = value
        return ran.returncode

    def _file(self, name: str) -> Path:
        path = self.temp / name.lower()
        path.touch()
        return path

    def value(self, text: str) -> str:
        """A text with its expressions worked out."""
        return _EXPRESSION.sub(lambda found: self._worked_out(found[1]), text)

    def _worked_out(self, expression: str) -> str:
        """``a || 'b'``: the first that is not empty."""
        for part in expression.split(" || "):
            if found := self._term(part):
                return found
        return ""

    def _term(self, term: str) -> str:
        if re.fullmatch(r"'(?:[^']|'')*'", term):
            return term[1:-1].replace("''", "'")
        assert _TERM.match(term), f"what is `{term}`?"
        # What there is not is empty in GitHub too.
        return self.context.get(term, "")

    def _is_run(self, condition: str, failed: int) -> bool:
        """A step runs unless one failed, or its condition speaks of that itself."""
        condition = _EXPRESSION.sub(r"\1", condition)
        if condition == "!cancelled()":
            return True
        if failed or not condition:
            return not failed
        left, operator, right = condition.split(" ")
        assert operator in ("==", "!="), condition
        return (self._term(left) == self._term(right)) is (operator == "==")
