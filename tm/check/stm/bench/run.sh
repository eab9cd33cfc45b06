#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT Runs the benchmark programs of a folder, in turns so that what else the
# host does meets all alike, and prints a table of medians.
#
#   run.sh FOLDER [RESULTS]
#
# RESULTS (FOLDER/stm.jsonl) gets a line of JSON for each measurement. Variables: ROUNDS (5), DURATION_MS of a
# measurement (50), THREADS ("1 2"), IDLE_PEER ("0 1": for one thread only), WORKLOADS (all; a,b).
set -eu

folder=$1
results=${2:-$folder/stm.jsonl}
here=$(dirname "$0")

measure() {
    program=$1
    shift
    "$folder/$program" "$@" threads="$threads" idle_peer="$idle_peer" rounds=1 seed="$round" \
        duration_ms="${DURATION_MS:-50}" ${WORKLOADS:+"workloads=$WORKLOADS"} >>"$results"
}

: >"$results"
round=0
while [ "$round" -lt "${ROUNDS:-5}" ]; do
    round=$((round + 1))
    for threads in ${THREADS:-1 2}; do
        for idle_peer in ${IDLE_PEER:-0 1}; do
            if [ "$idle_peer" = 1 ] && [ "$threads" != 1 ]; then
                continue
            fi
            measure bench-spinlock
            for library in tl2 2pl; do
                measure "bench-itm-$library" name="$library"
                measure "bench-plain-$library" name="$library"
            done
            if [ -x "$folder/bench-itm-libitm" ]; then
                for method in ml_wt gl_wt; do
                    ITM_DEFAULT_METHOD=$method measure bench-itm-libitm name=libitm method="$method"
                done
            fi
        done
    done
done
awk -f "$here/table.awk" "$results"
