//! Means and changes with their confidence intervals.
//!
//! The runs of one group differ in their seed alone, which perturbs the latency of misses, so they are a sample of the ways in which
//! the same work can go (Alameldeen and Wood, "Variability in Architectural Simulations of Multi-threaded Workloads", HPCA 2003,
//! section 5.1, whose intervals these are). With mean m and standard deviation s of n runs the interval of the mean is
//! m ± t(0.975; n - 1) s / √n.
//!
//! The change against a baseline is c = m / b - 1. Kernels share seeds but no boot, so their runs are independent and not paired.
//! By the delta method the variance of m / b is u + v with u = s²/n / b² and v = m² s_b²/n_b / b⁴; its degrees of freedom are those
//! of Welch ("The generalization of 'Student's' problem when several different population variances are involved", Biometrika
//! 1947, with Satterthwaite's approximation): (u + v)² / (u²/(n-1) + v²/(n_b-1)). Where s/m is a few per cent, as here, what the
//! delta method leaves out is a thousandth of that.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The share of intervals, over many comparisons, that hold what they estimate.
pub const CONFIDENCE: f64 = 0.95;

/// A mean, or a change of means, and how far off it may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    pub mean: f64,
    /// Half the width of the confidence interval; none where a single run says nothing of the spread.
    pub half_width: Option<f64>,
    /// Runs behind it; of a change, those of the changed kernel.
    pub runs: usize,
}

impl Estimate {
    /// The ends of the confidence interval.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.half_width.map(|half_width| (self.mean - half_width, self.mean + half_width))
    }

    /// Whether the interval leaves zero out: a change that is more than the seeds' spread.
    pub fn is_distinct_from_zero(&self) -> bool {
        self.interval().is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }

    /// The same quantity in another unit.
    pub fn scaled(self, factor: f64) -> Estimate {
        let half_width = self.half_width.map(|half_width| half_width * factor.abs());
        Estimate { mean: self.mean * factor, half_width, ..self }
    }
}

/// Mean and squared standard error of a sample.
struct Sample {
    mean: f64,
    /// s² / n; none for a single value.
    error_squared: Option<f64>,
    count: usize,
}

fn sample(values: &[f64]) -> Option<Sample> {
    if values.is_empty() {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error_squared = (values.len() > 1).then(|| squares / (count - 1.0) / count);
    Some(Sample { mean, error_squared, count: values.len() })
}

/// The mean of a sample with its interval; none of an empty one.
pub fn mean(values: &[f64]) -> Option<Estimate> {
    let sample = sample(values)?;
    let half_width = sample.error_squared.map(|error| half_width(error, sample.count as f64 - 1.0));
    Some(Estimate { mean: sample.mean, half_width, runs: sample.count })
}

/// The standard deviation of a sample; none of fewer than two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let sample = sample(values)?;
    Some((sample.error_squared? * sample.count as f64).sqrt())
}

/// By what part of the baseline's mean the values' mean is above it, with its interval. None where either sample is empty or the
/// baseline's mean is zero.
pub fn change(baseline: &[f64], values: &[f64]) -> Option<Estimate> {
    Change::of(baseline, values).map(|change| change.estimate())
}

/// The mean of the changes of several pairs of a baseline and values, each with the same weight. Its interval is of the seeds' spread
/// alone: the pairs are all that there are, and no sample. With the variances e of n changes and their degrees of freedom f, the
/// variance of the mean is Σe / n², with (Σe)² / Σ(e²/f) degrees of freedom (Satterthwaite). None where any pair has no change.
pub fn mean_change(pairs: &[(Vec<f64>, Vec<f64>)]) -> Option<Estimate> {
    let changes = pairs.iter().map(|(baseline, values)| Change::of(baseline, values)).collect::<Option<Vec<_>>>()?;
    if changes.is_empty() {
        return None;
    }
    let count = changes.len() as f64;
    let error = changes.iter().map(|change| change.error).collect::<Option<Vec<_>>>().map(|errors| {
        let sum: f64 = errors.iter().map(|error| error.squared).sum();
        // A change without spread has no degrees of freedom, and adds nothing to be unsure of.
        let parts =
            errors.iter().filter(|error| error.squared > 0.0).map(|error| error.squared.powi(2) / error.freedom);
        SquaredError { squared: sum / count.powi(2), freedom: sum.powi(2) / parts.sum::<f64>() }
    });
    let mean = changes.iter().map(|change| change.mean).sum::<f64>() / count;
    let runs = changes.iter().map(|change| change.runs).sum();
    Some(Change { mean, error, runs }.estimate())
}

/// The squared standard error of a change, and its degrees of freedom.
#[derive(Clone, Copy)]
struct SquaredError {
    squared: f64,
    freedom: f64,
}

/// A change of means.
struct Change {
    mean: f64,
    /// None where either side is a single run.
    error: Option<SquaredError>,
    runs: usize,
}

impl Change {
    fn estimate(&self) -> Estimate {
        let half_width = self.error.map(|error| half_width(error.squared, error.freedom));
        Estimate { mean: self.mean, half_width, runs: self.runs }
    }

    fn of(baseline: &[f64], values: &[f64]) -> Option<Change> {
        Change::of_samples(&sample(baseline)?, &sample(values)?)
    }

    fn of_samples(base: &Sample, changed: &Sample) -> Option<Change> {
        if base.mean == 0.0 {
            return None;
        }
        let ratio = changed.mean / base.mean;
        let errors = changed.error_squared.zip(base.error_squared);
        let error = errors.map(|(changed_error, base_error)| {
            let u = changed_error / base.mean.powi(2);
            let v = ratio.powi(2) * base_error / base.mean.powi(2);
            let freedom = (u + v).powi(2) / (u * u / (changed.count as f64 - 1.0) + v * v / (base.count as f64 - 1.0));
            SquaredError { squared: u + v, freedom }
        });
        Some(Change { mean: ratio - 1.0, error, runs: changed.count })
    }
}

/// Half the width of the interval of a quantity with this squared standard error.
fn half_width(error_squared: f64, freedom: f64) -> f64 {
    // Runs that do not differ at all leave no degrees of freedom to compute with, and nothing to be unsure of.
    if error_squared == 0.0 { 0.0 } else { quantile(freedom) * error_squared.sqrt() }
}

/// Student's t that the confidence asks for on both sides. Below one degree of freedom, where Welch's approximation cannot come
/// with two runs a side, rounding alone can lead.
fn quantile(freedom: f64) -> f64 {
    let distribution = StudentsT::new(0.0, 1.0, freedom.max(1.0)).expect("a positive scale and freedom");
    distribution.inverse_cdf(0.5 + CONFIDENCE / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-4 * b.abs().max(1e-9)
    }

    /// Quantiles as tables of the distribution have them.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, expected) in [(1.0, 12.7062), (2.0, 4.30265), (4.0, 2.77645), (9.0, 2.26216), (30.0, 2.04227)] {
            assert!(close(quantile(freedom), expected), "{freedom}: {}", quantile(freedom));
        }
    }

    /// NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.5.2: 195 flow meter calibrations with mean 9.261460 and
    /// standard deviation 0.02278881 have the interval 9.258242 to 9.264679. Here two values a standard deviation off the mean
    /// stand for the 195, by the same formula.
    #[test]
    fn a_mean_has_the_interval_of_a_worked_example() {
        let (m, s, n) = (9.261460_f64, 0.02278881_f64, 195.0_f64);
        let half = half_width(s * s / n, n - 1.0);
        assert!((m - half - 9.258242).abs() < 2e-6 && (m + half - 9.264679).abs() < 2e-6, "{half}");
        let estimate = mean(&[10.0, 12.0, 14.0]).unwrap();
        assert!(close(estimate.mean, 12.0) && close(estimate.half_width.unwrap(), 4.30265 * 2.0 / 3.0_f64.sqrt()));
        assert_eq!(estimate.runs, 3);
        assert!(close(deviation(&[10.0, 12.0, 14.0]).unwrap(), 2.0));
    }

    #[test]
    fn a_mean_of_changes_has_the_interval_of_their_seeds() {
        let pairs = [(vec![98.0, 100.0, 102.0], vec![109.0, 110.0, 111.0]), (vec![50.0, 50.0], vec![40.0, 40.0])];
        let [first, second] = pairs.clone().map(|(baseline, values)| change(&baseline, &values).unwrap());
        let both = mean_change(&pairs).unwrap();
        assert!(close(both.mean, (first.mean + second.mean) / 2.0) && close(both.mean, -0.05));
        // The second has no spread, so half of the first's is the mean's, with its degrees of freedom.
        assert!(close(both.half_width.unwrap(), first.half_width.unwrap() / 2.0));
        assert_eq!((both.runs, second.half_width), (5, Some(0.0)));
        let equal = mean_change(&[pairs[0].clone(), pairs[0].clone()]).unwrap();
        let (u, v): (f64, f64) = (1.0 / 3.0 / 1e4, 1.21 * 4.0 / 3.0 / 1e4);
        let freedom = 2.0 * (u + v).powi(2) / (u * u / 2.0 + v * v / 2.0);
        assert!(close(equal.half_width.unwrap(), quantile(freedom) * ((u + v) / 2.0).sqrt()));
        assert_eq!(mean_change(&[]), None);
        assert_eq!(mean_change(&[(vec![1.0], vec![2.0])]).unwrap().half_width, None, "one run says nothing");
        assert_eq!(mean_change(&[pairs[1].clone(), (vec![0.0, 0.0], vec![1.0, 1.0])]), None);
    }

    #[test]
    fn a_change_has_welchs_interval() {
        // u = 1/3 / 10000, v = 1.1² * 4/3 / 10000.
        let estimate = change(&[98.0, 100.0, 102.0], &[109.0, 110.0, 111.0]).unwrap();
        let (u, v): (f64, f64) = (1.0 / 3.0 / 1e4, 1.21 * 4.0 / 3.0 / 1e4);
        let freedom = (u + v).powi(2) / (u * u / 2.0 + v * v / 2.0);
        assert!(close(freedom, 2.79261), "{freedom}");
        assert!(close(estimate.mean, 0.1));
        assert!(close(estimate.half_width.unwrap(), quantile(freedom) * (u + v).sqrt()));
        assert!(estimate.is_distinct_from_zero());
    }

    #[test]
    fn few_values_say_less() {
        assert_eq!((deviation(&[]), deviation(&[3.0]), deviation(&[3.0, 3.0])), (None, None, Some(0.0)));
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[3.0]), Some(Estimate { mean: 3.0, half_width: None, runs: 1 }));
        assert_eq!(change(&[2.0], &[3.0, 3.0]).unwrap().half_width, None);
        assert_eq!(change(&[0.0, 0.0], &[3.0, 3.0]), None);
        assert_eq!(change(&[], &[3.0]), None);
        let same = change(&[5.0, 5.0], &[5.0, 5.0]).unwrap();
        assert_eq!((same.mean, same.half_width), (0.0, Some(0.0)));
        assert!(!same.is_distinct_from_zero());
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_mean_and_scales(values in prop::collection::vec(1.0..1e12, 2..12), factor in 1e-6..1e6) {
            let estimate = mean(&values).unwrap();
            let (low, high) = estimate.interval().unwrap();
            prop_assert!(low <= estimate.mean && estimate.mean <= high);
            let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
            let of_scaled = mean(&scaled).unwrap();
            prop_assert!(close(of_scaled.mean, estimate.scaled(factor).mean));
            // A change does not depend on the unit.
            let base: Vec<f64> = values.iter().rev().map(|value| value * 1.5).collect();
            let scaled_base: Vec<f64> = base.iter().map(|value| value * factor).collect();
            let (a, b) = (change(&base, &values).unwrap(), change(&scaled_base, &scaled).unwrap());
            prop_assert!((a.mean - b.mean).abs() < 1e-9);
            prop_assert!((a.half_width.unwrap() - b.half_width.unwrap()).abs() <= 1e-6 * a.half_width.unwrap().max(1e-9));
        }

        #[test]
        fn any_order_of_two_kernels_agrees_on_the_direction(
            base in prop::collection::vec(1.0..1e9, 2..8), values in prop::collection::vec(1.0..1e9, 2..8)
        ) {
            let (there, back) = (change(&base, &values).unwrap(), change(&values, &base).unwrap());
            prop_assert!((there.mean > 0.0) == (back.mean < 0.0) || there.mean.abs() < 1e-12);
            prop_assert!(there.half_width.unwrap().is_finite() && there.half_width.unwrap() >= 0.0);
        }
    }
}
