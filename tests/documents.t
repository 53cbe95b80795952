#!/bin/sh
# What documents say is what the repository holds: benchmark tables and the picture come from their JSON, links lead to files, and the
# README's example is the example.
cd "$(dirname "$0")/.." || exit 1
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

# A table stands between two lines, <!-- peers table: FILE.json --> and <!-- peers table: end -->. Other kinds are `short` and `ladder`.
grep -n '^<!-- [a-z]* table: .*\.json -->$' README.md bench/README.md docs/kernels/*.md > "$work/tables"
echo 1..$(($(wc -l < "$work/tables") + 5))

while IFS=: read -r document line _; do
    marker=$(sed -n "${line}p" "$document")
    kind=$(echo "$marker" | cut -d ' ' -f 2)
    json=$(echo "$marker" | cut -d ' ' -f 4)
    sed -n "$((line + 1)),\$p" "$document" | sed "/^<!-- $kind table: end -->\$/,\$d" > "$work/shown"
    [ "$kind" = peers ] && option= || option=--$kind
    # $(...) takes the last newline away, as the document has it.
    printf '%s\n' "$(python3 bench/table.py $option "$json")" | diff - "$work/shown" | sed 's/^/# /' > "$work/differences"
    [ -s "$work/shown" ] && [ ! -s "$work/differences" ]
    result $? "the $kind table in $document is that of $json"
    head -n 5 "$work/differences"
done < "$work/tables"

# A table that lost its marker would not be looked for.
[ "$(grep -c '^<!-- .* table: end -->$' README.md bench/README.md docs/kernels/*.md | awk -F : '{n += $2} END {print n}')" = \
    "$(wc -l < "$work/tables")" ] && grep -q '^README.md:' "$work/tables" && grep -q '^bench/README.md:' "$work/tables"
result $? "every table has both of its markers"

python3 bench/speed_picture.py | diff - docs/speed.svg > "$work/differences"
[ -s docs/speed.svg ] && [ ! -s "$work/differences" ]
result $? "docs/speed.svg is what bench/speed_picture.py draws"

# A link without a scheme leads to a file, as seen from the document.
git ls-files '*.md' | while read -r document; do
    grep -o '](\([^)#: ]*\)[^): ]*)' "$document" | sed 's/^](//; s/[#)].*//' | sort -u | while read -r link; do
        [ -z "$link" ] || [ -e "$(dirname "$document")/$link" ] || echo "# $document: $link"
    done
done > "$work/differences"
[ ! -s "$work/differences" ]
result $? "links between documents lead to files"
head -n 20 "$work/differences"

# Every wrapper of the device vocabulary has a line in the section of its header, and nothing else has.
for header in include/attest/*.cuh; do
    sed -n 's/.*__device__ inline [a-z0-9_]* \([a-z0-9_]*\)(.*/\1/p' "$header" | sort -u | sed "s|^|$(basename "$header") |"
done | sort > "$work/defined"
awk '/^## attest\// { sub("## attest/", ""); header = $0; next } /^\| `/ { split($0, cell, "|"); n = split(cell[2], part, "`")
    for (i = 2; i <= n; i += 2) { sub("[(<].*", "", part[i]); print header, part[i] } }' docs/vocabulary.md | sort > "$work/documented"
diff "$work/defined" "$work/documented" | sed 's/^/# /' > "$work/differences"
[ -s "$work/defined" ] && [ ! -s "$work/differences" ]
result $? "docs/vocabulary.md lists the functions of include/attest"
head -n 20 "$work/differences"

sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' | cmp -s - examples/attention.c
result $? "the example in README.md is examples/attention.c"
