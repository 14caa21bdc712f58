/* SPDX-License-Identifier: Apache-2.0 */
/* Measures runs of a plan of a device: for how long the device waited for copies, and, of watched runs, when it did
 * what.  Room: engine. */
#include "base/error.h"
#include "engine/plan/plan_private.h"

int64_t leati_plan_copy_wait_ns(const leati_plan *plan) {
    return plan->blocks ? plan->blocks->copy_wait_ns : 0;
}

void leati_plan_watch_next(leati_plan *plan) {
    if (plan->blocks) plan->blocks->watching = true;
}

bool leati_plan_take_times(leati_plan *plan, leati_plan_times *out) {
    *out = (leati_plan_times){0};
    if (!plan->blocks) return false;
    leati_plan_times *times = &plan->blocks->times;
    *out = *times;
    /* The beginning of copies that go on stays for the call after their end. */
    const bool goes_on = plan->blocks->staging;
    *times = (leati_plan_times){.staging_ns = goes_on ? out->staging_ns : 0};
    if (goes_on) out->staging_ns = 0;
    return out->ended_ns > 0 || out->staged_ns > 0;
}

/* Sets *out to the moment of a mark, if it has happened. */
static leat_status place(const leati_plan *plan, leati_mark which, int64_t *out, leat_error *err) {
    leati_device *device = leati_plan_device(plan);
    int64_t ns = 0;
    LEATI_TRY(device->class->between(device, LEATI_MARK_BEGIN, which, &ns, err));
    if (ns >= 0) *out = plan->blocks->times.given_ns + ns;
    return LEAT_OK;
}

/* Copies beside the queue may end during the next run. */
static leat_status note_staging(leati_plan *plan, leat_error *err) {
    leati_device *device = leati_plan_device(plan);
    leati_blocks *b = plan->blocks;
    int64_t ns = 0;
    if (!b->staging) return LEAT_OK;
    if (b->watched) LEATI_TRY(place(plan, LEATI_MARK_BESIDE_BEGIN, &b->times.staging_ns, err));
    LEATI_TRY(device->class->between(device, LEATI_MARK_BESIDE_BEGIN, LEATI_MARK_BESIDE_END, &ns, err));
    if (ns < 0) return LEAT_OK;
    b->staging = false;
    if (b->times.staging_ns > 0) b->times.staged_ns = b->times.staging_ns + ns;
    return LEAT_OK;
}

leat_status leati_plan_note_times(leati_plan *plan, leat_error *err) {
    leati_device *device = leati_plan_device(plan);
    leati_blocks *b = plan->blocks;
    b->copy_wait_ns = 0;
    if (b->waits)
        LEATI_TRY(device->class->between(device, LEATI_MARK_BEGIN, LEATI_MARK_COPIED, &b->copy_wait_ns, err));
    if (b->copy_wait_ns < 0) b->copy_wait_ns = 0;
    if (b->watched) {
        LEATI_TRY(place(plan, LEATI_MARK_COPIED, &b->times.copied_ns, err));
        LEATI_TRY(place(plan, LEATI_MARK_END, &b->times.ended_ns, err));
    }
    return note_staging(plan, err);
}
