/* SPDX-License-Identifier: Apache-2.0 */
/* A split sequence: the parts have every sample once, in order, for all sizes of batches and shares. */
#include "cmocka_all.h"

#include <string.h>

#include "leat/source.h"

enum { SAMPLES = 23 };

static float x[SAMPLES][2];
static int32_t y[SAMPLES];

static leat_sequence opened(int64_t batch_size) {
    leat_error err = {0};
    leat_sequence sequence;
    leat_source_options options = leat_source_options_default();
    options.batch_size = batch_size;
    for (int i = 0; i < SAMPLES; ++i) {
        x[i][0] = (float)i;
        x[i][1] = (float)-i;
        y[i] = 100 + i;
    }
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 2}, x)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_I32, 1, (int64_t[]){SAMPLES}, y)};
    leat_arrays arrays = {.inputs = &input, .targets = &target, .input_count = 1, .target_count = 1};
    if (leat_arrays_open(&sequence, sizeof sequence, &arrays, &options, &err) != LEAT_OK)
        fail_msg("%s", err.message);
    return sequence;
}

static void split(leat_sequence *whole, double share, leat_sequence parts[2]) {
    leat_error err = {0};
    if (leat_sequence_split(whole, share, &parts[0], &parts[1], sizeof parts[0], &err) != LEAT_OK)
        fail_msg("%s", err.message);
}

/* Checks that a batch has the samples from `first` on, and returns their number. */
static int64_t check_batch(const leat_batch *batch, int64_t first) {
    const float *inputs = batch->tensors[0].data;
    const int32_t *targets = batch->tensors[1].data;
    for (int64_t i = 0; i < batch->size; ++i) {
        assert_true(inputs[2 * i] == (float)(first + i) && inputs[2 * i + 1] == (float)-(first + i));
        assert_int_equal(targets[i], 100 + first + i);
    }
    return batch->size;
}

/* Reads all batches of a part that begins with sample `first`; returns the number of its samples. */
static int64_t read_part(const leat_sequence *part, int64_t first, int64_t batch_size) {
    float inputs[SAMPLES][2];
    int32_t targets[SAMPLES];
    leat_error err = {0};
    leat_rng rng = {0};
    int64_t read = 0, count = part->samples(part->user), length = part->length(part->user);
    assert_int_equal(length, (count + batch_size - 1) / batch_size);
    for (int64_t i = 0; i < length; ++i) {
        leat_batch batch = {.size = part->spec.batch_size, .tensor_count = 2};
        batch.tensors[0].data = inputs;
        batch.tensors[1].data = targets;
        if (part->get(part->user, i, &rng, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
        assert_true(batch.size == batch_size || i + 1 == length);
        read += check_batch(&batch, first + read);
    }
    assert_int_equal(read, count);
    const int64_t numbers[] = {count - 1, 0};
    leat_batch batch = {.size = 2, .tensor_count = 2};
    batch.tensors[0].data = inputs;
    batch.tensors[1].data = targets;
    if (part->get_samples(part->user, numbers, 2, &rng, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_int_equal(targets[0], 100 + first + count - 1);
    assert_int_equal(targets[1], 100 + first);
    return count;
}

static void parts_are_disjoint_and_complete(void **state) {
    (void)state;
    static const struct {
        double share;
        int64_t first;
    } splits[] = {{0.5, 11}, {0.2, 18}, {0.01, 22}, {0.3, 16}, {0.9, 2}, {0.95, 1}};
    for (size_t s = 0; s < sizeof splits / sizeof splits[0]; ++s)
        for (int64_t batch_size = 1; batch_size <= SAMPLES + 1; ++batch_size) {
            leat_sequence whole = opened(batch_size), parts[2];
            split(&whole, splits[s].share, parts);
            assert_null(whole.user); /* the parts own the sequence */
            int64_t sizes[2];
            for (int k = 0; k < 2; ++k) {
                int64_t count = parts[k].samples(parts[k].user);
                sizes[k] = read_part(&parts[k], k * splits[s].first, batch_size < count ? batch_size : count);
            }
            assert_int_equal(sizes[0], splits[s].first);
            assert_int_equal(sizes[0] + sizes[1], SAMPLES);
            leat_sequence_destroy(&parts[s % 2]); /* the other part goes on alone */
            const leat_sequence *left = &parts[1 - s % 2];
            int64_t count = left->samples(left->user);
            read_part(left, s % 2 ? 0 : splits[s].first, batch_size < count ? batch_size : count);
            leat_sequence_destroy(&parts[1 - s % 2]);
        }
}

static void refused(leat_sequence *whole, double share, leat_status status, const char *said) {
    leat_sequence parts[2];
    leat_error err = {0};
    void *user = whole->user;
    assert_int_equal(leat_sequence_split(whole, share, &parts[0], &parts[1], sizeof parts[0], &err), status);
    if (!strstr(err.message, said)) fail_msg("expected '%s' in: %s", said, err.message);
    assert_ptr_equal(whole->user, user);
    assert_null(parts[0].user);
    assert_null(parts[1].user);
}

static leat_status next(void *user, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)user, (void)rng, (void)batch, (void)err;
    return LEAT_OK;
}

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)user, (void)index, (void)rng, (void)batch, (void)err;
    return LEAT_OK;
}

static leat_status epoch_end(void *user, int64_t pass, leat_error *err) {
    (void)user, (void)pass, (void)err;
    return LEAT_OK;
}

static void other_sequences_and_shares_are_refused(void **state) {
    (void)state;
    leat_sequence whole = opened(4), other = leat_sequence_default();
    refused(&whole, 0, LEAT_EINVAL, "expected a share between 0 and 1, received 0");
    refused(&whole, 1, LEAT_EINVAL, "between 0 and 1");
    refused(&whole, -0.5, LEAT_EINVAL, "between 0 and 1");
    refused(&whole, 0.99, LEAT_EINVAL, "a share of 0.99 of 23 samples leaves 0 and 23");
    other.next = next;
    refused(&other, 0.5, LEAT_ENOTSUP, "this is a generator: use separate validation data");
    other.next = NULL;
    other.get = get;
    refused(&other, 0.5, LEAT_ENOTSUP, "a sequence of batches alone: use separate validation data");
    whole.on_epoch_end = epoch_end;
    refused(&whole, 0.5, LEAT_ENOTSUP, "without on_epoch_end");
    leat_sequence_destroy(&whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_disjoint_and_complete),
        cmocka_unit_test(other_sequences_and_shares_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
