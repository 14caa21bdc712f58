/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the files of training or validation as Keras does.  Room: data. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/images.h"

/* ---- numpy.random.RandomState(seed).shuffle, which image_dataset_from_directory calls ---- */

enum { WORDS = 624, MIDDLE = 397 };

/* The Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998). */
typedef struct twister {
    uint32_t word[WORDS];
    int next;
} twister;

static void seed_twister(twister *t, uint32_t seed) {
    for (int i = 0; i < WORDS; ++i) {
        t->word[i] = seed;
        seed = 1812433253u * (seed ^ seed >> 30) + (uint32_t)i + 1;
    }
    t->next = WORDS;
}

static void refill(twister *t) {
    for (int i = 0; i < WORDS; ++i) {
        const uint32_t y = (t->word[i] & 0x80000000u) | (t->word[(i + 1) % WORDS] & 0x7fffffffu);
        t->word[i] = t->word[(i + MIDDLE) % WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    t->next = 0;
}

static uint32_t draw(twister *t) {
    if (t->next == WORDS) refill(t);
    uint32_t y = t->word[t->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* Returns an integer from 0 to `most`, each with the same probability. */
static uint32_t draw_up_to(twister *t, uint32_t most) {
    uint32_t mask = most, value = 0;
    for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
    do value = draw(t) & mask;
    while (value > most);
    return value;
}

/* Fills `order` with the numbers of the files in the order to which NumPy shuffles them. */
static void shuffle(int64_t *order, int64_t count, uint32_t seed) {
    twister t;
    seed_twister(&t, seed);
    for (int64_t i = 0; i < count; ++i) order[i] = i;
    for (int64_t i = count - 1; i > 0; --i) {
        const int64_t other = draw_up_to(&t, (uint32_t)i), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

/* ---- Subsets ---- */

/* Marks the last int(share * count) files of the order, or of the list if `order` is NULL. */
static void mark_last(bool *chosen, const int64_t *order, int64_t count, double share) {
    const int64_t last = (int64_t)(share * (double)count);
    for (int64_t i = count - last; i < count; ++i) chosen[order ? order[i] : i] = true;
}

/* Marks the first int(share * count) files of each run of files with the same class; a list without classes, or from
 * a CSV file, is one run, as in flow_from_dataframe. */
static void mark_first(bool *chosen, const leati_image_list *list, double share, bool by_class) {
    for (int64_t begin = 0, end = 0; begin < list->count; begin = end) {
        for (end = begin + 1;
             end < list->count && (!by_class || list->files[end].label == list->files[begin].label);)
            ++end;
        const int64_t first = (int64_t)(share * (double)(end - begin));
        for (int64_t i = begin; i < begin + first; ++i) chosen[i] = true;
    }
}

static leat_status mark(bool *chosen, const leati_image_list *list, const leati_image_choices *choices,
                        leat_error *err) {
    if (choices->split == LEATI_SPLIT_PER_CLASS) {
        mark_first(chosen, list, choices->validation, !list->from_csv);
        return LEAT_OK;
    }
    if (choices->split == LEATI_SPLIT_ORDERED) {
        mark_last(chosen, NULL, list->count, choices->validation);
        return LEAT_OK;
    }
    int64_t *order = leati_calloc((size_t)list->count, sizeof *order);
    if (!order)
        return leati_fail_memory(err, (size_t)list->count * sizeof *order, "the split of a list of files");
    shuffle(order, list->count, choices->seed);
    mark_last(chosen, order, list->count, choices->validation);
    leati_free(order);
    return LEAT_OK;
}

/* Removes the files that do not belong to the subset. */
static void keep(leati_image_list *list, const bool *chosen, bool wanted) {
    int64_t kept = 0;
    for (int64_t i = 0; i < list->count; ++i)
        if (chosen[i] == wanted)
            list->files[kept++] = list->files[i];
        else
            leati_image_file_fini(&list->files[i]);
    list->count = kept;
}

leat_status leati_image_list_split(leati_image_list *list, const leati_image_choices *choices,
                                   leat_error *err) {
    if (choices->validation == 0) return LEAT_OK;
    const int64_t count = list->count;
    bool *chosen = leati_calloc((size_t)count, sizeof *chosen);
    if (!chosen) return leati_fail_memory(err, (size_t)count, "the split of a list of files");
    leat_status status = mark(chosen, list, choices, err);
    if (status == LEAT_OK) keep(list, chosen, choices->is_validation);
    leati_free(chosen);
    if (status != LEAT_OK || list->count > 0) return status;
    return leati_fail(err, LEAT_EINVAL, "of %lld files, none belongs to the subset", (long long)count);
}
