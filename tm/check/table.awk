# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Tables from the lines of results that the benchmarks print: one for each benchmark and test, a row for each lock and
# number of threads, a column for each quantity that is not always 0. Use: awk -f table.awk lines
/^{"benchmark"/ {
    line = $0
    test = row = ""
    while (match(line, /"[a-z0-9_]+":("[^"]*"|[0-9.]+)/)) {
        member = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        is_text = member ~ /"$/
        split(member, parts, /:/)
        gsub(/"/, "", parts[1])
        gsub(/"/, "", parts[2])
        if (parts[1] == "benchmark" || parts[1] == "test")
            test = test parts[2] " "
        else if (parts[1] == "threads" || is_text && parts[1] != "kind" && parts[1] != "htm")
            row = row parts[2] " "
        else if (!is_text && parts[1] != "seed" && parts[1] != "runs")
            quantity[parts[1]] = parts[2]
    }
    if (!(test in rows_count))
        tests[++tests_count] = test
    rows[test, ++rows_count[test]] = row
    for (name in quantity)
        if (quantity[name] != 0)
            is_column[test, name] = 1
    line = $0
    while (match(line, /"[a-z0-9_]+":/)) {
        name = substr(line, RSTART + 1, RLENGTH - 3)
        line = substr(line, RSTART + RLENGTH)
        if (name in quantity) {
            value[test, rows_count[test], name] = quantity[name]
            if (!((test, name) in seen)) {
                seen[test, name] = 1
                names[test, ++names_count[test]] = name
            }
        }
    }
    delete quantity
}

END {
    for (t = 1; t <= tests_count; t++) {
        test = tests[t]
        printf "%s\n%-24s", test, ""
        for (n = 1; n <= names_count[test]; n++)
            if ((test, names[test, n]) in is_column)
                printf "  %12s", names[test, n]
        printf "\n"
        for (r = 1; r <= rows_count[test]; r++) {
            printf "%-24s", rows[test, r]
            for (n = 1; n <= names_count[test]; n++) {
                name = names[test, n]
                width = length(name) > 12 ? length(name) : 12
                if ((test, name) in is_column)
                    printf "  %" width "s", value[test, r, name]
            }
            printf "\n"
        }
        printf "\n"
    }
}
