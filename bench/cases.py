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

    def __str__(self):
        words = ["fwd", self.dtype]
        words += [f"{name}{getattr(self, name)}" for name in ("b", "hq", "hkv", "sq", "skv", "d")]
        return ":".join(words + ["causal"] * self.causal)

    @property
    def decode(self):
        return self.sq == 1

    @property
    def flops(self):
        return 4 * self.b * self.hq * self.sq * self.skv * self.d // (2 if self.causal else 1)

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


def parse(line):
    """The Problem of a string; ValueError if it asks for something that the peers have no word for."""
    words = line.split(":")
    sizes = {}
    causal = False
    if len(words) < 2 or words[0] != "fwd" or words[1] not in DTYPES:
        raise ValueError(f"{line}: expected fwd:f32|f16|bf16:...")
    for word in words[2:]:
        match = re.fullmatch(r"(b|hq|hkv|sq|skv|d)(\d+)", word)
        if match:
            sizes[match[1]] = int(match[2])
        elif word == "causal":
            causal = True
        else:
            raise ValueError(f"{line}: the peers do not know '{word}'")
    missing = {"b", "hq", "hkv", "sq", "skv", "d"} - sizes.keys()
    if missing:
        raise ValueError(f"{line}: {', '.join(sorted(missing))} missing")
    return Problem(dtype=words[1], causal=causal, **sizes)
