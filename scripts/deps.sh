#!/bin/sh
# Installs the Debian packages that a task needs and this machine lacks: scripts/deps.sh build [prove] [test] [bench]
# As root or with sudo it installs them; otherwise it prints the one command to run and stops.
set -eu

packages() {
    case $1 in
    # nvcc works with a C++ compiler.
    build) echo gcc make libc6-dev libjansson-dev libsodium-dev libsqlite3-dev $(command -v nvcc > /dev/null && echo g++) ;;
    prove) echo binutils qemu-user valgrind libasan8 libubsan1 $(command -v nvcc > /dev/null && echo python3-venv) ;;
    test) echo perl valgrind chromium python3-scipy g++ pkgconf mandoc python3 python3-venv python3-numpy clang-14 libomp-14-dev libclang-rt-14-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user ;;
    bench) echo g++ python3 python3-venv libopenblas-dev ;;
    *) echo "deps.sh: unknown task '$1'; use build, prove, test or bench" >&2; exit 2 ;;
    esac
}

missing=
for task in "$@"; do
    for package in $(packages "$task"); do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
    done
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
    echo "deps.sh: this is not a Debian system; please install the equivalents of:$missing" >&2
    exit 0
fi

install="apt-get install -y --no-install-recommends$missing"
export DEBIAN_FRONTEND=noninteractive
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=sudo
else
    echo "deps.sh: packages are missing; run this, then try again:" >&2
    echo "  sudo apt-get update && sudo $install" >&2
    exit 3
fi
echo "deps.sh: installing$missing"
$as_root apt-get update -qq >/dev/null
$as_root $install >/dev/null
