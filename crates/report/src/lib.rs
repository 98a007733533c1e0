//! What people look at, as pure functions of results: terminal tables, JSON, CSV.
#![forbid(unsafe_code)]

pub mod doctor;
pub mod experiment;
pub mod export;
#[cfg(test)]
mod fixture;
pub mod listing;
pub mod matrix;
mod plot;
mod series;
pub mod touch;
pub mod translation;
pub mod walk;
mod wrap;
