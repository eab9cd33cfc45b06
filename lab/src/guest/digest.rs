//! The digest that names a built guest: over every input of its recipe, in order, each with its label and length.

/// The inputs of one recipe.
#[derive(Default)]
pub struct Inputs {
    entries: Vec<(String, Vec<u8>)>,
}

impl Inputs {
    /// Adds an input; `label` says what it is.
    pub fn add(&mut self, label: impl Into<String>, content: impl AsRef<[u8]>) {
        self.entries.push((label.into(), content.as_ref().to_vec()));
    }

    /// The labels, and the content of those inputs that are one short line (versions): what a manifest tells a reader.
    pub fn describe(&self) -> Vec<String> {
        let line = |(label, content): &(String, Vec<u8>)| match std::str::from_utf8(content) {
            Ok(text) if text.len() <= 120 && !text.contains('\n') => format!("{label}: {text}"),
            _ => format!("{label}: blake3 {}", blake3::hash(content).to_hex()),
        };
        self.entries.iter().map(line).collect()
    }

    /// 64 hexadecimal digits. Lengths are hashed too, so that no two different lists of inputs run together into one text.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (label, content) in &self.entries {
            for part in [label.as_bytes(), content.as_slice()] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        hasher.finalize().to_hex().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::Inputs;

    fn inputs(entries: &[(&str, &str)]) -> Inputs {
        let mut inputs = Inputs::default();
        for (label, content) in entries {
            inputs.add(*label, content);
        }
        inputs
    }

    #[test]
    fn the_digest_is_stable_from_one_version_to_the_next() {
        // Changing this value throws away every user's built guests; do so knowingly.
        assert_eq!(inputs(&[("version", "6.12"), ("config", "CONFIG_SMP=y\n")]).digest()[..16], *"ebad70e4fe303f54");
    }

    #[test]
    fn the_digest_tells_inputs_apart() {
        let base = inputs(&[("a", "bc"), ("d", "")]).digest();
        for other in [
            &[("ab", "c"), ("d", "")][..],
            &[("a", "bc")],
            &[("a", "bc"), ("", "d")],
            &[("d", ""), ("a", "bc")],
            &[("a", "bc"), ("d", " ")],
        ] {
            assert_ne!(inputs(other).digest(), base, "{other:?}");
        }
    }

    #[test]
    fn descriptions_show_versions_and_hide_contents() {
        let lines = inputs(&[("version", "6.12"), ("config", "A\nB\n")]).describe();
        assert_eq!(lines[0], "version: 6.12");
        assert!(lines[1].starts_with("config: blake3 "), "{}", lines[1]);
    }
}
