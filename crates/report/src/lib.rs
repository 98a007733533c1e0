//! What people look at, as pure functions of results: terminal tables, JSON, CSV.
#![forbid(unsafe_code)]

pub mod bloat;
pub mod doctor;
pub mod experiment;
pub mod export;
#[cfg(test)]
mod fixture;
pub mod listing;
pub mod matrix;
mod os;
mod plot;
pub mod published;
pub mod reserve;
pub mod rights;
mod row;
pub mod touch;
pub mod translation;
pub mod walk;
mod wrap;
