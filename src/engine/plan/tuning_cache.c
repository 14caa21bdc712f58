/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the file of the tuning cache.  A line of the file has the machine, the key, the implementation and
 * the threads, separated by tabs; the newest lines come last.  Any other line is ignored, and is dropped the next time
 * that the file is written.  Room: engine. */
#include "engine/plan/tuning_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "leat/file.h"

enum { MOST_LINES = 2000, MOST_BYTES = MOST_LINES * 1024 };

static const char heading[] = "leat kernels 1\n";

typedef struct entry {
    char key[LEATI_TUNED_NAME_BYTES];
    leati_tuned_kernel choice;
    bool saved;
} entry;

struct leati_tuning_cache {
    char machine[LEATI_TUNED_NAME_BYTES];
    char *folder; /* NULL: no file */
    entry *entries;
    size_t count;
};

/* ---- The machine ---- */

/* Adds the name of the CPU from /proc/cpuinfo. */
static void name_cpu(leati_text *out) {
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        bool part = strncmp(line, "CPU part", 8) == 0; /* 64-bit Arm gives no model name */
        if (!colon || (strncmp(line, "model name", 10) != 0 && !part)) continue;
        leati_text_add(out, "%s%.*s", part ? "CPU part " : "", (int)strcspn(colon + 2, "\t\n"), colon + 2);
        break;
    }
    if (file) fclose(file);
}

static void name_machine(char out[LEATI_TUNED_NAME_BYTES], const leati_backend *const *backends) {
    leati_text text = {0};
    name_cpu(&text);
    leati_text_add(&text, ", leat %s", LEAT_VERSION_STRING);
    for (; *backends; ++backends) {
        char version[64] = "";
        if ((*backends)->name_version) (*backends)->name_version(version, sizeof version);
        leati_text_add(&text, ", %s%s%s", (*backends)->name, *version ? " " : "", version);
    }
    snprintf(out, LEATI_TUNED_NAME_BYTES, "%s", text.data && !text.failed ? text.data : "unknown");
    leati_text_fini(&text);
}

static char *find_folder(void) {
    const char *leat = getenv("LEAT_CACHE_DIR"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    leati_text text = {0};
    if (leat)
        leati_text_add(&text, "%s", leat);
    else if (cache && *cache == '/')
        leati_text_add(&text, "%s/leat", cache);
    else if (home && *home)
        leati_text_add(&text, "%s/.cache/leat", home);
    if (text.data && *text.data && !text.failed) return text.data;
    leati_text_fini(&text);
    return NULL;
}

/* Makes the folder and its missing parents, with access for the user only (XDG Base Directory Specification).  If that
 * fails, opening the file will fail, too. */
static void make_folder(char *folder) {
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(folder, 0700);
        *slash = '/';
    }
    (void)mkdir(folder, 0700);
}

static bool name_file(const leati_tuning_cache *choices, leati_text *path) {
    if (choices->folder) leati_text_add(path, "%s/kernels", choices->folder);
    return path->data && !path->failed;
}

/* ---- Lines ---- */

typedef struct line {
    const char *text; /* with its newline */
    size_t length;
    char machine[LEATI_TUNED_NAME_BYTES];
    entry entry;
} line;

/* Copies the field up to the character `end` into `to` and returns the address after `end`.  Returns NULL if the field
 * is empty or does not fit into `bytes`, or if `end` does not come before `stop`. */
static const char *read_field(const char *from, const char *stop, char end, char *to, size_t bytes) {
    const char *at = from ? memchr(from, end, (size_t)(stop - from)) : NULL;
    if (!at || at == from || (size_t)(at - from) >= bytes || memchr(from, '\0', (size_t)(at - from)))
        return NULL;
    memcpy(to, from, (size_t)(at - from));
    to[at - from] = '\0';
    return at + 1;
}

/* Reads the next valid line.  Returns false at the end of the file. */
static bool next_line(const leati_map *map, size_t *at, line *out) {
    const char *data = (const char *)map->data;
    while (*at < map->size) {
        const char *start = data + *at, *end = memchr(start, '\n', map->size - *at);
        char threads[8] = "", *rest = threads;
        if (!end) return false;
        *at = (size_t)(++end - data);
        *out = (line){.text = start, .length = (size_t)(end - start), .entry.saved = true};
        leati_tuned_kernel *choice = &out->entry.choice;
        start = read_field(start, end, '\t', out->machine, sizeof out->machine);
        start = read_field(start, end, '\t', out->entry.key, sizeof out->entry.key);
        start = read_field(start, end, '\t', choice->implementation, sizeof choice->implementation);
        start = read_field(start, end, '\n', threads, sizeof threads);
        choice->threads = (int)strtol(threads, &rest, 10);
        if (start == end && *rest == '\0' && choice->threads >= 0) return true;
    }
    return false;
}

/* Opens the file and returns the offset after its heading.  If there is no file, or the file has another format, *out
 * is empty and the function returns 0. */
static size_t open_file(const char *path, leati_map *out) {
    size_t length = sizeof heading - 1;
    if (leati_map_open(out, path, NULL) != LEAT_OK) return 0;
    if (out->size >= length && out->size <= MOST_BYTES && memcmp(out->data, heading, length) == 0)
        return length;
    leati_map_close(out);
    return 0;
}

static entry *find_entry(const leati_tuning_cache *choices, const char *key) {
    for (size_t i = 0; i < choices->count; ++i)
        if (strcmp(choices->entries[i].key, key) == 0) return &choices->entries[i];
    return NULL;
}

static void put_entry(leati_tuning_cache *choices, const entry *new) {
    entry *known = find_entry(choices, new->key);
    if (!known) {
        entry *more = leati_realloc(choices->entries, choices->count + 1, sizeof *more);
        if (!more) return;
        choices->entries = more;
        known = &more[choices->count++];
    }
    *known = *new;
}

static void read_file(leati_tuning_cache *choices) {
    leati_text path = {0};
    leati_map map = {0};
    line each;
    size_t at = name_file(choices, &path) ? open_file(path.data, &map) : 0;
    while (next_line(&map, &at, &each))
        if (strcmp(each.machine, choices->machine) == 0) put_entry(choices, &each.entry);
    leati_map_close(&map);
    leati_text_fini(&path);
}

/* ---- Writing ---- */

/* Adds to `out` the lines of the old file that stay: those that new entries do not replace, without the `surplus`
 * oldest.  Returns the number of lines that new entries do not replace. */
static size_t keep_lines(const leati_tuning_cache *choices, const leati_map *map, size_t at, size_t surplus,
                         leati_text *out) {
    size_t kept = 0;
    line each;
    while (next_line(map, &at, &each)) {
        const entry *known = find_entry(choices, each.entry.key);
        if (known && !known->saved && strcmp(each.machine, choices->machine) == 0) continue;
        if (kept++ >= surplus && out) leati_text_add(out, "%.*s", (int)each.length, each.text);
    }
    return kept;
}

static void compose(const leati_tuning_cache *choices, const leati_map *map, size_t at, leati_text *out) {
    size_t lines = keep_lines(choices, map, at, 0, NULL), first = lines;
    for (size_t i = 0; i < choices->count; ++i) lines += !choices->entries[i].saved;
    size_t surplus = lines > MOST_LINES ? lines - MOST_LINES : 0;
    leati_text_add(out, "%s", heading);
    keep_lines(choices, map, at, surplus < first ? surplus : first, out);
    for (size_t i = 0; i < choices->count; ++i) {
        const entry *e = &choices->entries[i];
        if (!e->saved)
            leati_text_add(out, "%s\t%s\t%s\t%d\n", choices->machine, e->key, e->choice.implementation,
                           e->choice.threads);
    }
}

static void write_file(const char *path, const leati_text *text) {
    leat_status status = leat_file_replace(path, text->data, text->length, NULL);
    (void)status; /* Entries that are not saved are measured again. */
}

/* Reads the file again before it is written, because other processes may have written it meanwhile.  What another
 * process writes between this reading and the end of writing is lost; those entries are measured again. */
void leati_tuning_cache_save(leati_tuning_cache *choices) {
    leati_text path = {0}, text = {0};
    leati_map map = {0};
    bool any = false;
    for (size_t i = 0; i < choices->count; ++i) any = any || !choices->entries[i].saved;
    if (any && name_file(choices, &path)) {
        size_t at = open_file(path.data, &map);
        compose(choices, &map, at, &text);
        make_folder(choices->folder);
        if (text.data && !text.failed) write_file(path.data, &text);
    }
    for (size_t i = 0; i < choices->count; ++i) choices->entries[i].saved = true;
    leati_map_close(&map);
    leati_text_fini(&path);
    leati_text_fini(&text);
}

/* ---- Interface ---- */

leati_tuning_cache *leati_tuning_cache_open(const leati_backend *const *backends) {
    leati_tuning_cache *choices = leati_calloc(1, sizeof *choices);
    if (!choices) return NULL;
    name_machine(choices->machine, backends);
    choices->folder = find_folder();
    read_file(choices);
    return choices;
}

void leati_tuning_cache_close(leati_tuning_cache **choices) {
    if (!*choices) return;
    leati_free((*choices)->folder);
    leati_free((*choices)->entries);
    leati_free(*choices);
    *choices = NULL;
}

const leati_tuned_kernel *leati_tuning_cache_find(const leati_tuning_cache *choices, const char *key) {
    const entry *known = find_entry(choices, key);
    return known ? &known->choice : NULL;
}

void leati_tuning_cache_add(leati_tuning_cache *choices, const char *key, const leati_tuned_kernel *choice) {
    entry new = {.choice = *choice};
    snprintf(new.key, sizeof new.key, "%s", key);
    put_entry(choices, &new);
}
