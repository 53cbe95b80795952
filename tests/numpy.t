#!/usr/bin/python3
"""attest run against NumPy: .npy files written by NumPy go in, and what comes out is read by NumPy and compared with attention
computed here in float64, from the text of attest.h."""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    if os.environ.get("CI") == "true":
        print("not ok 1 - python3-numpy is not installed: scripts/deps.sh test\n1..1")
        sys.exit(1)
    print("1..0 # SKIP python3-numpy is not installed: scripts/deps.sh test")
    sys.exit(0)

ATTEST = os.path.join(os.environ.get("BUILD", "build"), "attest")
rng = np.random.default_rng(1)
number = failures = 0


def result(good, name, detail=""):
    global number, failures
    number += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {number} - {name}")
    if not good:
        print("\n".join("# " + line for line in detail.splitlines()))
        print(f"# reproduce: BUILD={os.environ.get('BUILD', 'build')} tests/numpy.t")


def to_bf16(x):
    """Round to nearest even, and the same values as float32."""
    bits = x.astype("<f4").view("<u4")
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return (bits >> 16).astype("<u2"), bits.view("<f4")


def attention(q, k, v, scale, causal=False, bottom_right=False, left=None, right=None, softcap=None, slopes=None, bias=None, sinks=None,
              mask=None, offset=None, start=0):
    """One sequence: q [hq, n, d], k [hkv, m, d], v [hkv, m, dv], all float64. Returns O and LSE."""
    group = q.shape[0] // k.shape[0]
    k, v = np.repeat(k, group, 0), np.repeat(v, group, 0)
    n, m = q.shape[1], k.shape[1]
    s = scale * np.einsum("hid,hjd->hij", q, k)
    if softcap:
        s = softcap * np.tanh(s / softcap)
    row = np.arange(n)[:, None] + (offset if offset is not None else m - n if bottom_right else 0)
    key = np.arange(m)[None, :]
    if slopes is not None:
        s = s - slopes[:, None, None] * np.abs(row - key)
    if bias is not None:
        s = s + bias
    hidden = np.broadcast_to(key < start, (n, m)) | np.zeros((n, m), bool)
    if causal:
        hidden |= key > row
    if left is not None:
        hidden |= key < row - left
    if right is not None:
        hidden |= key > row + right
    s = np.where(hidden if mask is None else hidden | (mask == 0), -np.inf, s)
    top = s.max(-1, initial=-np.inf, keepdims=True)
    if sinks is not None:
        top = np.maximum(top, sinks[:, None, None])
    top = np.where(np.isinf(top), 0, top)
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    if sinks is not None:
        total = total + np.exp(sinks[:, None, None] - top)
    with np.errstate(divide="ignore"):
        lse = (top + np.log(total))[..., 0]
    return np.where(total > 0, p @ v / np.where(total > 0, total, 1), 0), lse


def run(problem, folder, arrays, outputs=("out", "lse"), extra=()):
    command = [ATTEST, "run", problem, *extra]
    for name, array in arrays.items():
        path = os.path.join(folder, name + ".npy")
        np.save(path, array)
        command += ["--" + name, path]
    paths = {name: os.path.join(folder, "result-" + name + ".npy") for name in outputs}
    for name, path in paths.items():
        command += ["--" + name, path]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        return done, None
    return done, [np.load(path) for path in paths.values()]


def compare(name, problem, arrays, want_o, want_lse, tolerance, extra=()):
    with tempfile.TemporaryDirectory() as folder:
        done, got = run(problem, folder, arrays, extra=extra)
        if got is None:
            return result(False, name, done.stderr)
        o, lse = got
        if o.shape != want_o.shape or lse.shape != want_lse.shape:
            return result(False, name, f"shapes {o.shape} {lse.shape}, not {want_o.shape} {want_lse.shape}")
        worst = np.abs(o.astype("f8") - want_o).max(initial=0)
        infinite = np.isinf(want_lse)
        same = np.array_equal(lse[infinite], want_lse[infinite])
        worst_lse = np.abs(lse[~infinite].astype("f8") - want_lse[~infinite]).max(initial=0)
        result(worst <= tolerance and worst_lse <= 1e-4 and same, name, f"O is off by {worst}, LSE by {worst_lse}")


def dense(shape):
    return rng.standard_normal(shape)


def batch_of(q, k, v, **options):
    each = ("bias", "mask", "offset", "start")  # of these every sequence has its own; and of slopes if there are as many
    both = [attention(*(x.astype("f8") for x in one),
                      **{n: (o[b] if n in each or (n == "slopes" and o.ndim == 2) else o) for n, o in options.items()})
            for b, one in enumerate(zip(q, k, v))]
    return np.stack([o for o, _ in both]), np.stack([l for _, l in both])


q, k, v = dense((2, 4, 9, 16)).astype("<f4"), dense((2, 2, 21, 16)).astype("<f4"), dense((2, 2, 21, 24)).astype("<f4")
base = "b2:hq4:hkv2:sq9:skv21:d16:dv24:lse"
slopes, sinks, bias = dense(4).astype("<f4"), dense(4).astype("<f4"), dense((2, 4, 9, 21)).astype("<f4")
bias[0, 1, 2, :] = -np.inf
bias[1, :, :, 3] = -np.inf
kernels = ["ref_fwd", "*scalar", "*"]
for kernel in kernels:
    extra = ("--kernel", kernel)
    tag = f"{kernel}: "
    arrays = {"q": q, "k": k, "v": v}
    compare(tag + "f32", f"fwd:f32:{base}", arrays, *batch_of(q, k, v, scale=0.25), 2e-6, extra)
    compare(tag + "causal, bottom right", f"fwd:f32:{base}:causal:br", arrays,
            *batch_of(q, k, v, scale=0.25, causal=True, bottom_right=True), 2e-6, extra)
    compare(tag + "window", f"fwd:f32:{base}:wl=4:wr=1", arrays, *batch_of(q, k, v, scale=0.25, left=4, right=1), 2e-6, extra)
    compare(tag + "scale and softcap", f"fwd:f32:{base}:scale=1.5:softcap=2", arrays, *batch_of(q, k, v, scale=1.5, softcap=2), 2e-6, extra)
    compare(tag + "ALiBi", f"fwd:f32:{base}:alibi:br", dict(arrays, **{"alibi-slopes": slopes}),
            *batch_of(q, k, v, scale=0.25, slopes=slopes.astype("f8"), bottom_right=True), 2e-6, extra)
    compare(tag + "sinks", f"fwd:f32:{base}:sink", dict(arrays, sinks=sinks), *batch_of(q, k, v, scale=0.25, sinks=sinks.astype("f8")), 2e-6, extra)
    compare(tag + "bias", f"fwd:f32:{base}:bias", dict(arrays, bias=bias), *batch_of(q, k, v, scale=0.25, bias=bias.astype("f8")), 2e-6, extra)

    mask = rng.integers(0, 4, (2, 4, 9, 21)).astype("u1")
    compare(tag + "mask of bytes", f"fwd:f32:{base}:mask", dict(arrays, mask=mask), *batch_of(q, k, v, scale=0.25, mask=mask), 2e-6, extra)
    one = rng.integers(0, 3, (1, 1, 9, 21)) > 0
    compare(tag + "one mask of booleans", f"fwd:f32:{base}:mask:ms=0,0,21,1:bias", dict(arrays, mask=one, bias=bias),
            *batch_of(q, k, v, scale=0.25, mask=np.broadcast_to(one, mask.shape), bias=bias.astype("f8")), 2e-6, extra)
    offsets, starts = np.array([5, -2], "<i4"), np.array([0, 17], "<i8")
    compare(tag + "row offsets", f"fwd:f32:{base}:causal:offsets", dict(arrays, **{"row-offsets": offsets}),
            *batch_of(q, k, v, scale=0.25, causal=True, offset=offsets), 2e-6, extra)
    compare(tag + "first keys", f"fwd:f32:{base}:starts", dict(arrays, **{"kv-starts": starts}),
            *batch_of(q, k, v, scale=0.25, start=starts), 2e-6, extra)
    ladders = dense((2, 4)).astype("<f4")
    compare(tag + "slopes of each sequence", f"fwd:f32:{base}:alibi:as=4", dict(arrays, **{"alibi-slopes": ladders}),
            *batch_of(q, k, v, scale=0.25, slopes=ladders.astype("f8")), 2e-6, extra)

for layout in (":layout=bshd", ":qs=600,-150,16"):
    compare("strides" + layout, f"fwd:f32:{base}{layout}", {"q": q, "k": k, "v": v}, *batch_of(q, k, v, scale=0.25), 2e-6)
fortran = {"q": np.asfortranarray(q), "k": np.asfortranarray(k), "v": np.asfortranarray(v)}
compare("Fortran order", f"fwd:f32:{base}", fortran, *batch_of(q, k, v, scale=0.25), 2e-6)

halves = [x.astype("<f2") for x in (q, k, v)]
compare("f16", f"fwd:f16:{base}", dict(zip("qkv", halves)), *batch_of(*halves, scale=0.25), 2e-3)
compare("f16 to f32", f"fwd:f16:{base}:o=f32", dict(zip("qkv", halves)), *batch_of(*halves, scale=0.25), 1e-5)
bits, brains = zip(*(to_bf16(x) for x in (q, k, v)))
compare("bf16 from its bits", f"fwd:bf16:{base}", dict(zip("qkv", bits)), *batch_of(*brains, scale=0.25), 3e-2)
compare("bf16 from float32", f"fwd:bf16:{base}:o=f32", dict(zip("qkv", (q, k, v))), *batch_of(*brains, scale=0.25), 2e-2)

# Packed sequences: rows of three sequences in one array.
rows, keys = [3, 0, 6], [7, 5, 11]
packed_q, packed_k, packed_v = (dense((sum(n), h, d)).astype("<f4") for n, h, d in ((rows, 4, 16), (keys, 2, 16), (keys, 2, 24)))
cu_q, cu_kv = np.cumsum([0] + rows).astype("<i4"), np.cumsum([0] + keys).astype("<i8")
o, lse = np.zeros((9, 4, 24)), np.zeros((4, 9))
for b in range(3):
    i, j = slice(cu_q[b], cu_q[b + 1]), slice(cu_kv[b], cu_kv[b + 1])
    part = attention(*(x.astype("f8").transpose(1, 0, 2) for x in (packed_q[i], packed_k[j], packed_v[j])), scale=0.25, causal=True)
    o[i], lse[:, i] = part[0].transpose(1, 0, 2), part[1]
compare("packed", "fwd:f32:b3:hq4:hkv2:sq6:skv11:d16:dv24:lse:causal:varlenq=9:varlenkv=23",
        {"q": packed_q, "k": packed_k, "v": packed_v, "cu-seqlens-q": cu_q, "cu-seqlens-kv": cu_kv}, o, lse, 2e-6)

# Pages of 4 keys in a shuffled order, with key lengths.
lengths = np.array([21, 6], "<i4")
table = np.array([[7, 2, 9, 0, 5, 1], [3, 8, 0, 0, 0, 0]], "<i4")
page_k, page_v = np.full((10, 4, 2, 16), np.nan, "<f4"), np.full((10, 4, 2, 24), np.nan, "<f4")
for b in range(2):
    for j in range(lengths[b]):
        page_k[table[b, j // 4], j % 4], page_v[table[b, j // 4], j % 4] = k[b, :, j], v[b, :, j]
both = [attention(q[b].astype("f8"), k[b, :, :lengths[b]].astype("f8"), v[b, :, :lengths[b]].astype("f8"), 0.25) for b in range(2)]
compare("paged with key lengths", f"fwd:f32:{base}:lens:page=4,10",
        {"q": q, "k": page_k, "v": page_v, "kv-lengths": lengths, "page-table": table},
        np.stack([o for o, _ in both]), np.stack([l for _, l in both]), 2e-6)

# What cannot be read is usage, with the file named, and no output appears.
with tempfile.TemporaryDirectory() as folder:
    for name, array in {"wrong shape": q[:1], "wrong type": q.astype("f8"), "big-endian": q.astype(">f4"),
                        "objects": np.array([None], object), "integers": np.zeros(q.shape, "<i4")}.items():
        done, got = run(f"fwd:f32:{base}", folder, {"q": array})
        result(done.returncode == 2 and "q.npy" in done.stderr and not os.path.exists(os.path.join(folder, "result-out.npy")),
               "refused: " + name, f"exit {done.returncode}: {done.stderr}")
    done, got = run(f"fwd:f32:{base}:mask", folder, {"mask": np.ones((2, 4, 9, 21), "<f4")})
    result(done.returncode == 2 and "|u1" in done.stderr, "refused: a mask of floats", f"exit {done.returncode}: {done.stderr}")
    for name, data in {"no .npy": b"hello", "cut short": open(os.path.join(folder, "q.npy"), "rb").read()[:-5], "empty": b""}.items():
        path = os.path.join(folder, "broken.npy")
        open(path, "wb").write(data)
        done = subprocess.run([ATTEST, "run", f"fwd:f32:{base}", "--q", path], capture_output=True, text=True)
        result(done.returncode == 2 and "broken.npy" in done.stderr, "refused: " + name, f"exit {done.returncode}: {done.stderr}")

print(f"1..{number}")
sys.exit(failures > 0)
