/* SPDX-License-Identifier: Apache-2.0 */
/* Measures, without leat, what this machine allows any feed between two processes: the lower bounds of bench_feed's
 * times.
 *     bench_limits [--json]
 * It times a copy of a batch into a ring of 11 shared slots, by one process and by two at once (memcpy, and stores
 * that bypass the caches); a word sent to another process and back by futex, between cores and on one core, and by
 * spinning; 1 KB batches through a bare ring whose two ends spin; and a process that is forked by a forked process.
 * */
#define _GNU_SOURCE /* MAP_ANONYMOUS, sched_setaffinity, syscall */
#include <linux/futex.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { slots = 11, page = 4096, small = 1024, trips = 2000, messages = 200000, samples = 7 };

static const int64_t payloads[] = {1024, 614400, 4800000, 38535168};
enum { payload_count = sizeof payloads / sizeof *payloads };

static int64_t now_ns(void) {
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pause_spin(void) {
#if defined(__SSE2__)
    _mm_pause();
#endif
}

static void *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("bench_limits: mmap");
        exit(1);
    }
    memset(memory, 0, bytes);
    return memory;
}

static pid_t fork_or_exit(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child >= 0) return child;
    perror("bench_limits: fork");
    exit(1);
}

/* Moves the process to the nth of the cores that it was started on. */
static void stay_on(int nth) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0) return;
    nth %= CPU_COUNT(&all);
    for (size_t core = 0; core < CPU_SETSIZE; ++core) {
        if (!CPU_ISSET(core, &all) || nth-- > 0) continue;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

/* ---- Copying ---- */

typedef void copy_function(void *to, const void *from, size_t bytes);

static void copy_cached(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
}

#if defined(__SSE2__)
static void copy_past_caches(void *to, const void *from, size_t bytes) {
    __m128i *out = to;
    const __m128i *in = from;
    for (size_t i = 0; i < bytes / 64; ++i, in += 4, out += 4) {
        _mm_prefetch((const char *)(in + 64), _MM_HINT_NTA);
        __m128i a = _mm_load_si128(in), b = _mm_load_si128(in + 1), c = _mm_load_si128(in + 2),
                d = _mm_load_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    _mm_sfence();
    memcpy(out, in, bytes % 64);
}
#else
#define copy_past_caches copy_cached
#endif

typedef struct copy_race {
    _Atomic int ready;
    double us[2];
} copy_race;

/* Fills a ring in turns with other copiers, each from its own array.  Returns the median us of one batch. */
static double time_copies(copy_function *copy, unsigned char *ring, size_t bytes, int number, int copiers,
                          copy_race *race) {
    size_t stride = (bytes + page - 1) / page * page;
    unsigned char *source = aligned_alloc(page, stride);
    if (!source) exit(1);
    memset(source, number + 1, stride);
    for (size_t i = 0; i < stride * slots; i += page) ((volatile unsigned char *)ring)[i] = 1;
    atomic_fetch_add(&race->ready, 1);
    while (atomic_load(&race->ready) < copiers) pause_spin();
    int turns = (int)(40000000 / bytes);
    turns = turns < slots ? slots : turns > 20000 ? 20000 : turns;
    double times[samples];
    for (int s = 0; s < samples; ++s) {
        int64_t start = now_ns();
        for (int i = 0; i < turns; ++i)
            copy(ring + (size_t)((i * copiers + number) % slots) * stride, source, bytes);
        times[s] = (double)(now_ns() - start) / 1000 / turns;
    }
    free(source);
    return median(times, samples);
}

/* Returns the us per batch that `copiers` processes reach together. */
static double copies_of(copy_function *copy, int64_t payload, int copiers) {
    size_t bytes = (size_t)payload, stride = (bytes + page - 1) / page * page;
    unsigned char *ring = map(stride * slots);
    copy_race *race = map(sizeof *race);
    for (int p = 0; p < copiers; ++p)
        if (fork_or_exit() == 0) {
            stay_on(p);
            race->us[p] = time_copies(copy, ring, bytes, p, copiers, race);
            _exit(0);
        }
    double rate = 0;
    while (wait(NULL) > 0) continue;
    for (int p = 0; p < copiers; ++p) rate += race->us[p] > 0 ? 1 / race->us[p] : 0;
    munmap(ring, stride * slots);
    munmap(race, sizeof *race);
    return rate > 0 ? 1 / rate : 0;
}

/* ---- Passing a word ---- */

typedef struct shared_words {
    alignas(64) _Atomic uint32_t there;
    alignas(64) _Atomic uint32_t back;
    alignas(64) _Atomic uint64_t written;
    alignas(64) _Atomic uint64_t read;
    alignas(64) unsigned char batches[slots][small];
} shared_words;

static void futex(_Atomic uint32_t *word, int operation, uint32_t value) {
    syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static void set(_Atomic uint32_t *word, uint32_t value, bool spin) {
    atomic_store(word, value);
    if (!spin) futex(word, FUTEX_WAKE, 1);
}

static void await(_Atomic uint32_t *word, uint32_t value, bool spin) {
    for (uint32_t seen; (seen = atomic_load(word)) < value;) {
        if (spin)
            pause_spin();
        else
            futex(word, FUTEX_WAIT, seen);
    }
}

/* Returns the us of a word to another process and back. */
static double round_trip(bool spin, bool same_core) {
    shared_words *w = map(sizeof *w);
    pid_t other = fork_or_exit();
    stay_on(other == 0 || same_core ? 0 : 1);
    if (other == 0) {
        for (uint32_t i = 1; i <= trips * samples; ++i) {
            await(&w->there, i, spin);
            set(&w->back, i, spin);
        }
        _exit(0);
    }
    double times[samples];
    uint32_t i = 0;
    for (int s = 0; s < samples; ++s) {
        int64_t start = now_ns();
        for (int trip = 0; trip < trips; ++trip) {
            set(&w->there, ++i, spin);
            await(&w->back, i, spin);
        }
        times[s] = (double)(now_ns() - start) / 1000 / trips;
    }
    waitpid(other, NULL, 0);
    munmap(w, sizeof *w);
    return median(times, samples);
}

/* Returns the us that a thread needs to wake a process that has slept on another core for a millisecond. */
static double wake_up(void) {
    enum { wakes = 200 };
    double times[wakes];
    shared_words *w = map(sizeof *w);
    pid_t other = fork_or_exit();
    stay_on(other == 0 ? 1 : 0);
    if (other == 0) {
        for (uint32_t i = 1; i <= wakes; ++i) await(&w->there, i, false);
        _exit(0);
    }
    for (uint32_t i = 1; i <= wakes; ++i) {
        for (int64_t end = now_ns() + 1000000; now_ns() < end;) pause_spin();
        int64_t start = now_ns();
        set(&w->there, i, false);
        times[i - 1] = (double)(now_ns() - start) / 1000;
    }
    waitpid(other, NULL, 0);
    munmap(w, sizeof *w);
    return median(times, wakes);
}

/* Returns the us per batch of 1 KB from one process to another that reads it; they wait only for free and ready
 * slots. */
static double bare_ring(void) {
    shared_words *w = map(sizeof *w);
    static unsigned char source[small];
    pid_t other = fork_or_exit();
    stay_on(other == 0 ? 1 : 0);
    if (other == 0) {
        for (uint64_t i = 0; i < messages; ++i) {
            while (i - atomic_load_explicit(&w->read, memory_order_acquire) >= slots) pause_spin();
            memcpy(w->batches[i % slots], source, small);
            w->batches[i % slots][0] = (unsigned char)i;
            atomic_store_explicit(&w->written, i + 1, memory_order_release);
        }
        _exit(0);
    }
    int64_t start = now_ns();
    int wrong = 0;
    for (uint64_t i = 0; i < messages; ++i) {
        while (atomic_load_explicit(&w->written, memory_order_acquire) <= i) pause_spin();
        wrong += w->batches[i % slots][0] != (unsigned char)i;
        atomic_store_explicit(&w->read, i + 1, memory_order_release);
    }
    double us = (double)(now_ns() - start) / 1000 / messages;
    waitpid(other, NULL, 0);
    munmap(w, sizeof *w);
    return wrong ? 0 : us;
}

/* Returns the ms from a fork until a grandchild process has written its first word. */
static double first_word(void) {
    double times[samples];
    for (int s = 0; s < samples; ++s) {
        shared_words *w = map(sizeof *w);
        int64_t start = now_ns();
        pid_t child = fork_or_exit();
        if (child == 0) {
            pid_t grandchild = fork();
            if (grandchild == 0) {
                set(&w->there, 1, false);
                _exit(0);
            }
            if (grandchild > 0) waitpid(grandchild, NULL, 0);
            _exit(grandchild < 0);
        }
        await(&w->there, 1, false);
        times[s] = (double)(now_ns() - start) / 1e6;
        waitpid(child, NULL, 0);
        munmap(w, sizeof *w);
    }
    return median(times, samples);
}

static double trip_by_futex(void) {
    return round_trip(false, false);
}

static double trip_on_one_core(void) {
    return round_trip(false, true);
}

static double trip_by_spinning(void) {
    return round_trip(true, false);
}

/* Runs `measure` in a process of its own, since it changes the cores that it runs on. */
static double apart(double (*measure)(void)) {
    double *result = map(sizeof *result);
    if (fork_or_exit() == 0) {
        *result = measure();
        _exit(0);
    }
    while (wait(NULL) > 0) continue;
    double value = *result;
    munmap(result, sizeof *result);
    return value;
}

static void print_copies(bool json) {
    if (!json)
        printf("%10s  %12s  %12s  %12s  %12s\n", "us per batch", "1 memcpy", "2 memcpy", "1 past",
               "2 past caches");
    for (int p = 0; p < payload_count; ++p) {
        double us[4];
        for (int i = 0; i < 4; ++i)
            us[i] = copies_of(i < 2 ? copy_cached : copy_past_caches, payloads[p], 1 + i % 2);
        if (!json)
            printf("%10lld  %12.5g  %12.5g  %12.5g  %12.5g\n", (long long)payloads[p], us[0], us[1], us[2],
                   us[3]);
        else
            printf("%s\"%lld\": {\"one_us\": %.5g, \"two_us\": %.5g, \"past_one_us\": %.5g, \"past_two_us\": "
                   "%.5g}",
                   p ? ", " : "{\"copy\": {", (long long)payloads[p], us[0], us[1], us[2], us[3]);
    }
    if (json) printf("}");
}

static void print_words(bool json) {
    static const struct {
        double (*measure)(void);
        const char *key, *label;
    } rows[] = {{trip_by_futex, "futex_us", "us there and back by futex, between cores"},
                {trip_on_one_core, "futex_one_core_us", "us there and back by futex, on one core"},
                {trip_by_spinning, "spin_us", "us there and back by spinning"},
                {wake_up, "wake_us", "us that it costs to wake a sleeper on another core"},
                {bare_ring, "bare_ring_us", "us a batch of 1 KB through a bare ring whose ends spin"},
                {first_word, "first_word_ms", "ms to the first word from a fork of a fork"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        double value = apart(rows[i].measure);
        if (json)
            printf(", \"%s\": %.5g", rows[i].key, value);
        else
            printf("%10.4g  %s\n", value, rows[i].label);
    }
    if (json) printf("}\n");
}

int main(int count, char **words) {
    bool json = count > 1 && strcmp(words[1], "--json") == 0;
    if (count > 2 || (count == 2 && !json)) {
        fprintf(stderr, "bench_limits: unknown option '%s'; expected --json\n", words[1]);
        return 2;
    }
    print_copies(json);
    print_words(json);
    return 0;
}
