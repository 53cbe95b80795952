#!/usr/bin/env python3
"""Times attest and PyTorch's attention backends in turns on one NVIDIA GPU, and writes down everything that was measured.

    python3 bench/gpu_peers.py [--library build/libattest.so] [--quick] [--groups own,decode] [--kernel PATTERN] [--out FILE.json]
    python3 bench/gpu_peers.py --errors 16       errors alone, over so many sets of inputs for each problem

Needs python3 with torch and numpy. For each problem of gpu_shapes.txt everybody gets the same inputs, and has its answer compared
with float64. Its calls are captured into a CUDA graph, each call of which has inputs and an output of its own, so many that they are
larger than the GPU's cache. Then come the rounds: in each, everyone's graph is replayed for some milliseconds between two events, in
an order that changes from round to round. What a sample means is in gpu_table.py.

attest is called through its C interface, on PyTorch's memory and streams. The peers are called through
scaled_dot_product_attention with one backend allowed: heads that share keys with enable_gqa, windows (which it does not have) by the
operator under its FlashAttention-2. A peer that does not take a problem is listed with its reason.
"""

import argparse
import ctypes
import datetime
import gc
import math
import os
import random
import re
import statistics
import subprocess
import sys
import time
import warnings

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import gpu_table
from answers import TOLERANCE
from cases import ITEM_BYTES, parse
from document import document_write

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS, SAMPLE_MS = 15, 6.0
QUICK_ROUNDS, QUICK_SAMPLE_MS = 9, 3.0
ROTATED_BYTES, SETS_MOST, SETS_LEAST = 256 << 20, 64, 4  # the H200's cache has 60 MB
CHECKED_OUTPUTS, CHECKED_MOST = 8 << 20, 64  # elements of O, or sets of them, whose errors are looked at
GRAPH_US, CALLS_MOST = 1000, 512  # a graph is about this long, so that its launch is nothing beside it
SLOW_US, SLOW_ROUNDS = 20_000, 3  # whoever takes this long for a call has one call in its graph, and takes part in the first rounds only
TORCH = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


# ---------------------------------------------------------------------------------------------------------------- attest

class Attest:
    """libattest through its C interface: a context on the GPU, and plans."""

    class Tensors(ctypes.Structure):
        names = ("q", "k", "v", "o", "lse", "bias", "alibi_slopes", "sinks", "cu_seqlens_q", "cu_seqlens_kv", "kv_lengths", "page_table")
        _fields_ = [("size", ctypes.c_uint64)] + [(name, ctypes.c_void_p) for name in names]

    class KernelInfo(ctypes.Structure):
        _fields_ = [("size", ctypes.c_uint64)] + [(name, ctypes.c_char_p) for name in ("name", "backend", "needs", "summary")]

    def __init__(self, path):
        lib = ctypes.CDLL(os.path.abspath(path))
        for name in ("attest_version", "attest_build_id", "attest_context_detail", "attest_context_model", "attest_plan_kernel"):
            getattr(lib, name).restype = ctypes.c_char_p
        lib.attest_plan_workspace_size.restype = ctypes.c_size_t
        lib.attest_kernel_count.restype = ctypes.c_size_t
        self.lib = lib
        self.context = ctypes.c_void_p()
        if lib.attest_context_create_on(b"cuda", ctypes.byref(self.context)):
            detail = lib.attest_context_detail(self.context) if self.context else b"attest_context_create_on failed"
            raise RuntimeError(detail.decode())

    def must(self, status):
        if status:
            raise RuntimeError(self.lib.attest_context_detail(self.context).decode())

    def version(self):
        return {"version": self.lib.attest_version().decode(), "build_id": self.lib.attest_build_id().decode()}

    def kernels(self, dtype):
        """The names of the CUDA kernels for a dtype, best first."""
        names = []
        for index in range(self.lib.attest_kernel_count()):
            info = self.KernelInfo(ctypes.sizeof(self.KernelInfo))
            self.must(self.lib.attest_kernel_get(ctypes.c_size_t(index), ctypes.byref(info)))
            names.append(info.name.decode())
        return [name for name in names if re.match(rf"cuda_fwd_{dtype}_", name)]

    def first_that_takes(self, problem):
        """The first kernel of the table, candidates too, as the library would choose if all were proven."""
        for name in self.kernels(problem.dtype):
            try:
                return self.call(problem, name)
            except RuntimeError:
                continue
        raise RuntimeError("no kernel takes it")

    def call(self, problem, kernel=None):
        """(the kernel's name, a function of q, k, v, o that enqueues a run on the current stream)."""
        lib = self.lib
        struct = ctypes.create_string_buffer(4096)  # larger than any attest_problem; the library fills in its size
        text = ctypes.create_string_buffer(512)
        if lib.attest_problem_parse(str(problem).encode(), struct, text, ctypes.c_size_t(len(text))):
            raise RuntimeError(text.value.decode())
        plan = ctypes.c_void_p()
        self.must(lib.attest_plan_create(self.context, struct, kernel.encode() if kernel else None, ctypes.byref(plan)))
        size = lib.attest_plan_workspace_size(plan)
        workspace = torch.empty(max(size, 64), dtype=torch.uint8, device="cuda")

        def run(q, k, v, o):
            tensors = self.Tensors(ctypes.sizeof(self.Tensors), *(tensor.data_ptr() for tensor in (q, k, v, o)))
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            self.must(lib.attest_run(self.context, plan, ctypes.byref(tensors), ctypes.c_void_p(workspace.data_ptr()),
                                     ctypes.c_size_t(size), stream))
            return o

        return lib.attest_plan_kernel(plan).decode(), run


# ----------------------------------------------------------------------------------------------------------------- peers

BACKENDS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}


def flash_window(problem):
    """FlashAttention-2 with a window. A row sees window_size_left keys before its own, as with attest."""
    def call(q, k, v, _):
        rows = [tensor.transpose(1, 2) for tensor in (q, k, v)]
        return torch.ops.aten._flash_attention_forward(*rows, None, None, problem.sq, problem.skv, 0.0, True, False,
                                                       window_size_left=problem.wl, window_size_right=0)[0].transpose(1, 2)
    return call


def peer(name, problem):
    """A function of q, k, v and an output that it may leave alone."""
    if problem.wl is not None:
        if name != "flash":
            raise RuntimeError("PyTorch's scaled_dot_product_attention has no window")
        return flash_window(problem)
    shared = {"enable_gqa": True} if problem.hq != problem.hkv else {}

    def call(q, k, v, _):
        with sdpa_kernel(BACKENDS[name]):
            return scaled_dot_product_attention(q, k, v, is_causal=problem.causal, **shared)
    return call


def peers_of(problem):
    """cuDNN and FlashAttention-2 have no float32; the memory-efficient kernel is behind them in 16 bits, and is not asked."""
    return ("efficient",) if problem.dtype == "f32" else ("cudnn", "flash")


def reason_of(error, caught):
    """PyTorch says why a backend does not take a problem in warnings, and then that there is none."""
    said = [str(w.message).split(" (Triggered internally")[0] for w in caught]
    said = [line for line in said if "attention kernel not used because" not in line and "has been runtime disabled" not in line]
    return "; ".join(dict.fromkeys(said))[:300] or str(error).strip().splitlines()[0][:300]


# --------------------------------------------------------------------------------------------------------------- problem

def inputs(problem, seed):
    """Q, K, V of unit normals in the stored type, and an output."""
    def tensor(shape):
        return torch.empty(shape, device="cuda", dtype=TORCH[problem.dtype])
    generator = torch.Generator("cuda").manual_seed(seed)
    q, k, v = (tensor(shape).normal_(generator=generator) for shape in (problem.shape_q, problem.shape_kv, problem.shape_kv))
    return q, k, v, tensor(problem.shape_q)


def set_bytes(problem):
    return 2 * ITEM_BYTES[problem.dtype] * (math.prod(problem.shape_q) + math.prod(problem.shape_kv))


def exact(problem, q, k, v):
    """The answer in float64, [b, hq, sq, d], by products and a softmax of PyTorch over some rows at a time."""
    group = problem.hq // problem.hkv
    out = torch.empty(problem.shape_q, device="cuda", dtype=torch.float64)
    step = max(1, (1 << 27) // (problem.skv * group))
    places = torch.arange(problem.skv, device="cuda")
    for b in range(problem.b):
        for h in range(problem.hkv):
            keys, values = k[b, h].double(), v[b, h].double()
            heads = slice(h * group, (h + 1) * group)
            for first in range(0, problem.sq, step):
                rows = slice(first, min(first + step, problem.sq))
                s = q[b, heads, rows].double() @ keys.T / math.sqrt(problem.d)
                if problem.causal:
                    own = places[rows, None]
                    hidden = places > own
                    if problem.wl is not None:
                        hidden |= places < own - problem.wl
                    s.masked_fill_(hidden, -math.inf)
                out[b, heads, rows] = torch.softmax(s, -1) @ values
    return out


# ---------------------------------------------------------------------------------------------------------------- timing

def clock_mhz():
    """The clock of the multiprocessors, from a kernel that waits for a number of cycles; too low by a percent or two, for its launch."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(50_000)  # the host gets ahead
    begin.record()
    torch.cuda._sleep(200_000)
    end.record()
    end.synchronize()
    return 200 / begin.elapsed_time(end)


def replay_us(graph, replays):
    """Device time in microseconds, between two events on one stream."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(200_000)  # a tenth of a millisecond, in which the host gets ahead of the GPU
    begin.record()
    for _ in range(replays):
        graph()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3


class Entry:
    """One contender of one cell: its call, its graph, its samples."""

    def __init__(self, call, **result):
        self.call = call
        self.result = result
        self.outputs = {}
        self.means, self.heads, self.worsts = [], [], []

    def check(self, problem, tensors, answer):
        """Adds the errors of one set of inputs against float64. False if the answer is wrong."""
        q, k, v, o = tensors
        o.fill_(math.nan)
        error = (self.call(q, k, v, o).double() - answer).abs()
        worst = error.max().item()
        # NaN must count as wrong, so the comparison asks for "not within" rather than for "beyond".
        if not worst <= TOLERANCE[problem.dtype]:
            self.result["wrong"] = f"maximum error {worst}"
            return False
        self.worsts.append(worst)
        self.means.append(error.mean().item())
        self.heads.append(error.amax((-2, -1)).mean().item())
        self.result.update(max_error=max(self.worsts), set_error=statistics.fmean(self.worsts), head_error=statistics.fmean(self.heads),
                           mean_error=statistics.fmean(self.means))
        return True

    def capture(self, sets, sample_ms):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # plans are made, modules are loaded
            for tensors in sets[:2]:
                self.outputs[0] = self.call(*tensors)
        torch.cuda.synchronize()
        call_us = replay_us(lambda: self.call(*sets[0]), 1)
        self.slow = call_us > SLOW_US
        self.calls = 1 if self.slow else len(sets) * max(1, min(round(GRAPH_US / call_us / len(sets)), CALLS_MOST // len(sets)))
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            for n in range(self.calls):
                self.outputs[n % len(sets)] = self.call(*sets[n % len(sets)])
        graph_us = min(replay_us(self.graph.replay, 1) for _ in range(2))
        self.replays = max(1, round(sample_ms * 1e3 / graph_us))
        self.result.update(calls_per_sample=self.calls * self.replays, us=[], mhz=[])

    def sample(self):
        if self.replays > 1:
            self.graph.replay()  # unseen: what the last contender left in caches is not this one's
        self.result["us"].append(replay_us(self.graph.replay, self.replays) / (self.calls * self.replays))
        self.result["mhz"].append(round(clock_mhz()))

    def replayed_bits_hold(self, sets):
        """Whether a replay leaves what a plain call does, bit for bit."""
        q, k, v, o = sets[0]
        o.fill_(math.nan)
        self.graph.replay()
        torch.cuda.synchronize()
        left = o.clone()
        o.fill_(math.nan)
        return torch.equal(left.view(torch.uint8), self.call(q, k, v, o).view(torch.uint8))


def checked_sets(problem):
    """Sets of inputs whose answers are compared with float64. The largest of some roundings is chance: of few outputs it says as little of a
    kernel as one throw of dice, so small problems have several sets."""
    return max(1, min(CHECKED_MOST, CHECKED_OUTPUTS // math.prod(problem.shape_q)))


def succeeds(name, results, work):
    """Whether the work is done and its result is not False; why it cannot be done is written into the place of `name`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return work() is not False
        except RuntimeError as error:
            results[name] = {"unavailable": reason_of(error, caught)}
            return False


def check_all(problem, sets, count, entries, results):
    """The entries that can run the problem and are right, over `count` sets of inputs. The errors are written into their results."""
    left = entries
    for number in range(count):
        tensors = sets[number] if number < len(sets) else inputs(problem, number)
        answer = exact(problem, *tensors[:3])
        left = {name: entry for name, entry in left.items()
                if succeeds(name, results, lambda entry=entry: entry.check(problem, tensors, answer))}
    return left


def entries_of(problem, words, attest, kernel, candidates):
    entries, failures = {}, {}

    def add(name, make):
        try:
            entries[name] = make()
        except RuntimeError as error:
            failures[name] = {"unavailable": str(error)}

    def attest_entry(pattern):
        chosen, call = attest.first_that_takes(problem) if candidates and not pattern else attest.call(problem, pattern)
        return Entry(call, kernel=chosen)

    add("attest", lambda: attest_entry(kernel))
    rungs = attest.kernels(problem.dtype) if "ladder" in words else [gpu_table.rung_3(problem)] if "sm80" in words else []
    for name in rungs:
        if "attest" not in entries or name != entries["attest"].result["kernel"]:
            add(name, lambda name=name: attest_entry(name))
    for name in peers_of(problem):
        add(name, lambda name=name: Entry(peer(name, problem)))
    return entries, failures


def run_cell(group, problem, words, attest, settings, kernel):
    """All rounds of one problem: the cell of the JSON file."""
    rotated = max(SETS_LEAST, min(SETS_MOST, -(-ROTATED_BYTES // set_bytes(problem))))
    count = 1 if settings.get("errors") else settings.get("sets") or rotated
    sets = [inputs(problem, seed) for seed in range(count)]
    entries, results = entries_of(problem, words, attest, kernel, settings.get("candidates"))
    results.update({name: entry.result for name, entry in entries.items()})
    checked = max(settings.get("errors", 1), checked_sets(problem))
    right = check_all(problem, sets, checked, entries, results)
    cell = {"group": group, "problem": str(problem), "sets": count, "checked_sets": checked, "contenders": results}
    if settings.get("errors"):
        return cell
    ready = [entry for name, entry in right.items()
             if succeeds(name, results, lambda entry=entry: entry.capture(sets, settings["sample_ms"]))]

    order = random.Random(1)
    for number in range(settings["rounds"]):
        taking_part = [entry for entry in ready if not entry.slow or number < SLOW_ROUNDS]
        order.shuffle(taking_part)
        for entry in taking_part:
            entry.sample()
    for entry in ready:
        if "kernel" in entry.result:
            entry.result["replayed_bits_hold"] = entry.replayed_bits_hold(sets)
    return cell


# ------------------------------------------------------------------------------------------------------------------ main

def smi():
    """Clocks, power and temperature, as nvidia-smi reads them."""
    names = ("driver_version", "clocks.sm", "clocks.mem", "clocks.max.sm", "power.draw", "temperature.gpu")
    try:
        found = subprocess.run(["nvidia-smi", "--id=0", "--query-gpu=" + ",".join(names), "--format=csv,noheader"], capture_output=True,
                               text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    values = [value.strip() for value in found.stdout.strip().split(",")]
    return dict(zip(names, values)) if found.returncode == 0 and len(values) == len(names) else {}


def describe_machine():
    gpu = torch.cuda.get_device_properties(0)
    return {
        "gpu": gpu.name,
        "compute_capability": f"{gpu.major}.{gpu.minor}",
        "multiprocessors": gpu.multi_processor_count,
        "memory_bytes": gpu.total_memory,
        "cache_bytes": getattr(gpu, "L2_cache_size", 0),
        "clocks_start": smi(),
    }


def describe_torch():
    cudnn = torch.backends.cudnn.version() or 0
    return {"version": torch.__version__, "cuda": torch.version.cuda or "none",
            "cudnn": f"{cudnn // 10000}.{cudnn // 100 % 100}.{cudnn % 100}"}


def read_shapes(path):
    with open(path, encoding="utf-8") as f:
        lines = [line.split("#")[0].split() for line in f]
    return [(words[0], parse(words[1], windows=True), words[2:]) for words in lines if words]


def main():
    options = argparse.ArgumentParser(prog="bench/gpu_peers.py", description="attest and PyTorch's backends on a GPU, timed in turns")
    options.add_argument("--library", default=os.path.join(os.environ.get("BUILD", "build"), "libattest.so"))
    options.add_argument("--quick", action="store_true", help="some shapes, few rounds")
    options.add_argument("--shapes", default=os.path.join(HERE, "gpu_shapes.txt"), help="the table of problems")
    options.add_argument("--groups", help="only these groups of problems, such as own,decode")
    options.add_argument("--problem", action="append", help="this problem instead of the table; may be given again")
    options.add_argument("--kernel", help="force attest's kernel: a name or a pattern; the library's choice otherwise")
    options.add_argument("--candidates", action="store_true", help="let kernels that are not proven yet take part as if they were")
    options.add_argument("--no-ladder", action="store_true", help="time the one kernel of attest only")
    options.add_argument("--rounds", type=int, help=f"default {ROUNDS}, with --quick {QUICK_ROUNDS}")
    options.add_argument("--seconds", type=float, default=math.inf, help="begin no further problem after so many")
    options.add_argument("--sets", type=int, help="sets of tensors taken in turn; few enough stay in the cache, as after a projection")
    options.add_argument("--errors", type=int, metavar="SETS", help="time nothing: errors alone, over at least so many sets of inputs")
    options.add_argument("--out", help="the JSON file; default bench/results/GPU.json, and none if not everything is run")
    arguments = options.parse_args()
    if not os.path.exists(arguments.library):
        sys.exit(f"bench/gpu_peers.py: there is no {arguments.library}; run make first")
    if not torch.cuda.is_available():
        sys.exit("bench/gpu_peers.py: PyTorch finds no GPU here")

    torch.zeros(1, device="cuda")
    attest = Attest(arguments.library)
    shapes = read_shapes(arguments.shapes)
    if arguments.problem:
        shapes = [("other", parse(text, windows=True), ["quick"]) for text in arguments.problem]
    elif arguments.groups:
        shapes = [shape for shape in shapes if shape[0] in arguments.groups.split(",")]
    if arguments.quick and not arguments.groups:
        shapes = [shape for shape in shapes if "quick" in shape[2]]
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    settings = {"rounds": rounds, "sample_ms": QUICK_SAMPLE_MS if arguments.quick else SAMPLE_MS, "rotated_bytes": ROTATED_BYTES}
    document = {
        "schema": 1,
        "kind": "gpu",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "machine": describe_machine(),
        "settings": settings,
        "versions": {"attest": attest.version(), "pytorch": describe_torch()},
        "cells": [],
    }
    settings.update({name: value for name, value in (("kernel", arguments.kernel), ("sets", arguments.sets), ("candidates", arguments.candidates),
                                                   ("errors", arguments.errors))
                     if value})

    started = time.time()
    for number, (group, problem, words) in enumerate(shapes):
        if time.time() - started > arguments.seconds:
            document["left_out"] = [str(problem) for _, problem, _ in shapes[number:]]
            print(f"{len(document['left_out'])} problems are left out: {arguments.seconds:g} s are over", file=sys.stderr)
            break
        words = [] if arguments.no_ladder or arguments.errors else words
        cell = run_cell(group, problem, words, attest, settings, arguments.kernel)
        document["cells"].append(cell)
        row = gpu_table.errors_row(cell) if arguments.errors else gpu_table.row(cell)
        print(f"{time.time() - started:4.0f} s  " + "  ".join(row), file=sys.stderr, flush=True)
        gc.collect()  # graphs hold memory
        torch.cuda.empty_cache()
    document["machine"]["clocks_end"] = smi()
    document["seconds"] = round(time.time() - started)
    if not arguments.errors:
        gpu_table.summarise(document)
    print(gpu_table.text(document))

    everything = not (arguments.quick or arguments.groups or arguments.problem or arguments.kernel or arguments.sets)
    slug = re.sub(r"[^a-z0-9]+", "-", document["machine"]["gpu"].lower()).strip("-") + ("-errors" if arguments.errors else "")
    out = arguments.out or (os.path.join(HERE, "results", slug + ".json") if everything else None)
    if out:
        document_write(document, out)
        print(f"\nwrote {os.path.relpath(out)}")
    sys.exit(1 if gpu_table.wrongs(document) else 0)


if __name__ == "__main__":
    main()
