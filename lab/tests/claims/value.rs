//! Numbers and how a page shows them.

use concord_lab::report::table::grouped;
use serde::Deserialize;

/// A number of a table, with half the width of its confidence interval where the table has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    pub mean: f64,
    pub half_width: Option<f64>,
}

/// The kind of a number, which decides its scale, its decimals and its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// As it is, two decimals.
    #[default]
    Decimal,
    /// A whole number with its digits in groups.
    Count,
    /// A share in per cent.
    Percent,
    /// A change in per cent, with its sign.
    Change,
    /// Millions of the unit.
    Millions,
    /// Mebibytes of a number of bytes.
    Mebibytes,
}

/// How a page shows a number.
#[derive(Clone, Debug, Default)]
pub struct Show {
    pub kind: Kind,
    /// Instead of the kind's.
    pub decimals: Option<usize>,
    pub has_interval: bool,
}

impl Kind {
    fn scale(self) -> f64 {
        match self {
            Kind::Decimal | Kind::Count => 1.0,
            Kind::Percent | Kind::Change => 100.0,
            Kind::Millions => 1e-6,
            Kind::Mebibytes => 1.0 / 1_048_576.0,
        }
    }

    fn decimals(self) -> usize {
        match self {
            Kind::Count | Kind::Mebibytes => 0,
            Kind::Decimal | Kind::Percent | Kind::Change | Kind::Millions => 2,
        }
    }

    /// What follows the number in prose.
    pub fn unit(self) -> &'static str {
        match self {
            Kind::Percent | Kind::Change => "%",
            Kind::Millions => " million",
            Kind::Mebibytes => " MiB",
            Kind::Decimal | Kind::Count => "",
        }
    }
}

impl Show {
    /// The number without its unit.
    pub fn number(&self, value: Value) -> String {
        let decimals = self.decimals.unwrap_or(self.kind.decimals());
        let mut text = grouped(value.mean * self.kind.scale(), decimals);
        if self.kind == Kind::Change && !text.starts_with('-') {
            text.insert(0, '+');
        }
        if let Some(half_width) = value.half_width.filter(|_| self.has_interval) {
            text.push_str(" ± ");
            text.push_str(&grouped(half_width * self.kind.scale(), decimals));
        }
        text
    }

    /// The mean in the unit that is shown.
    pub fn scaled(&self, value: Value) -> f64 {
        value.mean * self.kind.scale()
    }
}

#[test]
fn numbers_are_shown_by_their_kind() {
    let value = Value { mean: 0.093_64, half_width: Some(0.0273) };
    let show = |kind, has_interval| Show { kind, decimals: None, has_interval }.number(value);
    assert_eq!(show(Kind::Change, true), "+9.36 ± 2.73");
    assert_eq!(show(Kind::Percent, false), "9.36");
    let show = |kind, mean| Show { kind, decimals: None, has_interval: true }.number(Value { mean, half_width: None });
    assert_eq!(show(Kind::Count, 44_812.333), "44,812");
    assert_eq!(show(Kind::Millions, 435_123_456.0), "435.12");
    assert_eq!(show(Kind::Change, -0.000_01), "+0.00");
}
