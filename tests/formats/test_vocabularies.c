/* SPDX-License-Identifier: Apache-2.0 */
/* IntegerLookups that learned their vocabularies: the .keras file of Keras has them as text files, and the files that
 * leat writes have them in the configuration. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "leat/model.h"
#include "leat/train.h"
#include "support/npz.h"
#include "zip/zip.h"

#define FILE_OF_KERAS LEAT_SOURCE_DIR "/tests/golden/files/open_lookups.keras"

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

static void check_prediction(leat_model *model, const char *what) {
    leat_error err = {0};
    leat_npz *npz = test_npz_open("files/open_lookups.npz");
    leat_array input = {.tensor = test_npz_get(npz, "x0")};
    leat_tensor output, want = test_npz_get(npz, "y0");
    must(leat_model_predict_on_batch(model, &(leat_arrays){.inputs = &input, .input_count = 1}, &output,
                                     &err),
         &err);
    assert_int_equal(leat_tensor_count(&output), leat_tensor_count(&want));
    for (int64_t i = 0; i < leat_tensor_count(&want); ++i) {
        const double got = ((float *)output.data)[i], expected = ((float *)want.data)[i];
        if (!(fabs(got - expected) < 1e-6)) fail_msg("%s: %g, expected %g", what, got, expected);
    }
    leat_npz_close(&npz);
}

static leat_model *load(const char *path) {
    leat_error err = {0};
    leat_model *model = NULL;
    must(leat_model_load(&model, path, &err), &err);
    return model;
}

static void learned_vocabularies_are_read(void **state) {
    (void)state;
    leat_model *model = load(FILE_OF_KERAS);
    check_prediction(model, "the file of Keras");
    leat_model_destroy(&model);
}

static void every_form_of_file_keeps_vocabularies_and_factors(void **state) {
    (void)state;
    static const char *const suffixes[] = {"keras", "h5"};
    for (int i = 0; i < 2; ++i) {
        leat_error err = {0};
        char path[64];
        leat_model *model = load(FILE_OF_KERAS), *again;
        snprintf(path, sizeof path, "vocabularies-%d.%s", (int)getpid(), suffixes[i]);
        must(leat_model_save(model, path, true, &err), &err);
        leat_model_destroy(&model);
        again = load(path);
        unlink(path);
        check_prediction(again, suffixes[i]);
        leat_model_destroy(&again);
    }
}

/* Weights that are loaded by themselves bring the factors of tf_idf, as in Keras. */
static void weights_have_the_factors(void **state) {
    (void)state;
    leat_error err = {0};
    char path[64];
    leat_model *model = load(FILE_OF_KERAS), *copy = NULL;
    char *text = NULL;
    snprintf(path, sizeof path, "vocabularies-%d.weights.h5", (int)getpid());
    must(leat_model_save_weights(model, path, &err), &err);
    must(leat_model_to_json(model, &text, &err), &err);
    leat_model_destroy(&model);
    char *factor = strstr(text, "\"idf_weights\": [");
    assert_non_null(factor);
    factor[strlen("\"idf_weights\": [")] = '9'; /* the first digit of the first factor */
    must(leat_model_from_json(&copy, text, &err), &err);
    must(leat_model_load_weights(copy, path, false, &err), &err);
    unlink(path);
    check_prediction(copy, "weights");
    leat_model_destroy(&copy);
    leat_string_free(text);
}

/* Writes an archive of the configuration and of one vocabulary, and returns the failure of its loading. */
static void load_with(const char *vocabulary, leat_error *err) {
    leat_error other = {0};
    leati_zip zip;
    leati_zip_writer writer;
    leat_model *model = NULL;
    char path[64];
    snprintf(path, sizeof path, "vocabularies-%d-damaged.keras", (int)getpid());
    must(leati_zip_open(&zip, FILE_OF_KERAS, &other), &other);
    const leati_zip_member *config = leati_zip_find(&zip, "config.json");
    char *text = leati_calloc(1, (size_t)config->bytes);
    must(leati_zip_read(&zip, config, text, &other), &other);
    const leati_piece pieces[] = {{text, (size_t)config->bytes}, {vocabulary, strlen(vocabulary)}};
    must(leati_zip_create(&writer, path, &other), &other);
    must(leati_zip_add(&writer, "config.json", &pieces[0], 1, &other), &other);
    must(leati_zip_add(&writer, "assets/layers/integer_lookup/vocabulary.txt", &pieces[1], 1, &other),
         &other);
    must(leati_zip_finish(&writer, &other), &other);
    leati_free(text);
    leati_zip_close(&zip);
    *err = (leat_error){0};
    assert_int_not_equal(leat_model_load(&model, path, err), LEAT_OK);
    assert_null(model);
    unlink(path);
}

static void damaged_vocabularies_are_refused(void **state) {
    (void)state;
    leat_error err;
    load_with("5\n7x\n9", &err);
    assert_non_null(
        strstr(err.message, "assets/layers/integer_lookup/vocabulary.txt: line 2: expected an integer"));
    load_with("5\n99999999999999999999", &err);
    assert_non_null(strstr(err.message, "line 2: expected an integer"));
    load_with("-1\n5\n5", &err);
    assert_non_null(strstr(err.message, "vocabulary: expected each term once, received 5 twice"));
    load_with("\n\n", &err);
    assert_non_null(strstr(err.message, "vocabulary: expected a list of integers"));
}

/* A layer of strings is refused with the way out. */
static void strings_are_refused_by_name(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = NULL;
    static const char text[] =
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": [{\"class_name\": "
        "\"StringLookup\", \"config\": {\"name\": \"words\", \"batch_input_shape\": [null, 3]}}]}}";
    assert_int_equal(leat_model_from_json(&model, text, &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "no layer 'StringLookup' in leat, which has no tensors of strings"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learned_vocabularies_are_read),
        cmocka_unit_test(every_form_of_file_keeps_vocabularies_and_factors),
        cmocka_unit_test(weights_have_the_factors),
        cmocka_unit_test(damaged_vocabularies_are_refused),
        cmocka_unit_test(strings_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
