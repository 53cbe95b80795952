"""The problems of the benchmark: their strings and sizes."""

import re
from dataclasses import dataclass, replace

DTYPES = ("f32", "f16", "bf16")
ITEM_BYTES = {"f32": 4, "f16": 2, "bf16": 2}


@dataclass(frozen=True)
class Problem:
    dtype: str
    b: int
    hq: int
    hkv: int
    sq: int
    skv: int
    d: int
    causal: bool
    wl: int | None = None  # keys before its own that a row sees; None for all of them

    def __str__(self):
        words = ["fwd", self.dtype]
        words += [f"{name}{getattr(self, name)}" for name in ("b", "hq", "hkv", "sq", "skv", "d")]
        return ":".join(words + ["causal"] * self.causal + [f"wl={self.wl}"] * (self.wl is not None))

    @property
    def decode(self):
        return self.sq == 1

    @property
    def flops(self):
        pairs = self.sq * self.skv // (2 if self.causal else 1)
        if self.wl is not None:
            pairs = sum(min(i, self.wl) + 1 for i in range(self.sq))
        return 4 * self.b * self.hq * pairs * self.d

    @property
    def kv_bytes(self):
        return 2 * self.b * self.hkv * self.skv * self.d * ITEM_BYTES[self.dtype]

    @property
    def shape_q(self):
        return (self.b, self.hq, self.sq, self.d)

    @property
    def shape_kv(self):
        return (self.b, self.hkv, self.skv, self.d)

    def with_dtype(self, dtype):
        return replace(self, dtype=dtype)

    def without_mask(self):
        return replace(self, causal=False)


def parse(line, windows=False):
    """The Problem of a string; ValueError if it asks for something that the peers have no word for. Some know causal windows."""
    words = line.split(":")
    sizes = {}
    causal, wl = False, None
    if len(words) < 2 or words[0] != "fwd" or words[1] not in DTYPES:
        raise ValueError(f"{line}: expected fwd:f32|f16|bf16:...")
    for word in words[2:]:
        match = re.fullmatch(r"(b|hq|hkv|sq|skv|d)(\d+)", word)
        if match:
            sizes[match[1]] = int(match[2])
        elif word == "causal":
            causal = True
        elif windows and re.fullmatch(r"wl=\d+", word):
            wl = int(word[3:])
        else:
            raise ValueError(f"{line}: the peers do not know '{word}'")
    missing = {"b", "hq", "hkv", "sq", "skv", "d"} - sizes.keys()
    if missing:
        raise ValueError(f"{line}: {', '.join(sorted(missing))} missing")
    if wl is not None and (not causal or sizes["sq"] != sizes["skv"]):
        raise ValueError(f"{line}: a window must be causal, with as many rows as keys")
    return Problem(dtype=words[1], causal=causal, wl=wl, **sizes)
