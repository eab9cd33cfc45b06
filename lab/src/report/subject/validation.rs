//! What tests say of each lock or library.

use super::Subject;
use crate::report::group::{Compared, in_order};
use crate::report::programs::Data;
use crate::report::programs::data::Tested;
use crate::report::table::{Cell, Column, Show, Table};

pub struct Validation;

impl Subject<Data<'_>> for Validation {
    fn table(&self, data: &Data) -> Option<Table> {
        if data.tests.is_empty() {
            return None;
        }
        let noun = data.subject_noun();
        let row = |(subject, harts): (&str, u64)| {
            let of: Vec<&Tested> = data
                .tests
                .iter()
                .filter(|tested| (tested.subject.as_str(), tested.harts) == (subject, harts))
                .collect();
            let tests = in_order(of.iter().flat_map(|tested| &tested.verdicts).map(|verdict| verdict.test.as_str()));
            let failed = of.iter().filter(|tested| tested.has_failed).count();
            vec![
                subject.into(),
                harts.into(),
                (of.len() as u64).into(),
                (failed as u64).into(),
                tests.join(" ").into(),
                Cell::Runs(of.iter().map(|tested| tested.link.clone()).collect()),
            ]
        };
        Some(Table {
            name: "validation".to_owned(),
            title: "Validation".to_owned(),
            note: "Every run makes all tests of a program, each run with another seed.".to_owned(),
            columns: vec![
                Column::new(noun, noun, Show::Text),
                Column::new("harts", "harts", Show::Count),
                Column::new("runs_count", "runs", Show::Count),
                Column::new("failed_count", "failed", Show::Count),
                Column::new("tests", "tests", Show::Text),
                data.headings().runs_column(),
            ],
            rows: in_order(data.tests.iter().map(|tested| (tested.subject.as_str(), tested.harts)))
                .into_iter()
                .map(row)
                .collect(),
            group_columns: 0,
            violations: None,
        })
    }
}
