//! Random programs: the actions of threads as a tree that shrinks well, and as the list of operations that a hart
//! executes.

use concord_htm::Word;
use proptest::collection::vec;
use proptest::prelude::*;

/// Words of memory: two and a half lines, so that threads conflict in words and in lines.
pub const WORDS: Word = 40;
const LINES: u64 = WORDS.div_ceil(16);

/// An action of a thread.
#[derive(Clone, Debug)]
pub enum Action {
    /// Mixes one or two adjoining words into the register.
    Load { word: Word, is_wide: bool },
    /// Writes a mixture of the register and the salt to one or two adjoining words.
    Store { word: Word, is_wide: bool, salt: u8 },
    /// Swaps a mixture of the register and the salt with a word: the machine's AMO.
    Swap { word: Word, salt: u8 },
    /// Adds to a word and drops the old value: an AMO that a transaction may defer.
    Add { word: Word, amount: u8 },
    /// xcas: `hits` chooses the expected value so that it is equal at the first try.
    CompareAndSwap { word: Word, hits: bool, salt: u8 },
    /// xtest, in the same way.
    Test { word: Word, hits: bool },
    /// xbegin, the actions, xend.
    Section(Vec<Action>),
    /// xpush, the actions, xpop. It happens once, since a transaction that conflicts with the one it suspended would do
    /// so for ever.
    Pushed(Vec<Action>),
    /// A trap, the actions of its handler, and the return. It happens once, however many restarts execute it again.
    Trap(Vec<Action>),
    /// xrestart, at its first execution only.
    Restart { code: u8 },
    /// A line leaves the first-level cache of the thread's hart, once.
    Evict { line: u64 },
    /// A device accesses a word, once.
    Device { word: Word, is_write: bool },
    /// The hart's page walker reads a word, and marks it as it does page-table entries.
    Walk { word: Word, marks: bool },
}

#[derive(Clone, Debug)]
pub struct Thread {
    pub priority: u8,
    pub actions: Vec<Action>,
}

#[derive(Clone, Debug)]
pub struct Program {
    pub harts: usize,
    /// There may be more or fewer threads than harts.
    pub threads: Vec<Thread>,
    /// Choices of the next hart and of interruptions: first these, then random numbers from the seed.
    pub choices: Vec<u16>,
    pub seed: u64,
}

/// An operation that a hart executes in one step.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    Load {
        word: Word,
        is_wide: bool,
    },
    Store {
        word: Word,
        is_wide: bool,
        salt: u8,
    },
    Swap {
        word: Word,
        salt: u8,
    },
    Add {
        word: Word,
        amount: u8,
    },
    CompareAndSwap {
        word: Word,
        hits: bool,
        salt: u8,
    },
    Test {
        word: Word,
        hits: bool,
    },
    Begin,
    End,
    /// Continues at `end` if it has happened already; so does a trap.
    Push {
        end: usize,
    },
    Pop,
    Trap {
        end: usize,
    },
    TrapReturn,
    Restart {
        code: u8,
    },
    Evict {
        line: u64,
    },
    Device {
        word: Word,
        is_write: bool,
    },
    Walk {
        word: Word,
        marks: bool,
    },
}

impl Thread {
    pub fn operations(&self) -> Vec<Operation> {
        let mut operations = Vec::new();
        flatten(&self.actions, &mut operations);
        operations
    }
}

/// Makes an action of the actions inside it.
type Outer = fn(Vec<Action>) -> Action;

impl Action {
    /// The actions inside this one, and the function that makes such an action of others.
    fn inner(&self) -> Option<(&[Action], Outer)> {
        match self {
            Action::Section(inner) => Some((inner, Action::Section)),
            Action::Pushed(inner) => Some((inner, Action::Pushed)),
            Action::Trap(inner) => Some((inner, Action::Trap)),
            _ => None,
        }
    }
}

impl Program {
    /// The number of actions, including those inside others.
    pub fn size(&self) -> usize {
        fn count(actions: &[Action]) -> usize {
            actions.iter().map(|action| 1 + action.inner().map_or(0, |(inner, _)| count(inner))).sum()
        }
        self.threads.iter().map(|thread| count(&thread.actions)).sum()
    }

    /// Programs with one thread less, one action less, or one action replaced by those inside it.
    pub fn smaller(&self) -> Vec<Program> {
        let mut programs = Vec::new();
        for (index, thread) in self.threads.iter().enumerate() {
            let mut program = self.clone();
            program.threads.remove(index);
            programs.push(program);
            for actions in smaller(&thread.actions) {
                let mut program = self.clone();
                program.threads[index].actions = actions;
                programs.push(program);
            }
        }
        programs
    }
}

fn smaller(actions: &[Action]) -> Vec<Vec<Action>> {
    let mut lists = Vec::new();
    for (index, action) in actions.iter().enumerate() {
        let mut replace = |with: &[Action]| lists.push([&actions[..index], with, &actions[index + 1..]].concat());
        replace(&[]);
        if let Some((inner, outer)) = action.inner() {
            replace(inner);
            smaller(inner).into_iter().for_each(|inner| replace(&[outer(inner)]));
        }
    }
    lists
}

fn flatten(actions: &[Action], operations: &mut Vec<Operation>) {
    for action in actions {
        let operation = match action {
            Action::Section(inner) => {
                operations.push(Operation::Begin);
                flatten(inner, operations);
                Operation::End
            }
            Action::Pushed(inner) => {
                let start = operations.len();
                operations.push(Operation::Push { end: 0 });
                flatten(inner, operations);
                operations[start] = Operation::Push { end: operations.len() + 1 };
                Operation::Pop
            }
            Action::Trap(inner) => {
                let start = operations.len();
                operations.push(Operation::Trap { end: 0 });
                flatten(inner, operations);
                operations[start] = Operation::Trap { end: operations.len() + 1 };
                Operation::TrapReturn
            }
            Action::Load { word, is_wide } => Operation::Load { word: *word, is_wide: *is_wide },
            Action::Store { word, is_wide, salt } => Operation::Store { word: *word, is_wide: *is_wide, salt: *salt },
            Action::Swap { word, salt } => Operation::Swap { word: *word, salt: *salt },
            Action::Add { word, amount } => Operation::Add { word: *word, amount: *amount },
            Action::CompareAndSwap { word, hits, salt } => {
                Operation::CompareAndSwap { word: *word, hits: *hits, salt: *salt }
            }
            Action::Test { word, hits } => Operation::Test { word: *word, hits: *hits },
            Action::Restart { code } => Operation::Restart { code: *code },
            Action::Evict { line } => Operation::Evict { line: *line },
            Action::Device { word, is_write } => Operation::Device { word: *word, is_write: *is_write },
            Action::Walk { word, marks } => Operation::Walk { word: *word, marks: *marks },
        };
        operations.push(operation);
    }
}

fn access() -> impl Strategy<Value = Action> {
    let word = 0..WORDS;
    prop_oneof![
        6 => (word.clone(), any::<bool>()).prop_map(|(word, is_wide)| Action::Load { word, is_wide }),
        6 => (word.clone(), any::<bool>(), any::<u8>())
            .prop_map(|(word, is_wide, salt)| Action::Store { word, is_wide, salt }),
        2 => (word.clone(), any::<u8>()).prop_map(|(word, salt)| Action::Swap { word, salt }),
        3 => (word.clone(), any::<u8>()).prop_map(|(word, amount)| Action::Add { word, amount }),
        2 => (word.clone(), any::<bool>(), any::<u8>())
            .prop_map(|(word, hits, salt)| Action::CompareAndSwap { word, hits, salt }),
        2 => (word.clone(), any::<bool>()).prop_map(|(word, hits)| Action::Test { word, hits }),
        1 => any::<u8>().prop_map(|code| Action::Restart { code }),
        2 => (0..LINES).prop_map(|line| Action::Evict { line }),
        2 => (word.clone(), any::<bool>()).prop_map(|(word, is_write)| Action::Device { word, is_write }),
        2 => (word, any::<bool>()).prop_map(|(word, marks)| Action::Walk { word, marks }),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    access().prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            4 => vec(inner.clone(), 1..8).prop_map(Action::Section),
            1 => vec(inner.clone(), 1..4).prop_map(Action::Pushed),
            1 => vec(inner, 1..4).prop_map(Action::Trap),
        ]
    })
}

pub fn program() -> impl Strategy<Value = Program> {
    let thread = (0..3u8, vec(action(), 0..8)).prop_map(|(priority, actions)| Thread { priority, actions });
    (2..=8usize, vec(thread, 1..=10), vec(any::<u16>(), 0..64), any::<u64>())
        .prop_map(|(harts, threads, choices, seed)| Program { harts, threads, choices, seed })
}
