// SPDX-License-Identifier: MIT
// Batching as it is used: gradients of each example, ensembles, Hessians, pairs, in traced
// functions; against loops.
#include "../support/common.h"

enum { IMAGES = 5, SIZE = 6, FILTERS = 3, CLASSES = 4, PARAMS = 4 };

// --- a small network -------------------------------------------------------------------

// Random numbers from -1 to 1, the same on each call.
static tn_array *noise(tn_scope *s, const tn_shape *shape, uint32_t seed)
{
    static float data[2048];
    int64_t count = 1;
    for (int32_t i = 0; i < shape->rank; i++)
        count *= shape->extent[i];
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        data[i] = (float)(seed >> 8) * 0x1p-23f - 1;
    }
    return tn_from_data(s, TN_F32, shape, data);
}

// Parameters of `members` networks; 0: of one, without an axis for them.
static void make_params(tn_scope *s, int64_t members, tn_array *params[PARAMS])
{
    const int64_t flat = SIZE / 2 * (SIZE / 2) * FILTERS;
    const tn_shape shapes[PARAMS] = {{4, 0, {FILTERS, 3, 3, 1}},
                                     {1, 0, {FILTERS}},
                                     {2, 0, {flat, CLASSES}},
                                     {1, 0, {CLASSES}}};
    for (int i = 0; i < PARAMS; i++) {
        tn_shape shape = shapes[i];
        for (int32_t k = shape.rank++; members && k > 0; k--)
            shape.extent[k] = shape.extent[k - 1];
        shape.extent[0] = members;
        params[i] = noise(s, members ? &shape : &shapes[i], 10 + (uint32_t)i);
    }
}

// The loss of one image, SIZE by SIZE by 1.
static tn_array *loss_of(tn_scope *s, tn_array *const *params, tn_array *image,
                         tn_array *label)
{
    tn_array *x = tn_op(s, "expand_dims", TN_IN(image), tn_attrs("axis", TN_INTS(0)));
    x = tn_op(s, "conv2d", TN_IN(x, params[0], params[1]), tn_attrs("padding", "1"));
    x = tn_op(s, "max_pool2d", TN_IN(un(s, "relu", x)), tn_attrs("window", "2"));
    x = tn_op(s, "reshape", TN_IN(x), tn_attrs("shape", TN_INTS(-1)));
    x = bin(s, "add", bin(s, "matmul", x, params[2]), params[3]);
    return bin(s, "cross_entropy", x, label);
}

// Inputs: the parameters, an image, its label. Outputs: gradients of the parameters.
static tn_status gradient_body(tn_scope *s, tn_array *const *in, uint64_t num_in,
                               tn_array **out, uint64_t num_out, void *user)
{
    tn_array *loss = loss_of(s, in, in[PARAMS], in[PARAMS + 1]);
    (void)num_in, (void)user;
    return tn_vjp(s, &loss, NULL, 1, in, num_out, out);
}

static const int32_t per_example[PARAMS + 2] = {-1, -1, -1, -1, 0, 0};

static void make_inputs(tn_scope *s, tn_array *in[PARAMS + 2])
{
    static const int64_t labels[IMAGES] = {0, 3, 1, 2, 3};
    make_params(s, 0, in);
    in[PARAMS] = noise(s, TN_SHAPE(IMAGES, SIZE, SIZE, 1), 1);
    in[PARAMS + 1] = tn_from_data(s, TN_I64, TN_SHAPE(IMAGES), labels);
}

// Element i along axis 0.
static tn_array *part(tn_scope *s, tn_array *x, int64_t i)
{
    return tn_op(s, "take", TN_IN(x, tn_i64(s, i)), TN_NO_ATTRS);
}

static void expect_near(tn_scope *s, tn_array *got, tn_array *want)
{
    must(s, tn_scope_status(s));
    const tn_type *type = tn_array_type(got);
    cr_assert(eq(mem, bytes_of(type, sizeof(*type)),
                 bytes_of(tn_array_type(want), sizeof(*type))));
    tn_array *gap =
        tn_expr(s, "a, b -> abs(a - b) / (1 + abs(b))", TN_IN(got, want), TN_NO_ATTRS);
    double worst = tn_item(s, un(s, "max", gap));
    must(s, tn_scope_status(s));
    if (!(worst < 1e-5))
        cr_fatal("the greatest difference is %g", worst);
}

static void expect_gradients(tn_scope *s, tn_array *const *in, tn_array *const *all)
{
    for (int64_t i = 0; i < IMAGES; i++) {
        tn_array *one[PARAMS + 2], *want[PARAMS];
        memcpy(one, in, sizeof(one));
        one[PARAMS] = part(s, in[PARAMS], i);
        one[PARAMS + 1] = part(s, in[PARAMS + 1], i);
        must(s, gradient_body(s, one, PARAMS + 2, want, PARAMS, NULL));
        for (int k = 0; k < PARAMS; k++)
            expect_near(s, part(s, all[k], i), want[k]);
    }
}

TestSuite(vmap, .init = setup, .fini = teardown);

Test(vmap, gradients_of_each_example_are_those_of_a_loop)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *in[PARAMS + 2], *all[PARAMS];
    make_inputs(s, in);
    must(s, tn_vmap_call(s, gradient_body, NULL, in, per_example, PARAMS + 2, all, NULL,
                         PARAMS));
    expect_gradients(s, in, all);
    tn_scope_close(s);
}

// The body of a traced function: all of them at once.
static tn_status mapped_body(tn_scope *s, tn_array *const *in, uint64_t num_in,
                             tn_array **out, uint64_t num_out, void *user)
{
    return tn_vmap_call(s, gradient_body, user, in, per_example, num_in, out, NULL,
                        num_out);
}

Test(vmap, a_traced_function_may_map)
{
    tn_function *f;
    must(NULL, tn_function_create(runtime, mapped_body, NULL, NULL, &f));
    for (int round = 0; round < 2; round++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *in[PARAMS + 2], *all[PARAMS];
        make_inputs(s, in);
        must(s, tn_function_call(f, s, in, PARAMS + 2, all, PARAMS));
        expect_gradients(s, in, all);
        tn_scope_close(s);
    }
    tn_function_destroy(f);
}

static tn_status loss_body(tn_scope *s, tn_array *const *in, uint64_t num_in,
                           tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = loss_of(s, in, in[PARAMS], in[PARAMS + 1]);
    return TN_OK;
}

// The mean loss over all images, of one network.
static tn_status mean_body(tn_scope *s, tn_array *const *in, uint64_t num_in,
                           tn_array **out, uint64_t num_out, void *user)
{
    tn_array *losses = NULL;
    (void)num_out;
    tn_vmap_call(s, loss_body, user, in, per_example, num_in, &losses, NULL, 1);
    out[0] = un(s, "mean", losses);
    return TN_OK;
}

Test(vmap, an_ensemble_trains_as_its_members_do)
{
    enum { MEMBERS = 3 };
    tn_scope *s = tn_scope_open(runtime);
    tn_array *in[PARAMS + 2], *one[PARAMS + 2], *losses = NULL, *total, *all[PARAMS];
    const int32_t axes[PARAMS + 2] = {0, 0, 0, 0, -1, -1};
    make_inputs(s, in);
    make_params(s, MEMBERS, in);
    must(s, tn_vmap_call(s, mean_body, NULL, in, axes, PARAMS + 2, &losses, NULL, 1));
    total = un(s, "sum", losses);
    must(s, tn_vjp(s, &total, NULL, 1, in, PARAMS, all));
    for (int64_t m = 0; m < MEMBERS; m++) {
        tn_array *loss = NULL, *want[PARAMS];
        memcpy(one, in, sizeof(one));
        for (int k = 0; k < PARAMS; k++)
            one[k] = part(s, in[k], m);
        must(s, mean_body(s, one, PARAMS + 2, &loss, 1, NULL));
        expect_near(s, part(s, losses, m), loss);
        must(s, tn_vjp(s, &loss, NULL, 1, one, PARAMS, want));
        for (int k = 0; k < PARAMS; k++)
            expect_near(s, part(s, all[k], m), want[k]);
    }
    tn_scope_close(s);
}

// --- mathematics -----------------------------------------------------------------------

// A column of the Hessian of sum(x_i^2 * x_(i+1)), with wrap-around: forward over reverse.
static tn_status hessian_body(tn_scope *s, tn_array *const *in, uint64_t num_in,
                              tn_array **out, uint64_t num_out, void *user)
{
    tn_array *x = user, *gradient = NULL;
    (void)num_in, (void)num_out;
    tn_array *head =
        tn_op(s, "slice", TN_IN(x), tn_attrs("stop", TN_INTS(1), "start", TN_INTS(0)));
    tn_array *tail = tn_op(s, "slice", TN_IN(x), tn_attrs("start", TN_INTS(1)));
    tn_array *next = bin(s, "concatenate", tail, head);
    tn_array *y = un(s, "sum", bin(s, "multiply", un(s, "square", x), next));
    must(s, tn_vjp(s, &y, NULL, 1, &x, 1, &gradient));
    return tn_jvp(s, &gradient, 1, &x, in, 1, out);
}

Test(vmap, hessians)
{
    enum { N = 4 };
    tn_scope *s = tn_scope_open(runtime);
    const float xs[N] = {1, -2, 3, 0.5f};
    float identity[N * N] = {0}, got[N * N];
    for (int i = 0; i < N; i++)
        identity[i * N + i] = 1;
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(N), xs), *hessian = NULL;
    tn_array *basis = tn_from_data(s, TN_F32, TN_SHAPE(N, N), identity);
    must(s, tn_vmap_call(s, hessian_body, x, &basis, NULL, 1, &hessian, NULL, 1));
    must(s, tn_read(s, hessian, got, sizeof(got)));
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            float want = i == k             ? 2 * xs[(i + 1) % N]
                         : k == (i + 1) % N ? 2 * xs[i]
                         : i == (k + 1) % N ? 2 * xs[k]
                                            : 0;
            cr_assert(fabsf(got[i * N + k] - want) < 1e-5f);
        }
    tn_scope_close(s);
}

static tn_status distance_body(tn_scope *s, tn_array *const *in, uint64_t num_in,
                               tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    tn_array *gap = bin(s, "subtract", in[0], in[1]);
    out[0] = un(s, "sqrt", bin(s, "matmul", gap, gap));
    return TN_OK;
}

static tn_status distances_body(tn_scope *s, tn_array *const *in, uint64_t num_in,
                                tn_array **out, uint64_t num_out, void *user)
{
    const int32_t axes[] = {-1, 1};
    return tn_vmap_call(s, distance_body, user, in, axes, num_in, out, NULL, num_out);
}

Test(vmap, all_pairs_by_two_maps)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *in[] = {ramp(s, 3, 2, 0, 1), ramp(s, 2, 4, 5, -2)}, *out = NULL;
    const int32_t axes[] = {0, -1};
    must(s, tn_vmap_call(s, distances_body, NULL, in, axes, 2, &out, NULL, 1));
    float got[12];
    must(s, tn_read(s, out, got, sizeof(got)));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            float a = (float)(2 * i) - (float)(5 - 2 * k);
            float b = (float)(2 * i + 1) - (float)(5 - 2 * (4 + k));
            cr_assert(fabsf(got[i * 4 + k] - sqrtf(a * a + b * b)) < 1e-4f);
        }
    tn_scope_close(s);
}

// --- work ------------------------------------------------------------------------------

static uint64_t steps_of(tn_runtime *rt, tn_scope *s, tn_array *array)
{
    uint64_t before = stats_of(rt).steps;
    must(s, tn_eval(s, array));
    return stats_of(rt).steps - before;
}

static tn_status dense_body(tn_scope *s, tn_array *const *in, uint64_t num_in,
                            tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    tn_array *x = un(s, "tanh", bin(s, "matmul", in[0], in[1]));
    out[0] = un(s, "softmax", bin(s, "matmul", x, in[1]));
    return TN_OK;
}

Test(vmap, a_batch_takes_as_many_launches_as_one)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *one = NULL, *all = NULL, *w = ramp(s, 8, 8, -0.3f, 0.01f);
    tn_array *x = ramp(s, 64, 8, 0, 0.01f), *single[] = {part(s, x, 0), w}, *in[] = {x, w};
    must(s, tn_eval(s, single[0], w, x));
    dense_body(s, single, 2, &one, 1, NULL);
    must(s, tn_vmap_call(s, dense_body, NULL, in, (int32_t[]){0, -1}, 2, &all, NULL, 1));
    cr_assert(eq(u64, steps_of(runtime, s, all), steps_of(runtime, s, one)));
    expect_near(s, part(s, all, 0), one);
    tn_scope_close(s);
}

// --- attention -------------------------------------------------------------------------

static tn_status attention_body(tn_scope *s, tn_array *const *in, uint64_t num_in,
                                tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)user;
    out[0] = tn_op(s, "nn.scaled_dot_product_attention",
                   TN_IN(in[0], in[1], in[2], NULL, in[3]), tn_attrs("is_causal", "true"));
    return num_out == 1 ? tn_scope_status(s) : tn_vjp(s, out, out, 1, in, 1, out + 1);
}

// Mapped, attention is one step, and its derivative another one, whatever is mapped: keys
// that slices share are read where they are. Queries, which the CPU's kernels want
// contiguous, are copied for each of the two where they are not. Those of Vulkan take any
// strides.
Test(vmap, attention_and_its_derivative_are_a_step_each)
{
    static const struct {
        int32_t axes[4]; // of q, k, v, lengths
        uint64_t copies;
    } cases[] = {{{0, -1, -1, -1}, 0}, {{0, 0, -1, -1}, 0}, {{0, -1, -1, 0}, 0},
                 {{0, 0, 0, 0}, 0},    {{-1, 0, 0, -1}, 2}, {{2, 1, 1, -1}, 2}};
    const tn_shape slices[] = {
        {4, 0, {2, 4, 5, 8}}, {4, 0, {2, 2, 6, 8}}, {4, 0, {2, 2, 6, 8}}, {0}};
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *in[4], *out[2];
        for (int i = 0; i < 4; i++) {
            tn_shape shape = slices[i];
            int32_t axis = cases[c].axes[i];
            for (int32_t k = shape.rank; axis >= 0 && k > axis; k--)
                shape.extent[k] = shape.extent[k - 1];
            if (axis >= 0) {
                shape.extent[axis] = 3;
                shape.rank++;
            }
            in[i] = noise(s, &shape, 30 + (uint32_t)i);
        }
        in[3] =
            tn_op(s, "astype", TN_IN(tn_expr(s, "x -> 4 + x", TN_IN(in[3]), TN_NO_ATTRS)),
                  tn_attrs("dtype", "i64"));
        must(s, tn_eval(s, in[3]));
        must(s, tn_vmap_call(s, attention_body, NULL, in, cases[c].axes, 4, out, NULL, 2));
        const char *name = getenv("TENON_BACKEND");
        bool is_vulkan = name && strncmp(name, "vulkan", 6) == 0;
        uint64_t copies = is_vulkan ? 0 : cases[c].copies;
        uint64_t before = stats_of(runtime).steps;
        must(s, tn_eval_n(s, out, 2));
        uint64_t steps = stats_of(runtime).steps - before;
        cr_assert(steps == 2 + copies, "case %zu: %" PRIu64 " steps", c, steps);
        tn_scope_close(s);
    }
}
