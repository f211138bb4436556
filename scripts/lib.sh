# For the other scripts: saying things, and installing system packages where that is allowed.

say() { printf '%s\n' "$*" >&2; }

# The words that run a command as root, or failure where this user may not.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then echo env
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then echo sudo -n env
    else return 1; fi
}

# install_package PURPOSE NAME...: install the first of the named Debian packages that there is.
install_package() {
    local purpose=$1 root name log
    shift
    command -v apt-get >/dev/null || return 1
    root=$(as_root) || return 1
    log=$(mktemp)
    say "Installing $purpose with apt-get: $*$([ $# -eq 1 ] || echo ' (the first that this system has)')"
    # The lists of packages on a fresh machine are empty or old: they are fetched when the first try fails.
    for name in "$@" update "$@"; do
        if [ "$name" = update ]; then
            $root timeout 300 apt-get -qq update </dev/null >>"$log" 2>&1 || break
        elif $root DEBIAN_FRONTEND=noninteractive timeout 900 \
            apt-get -qq install -y --no-install-recommends "$name" </dev/null >>"$log" 2>&1; then
            rm -f "$log"
            return 0
        fi
    done
    cat "$log" >&2
    rm -f "$log"
    return 1
}
