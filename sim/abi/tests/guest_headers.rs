//! Compilers turn the generated headers into the instruction words that `sim/abi` encodes. The tests need GCC and
//! binutils for riscv64; they also use Clang and Rust's riscv64 target if these are installed.

use concord_abi::htm::{CSRS, Control, Width};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Register numbers of the calling convention's first arguments.
const A0: u32 = 10;
const A1: u32 = 11;
const A2: u32 = 12;

const GCC: &[&str] = &["riscv64-linux-gnu-gcc", "-mabi=lp64d"];
const CLANG: &[&str] = &["clang", "--target=riscv64", "-mabi=lp64d"];

const ARCHITECTURE: &str = "-march=rv64gc";

fn include_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/include")
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// GCC, and Clang where it is installed.
fn compilers() -> Vec<&'static [&'static str]> {
    assert!(is_installed(GCC[0]), "{} is missing: concord doctor --install", GCC[0]);
    if is_installed(CLANG[0]) {
        vec![GCC, CLANG]
    } else {
        eprintln!("not tried: clang is not installed");
        vec![GCC]
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles a source and returns its instruction words. `name` separates the files of a test's cases.
fn compile(compiler: &[&str], name: &str, source: &str, options: &[&str]) -> Vec<u32> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let stem = format!("{}-{}", name.split('.').next().unwrap(), compiler[0]);
    let source_file = folder.join(format!("{stem}-{name}"));
    let object = folder.join(format!("{stem}.o"));
    std::fs::write(&source_file, source).unwrap();
    run(Command::new(compiler[0])
        .args(&compiler[1..])
        .args(options)
        .arg("-I")
        .arg(include_folder())
        .arg("-c")
        .arg(&source_file)
        .arg("-o")
        .arg(&object));
    code(&object)
}

/// The 32-bit instructions of an object file, section by section (Rust puts each function into a section of its own).
fn code(object: &Path) -> Vec<u32> {
    let (merged, binary, script) =
        (object.with_extension("merged"), object.with_extension("bin"), object.with_extension("ld"));
    std::fs::write(&script, "SECTIONS { .text 0 : { *(.text .text.*) } }\n").unwrap();
    run(Command::new("riscv64-linux-gnu-ld").arg("-r").arg("-T").arg(&script).arg(object).arg("-o").arg(&merged));
    run(Command::new("riscv64-linux-gnu-objcopy")
        .args(["--output-target=binary", "--only-section=.text"])
        .arg(&merged)
        .arg(&binary));
    let bytes = std::fs::read(binary).unwrap();
    let parcels: Vec<u32> =
        bytes.chunks_exact(2).map(|parcel| u32::from(u16::from_le_bytes([parcel[0], parcel[1]]))).collect();
    let mut words = Vec::new();
    let mut at = 0;
    while at < parcels.len() {
        // A 32-bit instruction has both lowest bits set, a compressed one has not.
        if parcels[at] & 3 == 3 {
            words.push(parcels[at] | parcels[at + 1] << 16);
            at += 1;
        }
        at += 1;
    }
    words
}

/// The words that belong to Xmetatm.
fn of_the_extension(words: &[u32]) -> Vec<u32> {
    words.iter().copied().filter(|word| matches!(word & 0x7f, 0x0b | 0x2b | 0x5b)).collect()
}

fn sorted(mut words: Vec<u32>) -> Vec<u32> {
    words.sort_unstable();
    words
}

#[test]
fn assembler_macros_make_the_words_of_the_encoders() {
    let mut source = String::from("#include \"xmetatm.h\"\n");
    let mut expected = Vec::new();
    for number in [0, 1, A0, 31] {
        for (control, name) in Control::ALL {
            let (operand, word) = match (control.has_destination(), control.has_source()) {
                (true, _) => (format!("x{number}"), control.encode(number, 0)),
                (_, true) => (format!("x{number}"), control.encode(0, number)),
                _ => (String::new(), control.encode(0, 0)),
            };
            let _ = writeln!(source, "\t{name} {operand}");
            expected.push(word);
        }
        // Four different registers, so that swapped operands show.
        let [rd, rs1, rs2, rs3] = [number, (number + 1) % 32, (number + 2) % 32, (number + 3) % 32];
        for (width, suffix) in Width::ALL {
            let _ = writeln!(source, "\txtest_{suffix} x{rd}, x{rs1}, x{rs2}");
            expected.push(width.encode_test(rd, rs1, rs2));
            let _ = writeln!(source, "\txcas_{suffix} x{rd}, x{rs1}, x{rs2}, x{rs3}");
            expected.push(width.encode_compare_and_swap(rd, rs1, rs2, rs3));
        }
    }
    for (number, name) in CSRS {
        let _ = writeln!(source, "\tcsrr a0, CSR_{}", name.to_uppercase());
        expected.push(csr_read_into_a0(number));
    }
    for compiler in compilers() {
        assert_eq!(compile(compiler, "macros.S", &source, &[ARCHITECTURE]), expected, "{compiler:?}");
    }
}

/// `csrr a0, number` (unprivileged specification, Zicsr).
fn csr_read_into_a0(number: u32) -> u32 {
    0x73 | A0 << 7 | 2 << 12 | number << 20
}

/// A C function around each function of the header, and the instruction that it compiles to, with the arguments in
/// their first registers.
fn functions() -> (String, Vec<u32>) {
    let mut source = String::from("#include \"xmetatm.h\"\n");
    let mut expected = Vec::new();
    for (control, name) in Control::ALL {
        let (signature, body, word) = match control {
            Control::Begin | Control::TransactionId => {
                ("unsigned long", format!("void) {{ return {name}(); }}"), control.encode(A0, 0))
            }
            Control::Restart => ("void", format!("unsigned long a) {{ {name}(a); }}"), control.encode(0, A0)),
            _ => ("void", format!("void) {{ {name}(); }}"), control.encode(0, 0)),
        };
        let _ = writeln!(source, "{signature} call_{name}({body}");
        expected.push(word);
    }
    for (width, suffix) in Width::ALL {
        let _ = writeln!(
            source,
            "unsigned long call_xtest_{suffix}(unsigned long *p, unsigned long a) {{ return xtest_{suffix}(p, a); }}\n\
             unsigned long call_xcas_{suffix}(unsigned long *p, unsigned long a, unsigned long b)\n\
             {{ return xcas_{suffix}(p, a, b); }}"
        );
        expected.push(width.encode_test(A0, A0, A1));
        expected.push(width.encode_compare_and_swap(A0, A0, A1, A2));
    }
    (source, expected)
}

/// The word without its register numbers.
fn without_registers(word: &u32) -> u32 {
    const REGISTERS: u32 = 31 << 7 | 31 << 15 | 31 << 20 | 31 << 27;
    // custom-0 and custom-1 have other fields in the position of custom-2's rs3.
    let registers = if word & 0x7f == 0x5b { REGISTERS } else { REGISTERS & !(31 << 27) };
    word & !registers
}

#[test]
fn c_functions_become_the_words_of_the_encoders() {
    let (source, expected) = functions();
    let warnings = ["-ffreestanding", "-Wall", "-Wextra", "-Werror", ARCHITECTURE];
    for compiler in compilers() {
        let strict = [&warnings[..], &["-std=c11", "-pedantic", "-O2"]].concat();
        let words = of_the_extension(&compile(compiler, "functions.c", &source, &strict));
        assert_eq!(sorted(words), sorted(expected.clone()), "{compiler:?} -O2");

        // Without optimization the arguments are in other registers, but the compiler must still inline every call.
        let plain = [&warnings[..], &["-std=c99", "-pedantic", "-O0"]].concat();
        let words = of_the_extension(&compile(compiler, "plain.c", &source, &plain));
        let masked = |words: &[u32]| sorted(words.iter().map(without_registers).collect());
        assert_eq!(masked(&words), masked(&expected), "{compiler:?} -O0");
    }
}

#[test]
fn a_kernel_can_include_the_header() {
    let (source, expected) = functions();
    // The options that Linux uses: GNU C, no standard headers, no floating point.
    let options = ["-std=gnu11", "-O2", "-nostdinc", "-mcmodel=medany", "-fno-strict-aliasing", "-fno-pie", "-Wall"];
    let kernel = [&options[..], &["-Wundef", "-Wdeclaration-after-statement", "-Werror"]].concat();
    for compiler in [&["riscv64-linux-gnu-gcc", "-mabi=lp64", "-march=rv64ima_zicsr"][..]]
        .into_iter()
        .chain(is_installed("clang").then_some(&["clang", "--target=riscv64", "-mabi=lp64", "-march=rv64ima"][..]))
    {
        let words = of_the_extension(&compile(compiler, "kernel.c", &source, &kernel));
        assert_eq!(sorted(words), sorted(expected.clone()), "{compiler:?}");
    }
}

#[test]
fn c_accessors_take_words_apart_and_reach_registers() {
    // If the compiler cannot prove that a call of `wrong` is unreachable, it reports an error.
    let mut source = String::from(
        "#include \"xmetatm.h\"\n\
         extern void wrong(void) __attribute__((__error__(\"an accessor is wrong\")));\n\
         #define EXPECT(value, expected) do { if ((value) != (expected)) wrong(); } while (0)\n\
         void accessors(void)\n{\n\
         unsigned long status = xmetatm_status(XMETATM_CAUSE_NEED_EXCLUSIVE, 0x7b);\n\
         EXPECT(status, 0x7b04);\nEXPECT(xmetatm_code(status), 0x7b);\n\
         EXPECT(xmetatm_cause(status), XMETATM_CAUSE_NEED_EXCLUSIVE);\n\
         EXPECT(xmetatm_depth(0x7b0457ffUL), 0x57);\nEXPECT(xmetatm_last_status(0x7b0457ffUL), status);\n}\n\
         void write(unsigned long value) { xmetatm_csr_write(CSR_XCONTEXT, value); }\n\
         void set(void) { xmetatm_csr_set(CSR_XENABLE, XENABLE_U); }\n\
         void clear(void) { xmetatm_csr_clear(CSR_XENABLE, XENABLE_U); }\n",
    );
    for (_, name) in CSRS {
        let _ =
            writeln!(source, "unsigned long {name}(void) {{ return xmetatm_csr_read(CSR_{}); }}", name.to_uppercase());
    }
    for compiler in compilers() {
        let words = compile(compiler, "accessors.c", &source, &["-std=c11", "-O2", "-Wall", "-Werror", ARCHITECTURE]);
        let contains = |word: u32| assert!(words.contains(&word), "{compiler:?} made no {word:#010x}");
        contains(0x5c35_1073); // csrw xcontext, a0
        contains(0x5c50_e073); // csrsi xenable, 1
        contains(0x5c50_f073); // csrci xenable, 1
        CSRS.into_iter().map(|(number, _)| csr_read_into_a0(number)).for_each(contains);
    }
}

#[test]
fn examples_of_the_specification_compile() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/xmetatm.md")).unwrap();
    for (language, suffix) in [("c", "c"), ("asm", "S")] {
        let examples: Vec<&str> =
            text.split(&format!("```{language}\n")).skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
        assert!(examples.len() >= 2, "the specification has examples in {language}");
        for (place, example) in examples.iter().enumerate() {
            for compiler in compilers() {
                let options = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", ARCHITECTURE];
                let words = compile(compiler, &format!("example{place}.{suffix}"), example, &options);
                assert!(!words.is_empty(), "example {place} in {language}");
            }
        }
    }
}

#[test]
fn a_rust_guest_makes_the_words_of_the_encoders() {
    const TARGET: &str = "riscv64gc-unknown-none-elf";
    let rustc = || Command::new(option_env!("RUSTC").unwrap_or("rustc"));
    let libraries = rustc().args(["--target", TARGET, "--print", "target-libdir"]).output().unwrap();
    let libraries = String::from_utf8(libraries.stdout).unwrap();
    if !Path::new(libraries.trim()).is_dir() {
        eprintln!("not tried: Rust's {TARGET} target is not installed");
        return;
    }
    let (source, mut expected) = rust_functions();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (file, object) = (folder.join("guest.rs"), folder.join("guest.o"));
    std::fs::write(&file, source).unwrap();
    run(rustc()
        .args(["--target", TARGET, "--edition", "2024", "--crate-type", "lib", "--emit", "obj", "-D", "warnings"])
        .args(["-C", "opt-level=2", "-C", "panic=abort"])
        .arg("-o")
        .arg(&object)
        .arg(&file));
    let words = code(&object);
    assert!(words.contains(&csr_read_into_a0(0xcc0)), "xstatus is read");
    assert!(words.contains(&0x5c35_1073), "xcontext is written");
    expected.sort_unstable();
    assert_eq!(sorted(of_the_extension(&words)), expected);
}

/// A Rust function around each function of the module, and the instruction that it compiles to.
fn rust_functions() -> (String, Vec<u32>) {
    let module = include_folder().join("xmetatm.rs");
    let mut source = format!(
        "#![no_std]\n#[path = {module:?}]\npub mod xmetatm;\nuse xmetatm::*;\n\
         #[unsafe(no_mangle)] pub unsafe extern \"C\" fn status() -> u64 {{ unsafe {{ csr_read::<CSR_XSTATUS>() }} }}\n\
         #[unsafe(no_mangle)] pub unsafe extern \"C\" fn context(a: u64) {{ unsafe {{ csr_write::<CSR_XCONTEXT>(a) }} }}\n"
    );
    let mut expected = Vec::new();
    let mut function = |name: &str, parameters: &str, result: &str, call: &str, word: u32| {
        let _ = writeln!(
            source,
            "#[unsafe(no_mangle)] pub unsafe extern \"C\" fn call_{name}({parameters}) -> {result} {{ unsafe {{ {call} }} }}"
        );
        expected.push(word);
    };
    for (control, name) in Control::ALL {
        match control {
            Control::Begin | Control::TransactionId => {
                function(name, "", "u64", &format!("{name}()"), control.encode(A0, 0))
            }
            Control::Restart => function(name, "a: u64", "!", &format!("{name}(a)"), control.encode(0, A0)),
            _ => function(name, "", "()", &format!("{name}()"), control.encode(0, 0)),
        }
    }
    for (width, suffix) in Width::ALL {
        let kind = format!("u{}", 8 * width.size_bytes());
        let (test, swap) = (format!("xtest_{suffix}"), format!("xcas_{suffix}"));
        function(
            &test,
            &format!("p: *mut {kind}, a: {kind}"),
            "bool",
            &format!("{test}(p, a)"),
            width.encode_test(A0, A0, A1),
        );
        function(
            &swap,
            &format!("p: *mut {kind}, a: {kind}, b: {kind}"),
            "u64",
            &format!("{swap}(p, a, b)"),
            width.encode_compare_and_swap(A0, A0, A1, A2),
        );
    }
    (source, expected)
}
