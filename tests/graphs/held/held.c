// SPDX-License-Identifier: MIT
// Arrays as the objects of a language: operators that give references at once.
#include <malloc.h>
#include <pthread.h>
#include <tenon/control.h>
#include <tenon/plugin.h>
#include <tenon/retain.h>
#include "attr/intern.h"
#include "base/memory.h"
#include "base/runtime.h"
#include "../support/common.h"

TestSuite(held, .init = setup, .fini = teardown);

static tn_array *kept_ramp(int64_t rows, int64_t columns, float start, float step)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = tn_keep(s, ramp(s, rows, columns, start, step));
    must(s, tn_scope_status(s));
    tn_scope_close(s);
    return x;
}

static tn_array *apply(tn_scope *s, const char *op, const tn_array *x, const tn_array *y,
                       tn_attr_list attrs)
{
    tn_array *out = NULL;
    const tn_array *inputs[] = {x, y};
    must(s, tn_op_retained_n(s, op, inputs, y ? 2 : 1, attrs, &out, 1));
    return out;
}

static double sum_of(tn_array *x)
{
    tn_scope *s = tn_scope_open(runtime);
    double sum = tn_item(s, un(s, "sum", x));
    must(s, tn_scope_status(s));
    tn_scope_close(s);
    return sum;
}

// Sanitizers have a heap of their own, and look for leaks themselves.
static size_t heap(void)
{
    return mallinfo2().uordblks;
}

// --- operators --------------------------------------------------------------------------

Test(held, an_operator_gives_an_array_that_outlives_its_scope)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = kept_ramp(2, 3, 1, 1);
    uint64_t before = stats_of(runtime).steps;
    tn_array *y = apply(s, "multiply", x, tn_float(s, 2), TN_NO_ATTRS);
    tn_array *z = apply(s, "add", y, y, TN_NO_ATTRS);
    cr_assert(eq(u64, stats_of(runtime).steps, before)); // nothing was computed
    cr_assert(eq(str, (char *)tn_array_op(y), "base.multiply/1"));
    cr_assert(tn_array_type(y)->dtype == TN_F32 && tn_array_type(y)->extent[1] == 3);
    cr_assert(eq(ptr, tn_retain(NULL, z), z));
    tn_release(z);
    tn_scope_close(s);
    tn_release(x); // the graph holds on to it
    tn_release(y);
    cr_assert(sum_of(z) == 4 * 21);
    tn_release(z);
}

Test(held, the_dtype_of_a_result_is_a_conversion)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = kept_ramp(2, 3, 1, 1);
    tn_array *sum = apply(s, "sum", x, NULL, tn_attrs("axis", TN_INTS(1), "dtype", "f64"));
    cr_assert(eq(i32, tn_array_type(sum)->dtype, TN_F64));
    tn_array *own = apply(s, "sum", x, NULL, tn_attrs("dtype", "f32"));
    cr_assert(eq(str, (char *)tn_array_op(own), "base.sum/1"));
    tn_scope_close(s);
    cr_assert(sum_of(sum) == 21 && sum_of(own) == 21);
    tn_release(x);
    tn_release(sum);
    tn_release(own);
}

// What follows from several nodes, from attributes that are inputs, from numbers alone and
// from a scope's arrays is the same as in a scope, which keeps nothing of it.
Test(held, each_kind_of_operator_does)
{
    tn_scope *s = tn_scope_open(runtime);
    uint32_t interned = intern_set_count(runtime->interned);
    tn_array *x = kept_ramp(4, 6, 0, 1), *parts[2], *got;
    const struct {
        const char *op;
        const tn_array *a, *b;
        double sum;
    } rows[] = {
        {"kron", x, x, 276.0 * 276},                             // put together of others
        {"clip", x, NULL, 276},                                  // attributes are inputs
        {"add", tn_float(s, 2), tn_int(s, 3), 5},                // numbers
        {"add", tn_int(s, 2), tn_int(s, 3), 5},                  // which are known
        {"add", ramp(s, 4, 6, 1, 0), x, 300},                    // an array of the scope
        {"add", x, tn_f32(s, 1), 300},                           //
        {"multiply", un(s, "exp", ramp(s, 4, 6, 0, 0)), x, 276}, // graph of the scope
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        got = apply(s, rows[i].op, rows[i].a, rows[i].b, TN_NO_ATTRS);
        double sum = sum_of(got);
        cr_assert(sum == rows[i].sum, "row %zu: %g, expected %g", i, sum, rows[i].sum);
        tn_release(got);
    }
    must(s, tn_op_retained_n(s, "split", TN_IN(x), tn_attrs("sections", 2, "axis", 0),
                             parts, 2));
    tn_release(parts[0]);
    got = apply(s, "reshape", parts[1], NULL, tn_attrs("shape", TN_INTS(12)));
    cr_assert(tn_array_type(got)->rank == 1 && sum_of(got) == 210);
    tn_release(parts[1]);
    tn_release(got);
    got = NULL;
    must(s, tn_op_retained_n(s, "arange", NULL, 0, tn_attrs("start", 0.0, "stop", 5.0),
                             &got, 1));
    cr_assert(sum_of(got) == 10);
    tn_release(got);
    tn_release(x);
    cr_assert(eq(u32, intern_set_count(runtime->interned), interned));
    tn_scope_close(s);
    s = tn_scope_open(runtime); // without inputs, from a scope
    got = tn_retain(s, tn_op(s, "arange", NULL, 0, tn_attrs("start", 0.0, "stop", 5.0)));
    must(s, tn_scope_status(s));
    tn_scope_close(s);
    cr_assert(sum_of(got) == 10);
    tn_release(got);
}

Test(held, a_weak_number_stays_weak)
{
    tn_scope *s = tn_scope_open(runtime);
    const uint16_t bits[2] = {0x3c00, 0x4000};
    tn_array *x = tn_keep(s, tn_from_data(s, TN_F16, TN_SHAPE(2), bits));
    tn_array *five = apply(s, "add", tn_int(s, 2), tn_int(s, 3), TN_NO_ATTRS);
    tn_array *y = apply(s, "multiply", x, five, TN_NO_ATTRS);
    tn_array *z = apply(s, "add", y, tn_float(s, 0.5), TN_NO_ATTRS);
    cr_assert(tn_array_type(z)->dtype == TN_F16);
    tn_scope_close(s);
    cr_assert(sum_of(z) == 5.5 + 10.5);
    tn_release(x), tn_release(five), tn_release(y), tn_release(z);
}

// One scope serves for ever: its memory does not grow with what it gives.
Test(held, a_long_lived_scope_keeps_nothing)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = kept_ramp(2, 2, 1, 0);
    size_t before = 0;
    for (int i = 0; i < 3000; i++) {
        if (i == 1000)
            before = heap();
        tn_array *y = apply(s, "add", x, x, TN_NO_ATTRS);
        tn_array *z = apply(s, "reshape", y, NULL, tn_attrs("shape", TN_INTS(4)));
        tn_array *w = apply(s, "kron", y, y, TN_NO_ATTRS);
        tn_release(y), tn_release(z), tn_release(w);
    }
    cr_assert(heap() <= before + 4096, "%zu bytes, %zu before", heap(), before);
    tn_scope_close(s);
    tn_release(x);
}

// --- errors -----------------------------------------------------------------------------

static tn_status applies(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                         uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    out[0] = in[0];
    return tn_op_retained_n(s, "exp", TN_IN(in[0]), TN_NO_ATTRS, user, 1);
}

Test(held, what_is_wrong_is_told_and_loses_nothing)
{
    tn_runtime *second = open_with(NULL);
    tn_scope *s = tn_scope_open(runtime), *other = tn_scope_open(second);
    tn_array *x = kept_ramp(2, 3, 0, 1), *y = kept_ramp(4, 5, 0, 1);
    tn_array *foreign = tn_keep(other, ramp(other, 2, 3, 0, 1));
    tn_array *theirs = ramp(other, 2, 3, 0, 1), *out = x;
    tn_array *number = tn_retain(s, tn_int(s, 1));
    const struct {
        const char *op;
        const tn_array *a, *b;
        uint64_t num_inputs, num_outputs;
        const char *says;
    } rows[] = {
        {NULL, x, x, 2, 1, "the primitive's name is NULL"},
        {"no_such", x, x, 2, 1, "no_such"},
        {"add", x, NULL, 2, 1, "input y is NULL"},
        {"add", x, x, 1, 1, "got 1 inputs, expected 2"},
        {"add", x, x, 2, 2, "has 1 outputs, the call asks for 2"},
        {"add", x, y, 2, 1, "base.add/1"},
        {"add", x, foreign, 2, 1, "belongs to another runtime"},
        {"add", x, theirs, 2, 1, "belongs to another scope"},
        {"kron", x, foreign, 2, 1, "belongs to another runtime"},
        {"kron", theirs, x, 2, 1, "belongs to another scope"},
        {"sin", number, NULL, 2, 1, "got 2 inputs, expected 1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_array *outputs[2] = {x, x};
        const tn_array *inputs[2] = {rows[i].a, rows[i].b};
        tn_status status = tn_op_retained_n(s, rows[i].op, inputs, rows[i].num_inputs,
                                            TN_NO_ATTRS, outputs, rows[i].num_outputs);
        cr_assert(status != TN_OK && outputs[0] == x, "row %zu", i);
        check_says(tn_scope_error(s), rows[i].says);
        tn_scope_clear_error(s);
    }
    check_status(tn_op_retained_n(NULL, "exp", TN_IN(x), TN_NO_ATTRS, &out, 1),
                 TN_ERR_ARGUMENT);
    check_status(tn_op_retained_n(s, "exp", TN_IN(x), tn_attrs("axis", 1), &out, 1),
                 TN_ERR_ARGUMENT);
    tn_scope_clear_error(s);
    tn_function *f;
    tn_array *result = NULL;
    must(NULL, tn_function_create(runtime, applies, &out, NULL, &f));
    check_status(tn_function_call(f, s, &x, 1, &result, 1), TN_ERR_ARGUMENT);
    check_says(tn_scope_error(s), "the arrays of a body end with it");
    tn_function_destroy(f);
    tn_scope_close(s);
    tn_scope_close(other);
    tn_release(x), tn_release(y), tn_release(foreign), tn_release(number);
    must(NULL, tn_runtime_close(second));
    must(NULL, tn_runtime_close(runtime)); // nothing of the failures is left
    setup();
}

Test(held, each_allocation_may_fail)
{
    tn_array *x = kept_ramp(2, 2, 1, 0);
    static const char *const ops[] = {"add", "kron", "hypot"};
    for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_release(apply(s, ops[k], x, x, TN_NO_ATTRS));
        tn_scope_close(s);
        int fine = 0;
        for (int64_t n = 1; fine < 3; n++) {
            s = tn_scope_open(runtime);
            tn_array *out = NULL;
            mem_fail_nth(n);
            tn_status status =
                tn_op_retained_n(s, ops[k], TN_IN(x, tn_float(s, 2)), TN_NO_ATTRS, &out, 1);
            mem_fail_nth(0);
            cr_assert(status == TN_OK || status == TN_ERR_MEMORY, "allocation %d: %d",
                      (int)n, (int)status);
            fine = status == TN_OK ? fine + 1 : 0;
            cr_assert(eq(int, out == NULL, status != TN_OK));
            if (out)
                cr_assert(sum_of(out) > 0);
            tn_release(out);
            tn_scope_close(s);
        }
    }
    tn_release(x);
    must(NULL, tn_runtime_close(runtime));
    setup();
}

// --- threads ----------------------------------------------------------------------------

struct job {
    tn_runtime *runtime;
    tn_array *shared;
    bool wrong;
};

static void *use(void *argument)
{
    struct job *job = argument;
    tn_scope *s = tn_scope_open(job->runtime);
    for (int i = 0; i < 200; i++) {
        tn_array *y = NULL, *z = NULL;
        job->wrong |= tn_op_retained_n(s, "add", TN_IN(job->shared, job->shared),
                                       TN_NO_ATTRS, &y, 1) != TN_OK;
        job->wrong |= tn_op_retained_n(s, "multiply", TN_IN(y, tn_int(s, 2)), TN_NO_ATTRS,
                                       &z, 1) != TN_OK;
        tn_release(y);
        if (i % 20 == 0) {
            tn_scope *own = tn_scope_open(job->runtime);
            job->wrong |= tn_item(own, un(own, "sum", z)) != 16;
            tn_scope_close(own);
        }
        tn_release(z);
    }
    tn_scope_close(s);
    return NULL;
}

Test(held, threads_apply_to_one_array)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    struct job jobs[THREADS];
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = tn_retain(s, un(s, "exp", ramp(s, 2, 2, 0, 0)));
    tn_scope_close(s);
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){.runtime = runtime, .shared = x};
        cr_assert(eq(int, pthread_create(&threads[i], NULL, use, &jobs[i]), 0));
    }
    bool wrong = false;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        wrong |= jobs[i].wrong;
    }
    cr_assert(not(wrong));
    tn_release(x);
}

// --- evaluations of one graph -----------------------------------------------------------

struct reader {
    tn_runtime *runtime;
    tn_array *y; // a reference of its own
    int number;
    bool wrong;
};

// Some name it, some what they make of it, in a scope or not.
static void *read_one(void *argument)
{
    struct reader *r = argument;
    tn_scope *s = tn_scope_open(r->runtime);
    tn_array *own = NULL;
    double expected = 4 * 7;
    if (r->number % 4 == 0) {
        r->wrong |= tn_eval_held_n(s, &r->y, 1, TN_EVAL_ASYNC) != TN_OK;
        r->wrong |= tn_item(s, un(s, "sum", r->y)) != expected;
    } else if (r->number % 4 == 1) {
        r->wrong |= tn_item(s, un(s, "sum", r->y)) != expected;
    } else {
        r->wrong |= tn_op_retained_n(s, "sum", TN_IN(r->y), TN_NO_ATTRS, &own, 1) != TN_OK;
        if (r->number % 4 == 2)
            tn_release(r->y);
        r->wrong |= tn_eval_held_n(s, &own, 1, 0) != TN_OK;
        r->wrong |= tn_item(s, own) != expected;
        tn_release(own);
    }
    r->wrong |= tn_scope_status(s) != TN_OK;
    if (r->number % 4 != 2)
        tn_release(r->y);
    tn_scope_close(s);
    return NULL;
}

Test(held, threads_evaluate_one_graph)
{
    enum { THREADS = 6, ROUNDS = 60 };
    tn_scope *s = tn_scope_open(runtime);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        struct reader readers[THREADS];
        tn_array *x = kept_ramp(2, 2, 3, 0),
                 *y = apply(s, "multiply", x, tn_int(s, 2), TN_NO_ATTRS);
        tn_release(x);
        for (int i = 0; i < THREADS; i++)
            readers[i] = (struct reader){.runtime = runtime, .number = i + round};
        tn_array *z = apply(s, "add", y, tn_int(s, 1), TN_NO_ATTRS);
        tn_release(y);
        for (int i = 0; i < THREADS; i++)
            readers[i].y = tn_retain(NULL, z);
        tn_release(z);
        for (int i = 0; i < THREADS; i++)
            cr_assert(eq(int, pthread_create(&threads[i], NULL, read_one, &readers[i]), 0));
        bool wrong = false;
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            wrong |= readers[i].wrong;
        }
        cr_assert(not(wrong));
    }
    tn_scope_close(s);
}

// An allocation that fails leaves the graph, or what depends on the lost data says so.
Test(held, each_allocation_of_an_evaluation_may_fail)
{
    tn_scope *s = tn_scope_open(runtime);
    int fine = 0, lost = 0;
    for (int64_t n = 0; fine < 3; n++) {
        tn_array *x = kept_ramp(2, 2, 3, 0);
        tn_array *half = apply(s, "multiply", x, tn_float(s, 0.5), TN_NO_ATTRS);
        tn_array *y = apply(s, "add", half, tn_float(s, 1), TN_NO_ATTRS);
        tn_array *sum = apply(s, "sum", y, NULL, TN_NO_ATTRS);
        tn_release(x), tn_release(half);
        mem_fail_nth(n);
        tn_status status = tn_eval_held_n(s, &sum, 1, 0);
        mem_fail_nth(0);
        cr_assert(status == TN_OK || status == TN_ERR_MEMORY, "allocation %d: %d", (int)n,
                  (int)status);
        fine = status == TN_OK && n > 0 ? fine + 1 : 0;
        tn_scope_clear_error(s);
        tn_scope *own = tn_scope_open(runtime);
        double item = tn_item(own, un(own, "max", y));
        bool given_away = tn_scope_status(own) != TN_OK;
        if (given_away)
            check_says(tn_scope_error(own), "donated");
        else
            cr_assert(item == 2.5);
        lost += given_away;
        tn_scope_close(own);
        tn_release(y), tn_release(sum);
    }
    cr_assert(le(int, lost, 6));
    tn_scope_close(s);
    must(NULL, tn_runtime_close(runtime));
    setup();
}
