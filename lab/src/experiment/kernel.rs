//! The kernels that are compared: one Image whose command line says what its locks are, or Images of the user's own.

use super::Error;
use std::path::PathBuf;

/// A kernel under the name that reports give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelChoice {
    pub name: String,
    /// What stands on its command line beside what every kernel gets.
    pub words: String,
    /// An Image of the user's own instead of the built guest.
    pub image: Option<PathBuf>,
    /// Names of that Image's functions, where its own are not enough.
    pub symbols: Option<PathBuf>,
}

/// The three conversions: name and words.
const BUILT_IN: [(&str, &str); 3] = [("linux", "cx=off"), ("txlinux-ss", "cx=ss"), ("txlinux-cx", "cx=on")];

/// Longest name of a kernel: it stands in tables and file names.
const NAME_MAX: usize = 40;

impl KernelChoice {
    /// A kernel that needs no definition.
    pub fn built_in(name: &str) -> Option<KernelChoice> {
        let (name, words) = BUILT_IN.into_iter().find(|(known, _)| *known == name)?;
        Some(KernelChoice { name: name.to_owned(), words: words.to_owned(), image: None, symbols: None })
    }

    /// A definition, `NAME=WORDS`. The words `image=FILE` and `symbols=FILE` name files of the host; the others go to the kernel.
    ///
    /// # Errors
    /// If the name is no name, or a built-in kernel's.
    pub fn define(text: &str) -> Result<KernelChoice, Error> {
        let wrong = |why: &str| Error::Request(format!("kernel {text:?}: {why}"));
        let (name, words) = text.split_once('=').ok_or_else(|| wrong("NAME=WORDS is wanted"))?;
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
        let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if !begins_well || name.len() > NAME_MAX || !name.bytes().all(is_allowed) {
            return Err(wrong("a name is 1 to 40 letters, digits or any of -_.+, and begins with a letter or digit"));
        }
        if KernelChoice::built_in(name).is_some() {
            return Err(wrong("this name is taken by a built-in kernel"));
        }
        let mut kernel = KernelChoice { name: name.to_owned(), words: String::new(), image: None, symbols: None };
        let mut kept = Vec::new();
        for word in words.split_ascii_whitespace() {
            if let Some(path) = word.strip_prefix("image=") {
                kernel.image = Some(path.into());
            } else if let Some(path) = word.strip_prefix("symbols=") {
                kernel.symbols = Some(path.into());
            } else {
                kept.push(word);
            }
        }
        kernel.words = kept.join(" ");
        Ok(kernel)
    }

    /// The kernels of a list of names, in its order, and after them the definitions that it does not name. Without a list it is
    /// `linux`, `txlinux-ss` and `txlinux-cx`.
    ///
    /// # Errors
    /// If a name is neither built in nor defined, or comes twice.
    pub fn choose(names: Option<&[String]>, definitions: &[String]) -> Result<Vec<KernelChoice>, Error> {
        let defined = definitions.iter().map(|text| KernelChoice::define(text)).collect::<Result<Vec<_>, _>>()?;
        let mut chosen: Vec<KernelChoice> = Vec::new();
        let built_in = BUILT_IN.map(|(name, _)| name.to_owned());
        for name in names.unwrap_or(&built_in) {
            let of_name = defined.iter().find(|kernel| kernel.name == *name).cloned();
            let kernel = of_name.or_else(|| KernelChoice::built_in(name)).ok_or_else(|| {
                let known = BUILT_IN.map(|(name, _)| name).join(", ");
                Error::Request(format!(
                    "no kernel is called {name:?}; there are {known}, and --kernel NAME=WORDS defines others"
                ))
            })?;
            chosen.push(kernel);
        }
        let unnamed: Vec<KernelChoice> =
            defined.iter().filter(|kernel| !names.is_some_and(|names| names.contains(&kernel.name))).cloned().collect();
        chosen.extend(unnamed);
        if chosen.is_empty() {
            return Err(Error::Request("no kernel is named".to_owned()));
        }
        super::refuse_repeated("kernel", chosen.iter().map(|kernel| kernel.name.as_str()))?;
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(chosen: &[KernelChoice]) -> Vec<&str> {
        chosen.iter().map(|kernel| kernel.name.as_str()).collect()
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_definition_has_words_and_may_have_files() {
        let kernel = KernelChoice::define("no-ipi=cx=on  cx.safe=counter,wake").unwrap();
        assert_eq!((kernel.name.as_str(), kernel.words.as_str()), ("no-ipi", "cx=on cx.safe=counter,wake"));
        assert_eq!((kernel.image, kernel.symbols), (None, None));
        let kernel = KernelChoice::define("mine=image=/a/Image symbols=b/vmlinux quiet").unwrap();
        assert_eq!((kernel.image, kernel.symbols), (Some("/a/Image".into()), Some("b/vmlinux".into())));
        assert_eq!(kernel.words, "quiet");
        assert_eq!(KernelChoice::define("plain=").unwrap().words, "");
    }

    #[test]
    fn a_name_must_serve_as_part_of_a_file_name() {
        let long = format!("{}=x", "a".repeat(41));
        for bad in ["", "cx", "=cx=on", "a/b=cx=on", "..=cx=on", "-a=cx=on", "a b=cx=on", "linux=cx=on", &long] {
            assert!(KernelChoice::define(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn kernels_come_in_the_order_of_the_list_and_then_of_the_definitions() {
        let defined = texts(&["b=cx=slab", "a=cx=fs"]);
        let choose = |list: &[&str]| KernelChoice::choose(Some(&texts(list)), &defined);
        assert_eq!(names(&choose(&["a", "linux"]).unwrap()), ["a", "linux", "b"]);
        assert_eq!(
            names(&KernelChoice::choose(None, &defined).unwrap()),
            ["linux", "txlinux-ss", "txlinux-cx", "b", "a"]
        );
        assert!(choose(&["c"]).unwrap_err().to_string().starts_with("no kernel is called \"c\"; there are linux, "));
        assert_eq!(choose(&["a", "a"]).unwrap_err().to_string(), "kernel \"a\" is named twice");
        assert!(KernelChoice::choose(None, &texts(&["a=x", "a=y"])).is_err());
    }
}
