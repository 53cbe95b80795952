#!/usr/bin/env python3
"""Times attest and its peers in turns and writes down everything that was measured. Run it through bench/peers.sh.

For each thread count a process is started for every contender (see contenders.py), and one for the machine's ceilings. For
each problem everybody gets the same inputs, picks its fastest variant, and has its answer compared with float64. Then come
the rounds: in each round everyone gets one turn of about TURN_SECONDS, one after the other, the first one changing from
round to round. Whoever is idle sleeps. Comparisons are made within a round only (see table.py).

Beside the problem itself attest gets two companions, so that these comparisons are made within rounds too: the same problem
in f32 for a 16-bit one, and the same without the mask for a long causal one.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

import table
from answers import TOLERANCE, checked_rows, exact, make_inputs, storage, widen
from cases import DTYPES, parse
from document import document_write

HERE = os.path.dirname(os.path.abspath(__file__))
TURN_SECONDS = 0.06
ROUNDS = 7
# Threads of an OpenMP pool spin for some milliseconds after their work before they sleep. The next turn waits for that.
PAUSE_SECONDS = 0.02
# A contender that is this many times slower than attest, with long calls, takes part in three of the rounds only: nobody needs
# to know a factor of five to a percent, and it keeps the whole run within minutes.
SLOW_FACTOR, SLOW_SECONDS = 2.5, 0.5

# What OpenBLAS calls its kernels for a processor that it does not know, and those that it has for what such a processor can do.
OPENBLAS_PLAIN = "Prescott"
OPENBLAS_CORES = (("avx512_bf16", "Cooperlake"), ("avx512f", "SkylakeX"), ("avx2", "Haswell"))


class Worker:
    """A contender's process. ask() sends one order and waits for the answer."""

    def __init__(self, name, threads, build):
        self.name = name
        self.command = [sys.executable, os.path.join(HERE, "contenders.py"), name, str(threads)]
        self.environment = dict(os.environ, BUILD=build, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), KMP_BLOCKTIME="5")
        libraries = [os.path.join(build, "bench", "lib"), os.path.join(build, "peers-venv", "lib")]
        if name == "onednn":
            self.environment["OCL_ICD_FILENAMES"] = os.path.join(libraries[1], "libintelocl.so")
        if name in ("onednn", "openblas"):
            self.environment["LD_LIBRARY_PATH"] = ":".join(libraries + [os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(":")
        self.begin()

    def begin(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment)

    def ask(self, **order):
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        return json.loads(answer) if answer else {"error": self.ending()}

    def ending(self):
        status = self.process.wait()
        return f"the process was ended by {signal.Signals(-status).name}" if status < 0 else f"the process ended with status {status}"

    def hello(self, features):
        """What the contender is: its version and the like, or why it cannot be had."""
        answer = self.ask(do="hello")
        if self.name == "openblas" and OPENBLAS_PLAIN in answer.get("version", ""):
            fitting = [core for feature, core in OPENBLAS_CORES if feature in features]
            if fitting:
                self.close()
                self.environment["OPENBLAS_CORETYPE"] = fitting[0]
                self.begin()
                answer = self.ask(do="hello")
        return answer

    def revive(self):
        """What one problem did to a library is not the end of it for the others."""
        if self.process.poll() is not None:
            self.begin()
            self.ask(do="hello")

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def companions(problem):
    """The names and problems that attest also runs beside this one."""
    found = {}
    if problem.dtype != "f32":
        found["attest f32"] = problem.with_dtype("f32")
    elif problem.causal and problem.sq >= 2048:
        found["attest full"] = problem.without_mask()
    return found


def ceilings_of(problem):
    if problem.decode:
        return ["read"]
    return ["fma_f32"] + ["dot_bf16"] * (problem.dtype == "bf16")


class Entry:
    """One contender of one cell: a worker and the problem it runs."""

    def __init__(self, worker, problem):
        self.worker = worker
        self.problem = problem
        self.result = {}

    def prepare(self, directory, answers):
        """Sets the contender up and checks its answer. False if it cannot be timed; the result then says why."""
        output = os.path.join(directory, "output")
        answer = self.worker.ask(do="prepare", problem=str(self.problem), inputs=directory, output=output)
        if "error" in answer:
            self.result = {"error": answer["error"]}
            return False
        found = widen(np.fromfile(output, storage(self.problem.dtype)).reshape(self.problem.shape_q), self.problem.dtype)
        # NaN must count as wrong, so the comparison asks for "not within" rather than for "beyond".
        error = float(np.abs(found[:, :, checked_rows(self.problem)] - answers[self.problem]).max())
        self.result = {"variant": answer["variant"], "max_error": error}
        if not error <= TOLERANCE[self.problem.dtype]:
            self.result = {"variant": answer["variant"], "wrong": f"maximum error {error}"}
            return False
        self.call_seconds = answer["seconds"]
        self.calls = max(1, round(TURN_SECONDS / self.call_seconds))
        self.result.update(calls_per_turn=self.calls, seconds=[])
        return True

    def turn(self, takes_part):
        value = None
        if takes_part:
            warm = self.call_seconds < TURN_SECONDS / 2
            answer = self.worker.ask(do="time", problem=str(self.problem), calls=self.calls, warm=warm)
            if "error" in answer:
                self.result["error"] = answer["error"]
            else:
                value = float(f"{answer['seconds']:.6g}")
            time.sleep(PAUSE_SECONDS)
        self.result["seconds"].append(value)


def run_cell(problem, threads, workers, ceilings, rounds, directory, answers):
    """All rounds of one problem: the cell of the JSON file."""
    for worker in workers.values():
        worker.revive()
    entries = {name: Entry(worker, problem) for name, worker in workers.items()}
    for name, other in companions(problem).items():
        entries[name] = Entry(workers["attest"], other)
    ready = [name for name in entries if entries[name].prepare(directory, answers)]
    limits = {name: [] for name in ceilings_of(problem)} if ceilings else {}

    if "attest" in ready:
        pace = entries["attest"].call_seconds
        for round_number in range(rounds):
            turn = round_number % len(ready)
            for name in ready[turn:] + ready[:turn]:
                slow = entries[name].call_seconds > max(SLOW_SECONDS, SLOW_FACTOR * pace)
                entries[name].turn(not slow or round_number in (0, rounds // 2, rounds - 1))
            for name in limits:
                value = ceilings.ask(do="measure", name=name, seconds=TURN_SECONDS).get("rate", 0) / 1e9
                limits[name].append(float(f"{value:.6g}"))
                time.sleep(PAUSE_SECONDS)
    for worker in workers.values():
        worker.ask(do="release")
    return {
        "problem": str(problem),
        "threads": threads,
        "contenders": {name: entry.result for name, entry in entries.items()},
        "ceilings": {name: [x * 1e9 for x in values] for name, values in limits.items()},
    }


def write_inputs(problem, dtypes, directory):
    """Q, K and V of a shape as files, for all its dtypes; the answers are in float64."""
    answers = {}
    for dtype in dtypes:
        p = problem.with_dtype(dtype)
        q, k, v = make_inputs(p)
        for name, array in (("q", q), ("k", k), ("v", v)):
            array.tofile(os.path.join(directory, f"{name}.{dtype}"))
        for each in {p, *companions(p).values()}:
            if each.dtype == dtype:
                answers[each] = exact(each, q, k, v)
    return answers


def describe_machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        info = f.read()
    model = re.search(r"model name\s*: (.*)", info)
    numbers = [re.search(rf"^{key}\s*: (.*)", info, re.M) for key in ("vendor_id", "cpu family", "model", "stepping")]
    flags = re.search(r"flags\s*: (.*)", info)
    wanted = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16")
    compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True) if shutil.which("gcc") else None
    # A hypervisor may hide the product's name; family and model still tell the generation.
    name = model[1].strip() if model else platform.machine()
    return {
        "cpu": name,
        "cpu_id": " ".join(n[1] for n in numbers if n),
        "cores": len(os.sched_getaffinity(0)),
        "features": [flag for flag in wanted if flags and flag in flags[1].split()],
        "kernel": platform.release(),
        "compiler": compiler.stdout.splitlines()[0] if compiler else "none here",
        "python": platform.python_version(),
    }


def busy_seconds():
    """CPU seconds that all programs on this machine have used so far, and those a hypervisor gave to someone else."""
    with open("/proc/stat", encoding="utf-8") as f:
        user, nice, system, _, _, irq, softirq, steal = (int(x) for x in f.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    mine, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime + children.ru_utime + children.ru_stime


def slug(machine):
    words = re.sub(r"\((R|TM)\)|CPU|@.*|Processor", " ", machine["cpu"])
    return re.sub(r"[^a-z0-9]+", "-", f"{words} {machine['cores']} cores".lower()).strip("-")


def read_suite(path):
    with open(path, encoding="utf-8") as f:
        lines = [line.split("#")[0].strip() for line in f]
    return [parse(line) for line in lines if line]


def summarise_ceilings(cells):
    found = {}
    for cell in cells:
        for name, values in cell["ceilings"].items():
            found.setdefault(str(cell["threads"]), {}).setdefault(name, []).extend(values)
    units = {"read": "GB/s", "fma_f32": "GFLOP/s", "dot_bf16": "GFLOP/s"}
    return {
        threads: {
            name: {"median": table.median(values) / 1e9, "best": max(values) / 1e9, "unit": units[name]}
            for name, values in named.items() if values
        }
        for threads, named in found.items()
    }


def main():
    cores = len(os.sched_getaffinity(0))
    options = argparse.ArgumentParser(prog="bench/peers.sh", description="attest and its peers, timed in turns")
    options.add_argument("--quick", action="store_true", help="three rounds of the small shapes: does everything work?")
    options.add_argument("--suite", default=os.path.join(HERE, "shapes.txt"), help="problem strings, one a line")
    options.add_argument("--dtypes", default=",".join(DTYPES), help="each problem is run in these")
    options.add_argument("--threads", default=f"1,{cores}" if cores > 1 else "1", help="thread counts, such as 1,2")
    options.add_argument("--rounds", type=int, help=f"default {ROUNDS}")
    options.add_argument("--out", help="the JSON file; default bench/results/CPU.json, with --quick none")
    arguments = options.parse_args()
    build = os.path.abspath(os.environ.get("BUILD", "build"))
    if not os.path.exists(os.path.join(build, "libattest.so")):
        sys.exit(f"bench/peers.sh: there is no {build}/libattest.so; run make first")

    problems = read_suite(arguments.suite)
    if arguments.quick:
        problems = [p for p in problems if max(p.flops, p.kv_bytes * 10) < 5e9]
    dtypes = arguments.dtypes.split(",")
    rounds = arguments.rounds or (3 if arguments.quick else ROUNDS)
    machine = describe_machine()
    document = {
        "schema": 1,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "machine": machine,
        "settings": {"rounds": rounds, "turn_seconds": TURN_SECONDS, "pause_seconds": PAUSE_SECONDS},
        "versions": {},
        "unavailable": {},
        "cells": [],
    }
    started = time.time()
    others = busy_seconds() - own_seconds()
    shared_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    for threads in sorted({int(n) for n in arguments.threads.split(",")}):
        workers = {}
        for name in ("attest",) + table.PEERS + ("ceilings",):
            worker = Worker(name, threads, build)
            answer = worker.hello(machine["features"])
            if "error" in answer:
                reason = answer["error"].replace(build + os.sep, "build/").replace(os.getcwd() + os.sep, "")  # where things lie is nobody's business
                document["unavailable"][name] = reason
                print(f"skipped: {name}: {reason}", file=sys.stderr)
                worker.close()
                continue
            document["versions"][name] = answer
            workers[name] = worker
        if "attest" not in workers:
            sys.exit(f"bench/peers.sh: attest cannot be used: {document['unavailable']['attest']}")
        ceilings = workers.pop("ceilings", None)

        for problem in problems:
            with tempfile.TemporaryDirectory(dir=shared_memory) as directory:
                answers = write_inputs(problem, set(dtypes) | {"f32"}, directory)
                for dtype in dtypes:
                    cell = run_cell(problem.with_dtype(dtype), threads, workers, ceilings, rounds, directory, answers)
                    document["cells"].append(cell)
                    print(f"{time.time() - started:4.0f} s  " + "  ".join(table.row(cell)), file=sys.stderr, flush=True)
                    for name, result in cell["contenders"].items():
                        if "wrong" in result or ("error" in result and name != "openblas"):
                            print(f"        {name}: {result.get('wrong') or result.get('error')}", file=sys.stderr, flush=True)
        for worker in [*workers.values(), *([ceilings] if ceilings else [])]:
            worker.close()

    # The workers have been waited for, so that their time is in own_seconds() by now.
    machine["others_cores"] = max(0.0, (busy_seconds() - own_seconds() - others) / (time.time() - started))

    # Rows of a shape together, full numbers of threads after one.
    order = {str(p): i for i, p in enumerate(problems)}
    document["cells"].sort(key=lambda c: (order[str(parse(c["problem"]).with_dtype("f32"))], DTYPES.index(parse(c["problem"]).dtype), c["threads"]))
    document["ceilings"] = summarise_ceilings(document["cells"])
    table.summarise(document)
    document["seconds"] = round(time.time() - started)
    print(table.text(document))

    out = arguments.out or (None if arguments.quick else os.path.join(HERE, "results", slug(machine) + ".json"))
    if out:
        document_write(document, out)
        print(f"\nwrote {os.path.relpath(out)}")


if __name__ == "__main__":
    main()
