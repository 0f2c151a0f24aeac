// SPDX-License-Identifier: MIT
// Speeds of the selected backend, as a short table: bytes or operations that must be done,
// over the time of a replayed function. Medians of rounds; not a test.
//
//   speed [--quick]      the backend is TENON_BACKEND's
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>
#include <time.h>

#define ROUNDS 7

static int64_t side = 8192; // of the square arrays

struct contest {
    const char *name;
    tn_function_body body;
    tn_dtype dtype;
    int64_t rows, columns; // of each input; 0: side
    uint32_t num_inputs;
    double bytes_per_element; // that must move, by element of input 0
    double flops;             // in all; 0: bandwidth counts
    uint32_t steps;           // 0: per call
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define BODY(name, ...)                                                                    \
    static tn_status name(tn_scope *s, tn_array *const *in, uint64_t num_in,               \
                          tn_array **out, uint64_t num_out, void *user)                    \
    {                                                                                      \
        (void)num_in, (void)num_out, (void)user;                                           \
        const tn_array *x = in[0];                                                         \
        out[0] = __VA_ARGS__;                                                              \
        return TN_OK;                                                                      \
    }

BODY(copy, tn_expr(s, "x -> x", &x, 1, TN_NO_ATTRS))
BODY(add, tn_op(s, "add", TN_IN(x, in[1]), TN_NO_ATTRS))
BODY(exponential, tn_op(s, "exp", &x, 1, TN_NO_ATTRS))
BODY(axpby, tn_op(s, "add",
                  TN_IN(tn_op(s, "multiply", TN_IN(tn_float(s, 4), x), TN_NO_ATTRS),
                        tn_op(s, "multiply", TN_IN(tn_float(s, 2), in[1]), TN_NO_ATTRS)),
                  TN_NO_ATTRS))
BODY(gelu, tn_expr(s, "x -> 0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x ** 3)))",
                   &x, 1, TN_NO_ATTRS))
BODY(to_half, tn_op(s, "astype", &x, 1, tn_attrs("dtype", "f16")))
BODY(transpose,
     tn_expr(s, "x -> x",
             (const tn_array *const[]){tn_op(s, "transpose", &x, 1, TN_NO_ATTRS)}, 1,
             TN_NO_ATTRS))
BODY(sum_all, tn_op(s, "sum", &x, 1, TN_NO_ATTRS))
BODY(sum_rows, tn_op(s, "sum", &x, 1, tn_attrs("axes", TN_INTS(1))))
BODY(sum_columns, tn_op(s, "sum", &x, 1, tn_attrs("axes", TN_INTS(0))))
BODY(argmax_rows, tn_op(s, "argmax", &x, 1, tn_attrs("axis", 1)))
BODY(softmax, tn_op(s, "softmax", &x, 1, TN_NO_ATTRS))
BODY(matmul, tn_op(s, "matmul", TN_IN(x, in[1]), TN_NO_ATTRS))
#undef BODY

#define CHAIN 1000

// Each step reads the transpose of the last one's result: none can be fused.
static tn_status chain(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                       uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    tn_array *x = in[0];
    for (int i = 0; i < CHAIN; i++) {
        const tn_array *from = x;
        x = tn_op(s, "add",
                  TN_IN(tn_op(s, "transpose", &from, 1, TN_NO_ATTRS), tn_float(s, 1)),
                  TN_NO_ATTRS);
    }
    out[0] = x;
    return TN_OK;
}

static tn_array *random_input(tn_scope *s, const struct contest *c, uint32_t number)
{
    const tn_array *key = tn_from_data(s, TN_U32, TN_SHAPE(2), (uint32_t[]){7, number});
    tn_ints shape = {.count = 2, .given = 1, .value = {c->rows, c->columns}};
    const tn_array *x =
        tn_op(s, "random_uniform", &key, 1, tn_attrs("shape", &shape, "a", -1.0, "b", 1.0));
    return c->dtype == TN_F16 ? tn_op(s, "astype", &x, 1, tn_attrs("dtype", "f16"))
                              : (tn_array *)x;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Seconds a call: the median of rounds, each of several calls queued one after the other.
static double time_calls(tn_runtime *rt, tn_function *f, tn_array **inputs, uint32_t count,
                         int calls, const char *name)
{
    double rounds[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) { // the first one warms up
        tn_scope *s = tn_scope_open(rt);
        tn_array *out = NULL;
        double start = seconds();
        for (int i = 0; i < calls; i++)
            tn_function_call(f, s, inputs, count, &out, 1);
        if (tn_eval(s, out)) {
            fprintf(stderr, "%s: %s\n", name, tn_scope_error(s));
            tn_scope_close(s);
            return -1;
        }
        if (round >= 0)
            rounds[round] = (seconds() - start) / calls;
        tn_scope_close(s);
    }
    qsort(rounds, ROUNDS, sizeof(double), by_size);
    return rounds[ROUNDS / 2];
}

static double time_contest(tn_runtime *rt, const struct contest *c)
{
    tn_function *f = NULL;
    tn_array *inputs[2] = {NULL};
    double time = -1;
    tn_scope *s = tn_scope_open(rt);
    for (uint32_t i = 0; i < c->num_inputs; i++)
        inputs[i] = tn_keep(s, random_input(s, c, i));
    if (tn_scope_status(s))
        fprintf(stderr, "%s: %s\n", c->name, tn_scope_error(s));
    else if (tn_function_create(rt, c->body, NULL, NULL, &f) == TN_OK)
        time = time_calls(rt, f, inputs, c->num_inputs, c->flops > 0 ? 3 : 8, c->name);
    tn_function_destroy(f);
    for (uint32_t i = 0; i < c->num_inputs; i++)
        tn_release(inputs[i]);
    tn_scope_close(s);
    return time;
}

static void report(const struct contest *c, double time)
{
    char shape[48];
    snprintf(shape, sizeof(shape), "%s %lldx%lld", c->dtype == TN_F16 ? "f16" : "f32",
             (long long)c->rows, (long long)c->columns);
    printf("%-22s %-16s ", c->name, shape);
    if (time < 0)
        printf("failed\n");
    else if (c->steps > 0)
        printf("%10.2f us a step\n", time / c->steps * 1e6);
    else if (c->flops > 0)
        printf("%10.3f ms %10.2f TFLOP/s\n", time * 1e3, c->flops / time * 1e-12);
    else
        printf("%10.3f ms %10.1f GB/s\n", time * 1e3,
               (double)(c->rows * c->columns) * c->bytes_per_element / time * 1e-9);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    tn_runtime *rt;
    if (tn_runtime_open(NULL, &rt)) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    int64_t big = quick ? 512 : side, product = quick ? 128 : 4096;
    double flops = 2.0 * (double)product * (double)product * (double)product;
    const struct contest contests[] = {
        {"copy", copy, TN_F32, big, big, 1, 8, 0, 0},
        {"add", add, TN_F32, big, big, 2, 12, 0, 0},
        {"exp", exponential, TN_F32, big, big, 1, 8, 0, 0},
        {"4*x + 2*y, fused", axpby, TN_F32, big, big, 2, 12, 0, 0},
        {"gelu, one expression", gelu, TN_F32, big, big, 1, 8, 0, 0},
        {"cast to f16", to_half, TN_F32, big, big, 1, 6, 0, 0},
        {"transposed copy", transpose, TN_F32, big, big, 1, 8, 0, 0},
        {"sum of all", sum_all, TN_F32, big, big, 1, 4, 0, 0},
        {"sum of rows", sum_rows, TN_F32, big, big, 1, 4, 0, 0},
        {"sum of columns", sum_columns, TN_F32, big, big, 1, 4, 0, 0},
        {"argmax of rows", argmax_rows, TN_F32, big, big, 1, 4, 0, 0},
        {"softmax of rows", softmax, TN_F32, big, big, 1, 8, 0, 0},
        {"matmul", matmul, TN_F32, product, product, 2, 0, flops, 0},
        {"matmul", matmul, TN_F16, product, product, 2, 0, flops, 0},
        {"dependent dispatches", chain, TN_F32, 4, 4, 1, 0, 0, CHAIN},
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof(contests) / sizeof(*contests); i++) {
        double time = time_contest(rt, &contests[i]);
        report(&contests[i], time);
        failed += time < 0;
    }
    tn_runtime_close(rt);
    return failed > 0;
}
