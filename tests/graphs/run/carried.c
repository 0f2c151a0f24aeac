// SPDX-License-Identifier: MIT
// What a loop carries from call to call in kept arrays (tn_function_options.carried_to):
// which array an output is, whose the references are, and what failures leave.
// TENON_TEST_BACKEND names the backend.
#include <tenon/retain.h>
#include "../support/common.h"

enum { ROWS = 16, COLUMNS = 8, PART = COLUMNS * 4 };

TestSuite(carried, .init = setup_backend, .fini = teardown);

// Inputs: a state, a row and its place. Outputs: the sum of the state, the state with the
// row.
static tn_status step(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                      uint64_t num_out, void *user)
{
    (void)num_in, (void)user;
    out[1] = tn_op(s, "dynamic_slice_update", TN_IN(in[0], in[1], in[2]), TN_NO_ATTRS);
    out[0] = un(s, "sum", out[1]);
    if (num_out > 2) // the second state is the first input's rows twice
        out[2] = bin(s, "concatenate", in[3], in[3]);
    return tn_scope_status(s);
}

static tn_function *make(const uint32_t *donated, const uint32_t *carried_to,
                         uint64_t count)
{
    tn_function *f = NULL;
    const tn_function_options options = {.struct_size = sizeof(options),
                                         .donated = donated,
                                         .num_donated = count,
                                         .carried_to = carried_to};
    must(NULL, tn_function_create(runtime, step, NULL, &options, &f));
    return f;
}

static tn_function *make_step(void)
{
    return make((const uint32_t[]){0}, (const uint32_t[]){1}, 1);
}

static tn_array *kept_ramp(float first)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *kept = tn_keep(s, ramp(s, ROWS, COLUMNS, first, 1));
    must(s, tn_scope_status(s));
    tn_scope_close(s);
    return kept;
}

// Calls the function with row 1000, 1001, ... at place p; *state is what it was carried to.
static void call_step(tn_function *f, tn_array **state, int64_t p)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *in[] = {*state, ramp(s, 1, COLUMNS, 1000, 1), tn_i64(s, p)}, *out[2];
    must(s, tn_function_call(f, s, in, 3, out, 2));
    *state = out[1];
    tn_scope_close(s);
}

static void check_rows_in(tn_scope *s, tn_array *state, int64_t places)
{
    float values[ROWS * COLUMNS];
    must(s, tn_read(s, state, values, sizeof(values)));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        cr_assert(values[i] == (float)(i / COLUMNS < places ? 1000 + i % COLUMNS : i),
                  "%d: %g", i, (double)values[i]);
}

static void check_rows(tn_array *state, int64_t places)
{
    tn_scope *s = tn_scope_open(runtime);
    check_rows_in(s, state, places);
    tn_scope_close(s);
}

Test(carried, an_array_that_is_ours_alone_stays_the_same)
{
    tn_function *f = make_step();
    tn_array *first = kept_ramp(0), *state = first;
    uint64_t bytes = 0;
    for (int64_t p = 0; p < 5; p++) {
        bytes = stats_of(runtime).bytes_written;
        call_step(f, &state, p);
        cr_assert(eq(ptr, state, first));
        check_rows(state, p + 1); // and a copy on the host, which the next call makes old
    }
    cr_assert(eq(u64, stats_of(runtime).bytes_written - bytes, PART + 4)); // and the sum
    tn_release(state);
    tn_function_destroy(f);
}

Test(carried, others_who_refer_to_it_see_it_given_away)
{
    tn_function *f = make_step();
    tn_array *first = kept_ramp(0), *other = tn_retain(NULL, first), *state = first;
    call_step(f, &state, 0);
    cr_assert(ne(ptr, state, first));
    check_rows(state, 1);
    cr_assert(eq(ptr, tn_retain(NULL, other), NULL));
    check_says(tn_last_error(), "donated");
    tn_release(other);
    tn_release(state);
    tn_function_destroy(f);
}

// A scope that read it refers to it until it is closed.
Test(carried, what_a_scope_still_uses_is_replaced)
{
    tn_function *f = make_step();
    tn_array *first = kept_ramp(0), *out[2];
    tn_scope *s = tn_scope_open(runtime);
    tn_array *sum = un(s, "sum", first);
    must(s, tn_eval(s, sum));
    tn_array *in[] = {first, ramp(s, 1, COLUMNS, 1000, 1), tn_i64(s, 0)};
    must(s, tn_function_call(f, s, in, 3, out, 2));
    cr_assert(ne(ptr, out[1], first));
    cr_assert(tn_item(s, sum) == ROWS * COLUMNS * (ROWS * COLUMNS - 1) / 2.0);
    tn_scope_close(s);
    check_rows(out[1], 1);
    tn_release(out[1]);
    tn_function_destroy(f);
}

Test(carried, an_array_of_the_scope_gives_one_of_the_scope)
{
    tn_function *f = make_step();
    tn_scope *s = tn_scope_open(runtime);
    tn_array *in[] = {ramp(s, ROWS, COLUMNS, 0, 1), ramp(s, 1, COLUMNS, 1000, 1),
                      tn_i64(s, 0)},
             *out[2];
    must(s, tn_function_call(f, s, in, 3, out, 2));
    tn_release(out[1]); // does nothing: it is the scope's
    cr_assert(tn_item(s, bin(s, "subtract", un(s, "sum", out[1]), out[0])) == 0);
    must(s, tn_scope_status(s));
    tn_scope_close(s);
    tn_function_destroy(f);
}

// An output need not have the memory of the input that it follows, nor its type.
Test(carried, types_may_change)
{
    tn_function *f = make((const uint32_t[]){3, 0}, (const uint32_t[]){2, 1}, 2);
    tn_array *state = kept_ramp(0), *grows = kept_ramp(5), *first = grows;
    for (int64_t p = 0; p < 3; p++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *in[] = {state, ramp(s, 1, COLUMNS, 1000, 1), tn_i64(s, p), grows},
                 *out[3];
        must(s, tn_function_call(f, s, in, 4, out, 3));
        state = out[1];
        grows = out[2];
        tn_scope_close(s);
    }
    cr_assert(eq(ptr, grows, first));
    cr_assert(eq(i64, tn_array_type(grows)->extent[0], 8 * ROWS));
    tn_scope *s = tn_scope_open(runtime);
    const double sum = ROWS * COLUMNS * (5 + (ROWS * COLUMNS - 1) / 2.0);
    cr_assert(tn_item(s, un(s, "sum", grows)) == 8 * sum);
    tn_scope_close(s);
    check_rows(state, 3);
    tn_release(state);
    tn_release(grows);
    tn_function_destroy(f);
}

static tn_status call_within(tn_scope *s, tn_array *const *in, uint64_t num_in,
                             tn_array **out, uint64_t num_out, void *user)
{
    tn_array *both[2];
    (void)num_out;
    tn_status status = tn_function_call(user, s, in, num_in, both, 2);
    out[0] = both[1];
    return status;
}

// There the body's nodes are put in place, and nothing is donated.
Test(carried, within_another_function_nothing_is)
{
    tn_function *f = make_step(), *outer = NULL;
    must(NULL, tn_function_create(runtime, call_within, f, NULL, &outer));
    tn_array *state = kept_ramp(0);
    tn_scope *s = tn_scope_open(runtime);
    tn_array *in[] = {state, ramp(s, 1, COLUMNS, 1000, 1), tn_i64(s, 0)}, *out;
    must(s, tn_function_call(outer, s, in, 3, &out, 1));
    check_rows_in(s, out, 1);
    tn_scope_close(s);
    check_rows(state, 0);
    tn_release(state);
    tn_function_destroy(outer);
    tn_function_destroy(f);
}

Test(carried, lists_are_checked)
{
    tn_function *f = NULL;
    tn_function_options options = {.struct_size = sizeof(options),
                                   .donated = (const uint32_t[]){4, 0, 2},
                                   .num_donated = 3,
                                   .carried_to = (const uint32_t[]){1, UINT32_MAX, 1}};
    check_status(tn_function_create(runtime, step, NULL, &options, &f), TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "are carried to output 1");
    options.carried_to = (const uint32_t[]){UINT32_MAX, 1, UINT32_MAX};
    must(NULL, tn_function_create(runtime, step, NULL, &options, &f));
    tn_function_destroy(f);
}

// A call that is refused leaves what it was given.
Test(carried, a_call_that_is_refused_leaves_all)
{
    static const struct {
        const uint32_t donated[2], carried_to[2];
        const char *says;
    } cases[] = {
        {{0, 3},
         {7, UINT32_MAX},
         "input 0 is carried to output 7, but the call has 2 outputs"},
        {{0, 3}, {1, UINT32_MAX}, "input 3 is an array that another input donates, too"},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        tn_function *f = make(cases[c].donated, cases[c].carried_to, 2);
        tn_array *state = kept_ramp(0), *out[2];
        tn_scope *s = tn_scope_open(runtime);
        tn_array *in[] = {state, ramp(s, 1, COLUMNS, 1000, 1), tn_i64(s, 0), state};
        check_status(tn_function_call(f, s, in, 4, out, 2), TN_ERR_ARGUMENT);
        check_says(tn_scope_error(s), cases[c].says);
        tn_scope_close(s);
        check_rows(state, 0);
        tn_release(state);
        tn_function_destroy(f);
    }
}
