// SPDX-License-Identifier: MIT
// Updates in place: which bytes a run writes, who keeps the old ones, and caches that grow.
// TENON_TEST_BACKEND names the backend.
#include <math.h>
#include <tenon/ops/reference.h>
#include "../support/common.h"

enum { ROWS = 16, COLUMNS = 8, WHOLE = ROWS * COLUMNS * 4, PART = COLUMNS * 4 };

TestSuite(in_place, .init = setup_backend, .fini = teardown);

static bool is_cpu(void)
{
    return strcmp(getenv("TENON_TEST_BACKEND"), "cpu-blas") == 0;
}

static tn_array *updated(tn_scope *s, const tn_array *x, const tn_array *update,
                         const tn_array *start)
{
    return tn_op(s, "dynamic_slice_update", TN_IN(x, update, start), TN_NO_ATTRS);
}

static tn_function *make(tn_function_body body, void *user, const uint32_t *donated,
                         uint64_t num_donated)
{
    tn_function *f = NULL;
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = donated, .num_donated = num_donated};
    must(NULL, tn_function_create(runtime, body, user, &options, &f));
    return f;
}

// --- one array, and who else looks at it ------------------------------------------------

// What a body makes of x, an update and two starts: its first output is x with the row at
// the first start replaced.
enum look {
    ALONE,
    RETURNED,   // x is an output, too
    READ_LATER, // x + the update's result
    READ_FIRST, // the sum of x, before
    FROM_X,     // the update is a row of x
    NEW,        // not x is updated, but 2 * x, which is made here
    NEW_FIRST,  // the same, and work that needs memory follows
    TWICE,      // the result is updated again
    BETWEEN,    // and is an output, too
    MADE,       // the update is 2 * update, which a program makes
    MADE_OF_X,  // the update is 2 * a row of x
};

static tn_status look(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                      uint64_t num_out, void *user)
{
    tn_array *x = in[0], *update = in[1], *p = in[2], *q = in[3];
    (void)num_in, (void)num_out;
    switch (*(enum look *)user) {
    case RETURNED:
        out[1] = x;
        break;
    case READ_FIRST:
        out[0] = un(s, "sum", x);
        out[1] = updated(s, x, update, p);
        return tn_scope_status(s);
    case FROM_X:
    case MADE_OF_X:
        update =
            tn_op(s, "slice", TN_IN(x), tn_attrs("start", TN_INTS(5), "stop", TN_INTS(6)));
        break;
    case NEW_FIRST:
        out[1] = un(s, "sum", updated(s, x, update, q));
        x = tn_expr(s, "x -> 2 * x", TN_IN(x), TN_NO_ATTRS);
        break;
    case NEW:
        x = tn_expr(s, "x -> 2 * x", TN_IN(x), TN_NO_ATTRS);
        break;
    case TWICE:
        x = updated(s, x, update, q);
        break;
    default:
        break;
    }
    if (*(enum look *)user == MADE || *(enum look *)user == MADE_OF_X)
        update = tn_expr(s, "x -> 2 * x", TN_IN(update), TN_NO_ATTRS);
    out[0] = updated(s, x, update, p);
    if (*(enum look *)user == READ_LATER)
        out[1] = bin(s, "add", x, out[0]);
    if (*(enum look *)user == BETWEEN)
        out[1] = updated(s, out[0], update, q);
    return tn_scope_status(s);
}

// How the application holds on to x.
enum hold { GIVES, KEEPS, HOLDS_VIEW, HOLDS_KEPT };

struct looker {
    const char *name;
    enum look look;
    enum hold hold;
    uint32_t num_outputs;
    uint64_t written; // bytes
};

static const struct looker lookers[] = {
    {"alone", ALONE, GIVES, 1, PART},
    {"not given away", ALONE, KEEPS, 1, WHOLE},
    {"a view is held", ALONE, HOLDS_VIEW, 1, WHOLE},
    {"a kept array is held", ALONE, HOLDS_KEPT, 1, WHOLE},
    {"an output", RETURNED, GIVES, 2, WHOLE},
    {"a later reader", READ_LATER, GIVES, 2, 2 * WHOLE},
    {"an earlier reader", READ_FIRST, GIVES, 2, PART + 4},
    {"the update is of x", FROM_X, GIVES, 1, WHOLE},
    {"an intermediate", NEW, KEEPS, 1, WHOLE + PART},
    {"an intermediate, and more", NEW_FIRST, KEEPS, 2, 2 * WHOLE + PART + 4},
    {"given away, an intermediate", NEW, GIVES, 1, WHOLE + PART},
    {"twice", TWICE, GIVES, 1, 2 * PART},
    {"twice, not given away", TWICE, KEEPS, 1, WHOLE + PART},
    {"twice, the first is an output", BETWEEN, GIVES, 2, PART + WHOLE},
    {"a made update", MADE, GIVES, 1, PART},
    {"a made update, x is not given away", MADE, KEEPS, 1, WHOLE},
    {"a made update of x", MADE_OF_X, GIVES, 1, 2 * PART},
};

enum { P = 3, Q = 11 };

static float x_at(int i)
{
    return (float)i;
}

static float update_at(int column)
{
    return 1000 + (float)column;
}

// Element i of output `output`, in plain words.
static float expected(const struct looker *l, uint32_t output, int i)
{
    int row = i / COLUMNS, column = i % COLUMNS;
    bool is_new = l->look == NEW || l->look == NEW_FIRST;
    float x = is_new ? 2 * x_at(i) : x_at(i);
    bool is_of_x = l->look == FROM_X || l->look == MADE_OF_X;
    float update = is_of_x ? x_at(5 * COLUMNS + column) : update_at(column);
    update *= l->look == MADE || l->look == MADE_OF_X ? 2 : 1;
    float y = row == P || (l->look == TWICE && row == Q) ? update : x;
    if (output == 0)
        return y;
    return l->look == RETURNED ? x : l->look == READ_LATER ? x + y : row == Q ? update : y;
}

// The sum of x, or of x with row Q replaced.
static void check_sum(tn_scope *s, const struct looker *l, tn_array *array)
{
    double sum = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        sum += (double)(l->look == NEW_FIRST && i / COLUMNS == Q ? update_at(i % COLUMNS)
                                                                 : x_at(i));
    cr_assert(tn_item(s, array) == sum);
}

static void check_outputs(tn_scope *s, const struct looker *l, tn_array *const *out)
{
    float values[ROWS * COLUMNS];
    for (uint32_t k = 0; k < l->num_outputs; k++) {
        bool is_sum = k == (l->look == READ_FIRST ? 0 : l->look == NEW_FIRST ? 1 : 2);
        uint32_t part = l->look == READ_FIRST ? 0 : k;
        if (is_sum) {
            check_sum(s, l, out[k]);
            continue;
        }
        must(s, tn_read(s, out[k], values, sizeof(values)));
        for (int i = 0; i < ROWS * COLUMNS; i++)
            if (values[i] != expected(l, part, i))
                cr_fatal("%s: output %u has %g at %d, expected %g", l->name, k,
                         (double)values[i], i, (double)expected(l, part, i));
    }
}

// Whoever held x sees what it was.
static void check_held(tn_scope *s, const struct looker *l, tn_array *held)
{
    float values[ROWS * COLUMNS];
    if (!held)
        return;
    must(s, tn_read(s, held, values, sizeof(values)));
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int at = l->hold == HOLDS_VIEW ? i % ROWS * COLUMNS + i / ROWS : i;
        if (values[i] != x_at(at))
            cr_fatal("%s: held is %g at %d, expected %g", l->name, (double)values[i], i,
                     (double)x_at(at));
    }
}

static void run_looker(const struct looker *l)
{
    enum look what = l->look;
    tn_function *f = make(look, &what, (const uint32_t[]){0}, l->hold != KEEPS);
    tn_scope *s = tn_scope_open(runtime);
    float update[COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        update[i] = update_at(i);
    for (int round = 0; round < 2; round++) { // the second replays
        tn_array *x = ramp(s, ROWS, COLUMNS, 0, 1), *out[2] = {NULL}, *held = NULL;
        tn_array *in[] = {x, tn_from_data(s, TN_F32, TN_SHAPE(1, COLUMNS), update),
                          tn_i64(s, P), tn_i64(s, Q)};
        must(s, tn_eval_n(s, in, 4));
        if (l->hold == HOLDS_VIEW) {
            held = un(s, "transpose", x);
            must(s, tn_eval(s, held));
        } else if (l->hold == HOLDS_KEPT) {
            held = tn_keep(s, x);
        } else if (l->hold == KEEPS) {
            held = x;
        }
        uint64_t before = stats_of(runtime).bytes_written;
        must(s, tn_function_call(f, s, in, 4, out, l->num_outputs));
        uint64_t written = stats_of(runtime).bytes_written - before;
        // On the CPU the update that a program makes is written by a step of its own.
        uint64_t wanted = l->written + (l->look == MADE && is_cpu() ? PART : 0);
        if (written != wanted)
            cr_fatal("%s: %llu bytes written, expected %llu", l->name,
                     (unsigned long long)written, (unsigned long long)wanted);
        check_outputs(s, l, out);
        check_held(s, l, held);
        if (l->hold == HOLDS_KEPT)
            tn_release(held);
    }
    tn_scope_close(s);
    tn_function_destroy(f);
}

Test(in_place, an_update_writes_its_bytes_alone_when_nobody_else_looks)
{
    for (size_t i = 0; i < sizeof(lookers) / sizeof(lookers[0]); i++)
        run_looker(&lookers[i]);
}

// The start is an element of the array that it is a start in.
static tn_status update_at_own(tn_scope *s, tn_array *const *in, uint64_t num_in,
                               tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    tn_array *start =
        tn_op(s, "slice", TN_IN(in[0]), tn_attrs("start", TN_INTS(2), "stop", TN_INTS(3)));
    out[0] = updated(s, in[0], in[1], start);
    return tn_scope_status(s);
}

Test(in_place, a_start_in_the_updated_array_is_read_before_it_changes)
{
    tn_function *f = make(update_at_own, NULL, (const uint32_t[]){0}, 1);
    tn_scope *s = tn_scope_open(runtime);
    const int64_t data[] = {9, 9, 1, 9, 9}, update[] = {5, 6};
    tn_array *in[] = {tn_from_data(s, TN_I64, TN_SHAPE(5), data),
                      tn_from_data(s, TN_I64, TN_SHAPE(2), update)};
    tn_array *out;
    uint64_t before = stats_of(runtime).bytes_written;
    must(s, tn_function_call(f, s, in, 2, &out, 1));
    int64_t got[5];
    must(s, tn_read(s, out, got, sizeof(got)));
    const int64_t want[] = {9, 5, 6, 9, 9};
    cr_assert(memcmp(got, want, sizeof(want)) == 0);
    cr_assert(eq(u64, stats_of(runtime).bytes_written - before, sizeof(data)));
    tn_scope_close(s);
    tn_function_destroy(f);
}

// --- several inputs ---------------------------------------------------------------------

static tn_status update_both(tn_scope *s, tn_array *const *in, uint64_t num_in,
                             tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = updated(s, in[0], in[2], in[3]);
    out[1] = updated(s, in[1], in[2], in[4]);
    return tn_scope_status(s);
}

Test(in_place, an_array_that_is_an_input_twice_is_not_overwritten)
{
    const struct {
        uint64_t num_donated;
        bool same;
        uint64_t written;
    } cases[] = {{2, false, 2 * PART}, {2, true, 2 * WHOLE}, {1, true, 2 * WHOLE}};
    for (int c = 0; c < 3; c++) {
        tn_function *f =
            make(update_both, NULL, (const uint32_t[]){1, 0}, cases[c].num_donated);
        tn_scope *s = tn_scope_open(runtime);
        tn_array *a = ramp(s, ROWS, COLUMNS, 0, 1), *out[2];
        tn_array *b = cases[c].same ? a : ramp(s, ROWS, COLUMNS, 0, 1);
        tn_array *in[] = {a, b, ramp(s, 1, COLUMNS, 1000, 1), tn_i64(s, P), tn_i64(s, Q)};
        must(s, tn_eval_n(s, in, 5));
        uint64_t before = stats_of(runtime).bytes_written;
        must(s, tn_function_call(f, s, in, 5, out, 2));
        cr_assert(eq(u64, stats_of(runtime).bytes_written - before, cases[c].written));
        for (int k = 0; k < 2; k++) {
            float values[ROWS * COLUMNS];
            must(s, tn_read(s, out[k], values, sizeof(values)));
            for (int i = 0; i < ROWS * COLUMNS; i++)
                cr_assert(values[i] ==
                          (i / COLUMNS == (k ? Q : P) ? update_at(i % COLUMNS) : x_at(i)));
        }
        tn_scope_close(s);
        tn_function_destroy(f);
    }
}

Test(in_place, lists_of_donated_inputs_are_checked)
{
    tn_function *f = NULL;
    const uint32_t twice[] = {3, 0, 3};
    tn_function_options options = {
        .struct_size = sizeof(options), .donated = twice, .num_donated = 3};
    check_status(tn_function_create(runtime, update_both, NULL, &options, &f),
                 TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "input 3 is donated twice");
    options.donated = NULL;
    check_status(tn_function_create(runtime, update_both, NULL, &options, &f),
                 TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "3 donated inputs in no list");
    f = make(update_both, NULL, (const uint32_t[]){70, 0}, 2);
    tn_scope *s = tn_scope_open(runtime);
    tn_array *in[] = {tn_i64(s, 1), tn_i64(s, 1), tn_i64(s, 1)}, *out[2];
    check_status(tn_function_call(f, s, in, 3, out, 2), TN_ERR_ARGUMENT);
    check_says(tn_scope_error(s), "input 70 is donated, but the call has 3 inputs");
    tn_scope_close(s);
    tn_function_destroy(f);
}

// --- caches -----------------------------------------------------------------------------

// Key and value caches of 30 layers: inputs are the caches, the new rows of all of them,
// and the position of these rows.
enum { CACHES = 60, CAPACITY = 4096, ROW = 2 * 64 };

static tn_status write_caches(tn_scope *s, tn_array *const *in, uint64_t num_in,
                              tn_array **out, uint64_t num_out, void *user)
{
    ++*(int *)user;
    (void)num_in, (void)num_out;
    for (int64_t i = 0; i < CACHES; i++) {
        tn_array *row =
            tn_op(s, "slice", TN_IN(in[CACHES]),
                  tn_attrs("start", TN_INTS(i, 0), "stop", TN_INTS(i + 1, TN_SLICE_END)));
        row = tn_op(s, "reshape", TN_IN(row), tn_attrs("shape", TN_INTS(1, 2, 64)));
        out[i] = updated(s, in[i], row, in[CACHES + 1]);
    }
    return tn_scope_status(s);
}

// A whole number that f16 holds, for position p of cache i.
static uint16_t element(int i, int64_t p, int k)
{
    return tn_f16_of_f32((float)((i * 31 + p * 7 + k) % 2048));
}

// Writes position p, and replaces the caches by the new ones.
static void write_position(tn_function *f, tn_array **caches, int64_t p)
{
    static uint16_t rows[CACHES * ROW];
    tn_scope *s = tn_scope_open(runtime);
    tn_array *in[CACHES + 2], *out[CACHES];
    for (int i = 0; i < CACHES; i++)
        for (int k = 0; k < ROW; k++)
            rows[i * ROW + k] = element(i, p, k);
    memcpy(in, caches, CACHES * sizeof(*in));
    in[CACHES] = tn_from_data(s, TN_F16, TN_SHAPE(CACHES, ROW), rows);
    in[CACHES + 1] = tn_i64(s, p);
    uint64_t before = stats_of(runtime).bytes_written;
    must(s, tn_function_call(f, s, in, CACHES + 2, out, CACHES));
    cr_assert(eq(u64, stats_of(runtime).bytes_written - before, sizeof(rows)));
    for (int i = 0; i < CACHES; i++) {
        tn_release(caches[i]);
        caches[i] = tn_keep(s, out[i]);
        if (!caches[i])
            cr_fatal("%s", tn_scope_error(s));
    }
    tn_scope_close(s);
}

static void check_cache(int i, tn_array *cache, int64_t positions)
{
    static uint16_t values[CAPACITY * ROW];
    tn_scope *s = tn_scope_open(runtime);
    must(s, tn_read(s, cache, values, sizeof(values)));
    for (int64_t p = 0; p < CAPACITY; p++)
        for (int k = 0; k < ROW; k++)
            if (values[p * ROW + k] != (p < positions ? element(i, p, k) : 0))
                cr_fatal("cache %d has %#x at %lld, %d", i, values[p * ROW + k],
                         (long long)p, k);
    tn_scope_close(s);
}

Test(in_place, sixty_caches_grow_by_their_rows_alone)
{
    int64_t positions = is_cpu() ? 1000 : 40;
    uint32_t donated[CACHES];
    tn_array *caches[CACHES];
    int traced = 0;
    tn_scope *s = tn_scope_open(runtime);
    for (uint32_t i = 0; i < CACHES; i++) {
        donated[i] = i;
        static const uint16_t zeros[CAPACITY * ROW];
        caches[i] = tn_keep(s, tn_from_data(s, TN_F16, TN_SHAPE(CAPACITY, 2, 64), zeros));
    }
    must(s, tn_scope_status(s));
    tn_scope_close(s);
    tn_function *f = make(write_caches, &traced, donated, CACHES);
    tn_stats first = {0};
    for (int64_t p = 0; p < positions; p++) {
        write_position(f, caches, p);
        if (p == 1)
            first = stats_of(runtime);
    }
    tn_stats last = stats_of(runtime);
    cr_assert(eq(int, traced, 1));
    cr_assert(eq(u64, last.plans_made, first.plans_made));
    cr_assert(eq(u64, last.buffer_bytes, first.buffer_bytes));
    cr_assert(eq(u64, last.buffer_peak, first.buffer_peak));
    cr_assert(eq(u64, last.transfers, first.transfers));
    for (int i = 0; i < CACHES; i += is_cpu() ? 1 : 7)
        check_cache(i, caches[i], positions);
    for (int i = 0; i < CACHES; i++)
        tn_release(caches[i]);
    tn_function_destroy(f);
}

// --- a length that is an array ----------------------------------------------------------

// Attention of one query over the first `length` rows of a cache of fixed capacity, after
// the last of these rows is written. Inputs: cache, row, query, length.
enum { SHORT = 24, WIDTH = 4 };

static tn_status attend(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                        uint64_t num_out, void *user)
{
    ++*(int *)user;
    (void)num_in, (void)num_out;
    tn_array *last = tn_expr(s, "n -> n - 1", TN_IN(in[3]), TN_NO_ATTRS);
    tn_array *cache = updated(s, in[0], in[1], last);
    tn_array *scores = bin(s, "matmul", cache, in[2]);
    tn_array *at = tn_op(s, "arange", NULL, 0, tn_attrs("stop", (int64_t)SHORT));
    scores = tn_expr(s, "x, i, n -> select(i < n, x, -1e30)", TN_IN(scores, at, in[3]),
                     TN_NO_ATTRS);
    out[0] = cache;
    out[1] = bin(s, "matmul", un(s, "softmax", scores), cache);
    return tn_scope_status(s);
}

static void attend_plainly(float (*cache)[WIDTH], const float *query, int length,
                           double *out)
{
    double sum = 0;
    memset(out, 0, WIDTH * sizeof(*out));
    for (int i = 0; i < length; i++) {
        double score = 0;
        for (int k = 0; k < WIDTH; k++)
            score += (double)cache[i][k] * (double)query[k];
        sum += exp(score);
        for (int k = 0; k < WIDTH; k++)
            out[k] += exp(score) * (double)cache[i][k];
    }
    for (int k = 0; k < WIDTH; k++)
        out[k] /= sum;
}

Test(in_place, one_plan_serves_a_cache_at_every_length)
{
    int traced = 0;
    float cache[SHORT][WIDTH] = {{0}};
    tn_function *f = make(attend, &traced, (const uint32_t[]){0}, 1);
    tn_scope *s = tn_scope_open(runtime);
    tn_array *array = tn_from_data(s, TN_F32, TN_SHAPE(SHORT, WIDTH), cache);
    uint64_t plans = 0;
    for (int length = 1; length <= SHORT; length++) {
        float query[WIDTH], got[WIDTH];
        double want[WIDTH];
        for (int k = 0; k < WIDTH; k++) {
            cache[length - 1][k] = sinf((float)(length * 5 + k));
            query[k] = cosf((float)(length * 3 + k));
        }
        tn_array *in[] = {
            array, tn_from_data(s, TN_F32, TN_SHAPE(1, WIDTH), cache[length - 1]),
            tn_from_data(s, TN_F32, TN_SHAPE(WIDTH), query), tn_i64(s, length)};
        tn_array *out[2];
        must(s, tn_function_call(f, s, in, 4, out, 2));
        must(s, tn_read(s, out[1], got, sizeof(got)));
        attend_plainly(cache, query, length, want);
        for (int k = 0; k < WIDTH; k++)
            cr_assert(fabs((double)got[k] - want[k]) < 1e-5);
        array = out[0];
        if (length == 1)
            plans = stats_of(runtime).plans_made;
    }
    cr_assert(eq(int, traced, 1));
    cr_assert(eq(u64, stats_of(runtime).plans_made, plans));
    tn_scope_close(s);
    tn_function_destroy(f);
}

// --- several arrays, and a program beside ----------------------------------------------

enum { HEADS = 3, PLACES = 7, LANES = 4, GROWN = HEADS * PLACES * LANES };

// Two arrays [1, HEADS, PLACES, LANES] get two places at `start`, one by a program, and
// what a program makes of the same input is f32.
static void grow_two(tn_runtime *rt, const char *dtype, int32_t start, float out[3][GROWN])
{
    const int32_t at[] = {0, 0, start, 0};
    tn_scope *s = tn_scope_open(rt);
    tn_array *y[3], *from = tn_from_data(s, TN_I32, TN_SHAPE(4), at);
    tn_array *in = tn_op(s, "reshape", TN_IN(ramp(s, 2, HEADS * LANES, 1, 0.25f)),
                         tn_attrs("shape", TN_INTS(1, 2, HEADS, LANES)));
    in = tn_op(s, "transpose", TN_IN(in), tn_attrs("axes", TN_INTS(0, 2, 1, 3)));
    for (int i = 0; i < 2; i++) {
        tn_array *x = tn_op(s, "reshape", TN_IN(ramp(s, 1, GROWN, -2, 0.5f)),
                            tn_attrs("shape", TN_INTS(1, HEADS, PLACES, LANES)));
        x = tn_op(s, "astype",
                  TN_IN(tn_expr(s, "x -> x * k", TN_IN(x), tn_attrs("k", 2.0 + i))),
                  tn_attrs("dtype", dtype));
        tn_array *new = i ? in : tn_expr(s, "x -> x * 3 - 1", TN_IN(in), TN_NO_ATTRS);
        y[i] =
            updated(s, x, tn_op(s, "astype", TN_IN(new), tn_attrs("dtype", dtype)), from);
    }
    y[2] = tn_expr(s, "x -> exp(x / 8)", TN_IN(in), TN_NO_ATTRS);
    must(s, tn_eval(s, y[0], y[1], y[2]));
    for (int i = 0; i < 3; i++)
        must(s, tn_read(s, tn_op(s, "astype", TN_IN(y[i]), tn_attrs("dtype", "f32")),
                        out[i], sizeof(float) * (i < 2 ? GROWN : 2 * HEADS * LANES)));
    tn_scope_close(s);
}

// Beyond the ends a start is the nearest that fits.
Test(in_place, arrays_that_grow_at_one_place_do_as_each_alone)
{
    static const char *const dtypes[] = {"f32", "f16"};
    static const int32_t starts[] = {0, 3, 6, -3};
    tn_runtime *cpu = open_on("cpu-blas");
    for (size_t d = 0; d < 2; d++)
        for (size_t i = 0; i < 4; i++) {
            float got[3][GROWN] = {{0}}, wanted[3][GROWN] = {{0}};
            grow_two(runtime, dtypes[d], starts[i], got);
            grow_two(cpu, dtypes[d], starts[i], wanted);
            for (int k = 0; k < 3 * GROWN; k++)
                cr_assert(le(dbl,
                             fabs((double)(&got[0][0])[k] - (double)(&wanted[0][0])[k]),
                             1e-5),
                          "%s at %d: [%d] is %g, expected %g", dtypes[d], (int)starts[i], k,
                          (double)(&got[0][0])[k], (double)(&wanted[0][0])[k]);
        }
    tn_runtime_close(cpu);
}

// --- results in the memory of inputs
// ------------------------------------------------------

// Two results of the size of both inputs, and a third one that reads an input which lies,
// by then, below one of them.
static tn_status several_results(tn_scope *s, tn_array *const *in, uint64_t num_in,
                                 tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = tn_expr(s, "x -> floor(x) + 1", TN_IN(in[0]), TN_NO_ATTRS);
    out[1] = tn_expr(s, "x -> floor(x) - 1", TN_IN(in[0]), TN_NO_ATTRS);
    out[2] = tn_expr(s, "a, y -> a * 4 + i64(y)", TN_IN(in[1], out[0]), TN_NO_ATTRS);
    return tn_scope_status(s);
}

Test(in_place, a_result_is_made_of_inputs_that_others_overwrite)
{
    enum { N = 27 };
    static const uint32_t donated[] = {0, 1};
    tn_function *f = make(several_results, NULL, donated, 2);
    tn_scope *s = tn_scope_open(runtime);
    double x[N], low[N], high[N];
    int64_t a[N], sums[N];
    for (int i = 0; i < N; i++) {
        x[i] = i / 4.0 - 2;
        a[i] = 3 * i - 20;
    }
    for (int call = 0; call < 3; call++) {
        tn_array *out[3], *in[] = {tn_from_data(s, TN_F64, TN_SHAPE(N), x),
                                   tn_from_data(s, TN_I64, TN_SHAPE(N), a)};
        must(s, tn_function_call(f, s, in, 2, out, 3));
        must(s, tn_read(s, out[0], high, sizeof(high)));
        must(s, tn_read(s, out[1], low, sizeof(low)));
        must(s, tn_read(s, out[2], sums, sizeof(sums)));
        for (int i = 0; i < N; i++)
            cr_assert(high[i] == floor(x[i]) + 1 && low[i] == floor(x[i]) - 1 &&
                          sums[i] == a[i] * 4 + (int64_t)high[i],
                      "element %d: %g, %g, %lld", i, high[i], low[i], (long long)sums[i]);
    }
    tn_scope_close(s);
    tn_function_destroy(f);
}
