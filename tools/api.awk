# SPDX-License-Identifier: Apache-2.0
# Reads public headers after the preprocessor (cc -E -C) and writes a C program that prints them as JSON: tools/api-json.
# So the C compiler computes what only it knows: offsets, sizes, values.  -v include=FOLDER, -v macros=FILE.
# A text between \001 and \002 is an integer expression of C, one between \003 and \002 a string.

# ---- Tokens: T[i] text; K[i] w(ord), c(omment) or p(unctuation); B[i] true after a blank line; L[i] line number ----

/^# [0-9]+ "/ {
    name = $0
    sub(/^# [0-9]+ "/, "", name)
    sub(/".*/, "", name)
    ours = index(name, include "/leat/") == 1
    if (ours) header = substr(name, length(include) + 2)
    next
}
/^#/ || !ours { next }
{ ++line; scan($0) }

function push(text, kind) {
    T[++count] = text; K[count] = kind; B[count] = blank; L[count] = line; F[count] = header
    blank = 0
}
function scan(text,    end) {
    if (!inside && text ~ /^[ \t]*$/) { blank = 1; return }
    while (text != "") {
        if (inside) {
            end = index(text, "*/")
            if (!end) { comment = comment text "\n"; return }
            push(comment substr(text, 1, end - 1), "c")
            L[count] = comment_line
            text = substr(text, end + 2); inside = 0; comment = ""
        } else if (match(text, /^[ \t]+/)) {
            text = substr(text, RLENGTH + 1)
        } else if (substr(text, 1, 2) == "/*") {
            inside = 1; comment_line = line; text = substr(text, 3)
        } else if (match(text, /^[A-Za-z_0-9]+/) || match(text, /^\.\.\./) || match(text, /^"[^"]*"/)) {
            push(substr(text, 1, RLENGTH), "w"); text = substr(text, RLENGTH + 1)
        } else {
            push(substr(text, 1, 1), "p"); text = substr(text, 2)
        }
    }
}

# ---- Texts ----

# Replaces every `from` by `to`.  gsub treats backslashes differently in different implementations of awk.
function replace(text, from, to,    at, out) {
    while ((at = index(text, from)) > 0) {
        out = out substr(text, 1, at - 1) to
        text = substr(text, at + length(from))
    }
    return out text
}
# Escapes a text for a string of JSON and C.
function quoted(text) { return replace(replace(replace(text, "\\", "\\\\"), "\"", "\\\""), "\n", "\\n") }
function json(text) { return "\"" quoted(replace(text, "\t", " ")) "\"" }
# Removes the stars of a comment.
function clean(text) {
    sub(/^\*+<?/, "", text); gsub(/\n[ \t]*\*/, "\n", text); gsub(/\n +/, "\n", text)
    gsub(/^[ \n]+|[ \n]+$/, "", text); gsub(/ +\n/, "\n", text)
    return text
}
function is_doc(i) { return K[i] == "c" && T[i] ~ /^\*/ }
function complain(i, what) {
    printf "%s: %s near '%s %s %s'\n", F[i], what, T[i], T[i + 1], T[i + 2] > "/dev/stderr"
    failed = 1
}

# ---- Types, as JSON ----

function base_type(name) {
    if (name == "void") return "{\"kind\": \"void\"}"
    if (name == "_Bool" || name == "bool") return "{\"kind\": \"bool\"}"
    if (name == "char") return "{\"kind\": \"char\"}"
    if (name == "double") return "{\"kind\": \"float\", \"bits\": 64}"
    if (name == "float") return "{\"kind\": \"float\", \"bits\": 32}"
    if (name in integer) return "{\"kind\": \"integer\", \"bits\": " integer[name] ", \"signed\": " \
                                (name ~ /^u|size_t/ ? "false" : "true") "}"
    if (name in kind) return "{\"kind\": \"" kind[name] "\", \"name\": \"" name "\"}"
    return ""
}
# Reads a base type and its stars from token i on: sets type, stars, pointee_const, base; returns the next token.
function read_type(i,    constant) {
    base = ""; stars = constant = pointee_const = 0
    for (; K[i] == "w"; ++i) {
        if (T[i] == "const") constant = 1
        else if (T[i] == "struct" || T[i] == "enum") continue
        else if (base != "") break
        else base = T[i]
    }
    type = base_type(base)
    if (type == "") complain(i, "unknown type " base)
    plain_type = type
    plain_const = constant
    for (; T[i] == "*" || T[i] == "const"; ++i) {
        if (T[i] == "const") { constant = 1; continue }
        type = "{\"kind\": \"pointer\", \"const\": " (constant ? "true" : "false") ", \"to\": " type "}"
        pointee_const = constant; constant = 0
        ++stars
    }
    return i
}
# Returns the token after the bracket that closes the one at token i.
function behind(i,    depth) {
    do {
        if (T[i] == "(" || T[i] == "{") ++depth
        if (T[i] == ")" || T[i] == "}") --depth
        ++i
    } while (depth > 0 && i <= count)
    return i
}
function function_type(returns, i) {
    return "{\"kind\": \"function\", \"returns\": " returns ", \"parameters\": [" parameters(i, "", 0) "]}"
}
# Returns the parameters from the bracket at token i on as JSON; with the function's documentation, also their ownership.
function parameters(i, doc, whole,    end, list, one, own, name, many) {
    end = behind(i) - 1
    variadic = 0
    for (++i; i < end; ++i) {
        if (T[i] == "void" && i + 1 == end) break
        if (T[i] == "...") { variadic = 1; continue }
        i = read_type(i)
        own = type
        name = K[i] == "w" ? T[i++] : ""
        if (name == "") complain(i, "a parameter without a name")
        one = "{\"name\": " json(name) (whole ? ownership(name, doc) : "") ", \"type\": " own "}"
        list = list (many++ ? (whole ? ",\n    " : ", ") : (whole ? "\n    " : "")) one
        if (T[i] != "," && i != end) complain(i, "expected , or )")
    }
    return list
}
function says(doc, name, what) { return doc ~ ("(^|[^A-Za-z_])" name "[ ]+" what) }
function ownership(name, doc,    direction, text) {
    if (stars == 0) return ""
    direction = pointee_const ? "in" : stars == 1 && kind[base] == "opaque" ? "object" : "inout"
    if (name == "out" || name == "err" || says(doc, "@param[[]out[]]", name) || \
        (direction == "inout" && stars == 2 && kind[base] == "opaque")) direction = "out"
    if (function_name ~ /_(destroy|close)$/ || doc ~ ("[Tt]akes \\*" name " over")) direction = "inout"
    text = ", \"direction\": \"" direction "\""
    if (name == "err" || says(doc, name, "(\\()?NULL(:| allowed)") || (doc ~ /NULL is fine|takes NULL/ && stars > 0))
        text = text ", \"nullable\": true"
    if (doc ~ ("[Tt]akes \\*" name " over")) text = text ", \"taken\": true"
    if (direction == "out" && name != "err") text = text "\004" base ":" stars "\004"
    return text
}

# ---- Declarations ----

function start(i) {
    if (F[i] != shared_in) shared = ""
    if (pending != "" && pending_in == F[i]) shared = pending
    else if (B[i]) shared = ""
    doc = shared; shared_in = F[i]; pending = ""
}
function head(name, i) {
    return "  {\"name\": " json(name) ", \"header\": " json(F[i]) ", \"since\": " json(since(doc)) \
           (doc == "" ? "" : ",\n   \"doc\": " json(doc))
}
function since(text) { return match(text, /Since [0-9]+\.[0-9]+\.[0-9]+/) ? substr(text, RSTART + 6, RLENGTH - 6) : "0.1.0" }

function read_enum(i,    list, first, own, name, end, j) {
    end = behind(i + 3 - (T[i + 2] == "{"))
    name = T[end]
    kind[name] = "enum"
    first = head(name, i)
    for (j = i + 3 + (T[i + 2] != "{"); j < end - 1; ++j) {
        if (K[j] == "c") {
            if (L[j] == L[j - 1]) last = clean(T[j])
            else own = clean(T[j])
            if (L[j] == L[j - 1] && list != "") list = replace(list, "\005", ", \"doc\": " json(last))
            continue
        }
        if (K[j] != "w") continue
        list = replace(list, "\005", "")
        list = list (list == "" ? "" : "},") "\n    {\"name\": " json(T[j]) ", \"value\": \001" T[j] "\002" \
               (own == "" ? "" : ", \"doc\": " json(own)) "\005"
        own = ""
        while (j < end - 1 && T[j] != ",") ++j
    }
    list = replace(list, "\005", "")
    add("enums", first ",\n   \"values\": [" list "}]}")
    return end + 2
}

# Reads the declarators of one field from token i on; sets own_fields.  Returns the token after the semicolon.
function read_field(i, owner, text,    base_text, own, name, j) {
    own_fields = ""
    i = read_type(i)
    base_text = type
    for (;;) {
        own = base_text
        if (T[i] == "(") { # TYPE (*name)(parameters)
            name = T[i + 2]
            own = function_type(base_text, i + 4) # reads other types, so such a member is alone in its declaration
            i = behind(i + 4)
        } else {
            name = T[i++]
            while (T[i] == "[") {
                expression = ""
                for (++i; T[i] != "]"; ++i) expression = expression T[i] " "
                own = "{\"kind\": \"array\", \"count\": \001" expression "\002, \"of\": " own "}"
                ++i
            }
        }
        own_fields = own_fields ",\n    {\"name\": " json(name) ", \"offset\": \001offsetof(" owner ", " name \
                     ")\002, \"size\": \001sizeof(((" owner " *)0)->" name ")\002" \
                     (text == "" ? "" : ", \"doc\": " json(text)) ", \"type\": " own "}"
        if (T[i] != ",") break
        base_text = plain_type # stars belong to a single declarator
        own_const = plain_const
        for (++i; T[i] == "*"; ++i) {
            base_text = "{\"kind\": \"pointer\", \"const\": " (own_const ? "true" : "false") ", \"to\": " base_text "}"
            own_const = 0
        }
    }
    if (T[i] != ";") complain(i, "expected ;")
    return i + 1
}
function read_struct(i,    end, name, first, list, text, j, next_one) {
    end = behind(i + 3)
    name = T[end]
    kind[name] = "struct"
    first = head(name, i)
    for (j = i + 4; j < end - 1;) {
        if (K[j] == "c") { text = clean(T[j]); ++j; continue }
        for (next_one = j; T[next_one] != ";" || in_brackets(j, next_one); ++next_one) continue
        if (K[next_one + 1] == "c" && L[next_one + 1] == L[next_one]) text = clean(T[next_one + 1])
        j = read_field(j, name, text)
        if (K[j] == "c" && L[j] == L[j - 1]) ++j
        text = ""
        list = list own_fields
    }
    add("structs", first ",\n   \"size\": \001sizeof(" name ")\002, \"align\": \001_Alignof(" name ")\002,\n" \
        "   \"fields\": [" substr(list, 2) "]}")
    return end + 2
}
function in_brackets(from, to,    depth) {
    for (; from < to; ++from) depth += (T[from] == "(") - (T[from] == ")")
    return depth > 0
}
function read_callback(i,    returns, name) {
    i = read_type(i + 1)
    returns = type
    name = T[i + 2]
    kind[name] = "callback"
    add("callbacks", head(name, i) ",\n   \"returns\": " returns ",\n   \"parameters\": [" parameters(i + 4, doc, 1) "]}")
    return behind(i + 4) + 1
}
# Evaluates the attributes, which are removed from the declaration first.
function read_function(i,    from, name, returns, attributes, list, exported, end) {
    from = i; attributes = ""; exported = 0
    while (T[i] == "__attribute__") { exported = exported || T[i + 3] == "visibility"; must = must || T[i + 3] ~ /warn_unused/; i = behind(i + 1) }
    i = read_type(i)
    returns = type
    by_value = stars == 0 && kind[base] == "struct"
    function_name = name = T[i++]
    list = parameters(i, doc, 1)
    end = behind(i)
    attributes = (must ? ",\n   \"must_check\": true" : "") (variadic ? ",\n   \"variadic\": true" : "") \
                 (variadic || by_value ? "\006" name "\006" : "") \
                 (exported ? "" : ",\n   \"defined_by_plugins\": true")
    must = 0
    add("functions", head(name, from) ",\n   \"returns\": " returns attributes ",\n   \"parameters\": [" list "]}")
    known[name] = 1
    for (; T[end] != ";"; ++end) continue
    return end + 1
}
# An inline function is for C alone: other languages call the exported function that it calls.
function behind_inline(i) {
    while (T[i] != "{") ++i
    pending = ""
    return behind(i)
}
function add(section, text) { S[section, ++N[section]] = text }

# Returns the function that releases the object of an out parameter.
function release(base, stars,    f) {
    if (base == "char" && stars == 2) return ", \"release\": \"leat_string_free\""
    if (base == "void" && stars == 2) return ", \"release\": \"leat_bytes_free\""
    if ((base "_destroy") in known) f = base "_destroy"
    else if ((base "_close") in known) f = base "_close"
    return f == "" || (kind[base] == "opaque" && stars < 2) ? "" : ", \"release\": \"" f "\""
}
# Returns the form of a function that every language can call: NAME_text, NAME_into, or the name without its f.
function plain_form(name,    shorter) {
    shorter = substr(name, 1, length(name) - 1)
    if ((name "_into") in known) return name "_into"
    if ((name "_text") in known) return name "_text"
    return name ~ /f$/ && shorter in known ? shorter : ""
}
function with_releases(text,    before, part, name) {
    while (match(text, /\006[^\006]*\006/)) {
        name = plain_form(substr(text, RSTART + 1, RLENGTH - 2))
        text = substr(text, 1, RSTART - 1) (name == "" ? "" : ",\n   \"plain_form\": " json(name)) \
               substr(text, RSTART + RLENGTH)
    }
    while (match(text, /\004[^\004]*\004/)) {
        before = substr(text, 1, RSTART - 1)
        split(substr(text, RSTART + 1, RLENGTH - 2), part, ":")
        text = before release(part[1], part[2]) substr(text, RSTART + RLENGTH)
    }
    return text
}

# ---- The program ----

function put(text) {
    if (text == "") return
    printf "    fputs(\"%s\", stdout);\n", replace(quoted(text), "??", "?\\?")
}
function emit(text,    c) {
    while (match(text, /[\001\003][^\002]*\002/)) {
        put(substr(text, 1, RSTART - 1))
        c = substr(text, RSTART + 1, RLENGTH - 2)
        if (substr(text, RSTART, 1) == "\001") printf "    printf(\"%%lld\", (long long)(%s));\n", c
        else printf "    printf(\"\\\"%%s\\\"\", %s);\n", c
        text = substr(text, RSTART + RLENGTH)
    }
    put(text)
}
function emit_section(name,    i) {
    emit(",\n \"" name "\": [")
    for (i = 1; i <= N[name]; ++i) emit((i > 1 ? ",\n" : "\n") with_releases(S[name, i]))
    emit("]")
}
BEGIN {
    split("int 32 int8_t 8 int16_t 16 int32_t 32 int64_t 64 uint8_t 8 uint16_t 16 uint32_t 32 uint64_t 64 size_t 64", words, " ")
    for (i = 1; i in words; i += 2) integer[words[i]] = words[i + 1]
    kind["va_list"] = "opaque"
}
END {
    for (i = 1; i <= count;) {
        if (K[i] == "c") { if (is_doc(i)) { pending = clean(T[i]); pending_in = F[i] } ++i; continue }
        if (T[i] == ";") { ++i; continue }
        if (T[i] == "static") { i = behind_inline(i); continue }
        start(i)
        if (T[i] != "typedef") i = read_function(i)
        else if (T[i + 1] == "enum") i = read_enum(i)
        else if (T[i + 1] == "struct" && T[i + 3] == "{") i = read_struct(i)
        else if (T[i + 1] == "struct" && K[i + 3] == "w" && T[i + 4] == ";") {
            kind[T[i + 3]] = "opaque"
            add("opaque", head(T[i + 3], i) "}")
            i += 5
        } else i = read_callback(i)
        if (failed) exit 1
    }
    while ((getline text < macros) > 0) {
        split(text, part, " ")
        add("macros", "  {\"name\": \"" part[2] "\", \"header\": \"" part[1] "\", \"value\": " \
            (part[3] ~ /^"/ ? "\003" : "\001") part[2] "\002}")
    }
    print "#include <stddef.h>\n#include <stdio.h>\n#include \"all.h\"\nint main(void) {"
    emit("{\"format\": 1, \"library\": \"leat\", \"version\": \003LEAT_VERSION_STRING\002, \"abi\": \"LP64\"")
    emit_section("macros"); emit_section("enums"); emit_section("opaque"); emit_section("structs")
    emit_section("callbacks"); emit_section("functions")
    emit("}\n")
    print "    return ferror(stdout) != 0;\n}"
}
