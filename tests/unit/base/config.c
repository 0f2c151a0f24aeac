// SPDX-License-Identifier: MIT
// Variables, warnings, homes and the log.
#include <unistd.h>
#include "check.h"
#include "base/config.h"
#include "base/fail.h"
#include "base/memory.h"
#include <tenon/host.h>

// What `create` writes to stderr.
static char written[4096];

static struct config *create(bool elevated, const char *const *variables)
{
    struct config *config = NULL;
    FILE *file = tmpfile();
    fflush(stderr);
    int saved = dup(2);
    dup2(fileno(file), 2);
    check_status(config_create_as(elevated, variables, &config), TN_OK);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    rewind(file);
    written[fread(written, 1, sizeof(written) - 1, file)] = 0;
    fclose(file);
    return config;
}

static void reset(void)
{
    const char *doc, *name;
    for (uint32_t i = 0; (name = config_variable(i, &doc)); i++)
        unsetenv(name);
    unsetenv("TENON_BAKCEND");
}

TestSuite(config, .init = reset);

Test(config, given_variables_come_before_the_environment)
{
    setenv("TENON_BACKEND", "cpu-blas", 1);
    setenv("TENON_THREADS", "3", 1);
    struct config *config = create(false, (const char *[]){"TENON_BACKEND=null", NULL});
    cr_assert(eq(str, config_get(config, "TENON_BACKEND"), "null"));
    cr_assert(eq(str, config_get(config, "TENON_THREADS"), "3"));
    cr_assert(eq(ptr, config_get(config, "TENON_TRACE"), NULL));
    cr_assert(eq(ptr, config_get(config, "PATH"), NULL));
    cr_assert(eq(str, written, ""));
    config_destroy(config);
}

Test(config, under_elevated_privileges_the_environment_is_empty)
{
    setenv("TENON_BACKEND", "cpu-blas", 1);
    setenv("TENON_BAKCEND", "x", 1);
    struct config *config = create(true, (const char *[]){"TENON_THREADS=2", NULL});
    cr_assert(config_is_elevated(config));
    cr_assert(eq(ptr, config_get(config, "TENON_BACKEND"), NULL));
    cr_assert(eq(str, config_get(config, "TENON_THREADS"), "2"));
    cr_assert(eq(ptr, config_data_home(config), NULL));
    cr_assert(eq(ptr, config_cache_home(config), NULL));
    cr_assert(eq(str, written, ""));
    config_destroy(config);
}

Test(config, unknown_variables_are_reported_with_the_nearest)
{
    setenv("TENON_BAKCEND", "null", 1);
    setenv("TENON_TEST_ANYTHING", "1", 1);
    struct config *config = create(false, NULL);
    cr_assert(eq(str, written,
                 "tenon: warn: config: TENON_BAKCEND is not a variable of "
                 "Tenon; did you mean TENON_BACKEND?\n"));
    config_destroy(config);
    unsetenv("TENON_BAKCEND");
    check_status(
        config_create((const char *[]){"TENON_THREAD=2", NULL}, &(struct config *){NULL}),
        TN_ERR_ARGUMENT);
    cr_assert(eq(str, fail_text(),
                 "variable 'TENON_THREAD' is not known; did you mean "
                 "TENON_THREADS?"));
    check_status(
        config_create((const char *[]){"TENON_THREADS", NULL}, &(struct config *){NULL}),
        TN_ERR_ARGUMENT);
}

Test(config, values_that_cannot_be_meant_are_reported_and_ignored)
{
    setenv("TENON_FALLBACK", "wran", 1);
    setenv("TENON_THREADS", "0", 1);
    setenv("TENON_DLCLOSE", "yes", 1);
    setenv("TENON_PLUGINS_ONLY", "1", 1);
    setenv("TENON_TRACE", "", 1);
    struct config *config = create(false, NULL);
    cr_assert(eq(ptr, config_get(config, "TENON_FALLBACK"), NULL));
    cr_assert(eq(ptr, config_get(config, "TENON_THREADS"), NULL));
    cr_assert(not(config_switch(config, "TENON_DLCLOSE")));
    cr_assert(config_switch(config, "TENON_PLUGINS_ONLY"));
    cr_assert(eq(ptr, config_get(config, "TENON_TRACE"), NULL));
    check_says(written, "TENON_FALLBACK=wran is ignored");
    check_says(written, "did you mean warn?");
    check_says(written, "TENON_THREADS=0 is ignored");
    check_says(written, "TENON_DLCLOSE=yes is ignored: expected 0 or 1");
    config_destroy(config);
}

Test(config, homes_follow_xdg)
{
    setenv("HOME", "/home/somebody", 1);
    unsetenv("XDG_DATA_HOME");
    setenv("XDG_CACHE_HOME", "relative/is/ignored", 1);
    struct config *config = create(false, NULL);
    cr_assert(eq(str, config_data_home(config), "/home/somebody/.local/share"));
    cr_assert(eq(str, config_cache_home(config), "/home/somebody/.cache"));
    config_destroy(config);
    setenv("XDG_DATA_HOME", "/data", 1);
    unsetenv("HOME");
    config = create(false, NULL);
    cr_assert(eq(str, config_data_home(config), "/data"));
    cr_assert(eq(ptr, config_cache_home(config), NULL));
    config_destroy(config);
}

Test(config, the_log_has_levels_by_topic)
{
    struct config *config =
        create(false, (const char *[]){"TENON_LOG=error,sched=debug,plugin=off", NULL});
    cr_assert(log_wanted(config, TN_LOG_ERROR, "x"));
    cr_assert(not(log_wanted(config, TN_LOG_WARN, "x")));
    cr_assert(log_wanted(config, TN_LOG_DEBUG, "sched"));
    cr_assert(not(log_wanted(config, TN_LOG_TRACE, "sched")));
    cr_assert(not(log_wanted(config, TN_LOG_ERROR, "plugin")));
    config_destroy(config);
    config = create(false, (const char *[]){"TENON_LOG=debgu,a=b=c,=warn", NULL});
    cr_assert(log_wanted(config, TN_LOG_WARN, NULL));
    cr_assert(not(log_wanted(config, TN_LOG_INFO, NULL)));
    check_says(written, "'debgu' is ignored");
    check_says(written, "did you mean debug?");
    check_says(written, "'a=b=c' is ignored");
    check_says(written, "'=warn' is ignored");
    config_destroy(config);
    cr_assert(log_wanted(NULL, TN_LOG_WARN, "x"));
}

Test(config, the_nearest_name_is_found_and_far_ones_are_not)
{
    const char *names[] = {"base.add", "base.matmul", "nn.softmax", NULL};
    cr_assert(eq(str, config_nearest("base.mtmul", names), "base.matmul"));
    cr_assert(eq(str, config_nearest("NN.SOFTMAX", names), "nn.softmax"));
    cr_assert(eq(ptr, config_nearest("zzzzzz", names), NULL));
    cr_assert(eq(ptr, config_nearest("", names), NULL));
    cr_assert(eq(ptr, config_nearest("x", NULL), NULL));
    char longer[400];
    memset(longer, 'a', sizeof(longer));
    longer[399] = 0;
    cr_assert(eq(ptr, config_nearest(longer, names), NULL));
}

Test(config, running_out_of_memory_is_survived)
{
    setenv("TENON_BACKEND", "cpu-blas", 1);
    setenv("HOME", "/home/somebody", 1);
    tn_status status = TN_ERR_MEMORY;
    for (int64_t n = 1; status != TN_OK; n++) {
        struct config *config = NULL;
        mem_fail_nth(n);
        status = config_create((const char *[]){"TENON_LOG=warn", NULL}, &config);
        mem_fail_nth(0);
        cr_assert(status == TN_OK || status == TN_ERR_MEMORY);
        cr_assert(eq(int, status == TN_OK, config != NULL));
        config_destroy(config);
        check_within(i64, n, 1, 100);
    }
}
