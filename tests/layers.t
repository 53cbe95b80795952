#!/bin/sh
# The layer rule: who may include whom. Folders are the dependency graph.
. tests/tap.sh

# includes FILES...: "file header" for every quoted or bracketed include.
includes() {
    grep -H '^ *# *include' "$@" | sed 's/:.*# *include *[<"]\([^>"]*\)[>"].*/ \1/'
}

# Headers of lib/ by their base name, to recognise them however they are written.
find lib -name '*.h' -o -name '*.def' | sed 's|.*/||' | sort -u > "$work/lib_headers"

includes tool/*/*.c tool/*/*.h | while read -r file header; do
    base=$(basename "$header")
    [ "$header" != attest.h ] || continue
    ! [ -e "tool/$header" ] && ! [ -e "$(dirname "$file")/$header" ] || continue
    case $header in */../* | ../*) echo "$file includes $header" ;; esac
    ! grep -qx "$base" "$work/lib_headers" || echo "$file includes $header"
done > "$work/log"
[ ! -s "$work/log" ]
result $? "tool/ includes <attest.h>, its own headers and the system's"

# The folders of the workbench, from the lowest to the highest: a file includes its own folder and those that stand before it here.
layers="base data evidence cuda emulation run build judge theory gates verify evolve mutate report cli"
includes tool/*/*.c tool/*/*.h | while read -r file header; do
    own=$(echo "$file" | cut -d/ -f2)
    [ -e "tool/$own/$header" ] && continue
    [ -e "tool/$header" ] || continue
    for layer in $layers; do
        [ "$layer" != "$own" ] || { echo "$file ($own) includes $header, which is above it"; break; }
        case $header in "$layer"/*) break ;; esac
    done
done > "$work/log"
for folder in tool/*/; do
    case " $layers " in *" $(basename "$folder") "*) ;; *) echo "$folder is in no layer" ;; esac
done >> "$work/log"
find tool -maxdepth 1 -type f >> "$work/log"
[ ! -s "$work/log" ]
result $? "the folders of tool/ are a graph: each includes only what is below it"

includes tests/*.c tests/*.h | while read -r file header; do
    base=$(basename "$header")
    [ "$header" != attest.h ] && ! [ -e "tests/$header" ] || continue
    ! grep -qx "$base" "$work/lib_headers" || echo "$file includes $header"
done > "$work/log"
[ ! -s "$work/log" ]
result $? "the tests of the library include nothing of lib/"

includes lib/cpu/*.c lib/cpu/*.h | grep -E ' (\.\./)?ref/|oracle|reference\.h' > "$work/log"
[ ! -s "$work/log" ]
result $? "lib/cpu/ includes nothing of the oracle"

includes lib/ref/*.c lib/ref/*.h | while read -r file header; do
    case $header in attest.h | oracle*) continue ;; esac
    ! [ -e "lib/ref/$header" ] || continue
    ! grep -qx "$(basename "$header")" "$work/lib_headers" || echo "$file includes $header"
done > "$work/log"
[ ! -s "$work/log" ]
result $? "lib/ref/ shares no header with the rest of lib/"

grep -nE '\b(abort|exit|_exit|printf|puts|fprintf|perror|signal|sigaction|assert)\(' lib/*.c lib/*/*.c lib/*/*.h lib/*.h |
    grep -vE ':[0-9]+: *(\*|/\*|//)' > "$work/log"
[ ! -s "$work/log" ]
result $? "lib/ never aborts, exits, prints or touches signals"

git ls-files 'lib/*.c' 'lib/*.h' 'tool/*.c' 'tool/*.h' 'tests/*.c' 'tests/*.h' 'bench/*.c' 'examples/*.c' 2> /dev/null |
    sed 's|.*/||' | sort | uniq -d > "$work/log"
[ ! -s "$work/log" ]
result $? "file names are unique across the tree"
# No macro tells the library's kernels from those that are proven: both are compiled from the same preprocessed text.
for text in "$BUILD"/obj/lib/cpu/cpu_fwd_*.i; do
    grep -q 'attest_cpu_kernel_entry(void)$' "$text" || echo "$text"
done > "$work/log"
[ ! -s "$work/log" ] && [ -e "$text" ]
result $? "the library's kernels are compiled from the text that is proven"

finish
