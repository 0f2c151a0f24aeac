// SPDX-License-Identifier: MIT
// Effects have an order within their domain: in a graph, over devices, evaluations and
// threads; none is merged, left out or differentiated.
#include "base/fail.h"
#include "device/device.h"
#include "primitive/prim_set.h"
#include <pthread.h>
#include <stdatomic.h>
#include <tenon/control.h>
#include <tenon/pack.h>
#include <time.h>
#include <tenon/retain.h>
#include "../support/common.h"

// --- notes: x, and `number` is written down --------------------------------------------

typedef struct note_attrs {
    int64_t number;
    int64_t slow; // milliseconds
} note_attrs;
static const tn_attr_field note_fields[] = {
    TN_I64_FIELD(note_attrs, number, 0, "what is written down"),
    TN_I64_FIELD(note_attrs, slow, 0, "milliseconds before"),
};

static struct {
    pthread_mutex_t lock;
    int64_t numbers[1000];
    int count;
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static tn_status note_infer(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return TN_OK;
}

static tn_status note_reference(const tn_cpu_call *call)
{
    const note_attrs *attrs = call->attrs;
    const tn_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    nanosleep(&(struct timespec){.tv_nsec = attrs->slow * 1000000}, NULL);
    pthread_mutex_lock(&notes.lock);
    notes.numbers[notes.count++] = attrs->number;
    pthread_mutex_unlock(&notes.lock);
    for (int64_t i = 0; i < x->layout.extent[0] * x->layout.extent[1]; i++)
        ((float *)y->data)[y->layout.offset + i] =
            ((const float *)x->data)[x->layout.offset + i];
    return TN_OK;
}

TN_OP(note, "test.note/1", (x), .flags = TN_PRIM_EFFECT,
      .attrs = TN_ATTR_TABLE(note_attrs, note_fields), .infer = note_infer,
      .reference = note_reference, .effects = "test.notes");
TN_OP(other, "test.other/1", (x), .flags = TN_PRIM_EFFECT,
      .attrs = TN_ATTR_TABLE(note_attrs, note_fields), .infer = note_infer,
      .reference = note_reference, .effects = "test.others");

static void open_backends(const char *list)
{
    char variable[96];
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", list);
    runtime = open_with((const char *const[]){variable, "TENON_FALLBACK=allow", NULL});
    must(NULL, prim_register(runtime, NULL, &note));
    must(NULL, prim_register(runtime, NULL, &other));
    notes.count = 0;
}

static void open_cpu(void)
{
    open_backends("cpu-blas");
}

TestSuite(effects, .init = open_cpu, .fini = teardown);

static tn_array *noted(tn_scope *s, tn_array *x, int number, int slow)
{
    return tn_op(s, "test.note", TN_IN(x), tn_attrs("number", number, "slow", slow));
}

static void were(const char *expected)
{
    char got[512] = "";
    size_t used = 0;
    pthread_mutex_lock(&notes.lock);
    for (int i = 0; i < notes.count; i++)
        used += (size_t)snprintf(got + used, sizeof(got) - used, "%s%d", i ? " " : "",
                                 (int)notes.numbers[i]);
    notes.count = 0;
    pthread_mutex_unlock(&notes.lock);
    cr_assert(eq(str, got, (char *)expected));
}

// --- in a graph ------------------------------------------------------------------------

Test(effects, a_graph_has_them_in_the_order_of_its_nodes)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1);
    tn_array *a = noted(s, x, 1, 0), *b = noted(s, x, 2, 0), *c = noted(s, x, 3, 0);
    must(s, tn_eval(s, bin(s, "add", c, bin(s, "add", b, a)), c, a));
    were("1 2 3");
    tn_array *d = noted(s, x, 4, 0), *e = noted(s, un(s, "exp", d), 5, 0);
    tn_array *f = noted(s, x, 6, 0); // the outputs name the last first
    must(s, tn_eval(s, f, e));
    were("4 5 6");
    tn_scope_close(s);
}

// Retained in one order, used in a second, built in a third.
Test(effects, retained_ones_have_the_order_in_which_they_were_built)
{
    tn_scope *s = tn_scope_open(runtime), *t = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1), *retained[3];
    tn_array *a = noted(s, x, 1, 0), *b = noted(t, ramp(t, 2, 2, 0, 1), 2, 0);
    retained[0] = tn_retain(s, un(s, "exp", noted(s, x, 3, 0)));
    retained[1] = tn_retain(t, b);
    retained[2] = tn_retain(s, a);
    tn_scope_close(s);
    tn_scope_close(t);
    s = tn_scope_open(runtime);
    tn_array *sum = bin(s, "add", retained[0], bin(s, "add", retained[1], retained[2]));
    tn_array *d = noted(s, ramp(s, 2, 2, 0, 1), 4, 0);
    must(s, tn_eval(s, d, sum));
    were("1 2 3 4");
    tn_scope_close(s);
    for (int i = 0; i < 3; i++)
        tn_release(retained[i]);
}

Test(effects, equal_ones_are_not_merged_and_empty_ones_not_left_out)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1);
    must(s, tn_eval(s, bin(s, "add", noted(s, x, 7, 0), noted(s, x, 7, 0))));
    were("7 7");
    tn_array *none = tn_from_data(s, TN_F32, TN_SHAPE(0, 3), NULL);
    must(s, tn_eval(s, noted(s, un(s, "exp", un(s, "negative", none)), 8, 0)));
    were("8");
    tn_array *three = tn_f32(s, 3); // a number that could be folded
    tn_array *y = tn_op(s, "reshape", TN_IN(three), tn_attrs("shape", TN_INTS(1, 1)));
    must(s, tn_eval(s, noted(s, y, 9, 0)));
    were("9");
    tn_scope_close(s);
}

// Without an order the second would be submitted with what is ready at first.
Test(effects, segments_of_two_devices_keep_the_order)
{
    tn_runtime_close(runtime);
    open_backends("cpu-blas,null");
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1);
    must(s, tn_scope_device(s, "null"));
    tn_array *y = un(s, "exp", x);
    must(s, tn_scope_device(s, NULL));
    tn_array *first = noted(s, y, 1, 0), *second = noted(s, x, 2, 0);
    must(s, tn_eval(s, second, first));
    were("1 2");
    tn_scope_close(s);
}

// --- over evaluations ------------------------------------------------------------------

static void *evaluate_second(void *context)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *y = noted(s, ramp(s, 2, 2, 0, 1), *(const int *)context, 0);
    must(s, tn_eval(s, y));
    tn_scope_close(s);
    return NULL;
}

Test(effects, evaluations_keep_the_order_of_their_calls)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1), *y[4];
    for (int i = 0; i < 4; i++) {
        y[i] = noted(s, x, i, i == 0 ? 30 : 0);
        must(s, tn_eval_async(s, y[i]));
    }
    must(s, tn_eval(s, noted(s, x, 4, 0)));
    were("0 1 2 3 4");
    tn_scope_close(s);
}

Test(effects, threads_have_queues_of_their_own_and_keep_it_too)
{
    for (int round = 0; round < 5; round++) {
        tn_scope *s = tn_scope_open(runtime);
        pthread_t thread;
        int second = 2;
        tn_array *y = noted(s, ramp(s, 2, 2, 0, 1), 1, 20);
        must(s, tn_eval_async(s, y));
        cr_assert(eq(int, pthread_create(&thread, NULL, evaluate_second, &second), 0));
        pthread_join(thread, NULL);
        were("1 2");
        tn_scope_close(s);
    }
}

Test(effects, another_device_waits_for_them)
{
    tn_runtime_close(runtime);
    open_backends("cpu-blas,null");
    tn_scope *s = tn_scope_open(runtime);
    tn_array *slow = noted(s, ramp(s, 2, 2, 0, 1), 1, 30);
    must(s, tn_eval_async(s, slow));
    must(s, tn_scope_device(s, "null"));
    must(s, tn_eval_async(s, noted(s, ramp(s, 2, 2, 0, 1), 2, 0))); // null does not compute
    were("1");
    tn_scope_close(s);
}

static tn_status body(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                      uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[1] = noted(s, in[0], 1, 0);
    out[0] = noted(s, un(s, "exp", in[0]), 2, 0);
    return tn_scope_status(s);
}

Test(effects, each_call_of_a_function_has_them)
{
    tn_function *function;
    must(NULL, tn_function_create(runtime, body, NULL, NULL, &function));
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1), *out[2];
    for (int i = 0; i < 3; i++)
        must(s, tn_function_call(function, s, &x, 1, out, 2));
    must(s, tn_eval(s, out[0], out[1]));
    were("1 2 1 2 1 2");
    tn_scope_close(s);
    tn_function_destroy(function);
}

// Of another domain, work need not wait; but it ends.
Test(effects, domains_are_apart)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1), *y = noted(s, x, 1, 0);
    tn_array *z = tn_op(s, "test.other", TN_IN(x), tn_attrs("number", 2));
    must(s, tn_eval_async(s, z));
    must(s, tn_eval(s, y, z));
    cr_assert(eq(int, notes.count, 2));
    tn_scope_close(s);
}

static void *evaluate_often(void *context)
{
    int number = *(const int *)context;
    for (int i = 0; i < 20; i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = ramp(s, 2, 2, 0, 1), *y = noted(s, x, number, 0);
        must(s, i % 2 ? tn_eval(s, y) : tn_eval_async(s, y));
        tn_scope_close(s);
    }
    return NULL;
}

Test(effects, threads_that_evaluate_at_once_have_all_of_them)
{
    pthread_t threads[4];
    int numbers[4] = {0, 1, 2, 3}, counts[4] = {0};
    for (int i = 0; i < 4; i++)
        cr_assert(
            eq(int, pthread_create(&threads[i], NULL, evaluate_often, &numbers[i]), 0));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    evaluate_second(&numbers[0]); // after all others
    for (int i = 0; i < notes.count; i++)
        counts[notes.numbers[i]]++;
    for (int i = 0; i < 4; i++)
        cr_assert(eq(int, counts[i], i ? 20 : 21));
}

// --- what is refused -------------------------------------------------------------------

static tn_status batch_body(tn_scope *s, tn_array *const *in, uint64_t num_in,
                            tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = noted(s, in[0], 1, 0);
    return tn_scope_status(s);
}

Test(effects, none_is_differentiated_or_batched)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1), *y = un(s, "sum", noted(s, x, 1, 0)), *g;
    check_status(tn_vjp(s, &y, NULL, 1, &x, 1, &g), TN_ERR_UNSUPPORTED);
    check_says(tn_scope_error(s), "test.note/1 has an effect (test.notes)");
    check_says(tn_scope_error(s), "a derivative");
    tn_scope_clear_error(s);
    check_status(tn_jvp(s, &y, 1, &x, &x, 1, &g), TN_ERR_UNSUPPORTED);
    check_says(tn_scope_error(s), "has an effect");
    tn_scope_clear_error(s);
    tn_array *many = tn_op(s, "reshape", TN_IN(x), tn_attrs("shape", TN_INTS(1, 2, 2)));
    check_status(tn_vmap_call(s, batch_body, NULL, &many, NULL, 1, &g, NULL, 1),
                 TN_ERR_UNSUPPORTED);
    check_says(tn_scope_error(s), "a batch");
    tn_scope_clear_error(s);
    // beside the path of the derivative it may stand
    tn_array *w = ramp(s, 2, 2, 1, 1),
             *z = un(s, "sum", bin(s, "multiply", w, noted(s, x, 5, 0)));
    must(s, tn_vjp(s, &z, NULL, 1, &w, 1, &g));
    must(s, tn_eval(s, g));
    were("5");
    tn_scope_close(s);
}

static tn_status noted_square(tn_scope *s, tn_array *const *in, uint64_t num_in,
                              tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = bin(s, "multiply", noted(s, in[0], 1, 0), in[0]);
    return tn_scope_status(s);
}

// In a body of a loop, a branch, a scan, a checkpoint, a function with rules.
Test(effects, none_in_a_body_is_differentiated)
{
    static const tn_custom_rules no_rules = {.struct_size = sizeof(no_rules)};
    const tn_scan_call_options twice = {.carries = 1, .length = 2};
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1), *y[5], *g;
    must(s, tn_while_call(s, NULL, noted_square, NULL, 3, TN_ARRAYS(x), &y[0]));
    must(s, tn_cond_call(s, tn_bool(s, 1), noted_square, noted_square, NULL, TN_ARRAYS(x),
                         &y[1], 1));
    must(s, tn_scan_call(s, noted_square, NULL, &twice, TN_ARRAYS(x), &y[2], 1));
    must(s, tn_checkpoint_call(s, noted_square, NULL, TN_ARRAYS(x), &y[3], 1));
    must(s, tn_custom_call(s, noted_square, NULL, &no_rules, TN_ARRAYS(x), &y[4], 1));
    for (int i = 0; i < 5; i++) {
        tn_array *sum = un(s, "sum", y[i]);
        check_status(tn_vjp(s, &sum, NULL, 1, &x, 1, &g), TN_ERR_UNSUPPORTED);
        check_says(tn_scope_error(s), "test.note/1 has an effect (test.notes)");
        tn_scope_clear_error(s);
    }
    tn_scope_close(s);
}

Test(effects, records_that_contradict_themselves_are_refused)
{
    char name[80];
    tn_primitive wrong = note;
    memset(name, 'x', sizeof(name));
    name[64] = 0;
    wrong.id = "test.wrong/1";
    wrong.flags = 0;
    check_status(prim_register(runtime, NULL, &wrong), TN_ERR_REFUSED);
    check_says(tn_last_error(), "without the flag TN_PRIM_EFFECT");
    wrong.flags = TN_PRIM_EFFECT;
    wrong.effects = name;
    check_status(prim_register(runtime, NULL, &wrong), TN_ERR_REFUSED);
    check_says(tn_last_error(), "64 bytes, expected 1 .. 63");
    wrong.effects = "test.notes";
    wrong.expr = "x + x";
    check_status(prim_register(runtime, NULL, &wrong), TN_ERR_REFUSED);
    check_says(tn_last_error(), "TN_PRIM_EFFECT together with expr");
}

Test(effects, more_domains_than_there_are_bits_are_refused)
{
    static char ids[80][32], domains[80][32];
    static tn_primitive records[80];
    tn_status status = TN_OK;
    int i = 0;
    for (; i < 80 && status == TN_OK; i++) {
        snprintf(ids[i], sizeof(ids[i]), "test.note%d/1", i);
        snprintf(domains[i], sizeof(domains[i]), "test.domain%d", i);
        records[i] = note;
        records[i].id = ids[i];
        records[i].effects = domains[i];
        status = prim_register(runtime, NULL, &records[i]);
    }
    cr_assert(eq(int, i, MAX_DOMAINS - 2 + 1)); // two were there before
    check_status(status, TN_ERR_REFUSED);
    check_says(tn_last_error(), "at most 64 are possible");
}
