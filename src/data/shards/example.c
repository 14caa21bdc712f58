/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes protocol buffers as far as tf.train.Example needs them.  Source: protobuf.dev, "Encoding".
 * Room: data. */
#include "data/shards/example.h"

#include <string.h>

typedef struct message {
    const unsigned char *at, *end;
} message;

/* A field of a message.  `value` is a number, `data` the content of a field with a length. */
typedef struct entry {
    uint32_t number;
    int type; /* 0: varint, 1: 8 bytes, 2: with a length, 5: 4 bytes */
    uint64_t value;
    const unsigned char *data;
    size_t bytes;
} entry;

static bool read_varint(message *m, uint64_t *out) {
    *out = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (m->at == m->end) return false;
        const unsigned char byte = *m->at++;
        if (shift == 63 && byte > 1) return false;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

/* Reads the next field.  Returns false at the end of the message, where m->at is m->end, and if the field is
 * damaged, where
 * m->at becomes NULL. */
static bool next_entry(message *m, entry *out) {
    uint64_t tag = 0;
    if (m->at == m->end) return false;
    bool fits = read_varint(m, &tag) && tag >> 3 <= UINT32_MAX;
    *out = (entry){.number = (uint32_t)(tag >> 3), .type = (int)(tag & 7)};
    if (fits && out->type == 0) {
        fits = read_varint(m, &out->value);
    } else if (fits) {
        uint64_t bytes = out->type == 1 ? 8 : 4;
        fits = out->type == 1 || out->type == 5 || (out->type == 2 && read_varint(m, &bytes));
        fits = fits && bytes <= (uint64_t)(m->end - m->at);
        out->data = m->at;
        out->bytes = fits ? (size_t)bytes : 0;
        if (fits) m->at += bytes;
    }
    if (!fits) m->at = NULL;
    return fits;
}

static message message_of(const entry *e) {
    return (message){e->data, e->data + e->bytes};
}

/* Returns the message of a list; an empty feature has none. */
static message message_of_list(const leati_feature *feature) {
    if (!feature->data) return (message){NULL, NULL};
    return (message){feature->data, feature->data + feature->bytes};
}

/* Reads an entry of the map: its name and its feature. */
static bool read_pair(const entry *pair, entry *name, entry *feature) {
    message m = message_of(pair);
    *name = (entry){.data = pair->data};
    *feature = (entry){.data = pair->data};
    for (entry e; next_entry(&m, &e);) {
        if (e.number == 1 && e.type == 2) *name = e;
        if (e.number == 2 && e.type == 2) *feature = e;
    }
    return m.at != NULL;
}

/* Reads a feature: the last of its lists counts. */
static bool read_feature(const entry *feature, leati_feature *out) {
    message m = message_of(feature);
    *out = (leati_feature){0};
    for (entry e; next_entry(&m, &e);)
        if (e.number >= 1 && e.number <= 3 && e.type == 2)
            *out = (leati_feature){(leati_feature_kind)e.number, e.data, e.bytes};
    return m.at != NULL;
}

/* Receives a pair of the map: its name and its feature.  Returns false if the feature is damaged. */
typedef bool visit_pair(void *user, const entry *name, const entry *feature);

/* Visits all pairs of an Example.  Returns false if it is damaged. */
static bool walk_pairs(const void *example, size_t bytes, visit_pair *visit, void *user) {
    message root = {example, (const unsigned char *)example + bytes};
    for (entry features; next_entry(&root, &features);) {
        if (features.number != 1 || features.type != 2) continue;
        message map = message_of(&features);
        for (entry pair, name, feature; next_entry(&map, &pair);) {
            if (pair.number != 1 || pair.type != 2) continue;
            if (!read_pair(&pair, &name, &feature) || !visit(user, &name, &feature)) return false;
        }
        if (!map.at) return false;
    }
    return root.at != NULL;
}

/* The feature that is looked for. */
typedef struct search {
    const char *name;
    leati_feature *out;
    bool found;
} search;

static bool compare_pair(void *user, const entry *name, const entry *feature) {
    search *s = user;
    const size_t length = strlen(s->name);
    if (name->bytes != length || (length > 0 && memcmp(name->data, s->name, length) != 0)) return true;
    s->found = read_feature(feature, s->out);
    return s->found;
}

bool leati_example_find(const void *example, size_t bytes, const char *name, leati_feature *out,
                        bool *found) {
    search s = {name, out, false};
    *out = (leati_feature){0};
    const bool fits = walk_pairs(example, bytes, compare_pair, &s);
    *found = s.found;
    return fits;
}

/* The function that receives names. */
typedef struct naming {
    void (*visit)(void *user, const char *name, size_t bytes);
    void *user;
} naming;

static bool name_pair(void *user, const entry *name, const entry *feature) {
    const naming *to = user;
    (void)feature;
    to->visit(to->user, (const char *)name->data, name->bytes);
    return true;
}

bool leati_example_names(const void *example, size_t bytes,
                         void (*visit)(void *user, const char *name, size_t bytes), void *user) {
    naming to = {visit, user};
    return walk_pairs(example, bytes, name_pair, &to);
}

bool leati_feature_count(const leati_feature *feature, int64_t *out) {
    message m = message_of_list(feature);
    *out = 0;
    if (!feature->data) return true;
    for (entry e; next_entry(&m, &e);) {
        if (e.number != 1) continue;
        if (feature->kind == LEATI_FEATURE_FLOATS && e.type == 2) {
            if (e.bytes % 4 != 0) return false;
            *out += (int64_t)(e.bytes / 4);
        } else if (feature->kind == LEATI_FEATURE_INTEGERS && e.type == 2) {
            for (size_t i = 0; i < e.bytes; ++i) *out += e.data[i] < 128;
            if (e.bytes > 0 && e.data[e.bytes - 1] >= 128) return false;
        } else {
            ++*out;
        }
    }
    return m.at != NULL;
}

bool leati_feature_bytes(const leati_feature *feature, const unsigned char **out, size_t *bytes) {
    message m = message_of_list(feature);
    if (!feature->data) return false;
    for (entry e; next_entry(&m, &e);) {
        if (e.number != 1 || e.type != 2) continue;
        *out = e.data;
        *bytes = e.bytes;
        return true;
    }
    return false;
}

bool leati_feature_floats(const leati_feature *feature, float *out, int64_t count) {
    message m = message_of_list(feature);
    if (!feature->data) return count == 0;
    for (entry e; next_entry(&m, &e);) {
        if (e.number != 1) continue;
        const int64_t values = (int64_t)(e.bytes / 4);
        if ((e.type != 2 && e.type != 5) || e.bytes % 4 != 0 || values > count) return false;
        if (values > 0) memcpy(out, e.data, e.bytes); /* little-endian, as this machine */
        out += values;
        count -= values;
    }
    return m.at != NULL && count == 0;
}

bool leati_feature_integers(const leati_feature *feature, int64_t *out, int64_t count) {
    message m = message_of_list(feature);
    if (!feature->data) return count == 0;
    for (entry e; next_entry(&m, &e);) {
        if (e.number != 1) continue;
        if (e.type == 0) {
            if (count-- == 0) return false;
            *out++ = (int64_t)e.value;
        } else if (e.type == 2) {
            message list = message_of(&e);
            while (list.at < list.end) {
                uint64_t value = 0;
                if (!read_varint(&list, &value) || count-- == 0) return false;
                *out++ = (int64_t)value;
            }
        } else {
            return false;
        }
    }
    return m.at != NULL && count == 0;
}
