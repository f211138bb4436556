#!/usr/bin/env bash
# See to it that there is a Java that Spark runs on: icemigrate's own search decides.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

search() {
    .venv/bin/python - <<'PYTHON'
from __future__ import annotations

import sys

from icemigrate.errors import EngineError
from icemigrate.spark.find_java import find_java
from icemigrate.versions import CURRENT

try:
    find_java(CURRENT.java)
except EngineError as error:
    sys.exit(f"{error.message}\n  {error.hint}")
PYTHON
}

install() {
    local root
    if command -v apt-get >/dev/null; then
        install_package "Java for Spark" openjdk-17-jre-headless openjdk-21-jre-headless
    elif command -v dnf >/dev/null; then
        root=$(as_root) || return 1
        say "Installing Java for Spark with dnf: java-17-openjdk-headless"
        $root timeout 900 dnf install -y -q java-17-openjdk-headless </dev/null >&2
    elif command -v brew >/dev/null; then
        say "Installing Java for Spark with brew: openjdk@17"
        timeout 900 brew install --quiet openjdk@17 </dev/null >&2
    else
        return 1
    fi
}

why=$(search 2>&1) && exit 0
say "$why"
install || exit 1
search
