// SPDX-License-Identifier: MIT
// Makes the teardown a part of its test, under AddressSanitizer with a look for leaks after
// it. Criterion 2.4 prints what fails in a teardown, and counts the test as passed; its
// workers end by _exit(), before the sanitizer looks. The function below stands before that
// of Criterion's library, which it calls.
#include <dlfcn.h>
#include "check.h"

// The sanitizer's, where it is linked.
__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);

// Criterion's runner keeps what it read of the environment. The sanitizer asks both.
#define ASKED __attribute__((visibility("default"))) const char *
ASKED __lsan_default_suppressions(void);
ASKED __lsan_default_options(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:criterion_handle_args\n";
}

const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}

static void (*body)(void);

// Criterion itself finds no teardown afterwards. A test that gives up does not come here,
// and its teardown is Criterion's. What a worker is sent of its test lies at any address.
static void tear_down(struct criterion_test_extra_data *sent)
{
    struct criterion_test_extra_data data = {0};
    if (sent)
        memcpy(&data, (const void *)sent, sizeof(data));
    void (*fini)(void) = data.fini;
    if (!fini)
        return;
    data.fini = NULL;
    memcpy((void *)sent, &data, sizeof(data));
    fini();
}

static void finish(void)
{
    tear_down(criterion_current_test->data);
    tear_down(criterion_current_suite->data);
    if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
        cr_fail("memory was leaked");
}

static void run(void)
{
    body();
    finish();
}

static void run_with(void *parameter)
{
    ((void (*)(void *))body)(parameter);
    finish();
}

void criterion_internal_test_main(void (*test)(void))
{
    void (*library)(void (*)(void)) =
        (void (*)(void (*)(void)))dlsym(RTLD_NEXT, "criterion_internal_test_main");
    struct criterion_test_extra_data data;
    memcpy(&data, (const void *)criterion_current_test->data, sizeof(data));
    body = test;
    library(data.kind_ == CR_TEST_PARAMETERIZED ? (void (*)(void))run_with : run);
}
