// SPDX-License-Identifier: MIT
// Functions of <tenon/tenon.h>, replayed and waited for, on the backend that TENON_BACKEND
// names: functions [--quick] [COMMAND...]. COMMAND is a peer: it prints one line once it is
// ready, then, for each line "CASE" that it reads, the median microseconds of that case.
// Prints medians, the peer's, and the peer's over Tenon's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tenon/ops/base.h>
#include <tenon/tenon.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROUNDS 201
#define CHAIN 200

struct test {
    const char *name; // the peer's word for the case
    const char *what;
    tn_function_body body;
    tn_shape shape_x, shape_y;
    int divide; // steps of one call
    int quick;
    const char *dtype; // NULL: f32
};

static tn_status negative(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                          uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = tn_negative(s, in[0]);
    return tn_scope_status(s);
}

static tn_status sum_of_two(tn_scope *s, tn_array *const *in, uint64_t num_in,
                            tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = tn_add(s, in[0], in[1]);
    return tn_scope_status(s);
}

// x' = x y, CHAIN times: each product waits for the one before.
static tn_status products(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                          uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    tn_array *x = in[0];
    for (int i = 0; i < CHAIN; i++)
        x = tn_matmul(s, x, in[1]);
    out[0] = x;
    return tn_scope_status(s);
}

static tn_status one_product(tn_scope *s, tn_array *const *in, uint64_t num_in,
                             tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = tn_matmul(s, in[0], in[1]);
    return tn_scope_status(s);
}

static tn_status softmax(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                         uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = tn_op(s, "nn.softmax", TN_IN(in[0]), TN_NO_ATTRS);
    return tn_scope_status(s);
}

static tn_status layer_norm(tn_scope *s, tn_array *const *in, uint64_t num_in,
                            tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = tn_op(s, "nn.layer_norm", TN_IN(in[0], in[1], in[1]), TN_NO_ATTRS);
    return tn_scope_status(s);
}

static tn_status attention(tn_scope *s, tn_array *const *in, uint64_t num_in,
                           tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    // As many queries as keys are a text; one is a step, which sees all.
    out[0] = tn_op(s, "nn.scaled_dot_product_attention", TN_IN(in[0], in[1], in[1]),
                   tn_attrs("is_causal", tn_array_type(in[0])->extent[2] > 1));
    return tn_scope_status(s);
}

// With derivatives, of which one is read: a kernel gives all three.
static tn_status training(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                          uint64_t num_out, void *user)
{
    tn_array *y;
    if (attention(s, in, num_in, &y, num_out, user))
        return tn_scope_status(s);
    return tn_vjp(s, &y, &y, 1, in, 1, out);
}

#define LARGE (INT64_C(1) << 27)
static const struct test tests[] = {
    {"negative", "-x of 2^27 f32", negative, {1, 0, {LARGE}}, {1, 0, {1}}, 1},
    {"add", "x + y of 2^27 f32", sum_of_two, {1, 0, {LARGE}}, {1, 0, {LARGE}}, 1},
    {"softmax",
     "softmax of 65536x2048 f32",
     softmax,
     {2, 0, {65536, 2048}},
     {1, 0, {1}},
     1},
    {"layer_norm",
     "layer norm of 65536x2048 f32",
     layer_norm,
     {2, 0, {65536, 2048}},
     {1, 0, {2048}},
     1},
    {"short_softmax",
     "softmax of 65536x128 f32",
     softmax,
     {2, 0, {65536, 128}},
     {1, 0, {1}},
     1,
     1},
    {"short_layer_norm",
     "layer norm of 65536x128 f32",
     layer_norm,
     {2, 0, {65536, 128}},
     {1, 0, {128}},
     1,
     1},
    {"small", "x + y of 1024 f32", sum_of_two, {1, 0, {1024}}, {1, 0, {1024}}, 1, 1},
    {"chain64",
     "a product of 64x64, of 200",
     products,
     {2, 0, {64, 64}},
     {2, 0, {64, 64}},
     CHAIN,
     1},
    {"chain10",
     "10x512 by 512x512, of 200",
     products,
     {2, 0, {10, 512}},
     {2, 0, {512, 512}},
     CHAIN},
    {"chain1024",
     "64x1024 by 1024x1024, of 200",
     products,
     {2, 0, {64, 1024}},
     {2, 0, {1024, 1024}},
     CHAIN},
    {"product_4096_4096_4096_f16",
     "4096x4096 by 4096x4096, f16",
     one_product,
     {2, 0, {4096, 4096}},
     {2, 0, {4096, 4096}},
     1,
     0,
     "f16"},
    {"product_4096_4096_4096_bf16",
     "4096x4096 by 4096x4096, bf16",
     one_product,
     {2, 0, {4096, 4096}},
     {2, 0, {4096, 4096}},
     1,
     0,
     "bf16"},
    {"product_4095_4095_4095_f16",
     "4095x4095 by 4095x4095, f16",
     one_product,
     {2, 0, {4095, 4095}},
     {2, 0, {4095, 4095}},
     1,
     0,
     "f16"},
    {"product_4095_4095_4095_bf16",
     "4095x4095 by 4095x4095, bf16",
     one_product,
     {2, 0, {4095, 4095}},
     {2, 0, {4095, 4095}},
     1,
     0,
     "bf16"},
    {"product_512_512_512_f16",
     "512x512 by 512x512, f16",
     one_product,
     {2, 0, {512, 512}},
     {2, 0, {512, 512}},
     1,
     0,
     "f16"},
    {"product_1023_1023_1023_f16",
     "1023x1023 by 1023x1023, f16",
     one_product,
     {2, 0, {1023, 1023}},
     {2, 0, {1023, 1023}},
     1,
     0,
     "f16"},
    {"product_4096_4096_64_f16",
     "4096x4096 by 4096x64, f16",
     one_product,
     {2, 0, {4096, 4096}},
     {2, 0, {4096, 64}},
     1,
     0,
     "f16"},
    {"prefill",
     "attention of 4096, causal, f16",
     attention,
     {4, 0, {1, 32, 4096, 128}},
     {4, 0, {1, 8, 4096, 128}},
     1,
     0,
     "f16"},
    {"prefill_f32",
     "the same, f32",
     attention,
     {4, 0, {1, 32, 4096, 128}},
     {4, 0, {1, 8, 4096, 128}},
     1},
    {"training",
     "the first with derivatives, f16",
     training,
     {4, 0, {1, 32, 4096, 128}},
     {4, 0, {1, 8, 4096, 128}},
     1,
     0,
     "f16"},
    {"training_f32",
     "the same, f32",
     training,
     {4, 0, {1, 32, 4096, 128}},
     {4, 0, {1, 8, 4096, 128}},
     1},
    {"decode",
     "one query over 4096 keys, f16",
     attention,
     {4, 0, {1, 32, 1, 128}},
     {4, 0, {1, 8, 4096, 128}},
     1,
     0,
     "f16"},
    {"decode_batch",
     "32 queries of 32 texts, f16",
     attention,
     {4, 0, {32, 32, 1, 128}},
     {4, 0, {32, 8, 4096, 128}},
     1,
     0,
     "f16"},
};
#define NUM_TESTS (sizeof(tests) / sizeof(tests[0]))

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// --- the peer --------------------------------------------------------------------------

struct peer {
    FILE *to, *from; // NULL without one
    pid_t process;
};

static int start(struct peer *peer, char **command)
{
    int to[2], from[2];
    char name[128];
    if (pipe(to) || pipe(from) || (peer->process = fork()) < 0)
        return 1;
    if (peer->process == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        execvp(command[0], command);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    peer->to = fdopen(to[1], "w");
    peer->from = fdopen(from[0], "r");
    if (!fgets(name, sizeof(name), peer->from))
        return 1;
    printf("peer: %s", name);
    return 0;
}

static double ask(struct peer *peer, const char *name)
{
    char line[64];
    fprintf(peer->to, "%s\n", name);
    fflush(peer->to);
    return fgets(line, sizeof(line), peer->from) ? atof(line) : 0;
}

// --- Tenon -----------------------------------------------------------------------------

// Small values: a chain of products stays finite.
static tn_array *filled(tn_scope *s, const tn_shape *shape, const char *dtype)
{
    tn_array *value = tn_f32(s, 1.0f / 1024);
    if (dtype)
        value = tn_op(s, "base.astype", TN_IN(value), tn_attrs("dtype", dtype));
    tn_ints extents = {.count = (uint32_t)shape->rank, .given = 1};
    memcpy(extents.value, shape->extent, sizeof(extents.value));
    return tn_keep(s, tn_broadcast_to(s, value, &extents));
}

// Microseconds of one call with its wait; negative after a failure.
static double one_call(tn_runtime *runtime, tn_function *function, tn_array *const *inputs,
                       uint64_t num_inputs)
{
    tn_array *out;
    tn_scope *s = tn_scope_open(runtime);
    double begin = now_us();
    if (!tn_function_call(function, s, inputs, num_inputs, &out, 1))
        tn_eval(s, out);
    double took = now_us() - begin;
    if (tn_scope_status(s)) {
        fprintf(stderr, "%s\n", tn_scope_error(s));
        took = -1;
    }
    tn_scope_close(s);
    return took;
}

static double median_of_calls(tn_runtime *runtime, const struct test *test, int rounds)
{
    double us[MAX_ROUNDS], median = -1;
    tn_scope *s = tn_scope_open(runtime);
    tn_array *inputs[2] = {filled(s, &test->shape_x, test->dtype),
                           filled(s, &test->shape_y, test->dtype)};
    tn_function *function = NULL;
    if (inputs[0] && inputs[1] &&
        !tn_function_create(runtime, test->body, NULL, NULL, &function)) {
        int done = -5; // warm
        for (; done < rounds; done++) {
            double took = one_call(runtime, function, inputs, 2);
            if (took < 0)
                break;
            us[done < 0 ? 0 : done] = took;
        }
        if (done == rounds) {
            qsort(us, (size_t)rounds, sizeof(double), compare);
            median = us[rounds / 2] / test->divide;
        }
    } else {
        fprintf(stderr, "%s\n", tn_scope_error(s));
    }
    tn_function_destroy(function);
    tn_release(inputs[0]);
    tn_release(inputs[1]);
    tn_scope_close(s);
    return median;
}

// Tenon and the peer in turns: the medians of three medians.
static int run_test(tn_runtime *runtime, const struct test *test, struct peer *peer,
                    int rounds)
{
    double ours[3], theirs[3] = {0};
    for (int i = 0; i < 3; i++) {
        ours[i] = median_of_calls(runtime, test, rounds);
        if (ours[i] < 0)
            return 1;
        if (peer->to)
            theirs[i] = ask(peer, test->name);
    }
    qsort(ours, 3, sizeof(double), compare);
    qsort(theirs, 3, sizeof(double), compare);
    printf("%-30s %10.2f us", test->what, ours[1]);
    if (theirs[1] > 0)
        printf(" %10.2f us %6.2f", theirs[1], theirs[1] / ours[1]);
    printf("\n");
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    struct peer peer = {0};
    tn_runtime *runtime;
    int quick = argc > 1 && strcmp(argv[1], "--quick") == 0, failed = 0;
    if (tn_runtime_open(NULL, &runtime)) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    if (argc > 1 + quick && start(&peer, argv + 1 + quick)) {
        fprintf(stderr, "the peer %s does not start\n", argv[1 + quick]);
        peer.to = NULL;
    }
    for (size_t i = 0; i < NUM_TESTS && !failed; i++)
        if (!quick || tests[i].quick)
            failed = run_test(runtime, &tests[i], &peer, quick ? 1 : MAX_ROUNDS);
    if (peer.to)
        fclose(peer.to); // its end of input
    if (peer.process > 0)
        waitpid(peer.process, NULL, 0);
    tn_runtime_close(runtime);
    return failed;
}
