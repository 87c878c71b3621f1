//! Owns: the day of a year that a number of days since 1970 is, by the calendar that goes on before and behind it. Does
//! not own: how dates are written.

/// The months, as heads of HTTP and lines of logs name them.
pub const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Year, month and day, both counted from 1. Eras of 400 years are alike, and years begin in March, so that the day
/// that some of them have more stands at their end.
#[must_use]
pub const fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + (month <= 2) as i64, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (days, wanted) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_015, (2000, 2, 28)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_453, (2025, 12, 31)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
            (-719_469, (0, 2, 29)),
        ] {
            assert_eq!(date(days), wanted, "{days}");
        }
        // Each day is the one behind the one before.
        let mut before = date(-1);
        for days in 0..200_000 {
            let (year, month, day) = date(days);
            let follows = match (year - before.0, month - before.1) {
                (0, 0) => day == before.2 + 1,
                (0, 1) | (1, -11) => day == 1 && before.2 >= 28,
                _ => false,
            };
            assert!(follows, "{before:?} {year} {month} {day}");
            before = (year, month, day);
        }
    }
}
