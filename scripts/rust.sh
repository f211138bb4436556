#!/usr/bin/env bash
# Build and test the crates in rust/, compile their benchmarks, and compare the values of the wheel with those of
# Arrow.
# FUZZ_SECONDS is how long the reader of schemas gets mutated texts (a second).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
. scripts/cargo.sh
python=$PWD/.venv/bin/python

say "== the crates: format, licences, clippy, tests"
manifest=(--manifest-path rust/Cargo.toml)
cargo fmt "${manifest[@]}" --all --check
cargo metadata "${manifest[@]}" --format-version 1 --locked | "$python" -m scripts.crate_licences
cargo clippy "${manifest[@]}" --quiet --release --workspace --all-targets --locked -- -D warnings
# With both crates, as the wheel has them: other features would compile all dependencies a second time.
cargo test "${manifest[@]}" --quiet --release --locked
# For the whole workspace: the benchmarks alone have other features, too.  `make bench-rust` runs them.
cargo bench "${manifest[@]}" --quiet --workspace --bench generate --no-run --locked

say "== the wheel, in a folder of its own, and the values of both generators"
wheel=$PWD/rust/target/wheel
rm -rf "$wheel"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$wheel" ./rust/python
PYTHONPATH=$wheel "$python" -m pytest -q -p no:cacheprovider rust/python/tests
