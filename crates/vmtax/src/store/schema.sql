-- Results of vmtax: one row a run, one a trial, and what could not be measured.
-- Times are nanoseconds; what has structure is JSON, in the form of the types of the crate `core`.

CREATE TABLE IF NOT EXISTS runs (
    id       TEXT PRIMARY KEY,
    started  TEXT NOT NULL,              -- UTC, ISO 8601
    version  TEXT NOT NULL,              -- of vmtax
    request  TEXT NOT NULL,              -- what was asked for, with the seed
    host     TEXT NOT NULL,              -- what the host is
    ending   TEXT,                       -- done, interrupted, failed; NULL: it did not live to say
    seconds  REAL
) STRICT;

CREATE TABLE IF NOT EXISTS trials (
    run           TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    block         INTEGER NOT NULL,      -- from 0
    place         INTEGER NOT NULL,      -- in the block's random order, from 0
    venue         TEXT    NOT NULL,      -- native, microvm
    guest         TEXT,                  -- 4k, 2m, 1g; NULL: native
    host          TEXT    NOT NULL,      -- 4k, thp, 2m, 1g
    replica       TEXT    NOT NULL,      -- A, or A' for the baseline's twin
    status        TEXT    NOT NULL,      -- ok, failed
    ns_per_access REAL,                  -- median of the batches
    first_pass_ns REAL,
    trial         TEXT    NOT NULL,      -- all of it: batches, evidence, interference, caveats
    PRIMARY KEY (run, block, place)
) STRICT;

CREATE UNIQUE INDEX IF NOT EXISTS one_trial_a_cell ON trials (run, block, coalesce(guest, ''), host, replica);

CREATE TABLE IF NOT EXISTS unavailable (
    run    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    guest  TEXT,
    host   TEXT NOT NULL,
    reason TEXT NOT NULL,
    remedy TEXT NOT NULL
) STRICT;

-- Runs of plans (`vmtax run`). Names of runs are unique over both tables.
CREATE TABLE IF NOT EXISTS experiments (
    id       TEXT PRIMARY KEY,
    started  TEXT    NOT NULL,           -- UTC, ISO 8601
    version  TEXT    NOT NULL,           -- of vmtax
    name     TEXT    NOT NULL,           -- of the plan: its file, or the built-in study
    plan     TEXT    NOT NULL,           -- TOML, as its author wrote it
    seed     INTEGER NOT NULL,           -- 64 bits, those above 2^63 as negative numbers
    host     TEXT    NOT NULL,           -- what the host is
    ending   TEXT,                       -- done, interrupted, failed; NULL: it did not live to say, or goes on
    seconds  REAL                        -- of all sessions
) STRICT;

CREATE TABLE IF NOT EXISTS experiment_trials (
    run      TEXT    NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
    block    INTEGER NOT NULL,           -- from 0
    place    INTEGER NOT NULL,           -- in the block's random order, from 0
    cell     TEXT    NOT NULL,           -- workload and levels: chase venue=native host=2m, and A' for the baseline's twin
    status   TEXT    NOT NULL,           -- ok, failed
    elapsed  REAL    NOT NULL,           -- seconds into the run when it ended, of all sessions
    outcome  TEXT    NOT NULL,           -- metrics, evidence and caveats, or the reason it failed
    PRIMARY KEY (run, block, place)
) STRICT;

CREATE UNIQUE INDEX IF NOT EXISTS one_experiment_trial_a_cell ON experiment_trials (run, block, cell);

-- The metrics of trials once more, for SQL.
CREATE TABLE IF NOT EXISTS experiment_metrics (
    run      TEXT    NOT NULL,
    block    INTEGER NOT NULL,
    cell     TEXT    NOT NULL,
    metric   TEXT    NOT NULL,
    value    REAL    NOT NULL,
    unit     TEXT    NOT NULL,
    PRIMARY KEY (run, block, cell, metric),
    FOREIGN KEY (run, block, cell) REFERENCES experiment_trials (run, block, cell) ON DELETE CASCADE
) STRICT;

CREATE TABLE IF NOT EXISTS experiment_missing (
    run      TEXT NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
    cell     TEXT NOT NULL,
    reason   TEXT NOT NULL,
    remedy   TEXT NOT NULL
) STRICT;
