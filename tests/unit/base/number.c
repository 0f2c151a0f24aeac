// SPDX-License-Identifier: MIT
// Numbers in text are read with a point, also where the process' locale has a comma.
#include "base/number.h"

#include <locale.h>
#include <stdbool.h>
#include <unistd.h>
#include "check.h"
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
    cr_assert(text_to_double(text, &end) == 0.25);
    cr_assert(eq(ptr, end, text + 4));
    const char *const variables[] = {"TENON_CHECK=0.5", "TENON_PLUGINS_ONLY=1", NULL};
    const tn_runtime_options options = {.variables = variables};
    tn_runtime *runtime = NULL;
    check_status(tn_runtime_open(&options, &runtime), TN_OK);
    tn_scope *s = tn_scope_open(runtime);
    cr_assert(
        ne(ptr,
           tn_expr(s, "x -> x * 0.5 + rate", TN_IN(tn_f64(s, 1)), tn_attrs("rate", "0.25")),
           NULL));
    tn_scope_close(s);
    tn_runtime_close(runtime);
}

Test(number, numbers_are_the_same_in_every_locale)
{
    char folder[] = "/tmp/tenon-locale-XXXXXX", command[64];
    check_numbers();
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
    bool is_set = set_comma(folder);
    if (is_set)
        check_numbers();
    setlocale(LC_NUMERIC, "C");
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert(eq(int, system(command), 0));
    if (!is_set)
        cr_skip("this machine makes no locale with a comma");
}
