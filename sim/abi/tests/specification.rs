//! The tables of `docs/xmetatm.md` agree with `sim/abi`, and its sentences are numbered without a gap.

use concord_abi::htm::*;

fn specification() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/xmetatm.md")).unwrap()
}

/// The cells of each row of the tables, without backquotes.
fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.replace('`', "").trim().to_owned()).collect())
        .collect()
}

/// The rows of the section that begins with one heading and ends before another.
fn rows_of(text: &str, heading: &str, next: &str) -> Vec<Vec<String>> {
    let section = text.split_once(heading).unwrap_or_else(|| panic!("no heading {heading}")).1;
    rows(section.split_once(next).unwrap_or_else(|| panic!("no heading {next}")).0)
}

#[test]
fn each_number_is_given_to_one_sentence() {
    let text = specification();
    let mut numbers: Vec<u32> =
        text.lines().filter_map(|line| line.strip_prefix("- [X-")?.split_once(']')?.0.parse().ok()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>());
    // Every reference names a sentence that exists.
    for reference in text.split("[X-").skip(1) {
        let number: u32 = reference.split_once(']').unwrap().0.parse().unwrap();
        assert!(numbers.binary_search(&number).is_ok(), "X-{number}");
    }
}

#[test]
fn each_numbered_sentence_says_must() {
    for item in specification().split("\n- [X-").skip(1) {
        let item = item.split("\n- ").next().unwrap().split("\n\n").next().unwrap();
        assert!(item.contains("must"), "X-{item}");
    }
}

#[test]
fn encodings_are_those_of_the_encoders() {
    let rows = rows_of(&specification(), "## 4 Encodings", "## 5 ");
    for (control, name) in Control::ALL {
        let (rd, rs1) = (31 * u32::from(control.has_destination()), 31 * u32::from(control.has_source()));
        let row = rows.iter().find(|row| row[0].split(' ').next() == Some(name)).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(word_of(row, 0), control.encode(rd, rs1), "{name}");
    }
    for (width, _) in Width::ALL {
        let row = |name: &str| rows.iter().find(|row| row[0].starts_with(name)).unwrap();
        assert_eq!(word_of(row("xtest"), width as u32), width.encode_test(31, 31, 31));
        assert_eq!(word_of(row("xcas"), width as u32), width.encode_compare_and_swap(31, 31, 31, 31));
    }
}

/// The word that a row of the table of encodings describes, with ones in the fields of its registers.
fn word_of(row: &[String], width: u32) -> u32 {
    let field = |cell: &str| match cell {
        "rd" | "rs1" | "rs2" => 31,
        "rs3, 00" => 31 << 2,
        "width" => width,
        bits => u32::from_str_radix(bits.split(' ').next().unwrap(), 2).unwrap(),
    };
    let fields: Vec<u32> = row[1..].iter().map(|cell| field(cell)).collect();
    let [funct7, rs2, rs1, funct3, rd, opcode] = fields[..] else { panic!("{row:?}") };
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

#[test]
fn registers_are_those_of_the_machine() {
    let rows = rows_of(&specification(), "## 8 CSRs", "## 9 ");
    let written: Vec<(u32, String)> = rows
        .iter()
        .filter_map(|row| Some((u32::from_str_radix(row[0].strip_prefix("0x")?, 16).ok()?, row[1].clone())))
        .collect();
    assert_eq!(written.len(), CSRS.len());
    for (number, name) in CSRS {
        assert!(written.contains(&(number, name.to_owned())), "{name}");
        let row = rows.iter().find(|row| row.get(1).is_some_and(|cell| cell == name)).unwrap();
        assert_eq!(row[2], if number >> 8 & 3 == 1 { "S" } else { "U" }, "{name}");
        assert_eq!(row[3], if number >> 10 == 3 { "RO" } else { "RW" }, "{name}");
    }
    for (bit, name) in [
        (XSTATUS_ACTIVE, "ACTIVE"),
        (XSTATUS_SUSPENDED, "SUSPENDED"),
        (XSTATUS_STALLED, "STALLED"),
        (XSTATUS_OVERFLOWED, "OVERFLOWED"),
        (XSTATUS_DOOMED, "DOOMED"),
    ] {
        assert!(rows.iter().any(|row| row[0] == bit.trailing_zeros().to_string() && row[1] == name), "{name}");
    }
}

#[test]
fn causes_and_answers_are_those_of_the_machine() {
    let text = specification();
    let causes = rows_of(&text, "## 5 Status word", "## 6 ");
    for (cause, name) in Cause::RESTARTS {
        assert!(causes.iter().any(|row| row[0] == (cause as u8).to_string() && row[1] == name), "{name}");
    }
    let answers = rows_of(&text, "### 7.9 xcas", "### 7.10 ");
    for (answer, word) in [
        (CompareAndSwap::Swapped, "swapped"),
        (CompareAndSwap::Differed, "memory differed"),
        (CompareAndSwap::Refused, "refused"),
    ] {
        assert!(answers.iter().any(|row| row[0] == (answer as u8).to_string() && row[1].starts_with(word)), "{word}");
    }
}
