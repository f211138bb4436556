# Put `cargo` on the PATH; install Rust with rustup where there is none.  To be sourced, after `lib.sh`.
export PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
if ! command -v cargo >/dev/null; then
    say "== Rust, by rustup"
    command -v curl >/dev/null || install_package curl curl
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
        sh -s -- -y --quiet --no-modify-path --profile minimal --component clippy,rustfmt
fi
