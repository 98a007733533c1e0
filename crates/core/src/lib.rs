//! The thinking part of vmtax: words, layouts, schedules, statistics and sentences.
//!
//! Nothing here reads a file, a clock or a random device: bytes, times and seeds are arguments. That is
//! what makes every table reproducible from a results file.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod arena;
pub mod availability;
pub mod crossover;
pub mod effects;
pub mod evidence;
pub mod experiment;
pub mod explain;
pub mod factor;
pub mod host;
pub mod os;
pub mod plan;
pub mod probe;
pub mod program;
pub mod prose;
pub mod published;
pub mod request;
pub mod reserve;
pub mod rights;
pub mod run;
pub mod schedule;
pub mod setting;
pub mod stats;
pub mod touch;
pub mod translation;
pub mod trial;
pub mod units;
pub mod walk;
