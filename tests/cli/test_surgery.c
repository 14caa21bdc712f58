/* SPDX-License-Identifier: Apache-2.0 */
/* --output-layer and --input-layer of predict, summary and convert; --freeze and --unfreeze of fit. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "data/files.h"

static const char graph[] =
    "{'class_name': 'Model', 'config': {'name': 'graph', 'layers': ["
    "{'class_name': 'InputLayer', 'name': 'in', 'inbound_nodes': [], 'config': {'name': 'in', "
    "'batch_input_shape': [null, 4]}}, "
    "{'class_name': 'Dense', 'name': 'low', 'inbound_nodes': [[['in', 0, 0, {}]]], 'config': {'name': 'low', "
    "'units': 5, 'activation': 'tanh'}}, "
    "{'class_name': 'Dense', 'name': 'middle', 'inbound_nodes': [[['low', 0, 0, {}]]], 'config': {'name': "
    "'middle', 'units': 4, 'activation': 'relu'}}, "
    "{'class_name': 'Dense', 'name': 'top', 'inbound_nodes': [[['middle', 0, 0, {}]]], 'config': {'name': "
    "'top', 'units': 3, 'activation': 'softmax'}}], "
    "'input_layers': [['in', 0, 0]], 'output_layers': [['top', 0, 0]]}}";

static int leave(void **state) {
    return system("rm -rf run run2 *.npy *.npz *.h5 *.keras graph.json .out .err") == 0 ? files_leave(state)
                                                                                        : -1;
}

static void make_models(void) {
    char text[sizeof graph];
    for (size_t i = 0; i < sizeof graph; ++i) text[i] = graph[i] == '\'' ? '"' : graph[i];
    write_text("graph.json", text);
    runs("fit graph.json --train npz:d.npz --loss categorical_crossentropy --epochs 1 --out run --overwrite "
         "--verbose 0");
}

static size_t bytes_of(const char *path, char *content, size_t room) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("there is no '%s'", path);
    const size_t count = fread(content, 1, room, file);
    fclose(file);
    return count;
}

static void same_files(const char *a, const char *b) {
    static char first[1 << 16], second[1 << 16];
    const size_t count = bytes_of(a, first, sizeof first);
    assert_int_equal(bytes_of(b, second, sizeof second), count);
    assert_memory_equal(first, second, count);
}

/* A part that convert has written predicts what predict --output-layer predicts, and the rest of the model makes the
 * predictions of the whole of it. */
static void parts_predict_alike(void **state) {
    (void)state;
    make_models();
    runs("predict run/model.h5 --data npz:d.npz --output whole.npy");
    runs("predict run/model.h5 --data npz:d.npz --output low.npy --output-layer low");
    runs("convert run/model.h5 low.keras --output-layer low");
    runs("predict low.keras --data npz:d.npz --output low2.npy");
    same_files("low.npy", "low2.npy");
    runs("convert run/model.h5 rest.h5 --input-layer middle");
    runs("predict rest.h5 --data npy:low.npy --output whole2.npy");
    same_files("whole.npy", "whole2.npy");
    runs("predict run/model.h5 --data npy:low.npy --output whole2.npy --input-layer middle");
    same_files("whole.npy", "whole2.npy");
    runs("predict run/model.h5 --data npz:d.npz --output two.npz --output-layer low,-1 --json");
    assert_non_null(strstr(out, "\"low\": [90, 5], \"top\": [90, 3]"));
    runs("summary run/model.h5 --output-layer -2");
    assert_non_null(strstr(out, "middle (Dense)"));
    assert_null(strstr(out, "top (Dense)"));
}

static void weights_come_before_the_cut(void **state) {
    (void)state;
    make_models();
    runs("convert run/model.h5 w.weights.h5");
    runs("convert w.weights.h5 low.h5 --model graph.json --output-layer low");
    runs("predict low.h5 --data npz:d.npz --output low.npy");
    runs("predict run/model.h5 --data npz:d.npz --output low2.npy --output-layer low");
    same_files("low.npy", "low2.npy");
}

static void wrong_layers_are_refused(void **state) {
    (void)state;
    make_models();
    fails("predict run/model.h5 --data npz:d.npz --output y.npy --output-layer lov",
          "model 'graph': no layer 'lov': did you mean 'low'?");
    refused("predict run/model.h5 --data npz:d.npz --output y.npy --output-layer low,",
            "--output-layer 'low,': expected names of layers with commas between them");
    refused("predict run/model.h5 --data npz:d.npz --output y.npy --output-layer low,top",
            "the model has 2 outputs: give the name of an .npz or .csv file");
    fails("fit run/model.h5 --train npz:d.npz --freeze lov*",
          "leat fit: --freeze: model 'graph': no layer matches the pattern 'lov*'");
}

/* With all layers but the last one frozen, training leaves what the others compute unchanged. */
static void frozen_layers_stay(void **state) {
    (void)state;
    static char before[1 << 16], after[1 << 16];
    make_models();
    runs("fit run/model.h5 --train npz:d.npz --epochs 2 --out run2 --verbose 0 --freeze * --unfreeze t?p");
    runs("predict run/model.h5 --data npz:d.npz --output before.npz --output-layer middle");
    runs("predict run2/model.h5 --data npz:d.npz --output after.npz --output-layer middle");
    same_files("before.npz", "after.npz");
    runs("predict run/model.h5 --data npz:d.npz --output before.npy");
    runs("predict run2/model.h5 --data npz:d.npz --output after.npy");
    const size_t count = bytes_of("before.npy", before, sizeof before);
    assert_int_equal(bytes_of("after.npy", after, sizeof after), count);
    assert_int_not_equal(memcmp(before, after, count), 0);
    runs("summary run2/model.h5");
    assert_non_null(strstr(out, "Trainable params: 15\n"));
    runs("fit --resume run2 --epochs 3 --verbose 0");
    runs("predict run2/model.h5 --data npz:d.npz --output after.npz --output-layer middle");
    same_files("before.npz", "after.npz");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_predict_alike),
        cmocka_unit_test(weights_come_before_the_cut),
        cmocka_unit_test(wrong_layers_are_refused),
        cmocka_unit_test(frozen_layers_stay),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
