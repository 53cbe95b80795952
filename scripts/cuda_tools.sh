#!/bin/sh
# Gets what lists the machine code of CUDA images, cuobjdump and nvdisasm, where nvcc is and they are not: scripts/cuda_tools.sh FOLDER
# They come from PyPI, by name, into an environment below FOLDER, and FOLDER/bin has them. Without them what needs them is not judged.
set -u
folder=${1:?cuda_tools.sh needs a folder}
tools="cuobjdump nvdisasm"

# Where attest looks for tools: tool/build/cuda_compile.c.
found() {
    command -v "$1" > /dev/null && return
    for path in /usr/local/cuda/bin/"$1" /usr/local/cuda-*/bin/"$1" "$folder/bin/$1"; do
        [ -x "$path" ] && return
    done
    return 1
}

found nvcc || exit 0
missing=
for tool in $tools; do
    found "$tool" || missing="$missing $tool"
done
[ -n "$missing" ] || exit 0

echo "attest: getting$missing into $folder (once)"
mkdir -p "$folder/bin"
log=$folder/install.log
if python3 -m venv "$folder/venv" > "$log" 2>&1 &&
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm >> "$log" 2>&1; then
    for tool in $tools; do
        ln -sf "../$(cd "$folder" && find venv -type f -name "$tool" | head -n 1)" "$folder/bin/$tool" # relative: the folder may move
    done
else
    echo "attest: pip could not get$missing (see $log); they also come with the CUDA toolkit" >&2
fi
