// SPDX-License-Identifier: MIT
// Arrays that outlive their scope unevaluated: in other scopes and threads, evaluated,
// differentiated, given to functions; and what becomes of the memory.
#include <malloc.h>
#include <pthread.h>
#include <tenon/control.h>
#include <tenon/plugin.h>
#include <tenon/retain.h>
#include "attr/intern.h"
#include "base/memory.h"
#include "base/runtime.h"
#include "../support/common.h"

TestSuite(retain, .init = setup, .fini = teardown);

// Retains an array, and closes its scope.
static tn_array *left(tn_scope *s, tn_array *array)
{
    tn_array *retained = tn_retain(s, array);
    must(s, tn_scope_status(s));
    cr_assert(ne(ptr, retained, NULL));
    tn_scope_close(s);
    return retained;
}

static double item_of(tn_array *retained)
{
    tn_scope *s = tn_scope_open(runtime);
    must(s, tn_eval(s, retained));
    double item = tn_item(s, un(s, "sum", retained));
    must(s, tn_scope_status(s));
    tn_scope_close(s);
    return item;
}

static uint64_t steps(void)
{
    return stats_of(runtime).steps;
}

// --- in other scopes -------------------------------------------------------------------

Test(retain, graph_outlives_its_scope_and_is_computed_later)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 3, 1, 1);
    uint64_t before = steps();
    tn_array *y = left(s, tn_name(s, bin(s, "multiply", x, tn_float(s, 2)), "double"));
    cr_assert(eq(u64, steps(), before)); // nothing was computed
    cr_assert(eq(str, (char *)tn_array_op(y), "base.multiply/1"));
    cr_assert(tn_array_type(y)->rank == 2 && tn_array_type(y)->extent[1] == 3);
    s = tn_scope_open(runtime);
    tn_array *z = bin(s, "add", y, y);
    char *json = NULL;
    must(s, tn_explain(s, &z, 1, &json));
    check_says(json, "double");
    tn_text_free(json);
    tn_release(y); // the scope holds on to it
    float out[6];
    must(s, tn_read(s, z, out, sizeof(out)));
    for (int i = 0; i < 6; i++)
        cr_assert(out[i] == 4 * (float)(i + 1));
    tn_scope_close(s);
}

Test(retain, in_its_own_scope_it_is_the_array_itself)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 1, 1), *y = un(s, "exp", x), *gradient = NULL;
    tn_array *rx = tn_retain(s, x), *ry = tn_retain(s, y);
    cr_assert(eq(ptr, tn_retain(s, y), ry));
    cr_assert(eq(ptr, tn_retain(NULL, ry), ry));
    tn_array *loss = un(s, "sum", bin(s, "multiply", ry, ry));
    must(s, tn_vjp(s, &loss, NULL, 1, &rx, 1, &gradient));
    float got[4];
    must(s, tn_read(s, gradient, got, sizeof(got)));
    for (int i = 0; i < 4; i++)
        cr_assert(fabs(got[i] - 2 * exp(2.0 * (i + 1))) < 1e-4 * exp(2.0 * (i + 1)));
    must(s, tn_eval(s, y)); // gives the reference its value
    tn_scope_close(s);
    uint64_t before = steps();
    s = tn_scope_open(runtime);
    must(s, tn_read(s, ry, got, sizeof(got)));
    cr_assert(eq(u64, steps(), before));
    cr_assert(fabs(got[3] - exp(4.0)) < 1e-3);
    tn_scope_close(s);
    for (int i = 0; i < 3; i++)
        tn_release(ry);
    tn_release(rx);
}

Test(retain, what_one_scope_computes_all_have)
{
    tn_scope *s = tn_scope_open(runtime), *early = tn_scope_open(runtime);
    tn_array *y = left(s, un(s, "exp", ramp(s, 8, 8, 0, 0)));
    tn_array *z = bin(early, "add", y, tn_float(early, 1)); // before it has its value
    s = tn_scope_open(runtime);
    tn_array *w = left(s, bin(s, "multiply", y, tn_float(s, 3)));
    cr_assert(item_of(y) == 64);
    uint64_t before = steps();
    float got[64];
    must(early, tn_read(early, z, got, sizeof(got)));
    cr_assert(got[63] == 2);
    cr_assert(eq(u64, steps(), before + 1)); // the sum, without the exponentials
    tn_scope_close(early);
    cr_assert(item_of(w) == 192);
    cr_assert(eq(u64, steps(), before + 3)); // and a product and its sum
    tn_release(w);
    tn_release(y);
}

Test(retain, derivatives_go_through_what_is_not_evaluated)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = tn_retain(s, ramp(s, 2, 2, 1, 1)), *gradient = NULL, *tangent = NULL;
    tn_array *h = tn_retain(s, bin(s, "multiply", x, x));
    tn_scope_close(s);
    s = tn_scope_open(runtime);
    tn_array *loss = left(s, un(s, "sum", bin(s, "multiply", h, x))); // of x cubed
    s = tn_scope_open(runtime);
    must(s, tn_vjp(s, &loss, NULL, 1, &x, 1, &gradient));
    tn_array *seed = ramp(s, 2, 2, 1, 0);
    must(s, tn_jvp(s, &loss, 1, &x, &seed, 1, &tangent));
    float got[4];
    must(s, tn_read(s, gradient, got, sizeof(got)));
    for (int i = 0; i < 4; i++)
        cr_assert(got[i] == 3 * (float)((i + 1) * (i + 1)));
    cr_assert(tn_item(s, tangent) == 3 * (1 + 4 + 9 + 16));
    tn_scope_close(s);
    cr_assert(item_of(h) == 1 + 4 + 9 + 16);
    s = tn_scope_open(runtime); // data by now: derivatives stop there
    tn_array *sum = un(s, "sum", bin(s, "multiply", h, x));
    must(s, tn_vjp(s, &sum, NULL, 1, &x, 1, &gradient));
    must(s, tn_read(s, gradient, got, sizeof(got)));
    for (int i = 0; i < 4; i++)
        cr_assert(got[i] == (float)((i + 1) * (i + 1)));
    tn_scope_close(s);
    tn_release(x);
    tn_release(h);
    tn_release(loss);
}

// Texts and lists of attributes, attributes of expressions, weak numbers, optional inputs
// and several outputs are the graph's own.
Test(retain, all_that_a_node_has_goes_with_it)
{
    tn_scope *s = tn_scope_open(runtime);
    uint32_t interned = intern_set_count(runtime->interned);
    tn_array *x = ramp(s, 4, 6, 0, 1), *parts[3];
    tn_array *e =
        tn_op(s, "einsum", TN_IN(x, x), tn_attrs("equation", "ij,kj->ik")); // a text
    tn_array *t = tn_expr(s, "a -> k * a + b", TN_IN(e), tn_attrs("k", 2.0, "b", 1.0));
    tn_array *c = un(s, "clip", bin(s, "add", t, tn_int(s, 1)));
    must(s, tn_op_n(s, "split", TN_IN(c), tn_attrs("sections", 2, "axis", 0), parts, 2));
    tn_array *r = tn_op(s, "reshape", TN_IN(parts[1]), tn_attrs("shape", TN_INTS(8)));
    float wanted[8], got[8];
    r = tn_retain(s, r);
    must(s, tn_scope_status(s));
    tn_array *again = un(s, "negative", r);
    must(s, tn_scope_status(s));
    (void)again;
    tn_scope_close(s);
    cr_assert(intern_set_count(runtime->interned) > interned);
    s = tn_scope_open(runtime);
    must(s, tn_read(s, r, got, sizeof(got)));
    for (int i = 0; i < 8; i++) {
        double sum = 0;
        for (int j = 0; j < 6; j++)
            sum += (double)(6 * (2 + i / 4) + j) * (6 * (i % 4) + j);
        wanted[i] = (float)(2 * sum + 2);
        cr_assert(got[i] == wanted[i], "element %d: %g, expected %g", i, got[i], wanted[i]);
    }
    tn_scope_close(s);
    cr_assert(eq(u32, intern_set_count(runtime->interned), interned)); // data now
    tn_release(r);
}

static tn_status scaled(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                        uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    out[0] = bin(s, "add", bin(s, "multiply", in[0], user), tn_int(s, 1));
    return tn_scope_status(s);
}

Test(retain, functions_take_it_and_use_it)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *factor = left(s, un(s, "exp", ramp(s, 2, 2, 0, 0))), *out[2] = {0};
    tn_function *f;
    must(NULL, tn_function_create(runtime, scaled, factor, NULL, &f));
    for (int i = 0; i < 3; i++) {
        s = tn_scope_open(runtime);
        tn_array *x = left(s, bin(s, "add", ramp(s, 2, 2, 0, 1), tn_int(s, i)));
        s = tn_scope_open(runtime);
        must(s, tn_function_call(f, s, &x, 1, out, 1));
        float got[4];
        must(s, tn_read(s, out[0], got, sizeof(got)));
        for (int k = 0; k < 4; k++)
            cr_assert(got[k] == (float)(k + i + 1));
        tn_scope_close(s);
        uint64_t before = steps();
        cr_assert(item_of(x) == 6 + 4 * i);
        cr_assert(eq(u64, steps(), before + 1)); // the call has evaluated it
        tn_release(x);
    }
    tn_function_destroy(f);
    tn_release(factor);
}

Test(retain, a_graph_captures_it)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *factor = left(s, un(s, "exp", ramp(s, 2, 2, 0, 0))), *inputs[2], *out = NULL;
    s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1);
    tn_captures captures = {0};
    const tn_graph *graph = NULL;
    must(s, tn_graph_trace(s, scaled, factor, tn_array_type(x), 1, 1, &captures, &graph));
    cr_assert(eq(u64, captures.count, 1));
    inputs[0] = x, inputs[1] = captures.arrays[0];
    must(s, tn_graph_call(s, graph, inputs, 2, &out, 1));
    cr_assert(tn_item(s, un(s, "sum", out)) == 10);
    tn_scope_close(s);
    tn_release(factor);
}

Test(retain, memory_that_is_given_away_is_not_anothers)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *one = left(s, ramp(s, 2, 2, 1, 0)), *x, *y, *out = NULL;
    const uint32_t first = 0;
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = &first, .num_donated = 1};
    tn_function *f;
    must(NULL, tn_function_create(runtime, scaled, one, &options, &f));
    s = tn_scope_open(runtime);
    x = tn_retain(s, ramp(s, 2, 2, 0, 1));
    y = left(s, un(s, "exp", un(s, "negative", x)));
    s = tn_scope_open(runtime);
    must(s, tn_function_call(f, s, &x, 1, &out, 1));
    cr_assert(tn_item(s, un(s, "sum", out)) == 10);
    cr_assert(eq(ptr, un(s, "exp", x), NULL));
    check_says(tn_scope_error(s), "donated");
    tn_scope_clear_error(s);
    cr_assert(eq(ptr, tn_retain(s, x), NULL));
    check_says(tn_scope_error(s), "donated");
    tn_scope_clear_error(s);
    cr_assert(eq(ptr, tn_retain(NULL, x), NULL));
    check_says(tn_last_error(), "donated");
    tn_scope_close(s);
    s = tn_scope_open(runtime); // y depends on what is empty now
    float got[4];
    check_status(tn_read(s, y, got, sizeof(got)), TN_ERR_ARGUMENT);
    check_says(tn_scope_error(s), "donated");
    tn_scope_close(s);
    tn_function_destroy(f);
    tn_release(x);
    tn_release(y);
    tn_release(one);
}

// --- memory ----------------------------------------------------------------------------

// Sanitizers have a heap of their own, and look for leaks themselves.
static size_t heap(void)
{
    return mallinfo2().uordblks;
}

static tn_array *round_of(tn_array *w, int round, bool evaluate)
{
    tn_array *parts[2];
    tn_scope *s = tn_scope_open(runtime);
    tn_array *next = bin(s, "add", bin(s, "multiply", w, tn_float(s, 0.5)), tn_float(s, 1));
    must(s, tn_op_n(s, "split", TN_IN(next), tn_attrs("sections", 2, "axis", 0), parts, 2));
    next = tn_op(s, "concatenate", TN_IN(parts[0], parts[1]), tn_attrs("axis", 0));
    tn_array *side = tn_retain(s, parts[round % 2]); // one of two outputs
    if (evaluate)
        must(s, tn_eval(s, next));
    next = left(s, next);
    tn_release(w);
    if (!evaluate && round % 8 == 7)
        cr_assert(item_of(next) > 0);
    tn_release(side);
    return next;
}

// A loop that retains what the next round goes on with, evaluated in its scope or, once in
// eight rounds, in another one.
Test(retain, a_loop_keeps_its_memory_flat)
{
    for (int evaluate = 0; evaluate < 2; evaluate++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *w = left(s, ramp(s, 16, 16, 1, 0));
        size_t before = 0;
        uint64_t bytes = 0;
        for (int i = 0; i < 2400; i++) {
            if (i == 400) {
                before = heap();
                bytes = stats_of(runtime).buffer_bytes;
            }
            w = round_of(w, i, evaluate);
        }
        cr_assert(eq(u64, stats_of(runtime).buffer_bytes, bytes));
        cr_assert(heap() < before + 32768, "%zu bytes, %zu before", heap(), before);
        cr_assert(fabs(item_of(w) - 512) < 1e-3);
        tn_release(w);
    }
}

Test(retain, what_nobody_needs_is_freed_at_once)
{
    enum { SIDE = 256, BYTES = SIDE * SIDE * 4 };
    tn_scope *s = tn_scope_open(runtime);
    must(s, tn_eval(s, ramp(s, 1, 1, 0, 0)));
    tn_scope_close(s);
    uint64_t before = stats_of(runtime).buffer_bytes;
    s = tn_scope_open(runtime);
    tn_array *x = ramp(s, SIDE, SIDE, 1, 0), *unread = ramp(s, SIDE, SIDE, 1, 0);
    tn_array *parts[2];
    must(s, tn_op_n(s, "split", TN_IN(un(s, "exp", x)), tn_attrs("sections", 2, "axis", 0),
                    parts, 2));
    tn_array *a = tn_retain(s, parts[0]), *b = tn_retain(s, parts[1]);
    (void)unread;
    tn_scope_close(s);
    cr_assert(eq(u64, stats_of(runtime).buffer_bytes, before + BYTES)); // x alone
    s = tn_scope_open(runtime);
    must(s, tn_eval(s, a));
    tn_scope_close(s);
    cr_assert(stats_of(runtime).buffer_bytes > before + BYTES); // b still needs x
    tn_release(b);
    // Of the whole that was split, which a is a view of, and which nobody else has.
    cr_assert(stats_of(runtime).buffer_bytes <= before + BYTES);
    tn_release(a);
    cr_assert(eq(u64, stats_of(runtime).buffer_bytes, before));
}

Test(retain, long_chains_go_without_recursion)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *y = un(s, "negative", ramp(s, 1, 1, 0, 0));
    size_t before = heap();
    for (int i = 0; i < 200000; i++)
        y = un(s, "negative", y);
    y = left(s, y);
    cr_assert(TN_SANITIZER_HERE || heap() > before + 200000 * 100u);
    tn_release(y);
    cr_assert(heap() < before + 100000, "%zu bytes, %zu before", heap(), before);
    y = NULL;
    for (int i = 0; i < 3000; i++) { // a scope for each node: nothing grows with the chain
        s = tn_scope_open(runtime);
        tn_array *next = y ? un(s, "negative", y) : ramp(s, 1, 1, 3, 0);
        next = left(s, next);
        tn_release(y);
        y = next;
    }
    cr_assert(item_of(y) == -3);
    tn_release(y);
}

// --- threads ---------------------------------------------------------------------------

struct job {
    tn_runtime *runtime;
    tn_array *shared;
    int number;
    bool wrong;
};

// All share one graph, extend it, and pass on what they made; some evaluate it meanwhile.
static void *use(void *argument)
{
    struct job *job = argument;
    for (int i = 0; i < 40; i++) {
        tn_scope *s = tn_scope_open(job->runtime);
        tn_array *y = bin(s, "add", job->shared, tn_int(s, job->number));
        if ((i + job->number) % 5 == 0)
            job->wrong |= tn_eval(s, job->shared) != TN_OK;
        tn_array *own = tn_retain(s, y), *twin = tn_retain(NULL, job->shared);
        tn_scope_close(s);
        tn_release(twin);
        s = tn_scope_open(job->runtime);
        job->wrong |= tn_item(s, un(s, "sum", own)) != 4 * (1 + job->number);
        tn_scope_close(s);
        tn_release(own);
    }
    return NULL;
}

Test(retain, threads_share_a_graph)
{
    enum { THREADS = 4 };
    for (int round = 0; round < 4; round++) {
        pthread_t threads[THREADS];
        struct job jobs[THREADS];
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = un(s, "exp", ramp(s, 2, 2, 0, 0)), *parts[2];
        for (int i = 0; i < 20; i++) {
            x = un(s, "negative", un(s, "negative", x));
            must(s, tn_op_n(s, "split", TN_IN(x), tn_attrs("sections", 2, "axis", 0), parts,
                            2));
            x = tn_op(s, "concatenate", TN_IN(parts[1], parts[0]), tn_attrs("axis", 0));
        }
        x = left(s, x);
        for (int i = 0; i < THREADS; i++) {
            jobs[i] = (struct job){.runtime = runtime, .shared = x, .number = i};
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
}

// --- errors ----------------------------------------------------------------------------

static tn_status retains(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                         uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    *(tn_array **)user = tn_retain(s, out[0] = un(s, "exp", in[0]));
    return tn_scope_status(s);
}

Test(retain, what_has_no_data_is_refused)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1), *got = NULL, *out = NULL;
    cr_assert(eq(ptr, tn_retain(s, NULL), NULL));
    check_says(tn_scope_error(s), "retain: the array is NULL");
    cr_assert(eq(ptr, tn_retain(s, x), NULL)); // the first failure stays
    tn_scope_clear_error(s);
    cr_assert(eq(ptr, tn_retain(NULL, x), NULL));
    check_says(tn_last_error(), "the scope is NULL");
    tn_function *f;
    must(NULL, tn_function_create(runtime, retains, &got, NULL, &f));
    check_status(tn_function_call(f, s, &x, 1, &out, 1), TN_ERR_ARGUMENT);
    check_says(tn_scope_error(s), "the arrays of a body have no data");
    tn_scope_clear_error(s);
    check_status(tn_vmap_call(s, retains, &got, &x, NULL, 1, &out, NULL, 1),
                 TN_ERR_ARGUMENT);
    check_says(tn_scope_error(s), "stands for a slice in vmap");
    tn_scope_clear_error(s);
    tn_scope *other = tn_scope_open(runtime);
    cr_assert(eq(ptr, tn_retain(other, x), NULL));
    check_says(tn_scope_error(other), "tn_retain");
    tn_scope_close(other);
    tn_release(x); // a scope's: nothing happens
    must(s, tn_eval(s, x));
    tn_function_destroy(f);
    tn_scope_close(s);
}

Test(retain, another_runtime_refuses_it)
{
    tn_runtime *second = open_with(NULL);
    tn_scope *s = tn_scope_open(second);
    tn_array *x = left(s, un(s, "exp", ramp(s, 2, 2, 0, 1)));
    s = tn_scope_open(runtime);
    cr_assert(eq(ptr, un(s, "exp", x), NULL));
    check_says(tn_scope_error(s), "belongs to another runtime");
    tn_scope_close(s);
    tn_release(x);
    must(NULL, tn_runtime_close(second));
}

// What fails is told in each scope that tries, and is tried again each time.
Test(retain, an_evaluation_that_fails_says_so_in_each_scope)
{
    tn_scope *s = tn_scope_open(runtime);
    const int64_t big = INT64_C(1) << 24;
    tn_array *x = ramp(s, 1, 1, 1, 0);
    tn_array *y = tn_op(s, "broadcast_to", TN_IN(x), tn_attrs("shape", TN_INTS(big, big)));
    tn_array *z = tn_retain(s, un(s, "exp", y));
    must(s, tn_scope_status(s));
    for (int i = 0; i < 3; i++) {
        check_status(tn_eval(s, z), TN_ERR_MEMORY);
        check_says(tn_scope_error(s), "more than any machine has");
        tn_scope_close(s);
        s = tn_scope_open(runtime);
    }
    tn_scope_close(s);
    tn_release(z);
}

Test(retain, a_runtime_is_not_closed_meanwhile)
{
    tn_runtime *rt = open_with((const char *const[]){"TENON_LOG=off", NULL});
    tn_scope *s = tn_scope_open(rt);
    tn_array *y = tn_retain(s, un(s, "exp", un(s, "exp", ramp(s, 2, 2, 0, 1))));
    cr_assert(eq(ptr, tn_retain(NULL, y), y));
    tn_scope_close(s);
    check_status(tn_runtime_close(rt), TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "in use by 2 kept or retained arrays:");
    tn_release(y);
    check_status(tn_runtime_close(rt), TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "in use by 1 kept or retained array:");
    tn_release(y);
    must(NULL, tn_runtime_close(rt));
}

// --- allocations that fail -------------------------------------------------------------

static tn_status exercise(double *item)
{
    tn_scope *s = tn_scope_open(runtime);
    if (!s)
        return TN_ERR_MEMORY;
    tn_array *x = ramp(s, 2, 2, 1, 1), *parts[2] = {0}, *gradient = NULL;
    tn_array *t = tn_expr(s, "a -> k * a", TN_IN(x), tn_attrs("k", 2.0));
    tn_op_n(s, "split", TN_IN(t), tn_attrs("sections", 2, "axis", 0), parts, 2);
    tn_array *y = tn_retain(s, tn_name(s, bin(s, "add", parts[0], parts[1]), "y"));
    tn_array *rx = tn_retain(s, x);
    tn_status status = tn_scope_status(s);
    tn_scope_close(s);
    s = status == TN_OK ? tn_scope_open(runtime) : NULL;
    if (s) {
        tn_array *loss = un(s, "sum", bin(s, "multiply", y, y));
        status = tn_vjp(s, &loss, NULL, 1, &rx, 1, &gradient);
        if (status == TN_OK)
            status = tn_eval(s, y, gradient);
        *item = tn_item(s, un(s, "sum", gradient));
        status = tn_scope_status(s);
        tn_scope_close(s);
    }
    tn_release(rx);
    tn_release(y);
    return s ? status : TN_ERR_MEMORY;
}

Test(retain, each_allocation_may_fail)
{
    double item = 0, wanted = 0;
    must(NULL, exercise(&wanted));
    cr_assert(wanted == 160);
    uint64_t bytes = stats_of(runtime).buffer_bytes;
    int fine = 0;
    for (int64_t n = 1; fine < 3; n++) {
        mem_fail_nth(n);
        tn_status status = exercise(&item);
        mem_fail_nth(0);
        cr_assert(status == TN_OK || status == TN_ERR_MEMORY, "allocation %d: %d", (int)n,
                  (int)status);
        fine = status == TN_OK ? fine + 1 : 0;
        cr_assert(status != TN_OK || item == wanted);
    }
    must(NULL, exercise(&item));
    cr_assert(item == wanted);
    cr_assert(stats_of(runtime).buffer_bytes <= bytes);
}
