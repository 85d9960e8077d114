//! A rate over a sliding period (HAProxy manual §4.2, `stick-table`): how many events the last period had. Two numbers
//! tell: what the running period has counted, and the share of what the one before it had that still counts.

/// Events by periods. A period begins with the first event behind the end of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// When the running period began, in milliseconds.
    start: u64,
    current: u64,
    previous: u64,
}

impl Rate {
    /// Numbers that a rate is kept in.
    pub const CELLS: usize = 3;

    /// The rate kept in these numbers; none has happened when there are too few.
    pub fn load(cells: &[u64]) -> Self {
        match cells {
            [start, current, previous, ..] => Self { start: *start, current: *current, previous: *previous },
            _ => Self::default(),
        }
    }

    /// Writes the rate down in these numbers.
    pub fn store(self, cells: &mut [u64]) {
        for (cell, value) in cells.iter_mut().zip([self.start, self.current, self.previous]) {
            *cell = value;
        }
    }

    /// Counts `events` that happen `now`; gives the events of the running period, these included. Both times are in
    /// milliseconds.
    pub fn count(&mut self, events: u64, period: u64, now: u64) -> u64 {
        // A clock that was set back makes a new beginning; a little of it happens between threads.
        let is_back = now < self.start.saturating_sub(period);
        if now.saturating_sub(self.start) < period && !is_back {
            self.current = self.current.saturating_add(events);
            return self.current;
        }
        self.previous = self.current;
        self.current = events;
        self.start = self.start.saturating_add(period);
        if is_back || now.saturating_sub(self.start) >= period {
            self.previous = 0;
            self.start = now;
        }
        events
    }

    /// How many events the last period had, rounded down.
    pub fn per_period(&self, period: u64, now: u64) -> u64 {
        let age = now.saturating_sub(self.start);
        let (current, past, remain) = match age {
            _ if age <= period => (self.current, self.previous, period - age),
            _ if age <= period.saturating_mul(2) => (0, self.current, period.saturating_mul(2) - age),
            _ => return 0,
        };
        // One event alone is not faded out, so that rare events do not flicker.
        if current == 0 && past <= 1 {
            return past;
        }
        let total = u128::from(past) * u128::from(remain) + u128::from(current) * u128::from(period);
        u64::try_from(total.checked_div(period.into()).unwrap_or_default()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every event by its time: what the rate is, computed anew from all of them each time.
    fn naive(events: &[(u64, u64)], period: u64, now: u64) -> u64 {
        // The periods: each begins with the first event that the one before it does not hold, or at its end.
        let mut periods: Vec<(u64, u64)> = vec![];
        for &(at, count) in events {
            match periods.last_mut() {
                Some((start, sum)) if at - *start < period => *sum += count,
                Some((start, _)) if at - *start < 2 * period => {
                    let next = *start + period;
                    periods.push((next, count));
                }
                _ => periods.extend([(at.saturating_sub(period), 0), (at, count)]),
            }
        }
        let sum_at = |start: u64| periods.iter().rev().find(|(at, _)| *at == start).map_or(0, |(_, sum)| *sum);
        let Some(&(last, current)) = periods.last() else { return 0 };
        let (start, current) = match now - last {
            age if age <= period => (last, current),
            age if age <= 2 * period => (last + period, 0),
            _ => return 0,
        };
        let past = sum_at(start - period);
        if current == 0 && past <= 1 {
            return past;
        }
        (past * (start + period - now) + current * period) / period
    }

    proptest! {
        #[test]
        fn a_rate_is_what_all_its_events_say(
            steps in prop::collection::vec((0_u64..3000, 1_u64..5), 1..60),
            period in 1_u64..2000,
        ) {
            let (mut rate, mut now, mut events) = (Rate::default(), 10_000_000, vec![]);
            for (step, count) in steps {
                now += step;
                prop_assert_eq!(rate.per_period(period, now), naive(&events, period, now));
                rate.count(count, period, now);
                events.push((now, count));
                prop_assert_eq!(rate.per_period(period, now), naive(&events, period, now));
            }
        }
    }

    #[test]
    fn what_is_past_fades() {
        let mut rate = Rate::default();
        for at in [1_000_000, 1_000_100, 1_000_999] {
            rate.count(4, 1000, at);
        }
        let seen =
            [1_000_999, 1_001_000, 1_001_500, 1_001_999, 1_002_000, 1_002_001].map(|at| rate.per_period(1000, at));
        assert_eq!(seen, [12, 12, 6, 0, 0, 0]);
        assert_eq!(rate.count(2, 1000, 1_001_500), 2);
        assert_eq!(rate.per_period(1000, 1_001_500), 12 / 2 + 2);
    }

    #[test]
    fn one_event_alone_is_seen_for_two_periods() {
        let mut rate = Rate::default();
        rate.count(1, 1000, 5_000_000);
        assert_eq!([5_000_000, 5_001_999, 5_002_000, 5_002_001].map(|at| rate.per_period(1000, at)), [1, 1, 1, 0]);
    }

    #[test]
    fn a_clock_set_back_begins_anew() {
        let mut rate = Rate::default();
        rate.count(9, 1000, 50_000_000);
        assert_eq!(rate.count(1, 1000, 20_000_000), 1);
        assert_eq!(rate.per_period(1000, 20_000_500), 1);
    }
}
