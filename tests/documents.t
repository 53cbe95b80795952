#!/bin/sh
# What documents say is what the repository holds: benchmark tables come from their JSON, and the README's example is the example.
cd "$(dirname "$0")/.." || exit 1
echo 1..3
number=0
result() { # result STATUS NAME
    number=$((number + 1))
    if [ "$1" = 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        echo "# reproduce: sh tests/documents.t"
    fi
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for document in README.md bench/README.md; do
    json=$(sed -n 's/^<!-- peers table: \(.*\.json\) -->$/\1/p' "$document")
    sed -n '/^<!-- peers table: .*json -->$/,/^<!-- peers table: end -->$/p' "$document" | sed '1d;$d' > "$work/shown"
    # $(...) takes the last newline away, as the document has it.
    [ -s "$work/shown" ] && printf '%s\n' "$(python3 bench/table.py "$json")" | diff - "$work/shown" | sed 's/^/# /' > "$work/differences"
    [ -s "$work/shown" ] && [ ! -s "$work/differences" ]
    result $? "the table in $document is that of $json"
    head -n 5 "$work/differences" 2> /dev/null
done

sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' | cmp -s - examples/attention.c
result $? "the example in README.md is examples/attention.c"
