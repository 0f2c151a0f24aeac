// SPDX-License-Identifier: MIT
// Expressions of applications are forgotten once nobody uses them: memory is bounded
// however many texts there are, and what live nodes and plans refer to stays.
#include "../../sanitized.h"
#include "../support/common.h"

#include <malloc.h>

#define TEXTS ROUNDS(60000)
#define EVALUATED ROUNDS(4000)
#define MOST_BYTES ((size_t)12 << 20) // more than before, after any number of texts

// What is allocated; sanitizers count for themselves and say 0.
static size_t allocated(void)
{
    return mallinfo2().uordblks;
}

static tn_array *distinct(tn_scope *s, const tn_array *x, int i)
{
    char text[96];
    snprintf(text, sizeof(text), "x -> exp(x * %d.25) + sin(x + %d) * x ** 2", i, i);
    return tn_expr(s, text, TN_IN(x), TN_NO_ATTRS);
}

static void churn(tn_runtime *rt, int from, int count)
{
    for (int i = from; i < from + count; i += 100) {
        tn_scope *s = tn_scope_open(rt);
        tn_array *x = ramp(s, 1, 3, 0, 0.1f);
        for (int k = 0; k < 100; k++)
            cr_assert(ne(ptr, distinct(s, x, i + k), NULL));
        tn_scope_close(s);
    }
}

TestSuite(texts, .init = setup, .fini = teardown);

Test(texts, distinct_texts_take_bounded_memory)
{
    churn(runtime, 0, 1000);
    size_t before = allocated();
    churn(runtime, 1000, TEXTS);
    size_t after = allocated();
    if (after > before + MOST_BYTES)
        cr_fatal("%d texts: %zu bytes more, at most %zu", TEXTS, after - before,
                 MOST_BYTES);
}

static float value_at(tn_runtime *rt, int i)
{
    float out[3];
    tn_scope *s = tn_scope_open(rt);
    must(s, tn_read(s, distinct(s, ramp(s, 1, 3, 0, 0.1f), i), out, sizeof(out)));
    tn_scope_close(s);
    return out[2];
}

Test(texts, distinct_texts_that_run_take_bounded_memory)
{
    for (int i = 0; i < 1000; i++)
        value_at(runtime, -i);
    size_t before = allocated();
    for (int i = 0; i < EVALUATED; i++)
        value_at(runtime, i);
    size_t after = allocated();
    if (after > before + MOST_BYTES)
        cr_fatal("%d texts that ran: %zu bytes more, at most %zu", EVALUATED,
                 after - before, MOST_BYTES);
}

static float expected(float x, int i)
{
    return expf(x * ((float)i + 0.25f)) + sinf(x + (float)i) * x * x;
}

Test(texts, live_nodes_keep_their_expressions)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 1, 1, 0.5f, 0), *y = distinct(s, x, 2), *gradient;
    churn(runtime, 0, TEXTS / 2);
    tn_array *z = distinct(s, y, 0), *again = distinct(s, x, 2);
    float at = expected(0.5f, 2);
    cr_assert(fabs(tn_item(s, y) - at) < 1e-4 && tn_item(s, again) == tn_item(s, y));
    cr_assert(fabs(tn_item(s, z) - expected(at, 0)) < 1e-3 * expected(at, 0));
    must(s, tn_vjp(s, &again, NULL, 1, &x, 1, &gradient));
    float slope = 2.25f * expf(1.125f) + cosf(2.5f) * 0.25f + sinf(2.5f);
    cr_assert(fabs(tn_item(s, gradient) - slope) < 1e-4);
    check_says(tn_array_op(y), "exp(x * 2.25)");
    tn_scope_close(s);
}

static tn_status body(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                      uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = distinct(s, distinct(s, in[0], 1), 0);
    return tn_scope_status(s);
}

Test(texts, plans_keep_their_programs)
{
    tn_function *f;
    must(NULL, tn_function_create(runtime, body, NULL, NULL, &f));
    double first = 0;
    for (int round = 0; round < 2; round++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = ramp(s, 1, 1, 0.5f, 0), *y;
        must(s, tn_function_call(f, s, &x, 1, &y, 1));
        double got = tn_item(s, y);
        if (round == 1)
            cr_assert(got == first);
        first = got;
        tn_scope_close(s);
        churn(runtime, 0, TEXTS / 2);
    }
    tn_function_destroy(f);
}
