#!/bin/sh
# Runs every program under QEMU on 1, 2 and 8 harts with a small iteration count and checks the exit code and the last line printed.
# Programs that do not end are stopped after two seconds, which `timeout` reports as 124. Programs with transactions cannot run here,
# as QEMU has none: what is checked is that they say so.
set -u
build=$1
qemu=${QEMU:-qemu-system-riscv64}
failures=0

# expect PROGRAM HARTS EXIT_CODE LINE
expect() {
    output=$(timeout --kill-after=5 "${seconds:-60}" "$qemu" -M virt -smp "$2" -m 128M -nographic -no-reboot \
        -monitor none -kernel "$build/$1.elf" -append "quiet iterations=800" </dev/null 2>/dev/null)
    code=$?
    last=$(printf '%s\n' "$output" | tr -d '\r' | tail -n 1)
    if [ "$code" != "$3" ] || [ "$last" != "$4" ]; then
        echo "$1 on $2 harts: exit code $code and \"$last\", expected $3 and \"$4\"" >&2
        failures=$((failures + 1))
    else
        echo "$1 on $2 harts: as expected"
    fi
}

for harts in 1 2 8; do
    for program in arithmetic walk8k walk256k lock-swap lock-reservation lock-hints; do
        expect "$program" "$harts" 0 "harts $harts iterations 800 passed"
    done
    expect hello "$harts" 0 "Hello from $harts harts."
    expect fail "$harts" 7 "harts $harts iterations 800 failed"
    expect reset "$harts" 0 "asking for a reboot"
done
for program in bank list print interrupted table contended transactions; do
    expect "$program" 2 103 "this machine has no transactions: its device tree does not name xmetatm"
done
echo "programs with transactions are not checked further: QEMU cannot run them (cli/tests/examples.rs does)"
seconds=2
expect deadlock 2 124 "all harts wait"
expect spin 2 124 "all harts spin"
expect wild 2 124 "jumping nowhere"
exit "$((failures != 0))"
