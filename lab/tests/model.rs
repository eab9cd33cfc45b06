//! The model of TxLinux's locks (`linux/model`), walked by Spin in every order of every step; and broken models, which Spin must refute.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../linux/model/cxspinlock.pml");

/// Every transition of the paper's table 3, as an operation finds the lock and as it leaves it, and no other. `free`: nobody is in a
/// section; `transactional`: transactions have the free word in their read sets; `exclusive`: somebody holds it.
const TABLE: [(&str, &str, &str); 25] = [
    // With no transaction active. It waits while the lock is held.
    ("optimistic", "free", "transactional"),
    ("optimistic", "transactional", "transactional"),
    ("optimistic", "exclusive", "exclusive"),
    // In a transaction. It waits, and gives up at last, while the lock is held.
    ("optimistic-nested", "free", "transactional"),
    ("optimistic-nested", "transactional", "transactional"),
    ("optimistic-nested", "exclusive", "exclusive"),
    // With no transaction active: is refused by the contention manager, or makes the transactions restart.
    ("exclusive", "free", "exclusive"),
    ("exclusive", "transactional", "transactional"),
    ("exclusive", "transactional", "exclusive"),
    ("exclusive", "exclusive", "exclusive"),
    // In a transaction, which restarts to become exclusive; the lock is as it was.
    ("exclusive-nested", "free", "free"),
    ("exclusive-nested", "transactional", "transactional"),
    ("exclusive-nested", "exclusive", "exclusive"),
    // Others may be in the section still, or wait for it.
    ("end-transactional", "transactional", "free"),
    ("end-transactional", "transactional", "transactional"),
    ("end-exclusive", "exclusive", "free"),
    ("end-exclusive", "exclusive", "exclusive"),
    ("restart-conflict", "transactional", "free"),
    ("restart-conflict", "transactional", "transactional"),
    ("restart-nontransactional", "transactional", "free"),
    ("restart-nontransactional", "transactional", "transactional"),
    // After too long a wait for an inner lock.
    ("restart-explicit", "transactional", "free"),
    ("restart-explicit", "transactional", "transactional"),
    ("restart-need-exclusive", "transactional", "free"),
    ("restart-need-exclusive", "transactional", "transactional"),
];

/// A model to walk: how many threads run which of the model's programs.
#[derive(Clone, Copy)]
struct Model {
    threads: usize,
    /// Programs of the first thread, which is the one that is interrupted.
    first: &'static [u32],
    /// Programs of each other thread.
    others: &'static [u32],
    /// Programs of an interrupt handler; none: no interrupts.
    handler: &'static [u32],
    /// What is broken on purpose.
    broken: Option<&'static str>,
}

/// What Spin is asked.
#[derive(Clone, Copy)]
enum Question {
    /// Assertions, and states in which nobody can go on.
    Safety,
    /// Whether everybody ends, where no thread is held up for ever.
    Progress,
}

/// Spin's answer.
struct Answer {
    text: String,
    /// The transitions that were walked.
    walked: BTreeSet<(String, String, String)>,
}

impl Model {
    const fn threads(threads: usize, first: &'static [u32], others: &'static [u32]) -> Model {
        Model { threads, first, others, handler: &[], broken: None }
    }

    const fn broken(self, how: &'static str) -> Model {
        Model { broken: Some(how), ..self }
    }

    fn definitions(&self) -> Vec<String> {
        let set = |programs: &[u32]| programs.iter().fold(0_u32, |set, program| set | 1 << program);
        let mut definitions = vec![
            format!("-DTHREADS={}", self.threads),
            format!("-DFIRST={}", set(self.first)),
            format!("-DOTHERS={}", set(self.others)),
            format!("-DHANDLERS={}", u32::from(!self.handler.is_empty())),
            format!("-DHANDLER={}", set(self.handler)),
        ];
        definitions.extend(self.broken.map(|how| format!("-D{how}")));
        definitions
    }

    fn walk(&self, question: Question) -> Answer {
        let folder = tempfile::tempdir().unwrap();
        let run = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).current_dir(folder.path()).output();
            let output =
                output.unwrap_or_else(|error| panic!("{program}: {error}; `concord doctor` says what is missing"));
            let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program} {arguments:?}: {}\n{text}", output.status);
            text
        };
        let definitions = self.definitions();
        let definitions: Vec<&str> = definitions.iter().map(String::as_str).collect();
        run("spin", &[&definitions[..], &["-a", MODEL]].concat());
        let (compile, walk): (&[&str], &[&str]) = match question {
            Question::Safety => (&["-DSAFETY", "-DNOCLAIM"], &["-m1000000"]),
            // Acceptance cycles under weak fairness.
            Question::Progress => (&[], &["-m1000000", "-a", "-f"]),
        };
        // Optimizing takes longer than it saves, unless there is much to walk.
        let level = if self.threads > 2 || self.first.len() * self.others.len() > 50 { "-O2" } else { "-O0" };
        run("gcc", &[compile, &[level, "-DCOLLAPSE", "-o", "pan", "pan.c"]].concat());
        let verifier: PathBuf = folder.path().join("pan");
        Answer::new(run(verifier.to_str().unwrap(), walk))
    }
}

impl Answer {
    fn new(text: String) -> Answer {
        let transition = |line: &str| {
            let mut words = line.strip_prefix("walked: ")?.split(' ').map(str::to_owned);
            Some((words.next()?, words.next()?, words.next()?))
        };
        let walked = text.lines().filter_map(transition).collect();
        Answer { text, walked }
    }

    #[track_caller]
    fn confirmed(self) -> Answer {
        assert!(self.text.contains("errors: 0"), "{}", self.text);
        for incomplete in ["Search not completed", "max search depth too small", "out of memory"] {
            assert!(!self.text.contains(incomplete), "{}", self.text);
        }
        let strange: Vec<_> = self.walked.difference(&table()).cloned().collect();
        assert!(strange.is_empty(), "not in the table: {strange:?}");
        self
    }

    #[track_caller]
    fn is_refuted(&self, reason: &str) {
        assert!(self.text.contains("errors: 1") && self.text.contains(reason), "{}", self.text);
    }
}

fn table() -> BTreeSet<(String, String, String)> {
    TABLE
        .iter()
        .map(|(operation, before, after)| (operation.to_string(), before.to_string(), after.to_string()))
        .collect()
}

/// Every program but those that are about interrupts or take locks in another order.
const PROGRAMS: &[u32] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 17];
/// One section: optimistic, exclusive with output, optimistic with output, trylock.
const SINGLE: &[u32] = &[0, 1, 2, 3];
/// Optimistic and exclusive, of either lock.
const MIXED: &[u32] = &[0, 1, 10, 11];
const NESTED: &[u32] = &[4, 5, 6, 7, 8, 9];
/// Sections with interrupts off, and sections that the handler has nothing to do with.
const INTERRUPTIBLE: &[u32] = &[10, 11, 14, 15, 16];
/// Locks of either kind, among them one that a transaction subscribes to without a section of its own.
const RAW: &[u32] = &[0, 18, 19];
/// What takes two locks one after the other in a transaction, and what holds the second when it wants the first.
const CROSSED: &[u32] = &[12, 13];

#[test]
fn two_threads_walk_the_whole_table() {
    let answer = Model::threads(2, PROGRAMS, PROGRAMS).walk(Question::Safety).confirmed();
    let missing: Vec<_> = table().difference(&answer.walked).cloned().collect();
    // A third thread has to be in the section that a lock's new holder empties only in part.
    let elsewhere = [("restart-nontransactional", "transactional", "transactional")];
    let elsewhere: Vec<_> = elsewhere.iter().map(|(o, b, a)| (o.to_string(), b.to_string(), a.to_string())).collect();
    assert_eq!(missing, elsewhere);
}

#[test]
fn three_threads_in_one_section_are_right() {
    let answer = Model::threads(3, SINGLE, SINGLE).walk(Question::Safety).confirmed();
    let partly = ("restart-nontransactional", "transactional", "transactional");
    assert!(answer.walked.iter().any(|(o, b, a)| (o.as_str(), b.as_str(), a.as_str()) == partly), "{}", answer.text);
}

#[test]
fn three_threads_with_nested_sections_are_right() {
    Model::threads(3, NESTED, MIXED).walk(Question::Safety).confirmed();
}

#[test]
fn interrupt_handlers_use_the_locks_of_what_they_interrupt() {
    let model = Model { handler: &[0, 1], ..Model::threads(2, INTERRUPTIBLE, INTERRUPTIBLE) };
    model.walk(Question::Safety).confirmed();
}

#[test]
fn raw_locks_are_safe_in_transactions() {
    Model::threads(2, RAW, RAW).walk(Question::Safety).confirmed();
    Model::threads(3, &[18], RAW).walk(Question::Safety).confirmed();
    Model::threads(2, RAW, RAW).walk(Question::Progress).confirmed();
}

#[test]
fn every_section_ends() {
    Model::threads(2, PROGRAMS, PROGRAMS).walk(Question::Progress).confirmed();
    Model { handler: &[0, 1], ..Model::threads(2, &[14, 16], &[15]) }.walk(Question::Progress).confirmed();
}

/// The paper (section 5.3) leaves this deadlock to programmers: flat nesting holds on to a lock that was let go. Bounded waits solve it.
#[test]
fn bounded_waits_undo_the_deadlock_of_flat_nesting() {
    let crossed = Model::threads(2, CROSSED, CROSSED);
    crossed.walk(Question::Safety).confirmed();
    crossed.walk(Question::Progress).confirmed();
    crossed.broken("UNBOUNDED_WAIT").walk(Question::Progress).is_refuted("acceptance cycle");
}

#[test]
fn a_section_that_commits_before_its_body_loses_updates() {
    let model = Model::threads(2, &[0], &[0]).broken("END_EARLY");
    model.walk(Question::Safety).is_refuted("assertion violated ((memory[3]==additions[0])");
}

#[test]
fn a_holder_that_does_not_write_the_lock_word_excludes_nobody() {
    let model = Model::threads(2, &[0], &[1]).broken("EXCLUSIVE_WITHOUT_WORD");
    model.walk(Question::Safety).is_refuted("assertion violated");
}

#[test]
fn a_transaction_that_does_not_subscribe_is_not_excluded() {
    let model = Model::threads(2, &[0], &[1]).broken("NO_SUBSCRIPTION");
    model.walk(Question::Safety).is_refuted("assertion violated (((onlooker==self)");
}

#[test]
fn a_holder_with_interrupts_on_waits_for_itself() {
    let model = Model { handler: &[0], ..Model::threads(1, &[15], &[]) };
    model.walk(Question::Safety).confirmed();
    model.broken("INTERRUPTS_STAY_ON").walk(Question::Safety).is_refuted("invalid end state");
}
