"""The inputs of the benchmark's problems, and their exact answers in float64."""

import numpy as np

# What an answer may be off by, at the most, on the inputs below. The 16-bit bounds leave room for contenders that round the
# scores and the probabilities to the input type; the benchmark asks whether a result is right, not how exact it is.
TOLERANCE = {"f32": 2e-5, "f16": 6e-3, "bf16": 6e-2}


def to_bf16(x):
    """float32 to the bits of bfloat16, rounded to nearest even. There are no NaNs here."""
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def narrow(x, dtype):
    """float32 values as the stored type; bf16 is kept as uint16 bits, since NumPy has no such type."""
    return {"f32": lambda: x, "f16": lambda: x.astype(np.float16), "bf16": lambda: to_bf16(x)}[dtype]()


def widen(x, dtype):
    if dtype == "bf16":
        return (x.astype(np.uint32) << 16).view(np.float32)
    return x.astype(np.float32)


def storage(dtype):
    return {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}[dtype]


def make_inputs(problem, seed=1):
    """Q, K, V of unit normals, in the stored type. The same numbers for every mask and dtype of a shape."""
    rng = np.random.default_rng(seed)
    shapes = (problem.shape_q, problem.shape_kv, problem.shape_kv)
    return tuple(narrow(rng.standard_normal(shape, dtype=np.float32), problem.dtype) for shape in shapes)


def checked_rows(problem):
    """All rows of short problems, and every seventh of long ones: seven shares no factor with any tile size."""
    return np.arange(0, problem.sq, 1 if problem.sq <= 512 else 7)


def exact(problem, q, k, v):
    """The answer in float64 for the checked rows, [b, hq, rows, d]: plain NumPy, which none of the contenders uses."""
    rows = checked_rows(problem)
    group = problem.hq // problem.hkv
    out = np.empty((problem.b, problem.hq, len(rows), problem.d))
    for b in range(problem.b):
        for h in range(problem.hkv):
            keys = widen(k[b, h], problem.dtype).astype(np.float64)
            values = widen(v[b, h], problem.dtype).astype(np.float64)
            for head in range(h * group, (h + 1) * group):
                queries = widen(q[b, head, rows], problem.dtype).astype(np.float64)
                s = queries @ keys.T / np.sqrt(problem.d)
                if problem.causal:
                    s[np.arange(problem.skv)[None, :] > rows[:, None]] = -np.inf
                p = np.exp(s - s.max(axis=1, keepdims=True))
                out[b, head] = (p @ values) / p.sum(axis=1, keepdims=True)
    return out
