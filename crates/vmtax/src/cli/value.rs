//! Numbers, times and shares as they are typed, and what is said of those that are none.

use std::{num::IntErrorKind, time::Duration};

/// A number of things, of which there must be one.
pub fn count(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(0) => Err("write 1 or more".to_owned()),
        Ok(n) => Ok(n),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err(format!("write {} at most", u32::MAX)),
        Err(_) => Err("write a whole number, such as 1".to_owned()),
    }
}

/// `5%` as a fraction.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    let percent = number.filter(|percent| (0.0..100.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or_else(|| "write per cent from 0 to below 100, such as 5%".to_owned())
}

pub fn cpu(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "write numbers of CPUs, such as 0,2".to_owned())
}

/// JSON readers keep whole numbers exactly only below 2^53 (RFC 8259, 6).
pub fn seed(text: &str) -> Result<u64, String> {
    let seed = text.parse().ok().filter(|&seed: &u64| seed < 1 << 53);
    seed.ok_or_else(|| format!("write a whole number below {}", 1_u64 << 53))
}

/// `60s`, `5m`, `1h`, or seconds alone; more than nothing, and no more than anybody waits.
pub fn duration(text: &str) -> Result<Duration, String> {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let seconds = text.parse::<u64>().map(Duration::from_secs).ok();
    match seconds.or_else(|| humantime::parse_duration(text).ok()) {
        Some(Duration::ZERO) => Err("no time at all; give it some, such as 60s".to_owned()),
        Some(duration) if duration > YEAR => Err("more than a year; write 60s, 5m or 1h".to_owned()),
        Some(duration) => Ok(duration),
        None => Err("not a time; write 60s, 5m or 1h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_seconds_or_has_its_unit() {
        let check = |text, expected: Result<u64, &str>| {
            assert_eq!(duration(text), expected.map(Duration::from_secs).map_err(str::to_owned), "{text}");
        };
        check("60", Ok(60));
        check("60s", Ok(60));
        check("5m", Ok(300));
        check("1h 30m", Ok(5400));
        check("0", Err("no time at all; give it some, such as 60s"));
        check("-1", Err("not a time; write 60s, 5m or 1h"));
        check("18446744073709551615", Err("more than a year; write 60s, 5m or 1h"));
    }
}
