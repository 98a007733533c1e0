#!/usr/bin/env python3
"""Known answers for core::stats, from NumPy 2 and SciPy 1.10 or later:  python3 golden.py > golden.json

The ends are built here from binomial probabilities of SciPy, and each interval of six values and more is checked to lie
between two order-statistic intervals: SciPy's own (the narrowest that misses seldom enough) and the next one inside it.
"""
import json

import numpy as np
from scipy import stats

CONFIDENCE = 0.95

SAMPLES = {
    "pair": [102.0, 98.0],
    "three": [1.02, 0.99, 1.31],
    "four": [10.0, 12.0, 11.0, 17.0],
    "five": [83.1, 79.9, 80.4, 95.0, 80.2],
    "six": [1.05, 1.07, 1.02, 1.04, 1.11, 0.98],
    "seven with one outlier": [41.2, 40.9, 41.0, 160.5, 41.7, 40.2, 41.1],
    "eight with ties": [5.0, 5.0, 5.0, 5.1, 5.1, 5.2, 5.2, 9.0],
    "ten over four decades": [0.1, 0.2, 0.9, 1.5, 7.0, 11.0, 80.0, 95.0, 300.0, 1200.0],
    "twenty": [12.1, 12.4, 11.9, 12.0, 12.2, 12.8, 11.7, 12.3, 12.5, 12.05,
               11.95, 12.15, 12.6, 14.9, 11.2, 12.35, 12.25, 12.45, 11.85, 12.7],
}


def miss(n, d):
    """Probability that the median lies outside the d-th smallest and the d-th largest of n values."""
    return 2 * stats.binom.cdf(d - 1, n, 0.5)


def end(n):
    """(d, weight): the lower end is this far from the d-th smallest value towards the next."""
    allowed = 1 - CONFIDENCE
    if miss(n, 1) > allowed:
        return 1, -(miss(n, 1) / allowed - 1) * (n - 1) / n
    d = max(d for d in range(1, n) if miss(n, d) <= allowed)
    share = (allowed - miss(n, d)) / (miss(n, d + 1) - miss(n, d))
    return d, (n - d) * share / (d + (n - 2 * d) * share)


def interval(values):
    logs = np.sort(np.log(values))
    n = len(logs)
    d, weight = end(n)
    lo = logs[d - 1] + weight * (logs[d] - logs[d - 1])
    hi = logs[n - d] + weight * (logs[n - d - 1] - logs[n - d])
    lo, hi = np.exp(lo), np.exp(hi)
    if n >= 6:
        outer = stats.quantile_test(values, p=0.5).confidence_interval(CONFIDENCE)
        inner = np.sort(values)[d], np.sort(values)[n - d - 1]
        slack = 1 + 1e-12
        assert outer.low <= lo * slack and lo <= inner[0] * slack, (values, lo)
        assert inner[1] <= hi * slack and hi <= outer.high * slack, (values, hi)
    return lo, hi


def bootstrap_misses(n, runs=400_000):
    """Share of tosses of n coins that the d-th order statistics leave outside: the wild bootstrap, sampled."""
    heads = np.random.default_rng(1).integers(0, 2, (runs, n)).sum(axis=1)
    d, _ = end(n)
    return float(np.mean((heads < d) | (heads > n - d)))


for n in (7, 12, 20):
    assert abs(bootstrap_misses(n) - miss(n, end(n)[0])) < 0.002, n

rows = []
for name, values in SAMPLES.items():
    lo, hi = interval(values)
    rows.append({"name": name, "values": values, "median": float(np.median(values)), "lo": lo, "hi": hi})
ends = [{"n": n, "d": end(n)[0], "weight": end(n)[1]} for n in range(2, 61)]
print("{\"samples\": [")
print(",\n".join("  " + json.dumps(row) for row in rows))
print("], \"ends\": [")
print(",\n".join("  " + json.dumps(row) for row in ends))
print("]}")
