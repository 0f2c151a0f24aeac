// SPDX-License-Identifier: MIT
// Variables, warnings, homes and the log.
#include <unistd.h>
#include "../check.h"
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
    assert_int_equal(config_create_as(elevated, variables, &config), TN_OK);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    rewind(file);
    written[fread(written, 1, sizeof(written) - 1, file)] = 0;
    fclose(file);
    return config;
}

static int reset(void **state)
{
    (void)state;
    const char *doc, *name;
    for (uint32_t i = 0; (name = config_variable(i, &doc)); i++)
        unsetenv(name);
    unsetenv("TENON_BAKCEND");
    return 0;
}

static void given_variables_come_before_the_environment(void **state)
{
    (void)state;
    setenv("TENON_BACKEND", "cpu-blas", 1);
    setenv("TENON_THREADS", "3", 1);
    struct config *config = create(false, (const char *[]){"TENON_BACKEND=null", NULL});
    assert_string_equal(config_get(config, "TENON_BACKEND"), "null");
    assert_string_equal(config_get(config, "TENON_THREADS"), "3");
    assert_null(config_get(config, "TENON_TRACE"));
    assert_null(config_get(config, "PATH"));
    assert_string_equal(written, "");
    config_destroy(config);
}

static void under_elevated_privileges_the_environment_is_empty(void **state)
{
    (void)state;
    setenv("TENON_BACKEND", "cpu-blas", 1);
    setenv("TENON_BAKCEND", "x", 1);
    struct config *config = create(true, (const char *[]){"TENON_THREADS=2", NULL});
    assert_true(config_is_elevated(config));
    assert_null(config_get(config, "TENON_BACKEND"));
    assert_string_equal(config_get(config, "TENON_THREADS"), "2");
    assert_null(config_data_home(config));
    assert_null(config_cache_home(config));
    assert_string_equal(written, "");
    config_destroy(config);
}

static void unknown_variables_are_reported_with_the_nearest(void **state)
{
    (void)state;
    setenv("TENON_BAKCEND", "null", 1);
    setenv("TENON_TEST_ANYTHING", "1", 1);
    struct config *config = create(false, NULL);
    assert_string_equal(written, "tenon: warn: config: TENON_BAKCEND is not a variable of "
                                 "Tenon; did you mean TENON_BACKEND?\n");
    config_destroy(config);
    unsetenv("TENON_BAKCEND");
    assert_int_equal(
        config_create((const char *[]){"TENON_THREAD=2", NULL}, &(struct config *){NULL}),
        TN_ERR_ARGUMENT);
    assert_string_equal(fail_text(), "variable 'TENON_THREAD' is not known; did you mean "
                                     "TENON_THREADS?");
    assert_int_equal(
        config_create((const char *[]){"TENON_THREADS", NULL}, &(struct config *){NULL}),
        TN_ERR_ARGUMENT);
}

static void values_that_cannot_be_meant_are_reported_and_ignored(void **state)
{
    (void)state;
    setenv("TENON_FALLBACK", "wran", 1);
    setenv("TENON_THREADS", "0", 1);
    setenv("TENON_DLCLOSE", "yes", 1);
    setenv("TENON_PLUGINS_ONLY", "1", 1);
    setenv("TENON_TRACE", "", 1);
    struct config *config = create(false, NULL);
    assert_null(config_get(config, "TENON_FALLBACK"));
    assert_null(config_get(config, "TENON_THREADS"));
    assert_false(config_switch(config, "TENON_DLCLOSE"));
    assert_true(config_switch(config, "TENON_PLUGINS_ONLY"));
    assert_null(config_get(config, "TENON_TRACE"));
    assert_non_null(strstr(written, "TENON_FALLBACK=wran is ignored"));
    assert_non_null(strstr(written, "did you mean warn?"));
    assert_non_null(strstr(written, "TENON_THREADS=0 is ignored"));
    assert_non_null(strstr(written, "TENON_DLCLOSE=yes is ignored: expected 0 or 1"));
    config_destroy(config);
}

static void homes_follow_xdg(void **state)
{
    (void)state;
    setenv("HOME", "/home/somebody", 1);
    unsetenv("XDG_DATA_HOME");
    setenv("XDG_CACHE_HOME", "relative/is/ignored", 1);
    struct config *config = create(false, NULL);
    assert_string_equal(config_data_home(config), "/home/somebody/.local/share");
    assert_string_equal(config_cache_home(config), "/home/somebody/.cache");
    config_destroy(config);
    setenv("XDG_DATA_HOME", "/data", 1);
    unsetenv("HOME");
    config = create(false, NULL);
    assert_string_equal(config_data_home(config), "/data");
    assert_null(config_cache_home(config));
    config_destroy(config);
}

static void the_log_has_levels_by_topic(void **state)
{
    (void)state;
    struct config *config =
        create(false, (const char *[]){"TENON_LOG=error,sched=debug,plugin=off", NULL});
    assert_true(log_wanted(config, TN_LOG_ERROR, "x"));
    assert_false(log_wanted(config, TN_LOG_WARN, "x"));
    assert_true(log_wanted(config, TN_LOG_DEBUG, "sched"));
    assert_false(log_wanted(config, TN_LOG_TRACE, "sched"));
    assert_false(log_wanted(config, TN_LOG_ERROR, "plugin"));
    config_destroy(config);
    config = create(false, (const char *[]){"TENON_LOG=debgu,a=b=c,=warn", NULL});
    assert_true(log_wanted(config, TN_LOG_WARN, NULL));
    assert_false(log_wanted(config, TN_LOG_INFO, NULL));
    assert_non_null(strstr(written, "'debgu' is ignored"));
    assert_non_null(strstr(written, "did you mean debug?"));
    assert_non_null(strstr(written, "'a=b=c' is ignored"));
    assert_non_null(strstr(written, "'=warn' is ignored"));
    config_destroy(config);
    assert_true(log_wanted(NULL, TN_LOG_WARN, "x"));
}

static void the_nearest_name_is_found_and_far_ones_are_not(void **state)
{
    (void)state;
    const char *names[] = {"base.add", "base.matmul", "nn.softmax", NULL};
    assert_string_equal(config_nearest("base.mtmul", names), "base.matmul");
    assert_string_equal(config_nearest("NN.SOFTMAX", names), "nn.softmax");
    assert_null(config_nearest("zzzzzz", names));
    assert_null(config_nearest("", names));
    assert_null(config_nearest("x", NULL));
    char longer[400];
    memset(longer, 'a', sizeof(longer));
    longer[399] = 0;
    assert_null(config_nearest(longer, names));
}

static void running_out_of_memory_is_survived(void **state)
{
    (void)state;
    setenv("TENON_BACKEND", "cpu-blas", 1);
    setenv("HOME", "/home/somebody", 1);
    tn_status status = TN_ERR_MEMORY;
    for (int64_t n = 1; status != TN_OK; n++) {
        struct config *config = NULL;
        mem_fail_nth(n);
        status = config_create((const char *[]){"TENON_LOG=warn", NULL}, &config);
        mem_fail_nth(0);
        assert_true(status == TN_OK || status == TN_ERR_MEMORY);
        assert_true((status == TN_OK) == (config != NULL));
        config_destroy(config);
        assert_in_range(n, 1, 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(given_variables_come_before_the_environment, reset),
        cmocka_unit_test_setup(under_elevated_privileges_the_environment_is_empty, reset),
        cmocka_unit_test_setup(unknown_variables_are_reported_with_the_nearest, reset),
        cmocka_unit_test_setup(values_that_cannot_be_meant_are_reported_and_ignored, reset),
        cmocka_unit_test_setup(homes_follow_xdg, reset),
        cmocka_unit_test_setup(the_log_has_levels_by_topic, reset),
        cmocka_unit_test_setup(the_nearest_name_is_found_and_far_ones_are_not, reset),
        cmocka_unit_test_setup(running_out_of_memory_is_survived, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
