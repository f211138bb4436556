#!/usr/bin/env bash
# Run all tests in three processes that take about as long: the tests on Spark; those that start servers, with some
# on Spark that start one of their own; all others.  Two cores are busy then, because many tests wait for a process.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

own_spark=(tests/spark/test_{archive_of_classes,jar_download,script_properties,session,undo_properties}.py)
logs=$(mktemp -d)
running=()
trap 'kill "${running[@]}" 2>/dev/null; rm -rf "$logs"' EXIT

# run_beside NAME ARGUMENT...: run pytest in the background.
run_beside() {
    local name=$1
    shift
    .venv/bin/python -m pytest -p no:cacheprovider "$@" >"$logs/$name" 2>&1 </dev/null &
    running+=($!)
}

run_beside spark tests/spark "${own_spark[@]/#/--ignore=}"
run_beside servers tests/servers "${own_spark[@]}"
say "== all tests but those in tests/spark and tests/servers, which run beside them"
.venv/bin/python -m pytest --ignore=tests/spark --ignore=tests/servers
result=$?
for process in "${running[@]}"; do
    wait "$process" || result=1
done
for name in spark servers; do
    say "== tests/$name"
    cat "$logs/$name"
done
exit "$result"
