#!/usr/bin/env bash
# Build and test the crates in rust/, and compare the values of the wheel with those of Arrow.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
. scripts/cargo.sh

cd rust
say "== cargo fmt, clippy and test"
cargo fmt --check
cargo clippy --quiet --release --all-targets --locked -- -D warnings
cargo test --quiet --release --locked

say "== the wheel, in a folder of its own, and the values of both generators"
wheel=$PWD/target/wheel
../.venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --target "$wheel" ./python
cd ..
PYTHONPATH=$wheel .venv/bin/python -m pytest -q -p no:cacheprovider rust/python/tests
