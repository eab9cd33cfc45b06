# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Tables from the lines of results that the benchmarks print: one for each benchmark, a row for each lock, a column for
# each number of threads where there are several, else for each member. Use: awk -f table.awk < lines
/^{"benchmark"/ {
    line = $0
    benchmark = name = threads = ""
    while (match(line, /"[a-z0-9_]+":("[^"]*"|[0-9.]+)/)) {
        member = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        split(member, parts, /:/)
        gsub(/"/, "", parts[1])
        gsub(/"/, "", parts[2])
        if (parts[1] == "benchmark") {
            benchmark = parts[2]
            if (!(benchmark in members_count))
                benchmarks[++benchmarks_count] = benchmark
        } else if (parts[1] == "lock") {
            name = parts[2]
        } else if (parts[1] == "threads") {
            threads = parts[2]
            row = name " " threads
            if (!((benchmark, row) in row_seen)) {
                row_seen[benchmark, row] = 1
                rows[benchmark, ++rows_count[benchmark]] = row
            }
        } else if (parts[1] != "kind") {
            if (!((benchmark, parts[1]) in member_seen)) {
                member_seen[benchmark, parts[1]] = 1
                members[benchmark, ++members_count[benchmark]] = parts[1]
            }
            value[benchmark, row, parts[1]] = parts[2]
        }
    }
}

function cell(text, least) {
    width = length(text) > least ? length(text) : least
    return sprintf("  %" width "s", text)
}

END {
    for (b = 1; b <= benchmarks_count; b++) {
        benchmark = benchmarks[b]
        printf "%s\n%-24s", benchmark, "lock threads"
        for (m = 1; m <= members_count[benchmark]; m++)
            printf "%s", cell(members[benchmark, m], 10)
        printf "\n"
        for (r = 1; r <= rows_count[benchmark]; r++) {
            row = rows[benchmark, r]
            printf "%-24s", row
            for (m = 1; m <= members_count[benchmark]; m++) {
                member = members[benchmark, m]
                text = value[benchmark, row, member]
                printf "%s", cell(text, length(member) > 10 ? length(member) : 10)
            }
            printf "\n"
        }
        printf "\n"
    }
}
