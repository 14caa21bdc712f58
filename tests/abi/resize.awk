# SPDX-License-Identifier: Apache-2.0
# Writes a public header of another version: with -v version=older the structs that may grow end before the members that the
# table names; with -v version=newer they have one more member, added_later, and training has one more hook.
# usage: awk -v version=older -f resize.awk growing.txt HEADER > HEADER-OF-THE-OLDER-VERSION

function fail(message) {
    print "resize.awk: " FILENAME ": " message >"/dev/stderr"
    failed = 1
    exit 1
}

FNR == NR {
    if ($0 !~ /^#/) cut[$1] = $2
    next
}

/^#define LEAT_HOOK_LIST/ { hooks = 1 }
hooks && version == "older" && /X\(on_predict_/ {
    if (!/\\$/) hooks = 0
    next
}
hooks && version == "older" && /X\(on_test_batch_end\)/ { sub(/ *\\$/, ""); print; next }
hooks && !/\\$/ {
    if (version == "newer") sub(/$/, " X(on_added_later)")
    hooks = 0
}

/^typedef struct [a-z_]+ \{/ { name = $3; first = 1; cutting = 0; print; next }
name && first {
    first = 0
    if (/^    size_t size;/ && !(name in cut)) fail(name " may grow: name the members to cut in growing.txt")
}
name && /^\}/ {
    if (version == "older" && cut[name] ~ /^[a-z]/ && cut[name] != "hooks" && !cutting) fail(name " has no member " cut[name])
    if (version == "newer" && name in cut) print "    unsigned char added_later[8]; /* without alignment: would use padding */"
    name = ""
    cutting = 0
}
name && name in cut && version == "older" && cut[name] != "hooks" && cut[name] != "-" &&
    match($0, "[ *]" cut[name] "(;|,|\\[|\\))") { cutting = 1 }
!cutting { print }
END { if (failed) exit 1 }
