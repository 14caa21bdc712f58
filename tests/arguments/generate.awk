# SPDX-License-Identifier: Apache-2.0
# Reads the public headers after the preprocessor (cc -E -P) and writes the tables of test_nonsense.c: a row for each public
# function with its parameters and a way to call it, and a row for each member of each public struct.  A declaration that
# this script cannot read is an error, so that no public function is left out of the test.  Inline functions are left out.

BEGIN { primitive = "^(bool|_Bool|char|int|float|double|size_t|u?int(8|16|32|64)_t)$" }

{ text = text " " $0 }

function fail(message) {
    print "generate.awk: " message >"/dev/stderr"
    failed = 1
    exit 1
}

function trim(s) {
    gsub(/[ \t]+/, " ", s)
    sub(/^ /, "", s)
    sub(/ $/, "", s)
    return s
}

# Splits s at the commas that stand in no parentheses; returns how many pieces there are.
function pieces(s, out,    i, c, depth, count) {
    count = 1
    out[1] = ""
    for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1)
        if (c == "(") depth++
        if (c == ")") depth--
        if (c == "," && depth == 0) out[++count] = ""
        else out[count] = out[count] c
    }
    for (i = 1; i <= count; i++) out[i] = trim(out[i])
    return count
}

# Splits "const char *name" into the globals `type` and `name`.
function declare(s) {
    if (!match(s, /[A-Za-z_][A-Za-z0-9_]*$/)) fail("cannot read the declaration '" s "'")
    name = substr(s, RSTART)
    type = trim(substr(s, 1, RSTART - 1))
    gsub(/_Bool/, "bool", type)
    if (type == "") fail("the declaration '" s "' has no type or no name")
}

function kind_of(type, name) {
    if (type ~ /\*/) return "POINTER"
    if (type in callbacks) return "CALLBACK"
    if (type in enums) return "ENUM"
    if (name == "rank" && type ~ /^int/) return "RANK"
    if (type == "double" || type == "float") return "REAL"
    if (type ~ primitive) return "INTEGER"
    if (type in members) return "STRUCT"
    fail("unknown type '" type "' of '" name "'")
}

function struct(s,    body, title, parts, count, i, base, declared, rest) {
    body = s
    sub(/^[^{]*\{/, "", body)
    title = body
    sub(/.*\}/, "", title)
    title = trim(title)
    sub(/\}[^}]*$/, "", body)
    order[++structs] = title
    members[title] = 0
    count = split(body, parts, ";")
    for (i = 1; i <= count; i++) {
        s = trim(parts[i])
        if (s == "") continue
        if (match(s, /\( ?\* ?[A-Za-z_0-9]+ ?\)/)) {
            name = substr(s, RSTART, RLENGTH)
            gsub(/[^A-Za-z_0-9]/, "", name)
            add(title, "callback", name, "")
            continue
        }
        rest = pieces(s, declared)
        for (base = 1; base <= rest; base++) {
            if (base > 1) declared[base] = first " " declared[base]
            s = declared[base]
            extent = ""
            if (match(s, /\[.*\]$/)) {
                extent = substr(s, RSTART)
                s = trim(substr(s, 1, RSTART - 1))
            }
            declare(s)
            if (base == 1) {
                first = type
                gsub(/\*.*/, "", first)
                first = trim(first)
            }
            add(title, type, name, extent)
        }
    }
}

function add(title, type, name, extent,    n) {
    n = ++members[title]
    member_type[title, n] = type
    member_name[title, n] = name
    member_extent[title, n] = extent
}

# Rows of all members of a struct, those of structs inside it as well; of an array of structs, those of its first element.
function rows(root, prefix, title,    i, type, path, kind) {
    for (i = 1; i <= members[title]; i++) {
        type = member_type[title, i]
        path = prefix member_name[title, i]
        kind = type == "callback" ? "CALLBACK" : kind_of(type, member_name[title, i])
        if (kind == "STRUCT") rows(root, path (member_extent[title, i] == "" ? "." : "[0]."), type)
        else
            printf "    {\"%s\", \"%s\", \"%s\", KIND_%s, offsetof(%s, %s), sizeof(((%s *)0)->%s)},\n", root, path, type, kind, root,
                path, root, path
    }
}

# Remembers a function: what is in front of its name, its name, its parameters.
function prototype(s,    i, opening, list) {
    gsub(/__attribute__ *\(\([a-z_]+( *\([^()]*\))?\)\)/, "", s)
    sub(/extern "C"/, "", s)
    s = trim(s)
    if (!match(s, /^[^()]+\(/) || s !~ /\)$/) fail("cannot read the prototype '" s "'")
    opening = RLENGTH
    declare(trim(substr(s, 1, opening - 1)))
    n = ++functions
    result[n] = type
    function_name[n] = name
    s = substr(s, opening + 1)
    sub(/\)$/, "", s)
    parameters[n] = pieces(trim(s), list)
    variadic[n] = 0
    if (list[1] == "void") parameters[n] = 0
    for (i = 1; i <= parameters[n]; i++) {
        if (list[i] == "...") {
            variadic[n] = 1
            parameters[n] = i - 1
            break
        }
        declare(list[i])
        parameter_type[n, i] = type
        parameter_name[n, i] = name
    }
}

function argument(n, i,    kind, type) {
    type = parameter_type[n, i]
    kind = kind_of(type, parameter_name[n, i])
    if (kind == "STRUCT") fail(function_name[n] ": a struct is passed by value; teach generate.awk how to")
    if (kind == "POINTER") return "(" type ")a[" i - 1 "].pointer"
    if (kind == "CALLBACK") return "(" type ")a[" i - 1 "].callback"
    if (kind == "REAL") return "(" type ")a[" i - 1 "].real"
    return "(" type ")a[" i - 1 "].integer"
}

function caller(n,    i, call) {
    call = function_name[n] "("
    for (i = 1; i <= parameters[n]; i++) call = call (i > 1 ? ", " : "") argument(n, i)
    call = call ")"
    print "static void call_" function_name[n] "(const value *a, answer *to) {"
    if (parameters[n] == 0) print "    (void)a;"
    if (result[n] == "void") print "    (void)to;\n    " call ";"
    else if (result[n] == "leat_status") print "    to->status = " call ";"
    else {
        print "    " result[n] " answered = " call ";"
        print "    keep(to, &answered, sizeof answered);"
    }
    print "}\n"
}

function returns(type) {
    if (type == "void") return "RETURNS_NOTHING"
    if (type == "leat_status") return "RETURNS_STATUS"
    return type in members ? "RETURNS_STRUCT" : "RETURNS_VALUE"
}

END {
    if (failed) exit 1
    while (match(text, /static inline [^{]*\{[^{}]*\}/)) # calls an exported function
        text = substr(text, 1, RSTART - 1) substr(text, RSTART + RLENGTH)
    exported = gsub(/visibility *\("default"\)/, "&", text)
    # A declaration ends with a semicolon outside of braces; { } of extern "C" are dropped.
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "{") depth++
        if (c == "}" && depth > 0) depth--
        if (c == ";" && depth == 0) {
            line[++lines] = trim(one)
            one = ""
        } else one = one c
    }
    for (k = 1; k <= lines; k++) {
        s = line[k]
        if (s ~ /^typedef enum leat_/) {
            sub(/.*\} ?/, "", s)
            enums[s] = 1
        } else if (s ~ /^typedef struct leat_[a-z0-9_]+ \{/) struct(s)
        else if (s ~ /^typedef [^()]*\( ?\* ?leat_[a-z0-9_]+ ?\)/) {
            match(s, /leat_[a-z0-9_]+ ?\)/)
            s = substr(s, RSTART, RLENGTH)
            gsub(/[ )]/, "", s)
            callbacks[s] = 1
        } else if (s ~ /visibility/) prototype(s)
    }
    if (functions == 0 || functions != exported)
        fail(exported " functions are exported, and " functions + 0 " were read")
    print "/* Written by generate.awk from include/leat. */"
    for (n = 1; n <= functions; n++) caller(n)
    print "static const function functions[] = {"
    for (n = 1; n <= functions; n++) {
        printf "    {\"%s\", %s, \"%s\", %d, %d, {", function_name[n], returns(result[n]), result[n], variadic[n], parameters[n]
        for (i = 1; i <= parameters[n]; i++)
            printf "{\"%s\", \"%s\", KIND_%s}, ", parameter_type[n, i], parameter_name[n, i],
                kind_of(parameter_type[n, i], parameter_name[n, i])
        print "{0}}, call_" function_name[n] "},"
    }
    print "};\n\nstatic const member members[] = {"
    for (k = 1; k <= structs; k++) rows(order[k], "", order[k])
    print "};"
}
