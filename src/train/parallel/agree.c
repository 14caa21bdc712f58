/* SPDX-License-Identifier: Apache-2.0 */
/* Lets all ranks return the same.  Room: train. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "train/parallel/parallel.h"

leat_status leati_parallel_agree_all(leat_dist *dist, leat_status status, bool *requested, leat_error *err) {
    struct {
        int32_t status;
        char text[LEAT_ERROR_MESSAGE_BYTES];
    } failure = {0};
    struct {
        int32_t status, requested;
    } mine = {(int32_t)status, *requested}, *all = leati_calloc((size_t)dist->size, sizeof *all);
    if (!all) return leati_fail_memory(err, (size_t)dist->size * sizeof *all, "the states of the ranks");
    leat_error why = {0};
    leat_status told = leati_dist_all_gather(dist, &mine, sizeof mine, all, &why);
    int failed = 0;
    while (told == LEAT_OK && failed < dist->size && all[failed].status == LEAT_OK) ++failed;
    for (int i = 0; told == LEAT_OK && i < dist->size; ++i) *requested = *requested || all[i].requested;
    leati_free(all);
    if (told == LEAT_OK && failed == dist->size) return LEAT_OK;
    if (told == LEAT_OK && failed == dist->rank) {
        failure.status = (int32_t)status;
        if (err) memcpy(failure.text, err->message, sizeof failure.text);
    }
    if (told == LEAT_OK) told = leati_dist_broadcast(dist, &failure, sizeof failure, failed, &why);
    if (told != LEAT_OK) {
        if (err) *err = why;
        return told;
    }
    if (dist->size == 1) return status;
    return leati_fail(err, (leat_status)failure.status, "rank %d (host %s): %s", failed,
                      dist->peers[failed].host, failure.text);
}

leat_status leati_parallel_agree(leat_dist *dist, leat_status status, leat_error *err) {
    bool requested = false;
    return dist ? leati_parallel_agree_all(dist, status, &requested, err) : status;
}
