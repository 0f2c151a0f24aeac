// SPDX-License-Identifier: MIT
// Numbers in text are read with a point, also where the process' locale has a comma.
#include "base/number.h"

#include <locale.h>
#include <stdbool.h>
#include <unistd.h>
#include "../check.h"
#include <tenon/tenon.h>

// A locale that is made for this test. False: this machine cannot make it.
static bool set_comma(const char *folder)
{
    char command[256];
    snprintf(command, sizeof(command),
             "localedef -i de_DE -f ISO-8859-1 --no-archive %s/de_DE >/dev/null 2>&1",
             folder);
    setenv("LOCPATH", folder, 1);
    return system(command) >= 0 && setlocale(LC_NUMERIC, "de_DE") &&
           strcmp(localeconv()->decimal_point, ",") == 0;
}

static void check_numbers(void)
{
    char *end;
    const char *text = "0.25x";
    assert_true(text_to_double(text, &end) == 0.25);
    assert_ptr_equal(end, text + 4);
    const char *const variables[] = {"TENON_CHECK=0.5", "TENON_PLUGINS_ONLY=1", NULL};
    const tn_runtime_options options = {.variables = variables};
    tn_runtime *runtime = NULL;
    assert_int_equal(tn_runtime_open(&options, &runtime), TN_OK);
    tn_scope *s = tn_scope_open(runtime);
    assert_non_null(
        tn_expr(s, "x -> x * 0.5 + rate", TN_IN(tn_f64(s, 1)), tn_attrs("rate", "0.25")));
    tn_scope_close(s);
    tn_runtime_close(runtime);
}

static void numbers_are_the_same_in_every_locale(void **state)
{
    (void)state;
    char folder[] = "/tmp/tenon-locale-XXXXXX", command[64];
    check_numbers();
    assert_non_null(mkdtemp(folder));
    bool is_set = set_comma(folder);
    if (is_set)
        check_numbers();
    setlocale(LC_NUMERIC, "C");
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    if (!is_set)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_the_same_in_every_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
