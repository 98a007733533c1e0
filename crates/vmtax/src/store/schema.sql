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
