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
    local purpose=$1 root name
    shift
    command -v apt-get >/dev/null || return 1
    root=$(as_root) || return 1
    say "Installing $purpose with apt-get ($(IFS=,; echo "$*"): the first that this Debian has)"
    for attempt in as-listed updated; do
        [ "$attempt" = as-listed ] || $root timeout 300 apt-get -qq update </dev/null >&2 || return 1
        for name in "$@"; do
            if apt-cache show "$name" >/dev/null 2>&1 &&
                $root DEBIAN_FRONTEND=noninteractive timeout 900 \
                    apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends "$name" </dev/null >&2; then
                return 0
            fi
        done
    done
    return 1
}
