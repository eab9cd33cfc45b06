//! The seal of a run's file: its last member is the digest of every byte before it.
//!
//! The seal finds an edited or damaged file. It is no signature: whoever wants to deceive can compute it anew.

/// What stands before the digest, and what behind it.
const BEFORE: &str = ",\n  \"blake3\": \"";
const BEHIND: &str = "\"\n}\n";
/// The end of an object without a seal.
const END: &str = "\n}\n";

/// The text of a pretty-printed object with one member more: BLAKE3 of what stands before that member.
pub fn sealed(object: &[u8]) -> Vec<u8> {
    let content = object.strip_suffix(END.as_bytes()).expect("a pretty-printed object with members");
    let digest = blake3::hash(content).to_hex();
    [content, BEFORE.as_bytes(), digest.as_bytes(), BEHIND.as_bytes()].concat()
}

/// The object without its seal.
///
/// # Errors
/// Says why the text is not the one that was sealed.
pub fn opened(text: &[u8]) -> Result<Vec<u8>, &'static str> {
    let length = BEFORE.len() + blake3::OUT_LEN * 2 + BEHIND.len();
    let (content, seal) = text.split_at_checked(text.len().saturating_sub(length)).ok_or("it is cut off")?;
    let digest = seal.strip_prefix(BEFORE.as_bytes()).and_then(|rest| rest.strip_suffix(BEHIND.as_bytes()));
    let digest = digest.ok_or("its end, the digest of its content, is missing")?;
    if digest != blake3::hash(content).to_hex().as_bytes() {
        return Err("its content is not the one that its digest was made of");
    }
    Ok([content, END.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_edit_breaks_the_seal() {
        let object = b"{\n  \"cycles\": 17,\n  \"end\": \"powered-off\"\n}\n";
        let text = sealed(object);
        assert_eq!(opened(&text).unwrap(), object);
        serde_json::from_slice::<serde_json::Value>(&text).unwrap();
        for index in 0..text.len() {
            let mut edited = text.clone();
            edited[index] ^= 1;
            assert!(opened(&edited).is_err(), "{index}");
            assert!(opened(&text[..index]).is_err(), "{index}");
        }
        assert!(opened(&[text.as_slice(), b"\n"].concat()).is_err());
        assert!(opened(object).is_err(), "a file without a seal");
    }
}
