# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Medians of the lines of run.sh: nanoseconds an operation, and how they compare.

function member(name,    text) {
    if (!match($0, "\"" name "\":(\"[^\"]*\"|[^,}]*)"))
        return ""
    text = substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
    gsub(/"/, "", text)
    return text
}

function median(row, column,    count, i, j, moved, sorted) {
    count = counts[row, column]
    if (!count)
        return 0
    for (i = 1; i <= count; i++) {
        moved = times[row, column, i]
        for (j = i; j > 1 && sorted[j - 1] > moved; j--)
            sorted[j] = sorted[j - 1]
        sorted[j] = moved
    }
    return sorted[int((count + 1) / 2)]
}

function least(a, b) {
    return a && (!b || a < b) ? a : b
}

function ratio(a, b) {
    return a && b ? sprintf("%8.2f", a / b) : "       -"
}

/^\{/ {
    row = sprintf("%-20s %7d %5s", member("workload"), member("threads"), member("idle_peer") == 1 ? "yes" : "no")
    column = member("backend") " " member("library") " " member("method")
    if (!(row in known)) {
        known[row] = 1
        rows[++rows_count] = row
    }
    times[row, column, ++counts[row, column]] = member("operation_ns") + 0
}

END {
    print "nanoseconds an operation, medians (itm: compiled with -fgnu-tm; plain: tm_start, tm_load, tm_store)"
    heading = "%-20s %7s %5s" " %8s %8s %8s %8s %8s %8s %8s" " | %8s %8s\n"
    printf heading, "", "", "", "spinlock", "itm", "itm", "libitm", "libitm", "plain", "plain", "libitm /", "plain /"
    printf heading, "workload", "threads", "peer", "", "tl2", "2pl", "ml_wt", "gl_wt", "tl2", "2pl", "itm", "spinlock"
    for (i = 1; i <= rows_count; i++) {
        row = rows[i]
        lock = median(row, "spinlock  ")
        itm_tl2 = median(row, "itm tl2 ")
        itm_2pl = median(row, "itm 2pl ")
        libitm_ml = median(row, "itm libitm ml_wt")
        libitm_gl = median(row, "itm libitm gl_wt")
        plain_tl2 = median(row, "plain tl2 ")
        plain_2pl = median(row, "plain 2pl ")
        printf "%s %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f", row, lock, itm_tl2, itm_2pl, libitm_ml, libitm_gl, \
            plain_tl2, plain_2pl
        printf " | %s %s\n", ratio(least(libitm_ml, libitm_gl), least(itm_tl2, itm_2pl)), \
            ratio(least(plain_tl2, plain_2pl), lock)
    }
}
