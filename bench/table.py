#!/usr/bin/env python3
"""What the samples of a benchmark run mean: ratios, shares of the ceilings, the acceptance points, and the tables.

    bench/table.py bench/results/CPU.json            the Markdown table of bench/README.md
    bench/table.py --short bench/results/CPU.json    the Markdown table of the README: one line for each group of shapes
    bench/table.py --text bench/results/CPU.json     the table and the verdicts that bench/peers.py prints

    bench/table.py --ladder bench/results/GPU.json   all kernels of the library beside each other, where they were timed

The same commands work on the results of a GPU, whose statistics are in gpu_table.py. The statistics of the CPU benchmark are in this
file. Samples are seconds per call, one for each round, None where a contender did not take part in that round. A ratio of two
contenders is the median over the rounds of the ratios within a round, because a disturbance on a shared machine slows both turns of a
round alike.
"""

import json
import math
import sys

from cases import DTYPES, parse

# Two timings of the same thing differ by about this much even within a round; "not slower" allows for it, as the bound of 0.98
# against the peers does.
NOISE = 0.02
PEERS = ("pytorch", "onednn", "openblas")
TITLES = {"pytorch": "PyTorch", "onednn": "oneDNN", "openblas": "OpenBLAS"}


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def geomean(values):
    return math.exp(sum(math.log(x) for x in values) / len(values))


def paired(numerator, denominator, combine):
    """The median of combine(a, b) over the rounds in which both were measured; None if there is no such round. A ceiling of 0
    is one that this machine does not have."""
    pairs = [(a, b) for a, b in zip(numerator, denominator) if a and b]
    return median([combine(a, b) for a, b in pairs]) if pairs else None


def samples(cell, name):
    return cell["contenders"].get(name, {}).get("seconds", [])


def ratio(cell, name, base="attest"):
    """How many times longer `name` takes than `base`: above 1, the base is faster."""
    return paired(samples(cell, name), samples(cell, base), lambda a, b: a / b)


def seconds(cell, name="attest"):
    values = [x for x in samples(cell, name) if x is not None]
    return median(values) if values else None


def work(cell):
    """What a cell is measured in: (amount of work in one call, unit, name of the ceiling)."""
    problem = parse(cell["problem"])
    if problem.decode:
        return problem.kv_bytes, "GB/s", "read"
    has_dot = any(cell["ceilings"].get("dot_bf16", []))
    return problem.flops, "GFLOP/s", "dot_bf16" if problem.dtype == "bf16" and has_dot else "fma_f32"


def rate(cell, name="attest"):
    taken = seconds(cell, name)
    return work(cell)[0] / taken / 1e9 if taken else None


def share(cell, name="attest"):
    """The fraction of the ceiling of the same rounds that a contender reaches."""
    amount, _, ceiling = work(cell)
    return paired(samples(cell, name), cell["ceilings"].get(ceiling, []), lambda t, limit: amount / t / limit)


def summarise(document):
    """Adds to each cell what follows from its samples, and the acceptance points to the document."""
    for cell in document["cells"]:
        cell["summary"] = {
            "unit": work(cell)[1],
            "ceiling": work(cell)[2],
            "share_of_ceiling": share(cell),
            "rate": {name: rate(cell, name) for name in ("attest",) + PEERS if seconds(cell, name)},
            "ratio": {name: ratio(cell, name) for name in PEERS if seconds(cell, name)},
        }
    document["acceptance"] = acceptance(document)


# ------------------------------------------------------------------------------------------------- the acceptance points

def label(cell):
    return f"{cell['problem']} on {cell['threads']}"


def acceptance(document):
    cells = document["cells"]
    f32 = [c for c in cells if parse(c["problem"]).dtype == "f32"]
    decode = [c for c in f32 if parse(c["problem"]).decode]
    long = [c for c in f32 if parse(c["problem"]).sq >= 2048]
    threads = sorted({c["threads"] for c in cells})
    points = []

    def at_least(text, bound, found):
        add(text, bound, found, min, lambda x: x >= bound)

    def at_most(text, bound, found):
        add(text, bound, found, max, lambda x: x <= bound)

    def add(text, bound, found, worst, passes):
        found = [(value, where) for value, where in found if value is not None]
        entry = {"point": text, "bound": bound, "count": len(found)}
        if found:
            value, where = worst(found, key=lambda x: x[0])
            missed = [[place, v] for v, place in found if not passes(v)]
            entry.update(verdict="MISS" if missed else "PASS", worst=value, where=where, missed=missed)
        else:
            entry.update(verdict="NO DATA", worst=None, where="", missed=[])
        points.append(entry)

    for peer in PEERS:
        at_least(f"f32: at least 0.98 x {TITLES[peer]} on every shape", 0.98, [(ratio(c, peer), label(c)) for c in f32])
    for n in threads:
        ratios = [r for c in f32 if c["threads"] == n and (r := ratio(c, "pytorch"))]
        at_least(f"f32: at least 1.5 x PyTorch in the geometric mean, {n} thread{'s' * (n > 1)}", 1.5, [(geomean(ratios), "")] if ratios else [])
    at_least("f32: at least 65 % of the FMA peak at S >= 2048, D 64 and 128", 0.65,
             [(share(c), label(c)) for c in long if parse(c["problem"]).d in (64, 128)])
    at_most("f32: causal takes at most 0.6 x of full at S >= 2048", 0.6,
            [(1 / r, label(c)) for c in long if parse(c["problem"]).causal and (r := ratio(c, "attest full"))])
    at_least("f32: decode reads at least 80 % of the DRAM bandwidth at Skv 65536", 0.8,
             [(share(c), label(c)) for c in decode if parse(c["problem"]).skv == 65536])
    at_least("f32: decode at least 2 x PyTorch", 2.0, [(ratio(c, "pytorch"), label(c)) for c in decode])
    for dtype in ("f16", "bf16"):
        at_least(f"{dtype}: never slower than f32 ({NOISE:.0%} for noise)", 1 - NOISE,
                 [(ratio(c, "attest f32"), label(c)) for c in cells if parse(c["problem"]).dtype == dtype])
    if "amx" in document["versions"]["attest"].get("features", ""):
        at_least("bf16 with AMX: at least 2 x PyTorch", 2.0,
                 [(ratio(c, "pytorch"), label(c)) for c in cells if parse(c["problem"]).dtype == "bf16"])
    return points


# ------------------------------------------------------------------------------------------------------------- the tables

def shape_words(problem):
    heads = f"H{problem.hq}" if problem.hq == problem.hkv else f"Hq{problem.hq} Hkv{problem.hkv}"
    if problem.decode:
        return f"decode B{problem.b} {heads} Skv{problem.skv} D{problem.d}"
    return f"B{problem.b} {heads} S{problem.sq} D{problem.d} {'causal' if problem.causal else 'full'}"


def ratio_words(cell, name):
    contender = cell["contenders"].get(name)
    if contender is None:
        return "-"
    if "wrong" in contender:
        return "wrong"
    value = ratio(cell, name)
    return f"{value:.2f}" if value else "-"


def row(cell):
    problem = parse(cell["problem"])
    value, part = rate(cell), share(cell)
    head = [shape_words(problem), problem.dtype, str(cell["threads"])]
    head.append(f"{value:.1f} {work(cell)[1]}" if value else ratio_words(cell, "attest"))
    head.append(f"{100 * part:.0f} %" if part else "-")
    return head + [ratio_words(cell, name) for name in PEERS]


HEADER = ["shape", "dtype", "threads", "attest", "of ceiling"] + [TITLES[name] for name in PEERS]


def in_columns(lines):
    """Lines of words, each word as wide as the widest above or below it."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return ["  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip() for line in lines]


def text(document):
    lines = [HEADER] + [row(cell) for cell in document["cells"]]
    out = in_columns(lines)
    out += ["", "attest, then its share of the ceiling (FMA or bf16 peak, DRAM reads for decode), then times faster than each peer.", ""]
    for name, values in document["ceilings"].items():
        out.append(f"{name} thread{'s' * (name != '1')}: " + ", ".join(f"{key} {v['median']:.1f} (best {v['best']:.1f}) {v['unit']}" for key, v in values.items()))
    out.append(f"Other programs used {document['machine']['others_cores']:.2f} of {document['machine']['cores']} cores meanwhile.")
    if document["machine"]["others_cores"] > 0.1:
        out.append("WARNING: that is too much for the figures above to mean anything, above all with all threads; run it again alone.")
    out.append("")
    for p in document["acceptance"]:
        found = "" if p["worst"] is None else f": {p['worst']:.3f}" + (f" at {p['where']}" if p["where"] else "")
        missed = f" ({len(p['missed'])} of {p['count']})" if p["verdict"] == "MISS" else ""
        out.append(f"{p['verdict']:7}  {p['point']}{found}{missed}")
        out += [f"           {value:.3f}  {where}" for where, value in p["missed"] if where]
    out += [f"SKIPPED  {TITLES.get(name, name)}: {why}" for name, why in document["unavailable"].items()]
    return "\n".join(out)


def markdown(document):
    machine = document["machine"]
    versions = document["versions"]
    peers = ", ".join(f"{TITLES[name]} {versions[name]['version'].split(',')[0]}" for name in PEERS if name in versions)
    out = [f"{machine['cpu']}, {machine['cores']} cores, attest {versions['attest']['version']} ({versions['attest']['build_id']}), {peers}.", ""]
    out.append("| " + " | ".join(HEADER) + " |")
    out.append("|" + "---|" * len(HEADER))
    out += ["| " + " | ".join(row(cell)) + " |" for cell in document["cells"]]
    return "\n".join(out)


def groups(document):
    """The cells run with all threads, by phase and dtype: [(group, {peer: the ratio of each shape})]."""
    threads = max(cell["threads"] for cell in document["cells"])
    chosen = [cell for cell in document["cells"] if cell["threads"] == threads]
    found = []
    for phase, decode in (("prefill", False), ("decode", True)):
        for dtype in DTYPES:
            cells = [cell for cell in chosen if parse(cell["problem"]).decode == decode and parse(cell["problem"]).dtype == dtype]
            if cells:
                found.append((f"{phase}, {dtype}", {name: [r for cell in cells if (r := ratio(cell, name))] for name in PEERS}))
    return found


def groups_title(document):
    return f"{document['machine']['cpu']}, {max(cell['threads'] for cell in document['cells'])} threads"


def range_words(ratios):
    """The geometric mean, and the lowest and the highest ratio."""
    if not ratios:
        return "-"
    return f"{geomean(ratios):.2f}" + (f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else "")


def groups_markdown(title, found, titles, peers):
    out = [f"| {title} | shapes | " + " | ".join(titles[name] for name in peers) + " |", "|" + "---|" * (2 + len(peers))]
    return "\n".join(out + [f"| {group} | {max(len(r) for r in ratios.values())} | "
                            + " | ".join(range_words(ratios[name]) for name in peers) + " |" for group, ratios in found])


def short_markdown(document):
    return groups_markdown(groups_title(document), groups(document), TITLES, PEERS)


def main():
    paths = [a for a in sys.argv[1:] if not a.startswith("--")]
    wanted = [a for a in sys.argv[1:] if a.startswith("--")]
    if len(paths) != 1 or wanted not in ([], ["--short"], ["--text"], ["--ladder"]):
        sys.exit(__doc__.strip())
    with open(paths[0], encoding="utf-8") as f:
        document = json.load(f)
    if document.get("kind") == "gpu":
        import gpu_table as table  # which needs this module
    else:
        table = sys.modules[__name__]
    form = {"--short": "short_markdown", "--text": "text", "--ladder": "ladder_markdown"}[wanted[0]] if wanted else "markdown"
    if not hasattr(table, form):
        sys.exit(f"bench/table.py: {paths[0]} is not of a GPU, and has no ladder")
    print(getattr(table, form)(document))


if __name__ == "__main__":
    main()
