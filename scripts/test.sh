#!/usr/bin/env bash
# Run all tests in two processes, one for each core, which take about as long: the tests on Spark with some of
# those that kill processes, and all others.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

log=$(mktemp)
trap 'kill "$spark" 2>/dev/null; rm -f "$log"' EXIT
beside=(tests/spark tests/crash/test_{random_runs,bad_worlds,fence}.py)
.venv/bin/python -m pytest -p no:cacheprovider "${beside[@]}" >"$log" 2>&1 </dev/null &
spark=$!
say "== all tests but those in ${beside[*]}, which run beside them"
.venv/bin/python -m pytest "${beside[@]/#/--ignore=}"
others=$?
wait "$spark"
on_spark=$?
say "== ${beside[*]}"
cat "$log"
[ "$others" -eq 0 ] && [ "$on_spark" -eq 0 ]
