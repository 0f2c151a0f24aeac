// SPDX-License-Identifier: MIT
// The file of TENON_WHY when its events are large.
#include "watch/why_log.h"

#include <string.h>
#include <unistd.h>
#include "check.h"
#include <tenon/tenon.h>
#include "base/fail.h"

// An event of one node whose text has `size` letters.
static void write_event(tn_runtime *runtime, size_t size, char letter)
{
    char *text = malloc(size + 1);
    memset(text, letter, size);
    text[size] = 0;
    json_t *explanation = json_pack("{s:[{s:s}]}", "nodes", "op", text);
    why_log_plan(runtime, explanation, NULL);
    json_decref(explanation);
    free(text);
}

// How many of the letters stand in the file.
static size_t count(const char *path, char letter)
{
    size_t found = 0;
    FILE *file = fopen(path, "r");
    cr_assert(ne(ptr, file, NULL));
    for (int c; (c = getc(file)) != EOF;)
        found += c == letter;
    fclose(file);
    return found;
}

Test(why_log, an_event_larger_than_half_the_file_is_written)
{
    char path[] = "/tmp/tenon-why-XXXXXX", variable[64];
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    snprintf(variable, sizeof(variable), "TENON_WHY=%s", path);
    const char *const variables[] = {variable, "TENON_PLUGINS_ONLY=1", NULL};
    const tn_runtime_options options = {.variables = variables};
    tn_runtime *runtime = NULL;
    check_status(tn_runtime_open(&options, &runtime), TN_OK);
    write_event(runtime, 100000, '#');
    write_event(runtime, WHY_LOG_LIMIT - 50000, '@'); // the two are more than the limit
    cr_assert(eq(i64, count(path, '@'), WHY_LOG_LIMIT - 50000));
    write_event(runtime, 1000, '~');
    cr_assert(eq(u64, count(path, '~'), 1000));
    cr_assert(eq(u64, count(path, '#'), 0));
    cr_assert(eq(u64, count(path, '@'), 0));
    tn_runtime_close(runtime);
    unlink(path);
}
