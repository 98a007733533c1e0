#!/usr/bin/env python3
"""Known answers for core::effects, from statsmodels 0.14 or later, NumPy 2 and SciPy 1.10:  python3 effects.py > effects.json

Effects are fitted by statsmodels' OLS in each block, and once more over all blocks with the block as a fixed effect, which
must give the mean of the blocks where all have the same cells. The p-value is found here by bisection: the
largest miss rate whose interval (golden.py's construction, for any rate) still reaches to 0. Holm is statsmodels'.
"""
import itertools
import json

import numpy as np
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests

LEVELS = {"host": ["4k", "2m", "1g"], "order": ["sequential", "random"], "thp": ["always", "madvise", "never"],
          "venue": ["native", "microvm"], "guest": ["4k", "2m"]}


def miss(n, d):
    return 2 * stats.binom.cdf(d - 1, n, 0.5)


def ends(logs, allowed):
    """The interval of the median that misses `allowed` of the time."""
    x, n = np.sort(logs), len(logs)
    if miss(n, 1) > allowed:
        d, weight = 1, -(miss(n, 1) / allowed - 1) * (n - 1) / n
    else:
        d = max(d for d in range(1, n) if miss(n, d) <= allowed)
        share = (allowed - miss(n, d)) / (miss(n, d + 1) - miss(n, d))
        weight = (n - d) * share / (d + (n - 2 * d) * share)
    return x[d - 1] + weight * (x[d] - x[d - 1]), x[n - d] + weight * (x[n - d - 1] - x[n - d])


def p_value(logs):
    lo, hi = 1e-12, 1 - 1e-12
    for _ in range(200):
        middle = (lo + hi) / 2
        low, high = ends(logs, middle)
        lo, hi = (middle, hi) if low <= 0 <= high else (lo, middle)
    return lo


def columns(settings, factors, with_interactions):
    """(name, column) of a model with the first level of each factor as its reference."""
    has = lambda f, l: np.array([float(s.get(f) == l) for s in settings])
    mains = [(f"{f} {l}", has(f, l)) for f in factors for l in LEVELS[f][1:] if has(f, l).any()]
    pairs = []
    for f, g in itertools.combinations(factors, 2):
        nested = not any(s.get(f) == LEVELS[f][0] and g in s for s in settings) or \
            not any(s.get(g) == LEVELS[g][0] and f in s for s in settings)
        for l, m in itertools.product(LEVELS[f][1:], LEVELS[g][1:]):
            column = has(f, l) * has(g, m)
            if not nested and column.any():
                pairs.append((f"{f} {l} with {g} {m}", column))
    return mains + (pairs if with_interactions else []), len(mains)


def per_block(settings, factors, blocks):
    """{term: logarithm in each block}; terms that least squares cannot tell are left out."""
    found = {}
    for with_interactions in (False, True):
        named, mains = columns(settings, factors, with_interactions)
        x = np.column_stack([np.ones(len(settings))] + [c for _, c in named])
        null = np.linalg.svd(x)[2][np.linalg.matrix_rank(x):]
        fits = [sm.OLS(np.log(y), x).fit().params for y in blocks]
        stacked = sm.OLS(np.log(np.concatenate(blocks)),
                         np.column_stack([np.kron(np.eye(len(blocks)), np.ones((len(settings), 1))),
                                          np.tile(x[:, 1:], (len(blocks), 1))])).fit().params
        for i, (name, _) in enumerate(named, 1):
            if (i > mains) != with_interactions or (len(null) and np.abs(null[:, i]).max() > 1e-8):
                continue
            found[name] = [float(fit[i]) for fit in fits]
            assert abs(np.mean(found[name]) - stacked[len(blocks) + i - 1]) < 1e-9, name
    return found


def case(name, factors, settings, blocks):
    logs = per_block(settings, factors, blocks)
    p = {term: p_value(np.array(v)) for term, v in logs.items()} if len(blocks) > 1 else {}
    adjusted = dict(zip(p, multipletests(list(p.values()), method="holm")[1])) if p else {}
    effects = []
    for term, v in logs.items():
        ratios = np.exp(v)
        low, high = np.exp(ends(np.array(v), 0.05)) - 1 if len(blocks) > 1 else (None, None)
        effects.append({"term": term, "change": float(np.median(ratios) - 1), "lo": low, "hi": high,
                        "p": p.get(term), "holm": adjusted.get(term)})
    return {"name": name, "factors": {f: LEVELS[f] for f in factors}, "settings": settings,
            "blocks": [[float(v) for v in block] for block in blocks], "effects": effects}


def measured(settings, law, n, seed):
    dice = np.random.default_rng(seed)
    truth = np.array([law(s) for s in settings])
    return [np.round(100 * np.exp(truth + dice.normal(0, 0.3) + dice.normal(0, 0.02, len(settings))), 4)
            for _ in range(n)]


LEVELS_2X2 = [{"host": h, "guest": g} for h in ("4k", "2m") for g in ("4k", "2m")]
published = np.array([154.73, 173.47, 164.75, 177.50])  # studies/hugepage-2x2: MiB/s, host by guest

full = [dict(zip(("host", "order", "thp"), s)) for s in itertools.product(*(LEVELS[f] for f in ("host", "order", "thp")))]
law = lambda s: (-0.1 * (s["host"] == "2m") - 0.12 * (s["host"] == "1g") + 0.4 * (s["order"] == "random")
                 - 0.05 * (s["host"] == "2m") * (s["order"] == "random") + 0.01 * (s["thp"] == "never"))
gone = [("2m", "random", "never"), ("1g", "sequential", "always"), ("4k", "random", "madvise"), ("1g", "random", "madvise"),
        ("1g", "sequential", "madvise")]
unbalanced = [s for s in full if tuple(s.values()) not in gone]

nested = [{"venue": "native", "host": h} for h in LEVELS["host"]] + \
    [{"venue": "microvm", "host": h, "guest": g} for h in LEVELS["host"] for g in LEVELS["guest"]]
nested_law = lambda s: (0.5 * (s["venue"] == "microvm") - 0.1 * (s["host"] != "4k") - 0.08 * (s.get("guest") == "2m")
                        - 0.15 * (s["host"] != "4k") * (s.get("guest") == "2m"))

LEVELS_SAVED = LEVELS["host"]
LEVELS["host"] = ["4k", "2m"]
cases = [case("hugepage-2x2 as published", ["host", "guest"], LEVELS_2X2, [published])]
LEVELS["host"] = LEVELS_SAVED
cases += [
    case("three factors, balanced", ["host", "order", "thp"], full, measured(full, law, 7, 1)),
    case("three factors, five cells excluded", ["host", "order", "thp"], unbalanced, measured(unbalanced, law, 7, 2)),
    case("guest nested in venue", ["venue", "host", "guest"], nested, measured(nested, nested_law, 8, 3)),
]
print("[" + ",\n".join(json.dumps(c, default=float) for c in cases) + "]")
