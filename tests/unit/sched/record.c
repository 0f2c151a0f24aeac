// SPDX-License-Identifier: MIT
// The file of TENON_WHY when its events are large.
#include "sched/record.h"

#include <string.h>
#include <unistd.h>
#include "../check.h"
#include <tenon/tenon.h>
#include "base/fail.h"

// An event of one node whose text has `size` letters.
static void write_event(tn_runtime *runtime, size_t size, char letter)
{
    char *text = malloc(size + 1);
    memset(text, letter, size);
    text[size] = 0;
    json_t *told = json_pack("{s:[{s:s}]}", "nodes", "op", text);
    record_plan(runtime, told, NULL);
    json_decref(told);
    free(text);
}

// How many of the letters stand in the file.
static size_t count(const char *path, char letter)
{
    size_t found = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (int c; (c = getc(file)) != EOF;)
        found += c == letter;
    fclose(file);
    return found;
}

static void an_event_larger_than_half_the_file_is_written(void **state)
{
    (void)state;
    char path[] = "/tmp/tenon-record-XXXXXX", variable[64];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(variable, sizeof(variable), "TENON_WHY=%s", path);
    const char *const variables[] = {variable, "TENON_PLUGINS_ONLY=1", NULL};
    const tn_runtime_options options = {.variables = variables};
    tn_runtime *runtime = NULL;
    assert_int_equal(tn_runtime_open(&options, &runtime), TN_OK);
    write_event(runtime, 100000, '#');
    write_event(runtime, RECORD_LIMIT - 50000, '@'); // the two are more than the limit
    assert_int_equal(count(path, '@'), RECORD_LIMIT - 50000);
    write_event(runtime, 1000, '~');
    assert_int_equal(count(path, '~'), 1000);
    assert_int_equal(count(path, '#'), 0);
    assert_int_equal(count(path, '@'), 0);
    tn_runtime_close(runtime);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_larger_than_half_the_file_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
