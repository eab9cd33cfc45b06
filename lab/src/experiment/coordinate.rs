//! Coordinates: where a cell lies on the axes of its experiment.

use super::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The axes that every experiment has beside those of the case and the variant, which its system names.
pub const HARTS: &str = "harts";
pub const SIZE: &str = "size";
pub const BOARD: &str = "board";

/// Members of a run's file that are no coordinates; no axis may have such a name.
const RESERVED: [&str; 9] = ["id", "seed", "key", "console", "result", "blake3", HARTS, SIZE, BOARD];

/// A value on an axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Flag(bool),
    Number(u64),
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Value::Flag(is_set) => write!(formatter, "{is_set}"),
            Value::Number(number) => write!(formatter, "{number}"),
            Value::Text(text) => write!(formatter, "{text}"),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Value {
        Value::Number(number as u64)
    }
}

/// One axis, and a value on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordinate {
    pub axis: String,
    pub value: Value,
}

impl Coordinate {
    pub fn new(axis: &str, value: impl Into<Value>) -> Coordinate {
        Coordinate { axis: axis.to_owned(), value: value.into() }
    }

    /// A coordinate in the title of a group: `8 harts`, `cx.retries=4`, or the axis alone where the value is a set flag.
    pub fn title(&self) -> String {
        match &self.value {
            Value::Flag(true) => self.axis.clone(),
            Value::Number(number) if self.axis == HARTS => format!("{number} {HARTS}"),
            Value::Text(text) if self.axis == SIZE || self.axis == BOARD => format!("{} {text}", self.axis),
            value => format!("{}={value}", self.axis),
        }
    }
}

/// Coordinates as a run's file has them.
pub type CoordinateMap = BTreeMap<String, Value>;

/// Coordinates by their axes.
pub fn by_axis(coordinates: &[Coordinate]) -> CoordinateMap {
    coordinates.iter().map(|coordinate| (coordinate.axis.clone(), coordinate.value.clone())).collect()
}

/// A word of kernels' or programs' command lines that is an axis: `NAME=VALUE` with each of its values in turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parameter {
    pub name: String,
    pub values: Vec<String>,
}

impl Parameter {
    /// Checks that name and values make words, and that the name is that of no other axis.
    ///
    /// # Errors
    /// Names the parameter and what is wrong with it.
    pub fn check(&self, taken: &[&str]) -> Result<(), Error> {
        let wrong = |why: &str| Err(Error::Request(format!("parameter {:?}: {why}", self.name)));
        let is_broken = |text: &str| text.chars().any(|character| character.is_whitespace() || character.is_control());
        if self.name.is_empty() || self.name.contains('=') || is_broken(&self.name) {
            return wrong("a name is a word without =");
        }
        if RESERVED.contains(&self.name.as_str()) || taken.contains(&self.name.as_str()) {
            return wrong("this name is taken by another axis or member of run files");
        }
        if let Some(value) = self.values.iter().find(|value| is_broken(value)) {
            return wrong(&format!("value {value:?} is not one word"));
        }
        if self.values.is_empty() {
            return wrong("at least one value is wanted");
        }
        super::refuse_repeated(&format!("value of parameter {}", self.name), self.values.iter().map(String::as_str))
    }

    /// Parameters from definitions, `NAME=VALUE`, in the order of their first appearance.
    ///
    /// # Errors
    /// If a definition has no `=`.
    pub fn from_definitions(definitions: &[String]) -> Result<Vec<Parameter>, Error> {
        let mut parameters: Vec<Parameter> = Vec::new();
        for text in definitions {
            let wrong = || Error::Request(format!("parameter {text:?}: NAME=VALUE is wanted"));
            let (name, value) = text.split_once('=').ok_or_else(wrong)?;
            match parameters.iter_mut().find(|parameter| parameter.name == name) {
                Some(parameter) => parameter.values.push(value.to_owned()),
                None => parameters.push(Parameter { name: name.to_owned(), values: vec![value.to_owned()] }),
            }
        }
        Ok(parameters)
    }

    /// Every combination of the values of some parameters; one without coordinates where there are none.
    pub fn combinations(parameters: &[Parameter]) -> Vec<Vec<Coordinate>> {
        let mut all = vec![Vec::new()];
        for parameter in parameters {
            let extended = |start: Vec<Coordinate>| {
                parameter.values.iter().map(move |value| {
                    let mut combination = start.clone();
                    combination.push(Coordinate::new(&parameter.name, value.as_str()));
                    combination
                })
            };
            all = all.into_iter().flat_map(extended).collect();
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn parameters_combine_in_the_order_given() {
        let parameters = Parameter::from_definitions(&texts(&["a=1", "b=x", "a=2"])).unwrap();
        let titles: Vec<String> = Parameter::combinations(&parameters)
            .iter()
            .map(|all| all.iter().map(Coordinate::title).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(titles, ["a=1 b=x", "a=2 b=x"]);
        assert_eq!(Parameter::combinations(&[]), [vec![]]);
    }

    #[test]
    fn a_parameter_that_makes_no_word_is_refused() {
        let refused = |text: &str| {
            let parameters = Parameter::from_definitions(&texts(&[text, text])[..1]).unwrap_or_else(|error| {
                panic!("{text}: {error}");
            });
            parameters[0].check(&["kernel"]).unwrap_err().to_string()
        };
        let lines = [refused("=1"), refused("a b=1"), refused("a=1 2"), refused("seed=1"), refused("kernel=mine")];
        insta::assert_snapshot!(lines.join("\n"), @r#"
        parameter "": a name is a word without =
        parameter "a b": a name is a word without =
        parameter "a": value "1 2" is not one word
        parameter "seed": this name is taken by another axis or member of run files
        parameter "kernel": this name is taken by another axis or member of run files
        "#);
        let repeated = Parameter { name: "a".to_owned(), values: texts(&["1", "1"]) };
        assert_eq!(repeated.check(&[]).unwrap_err().to_string(), "value of parameter a \"1\" is named twice");
        assert!(Parameter { name: "a".to_owned(), values: Vec::new() }.check(&[]).is_err());
        assert!(Parameter::from_definitions(&texts(&["a"])).is_err());
    }
}
