//! Variants: what is compared with each other, such as kernels, locks or libraries. A system has its own; some take definitions.

use super::request::SystemOptions;
use super::{Error, refuse_repeated};
use crate::system::{System, join_names};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A variant under the name that reports give it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    pub name: String,
    /// Words for its command line beside those that every variant gets. `board.KEY=VALUE` sets a key of its runs' board
    /// instead, as do such words of parameters and of the user's.
    pub words: String,
    /// Files of the user's own instead of the system's, by their roles.
    pub files: BTreeMap<String, PathBuf>,
}

/// Longest name of a variant: it stands in tables and file names.
const NAME_MAX: usize = 40;

/// Checks that a name can be part of a file name.
pub(crate) fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    begins_well && name.len() <= NAME_MAX && name.bytes().all(is_allowed)
}

impl Variant {
    /// A variant of a system's own.
    pub fn new(name: &str, words: &str) -> Variant {
        Variant { name: name.to_owned(), words: words.to_owned(), files: BTreeMap::new() }
    }

    /// A definition, `NAME=WORDS`. A word `ROLE=FILE` with a role of the system's definitions names a file of the host; the others
    /// go to the command line.
    ///
    /// # Errors
    /// If the system takes no definitions, the name is no name, or it is that of a variant of the system's own.
    pub fn define(system: &dyn System, options: &SystemOptions, text: &str) -> Result<Variant, Error> {
        let wrong = |why: &str| Error::Request(format!("{} {text:?}: {why}", system.nouns().variant));
        let roles = system.definition_files().ok_or_else(|| wrong("this system takes no definitions"))?;
        let (name, words) = text.split_once('=').ok_or_else(|| wrong("NAME=WORDS is wanted"))?;
        if !is_name(name) {
            return Err(wrong("a name is 1 to 40 letters, digits or any of -_.+, and begins with a letter or digit"));
        }
        if system.variants(options).iter().any(|variant| variant.name == name) {
            return Err(wrong(&format!("this name is taken by a built-in {}", system.nouns().variant)));
        }
        let mut variant = Variant::new(name, "");
        let mut kept = Vec::new();
        for word in words.split_ascii_whitespace() {
            match word.split_once('=') {
                Some((role, path)) if roles.contains(&role) => {
                    variant.files.insert(role.to_owned(), path.into());
                }
                _ => kept.push(word),
            }
        }
        variant.words = kept.join(" ");
        Ok(variant)
    }

    /// The variants of a list of names, in its order, and after them the definitions that it does not name. Without a list they are
    /// those of the system's own that are compared by default.
    ///
    /// # Errors
    /// If a name is neither the system's nor defined, or comes twice.
    pub fn choose(
        system: &dyn System,
        options: &SystemOptions,
        names: Option<&[String]>,
        definitions: &[String],
    ) -> Result<Vec<Variant>, Error> {
        let noun = &system.nouns().variant;
        let own = system.variants(options);
        let defined: Vec<Variant> =
            definitions.iter().map(|text| Variant::define(system, options, text)).collect::<Result<_, _>>()?;
        let unknown = |name: &String| {
            let known = join_names(&own);
            let defines = format!(", and --{noun} NAME=WORDS defines others");
            let others = system.definition_files().map_or("", |_| &defines);
            Error::Request(format!("no {noun} is called {name:?}; there are {known}{others}"))
        };
        let named = |name: &String| {
            let found = defined.iter().chain(&own).find(|variant| variant.name == *name);
            found.cloned().ok_or_else(|| unknown(name))
        };
        let mut chosen = match names {
            Some(names) => names.iter().map(named).collect::<Result<Vec<_>, _>>()?,
            None => system.default_variants(options),
        };
        let is_named = |variant: &&Variant| names.is_some_and(|names| names.contains(&variant.name));
        chosen.extend(defined.iter().filter(|variant| !is_named(variant)).cloned());
        if chosen.is_empty() {
            return Err(Error::Request(format!("no {noun} is named")));
        }
        refuse_repeated(noun, chosen.iter().map(|variant| variant.name.as_str()))?;
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system;

    fn define(text: &str) -> Result<Variant, Error> {
        Variant::define(system::named("linux").unwrap(), &SystemOptions::new(), text)
    }

    fn choose(names: Option<&[String]>, definitions: &[String]) -> Result<Vec<Variant>, Error> {
        Variant::choose(system::named("linux").unwrap(), &SystemOptions::new(), names, definitions)
    }

    fn names(chosen: &[Variant]) -> Vec<&str> {
        chosen.iter().map(|variant| variant.name.as_str()).collect()
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_definition_has_words_and_may_have_files() {
        let kernel = define("no-ipi=cx=on  cx.safe=counter,wake").unwrap();
        assert_eq!((kernel.name.as_str(), kernel.words.as_str()), ("no-ipi", "cx=on cx.safe=counter,wake"));
        assert!(kernel.files.is_empty());
        let kernel = define("mine=image=/a/Image symbols=b/vmlinux quiet").unwrap();
        let files = [("image", "/a/Image"), ("symbols", "b/vmlinux")];
        assert_eq!(kernel.files, files.map(|(role, path)| (role.to_owned(), path.into())).into());
        assert_eq!(kernel.words, "quiet");
        assert_eq!(define("plain=").unwrap().words, "");
    }

    #[test]
    fn a_name_must_serve_as_part_of_a_file_name() {
        let long = format!("{}=x", "a".repeat(41));
        for bad in ["", "cx", "=cx=on", "a/b=cx=on", "..=cx=on", "-a=cx=on", "a b=cx=on", "linux=cx=on", &long] {
            assert!(define(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn kernels_come_in_the_order_of_the_list_and_then_of_the_definitions() {
        let defined = texts(&["b=cx=slab", "a=cx=fs"]);
        let of_list = |list: &[&str]| choose(Some(&texts(list)), &defined);
        assert_eq!(names(&of_list(&["a", "linux"]).unwrap()), ["a", "linux", "b"]);
        assert_eq!(names(&choose(None, &defined).unwrap()), ["linux", "txlinux-ss", "txlinux-cx", "b", "a"]);
        assert!(of_list(&["c"]).unwrap_err().to_string().starts_with("no kernel is called \"c\"; there are linux, "));
        assert_eq!(of_list(&["a", "a"]).unwrap_err().to_string(), "kernel \"a\" is named twice");
        assert!(choose(None, &texts(&["a=x", "a=y"])).is_err());
    }

    #[test]
    fn a_system_without_definitions_takes_none() {
        let locks = system::named("locks").unwrap();
        let options = SystemOptions::new();
        let error = Variant::define(locks, &options, "mine=x").unwrap_err().to_string();
        assert_eq!(error, "lock \"mine=x\": this system takes no definitions");
        let error = Variant::choose(locks, &options, Some(&texts(&["byte", "bite"])), &[]).unwrap_err().to_string();
        assert!(error.starts_with("no lock is called \"bite\"; there are byte, test-and-set, "), "{error}");
        assert!(!error.contains("NAME=WORDS"), "{error}");
    }
}
