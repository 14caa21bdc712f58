/* SPDX-License-Identifier: Apache-2.0 */
/* Reads .npz files: mapped zip files whose members are parsed at the first access.  Room: data. */
#include "data/npz.h"

#include <string.h>

#include "base/error.h"
#include "base/os/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "zip/zip.h"

/* The checksum of a stored array is verified at the first access if the array is not larger, which takes a fraction
 * of a second.  A larger array may be much larger than what is read of it. */
#define MOST_CHECKED_BYTES ((size_t)256 << 20)

/* More than the header of an array of numbers. */
#define START_BYTES ((size_t)64 << 10)

typedef struct array {
    char *name;
    const leati_zip_member *member; /* NULL: the file is a .npy file */
    bool parsed;
    leati_array npy;
    void *unpacked; /* a deflated member after unpacking; NULL: not needed yet */
    void *ordered;  /* a copy in C order; NULL: not needed */
    void *native;   /* an aligned copy in this machine's byte order; NULL: not needed yet */
} array;

struct leat_npz {
    leati_map map; /* empty after leati_npz_open_bytes */
    const unsigned char *data;
    size_t size;
    char *label;
    leati_zip zip;
    array *arrays;
    int count;
};

/* Adds the array x for the member "x.npy"; ignores members with other names. */
static leat_status add_array(leat_npz *npz, const leati_zip_member *member, leat_error *err) {
    size_t length = strlen(member->name);
    if (length < 4 || strcmp(member->name + length - 4, ".npy") != 0) return LEAT_OK;
    if (leati_zip_find(&npz->zip, member->name) != member)
        return LEAT_OK; /* a later member replaces this one */
    array *added = &npz->arrays[npz->count];
    added->member = member;
    added->name = leati_strdup(member->name);
    if (!added->name) return leati_fail_memory(err, length, "an array's name");
    added->name[length - 4] = '\0';
    ++npz->count;
    return LEAT_OK;
}

static leat_status list_members(leat_npz *npz, leat_error *err) {
    LEATI_TRY(leati_zip_open_bytes(&npz->zip, npz->data, npz->size, npz->label, err));
    if (npz->zip.count > INT32_MAX)
        return leati_fail(err, LEAT_ENOTSUP, "'%s': too many members", npz->label);
    npz->arrays = leati_calloc(npz->zip.count, sizeof *npz->arrays);
    if (!npz->arrays) return leati_fail_memory(err, npz->zip.count * sizeof *npz->arrays, "a list of arrays");
    for (size_t i = 0; i < npz->zip.count; ++i) LEATI_TRY(add_array(npz, &npz->zip.members[i], err));
    return LEAT_OK;
}

static leat_status list_single(leat_npz *npz, leat_error *err) {
    npz->arrays = leati_calloc(1, sizeof *npz->arrays);
    if (!npz->arrays) return leati_fail_memory(err, sizeof *npz->arrays, "a list of arrays");
    npz->arrays[0].name = leati_strdup("");
    npz->count = 1;
    return npz->arrays[0].name ? LEAT_OK : leati_fail_memory(err, 1, "an array's name");
}

static leat_status list_arrays(leat_npz *npz, leat_error *err) {
    if (npz->size >= 2 && memcmp(npz->data, "PK", 2) == 0) return list_members(npz, err);
    if (npz->size >= 6 && memcmp(npz->data, "\x93NUMPY", 6) == 0) return list_single(npz, err);
    return leati_fail(err, LEAT_EFORMAT,
                      "'%s' is neither an .npz nor an .npy file: expected it to begin with PK or \\x93NUMPY",
                      npz->label);
}

/* Opens an .npz file and takes over the mapping, also on failure. */
static leat_status open_map(leat_npz **out, leati_map map, const void *data, size_t size, const char *label,
                            leat_error *err) {
    leat_npz *npz = leati_calloc(1, sizeof *npz);
    *out = npz;
    if (!npz) {
        leati_map_close(&map);
        return leati_fail_memory(err, sizeof *npz, "an .npz file");
    }
    *npz = (leat_npz){.map = map, .data = data, .size = size, .label = leati_strdup(label)};
    leat_status status =
        npz->label ? list_arrays(npz, err) : leati_fail_memory(err, strlen(label), "a file name");
    if (status != LEAT_OK) leat_npz_close(out);
    return status;
}

leat_status leati_npz_open_bytes(leat_npz **out, const void *data, size_t size, const char *label,
                                 leat_error *err) {
    return open_map(out, (leati_map){0}, data, size, label, err);
}

leat_status leati_npz_open_guarded(leat_npz **out, const char *path, leat_error *err) {
    leati_map map;
    *out = NULL;
    LEATI_TRY(leati_map_open_guarded(&map, path, err));
    return open_map(out, map, map.data, map.size, path, err);
}

leat_status leat_npz_open(leat_npz **out, const char *path, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(path, err);
    leati_map map;
    LEATI_TRY(leati_map_open(&map, path, err));
    return open_map(out, map, map.data, map.size, path, err);
}

void leat_npz_close(leat_npz **npz) {
    if (!npz || !*npz) return;
    leat_npz *closed = *npz;
    *npz = NULL;
    for (int i = 0; closed->arrays && i < closed->count; ++i) {
        leati_free(closed->arrays[i].name);
        leati_free(closed->arrays[i].unpacked);
        leati_free(closed->arrays[i].ordered);
        leati_free(closed->arrays[i].native);
    }
    leati_free(closed->arrays);
    leati_zip_close(&closed->zip);
    leati_map_close(&closed->map);
    leati_free(closed->label);
    leati_free(closed);
}

int leat_npz_count(const leat_npz *npz) {
    if (!npz) return 0;
    return npz->count;
}

const char *leat_npz_name(const leat_npz *npz, int index) {
    return npz && index >= 0 && index < npz->count ? npz->arrays[index].name : NULL;
}

/* Checks a deflated member, before it is unpacked, against the size of the array that its beginning describes. */
static leat_status check_claim(leat_npz *npz, const leati_zip_member *member, leat_error *err) {
    leati_array start;
    size_t present = member->bytes < START_BYTES ? (size_t)member->bytes : START_BYTES;
    unsigned char *data = leati_calloc(present ? present : 1, 1);
    if (!data) return leati_fail_memory(err, present, "the beginning of an array");
    leat_status status = leati_zip_read_start(&npz->zip, member, data, present, err);
    if (status == LEAT_OK)
        status = leati_npy_parse_start(&start, data, present, (size_t)member->bytes, npz->label, err);
    leati_free(data);
    return status;
}

/* Gives the bytes of an array's .npy file, in place or unpacked. */
static leat_status get_file(leat_npz *npz, array *wanted, const unsigned char **data, size_t *size,
                            leat_error *err) {
    const leati_zip_member *member = wanted->member;
    *data = member ? member->packed : npz->data;
    *size = member ? (size_t)member->bytes : npz->size;
    if (!member) return LEAT_OK;
    if (member->stored)
        return *size <= MOST_CHECKED_BYTES ? leati_zip_check(&npz->zip, member, err) : LEAT_OK;
    if (!wanted->unpacked) {
        LEATI_TRY(check_claim(npz, member, err));
        wanted->unpacked = leati_calloc_aligned(*size);
        if (!wanted->unpacked) return leati_fail_memory(err, *size, "an unpacked array");
        leat_status status = leati_zip_read(&npz->zip, member, wanted->unpacked, err);
        if (status != LEAT_OK) {
            leati_free(wanted->unpacked);
            wanted->unpacked = NULL;
            return status;
        }
    }
    *data = wanted->unpacked;
    return LEAT_OK;
}

static leat_status parse(leat_npz *npz, array *wanted, leat_error *err) {
    const unsigned char *data;
    size_t size;
    if (wanted->parsed) return LEAT_OK;
    LEATI_TRY(get_file(npz, wanted, &data, &size, err));
    LEATI_TRY(leati_npy_parse(&wanted->npy, data, size, npz->label, err));
    wanted->npy.map = wanted->unpacked ? NULL : &npz->map;
    if (wanted->npy.fortran) {
        wanted->ordered = leati_calloc_aligned(wanted->npy.bytes);
        if (!wanted->ordered) return leati_fail_memory(err, wanted->npy.bytes, "an array in C order");
        leati_array_to_c_order(&wanted->npy, wanted->ordered);
        LEATI_TRY(leati_map_check(wanted->npy.map, wanted->npy.data, wanted->npy.bytes, err));
        wanted->npy.data = wanted->ordered;
        wanted->npy.map = NULL;
        wanted->npy.fortran = false;
    }
    wanted->parsed = true;
    return LEAT_OK;
}

static leat_status not_found(const leat_npz *npz, const char *name, leat_error *err) {
    enum { MOST_NAMES = 16 };
    const char *names[MOST_NAMES];
    leati_text all = {0};
    if (npz->count == 1 && npz->arrays[0].name[0] == '\0')
        return leati_fail(err, LEAT_ENOTFOUND, "'%s' is an .npy file, one array without a name", npz->label);
    for (int i = 0; i < npz->count && i < MOST_NAMES; ++i) names[i] = npz->arrays[i].name;
    leati_text_add_names(&all, names, (size_t)npz->count, MOST_NAMES);
    leat_status status = leati_fail(err, LEAT_ENOTFOUND, "'%s' has no array '%s'; it has: %s", npz->label,
                                    name, all.data ? all.data : "none");
    leati_text_fini(&all);
    return status;
}

static leat_status find(leat_npz *npz, const char *name, array **out, leat_error *err) {
    for (int i = 0; i < npz->count; ++i) {
        if (strcmp(npz->arrays[i].name, name) != 0) continue;
        *out = &npz->arrays[i];
        leat_status status = parse(npz, *out, err);
        return status == LEAT_OK || name[0] == '\0' ? status : leati_prefix(status, err, "array '%s'", name);
    }
    return not_found(npz, name, err);
}

leat_status leati_npz_array(leat_npz *npz, const char *name, const leati_array **out, leat_error *err) {
    array *wanted = NULL;
    LEATI_TRY(find(npz, name, &wanted, err));
    *out = &wanted->npy;
    return LEAT_OK;
}

/* Makes the aligned copy of the elements in this machine's byte order. */
static leat_status make_native(array *wanted, leat_error *err) {
    const leati_array *npy = &wanted->npy;
    wanted->native = leati_calloc_aligned(npy->bytes);
    if (!wanted->native) return leati_fail_memory(err, npy->bytes, "a converted array");
    if (npy->bytes) memcpy(wanted->native, npy->data, npy->bytes);
    if (npy->swapped)
        leati_swap_bytes(wanted->native, leat_dtype_bytes(npy->dtype), (size_t)leati_array_count(npy));
    return LEAT_OK;
}

leat_status leat_npz_get(leat_npz *npz, const char *name, leat_tensor *out, leat_error *err) {
    LEATI_GIVEN(npz, err);
    LEATI_GIVEN(name, err);
    LEATI_GIVEN(out, err);
    array *wanted = NULL;
    *out = (leat_tensor){0};
    LEATI_TRY(find(npz, name, &wanted, err));
    const leati_array *npy = &wanted->npy;
    bool in_place = !npy->swapped && (uintptr_t)npy->data % leat_dtype_bytes(npy->dtype) == 0;
    if (!in_place && !wanted->native) LEATI_TRY(make_native(wanted, err));
    *out = leat_tensor_view(npy->dtype, npy->rank, npy->shape,
                            in_place ? (void *)(uintptr_t)npy->data : wanted->native);
    return LEAT_OK;
}
