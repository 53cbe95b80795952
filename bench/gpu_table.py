"""What the samples of a GPU benchmark mean: times, ratios, errors, the points they are held to, and the tables. See table.py.

Samples are microseconds per call, one for each round. A time is the median over the rounds, and a ratio is that of two times: how
many times longer a peer takes than attest. The clock of a GPU moves with its power, by more than some of these ratios, and in the
rounds everyone gets the same share of its moods; the lowest and the highest ratio within a round say how much it moved.
"""

import operator

from cases import parse
from table import geomean, groups_markdown, in_columns, median, shape_words

PEERS = ("cudnn", "flash", "efficient")
TITLES = {"attest": "attest", "cudnn": "cuDNN", "flash": "FlashAttention-2", "efficient": "memory-efficient"}


def problem_of(cell):
    return parse(cell["problem"], windows=True)


def words_of(cell):
    problem = problem_of(cell)
    return shape_words(problem) + (f" window {problem.wl}" if problem.wl is not None else "")


def us(cell, name="attest"):
    values = cell["contenders"].get(name, {}).get("us")
    return median(values) if values else None


def ratio(cell, name, base="attest"):
    """How many times longer `name` takes than `base`: above 1, the base is faster."""
    return us(cell, name) / us(cell, base) if us(cell, name) and us(cell, base) else None


def ratio_range(cell, name, base="attest"):
    """The lowest and the highest ratio within a round."""
    rounds = [a / b for a, b in zip(cell["contenders"][name]["us"], cell["contenders"][base]["us"])]
    return [min(rounds), max(rounds)]


def rate(cell, name="attest"):
    """(number, unit): TFLOP/s, and for decoding the bytes of K and V in a second."""
    problem = problem_of(cell)
    if problem.decode:
        return problem.kv_bytes / us(cell, name) / 1e3, "GB/s"
    return problem.flops / us(cell, name) / 1e6, "TFLOP/s"


def error_ratio(cell, kind, peer, name="attest"):
    """attest's error against float64 over that of a peer. `kind` is max; set, the largest of a set of inputs, in the mean of all sets; head,
    the largest of a head, in the mean of all heads; or mean."""
    mine, other = (cell["contenders"].get(who, {}).get(kind + "_error") for who in (name, peer))
    return mine / other if mine is not None and other else None


def main_peer(cell):
    """The peer whose error attest's is held against."""
    return "efficient" if problem_of(cell).dtype == "f32" else "cudnn"


# ------------------------------------------------------------------------------------------------------------------ points

def in_group(*names):
    return lambda cell: cell["group"] in names


def faster_than(peer):
    return lambda cell: ratio(cell, peer)


def rung_3(problem):
    """The kernel that is held against FlashAttention-2, which is made of the same instructions."""
    return f"cuda_fwd_{problem.dtype}_sm80"


def rung_3_here(cell):
    """Its name in the cell: where another is faster and the library takes that, it has a place of its own."""
    rung = rung_3(problem_of(cell))
    return rung if rung in cell["contenders"] else "attest"


def rung_3_faster_than(peer):
    return lambda cell: ratio(cell, peer, rung_3_here(cell))


def error_beside(kind, peer):
    return lambda cell: error_ratio(cell, kind, peer)


def rung_3_error_beside(kind, peer):
    return lambda cell: error_ratio(cell, kind, peer, rung_3_here(cell))


def is_short_decode(cell):
    return cell["group"] == "decode" and problem_of(cell).b == 1 and problem_of(cell).skv in (1024, 8192)


def is_16_bit(cell):
    return problem_of(cell).dtype != "f32"


# What is said, of which cells, what is measured, how it compares with the bound; MEAN is of the geometric mean of the cells.
EACH, MEAN = "each", "mean"
POINTS = (
    ("B2 H8 S512 D64 f16, full and causal: at most 6.5 us", in_group("own"), us, EACH, "<=", 6.5),
    ("B2 H8 S512 D64 f16, full and causal: at least 2.0 x cuDNN", in_group("own"), faster_than("cudnn"), EACH, ">=", 2.0),
    ("16k tokens, f16, mma.sync: at least 1.05 x FlashAttention-2 in the geometric mean", in_group("grid"), rung_3_faster_than("flash"),
     MEAN, ">=", 1.05),
    ("16k tokens, f16, mma.sync: at least 0.95 x FlashAttention-2 on every shape", in_group("grid"), rung_3_faster_than("flash"), EACH, ">=",
     0.95),
    ("16k tokens, f16 and bf16: at least 0.98 x cuDNN on every shape", in_group("grid", "bf16"), faster_than("cudnn"), EACH, ">=", 0.98),
    ("16k tokens, f16 and bf16: at least 1.12 x cuDNN in the geometric mean", in_group("grid", "bf16"), faster_than("cudnn"), MEAN, ">=",
     1.12),
    ("short and ragged: at least 0.98 x cuDNN on every shape", in_group("short"), faster_than("cudnn"), EACH, ">=", 0.98),
    ("short and ragged: at least 1.3 x cuDNN in the geometric mean", in_group("short"), faster_than("cudnn"), MEAN, ">=", 1.3),
    ("prefill with shared heads: at least 1.0 x cuDNN", in_group("gqa"), faster_than("cudnn"), EACH, ">=", 1.0),
    ("window of 1024: at least 1.3 x FlashAttention-2 (PyTorch's cuDNN takes none)", in_group("window"), faster_than("flash"), EACH, ">=",
     1.3),
    ("decode: at least 0.98 x cuDNN on every shape", in_group("decode"), faster_than("cudnn"), EACH, ">=", 0.98),
    ("decode: at least 1.2 x cuDNN at B1 Skv 1024 and 8192", is_short_decode, faster_than("cudnn"), EACH, ">=", 1.2),
    ("f32 B2 H8 S512 D64: faster than memory-efficient", in_group("f32"), faster_than("efficient"), EACH, ">", 1.0),
    ("f32 B2 H8 S512 D64: max error at most memory-efficient's", in_group("f32"), error_beside("max", "efficient"), EACH, "<=", 1.0),
    ("f32 B2 H8 S512 D64: mean error at most memory-efficient's", in_group("f32"), error_beside("mean", "efficient"), EACH, "<=", 1.0),
    ("16k tokens, f16, mma.sync: max error at most 1.1 x cuDNN's", in_group("grid"), rung_3_error_beside("max", "cudnn"), EACH, "<=", 1.1),
    ("16k tokens, f16, mma.sync: mean error at most 1.1 x cuDNN's", in_group("grid"), rung_3_error_beside("mean", "cudnn"), EACH, "<=", 1.1),
    ("f16 and bf16: max error of a head, in the mean, at most 1.1 x cuDNN's", is_16_bit, error_beside("head", "cudnn"), EACH, "<=", 1.1),
    ("f16 and bf16: max error at most 1.1 x cuDNN's", is_16_bit, error_beside("max", "cudnn"), EACH, "<=", 1.1),
    ("f16 and bf16: mean error at most 1.1 x cuDNN's", is_16_bit, error_beside("mean", "cudnn"), EACH, "<=", 1.1),
)
COMPARE = {"<=": operator.le, ">=": operator.ge, ">": operator.gt}


def judge(cells, text, chosen, measure, over, sense, bound):
    """A point and its verdict. A cell that attest has no figure for is a miss; one that the peer has none for does not count."""
    cells = [cell for cell in cells if chosen(cell)]
    found = [(measure(cell), words_of(cell)) for cell in cells if measure(cell) is not None]
    absent = [words_of(cell) for cell in cells if us(cell) is None]
    if over == MEAN and found:
        found = [(geomean([value for value, _ in found]), f"{len(found)} shapes")]
    missed = [[where, None] for where in absent] + [[where, value] for value, where in found if not COMPARE[sense](value, bound)]
    worst = (max if sense == "<=" else min)(found, default=(None, ""))
    verdict = "MISS" if missed else "PASS" if found else "NO DATA"
    return {"point": text, "bound": bound, "count": len(found) + len(absent), "verdict": verdict, "worst": worst[0], "where": worst[1],
            "missed": missed}


def summarise(document):
    """Adds to each cell what follows from its samples, and the points to the document."""
    for cell in document["cells"]:
        timed = [name for name in cell["contenders"] if us(cell, name)]
        cell["summary"] = {"us": {name: us(cell, name) for name in timed}}
        if "attest" in timed:
            others = [name for name in timed if name != "attest"]
            cell["summary"].update(
                ratio={name: ratio(cell, name) for name in others},
                ratio_range={name: ratio_range(cell, name) for name in others},
            )
    points = [judge(document["cells"], *point) for point in POINTS]
    document["points"] = [point for point in points if point["count"]]


# ------------------------------------------------------------------------------------------------------------------ tables

SUMMED_UP = ("bf16", "short")  # groups of which documents have the mean alone
HEADER = ["shape", "dtype", "kernel", "attest", "rate"] + [TITLES[name] for name in PEERS] + ["max error", "max error ratio", "of a head", "mean error ratio"]


def short_name(cell, kernel):
    """cuda_fwd_f16_sm80 -> sm80"""
    return kernel.removeprefix(f"cuda_fwd_{problem_of(cell).dtype}_")


def number_words(value, form):
    return "-" if value is None else format(value, form)


def row(cell):
    mine = cell["contenders"]["attest"]
    head = [words_of(cell), problem_of(cell).dtype, short_name(cell, mine.get("kernel", "-"))]
    if us(cell) is None:
        return head + ["wrong" if "wrong" in mine else "-"] + ["-"] * (len(HEADER) - 4)
    number, unit = rate(cell)
    head += [f"{us(cell):.1f} us" if us(cell) < 1000 else f"{us(cell) / 1000:.2f} ms", f"{number:.0f} {unit}"]
    head += ["wrong" if "wrong" in cell["contenders"].get(name, {}) else number_words(ratio(cell, name), ".2f") for name in PEERS]
    head.append(f"{mine['max_error']:.1e}")
    return head + [number_words(error_ratio(cell, kind, main_peer(cell)), ".2f") for kind in ("max", "head", "mean")]


ERROR_KINDS = {"max": "largest of all", "set": "of a set", "head": "of a head", "mean": "mean"}
ERROR_BOUND = 1.1


def errors_row(cell):
    """Ratios of errors, attest's and FlashAttention-2's, to those of the peer that attest is held against."""
    head = [words_of(cell), problem_of(cell).dtype, short_name(cell, cell["contenders"]["attest"].get("kernel", "-")), str(cell["checked_sets"])]
    return head + [number_words(error_ratio(cell, kind, main_peer(cell), name), ".3f") for name in ("attest", "flash") for kind in ERROR_KINDS]


def errors_summary(document):
    """(who, kind, the largest ratio, where it is, on how many shapes it is above the bound, of how many)"""
    rows = []
    for name in ("attest", "flash"):
        for kind in ERROR_KINDS:
            found = [(value, f"{words_of(cell)}, {problem_of(cell).dtype}") for cell in document["cells"]
                     if (value := error_ratio(cell, kind, main_peer(cell), name)) is not None]
            if found:
                rows.append((TITLES[name], ERROR_KINDS[kind], *max(found), sum(value > ERROR_BOUND for value, _ in found), len(found)))
    return rows


def measured_words(document):
    """Where and what was measured."""
    attest, torch = document["versions"]["attest"], document["versions"]["pytorch"]
    return (f"{document['machine']['gpu']}, attest {attest['version']} ({attest['build_id']}), PyTorch {torch['version']} with cuDNN "
            f"{torch['cudnn']}; {len(document['cells'])} shapes")


def errors_markdown(document):
    out = [f"{measured_words(document)}, at least {document['settings']['errors']} sets of inputs of each, {document['date']}.", "",
           f"| error | of | at most | at | above {ERROR_BOUND} |", "|---|---|---|---|---|"]
    return "\n".join(out + [f"| {kind} | {who} | {worst:.3f} | {where} | {above} of {count} |"
                            for who, kind, worst, where, above, count in errors_summary(document)])


def errors_text(document):
    """The table of a run without times (gpu_peers.py --errors)."""
    lines = [["shape", "dtype", "kernel", "sets"] + [f"{who}: {kind}" for who in ("attest", "FA-2") for kind in ERROR_KINDS]]
    lines += [errors_row(cell) for cell in document["cells"]]
    out = in_columns(lines)
    out += ["", "Errors against float64 over cuDNN's (f32: over memory-efficient's): the largest over all sets of inputs, the largest of a set in the",
            "mean of all sets, the largest of a head in the mean of all heads, and the mean.", ""]
    out += [f"{who}, {kind}: at most {worst:.3f} ({where}), above {ERROR_BOUND} on {above} of {count}"
            for who, kind, worst, where, above, count in errors_summary(document)]
    return "\n".join(out + [f"SKIPPED  {line}" for line in unavailable_lines(document)])


def mean_lines(document):
    """Geometric means over the groups of more than one shape."""
    groups = dict.fromkeys(cell["group"] for cell in document["cells"])
    lines = []
    for group in groups:
        cells = [cell for cell in document["cells"] if cell["group"] == group]
        means = []
        for name in PEERS:
            ratios = [r for cell in cells if (r := ratio(cell, name))]
            if len(ratios) > 1:
                means.append(f"{geomean(ratios):.3f} x {TITLES[name]} (lowest {min(ratios):.2f}, highest {max(ratios):.2f})")
        if means:
            lines.append(f"{group}, {len(cells)} shapes, geometric mean: " + ", ".join(means))
    return lines


# How the README and its picture name the groups of gpu_shapes.txt; groups of one name are one.
GROUPS = {
    "own": "B2 H8 S512 D64, {dtype}",
    "f32": "B2 H8 S512 D64, {dtype}",
    "grid": "16k tokens, D{d}, f16 and bf16",
    "bf16": "16k tokens, D{d}, f16 and bf16",
    "short": "short and ragged, S 128 to 1000, {dtype}",
    "window": "window of 1024, S16384, {dtype}",
    "gqa": "GQA, S4096 causal, {dtype}",
    "decode": "decode, Skv 1024 to 65536, {dtype}",
}


def groups(document):
    """The cells by the names of GROUPS: [(group, {peer: the ratio of each shape})]."""
    found = {}
    for name, words in GROUPS.items():
        for cell in document["cells"]:
            if cell["group"] == name:
                problem = problem_of(cell)
                ratios = found.setdefault(words.format(d=problem.d, dtype=problem.dtype), {peer: [] for peer in PEERS})
                for peer in PEERS:
                    ratios[peer] += [r] if (r := ratio(cell, peer)) else []
    return list(found.items())


def groups_title(document):
    return document["machine"]["gpu"]


def short_markdown(document):
    return groups_markdown(groups_title(document), groups(document), TITLES, PEERS)


def ladder(cell):
    """(kernel, us, how many times longer than attest's choice), fastest first; empty unless the other kernels were timed too."""
    names = [name for name in cell["contenders"] if name not in ("attest", *PEERS) and us(cell, name)]
    if not names or us(cell) is None:
        return []
    rungs = [(cell["contenders"]["attest"]["kernel"], us(cell), 1.0)] + [(name, us(cell, name), ratio(cell, name)) for name in names]
    return sorted(rungs, key=lambda rung: rung[1])


def wrongs(document):
    """Where a kernel of attest was wrong, or left other bits when it was replayed."""
    return [(cell["problem"], name) for cell in document["cells"] for name, result in cell["contenders"].items()
            if name not in PEERS and ("wrong" in result or not result.get("replayed_bits_hold", True))]


def point_lines(document):
    lines = ["What attest is held to on an H200:"]
    for p in document["points"]:
        found = "" if p["worst"] is None else f": {p['worst']:.3f}" + (f" at {p['where']}" if p["where"] else "")
        missed = f" ({len(p['missed'])} of {p['count']})" if p["verdict"] == "MISS" else ""
        lines.append(f"{p['verdict']:7}  {p['point']}{found}{missed}")
        if len(p["missed"]) > 1:
            lines += [f"           {number_words(value, '.3f')}  {where}" for where, value in p["missed"][:8]]
            lines += [f"           and {len(p['missed']) - 8} more"] * (len(p["missed"]) > 8)
    return lines


def unavailable_lines(document):
    """Who could not take part, why, and where; one line for each reason."""
    reasons = {}
    for cell in document["cells"]:
        for name, result in cell["contenders"].items():
            why = result.get("unavailable") or result.get("wrong") or ("" if result.get("replayed_bits_hold", True) else "REPLAYED BITS DIFFER")
            if why:
                reasons.setdefault((name, why), []).append(cell["problem"])
    return [f"{TITLES.get(name, name)}: {why} ({places[0]}{f' and {len(places) - 1} more' * (len(places) > 1)})"
            for (name, why), places in reasons.items()]


def text(document):
    if document["settings"].get("errors"):
        return errors_text(document)
    lines = [HEADER] + [row(cell) for cell in document["cells"]]
    out = in_columns(lines)
    out += ["", "attest's time and rate, then times faster than each peer, then its largest error against float64, and the ratios",
            "of its largest error, of the largest of a head in the mean of all, and of the mean error, to cuDNN's (f32: to memory-efficient's).", ""]
    for cell in document["cells"]:
        rungs = ladder(cell)
        if rungs:
            out.append(f"{cell['problem']}: " + ", ".join(f"{name} {time:.1f} us" for name, time, _ in rungs))
    out += [""] + mean_lines(document)
    machine = document["machine"]
    for when in ("start", "end"):
        out.append(f"{when}: " + ", ".join(f"{key} {value}" for key, value in machine.get("clocks_" + when, {}).items()))
    clocks = [mhz for cell in document["cells"] for result in cell["contenders"].values() for mhz in result.get("mhz", [])]
    if clocks:
        out.append(f"clock after a sample: {min(clocks)} to {max(clocks)} MHz, median {median(clocks):.0f}")
    return "\n".join(out + [""] + point_lines(document) + [f"SKIPPED  {line}" for line in unavailable_lines(document)])


def markdown(document):
    if document["settings"].get("errors"):
        return errors_markdown(document)
    out = [f"{measured_words(document)}, {document['settings']['rounds']} rounds, {document['date']}."
           + (" Kernels that are candidates took part as if they were proven." if document["settings"].get("candidates") else "")
           + (f" Of the groups {' and '.join(SUMMED_UP)} there is the mean."
              if any(cell["group"] in SUMMED_UP for cell in document["cells"]) else ""), ""]
    out.append("| " + " | ".join(HEADER) + " |")
    out.append("|" + "---|" * len(HEADER))
    out += ["| " + " | ".join(row(cell)) + " |" for cell in document["cells"] if cell["group"] not in SUMMED_UP]
    return "\n".join(out + [""] + [line + "." for line in mean_lines(document)])


def ladder_markdown(document):
    """The time of every kernel of the library that takes a problem, and of the peers, in microseconds; the fastest kernel is attest's."""
    cells = [cell for cell in document["cells"] if ladder(cell)]
    columns = {}  # a kernel's name without its dtype, slowest first
    for cell in cells:
        for name, time, _ in ladder(cell):
            columns.setdefault(short_name(cell, name), []).append((cell["problem"], time))
    order = sorted(columns, key=lambda short: -max(time for _, time in columns[short]))
    peers = [name for name in PEERS if any(us(cell, name) for cell in cells)]
    out = ["| " + " | ".join(["us", "dtype"] + [f"`{short}`" for short in order] + [TITLES[name] for name in peers]) + " |"]
    out.append("|" + "---|" * (2 + len(order) + len(peers)))
    for cell in cells:
        times = [dict(columns[short]).get(cell["problem"]) for short in order] + [us(cell, name) for name in peers]
        out.append("| " + " | ".join([words_of(cell), problem_of(cell).dtype] + [number_words(time, ".1f") for time in times]) + " |")
    return "\n".join(out)
