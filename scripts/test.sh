#!/usr/bin/env bash
# Run all tests in two processes, one for each core: the tests on Spark, and all others.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

log=$(mktemp)
trap 'kill "$spark" 2>/dev/null; rm -f "$log"' EXIT
.venv/bin/python -m pytest -p no:cacheprovider tests/spark >"$log" 2>&1 </dev/null &
spark=$!
say "== all tests but those in tests/spark, which run beside them"
.venv/bin/python -m pytest --ignore=tests/spark
others=$?
wait "$spark"
on_spark=$?
say "== tests/spark"
cat "$log"
[ "$others" -eq 0 ] && [ "$on_spark" -eq 0 ]
