//! Which target the next request asks for.

use super::Random;

/// The targets of a run.
#[derive(Debug)]
pub(super) enum Keys {
    /// Each in turn.
    List(Vec<String>),
    /// `{}` in the target becomes a number, low ones oftener than high ones.
    Zipf { before: String, after: String, zipf: Zipf },
}

impl Keys {
    /// The target of request number `turn` (from 0).
    pub(super) fn pick(&self, turn: u64, random: &mut Random) -> String {
        match self {
            Self::List(targets) => {
                let count = u64::try_from(targets.len()).unwrap_or(1).max(1);
                let index = usize::try_from(turn % count).unwrap_or_default();
                targets.get(index).cloned().unwrap_or_default()
            }
            Self::Zipf { before, after, zipf } => format!("{before}{}{after}", zipf.pick(random)),
        }
    }
}

/// Numbers below a count; number k (from 0) comes in proportion to 1 / (k + 1) ^ skew.
#[derive(Debug)]
pub(super) struct Zipf {
    /// For each number, the share of it and those before it.
    shares: Vec<f64>,
}

impl Zipf {
    /// `count` numbers; skew 0 gives each the same share, 0.9 is what web traffic looks like.
    pub(super) fn new(count: u32, skew: f64) -> Self {
        let mut sum = 0.0;
        let mut shares: Vec<f64> = (1..=count)
            .map(|rank| {
                sum += f64::from(rank).powf(-skew);
                sum
            })
            .collect();
        shares.iter_mut().for_each(|share| *share /= sum);
        Self { shares }
    }

    fn pick(&self, random: &mut Random) -> usize {
        let point = random.unit();
        self.shares.partition_point(|&share| share <= point).min(self.shares.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_numbers_come_oftener() {
        let zipf = Zipf::new(100, 1.0);
        let mut random = Random::new(1);
        let mut counts = [0_u32; 100];
        for _ in 0..100_000 {
            counts[zipf.pick(&mut random)] += 1;
        }
        // The harmonic number of 100 is 5.187: the first has 19.3 %, the second half of that.
        assert!((18_500..20_100).contains(&counts[0]), "{}", counts[0]);
        assert!((9_100..10_200).contains(&counts[1]), "{}", counts[1]);
        assert!(counts.iter().all(|&count| count > 0));
    }

    #[test]
    fn a_list_is_taken_in_turn() {
        let keys = Keys::List(vec!["/a".to_owned(), "/b".to_owned()]);
        let mut random = Random::new(1);
        let picked: Vec<_> = (0..3).map(|turn| keys.pick(turn, &mut random)).collect();
        assert_eq!(picked, ["/a", "/b", "/a"]);
    }
}
