#!/usr/bin/python3
"""Known values for the statistics of the speed gate, computed by SciPy and by formulas written down here from their definitions.

    tests/statistics_values.py > tests/tool/statistics_values.h     writes the header that tests/tool/test_statistics.c includes
    tests/statistics_values.py tests/tool/statistics_values.h       computes the values of that header's samples again and compares
"""
import re
import sys

import numpy as np
from scipy import special, stats

RESAMPLES = 100000
WIDTH_TOLERANCE = 0.01  # of the interval's width: the Monte Carlo error of 100000 resamples is a fifth of that

HEAD = """/*
 * statistics_values.h - samples with the values that SciPy finds for them. Written by tests/statistics_values.py, which can also
 * compute them again: tests/statistics.t does so.
 */
#ifndef STATISTICS_VALUES_H
#define STATISTICS_VALUES_H

/* clang-format off */
"""


def samples():
    """The samples: name and values, of few digits so that they can be written exactly."""
    rng = np.random.default_rng(20)
    normal = rng.normal(0.01, 0.003, 20)
    spiked = normal.copy()
    spiked[7] += 0.04
    yield "twenty normal values", normal
    yield "the same with one spike", spiked
    yield "forty normal values", rng.normal(-0.002, 0.004, 40)
    yield "fifteen skewed values", rng.exponential(0.01, 15)
    yield "thirty skewed values about zero", rng.gamma(0.7, 0.01, 30) - 0.007
    yield "nine values, few for trimming", rng.normal(0, 1, 9)
    yield "large values", rng.normal(1000, 30, 25)


def interval(data, weights):
    """BCa interval of the weighted mean of trimmed means."""

    def statistic(*parts, axis=-1):
        return sum(w * stats.trim_mean(part, 0.2, axis=axis) for w, part in zip(weights, parts))

    found = stats.bootstrap(data, statistic, n_resamples=RESAMPLES, method="BCa", vectorized=True, batch=2000,
                            random_state=np.random.default_rng(1))
    return statistic(*data), found.confidence_interval.low, found.confidence_interval.high


def correction(freedom):
    """Hedges 1981, equation 6e: the factor that makes a standardised mean difference unbiased."""
    return special.gamma(freedom / 2) / (np.sqrt(freedom / 2) * special.gamma((freedom - 1) / 2))


def hedges_g(a, b):
    freedom = len(a) + len(b) - 2
    pooled = np.sqrt(((len(a) - 1) * np.var(a, ddof=1) + (len(b) - 1) * np.var(b, ddof=1)) / freedom)
    return correction(freedom) * (np.mean(a) - np.mean(b)) / pooled


def single_values(x):
    """Estimate, low, high, g_z, MAD."""
    gz = correction(len(x) - 1) * np.mean(x) / np.std(x, ddof=1)
    return (*interval((x,), (1,)), gz, 1.4826 * stats.median_abs_deviation(x))


def pair_values(a, b):
    """Estimate, low and high of the suite of both samples with weights 3 and 1; Hedges' g."""
    return (*interval((a, b), (0.75, 0.25)), hedges_g(a, b))


def write():
    drawn = [(name, np.array([float(f"{value:.6g}") for value in x])) for name, x in samples()]
    print(HEAD)
    print("static const struct known_sample {\n    const char *name;\n    int count;\n    double x[40];\n"
          "    double estimate, low, high, gz, mad;\n} known_samples[] = {")
    for name, x in drawn:
        numbers = ", ".join(f"{value:.12g}" for value in single_values(x))
        print(f'    {{"{name}", {len(x)}, {{{", ".join(f"{value:.6g}" for value in x)}}}, {numbers}}},')
    print("};\n\n/* Two of the samples as strata with weights 3 and 1, and their Hedges' g. */")
    print("static const struct known_pair {\n    int a, b;\n    double estimate, low, high, g;\n} known_pairs[] = {")
    for a, b in ((0, 2), (2, 4), (1, 3)):
        numbers = ", ".join(f"{value:.12g}" for value in pair_values(drawn[a][1], drawn[b][1]))
        print(f"    {{{a}, {b}, {numbers}}},")
    print("};\n\n#endif")


def compare(name, found, recorded):
    """Exact values to nine digits, bounds (the second and third) within the Monte Carlo error."""
    room = WIDTH_TOLERANCE * (recorded[2] - recorded[1])
    good = True
    for i, (here, there) in enumerate(zip(found, recorded)):
        good = good and abs(here - there) <= (room if i in (1, 2) else 1e-9 * max(abs(there), 1e-3))
    print(f"{'same' if good else 'DIFFERENT'}: {name}: computed {found}, recorded {recorded}")
    return good


def check(path):
    with open(path) as stream:
        text = stream.read()
    number = r"[-+.e0-9]+"
    singles, good = [], True
    for name, values, rest in re.findall(rf'\{{"([^"]*)", \d+, \{{([^}}]*)\}}, ((?:{number}, ){{4}}{number})\}},', text):
        x = np.array([float(value) for value in values.split(",")])
        singles.append(x)
        good = compare(name, single_values(x), [float(value) for value in rest.split(",")]) and good
    pairs = re.findall(rf"\{{(\d), (\d), ((?:{number}, ){{3}}{number})\}},", text)
    for a, b, rest in pairs:
        good = compare(f"pair {a}, {b}", pair_values(singles[int(a)], singles[int(b)]), [float(v) for v in rest.split(",")]) and good
    if not singles or not pairs:
        print(f"{path} has no values in it")
    return good and bool(singles) and bool(pairs)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(0 if check(sys.argv[1]) else 1)
    write()
