//! Bar charts as inline SVG: grouped, stacked, with error bars and a word for the pointer on each bar.
//!
//! Drawn here rather than by a plotting crate, because colours, type and dark mode come from the page's style sheet through classes,
//! which such crates' SVG does not carry.

use super::html::escape;
use std::fmt::Write;

/// A bar chart: for each category a bar of each series.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What this one shows, beside others of its figure.
    pub title: String,
    pub x_label: &'static str,
    /// With its unit.
    pub y_label: String,
    pub categories: Vec<Category>,
    /// Values that the vertical axis has at least.
    pub range: (f64, f64),
    /// Whether values are shares in per cent. Their axis goes from 0 to 100 at most, and intervals end there.
    pub is_share: bool,
}

/// Gives charts that are compared with each other the same vertical axis.
pub fn align(charts: &mut [Chart]) {
    let ends: Vec<f64> = charts.iter().flat_map(Chart::ends).collect();
    let range = ends.into_iter().fold((0.0, 0.0), |(low, high): (f64, f64), end| (low.min(end), high.max(end)));
    for chart in charts {
        chart.range = range;
    }
}

/// A place on the horizontal axis.
#[derive(Clone, Debug)]
pub struct Category {
    pub label: String,
    pub bars: Vec<Bar>,
}

/// A bar: segments on top of each other, from the axis on.
#[derive(Clone, Debug)]
pub struct Bar {
    pub segments: Vec<Segment>,
    /// Ends of the interval of the whole bar.
    pub interval: Option<(f64, f64)>,
}

/// A part of a bar.
#[derive(Clone, Debug)]
pub struct Segment {
    pub value: f64,
    /// Classes of the style sheet.
    pub class: String,
    /// What the pointer is told.
    pub hover: String,
}

const PLOT_LEFT: f64 = 62.0;
const PLOT_TOP: f64 = 30.0;
const PLOT_HEIGHT: f64 = 210.0;
const BOTTOM: f64 = 50.0;
const RIGHT: f64 = 12.0;
const PLOT_WIDTH_MIN: f64 = 340.0;
const BAR_WIDTH_MAX: f64 = 34.0;
const BAR_WIDTH_MIN: f64 = 7.0;
/// Room between categories, in bars.
const GAP_BARS: f64 = 1.1;
/// What is zero is drawn this high, so that it is seen to have been measured.
const HEIGHT_MIN: f64 = 1.0;
/// Width of a letter of an axis label, about.
const LETTER_WIDTH: f64 = 6.6;
const TICKS_WANTED: f64 = 5.0;
/// Per cent.
const SHARE_MAX: f64 = 100.0;

/// The vertical axis.
struct Scale {
    low: f64,
    high: f64,
    step: f64,
}

impl Scale {
    /// One with round ticks that holds zero and every value.
    fn new(values: impl Iterator<Item = f64>) -> Scale {
        let (mut low, mut high) = (0.0_f64, 0.0_f64);
        for value in values {
            (low, high) = (low.min(value), high.max(value));
        }
        if high == low {
            high = 1.0;
        }
        let step = round_step((high - low) / TICKS_WANTED);
        Scale { low: (low / step).floor() * step, high: (high / step).ceil() * step, step }
    }

    fn y(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        PLOT_TOP + (self.high - value) / (self.high - self.low) * PLOT_HEIGHT
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let count = ((self.high - self.low) / self.step).round() as i64;
        (0..=count).map(|index| self.low + index as f64 * self.step)
    }

    /// A tick's label, with as many decimals as the step has.
    fn label(&self, tick: f64) -> String {
        let decimals = (-self.step.log10().floor()).max(0.0) as usize;
        super::table::grouped(tick, decimals)
    }
}

/// The least of 1, 2 and 5 times a power of ten that is not below this.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step * 0.999_999).unwrap_or(10.0);
    factor * power
}

impl Chart {
    /// Bars with something in them.
    pub fn marks_count(&self) -> usize {
        self.bars().map(|bar| bar.segments.len()).sum()
    }

    fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.categories.iter().flat_map(|category| &category.bars)
    }

    /// Where bars and their intervals end.
    fn ends(&self) -> impl Iterator<Item = f64> {
        let sums = self.bars().map(|bar| bar.segments.iter().map(|segment| segment.value).sum());
        sums.chain(self.bars().filter_map(|bar| bar.interval).flat_map(|(low, high)| [low, high]))
    }

    fn scale(&self) -> Scale {
        let ends = self.ends().chain([self.range.0, self.range.1]);
        if self.is_share { Scale::new(ends.map(|end| end.clamp(0.0, SHARE_MAX))) } else { Scale::new(ends) }
    }

    /// The chart as an SVG element.
    pub fn svg(&self) -> String {
        let scale = self.scale();
        let in_category = self.categories.iter().map(|category| category.bars.len()).max().unwrap_or(1) as f64;
        let slots = self.categories.len() as f64 * (in_category + GAP_BARS);
        // Long labels need room more than bars do.
        let label = self.categories.iter().map(|category| category.label.chars().count()).max().unwrap_or(0);
        let labels = self.categories.len() as f64 * (label as f64 + 1.5) * LETTER_WIDTH;
        let width = PLOT_WIDTH_MIN.max(slots * BAR_WIDTH_MIN).max(labels);
        let pitch = width / self.categories.len() as f64;
        let bar_width = (pitch / (in_category + GAP_BARS)).min(BAR_WIDTH_MAX);
        let (total_width, total_height) = (PLOT_LEFT + width + RIGHT, PLOT_TOP + PLOT_HEIGHT + BOTTOM);
        let mut svg = String::new();
        let _ = write!(
            svg,
            "<svg class=\"chart\" viewBox=\"0 0 {total_width:.0} {total_height:.0}\" width=\"{total_width:.0}\" \
             height=\"{total_height:.0}\" role=\"img\" aria-label=\"{}\" data-marks=\"{}\">",
            escape(&format!("{}: {}", self.title, self.y_label)),
            self.marks_count(),
        );
        let _ = write!(svg, "<text class=\"chart-title\" x=\"{PLOT_LEFT}\" y=\"16\">{}</text>", escape(&self.title));
        self.axes(&mut svg, &scale, width, pitch);
        for (index, category) in self.categories.iter().enumerate() {
            let used = category.bars.len() as f64 * bar_width;
            let begin = PLOT_LEFT + pitch * index as f64 + (pitch - used) / 2.0;
            for (place, bar) in category.bars.iter().enumerate() {
                draw(&mut svg, bar, &scale, begin + place as f64 * bar_width, bar_width);
            }
        }
        svg.push_str("</svg>");
        svg
    }

    fn axes(&self, svg: &mut String, scale: &Scale, width: f64, pitch: f64) {
        let (right, bottom) = (PLOT_LEFT + width, PLOT_TOP + PLOT_HEIGHT);
        for tick in scale.ticks() {
            let y = scale.y(tick);
            let class = if tick.abs() < scale.step / 2.0 { "zero" } else { "grid" };
            let _ = write!(
                svg,
                "<line class=\"{class}\" x1=\"{PLOT_LEFT}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                PLOT_LEFT - 6.0,
                y + 4.0,
                scale.label(tick),
            );
        }
        for (index, category) in self.categories.iter().enumerate() {
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                PLOT_LEFT + pitch * (index as f64 + 0.5),
                bottom + 18.0,
                escape(&category.label),
            );
        }
        let middle = PLOT_TOP + PLOT_HEIGHT / 2.0;
        let _ = write!(
            svg,
            "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text class=\"axis\" transform=\"translate(14 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            PLOT_LEFT + width / 2.0,
            bottom + 42.0,
            escape(self.x_label),
            escape(&self.y_label),
        );
    }
}

fn draw(svg: &mut String, bar: &Bar, scale: &Scale, left: f64, width: f64) {
    let inset = (width * 0.08).min(1.5);
    let mut base = 0.0;
    for segment in &bar.segments {
        let (from, to) = (scale.y(base), scale.y(base + segment.value));
        let height = (from - to).abs().max(HEIGHT_MIN);
        let top = if segment.value < 0.0 { from } else { from - height };
        let _ = write!(
            svg,
            "<rect class=\"mark {}\" x=\"{:.2}\" y=\"{top:.2}\" width=\"{:.2}\" height=\"{height:.2}\"><title>{}</title></rect>",
            segment.class,
            left + inset,
            width - 2.0 * inset,
            escape(&segment.hover),
        );
        base += segment.value;
    }
    if let Some((low, high)) = bar.interval {
        let (middle, cap) = (left + width / 2.0, (width * 0.2).min(4.0));
        let (top, bottom) = (scale.y(high), scale.y(low));
        let _ = write!(
            svg,
            "<path class=\"error\" d=\"M{middle:.2} {top:.2}V{bottom:.2}M{:.2} {top:.2}H{:.2}M{:.2} {bottom:.2}H{:.2}\"/>",
            middle - cap,
            middle + cap,
            middle - cap,
            middle + cap,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chart(values: &[f64]) -> Chart {
        let segment = |value: &f64| Segment { value: *value, class: "k1".to_owned(), hover: "a <b>".to_owned() };
        let category = |(index, value): (usize, &f64)| Category {
            label: format!("w{index}"),
            bars: vec![Bar { segments: vec![segment(value)], interval: Some((value - 1.0, value + 1.0)) }],
        };
        let categories = values.iter().enumerate().map(category).collect();
        Chart {
            title: "8 harts".to_owned(),
            x_label: "workload",
            y_label: "change (%)".to_owned(),
            categories,
            range: (0.0, 0.0),
            is_share: false,
        }
    }

    #[test]
    fn a_chart_is_drawn_as_recorded() {
        insta::assert_snapshot!(chart(&[-3.0, 0.0, 12.5]).svg().replace("><", ">\n<"));
    }

    /// A hundred per cent is the end of a share, whatever its interval says.
    #[test]
    fn an_axis_of_shares_ends_at_a_hundred() {
        for (values, end) in [(vec![99.5, 20.0], 100.0), (vec![100.000_1], 100.0), (vec![42.0], 50.0)] {
            let scale = Chart { is_share: true, ..chart(&values) }.scale();
            assert_eq!((scale.low, scale.high), (0.0, end), "{values:?}");
        }
        assert_eq!(chart(&[99.5]).scale().high, 150.0, "the interval ends at 100.5");
    }

    #[test]
    fn steps_are_round() {
        for (step, rounded) in [(0.3, 0.5), (1.0, 1.0), (1.1, 2.0), (7.0, 10.0), (0.02, 0.02), (450.0, 500.0)] {
            assert!((round_step(step) - rounded).abs() < 1e-9 * rounded, "{step}: {}", round_step(step));
        }
    }

    proptest! {
        /// Nothing is drawn outside the plot, and the axis has a handful of ticks with zero among them.
        #[test]
        fn every_bar_lies_within_the_axes(values in prop::collection::vec(-1e7..1e7, 1..20)) {
            let chart = chart(&values);
            let scale = chart.scale();
            let ticks: Vec<f64> = scale.ticks().collect();
            prop_assert!((2..=12).contains(&ticks.len()), "{ticks:?}");
            prop_assert!(ticks.iter().any(|tick| tick.abs() < scale.step * 1e-6));
            for value in values {
                for end in [value - 1.0, value, value + 1.0] {
                    let y = scale.y(end);
                    prop_assert!((PLOT_TOP - 0.01..=PLOT_TOP + PLOT_HEIGHT + 0.01).contains(&y));
                }
            }
            prop_assert_eq!(chart.svg().matches("class=\"mark ").count(), chart.marks_count());
        }
    }
}
