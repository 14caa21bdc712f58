/* SPDX-License-Identifier: Apache-2.0 */
#include "support/golden.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "json/json.h"

/* Returns the folder in front of a group: that of Keras 2.3.1 unless the group names a version of Keras. */
static const char *keras_of(const char *group) {
    return strncmp(group, "keras-", strlen("keras-")) == 0 ? "" : "keras-2.3.1/";
}

static int is_case(const struct dirent *entry) {
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".npz") == 0;
}

int golden_each(const char *group, void (*visit)(const char *name, void *user), void *user) {
    char folder[512];
    snprintf(folder, sizeof folder, LEAT_SOURCE_DIR "/tests/golden/%s%s", keras_of(group), group);
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_case, alphasort);
    assert_true(count > 0);
    for (int i = 0; i < count; ++i) {
        *strrchr(entries[i]->d_name, '.') = '\0';
        visit(entries[i]->d_name, user);
        free(entries[i]);
    }
    free(entries);
    return count;
}

void golden_open(golden *out, const char *group, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s%s/%s.npz", keras_of(group), group, name);
    snprintf(out->name, sizeof out->name, "%s/%s", group, name);
    out->npz = test_npz_open(path);
    out->worst = NULL;
    out->meta = golden_json(out, "meta");
}

void golden_close(golden *g) {
    json_decref(g->meta);
    leat_npz_close(&g->npz);
}

const char *golden_text(const golden *g, const char *key) {
    const char *text = json_string_value(json_object_get(g->meta, key));
    return text ? text : "";
}

json_t *golden_json(const golden *g, const char *member) {
    leat_tensor text = test_npz_get(g->npz, member);
    json_t *value = NULL;
    leat_error err = {0};
    if (leati_json_parse(&value, text.data, leat_tensor_bytes(&text), &err) != LEAT_OK)
        fail_msg("%s: '%s': %s", g->name, member, err.message);
    return value;
}

int golden_member(const golden *g, const char *prefix, int index, leat_tensor *out) {
    char name[64];
    snprintf(name, sizeof name, "%s%d", prefix, index);
    if (!test_npz_has(g->npz, name)) return 0;
    *out = test_npz_get(g->npz, name);
    return 1;
}

double golden_distance(const float *a, const float *b, int64_t count) {
    double square = 0.0, worst = 0.0;
    for (int64_t i = 0; i < count; ++i) {
        if (isfinite(b[i])) square += (double)b[i] * (double)b[i];
    }
    double scale = fmax(sqrt(square / (double)(count ? count : 1)), 2e-3);
    for (int64_t i = 0; i < count; ++i) {
        if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))) continue;
        double distance = fabs((double)a[i] - (double)b[i]) / (fabs((double)b[i]) + scale);
        if (!(distance <= worst)) worst = isnan(distance) ? (double)INFINITY : distance;
    }
    return worst;
}

void golden_compare(const golden *g, const char *what, const float *a, const float *b, int64_t count,
                    double tolerance) {
    double distance = golden_distance(a, b, count);
    if (g->worst && distance > *g->worst) *g->worst = distance;
    if (distance <= tolerance) return;
    int shown = 0;
    for (int64_t i = 0; i < count && shown < 8; ++i) {
        if (golden_distance(a + i, b + i, 1) <= tolerance) continue;
        ++shown;
        print_message("  [%lld] %.9g, expected %.9g\n", (long long)i, (double)a[i], (double)b[i]);
    }
    fail_msg("%s: '%s' is %g from Keras's, %g is allowed", g->name, what, distance, tolerance);
}
