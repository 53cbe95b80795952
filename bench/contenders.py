"""One contender of the benchmark in a process of its own: python3 contenders.py NAME THREADS, commands on standard input.

Several libraries in one process would bring several thread pools, and the idle threads of one would spin on the cores that
another one needs. So each contender gets a process, and bench/peers.py gives it the word: one JSON object a line in, one out.

    {"do": "hello"}                          -> {"version": ...}
    {"do": "prepare", "problem": ..., "inputs": DIR, "output": FILE}
                                             -> {"variant": ..., "seconds": ...}  and FILE holds the answer to be checked
    {"do": "time", "problem": ..., "calls": N} -> {"seconds": per call}
    {"do": "release"}                        -> {}

An answer with "error" says in a sentence why something could not be done.
"""

import contextlib
import ctypes
import json
import os
import sys
import time

import numpy as np

from answers import storage
from cases import DTYPES, parse


def aligned(shape, dtype):
    """Memory that starts on a cache line. All contenders get theirs from here, so none has better pages than another."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(count + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + count].view(dtype).reshape(shape)


class Tensors:
    """Q, K, V from the coordinator's files, and O."""

    def __init__(self, problem, directory):
        kind = storage(problem.dtype)
        self.q = aligned(problem.shape_q, kind)
        self.k = aligned(problem.shape_kv, kind)
        self.v = aligned(problem.shape_kv, kind)
        self.o = aligned(problem.shape_q, kind)
        self.o[...] = 0
        for name in "qkv":
            array = getattr(self, name)
            with open(os.path.join(directory, f"{name}.{problem.dtype}"), "rb") as f:
                f.readinto(memoryview(array.reshape(-1)).cast("B"))


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


class Attest:
    """libattest through its C ABI: parse, plan, workspace, run."""

    class TensorsStruct(ctypes.Structure):
        names = ("q", "k", "v", "o", "lse", "bias", "alibi_slopes", "sinks", "cu_seqlens_q", "cu_seqlens_kv", "kv_lengths", "page_table")
        _fields_ = [("size", ctypes.c_uint64)] + [(name, ctypes.c_void_p) for name in names]

    def __init__(self, build, threads):
        lib = ctypes.CDLL(os.path.join(build, "libattest.so"))
        for name in ("attest_version", "attest_build_id", "attest_context_features", "attest_context_detail", "attest_plan_kernel"):
            getattr(lib, name).restype = ctypes.c_char_p
        lib.attest_plan_workspace_size.restype = ctypes.c_size_t
        self.lib = lib
        self.context = ctypes.c_void_p()
        if lib.attest_context_create(ctypes.byref(self.context)):
            raise RuntimeError("attest_context_create failed")
        self.must(lib.attest_context_set_threads(self.context, threads))
        self.version = lib.attest_version().decode()
        self.build_id = lib.attest_build_id().decode()
        self.features = lib.attest_context_features(self.context).decode()

    def must(self, status):
        if status:
            raise RuntimeError(self.lib.attest_context_detail(self.context).decode())

    def variants(self, problem, t):
        lib = self.lib
        struct = ctypes.create_string_buffer(4096)  # larger than any attest_problem; the library fills in its size
        text = ctypes.create_string_buffer(512)
        if lib.attest_problem_parse(str(problem).encode(), struct, text, ctypes.c_size_t(len(text))):
            raise RuntimeError(text.value.decode())
        plan = ctypes.c_void_p()
        self.must(lib.attest_plan_create(self.context, struct, None, ctypes.byref(plan)))
        size = lib.attest_plan_workspace_size(plan)
        workspace = aligned((max(size, 64),), np.uint8)
        workspace[...] = 0
        tensors = self.TensorsStruct(ctypes.sizeof(self.TensorsStruct), *(t_.ctypes.data for t_ in (t.q, t.k, t.v, t.o)))
        arguments = (self.context, plan, ctypes.byref(tensors), address(workspace), ctypes.c_size_t(size), None)
        keep = (t, tensors, workspace, struct)

        def run(keep=keep):
            status = lib.attest_run(*arguments)
            if status:
                self.must(status)

        yield lib.attest_plan_kernel(plan).decode(), run, lambda: t.o, lambda: lib.attest_plan_destroy(plan)


class SharedObject:
    """A peer behind bench/peer.h."""

    def __init__(self, path, threads):
        lib = ctypes.CDLL(path)
        lib.peer_version.restype = ctypes.c_char_p
        lib.peer_variant.restype = ctypes.c_char_p
        lib.peer_setup.restype = ctypes.c_void_p
        self.lib = lib
        self.threads = threads
        self.version = lib.peer_version().decode()

    def variants(self, problem, t):
        lib = self.lib
        p = problem
        sizes = (p.b, p.hq, p.hkv, p.sq, p.skv, p.d, DTYPES.index(p.dtype) + 1, int(p.causal), self.threads)
        shape = (ctypes.c_int64 * len(sizes))(*sizes)
        reasons = []
        index = found = 0
        while name := lib.peer_variant(index):
            why = ctypes.create_string_buffer(512)
            made = lib.peer_setup(shape, index, address(t.q), address(t.k), address(t.v), address(t.o), why, ctypes.c_size_t(len(why)))
            index += 1
            if not made:
                reasons.append(why.value.decode())
                continue
            found += 1
            handle = ctypes.c_void_p(made)

            def run(handle=handle, keep=t):
                if lib.peer_run(handle):
                    raise RuntimeError("peer_run failed")

            yield name.decode(), run, lambda: t.o, lambda handle=handle: lib.peer_free(handle)
        if not found:
            raise RuntimeError("; ".join(dict.fromkeys(reasons)))


class OneDNN(SharedObject):
    """oneDNN's PyPI build counts its threads by the affinity of the process when its thread pool starts, and in no other way.
    So the affinity is narrow while the pool starts, and wide again before anything is timed: pinned threads could not move
    away from a core that something else is using, which the other contenders' threads can."""

    def __init__(self, path, threads):
        everything = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(everything)[:threads])
        super().__init__(path, threads)
        tiny = parse("fwd:f32:b1:hq64:hkv64:sq64:skv64:d64")
        t = Tensors.__new__(Tensors)
        for name in "qkvo":
            setattr(t, name, np.zeros(tiny.shape_q, np.float32))
        for _, run, _, free in self.variants(tiny, t):
            run()
            free()
        for task in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(int(task), everything)


class PyTorch:
    """scaled_dot_product_attention, in the ways a user can call it for this problem."""

    def __init__(self, build, threads):
        import torch

        torch.set_num_threads(threads)
        self.torch = torch
        self.version = torch.__version__
        self.guard = torch.inference_mode()
        self.guard.__enter__()

    def variants(self, p, t):
        torch = self.torch
        sdpa = torch.nn.functional.scaled_dot_product_attention
        group = p.hq // p.hkv

        def tensor(array):
            made = torch.from_numpy(array)
            return made.view(torch.bfloat16) if p.dtype == "bf16" else made

        q, k, v = tensor(t.q), tensor(t.k), tensor(t.v)
        result = [None]

        def output():
            made = result[0].reshape(p.shape_q)
            return (made.view(torch.uint16) if p.dtype == "bf16" else made).numpy()

        def plain():
            result[0] = sdpa(q, k, v, is_causal=p.causal, enable_gqa=group > 1)

        def expanded():
            result[0] = sdpa(q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1), is_causal=p.causal)

        # With one row a head, the heads of a group can be the rows of one head, which reads K and V once.
        def grouped():
            result[0] = sdpa(q.view(p.b, p.hkv, group, p.d), k, v)

        def products():
            scores = torch.matmul(q.view(p.b, p.hkv, group, p.d), k.transpose(-1, -2)).mul_(p.d ** -0.5)
            result[0] = torch.matmul(torch.softmax(scores, -1), v)

        def nothing():
            pass

        if group > 1:
            yield "sdpa, enable_gqa", plain, output, nothing
            yield "sdpa, K and V repeated", expanded, output, nothing
        else:
            yield "sdpa", plain, output, nothing
        if p.decode and group > 1:
            yield "sdpa, group as rows", grouped, output, nothing
            yield "matmul, softmax, matmul, group as rows", products, output, nothing


class Ceilings:
    """Not an attention: the limits of the machine, measured in the same rounds."""

    NAMES = ("fma_f32", "dot_bf16", "read")

    def __init__(self, path, threads):
        lib = ctypes.CDLL(path)
        for name in self.NAMES:
            getattr(lib, f"ceiling_{name}").restype = ctypes.c_double
        lib.ceiling_isa_f32.restype = lib.ceiling_isa_bf16.restype = ctypes.c_char_p
        self.isa = {"fma_f32": lib.ceiling_isa_f32().decode(), "dot_bf16": lib.ceiling_isa_bf16().decode()}
        self.version = "avx512f, else avx2, else plain C"
        self.lib = lib
        self.threads = threads

    def measure(self, name, seconds):
        if name == "read":
            return self.lib.ceiling_read(self.threads)
        return getattr(self.lib, f"ceiling_{name}")(self.threads, ctypes.c_double(seconds))


def make(name, build, threads):
    bench = os.path.join(build, "bench")
    if name == "attest":
        return Attest(build, threads)
    if name == "pytorch":
        return PyTorch(build, threads)
    if name == "onednn":
        return OneDNN(os.path.join(bench, "peer_onednn.so"), threads)
    if name == "openblas":
        return SharedObject(os.path.join(bench, "peer_openblas.so"), threads)
    return Ceilings(os.path.join(bench, "ceilings.so"), threads)


def clock(run, calls):
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def fastest(contender, problem, t):
    """Tries every variant and keeps the fastest: (name, run, output, free, seconds)."""
    best = last = None
    for name, run, output, free in contender.variants(problem, t):
        seconds = clock(run, 1)
        # The first call also pays for set-up; a variant that it leaves far behind gets no second one.
        if best is None or seconds < 2 * best[4]:
            seconds = min(clock(run, 1) for _ in range(1 if seconds > 0.3 else 4))
        last = name
        if best is None or seconds < best[4]:
            if best:
                best[3]()
            best = (name, run, output, free, seconds)
        else:
            free()
    if last != best[0]:
        best[1]()  # the output that is checked must be the chosen variant's
    return best


def main():
    name, threads, build = sys.argv[1], int(sys.argv[2]), os.environ["BUILD"]
    # Libraries may print; the pipe is for answers only.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    contender = None
    prepared = {}
    for line in sys.stdin:
        order = json.loads(line)
        answer = {}
        try:
            do = order["do"]
            if do == "hello":
                contender = make(name, build, threads)
                answer = {key: getattr(contender, key) for key in ("version", "build_id", "features", "isa") if hasattr(contender, key)}
            elif do == "prepare":
                problem = parse(order["problem"])
                best = fastest(contender, problem, Tensors(problem, order["inputs"]))
                best[2]().tofile(order["output"])
                prepared[order["problem"]] = best
                answer = {"variant": best[0], "seconds": best[4]}
            elif do == "time":
                run = prepared[order["problem"]][1]
                # One call first that does not count wakes the threads and warms the caches, unless calls are long anyway.
                if order["warm"]:
                    run()
                answer = {"seconds": clock(run, order["calls"])}
            elif do == "measure":
                answer = {"rate": contender.measure(order["name"], order["seconds"])}
            elif do == "release":
                for best in prepared.values():
                    best[3]()
                prepared.clear()
        except Exception as e:  # whatever a library throws is an answer, not the end of the run
            answer = {"error": f"{type(e).__name__}: {e}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
