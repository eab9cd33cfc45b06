//! Finds the Debian mirror in the machine's own apt sources (sources.list(5): the one-line style and deb822).
//!
//! A guest is made of packages of its own release, whatever the machine itself runs, from the mirror that its owner chose.

/// One archive of binary packages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Where the archive is.
    pub uri: String,
    /// Its suites, such as `bookworm` and `bookworm-updates`.
    pub suites: Vec<String>,
    /// Its components, such as `main`.
    pub components: Vec<String>,
    /// The keyring that signs it, when the entry names one.
    pub signed_by: Option<String>,
}

/// Reads a file in the one-line style (`sources.list`).
pub fn parse_one_line_style(text: &str) -> Vec<Source> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Source> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let rest = line.strip_prefix("deb")?;
    let rest = rest.strip_prefix(char::is_whitespace)?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?,
        None => ("", rest),
    };
    let signed_by = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by=")).map(str::to_owned);
    let mut words = rest.split_whitespace().map(str::to_owned);
    Some(Source { uri: words.next()?, suites: vec![words.next()?], components: words.collect(), signed_by })
}

/// Reads a file in the deb822 style (`*.sources`): stanzas of fields, a field continued on lines that begin with white space.
pub fn parse_deb822_style(text: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    let mut stanza: Vec<(String, String)> = Vec::new();
    for line in text.lines().chain([""]) {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            sources.extend(stanza_sources(&stanza));
            stanza.clear();
        } else if line.starts_with(char::is_whitespace) {
            if let Some((_, value)) = stanza.last_mut() {
                value.push(' ');
                value.push_str(line.trim());
            }
        } else if let Some((name, value)) = line.split_once(':') {
            stanza.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    sources
}

fn stanza_sources(stanza: &[(String, String)]) -> Vec<Source> {
    let value = |name: &str| stanza.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    let words = |name: &str| value(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let is_off = ["no", "false", "without", "off", "disable"].contains(&value("enabled").to_ascii_lowercase().as_str());
    if is_off || !words("types").iter().any(|kind| kind == "deb") {
        return Vec::new();
    }
    // A key written into the entry itself is a block of text and names no file.
    let signed_by = Some(value("signed-by")).filter(|value| value.starts_with('/')).map(str::to_owned);
    let of_uri =
        |uri| Source { uri, suites: words("suites"), components: words("components"), signed_by: signed_by.clone() };
    words("uris").into_iter().map(of_uri).collect()
}

/// The mirror of Debian's main archive among `sources`, or `None`.
///
/// Other archives use Debian's suite names and `main` too, so at least one more sign is asked for: the update suite of the same
/// release at the same place, Debian's keyring, or a path that ends in `/debian`. The entry with most signs wins, the first among
/// equals. A wrong choice cannot go unseen: what is fetched is verified with Debian's keys.
pub fn debian_mirror(sources: &[Source]) -> Option<String> {
    let signs_count = |source: &Source| -> usize {
        let is_release = |suite: &&String| !suite.contains(['-', '/']);
        let Some(release) = source.suites.iter().find(is_release) else { return 0 };
        let is_fetchable =
            ["http://", "https://", "file:", "copy:", "mirror+"].iter().any(|kind| source.uri.starts_with(kind));
        if !is_fetchable || !source.components.iter().any(|component| component == "main") {
            return 0;
        }
        let updates = format!("{release}-updates");
        let has_updates = sources.iter().any(|other| other.uri == source.uri && other.suites.contains(&updates));
        let has_keyring = source.signed_by.as_deref().is_some_and(|keyring| keyring.contains("debian-archive-"));
        let has_path = source.uri.trim_end_matches('/').ends_with("/debian");
        usize::from(has_updates) + usize::from(has_keyring) + usize::from(has_path)
    };
    let mut best: Option<(usize, &Source)> = None;
    for source in sources {
        let count = signs_count(source);
        if count > best.map_or(0, |(count, _)| count) {
            best = Some((count, source));
        }
    }
    best.map(|(_, source)| source.uri.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(uri: &str, suites: &[&str], components: &[&str], signed_by: Option<&str>) -> Source {
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Source {
            uri: uri.into(),
            suites: own(suites),
            components: own(components),
            signed_by: signed_by.map(str::to_owned),
        }
    }

    #[test]
    fn one_line_style_with_options_and_comments() {
        let text = "# deb http://old.example/debian stretch main\n\
                    deb-src http://mirror.example/debian bookworm main\n\
                    deb [arch=amd64 signed-by=/k/debian-archive-keyring.gpg] http://mirror.example/debian bookworm main contrib # why\n\
                    \tdeb\thttp://other.example/x stable main\n\
                    deb\n\
                    debris http://mirror.example/debian bookworm main\n";
        assert_eq!(
            parse_one_line_style(text),
            [
                source(
                    "http://mirror.example/debian",
                    &["bookworm"],
                    &["main", "contrib"],
                    Some("/k/debian-archive-keyring.gpg")
                ),
                source("http://other.example/x", &["stable"], &["main"], None),
            ]
        );
    }

    #[test]
    fn deb822_style_with_continuations_comments_and_switched_off_stanzas() {
        let text = "Types: deb deb-src\n# a comment inside\nURIs: http://mirror.example/debian\n http://second.example/debian\n\
                    Suites: bookworm\n bookworm-updates\nComponents: main\nSigned-By: /k/debian-archive-keyring.gpg\n\n\n\
                    Types: deb\nURIs: http://off.example/debian\nSuites: bookworm\nComponents: main\nEnabled: no\n\n\
                    types: deb\nuris: http://inline.example/x\nsuites: stable\ncomponents: main\n\
                    signed-by:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQ\n";
        let suites = &["bookworm", "bookworm-updates"];
        let keyring = Some("/k/debian-archive-keyring.gpg");
        assert_eq!(
            parse_deb822_style(text),
            [
                source("http://mirror.example/debian", suites, &["main"], keyring),
                source("http://second.example/debian", suites, &["main"], keyring),
                source("http://inline.example/x", &["stable"], &["main"], None),
            ]
        );
    }

    #[test]
    fn the_mirror_is_told_from_archives_that_use_debians_names() {
        let vendor = source("https://vendor.example/apt", &["bookworm"], &["main"], Some("/k/vendor.gpg"));
        let security = source("http://m.example/debian-security", &["bookworm-security"], &["main"], None);
        let disc = source("cdrom:[Debian]/debian", &["bookworm"], &["main"], None);
        let mirror = source("http://m.example/pub/linux/", &["bookworm"], &["main"], None);
        let updates = source("http://m.example/pub/linux/", &["bookworm-updates"], &["main"], None);
        let foreign = [vendor, security, disc];
        assert_eq!(debian_mirror(&foreign), None);
        let all = [&foreign[..], &[mirror.clone(), updates]].concat();
        assert_eq!(debian_mirror(&all).as_deref(), Some("http://m.example/pub/linux"));
        assert_eq!(debian_mirror(&[mirror]), None, "a release suite alone proves nothing");
    }

    #[test]
    fn more_signs_win_and_the_first_among_equals() {
        let one = source("http://a.example/debian", &["bookworm"], &["main"], None);
        let two = source("http://b.example/debian", &["bookworm", "bookworm-updates"], &["main"], None);
        let three = source("http://c.example/debian", &["bookworm", "bookworm-updates"], &["main"], None);
        assert_eq!(debian_mirror(&[one, two, three]).as_deref(), Some("http://b.example/debian"));
    }
}
