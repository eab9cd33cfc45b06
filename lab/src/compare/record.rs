//! The file of a run: what decides the run, and its result.

use crate::experiment::plan::{Group, Run};
use crate::experiment::store::Identified;
use concord_machine::result::ResultDocument;
use serde::Deserialize;
use serde_json::{Value, json};

/// A run's file.
#[derive(Clone, Debug, Deserialize)]
pub struct RunFile {
    pub id: String,
    pub result: ResultDocument,
}

impl Identified for RunFile {
    fn id(&self) -> &str {
        &self.id
    }
}

impl RunFile {
    /// Why nothing may be concluded from this run; none of a run that did its work.
    pub fn failure(&self) -> Option<String> {
        if self.result.exit_code != 0 {
            return Some(self.result.ending());
        }
        (!self.result.region).then(|| "the workload marked no region of interest".to_owned())
    }

    /// What the file of a run has: its key and its result.
    pub fn content(group: &Group, run: &Run, document: &ResultDocument) -> Value {
        json!({
            "id": run.id,
            "workload": group.workload,
            "kernel": group.kernel,
            "harts": group.harts,
            "seed": run.seed,
            "key": run.key,
            "result": lasting(document),
        })
    }
}

/// A result document without the one field that two equal runs do not share.
pub fn lasting(document: &ResultDocument) -> ResultDocument {
    ResultDocument { host_seconds: None, ..document.clone() }
}
