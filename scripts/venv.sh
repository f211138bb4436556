#!/usr/bin/env bash
# Make .venv with a Python that is supported, and install icemigrate into it with Spark and the tools.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

# A candidate is tried by running it: version managers put names on PATH that do not start.
supported() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

find_python() {
    local name
    for name in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.10; do
        if supported "$name" && "$name" -c 'import ensurepip, venv' 2>/dev/null; then echo "$name"; return; fi
    done
    return 1
}

if ! supported .venv/bin/python; then
    if ! python=$(find_python); then
        install_package "what a virtual environment needs" python3-venv || true
        python=$(find_python) || {
            say "No Python 3.10 to 3.13 with its venv module was found."
            say "On Debian or Ubuntu: sudo apt-get install python3-venv"
            exit 1
        }
    fi
    say "Making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
fi
say "Installing icemigrate with Spark and the tools into .venv (PySpark is large: the first time takes minutes)"
# As a wheel PySpark is built once and then comes from pip's cache; older versions of pip want to be told.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --use-pep517 -e '.[spark,test]' </dev/null
