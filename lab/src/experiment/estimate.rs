//! How long the rest of an experiment will take: the mean times of boots and of runs so far, over the workers.

use std::time::Duration;

/// The kinds of work, which take times of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Boot,
    Run,
}

#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    left_count: usize,
    timed_count: u32,
    time: Duration,
}

impl Kind {
    fn finished(&mut self, took: Option<Duration>) {
        self.left_count = self.left_count.saturating_sub(1);
        if let Some(took) = took {
            self.timed_count += 1;
            self.time += took;
        }
    }

    /// The time of the rest, one after the other; none where none has been timed and some are left.
    fn left(&self) -> Option<Duration> {
        if self.left_count == 0 {
            return Some(Duration::ZERO);
        }
        (self.timed_count > 0).then(|| self.time / self.timed_count * self.left_count as u32)
    }
}

/// The times so far.
#[derive(Debug)]
pub struct Estimator {
    boots: Kind,
    runs: Kind,
    jobs: usize,
}

impl Estimator {
    /// Work that is left, of which `jobs` are done side by side.
    pub fn new(runs_count: usize, boots_count: usize, jobs: usize) -> Estimator {
        let kind = |left_count| Kind { left_count, ..Kind::default() };
        Estimator { boots: kind(boots_count), runs: kind(runs_count), jobs: jobs.max(1) }
    }

    pub fn finished(&mut self, work: Work, took: Option<Duration>) {
        match work {
            Work::Boot => self.boots.finished(took),
            Work::Run => self.runs.finished(took),
        }
    }

    pub fn runs_left(&self) -> usize {
        self.runs.left_count
    }

    /// The time that the rest takes; none before a run has been timed, and when nothing is left.
    pub fn left(&self) -> Option<Duration> {
        if self.runs.left_count == 0 {
            return None;
        }
        let workers = self.jobs.min(self.runs.left_count) as u32;
        Some((self.boots.left()? + self.runs.left()?) / workers)
    }
}

/// A time for people.
pub fn told(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match seconds {
        0 => "less than 1 s".to_owned(),
        1..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {} min", (seconds + 30) / 3600, (seconds + 30) % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn nothing_is_estimated_before_a_run_is_timed() {
        let mut estimator = Estimator::new(6, 2, 2);
        assert_eq!(estimator.left(), None);
        estimator.finished(Work::Boot, Some(10 * SECOND));
        assert_eq!(estimator.left(), None);
        estimator.finished(Work::Run, Some(4 * SECOND));
        // A boot and five runs, by two workers.
        assert_eq!(estimator.left(), Some((10 + 5 * 4) * SECOND / 2));
        // Runs without a boot say nothing of time.
        for _ in 0..3 {
            estimator.finished(Work::Run, None);
        }
        estimator.finished(Work::Boot, Some(10 * SECOND));
        assert_eq!(estimator.left(), Some(2 * 4 * SECOND / 2));
        estimator.finished(Work::Run, Some(4 * SECOND));
        assert_eq!(estimator.left(), Some(4 * SECOND), "one run occupies one worker");
        estimator.finished(Work::Run, Some(4 * SECOND));
        assert_eq!((estimator.left(), estimator.runs_left()), (None, 0));
    }

    #[test]
    fn times_are_told_in_round_numbers() {
        let all = [0.2, 1.4, 119.0, 150.0, 7170.0, 7300.0].map(|seconds| told(Duration::from_secs_f64(seconds)));
        assert_eq!(all, ["less than 1 s", "1 s", "119 s", "3 min", "120 min", "2 h 2 min"]);
    }
}
