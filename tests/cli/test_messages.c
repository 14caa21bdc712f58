/* SPDX-License-Identifier: Apache-2.0 */
/* Messages about mistakes: they describe the mistake and say what to do. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "data/files.h"
#include "leat/npz.h"

static int leave(void **state) {
    if (system("rm -rf run") != 0) return -1;
    return files_leave(state);
}

/* Like `refused`, but runs the line in a shell, so that arguments may contain blanks or be empty. */
static void refused_in_shell(const char *arguments, const char *says) {
    char line[1024];
    snprintf(line, sizeof line, "'" LEAT_COMMAND "' %s >.out 2>.err", arguments);
    int status = system(line);
    FILE *file = fopen(".err", "r");
    assert_non_null(file);
    errors[fread(errors, 1, text_bytes - 1, file)] = '\0';
    fclose(file);
    assert_int_equal(system("test ! -s .out; r=$?; rm -f .out .err; exit $r"), 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 2 || !strstr(errors, says))
        fail_msg("leat %s: exit code %d: %s", arguments, WEXITSTATUS(status), errors);
}

static void numbers_out_of_range_are_told_with_the_bound(void **state) {
    (void)state;
    static const char *const huge[] = {"2147483648", "99999999999999999999"};
    for (int i = 0; i < 2; ++i) {
        char line[128];
        snprintf(line, sizeof line, "fit m.h5 --batch-size %s", huge[i]);
        refused(line, "expected an integer from 1 to 2147483647");
        snprintf(line, sizeof line, "fit m.h5 --epochs %s", huge[i]);
        refused(line, "expected an integer from 1 to 2147483647");
    }
    refused("fit m.h5 --batch-size -99999999999999999999", "expected an integer of at least 1");
    refused("fit m.h5 --batch-size 99999999999999999999x", "expected an integer of at least 1");
    refused("feed bench --payload 1025G", "expected at most 1024G bytes");
    refused("feed bench --payload 99999999999999999999", "expected at most 1024G bytes");
    refused("feed bench --payload 9999999999999G", "expected at most 1024G bytes");
    refused("feed bench --payload 1K --feed-memory 9999999999999G", "expected at most ");
    refused("feed bench --payload 1K --seed 9223372036854775808",
            "expected an integer from 0 to 9223372036854775807");
    refused("feed bench --payload 1K --batch-timeout 99999999999999999999", "expected at most ");
    refused("feed bench --payload 5X", "expected a number of bytes, such as 65536, 64K, 512M or 2G");
    refused("feed tune x --model y --seconds 99999", "expected at most 3600 seconds");
    refused("feed tune x --model y --seconds 99999999999999999999", "expected at most 3600 seconds");
    refused("feed bench --payload 1K --batch-timeout 1e3", "expected seconds, such as 30 or 0.5");
    refused("fit small.json --train x --epochs 2 --initial-epoch 5",
            "--epochs 2 is the number of the last epoch: expected more than --initial-epoch, which is 5");
}

static void empty_words_are_refused(void **state) {
    (void)state;
    refused_in_shell("fit ''", "MODEL is empty");
    refused_in_shell("fit small.json --train ''", "--train needs a value: --train SPEC");
    refused_in_shell("fit small.json --train npz:d.npz --loss ''", "--loss needs a value: --loss NAME");
    refused_in_shell("fit small.json --train npz:d.npz --loss=", "--loss needs a value: --loss NAME");
    refused_in_shell("fit small.json --train npz:d.npz --loss mse --out ''",
                     "--out needs a value: --out DIR");
    refused_in_shell("feed ''", "COMMAND is empty");
}

static void unknown_words_have_a_fitting_hint(void **state) {
    (void)state;
    refused("FIT", "did you mean 'fit'?");
    refused("train", "did you mean 'fit'?");
    refused("test", "did you mean 'evaluate'?");
    refused("eval", "did you mean 'evaluate'?");
    refused("feed help", "leat: unknown command 'feed help'\ntry: leat feed --help\n");
    refused("feed bnech",
            "unknown command 'feed bnech': did you mean 'feed bench'?\ntry: leat feed --help\n");
    refused("-x", "leat: unknown option '-x'\ntry: leat --help\n");
    refused("help nosuchthing", "unknown command or topic 'nosuchthing'\ntry: leat help\n");
    refused("fit m.h5 --lr 0.1", "use --optimizer 'SGD(learning_rate=0.1)'");
    refused("fit m.h5 --learning_rate=0.1", "use --optimizer 'SGD(learning_rate=0.1)'");
    refused("list losses --plan", "unknown option '--plan'\n");
    refused("fit m.h5 npz:d.npz --loss mse", "unexpected argument 'npz:d.npz': give data with --train SPEC");
    refused("evaluate m.h5 npz:d.npz", "unexpected argument 'npz:d.npz': give data with --data SPEC");
    fails("fit small.json --train npz:d.npz --loss nosuchthing",
          "unknown loss 'nosuchthing': one of your own is written in C and registered under this name "
          "(leat_registry_add_loss in leat/custom.h; a plugin for the command: --layers)\n"
          "try: leat list losses");
    fails("fit small.json --train npz:d.npz --loss mse --metrics acc,nosuchthing", "try: leat list losses");
    fails("fit small.json --train npz:d.npz --loss mse --optimizer nosuchthing", "leat list optimizers");
    fails("fit small.json --train npz:d.npz --loss mse --arithmetic keras4",
          "arithmetic: expected \"keras2\" or \"keras3\", received \"keras4\"");
}

/* An option that has no effect is a mistake, too. */
static void options_that_need_another_are_told(void **state) {
    (void)state;
    refused("fit small.json --train npz:d.npz --loss mse --validation-steps 3",
            "--validation-steps needs --validation");
    refused("fit small.json --train npz:d.npz --loss mse --validation-freq 3",
            "--validation-freq needs --validation");
    refused("feed bench --payload 1K --rank 1", "--rank 1: expected a rank below --world, which is 1");
    assert_non_null(strstr(errors, "try: leat feed bench --help"));
    refused("evaluate small.json --data npz:d.npz --metrics acc",
            "the model has no compilation: give --loss");
    assert_non_null(strstr(errors, "try: leat evaluate --help"));
}

static void what_is_missing_is_named(void **state) {
    (void)state;
    fails("report nosuch", "leat report: cannot read 'nosuch': No such file or directory");
    fails("report nosuch --output c.html", "cannot read 'nosuch': No such file or directory");
    refused("report small.json",
            "'small.json' is a file, not a folder that leat fit --out wrote: give --output FILE");
    assert_int_equal(system("mkdir -p run/empty run/p.npy"), 0);
    fails("report run/empty",
          "cannot read 'run/empty/history.json': No such file or directory: expected RUN to be a folder that "
          "leat fit --out wrote");
    /* The error comes before anything is computed, and does not name a temporary file. */
    fails("predict small.json --data npz:d.npz --output no/folder/p.npy",
          "cannot write 'no/folder/p.npy': No such file or directory");
    assert_null(strstr(errors, "/step"));
    fails("predict small.json --data npz:d.npz --output run/p.npy",
          "cannot write 'run/p.npy': Is a directory");
    assert_null(strstr(errors, "/step"));
}

/* Writes x.npy: inputs of small.json without targets. */
static void write_inputs(void) {
    static float x[12][4];
    leat_tensor tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){12, 4}, x);
    assert_int_equal(leat_npy_write("x.npy", &tensor, NULL), LEAT_OK);
}

/* A fit that fails before training prints no notes. */
static void an_error_comes_first(void **state) {
    (void)state;
    write_inputs();
    fails("fit small.json --train npy:x.npy --loss mse", "leat fit: targets: ");
    assert_memory_equal(errors, "leat fit: targets: ", 19);
    unlink("x.npy");
    runs("fit small.json --train npz:d.npz --loss mse");
    assert_non_null(strstr(errors, "nothing will be saved: give --out DIR to save the model\n"));
}

/* A file that the command opens never gets the descriptor of a closed standard stream, so that no message is written
 * to it. */
static void closed_streams_do_not_reach_files(void **state) {
    (void)state;
    static const char *const closed[] = {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"};
    for (size_t i = 0; i < sizeof closed / sizeof *closed; ++i) {
        char line[512], first[32];
        snprintf(line, sizeof line, "'" LEAT_COMMAND "' " FIT "--out run --verbose 2 >.out 2>.err %s",
                 closed[i]);
        assert_int_equal(system(line), 0);
        FILE *file = fopen("run/log.csv", "r");
        assert_non_null(file);
        assert_non_null(fgets(first, sizeof first, file));
        fclose(file);
        assert_string_equal(first, "epoch,accuracy,loss\r\n");
        assert_int_equal(system("rm -rf run .out .err"), 0);
    }
    int status = system("'" LEAT_COMMAND "' version >&- 2>.err");
    assert_int_equal(WEXITSTATUS(status), 1); /* Output that cannot be written is a failure. */
    assert_int_equal(system("grep -q 'cannot write to standard output' .err && rm .err"), 0);
}

static void one_is_singular_and_others_plural(void **state) {
    (void)state;
    write_inputs();
    write_text("heads.json",
               "{\"class_name\": \"Model\", \"config\": {\"name\": \"heads\", \"layers\": ["
               "{\"class_name\": \"InputLayer\", \"name\": \"x\", \"inbound_nodes\": [], "
               "\"config\": {\"name\": \"x\", \"batch_input_shape\": [null, 4]}},"
               "{\"class_name\": \"Dense\", \"name\": \"a\", \"inbound_nodes\": [[[\"x\", 0, 0, {}]]], "
               "\"config\": {\"name\": \"a\", \"units\": 3}},"
               "{\"class_name\": \"Dense\", \"name\": \"b\", \"inbound_nodes\": [[[\"x\", 0, 0, {}]]], "
               "\"config\": {\"name\": \"b\", \"units\": 3}}],"
               "\"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"a\", 0, 0], [\"b\", 0, 0]]}}");
    fails("fit heads.json --train npz:d.npz --loss mse",
          "the model has 2 outputs with a loss, the data gives 1");
    fails("fit small.json --train npy:x.npy --loss mse",
          "the model has 1 output with a loss, the data gives 0");
    fails("fit small.json --train npz:d.npz --loss mse,mse", "one item for the model's 1 output, received 2");
    fails("fit heads.json --train npz:d.npz --loss mse,mse,mse",
          "one item for each of the model's 2 outputs, received 3");
    runs("predict small.json --data npz:d.npz --output p.npy --batch-size 1 --steps 1");
    assert_non_null(strstr(errors, "saved p.npy: 1 sample\n"));
    unlink("p.npy");
    unlink("heads.json");
    unlink("x.npy");
}

/* Names with an escape sequence, a C1 control character, and a byte that is not UTF-8. */
static void control_characters_become_question_marks(void **state) {
    (void)state;
    fails("summary \x1b[2J.h5", "'?[2J.h5'");
    refused("summary m.h5 --\x1b[2J", "leat summary: unknown option '--?[2J'\n");
    refused("\xC2\x9B"
            "2J",
            "leat: unknown command '??2J'\n");
    refused("summary a.h5 b\xFF.h5", "unexpected argument 'b?.h5'");
    runs("fit small.json --train npz:d.npz --loss mse --epochs 1 --verbose 2 --out run/\x1b[2J");
    assert_non_null(strstr(errors, "saved run/?[2J/model.h5\n"));
}

static void json_has_no_control_characters(void **state) {
    (void)state;
    assert_int_equal(system("cp d.npz 'd\x7F\xC2\x9B.npz'"), 0);
    runs("feed bench npz:d\x7F\xC2\x9B.npz --passes 1 --json");
    assert_non_null(strstr(out, "{\"source\": \"npz:d\\u007f\\u009b.npz\""));
    runs("feed bench npz:d\x7F\xC2\x9B.npz --passes 1");
    assert_non_null(strstr(out, "npz:d???.npz, "));
}

/* A stateful model at another batch size: the message has the option that helps. */
static void a_stateful_model_asks_for_its_batch_size(void **state) {
    (void)state;
    float x[12][3][2] = {{{0}}};
    leat_tensor tensor = leat_tensor_view(LEAT_F32, 3, (int64_t[]){12, 3, 2}, x);
    write_text("stateful.json",
               "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": [{\"class_name\": "
               "\"LSTM\", \"config\": {\"name\": \"memory\", \"units\": 2, \"stateful\": true, "
               "\"batch_input_shape\": [4, 3, 2]}}]}}");
    assert_int_equal(leat_npy_write("x.npy", &tensor, NULL), LEAT_OK);
    fails(
        "predict stateful.json --data npy:x.npy --output y.npy",
        "expected shape (4, 3, 2), received (12, 3, 2): the model has a fixed batch size: use --batch-size 4 "
        "(batch_size in C) and a multiple of 4 samples");
    runs("predict stateful.json --data npy:x.npy --output y.npy --batch-size 4");
    assert_int_equal(system("rm -f stateful.json x.npy y.npy .out .err"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_out_of_range_are_told_with_the_bound),
        cmocka_unit_test(empty_words_are_refused),
        cmocka_unit_test(unknown_words_have_a_fitting_hint),
        cmocka_unit_test(options_that_need_another_are_told),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(an_error_comes_first),
        cmocka_unit_test(closed_streams_do_not_reach_files),
        cmocka_unit_test(one_is_singular_and_others_plural),
        cmocka_unit_test(control_characters_become_question_marks),
        cmocka_unit_test(json_has_no_control_characters),
        cmocka_unit_test(a_stateful_model_asks_for_its_batch_size),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
