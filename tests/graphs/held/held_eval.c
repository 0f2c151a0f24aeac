// SPDX-License-Identifier: MIT
// Evaluating what the application holds, in the memory of what it holds no more.
// TENON_TEST_BACKEND names the backend.
#include <tenon/retain.h>
#include "../support/common.h"

TestSuite(held_eval, .init = setup_backend, .fini = teardown);

enum { HELD = 60, SIDE = 64, BYTES = SIDE * SIDE * 4 };

static tn_scope *scope; // of failures: it keeps nothing

static tn_array *made(const char *op, const tn_array *x, const tn_array *y)
{
    tn_array *out = NULL;
    const tn_array *inputs[] = {x, y};
    must(scope, tn_op_retained_n(scope, op, inputs, y ? 2 : 1, TN_NO_ATTRS, &out, 1));
    return out;
}

// The same, and gives x back.
static tn_array *next(const char *op, tn_array *x, const tn_array *y)
{
    tn_array *out = made(op, x, y);
    tn_release(x);
    return out;
}

static tn_array *kept(int64_t rows, int64_t columns, float start, float step)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = tn_keep(s, ramp(s, rows, columns, start, step));
    must(s, tn_scope_status(s));
    tn_scope_close(s);
    return x;
}

static void eval(tn_array *x, uint32_t flags)
{
    must(scope, tn_eval_held_n(scope, &x, 1, flags));
}

static double first_of(tn_array *x)
{
    float data[SIDE * SIDE];
    tn_scope *s = tn_scope_open(runtime);
    const tn_type *type = tn_array_type(x);
    uint64_t count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= (uint64_t)type->extent[i];
    must(s, tn_read(s, x, data, count * sizeof(float)));
    tn_scope_close(s);
    return data[0];
}

// One step: each held array becomes itself / 2 + 1, and the sum of the firsts is named.
static tn_array *step(tn_array **held)
{
    tn_array *total = NULL;
    for (int i = 0; i < HELD; i++) {
        held[i] = next("multiply", held[i], tn_float(scope, 0.5));
        held[i] = next("add", held[i], tn_float(scope, 1));
        tn_array *sum = made("sum", held[i], NULL);
        total = total ? next("add", total, sum) : tn_retain(NULL, sum);
        tn_release(sum);
    }
    return total;
}

static void loop(uint32_t flags, int steps)
{
    tn_array *held[HELD], *last = NULL;
    tn_stats before = {0}, after;
    scope = tn_scope_open(runtime);
    for (int i = 0; i < HELD; i++)
        held[i] = kept(SIDE, SIDE, 2 + (float)i, 0);
    for (int i = 0; i < steps; i++) {
        tn_array *total = step(held);
        eval(total, flags);
        tn_release(last);
        last = total;
        if (i == 3)
            before = stats_of(runtime);
    }
    after = stats_of(runtime);
    cr_assert(eq(u64, after.plans_made, 1));
    cr_assert(eq(u64, after.plan_hits, (uint64_t)steps - 1));
    cr_assert(eq(u64, after.buffer_bytes, before.buffer_bytes));
    // Each step writes the held arrays and the sums, and copies nothing.
    uint64_t written = (after.bytes_written - before.bytes_written) / ((uint64_t)steps - 4);
    check_within(u64, written, (uint64_t)HELD * BYTES, HELD * (BYTES + 256));
    if (!flags) // what is queued may still have memory between its steps
        cr_assert(eq(u64, after.buffer_peak, before.buffer_peak));
    for (int i = 0; i < HELD; i++) {
        cr_assert(fabs(first_of(held[i]) - 2) < 1e-5);
        tn_release(held[i]);
    }
    cr_assert(fabs(first_of(last) - 2.0 * HELD * SIDE * SIDE) < 1);
    tn_release(last);
    tn_scope_close(scope);
}

static bool is_cpu(void)
{
    return strcmp(getenv("TENON_TEST_BACKEND"), "cpu-blas") == 0;
}

Test(held_eval, a_loop_has_one_plan_and_copies_nothing)
{
    loop(0, is_cpu() ? 1000 : 30);
}

Test(held_eval, steps_follow_each_other_without_waiting)
{
    loop(TN_EVAL_ASYNC, is_cpu() ? 1000 : 30);
}

Test(held_eval, one_row_of_a_cache_is_written)
{
    scope = tn_scope_open(runtime);
    tn_array *cache = kept(SIDE, SIDE, 0, 0);
    tn_stats before = {0};
    for (int i = 0; i < SIDE; i++) {
        const int32_t at[2] = {i, 0};
        tn_scope *s = tn_scope_open(runtime);
        tn_array *start = tn_keep(s, tn_from_data(s, TN_I32, TN_SHAPE(2), at));
        tn_array *row = tn_keep(s, ramp(s, 1, SIDE, (float)i + 1, 0)), *updated = NULL;
        must(s, tn_scope_status(s));
        tn_scope_close(s);
        must(scope, tn_op_retained_n(scope, "dynamic_slice_update",
                                     TN_IN(cache, row, start), TN_NO_ATTRS, &updated, 1));
        tn_release(cache), tn_release(row), tn_release(start);
        cache = updated;
        tn_array *sum = made("sum", cache, NULL);
        eval(sum, TN_EVAL_ASYNC); // the cache is not named
        if (i == 1)
            before = stats_of(runtime);
        if (i == SIDE - 1)
            cr_assert(first_of(sum) == SIDE * (SIDE * (SIDE + 1) / 2));
        tn_release(sum);
    }
    tn_stats after = stats_of(runtime);
    cr_assert(eq(u64, after.plans_made, before.plans_made));
    cr_assert(le(u64, after.bytes_written - before.bytes_written,
                 (SIDE - 2) * (SIDE * 4 + 2048)));
    cr_assert(first_of(cache) == 1);
    tn_release(cache);
    tn_scope_close(scope);
}

// A reference that does not count as held keeps graph as it is, and what it depends on.
Test(held_eval, what_is_not_held_stays_graph)
{
    scope = tn_scope_open(runtime);
    tn_array *x = kept(SIDE, SIDE, 3, 0), *gradient = NULL;
    tn_array *y = made("multiply", x, x), *z = made("exp", y, NULL), *sum = NULL;
    tn_hold(y, 0);
    tn_hold(NULL, 0);
    eval(z, 0);
    tn_scope *s = tn_scope_open(runtime);
    tn_array *all = tn_op(s, "sum", TN_IN(y), TN_NO_ATTRS);
    must(s, tn_vjp(s, &all, NULL, 1, &x, 1, &gradient));
    sum = tn_retain(s, gradient);
    must(s, tn_scope_status(s));
    tn_scope_close(s);
    cr_assert(first_of(sum) == 6);
    cr_assert(first_of(x) == 3); // z was not written over it
    tn_hold(y, 1);
    tn_release(x), tn_release(y), tn_release(z), tn_release(sum);
    tn_scope_close(scope);
}

// Work is brief once it is planned, unless it moves much; a device may still be at work on
// what it reads.
Test(held_eval, brief_work_is_done_and_other_work_is_not)
{
    scope = tn_scope_open(runtime);
    for (int64_t i = 0; i < 4; i++) {
        int64_t side = i < 2 ? SIDE : 600;
        tn_array *x = kept(side, side, 3, 0), *y = made("negative", x, NULL);
        tn_status status = tn_eval_held_n(scope, &y, 1, TN_EVAL_BRIEF);
        cr_assert(status == TN_ERR_UNSUPPORTED || (i == 1 && status == TN_OK));
        cr_assert(i != 1 || status == TN_OK || !is_cpu());
        tn_scope_clear_error(scope);
        eval(y, 0);
        check_status(tn_eval_held_n(scope, &y, 1, TN_EVAL_BRIEF), TN_OK);
        cr_assert(side != SIDE || first_of(y) == -3);
        tn_release(x), tn_release(y);
    }
    tn_scope_close(scope);
}

// Work that is queued and small is waited for; what is queued and large is left to others
// unless it is over.
Test(held_eval, brief_work_may_wait_for_brief_work)
{
    scope = tn_scope_open(runtime);
    for (int64_t i = 0; i < 4; i++) {
        int64_t side = i < 2 ? SIDE : 600;
        tn_array *x = kept(side, side, 3, 0), *y = made("negative", x, NULL), *z = NULL;
        eval(y, TN_EVAL_ASYNC);
        tn_status status = tn_eval_held_n(scope, &y, 1, TN_EVAL_BRIEF);
        cr_assert(status == TN_OK || (side != SIDE && status == TN_ERR_UNSUPPORTED));
        tn_scope_clear_error(scope);
        z = made("negative", y, NULL);
        eval(z, 0); // plans it
        cr_assert(side != SIDE || (first_of(y) == -3 && first_of(z) == 3));
        tn_release(x), tn_release(y), tn_release(z);
    }
    tn_scope_close(scope);
}

// Elements can be had without a call once nothing is left to do.
Test(held_eval, elements_are_there_once_they_are_computed)
{
    scope = tn_scope_open(runtime);
    tn_array *x = kept(2, SIDE, 0, 1), *y = made("negative", x, NULL), *turned = NULL;
    must(scope, tn_op_retained_n(scope, "transpose", TN_IN(y), TN_NO_ATTRS, &turned, 1));
    cr_assert(tn_array_elements(NULL) == NULL && tn_array_elements(y) == NULL);
    cr_assert(tn_array_elements(ramp(scope, 2, 2, 0, 1)) == NULL);
    eval(turned, 0);
    eval(y, 0);
    const float *elements = tn_array_elements(y);
    cr_assert(elements || !is_cpu());
    for (int i = 0; elements && i < 2 * SIDE; i++)
        cr_assert(elements[i] == (float)-i);
    if (is_cpu()) // a view: its rows are not one behind the other
        cr_assert(tn_array_elements(turned) == NULL);
    tn_release(x), tn_release(y), tn_release(turned);
    tn_scope_close(scope);
}

// --- who else refers to it --------------------------------------------------------------

enum other {
    NOBODY,
    THE_APPLICATION, // holds x
    A_NODE,          // of graph that is not evaluated reads x
    BETWEEN,       // a held node between x and what is named is not named: it gets a value
    A_SCOPE,       // has x
    A_SCOPES_NODE, // has the graph
    A_VIEW,        // another array lies in the memory of x
    AN_OUTPUT,     // a view of x is named, too
    A_FUNCTION,    // captured x
    NUM_OTHERS
};

static tn_status captures(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                          uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    out[0] = bin(s, "add", in[0], user);
    return tn_scope_status(s);
}

// What reads x after x / 2 + 1 was evaluated, and whether its memory was written over.
static void look(enum other other)
{
    scope = tn_scope_open(runtime);
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = kept(SIDE, SIDE, 4, 0), *also = NULL, *twice[2], *called = NULL;
    tn_function *f = NULL;
    tn_array *half = made("multiply", x, tn_float(scope, 0.5));
    tn_array *y = made("add", half, tn_float(scope, 1));
    if (other == THE_APPLICATION)
        also = tn_retain(NULL, x);
    if (other == A_NODE)
        also = made("negative", x, NULL);
    if (other == BETWEEN)
        also = tn_retain(NULL, half);
    if (other == A_SCOPE)
        also = tn_retain(s, un(s, "negative", x)); // released in the end, with the scope
    if (other == A_SCOPES_NODE)
        called = un(s, "negative", half);
    if (other == A_VIEW || other == AN_OUTPUT)
        must(scope, tn_op_retained_n(scope, "reshape", TN_IN(x),
                                     tn_attrs("shape", TN_INTS(SIDE * SIDE)), &also, 1));
    if (other == A_VIEW)
        eval(also, 0);
    if (other == A_FUNCTION) {
        must(NULL, tn_function_create(runtime, captures, x, NULL, &f));
        must(s, tn_function_call(f, s, &x, 1, &called, 1));
        must(s, tn_eval(s, called));
    }
    must(s, tn_scope_status(s));
    tn_release(half), tn_release(x);
    uint64_t before = stats_of(runtime).buffer_bytes;
    twice[0] = y, twice[1] = also;
    must(scope, tn_eval_held_n(scope, twice, other == AN_OUTPUT ? 2 : 1, 0));
    uint64_t made_bytes = stats_of(runtime).buffer_bytes - before;
    if (other == NOBODY)
        cr_assert(eq(u64, made_bytes, 0)); // in the memory of x
    if (other == BETWEEN)
        cr_assert(le(u64, made_bytes, BYTES)); // one of them is
    cr_assert(first_of(y) == 3, "%d: %g", other, first_of(y));
    if (also) {
        double expected = other == A_NODE || other == A_SCOPE ? -4
                          : other == BETWEEN                  ? 2
                                                              : 4;
        cr_assert(first_of(also) == expected, "%d: %g", other, first_of(also));
    }
    if (other == A_SCOPES_NODE)
        cr_assert(tn_item(s, un(s, "max", called)) == -2);
    if (other == A_FUNCTION) {
        tn_array *argument = ramp(s, SIDE, SIDE, 1, 0);
        must(s, tn_function_call(f, s, &argument, 1, &called, 1));
        cr_assert(tn_item(s, un(s, "max", called)) == 5);
        tn_function_destroy(f);
    }
    must(s, tn_scope_status(s));
    tn_release(y), tn_release(also);
    tn_scope_close(s);
    tn_scope_close(scope);
}

Test(held_eval, what_others_refer_to_stays)
{
    for (enum other other = 0; other < NUM_OTHERS; other++)
        look(other);
}

// What a scope has of x alone, without graph of it.
Test(held_eval, data_in_an_open_scope_stays)
{
    scope = tn_scope_open(runtime);
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = kept(SIDE, SIDE, 4, 0);
    tn_array *z = un(s, "negative", x), *y = next("add", x, tn_float(scope, 1));
    eval(y, 0);
    cr_assert(first_of(y) == 5);
    cr_assert(tn_item(s, un(s, "max", z)) == -4);
    tn_scope_close(s);
    tn_release(y);
    tn_scope_close(scope);
}

// What is held and not needed stays graph; what is named twice or has its value is fine.
Test(held_eval, what_is_not_needed_stays_graph)
{
    scope = tn_scope_open(runtime);
    tn_array *x = kept(2, 2, 1, 0), *y = made("exp", x, NULL),
             *z = made("negative", x, NULL);
    tn_array *number = tn_retain(scope, tn_float(scope, 2.5));
    tn_array *all[] = {y, y, x, number};
    must(scope, tn_eval_held_n(scope, NULL, 0, 0));
    must(scope, tn_eval_held_n(scope, all, 4, 0));
    uint64_t before = stats_of(runtime).steps;
    cr_assert(fabs(first_of(y) - exp(1)) < 1e-5);
    cr_assert(eq(u64, stats_of(runtime).steps, before));
    cr_assert(first_of(z) == -1);
    cr_assert(eq(u64, stats_of(runtime).steps, before + 1));
    tn_release(x), tn_release(y), tn_release(z), tn_release(number);
    tn_scope_close(scope);
}

static tn_status evaluates(tn_scope *s, tn_array *const *in, uint64_t num_in,
                           tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    out[0] = in[0];
    return tn_eval_held_n(s, user, 1, 0);
}

Test(held_eval, what_is_wrong_is_told)
{
    scope = tn_scope_open(runtime);
    tn_array *x = kept(2, 2, 1, 0), *local = ramp(scope, 2, 2, 0, 0), *out = NULL;
    const struct {
        tn_array *array;
        uint32_t flags;
        const char *says;
    } rows[] = {
        {NULL, 0, "eval_held: array 0 is NULL"},
        {local, 0, "array 0 belongs to a scope: tn_retain"},
        {x, 4, "flags are 0x4, expected TN_EVAL_ASYNC"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_status(tn_eval_held_n(scope, &rows[i].array, 1, rows[i].flags),
                     TN_ERR_ARGUMENT);
        check_says(tn_scope_error(scope), rows[i].says);
        tn_scope_clear_error(scope);
    }
    check_status(tn_eval_held_n(scope, NULL, 1, 0), TN_ERR_ARGUMENT);
    tn_scope_clear_error(scope);
    check_status(tn_eval_held_n(NULL, &x, 1, 0), TN_ERR_ARGUMENT);
    tn_function *f;
    must(NULL, tn_function_create(runtime, evaluates, &x, NULL, &f));
    check_status(tn_function_call(f, scope, &x, 1, &out, 1), TN_ERR_ARGUMENT);
    check_says(tn_scope_error(scope), "cannot evaluate");
    tn_scope_clear_error(scope);
    tn_function_destroy(f);
    const int64_t big = INT64_C(1) << 24; // what fails leaves the graph and its data
    tn_array *y = made("negative", x, NULL), *huge = NULL;
    tn_release(x);
    must(scope, tn_op_retained_n(scope, "broadcast_to", TN_IN(tn_f32(scope, 1)),
                                 tn_attrs("shape", TN_INTS(big, big)), &huge, 1));
    huge = next("exp", huge, NULL);
    tn_array *both[] = {y, huge};
    for (int i = 0; i < 2; i++) {
        cr_assert(ne(int, tn_eval_held_n(scope, both, 2, 0), TN_OK));
        tn_scope_clear_error(scope);
    }
    eval(y, 0);
    cr_assert(first_of(y) == -1);
    tn_release(y), tn_release(huge);
    tn_scope_close(scope);
}
