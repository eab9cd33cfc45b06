//! Figures: charts with one legend.

use super::chart::{Chart, align};

/// Charts, and what their colours stand for.
#[derive(Debug, Default)]
pub struct Figure {
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

/// The class of the colour of one of several kernels, locks or causes. The ninth and those after it have the first eight's colours,
/// lighter.
pub fn class(index: usize) -> String {
    let light = if index / CLASSES % 2 == 1 { " light" } else { "" };
    format!("k{}{light}", index % CLASSES)
}

/// An entry of a legend.
pub fn key(class: &str, name: &str) -> Key {
    Key { class: class.to_owned(), name: name.to_owned() }
}

/// The charts that have bars, on one vertical axis.
pub fn drawable(mut charts: Vec<Chart>) -> Vec<Chart> {
    charts.retain(|chart| chart.marks_count() > 0);
    align(&mut charts);
    charts
}
