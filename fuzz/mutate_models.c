/* SPDX-License-Identifier: Apache-2.0 */
/* Loads mutated copies of model files and counts the results: loaded, refused, out of memory, crashed, hung, or an
 * error without a message.  The mutations are a function of the seed and of the number of the mutation, so that
 * --first N --count 1 --keep FOLDER repeats one of them.
 *
 * usage: mutate_models [--seed N] [--first N] [--count N] [--keep FOLDER] FILE...
 *
 * The files are .h5, .keras, .json, .weights.h5 and .safetensors files.  If the architecture NAME.json lies beside
 * NAME.h5, NAME.weights.h5 or NAME.safetensors, the copies are read as weights of that model.  Half of the mutations
 * of a .keras file change the content of one member and repair its checksum, so that they reach the parsers behind the
 * checksum.  A child process loads the copies, with at most 1 GiB of address space and 5 seconds of CPU time for each
 * copy.  Copies that crash or hang are written to FOLDER.  The exit status is 1 if there was a crash, a hang or an
 * error without a message. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zlib.h>

#include "fuzz.h"
#include "leat/model.h"
#include "zip/zip.h"

enum { most_files = 512, copies_per_child = 250, cpu_seconds = 5, memory_bytes = 1 << 30 };

#ifdef __SANITIZE_ADDRESS__ /* AddressSanitizer reserves terabytes of addresses */
#define LIMITED false
#else
#define LIMITED true
#endif

typedef enum outcome { LOADED, REFUSED, NO_MEMORY, CRASHED, HUNG, WORDLESS, OUTCOMES } outcome;
static const char *const outcome_names[OUTCOMES] = {"loaded",  "refused", "out of memory",
                                                    "crashed", "hung",    "error without a message"};

typedef struct content {
    unsigned char *data;
    size_t bytes;
} content;

typedef struct options {
    uint64_t seed;
    long first, count;
    const char *keep;
    content files[most_files];
    content architectures[most_files]; /* of files of weights; data NULL for all others */
    const char *names[most_files];
    int file_count;
} options;

/* The counts of the results, and the number of the copy that the child is loading: memory shared with the child. */
typedef struct progress {
    long next;
    long outcomes[OUTCOMES];
} progress;

/* ---- Random numbers: splitmix64 ---- */

static uint64_t draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static size_t below(uint64_t *state, size_t limit) {
    return limit ? (size_t)(draw(state) % limit) : 0;
}

/* ---- Mutations ---- */

/* Chooses an offset: often one behind a signature of an HDF5 structure or of a zip header, otherwise the next byte that
 * is not zero, since most bytes of a model file are padding and numbers. */
static size_t choose(const content *c, uint64_t *state) {
    static const char *const signatures[] = {"TREE", "SNOD",   "HEAP",   "GCOL",  "OHDR", "OCHK",
                                             "FRHP", "FHDB",   "BTHD",   "BTLF",  "FHIB", "FAHD",
                                             "FADB", "PK\3\4", "PK\1\2", "PK\5\6"};
    size_t at = below(state, c->bytes);
    if (draw(state) % 8 == 0) return at;
    if (draw(state) % 8 == 1) return below(state, c->bytes < 96 ? c->bytes : 96);
    for (size_t i = at; i + 4 < c->bytes && i < at + 8192; ++i)
        for (size_t k = 0; k < sizeof signatures / sizeof *signatures; ++k)
            if (draw(state) % 2 && memcmp(c->data + i, signatures[k], 4) == 0) {
                size_t near = i + below(state, 192);
                return near < c->bytes ? near : i;
            }
    for (size_t i = at; i < c->bytes && i < at + 4096; ++i)
        if (c->data[i]) return i;
    return at;
}

static void set_bytes(content *c, uint64_t *state) {
    static const uint64_t values[] = {0,         1,          0xff,       0x7f,           0x80,
                                      0xffff,    0x7fffffff, 0xffffffff, 0x100000000,    UINT64_MAX,
                                      INT64_MAX, 8,          16,         0x7fffffffffff, 0x1000};
    size_t at = choose(c, state), width = (size_t)1 << draw(state) % 4;
    uint64_t value = draw(state) % 4 ? values[below(state, sizeof values / sizeof *values)] : draw(state);
    if (draw(state) % 2) at &= ~(size_t)7;
    for (size_t i = 0; i < width && at + i < c->bytes; ++i) c->data[at + i] = (unsigned char)(value >> 8 * i);
}

/* Copies one range of bytes over another one, or swaps an address with another address. */
static void duplicate(content *c, uint64_t *state) {
    size_t from = choose(c, state), to = choose(c, state),
           bytes = 1 + below(state, draw(state) % 2 ? 8 : 256);
    if (bytes > 8) from &= ~(size_t)7, to &= ~(size_t)7;
    if (bytes > c->bytes - from) bytes = c->bytes - from;
    if (bytes > c->bytes - to) bytes = c->bytes - to;
    memmove(c->data + to, c->data + from, bytes);
}

/* Writes an offset in the file where an offset could be. */
static void redirect(content *c, uint64_t *state) {
    size_t at = choose(c, state) & ~(size_t)7;
    uint64_t address = (choose(c, state) & ~(size_t)7) + (draw(state) % 8 ? 0 : below(state, 8));
    for (size_t i = 0; i < 8 && at + i < c->bytes; ++i) c->data[at + i] = (unsigned char)(address >> 8 * i);
}

static void mutate(content *c, uint64_t *state) {
    int count = draw(state) % 3 ? 1 : 1 + (int)below(state, 8);
    for (int i = 0; i < count && c->bytes > 0; ++i) {
        switch (draw(state) % 16) {
        case 0: c->bytes = below(state, c->bytes + 1); break;
        case 1:
        case 2: duplicate(c, state); break;
        case 3:
        case 4: redirect(c, state); break;
        case 5:
        case 6:
        case 7: set_bytes(c, state); break;
        case 8:
        case 9: c->data[choose(c, state)] = (unsigned char)draw(state); break;
        case 10: {
            size_t at = choose(c, state);
            ++c->data[at];
            break;
        }
        default: c->data[choose(c, state)] ^= (unsigned char)(1 << draw(state) % 8); break;
        }
    }
}

/* ---- Zip files ---- */

static void put(content *c, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) c->data[c->bytes++] = (unsigned char)(value >> 8 * i);
}

static void put_header(content *c, bool central, const char *name, const content *member, size_t offset) {
    uint32_t crc = (uint32_t)crc32_z(0, member->data, member->bytes);
    put(c, central ? 0x02014b50 : 0x04034b50, 4);
    if (central) put(c, 20, 2);
    put(c, 20, 2);
    put(c, 0, 8);
    put(c, crc, 4);
    put(c, member->bytes, 4);
    put(c, member->bytes, 4);
    put(c, strlen(name), 2);
    put(c, 0, 2);
    if (central) put(c, 0, 8), put(c, 0, 2), put(c, offset, 4);
    memcpy(c->data + c->bytes, name, strlen(name));
    c->bytes += strlen(name);
}

/* Makes a zip file of stored members from the members of `zip`, of which member `changed` is mutated. */
static content repack(const leati_zip *zip, size_t changed, uint64_t *state) {
    size_t total = 64, offsets[16] = {0};
    content members[16] = {{0}}, out = {0};
    size_t count = zip->count < 16 ? zip->count : 16;
    for (size_t i = 0; i < count; ++i) {
        members[i].bytes = (size_t)zip->members[i].bytes;
        members[i].data = malloc(members[i].bytes + 1);
        if (!members[i].data || leati_zip_read(zip, &zip->members[i], members[i].data, NULL) != LEAT_OK)
            abort();
        if (i == changed) mutate(&members[i], state);
        total += members[i].bytes + 2 * strlen(zip->members[i].name) + 128;
    }
    out.data = malloc(total);
    if (!out.data) abort();
    for (size_t i = 0; i < count; ++i) {
        offsets[i] = out.bytes;
        put_header(&out, false, zip->members[i].name, &members[i], 0);
        memcpy(out.data + out.bytes, members[i].data, members[i].bytes);
        out.bytes += members[i].bytes;
    }
    size_t directory = out.bytes;
    for (size_t i = 0; i < count; ++i) {
        put_header(&out, true, zip->members[i].name, &members[i], offsets[i]);
        free(members[i].data);
    }
    size_t end = out.bytes;
    put(&out, 0x06054b50, 4);
    put(&out, 0, 4);
    put(&out, count, 2);
    put(&out, count, 2);
    put(&out, end - directory, 4);
    put(&out, directory, 4);
    put(&out, 0, 2);
    return out;
}

/* Makes copy `number`; free() frees its data. */
static content make_copy(const options *o, long number) {
    uint64_t state = o->seed * 0x2545f4914f6cdd1d + (uint64_t)number;
    const content *original = &o->files[number % o->file_count];
    leati_zip zip;
    draw(&state);
    if (original->bytes > 4 && memcmp(original->data, "PK", 2) == 0 && draw(&state) % 2 &&
        leati_zip_open_bytes(&zip, original->data, original->bytes, "a file", NULL) == LEAT_OK) {
        content packed = repack(&zip, draw(&state) % 4 ? zip.count - 1 : below(&state, zip.count), &state);
        leati_zip_close(&zip);
        return packed;
    }
    content copy = {malloc(original->bytes + 1), original->bytes};
    if (!copy.data) abort();
    memcpy(copy.data, original->data, original->bytes);
    mutate(&copy, &state);
    return copy;
}

/* ---- Loading ---- */

static leat_status load_model(const content *c, leat_error *err) {
    leat_model *model = NULL;
    leat_status status = leat_model_load_memory(&model, c->data, c->bytes, NULL, err);
    if (status == LEAT_OK) status = leat_model_load_weights_memory(model, c->data, c->bytes, true, err);
    if (status == LEAT_EFORMAT && model) status = LEAT_OK; /* a .keras file has no weights by name */
    leat_model_destroy(&model);
    return status;
}

static leat_status load_weights(const content *architecture, const content *c, leat_error *err) {
    leat_model *model = NULL;
    leat_status status = leat_model_load_memory(&model, architecture->data, architecture->bytes, NULL, err);
    if (status == LEAT_OK) status = leat_model_load_weights_memory(model, c->data, c->bytes, false, err);
    leat_model_destroy(&model);
    return status;
}

static outcome load(const content *architecture, const content *c) {
    leat_error err = {0};
    leat_status status = architecture->data ? load_weights(architecture, c, &err) : load_model(c, &err);
    LLVMFuzzerTestOneInput(c->data, c->bytes); /* reads HDF5 files that are not models */
    if (status == LEAT_OK) return LOADED;
    if (status == LEAT_EINTERNAL || err.message[0] == '\0') return WORDLESS;
    return status == LEAT_ENOMEM ? NO_MEMORY : REFUSED;
}

/* Loads copies until the work or the child's share is done, and ends the child. */
static void run_child(const options *o, progress *shared) {
    struct rlimit memory = {memory_bytes, memory_bytes}, core = {0, 0};
    if (LIMITED) setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CORE, &core);
    for (int i = 0; i < copies_per_child && shared->next < o->first + o->count; ++i) {
        struct itimerval limit = {.it_value.tv_sec = cpu_seconds};
        content copy = make_copy(o, shared->next);
        setitimer(ITIMER_PROF, &limit, NULL);
        alarm(60 * cpu_seconds); /* for waiting that uses no CPU time */
        ++shared->outcomes[load(&o->architectures[shared->next % o->file_count], &copy)];
        free(copy.data);
        ++shared->next;
    }
    _exit(0);
}

static void keep_copy(const options *o, long number, outcome result) {
    content copy = make_copy(o, number);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-%ld", o->keep ? o->keep : ".", outcome_names[result], number);
    FILE *file = o->keep ? fopen(path, "wb") : NULL;
    if (file) {
        fwrite(copy.data, 1, copy.bytes, file);
        fclose(file);
    }
    printf("copy %ld of '%s': %s\n", number, o->names[number % o->file_count], outcome_names[result]);
    free(copy.data);
}

static void run(const options *o, progress *shared) {
    while (shared->next < o->first + o->count) {
        int status = 0;
        long wordless = shared->outcomes[WORDLESS];
        fflush(stdout);
        pid_t child = fork();
        if (child < 0) abort();
        if (child == 0) run_child(o, shared);
        if (waitpid(child, &status, 0) != child) abort();
        if (shared->outcomes[WORDLESS] > wordless)
            printf("copies before %ld: %s\n", shared->next, outcome_names[WORDLESS]);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        bool hung = WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM);
        ++shared->outcomes[hung ? HUNG : CRASHED];
        keep_copy(o, shared->next++, hung ? HUNG : CRASHED);
    }
}

/* ---- Arguments ---- */

static content read_file(const char *path) {
    struct stat about;
    FILE *file = fopen(path, "rb");
    content out = {0};
    if (!file || fstat(fileno(file), &about) != 0) {
        perror(path);
        exit(2);
    }
    out.bytes = (size_t)about.st_size;
    out.data = malloc(out.bytes + 1);
    if (!out.data || fread(out.data, 1, out.bytes, file) != out.bytes) exit(2);
    fclose(file);
    return out;
}

/* Reads NAME.json beside a file of weights NAME.*, if it is there; other files have no architecture. */
static content read_architecture(const char *path) {
    char beside[4096];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strchr(name, '.');
    if (!dot || strcmp(dot, ".json") == 0 || strcmp(dot, ".keras") == 0) return (content){0};
    snprintf(beside, sizeof beside, "%.*s.json", (int)(dot - path), path);
    return access(beside, R_OK) == 0 ? read_file(beside) : (content){0};
}

static bool parse(options *o, int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        bool value = i + 1 < argc;
        if (value && strcmp(argv[i], "--seed") == 0)
            o->seed = strtoull(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--first") == 0)
            o->first = strtol(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--count") == 0)
            o->count = strtol(argv[++i], NULL, 10);
        else if (value && strcmp(argv[i], "--keep") == 0)
            o->keep = argv[++i];
        else if (argv[i][0] != '-' && o->file_count < most_files) {
            o->names[o->file_count] = argv[i];
            o->architectures[o->file_count] = read_architecture(argv[i]);
            o->files[o->file_count++] = read_file(argv[i]);
        } else
            return false;
    }
    return o->file_count > 0;
}

int main(int argc, char **argv) {
    static options o = {.seed = 1, .count = 1000};
    if (!parse(&o, argc, argv)) {
        fprintf(stderr, "usage: mutate_models [--seed N] [--first N] [--count N] [--keep FOLDER] FILE...\n");
        return 2;
    }
    progress *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) abort();
    shared->next = o.first;
    run(&o, shared);
    for (int i = 0; i < OUTCOMES; ++i) printf("%-24s %ld\n", outcome_names[i], shared->outcomes[i]);
    bool failed = shared->outcomes[CRASHED] || shared->outcomes[HUNG] || shared->outcomes[WORDLESS];
    munmap(shared, sizeof *shared);
    for (int i = 0; i < o.file_count; ++i) free(o.files[i].data), free(o.architectures[i].data);
    return failed ? 1 : 0;
}
