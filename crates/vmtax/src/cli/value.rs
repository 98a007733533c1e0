//! Numbers, times and shares as they are typed, and what is said of those that are none.

use std::{num::IntErrorKind, time::Duration};

use crate::image::build::KEY;

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

/// A package by Debian's rule (Debian Policy, 5.6.1).
pub fn package(text: &str) -> Result<String, String> {
    let is_first = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_name =
        text.len() > 1 && text.starts_with(is_first) && text.chars().all(|c| is_first(c) || "+-.".contains(c));
    is_name.then(|| text.to_owned()).ok_or_else(|| "write names of packages, such as apache2-utils,iperf3".to_owned())
}

/// What an image may be called: shorter than the keys by which images are kept, so that no name is one.
pub fn image_name(text: &str) -> Result<String, String> {
    let is_name = (1..KEY).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let advice = || format!("write letters, digits and -, {} at most", KEY - 1);
    is_name.then(|| text.to_owned()).ok_or_else(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_packages_and_images_are_no_options_and_no_paths() {
        assert_eq!(package("libstdc++6").unwrap(), "libstdc++6");
        assert!(["", "a", "-y", "a/b", "A2", "a b"].iter().all(|text| package(text).is_err()));
        assert_eq!(image_name("with-apache").unwrap(), "with-apache");
        assert!(["", "..", "a/b", "0123456789abcdef"].iter().all(|text| image_name(text).is_err()));
    }

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
