// SPDX-License-Identifier: MIT
// Extents that overflow, sizes that no device has, and arrays without elements: products,
// convolutions, attention and topk, on the backend of TENON_TEST_BACKEND. What cannot be is
// refused with what was got and what is expected; what is empty is computed.
#include "../support/common.h"

#include <stdlib.h>
#include "lang/lang.h"

// One element seen as any shape.
#define ONE(...) "broadcast_to(x, shape=[" #__VA_ARGS__ "])"

static const struct row {
    const char *program; // of an x = [1] of f32
    const char *says;    // of the message; NULL: it is computed
    const char *extents; // of the first result, then
    bool slow;           // on a software driver: on the processor alone
} rows[] = {
    {"y = " ONE(1099511627776, 1) "; y @ y.T", "does not fit 63 bits", NULL},
    {ONE(4611686018427387904, 4), "does not fit 63 bits", NULL},
    {"tile(" ONE(4) ", reps=[4611686018427387904])", "overflows", NULL},
    {"conv2d(" ONE(1, 4, 4, 3) ", " ONE(2, 3, 3, 3) ", padding=4611686018427387904)",
     "padding is 4611686018427387904, expected at least 0 and at most 2147483647", NULL},
    {"conv2d(" ONE(1, 4, 4, 3) ", " ONE(2, 3, 3, 3) ", dilation=4611686018427387904)",
     "dilation is 4611686018427387904, expected at least 1 and at most 2147483647", NULL},
    {"conv2d(" ONE(1, 4, 4, 3) ", " ONE(2, 3, 3, 3) ", stride=0)",
     "stride is 0, expected at least 1", NULL},
    {"conv2d(" ONE(1, 4, 4, 3) ", " ONE(2, 5, 5, 3) ")",
     "w has 5 elements along H, which reach over 5, expected no more than the 4 of x",
     NULL},
    {"topk(" ONE(4) ", k=5)", "k is 5, expected 0 to 4, the extent of axis 0", NULL},
    {"topk(" ONE(4) ", k=-1)", "k is -1, expected 0 to 4", NULL},
    {"topk(" ONE(4, 0) ", k=1)", "k is 1, expected 0 to 0, the extent of axis 1", NULL},
    {"scaled_dot_product_attention(" ONE(1, 3, 4, 8) ", " ONE(1, 2, 4, 8) ", " ONE(1, 2, 4,
                                                                                   8) ")",
     "3", NULL},
    {"y = " ONE(0, 4, 4) "; y @ y", NULL, "0 4 4"},
    {"y = " ONE(3, 0, 4) "; y.mT @ y", NULL, "3 4 4"},
    {"conv2d(" ONE(0, 4, 4, 3) ", " ONE(2, 3, 3, 3) ", padding=1)", NULL, "0 4 4 2"},
    {"y = " ONE(0, 2, 4, 8) "; scaled_dot_product_attention(y, y, y)", NULL, "0 2 4 8"},
    {"y = " ONE(1, 2, 0, 8) "; scaled_dot_product_attention(y, y, y)", NULL, "1 2 0 8"},
    {"k = " ONE(1, 2, 0, 8) "; scaled_dot_product_attention(" ONE(1, 2, 4, 8) ", k, k)",
     NULL, "1 2 4 8"},
    {"topk(" ONE(0, 4) ", k=2)", NULL, "0 2"},
    {"topk(" ONE(4) ", k=0)", NULL, "0"},
    {"y = " ONE(70000, 1, 1) "; y @ y", NULL, "70000 1 1"},
    {"conv2d(" ONE(70000, 1, 1, 1) ", " ONE(1, 1, 1, 1) ")", NULL, "70000 1 1 1"},
    {"y = " ONE(70000, 1, 1, 4) "; scaled_dot_product_attention(y, y, y)", NULL,
     "70000 1 1 4", true},
    {"topk(" ONE(70000, 2) ", k=1)", NULL, "70000 1", true},
};

static tn_runtime *rt;

static bool is_cpu(void)
{
    return strcmp(getenv("TENON_TEST_BACKEND"), "cpu-blas") == 0;
}

static void begin(void)
{
    rt = open_on(getenv("TENON_TEST_BACKEND"));
}

static void finish(void)
{
    tn_runtime_close(rt);
}

TestSuite(refused, .init = begin, .fini = finish, .timeout = 100);

static void extents_of(const tn_array *x, char text[128])
{
    const tn_type *type = tn_array_type(x);
    size_t n = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < type->rank; i++)
        n += (size_t)snprintf(text + n, 128 - n, "%s%lld", i ? " " : "",
                              (long long)type->extent[i]);
}

static void check_row(const struct row *row)
{
    struct lang_tree tree = {0};
    struct lang_names names = {0};
    struct lang_results results = {0};
    const float one = 1;
    char extents[128];
    tn_scope *s = tn_scope_open(rt);
    cr_assert(eq(int, lang_parse(row->program, &tree), 0), "%s: %s", row->program,
              oops_text());
    lang_names_set(&names, "x", tn_from_data(s, TN_F32, TN_SHAPE(1), &one));
    int failed = lang_eval(&tree, s, &names, &results);
    if (!failed && tn_eval_n(s, results.items, results.count))
        failed = oops_scope(s);
    if (row->says) {
        cr_assert(failed && strstr(oops_text(), row->says), "%s says: %s", row->program,
                  oops_text());
    } else {
        cr_assert(eq(int, failed, 0), "%s: %s", row->program, oops_text());
        extents_of(results.items[0], extents);
        cr_assert(eq(str, extents, (char *)(uintptr_t)row->extents), "%s", row->program);
    }
    forget_oops();
    free(results.items);
    lang_names_finish(&names);
    lang_tree_finish(&tree);
    tn_scope_close(s);
}

Test(refused, extents_that_cannot_be_are_told_and_empty_ones_are_computed)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (!rows[i].slow || is_cpu())
            check_row(&rows[i]);
}

// More than any device has: how much, and what is free.
Test(refused, memory_that_is_not_there_is_told_with_what_is_free)
{
    const float one = 1;
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(1), &one);
    x = tn_op(s, "base.broadcast_to", TN_IN(x),
              tn_attrs("shape", TN_INTS(INT64_C(1) << 34, 4096)));
    tn_array *y = un(s, "base.copy", x);
    tn_status status = tn_eval(s, y);
    if (is_cpu()) {
        cr_assert(eq(int, status, TN_ERR_MEMORY));
        check_says(tn_scope_error(s), "281474976710656 bytes were asked for, ");
        check_says(tn_scope_error(s), " are free: device cpu-blas:0");
    } else {
        cr_assert(status != TN_OK); // no kernel of a device indexes so many
    }
    tn_scope_close(s);
}
