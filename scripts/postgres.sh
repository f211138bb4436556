#!/usr/bin/env bash
# See to it that there is a Postgres for the tests, which start one of their own; nothing of it is configured.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

there() {
    command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}

there && exit 0
install_package "Postgres for the tests" postgresql && there && exit 0
say "The tests need Postgres: its programs initdb and postgres were not found."
say "On Debian or Ubuntu: sudo apt-get install postgresql; with Homebrew: brew install postgresql"
exit 1
