//! Figures: charts under one heading, and what their colours stand for.

use super::chart::{Chart, align};

/// Charts under one heading.
#[derive(Debug)]
pub struct Figure {
    /// What is seen, in a sentence.
    pub seen: String,
    pub legend: Vec<Key>,
    pub charts: Vec<Chart>,
}

/// An entry of a legend.
#[derive(Debug)]
pub struct Key {
    pub class: String,
    pub name: String,
}

const CLASSES: usize = 8;

/// The class of the colour of one of several: kernels, locks, causes. From the ninth on colours come again, lighter.
pub fn class(index: usize) -> String {
    let light = if index / CLASSES % 2 == 1 { " light" } else { "" };
    format!("k{}{light}", index % CLASSES)
}

/// An entry of a legend.
pub fn key(class: &str, name: &str) -> Key {
    Key { class: class.to_owned(), name: name.to_owned() }
}

/// Of a chart whose axis only has to hold what is in it.
pub const NO_RANGE: (f64, f64) = (0.0, 0.0);

/// Charts that have something in them, on one scale.
pub fn drawable(mut charts: Vec<Chart>) -> Vec<Chart> {
    charts.retain(|chart| chart.marks_count() > 0);
    align(&mut charts);
    charts
}
