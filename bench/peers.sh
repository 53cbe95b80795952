#!/bin/sh
# Gets the peers, builds what belongs to them into $BUILD/bench, and times them and attest in turns: see bench/peers.py.
#
#     BUILD=build bench/peers.sh [--quick] [--suite FILE] [--dtypes LIST] [--threads LIST] [--rounds N] [--out FILE.json]
#     BUILD=build bench/peers.sh --prepare     only get and build the peers, with the run-time libraries that can be carried
#                                              along in $BUILD/bench/lib, for a machine that has neither network nor compiler
#
# Nothing here is fatal except a missing libattest.so: a peer that cannot be had is skipped, and the reason is printed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
BUILD=${BUILD:-build}
mkdir -p "$BUILD/bench"
BUILD=$(cd "$BUILD" && pwd)
export BUILD
venv=$BUILD/peers-venv
log=$BUILD/bench/prepare.log
: >"$log"

note() { echo "bench/peers.sh: $*" >&2; }

# ---- Python with torch: our own environment, or else the system's ----------------------------------------------------------
has_torch() { "$1" -c 'import torch, numpy' 2>>"$log"; }

if [ -x "$venv/bin/python3" ] && has_torch "$venv/bin/python3"; then
    python=$venv/bin/python3
elif note "installing PyTorch into $venv (once)" && python3 -m venv "$venv" >>"$log" 2>&1 &&
    "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 torch numpy >>"$log" 2>&1 && has_torch "$venv/bin/python3"; then
    python=$venv/bin/python3
else
    rm -rf "$venv"
    python=python3
    if has_torch python3; then
        note "pip could not install torch (see $log); using the torch that $(command -v python3) has"
    elif python3 -c 'import numpy' 2>>"$log"; then
        note "skipped: PyTorch: neither pip nor python3 has it (see $log)"
    else
        note "python3 has no numpy, and pip could not install it (see $log)"
        exit 3
    fi
fi
# oneDNN's wheels come with the compiler run-time they need; PyTorch's own copy of oneDNN cannot be called from outside.
if [ "$python" != python3 ] && [ ! -e "$venv/lib/libdnnl.so" ]; then
    note "installing oneDNN into $venv (once)"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 onednn onednn-devel >>"$log" 2>&1 ||
        note "pip could not install oneDNN (see $log)"
fi

# ---- the parts in C: built where a compiler and the headers are, used as they are where not ---------------------------------
CC=${CC:-gcc}
CXX=${CXX:-g++}
warnings="-Wall -Wextra -Wpedantic"

build() { # build TARGET SOURCE COMMAND...
    target=$BUILD/bench/$1
    source=$here/$2
    shift 2
    if [ -e "$target" ] && [ "$target" -nt "$source" ] && [ "$target" -nt "$here/peer.h" ]; then
        return
    fi
    if "$@" -o "$target.new" "$source" $libraries >>"$log" 2>&1; then
        mv "$target.new" "$target"
    elif [ -e "$target" ]; then
        note "$(basename "$target") cannot be built here (see $log): using the one that is there"
    else
        note "$(basename "$target") cannot be built here (see $log)"
    fi
}

shared="-fPIC -shared -D_GNU_SOURCE"
libraries=
build ceilings.so ceilings.c "$CC" -std=c11 $warnings $shared -O2 -fopenmp
# -ffast-math lets the exponential of the softmax be a vector one; see peer_openblas.c.
libraries="-lopenblas -lm"
build peer_openblas.so peer_openblas.c "$CC" -std=c11 $warnings $shared -O3 -ffast-math -fopenmp
libraries="-L$venv/lib -ldnnl"
build peer_onednn.so peer_onednn.cpp "$CXX" -std=c++17 $warnings $shared -O2 -pthread -isystem "$venv/include" \
    -Wl,--unresolved-symbols=ignore-in-shared-libs

if [ "${1:-}" = --prepare ]; then
    # OpenBLAS and what it needs are small enough to travel. oneDNN with its run-time is not.
    mkdir -p "$BUILD/bench/lib"
    ldd "$BUILD/bench/peer_openblas.so" | awk '/openblas|gfortran|quadmath/ {print $3}' | while read -r library; do
        cp -L "$library" "$BUILD/bench/lib/"
    done
    note "prepared $BUILD/bench"
    exit 0
fi

exec "$python" "$here/peers.py" "$@"
