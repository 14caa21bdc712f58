/* SPDX-License-Identifier: Apache-2.0 */
/* The source of CSV files: quoting, types of columns, missing values, categories and their mapping, several files,
 * compressed files, messages with lines, and chunks, whose size must not matter. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "base/memory.h"
#include "data/files.h"
#include "data/table/csv.h"
#include "data/table/number.h"
#include "leat/log.h"
#include "leat/source.h"

enum { MOST = 4096 };

static bytes file;

static void make_text(const char *path, const char *text) {
    file.size = 0;
    bytes_add_text(&file, text);
    bytes_write(&file, path);
}

/* Appends the numbers of a tensor with " " between them and "/" between samples. */
static void append(char *out, size_t room, const leat_tensor *tensor, int64_t width) {
    const int64_t count = tensor->shape[0] * width;
    for (int64_t i = 0; i < count; ++i) {
        const double value = tensor->dtype == LEAT_I32 ? ((const int32_t *)tensor->data)[i]
                                                       : (double)((const float *)tensor->data)[i];
        const size_t used = strlen(out);
        snprintf(out + used, room - used, "%s%g", i == 0 ? "" : i % width ? " " : "/", value);
    }
}

/* Checks the shapes and numbers of all tensors of a SPEC, with ";" between them; i before those of int32. */
static void gives(const char *spec, const char *expected) {
    static float data[LEAT_BATCH_MAX_TENSORS][MOST];
    leat_sequence s;
    leat_error err = {0};
    char text[4096] = "";
    leat_batch batch = {0};
    leat_rng rng = {0};
    if (leat_source_open(&s, sizeof s, spec, NULL, &err) != LEAT_OK) fail_msg("%s", err.message);
    batch.size = s.spec.batch_size;
    batch.tensor_count = s.spec.tensor_count;
    for (int k = 0; k < batch.tensor_count; ++k) batch.tensors[k].data = data[k];
    if (s.get(s.user, 0, &rng, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
    for (int k = 0; k < batch.tensor_count; ++k) {
        const leat_tensor_spec *t = &s.spec.tensors[k];
        const int64_t width = leati_shape_count(t->rank, t->shape);
        batch.tensors[k].dtype = t->dtype;
        batch.tensors[k].shape[0] = batch.size;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", k ? ";" : "",
                 t->dtype == LEAT_I32 ? "i" : "");
        append(text, sizeof text, &batch.tensors[k], width);
    }
    assert_string_equal(text, expected);
    leat_sequence_destroy(&s);
}

static void refused(const char *spec, leat_status status, const char *text) {
    leat_sequence s;
    leat_error err = {0};
    const leat_status received = leat_source_open(&s, sizeof s, spec, NULL, &err);
    if (received != status) fail_msg("%s: status %d: %s", spec, (int)received, err.message);
    if (!strstr(err.message, text)) fail_msg("%s: expected '%s' in: %s", spec, text, err.message);
}

static void numbers_are_rounded_correctly(void **state) {
    static const char *const texts[] = {"0",
                                        "-0",
                                        "1",
                                        "16777217",
                                        "16777219",
                                        "16777217.0000000000000000000001",
                                        "0.1",
                                        "3.14159265358979323846264338327950288",
                                        "1e-45",
                                        "7e-46",
                                        "1.1754943508222875e-38",
                                        "3.4028235677973366e38",
                                        "3.4028235677973365e38",
                                        "1e400",
                                        "123456789012345678901234567890",
                                        "0.00000000000000000000000000000001",
                                        "9007199791611905",
                                        "8.5899345920000005e9",
                                        ".5",
                                        "5.",
                                        "inf",
                                        "-Infinity",
                                        "1.40129846432481707e-45"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        float number = 0;
        const char *end = texts[i] + strlen(texts[i]);
        const float expected = strtof(texts[i], NULL);
        if (leati_read_float(texts[i], end, '.', &number) != end) fail_msg("%s", texts[i]);
        if (memcmp(&number, &expected, sizeof number) != 0)
            fail_msg("%s: %a, not %a", texts[i], number, expected);
    }
}

static void numbers_round_as_strtof(void **state) {
    uint64_t random = 88172645463325252u;
    (void)state;
    for (int i = 0; i < 300000; ++i) {
        char text[400];
        float number = 0;
        uint32_t bits = 0;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        bits = (uint32_t)random & 0x7f7fffffu;
        memcpy(&number, &bits, sizeof number);
        const double middle = ((double)number + (double)nextafterf(number, INFINITY)) / 2;
        if (i % 3 == 0)
            snprintf(text, sizeof text, "%.*e", (int)(random >> 60) + 5, middle);
        else if (i % 3 == 1)
            snprintf(text, sizeof text, "%.17g", (double)random / 1.8e19);
        else
            snprintf(text, sizeof text, "%.60f", middle < 1e20 ? middle : 0.5);
        const float expected = strtof(text, NULL);
        const char *end = text + strlen(text);
        assert_ptr_equal(leati_read_float(text, end, '.', &number), end);
        if (memcmp(&number, &expected, sizeof number) != 0)
            fail_msg("%s: %a, not %a", text, number, expected);
    }
}

static void columns_are_named(void **state) {
    (void)state;
    make_text("t.csv", "a,b,c,d\n1,2,3,4\n5,6,7,8\n");
    gives("csv:t.csv", "1 2 3 4/5 6 7 8");
    gives("csv:t.csv?targets=c", "1 2 4/5 6 8;3/7");
    gives("csv:t.csv?targets=d&exclude=b", "1 3/5 7;4/8");
    gives("csv:t.csv?inputs=d,a&targets=1", "4 1/8 5;2/6");
    gives("csv:t.csv?inputs=b..d|a&integers=a", "2 3 4/6 7 8;i1/5");
    gives("csv:t.csv?inputs=a&targets=b|c&sample_weights=d", "1/5;2/6;3/7;4/8");
    gives("csv:t.csv?inputs=a&targets=b&scale=1/2", "0.5/2.5;2/6");
    gives("csv:t.csv?inputs=a&targets=b&onehot=7", "1/5;0 0 1 0 0 0 0/0 0 0 0 0 0 1");
    gives("csv:t.csv?header=false&skip_lines=2&inputs=1,0&targets=3", "6 5;8");
    refused("csv:t.csv?targets=e", LEAT_EINVAL, "there is no column 'e'");
    refused("csv:t.csv?targets=4", LEAT_EINVAL, "there is no column '4'; there are: a, b, c, d");
    refused("csv:t.csv?inputs=a,a", LEAT_EINVAL, "named twice");
    refused("csv:t.csv?inputs=c..b", LEAT_EINVAL, "before the first");
    refused("csv:t.csv?targets=a..d", LEAT_EINVAL, "no column is left");
    refused("csv:t.csv?inputs=a&integers=b", LEAT_EINVAL, "no input, target or sample weight");
    refused("csv:t.csv?labels=a", LEAT_EINVAL, "csv has no option 'labels'");
}

static void fields_are_quoted(void **state) {
    (void)state;
    make_text("t.csv", "\xef\xbb\xbf\"a,\"\"1\",b\r\n\"1.5\", 2 \r\n\r\n\"3\",\"4\"");
    gives("csv:t.csv?inputs=b", "2/4");
    gives("csv:t.csv?inputs=a%2C%221", "1.5/3");
    make_text("t.csv", "a;b\n1,5;\"x\ny\"\n2,5;\"z\"\"\"\n");
    gives("csv:t.csv?separator=%3B&decimal=%2C&categories=b&inputs=a|b", "1.5/2.5;i0/1");
    make_text("t.csv", "a\tb\n1\ttrue\n2\tFALSE\n");
    gives("csv:t.csv?separator=tab", "1 1/2 0");
    make_text("t.csv", "a b\n1 2\n");
    gives("csv:t.csv?separator=space", "1 2");
    make_text("t.csv", "a;b\n1;2\n");
    refused("csv:t.csv", LEAT_EFORMAT,
            "line 2: the only column is 'a;b': is another separator meant (option separator=;)?");
    make_text("t.csv", "a\tb\n1\t2\n");
    refused("csv:t.csv", LEAT_EFORMAT, "(option separator=tab)?");
    make_text("t.csv", "a\n\n1\n\n2\n\n");
    gives("csv:t.csv", "1/2");
    make_text("t.csv", "a,b\n1,2\n3,x\"y\"\n");
    refused("csv:t.csv", LEAT_EFORMAT, "'t.csv': line 3");
    make_text("t.csv", "a,b\n1,2\n\n3,\"4\n");
    refused("csv:t.csv", LEAT_EFORMAT, "line 4: a quote is not closed");
    make_text("t.csv", "a,b\n1,\"2\"3\n");
    refused("csv:t.csv", LEAT_EFORMAT, "line 2: expected ',' or the end of the line after a quote");
}

static void bad_rows_fail_or_are_skipped(void **state) {
    (void)state;
    make_text("t.csv", "a,b\n1,2\n3\n5,6,7\n8,nine\n10,11\n");
    refused("csv:t.csv", LEAT_EFORMAT, "'t.csv': line 3: expected 2 columns, found 1");
    gives("csv:t.csv?bad=skip", "1 2/10 11");
    make_text("t.csv", "a,b\n1,2\n8,nine\n");
    refused("csv:t.csv", LEAT_EFORMAT, "line 3: column 'b': expected a number, found 'nine'");
    make_text("t.csv", "a,b\n1,2\n8,9,10\n");
    refused("csv:t.csv", LEAT_EFORMAT, "line 3: more than 2 columns");
    make_text("t.csv", "a,b\n1,2\n8,3000000000\n");
    refused("csv:t.csv?integers=b", LEAT_EFORMAT, "expected an integer of 32 bits, found '3000000000'");
    make_text("t.csv", "a,b\n");
    refused("csv:t.csv", LEAT_EFORMAT, "'t.csv' has no rows");
    make_text("t.csv", "");
    refused("csv:t.csv", LEAT_EFORMAT, "empty");
    refused("csv:missing.csv", LEAT_ENOTFOUND, "missing.csv");
}

static void missing_values_follow_the_policy(void **state) {
    (void)state;
    make_text("t.csv", "a,b,c\n1,,x\n3,4,NA\nnan,8,y\n");
    refused("csv:t.csv?inputs=a,b", LEAT_EFORMAT, "line 2: column 'b' has no value (option missing)");
    gives("csv:t.csv?inputs=a,b&missing=skip", "3 4");
    gives("csv:t.csv?inputs=a,b&missing=mean", "1 6/3 4/2 8");
    gives("csv:t.csv?inputs=a,b&missing=-1", "1 -1/3 4/-1 8");
    refused("csv:t.csv?inputs=a&targets=b&missing=0", LEAT_EFORMAT, "targets and integers need skip");
    gives("csv:t.csv?inputs=b&targets=a&missing=skip", "4;3");
    gives("csv:t.csv?inputs=c&categories=c&missing=mean", "i1/0/2");
    gives("csv:t.csv?inputs=c&categories=c&missing=skip", "i0/1");
    make_text("t.csv", "a,b\n1,\n2,x\n");
    refused("csv:t.csv?missing=skip", LEAT_EFORMAT, "line 3: column 'b': expected a number, found 'x'");
    refused("csv:t.csv?missing=never", LEAT_EINVAL, "expected fail, skip, mean or a number");
}

static void categories_keep_their_numbers(void **state) {
    (void)state;
    make_text("t.csv", "city,size,y\nOslo,1,b\nBonn,2,a\nOslo,,b\nRome,4,b\n");
    gives("csv:t.csv?targets=y&categories=y&onehot_categories=city&missing=7",
          "0 1 0 1/1 0 0 2/0 1 0 7/0 0 1 4;i1/0/1/1");
    gives("csv:t.csv?targets=y&onehot_categories=y&inputs=city&categories=city", "i1/0/1/2;0 1/1 0/0 1/0 1");
    gives("csv:t.csv?targets=y&categories=city,y&missing=mean&mapping=m.json",
          "1 1/0 2/1 2.33333/2 4;i1/0/1/1");
    make_text("u.csv", "city,size,y\nRome,,a\n");
    gives("csv:u.csv?targets=y&categories=city,y&missing=mean&mapping=m.json", "2 2.33333;i0");
    make_text("u.csv", "city,size,y\nRome,1,a\n\nPisa,2,a\n");
    refused("csv:u.csv?targets=y&categories=city,y&missing=mean&mapping=m.json", LEAT_EINVAL,
            "line 4, column 'city': 'Pisa' is none of the 3 categories");
    refused("csv:u.csv?targets=y&onehot_categories=city,y,size&mapping=m.json", LEAT_EINVAL,
            "no categories of column 'size'");
    remove("m.json");
    remove("u.csv");
}

static void has_place(const leat_sequence *s, int64_t sample, const char *expected) {
    leat_error err = {0};
    char *name = NULL;
    if (leat_source_sample_name(s, sample, NULL, &name, &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_string_equal(name, expected);
    leati_free(name);
}

/* Rows that are left out, blank lines, fields of several lines and further files do not confuse the lines. */
static void samples_are_named_by_file_and_line(void **state) {
    (void)state;
    leat_sequence s;
    leat_error err = {0};
    make_text("t-08.csv", "made by hand\na,b\n1,x\n\n2,\"y\nz\"\n,u\n3,v\n4,w\n");
    make_text("t-09.csv", "made by hand\na,b\n5,x\n");
    assert_int_equal(leat_source_open(&s, sizeof s, "csv:t-*.csv?skip_lines=1&categories=b&missing=skip",
                                      NULL, &err),
                     LEAT_OK);
    assert_int_equal(s.samples(s.user), 5);
    has_place(&s, 0, "t-08.csv, line 3");
    has_place(&s, 1, "t-08.csv, line 5");
    has_place(&s, 2, "t-08.csv, line 8");
    has_place(&s, 3, "t-08.csv, line 9");
    has_place(&s, 4, "t-09.csv, line 3");
    leat_sequence_destroy(&s);
    remove("t-08.csv");
    remove("t-09.csv");
}

static void count_warning(void *user, leat_log_level level, const char *message) {
    (void)message;
    *(int *)user += level == LEAT_LOG_WARNING;
}

/* Headers that are probably none, and columns that are probably an index, are warned of. */
static void suspicious_tables_are_warned_of(void **state) {
    static const struct {
        const char *text, *spec;
        int warnings;
    } cases[] = {
        {"5.1,3.5,0\n4.9,3,1\n", "csv:t.csv", 1},
        {"5.1,3.5,0\n4.9,3,1\n", "csv:t.csv?header=false", 0},
        {"0,1,2\n4.9,3,1\n", "csv:t.csv", 0}, /* positions, which pandas writes */
        {"a,1\n4.9,3\n", "csv:t.csv", 0},
        {",a,y\n0,1,2\n", "csv:t.csv?targets=y", 1},
        {",a,y\n0,1,2\n", "csv:t.csv?targets=y&exclude=0", 0},
        {",a,y\n0,1,2\n", "csv:t.csv?targets=y&inputs=a", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        leat_sequence s;
        int warnings = 0;
        make_text("t.csv", cases[i].text);
        leat_set_log(count_warning, &warnings);
        assert_int_equal(leat_source_open(&s, sizeof s, cases[i].spec, NULL, NULL), LEAT_OK);
        leat_set_log(NULL, NULL);
        if (warnings != cases[i].warnings) fail_msg("case %d: %d warnings", (int)i, warnings);
        leat_sequence_destroy(&s);
    }
}

static void files_are_read_in_order(void **state) {
    (void)state;
    make_text("t-08.csv", "a,b\n1,2\n");
    make_text("t-09.csv", "a,b\n3,4");
    make_text("t-10.csv", "a,b\n5,6\n");
    gives("csv:t-{08..10}.csv", "1 2/3 4/5 6");
    gives("csv:t-1*.csv,t-0*.csv", "5 6/1 2/3 4");
    refused("csv:u-*.csv", LEAT_ENOTFOUND, "no file has a name that fits 'u-*.csv'");
    make_text("t-10.csv", "a,c\n5,6\n");
    refused("csv:t-{08..10}.csv", LEAT_EFORMAT,
            "'t-10.csv': column 2 is 'c', expected 'b' as in the first file");
    make_text("t-10.csv", "a,b\n5\n");
    refused("csv:t-{08..10}.csv", LEAT_EFORMAT, "'t-10.csv': line 2");
    for (int i = 8; i <= 10; ++i) {
        char name[16];
        snprintf(name, sizeof name, "t-%02d.csv", i);
        remove(name);
    }
}

static void other_forms_of_files_are_named(void **state) {
    static const struct {
        const char *begin, *says;
    } cases[] = {{"BZh91AY&SY", "compressed with bzip2: unpack it"},
                 {"\xfd\x37zXZ", "compressed with xz"},
                 {"PK\3\4", "a zip file"},
                 {"\xff\xfe"
                  "a",
                  "iconv -f UTF-16"},
                 {"PAR1", "a Parquet file"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        make_text("t.csv", cases[i].begin);
        refused("csv:t.csv", LEAT_EFORMAT, cases[i].says);
    }
}

static void compressed_files_are_unpacked(void **state) {
    static const char text[] = "a,b\n1,2\n3,4\n";
    char packed[256];
    (void)state;
    file.size = 0;
    bytes_add_deflated(&file, text, sizeof text - 1, 1);
    bytes_add_deflated(&file, "5,6\n", 4, 1); /* a second member */
    bytes_write(&file, "t.csv.gz");
    gives("csv:t.csv.gz", "1 2/3 4/5 6");
    file.size -= 6;
    bytes_write(&file, "t.csv.gz");
    refused("csv:t.csv.gz", LEAT_EFORMAT, "'t.csv.gz': the compressed data is cut off");
    const size_t count = ZSTD_compress(packed, sizeof packed, text, sizeof text - 1, 3);
    assert_false(ZSTD_isError(count));
    file.size = 0;
    bytes_add(&file, packed, count);
    bytes_write(&file, "t.csv.zst");
    gives("csv:t.csv.zst", "1 2/3 4");
    file.size -= 3;
    bytes_write(&file, "t.csv.zst");
    refused("csv:t.csv.zst", LEAT_EFORMAT, "the compressed data is cut off");
    remove("t.csv.gz");
    remove("t.csv.zst");
}

/* Reads a text with chunks of the given size, and writes the numbers, or the message. */
static void read_chunks(char *out, size_t room, const char *text, size_t chunk_bytes) {
    leati_csv_table table = {.format = {.separator = ',',
                                        .point = '.',
                                        .has_header = true,
                                        .missing = LEATI_CSV_MISSING_SKIP,
                                        .chunk_bytes = chunk_bytes}};
    leati_spec spec;
    leat_error err = {0};
    char *lengths = strdup("csv:x?categories=b");
    assert_int_equal(leati_spec_parse(&spec, lengths, &err), LEAT_OK);
    leat_status status = leati_csv_table_add(&table, text, strlen(text), "x", &spec, NULL, &err);
    if (status == LEAT_OK) status = leati_csv_table_finish(&table, &err);
    out[0] = '\0';
    if (status != LEAT_OK)
        snprintf(out, room, "%s", err.message);
    else
        for (int64_t i = 0; i < table.rows * 2; ++i)
            snprintf(out + strlen(out), room - strlen(out), "%g ", ((const float *)table.groups[0].data)[i]);
    for (int64_t row = 0; row < table.rows && status == LEAT_OK; ++row) {
        const leati_csv_run run = leati_csv_runs_find(&table.runs, row);
        assert_string_equal(table.paths[run.file], "x");
        snprintf(out + strlen(out), room - strlen(out), "line %d ", (int)run.line);
    }
    leati_csv_table_fini(&table);
    leati_spec_fini(&spec);
    free(lengths);
}

static void chunks_do_not_matter(void **state) {
    static const char *const texts[] = {
        "a,b\n1,x\n22,\"y\n,\"\n333,\"z\"\"\"\n\n,n\n4,\"\n\n\"\r\n5,x\n",
        "a,b\n1,\"long long long long long long\nlong long\nlong\"\n2,y\n3,z\n4,w",
        "a,b\n1,x\n2,\"y\n\n\n\"\n3\n4,z\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        char whole[512], parts[512];
        read_chunks(whole, sizeof whole, texts[i], 0);
        assert_true(i < 2 || strstr(whole, "line 7: expected 2 columns, found 1"));
        assert_true(i > 0 || strstr(whole, "line 2 line 3 line 5 line 8 line 11 "));
        for (size_t size = 1; size < 70; ++size) {
            read_chunks(parts, sizeof parts, texts[i], size);
            assert_string_equal(whole, parts);
        }
    }
}

static int enter(void **state) {
    return files_enter(state);
}

static int leave(void **state) {
    remove("t.csv");
    return files_leave(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_rounded_correctly),
        cmocka_unit_test(numbers_round_as_strtof),
        cmocka_unit_test(columns_are_named),
        cmocka_unit_test(fields_are_quoted),
        cmocka_unit_test(bad_rows_fail_or_are_skipped),
        cmocka_unit_test(missing_values_follow_the_policy),
        cmocka_unit_test(categories_keep_their_numbers),
        cmocka_unit_test(samples_are_named_by_file_and_line),
        cmocka_unit_test(suspicious_tables_are_warned_of),
        cmocka_unit_test(files_are_read_in_order),
        cmocka_unit_test(other_forms_of_files_are_named),
        cmocka_unit_test(compressed_files_are_unpacked),
        cmocka_unit_test(chunks_do_not_matter),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
