// SPDX-License-Identifier: MIT
// Runs a program's tests one after another in one process and prints TAP, under
// ThreadSanitizer alone: Criterion's own runner does not start there, because the memory
// that it shares with its workers lies at addresses which the sanitizer keeps for itself.
// The functions below that Criterion's macros call stand before those of its library.
#include <fnmatch.h>
#include <setjmp.h>
#include "check.h"

// Pointers to the program's tests and suites: Criterion's macros put them into two
// sections.
extern struct criterion_test *const __start_cr_tst[], *const __stop_cr_tst[];
#pragma weak __start_cr_sts
#pragma weak __stop_cr_sts
extern struct criterion_suite *const __start_cr_sts[], *const __stop_cr_sts[];

static const struct criterion_test *test;
static const struct criterion_test_extra_data *suite;
static void *parameter; // of a parameterised test
static jmp_buf end;     // of the test, for one that gives up
static bool failed;
static char skipped[512]; // why

// --- what Criterion's macros call --------------------------------------------------------

void criterion_abort_test(void)
{
    longjmp(end, 1);
}

void criterion_continue_test(void)
{
}

void criterion_skip_test(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(skipped, sizeof(skipped), format, args);
    va_end(args);
    longjmp(end, 1);
}

static void print_failure(const struct cri_assert_node *node)
{
    if (node->repr && !node->pass)
        fprintf(stderr, "    %s\n", node->repr);
    for (uint32_t i = 0; i < CRI_ASSERT_MAX_PARAMS && node->params[i].name; i++)
        if (node->params[i].type == CRI_ASSERT_RT_STR)
            fprintf(stderr, "        %s: %s\n", node->params[i].name,
                    (const char *)node->params[i].data);
    for (uint32_t i = 0; i < node->nchild; i++)
        print_failure(&node->children[i]);
}

void cri_assert_node_send(const char *file, size_t line, struct cri_assert_node *tree)
{
    failed = true;
    fprintf(stderr, "%s:%zu: %s\n", file, line, tree->message ? tree->message : "");
    print_failure(tree);
}

static void call(void (*fixture)(void))
{
    if (fixture)
        fixture();
}

void criterion_internal_test_setup(void)
{
    call(suite ? suite->init : NULL);
    call(test->data->init);
}

void criterion_internal_test_main(void (*body)(void))
{
    if (test->data->kind_ == CR_TEST_PARAMETERIZED)
        ((void (*)(void *))body)(parameter);
    else
        body();
}

void criterion_internal_test_teardown(void)
{
    call(test->data->fini);
    call(suite ? suite->fini : NULL);
}

// --- the runner --------------------------------------------------------------------------

static const struct criterion_test_extra_data *find_suite(const char *name)
{
    for (struct criterion_suite *const *s = __start_cr_sts; s < __stop_cr_sts; s++)
        if (strcmp((*s)->name, name) == 0)
            return (*s)->data;
    return NULL;
}

static bool run(void)
{
    failed = false;
    skipped[0] = 0;
    fflush(stdout);
    if (!setjmp(end))
        test->test();
    printf("%s - %s::%s%s%s\n", failed ? "not ok" : "ok", test->category, test->name,
           skipped[0] ? " # SKIP " : "", skipped);
    return !failed;
}

static bool run_each_parameter(void)
{
    bool good = true;
    struct criterion_test_params all = test->data->param_();
    for (size_t i = 0; i < all.length; i++) {
        parameter = (char *)all.params + i * all.size;
        good = run() && good;
    }
    if (all.cleanup)
        all.cleanup(&all);
    return good;
}

// Whether Criterion's option --filter PATTERN names it. Its patterns are the shell's, over
// SUITE/NAME.
static bool is_chosen(const struct criterion_test *t, const char *pattern)
{
    char name[256];
    snprintf(name, sizeof(name), "%s/%s", t->category, t->name);
    return !pattern || fnmatch(pattern, name, FNM_EXTMATCH) == 0;
}

int main(int argc, char **argv)
{
    const char *pattern = argc == 3 && strcmp(argv[1], "--filter") == 0 ? argv[2] : NULL;
    bool good = true;
    uint32_t count = 0;
    for (struct criterion_test *const *t = __start_cr_tst; t < __stop_cr_tst; t++) {
        test = *t;
        if (!is_chosen(test, pattern))
            continue;
        suite = find_suite(test->category);
        bool each = test->data->kind_ == CR_TEST_PARAMETERIZED;
        good = (each ? run_each_parameter() : run()) && good;
        count += each ? (uint32_t)test->data->param_().length : 1;
    }
    printf("1..%u\n", count);
    return good ? 0 : 1;
}
