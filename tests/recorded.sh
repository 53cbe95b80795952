#!/bin/sh
# recorded.sh TEST       runs a test for prove, and keeps what it says and how it ends under $BUILD/tap
# recorded.sh --failed   of the tests that were kept, shows what failed: `make test` ends with it, because many tests speak at once
folder=${BUILD:-build}/tap

if [ "$1" = --failed ]; then
    for said in "$folder"/*.tap; do
        ended=$(cat "$said.end")
        if [ "$ended" = 0 ] && ! grep -q '^not ok' "$said"; then
            continue
        fi
        echo "---- tests/$(basename "$said" .tap), exit status $ended"
        # A failure, and what is said of it; of a test that ended without one, its last lines.
        if grep -q '^not ok' "$said"; then
            awk '/^not ok/ { shown = 1 } /^ok/ { shown = 0 } shown' "$said"
        else
            tail -n 20 "$said"
        fi
    done
    exit 0
fi

mkdir -p "$folder"
said=$folder/$(basename "$1").tap
echo "did not end" > "$said.end"
{
    "$1"
    echo $? > "$said.end"
} | tee "$said"
exit "$(cat "$said.end")"
