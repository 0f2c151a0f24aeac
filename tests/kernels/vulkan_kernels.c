// SPDX-License-Identifier: MIT
// Kernels of a Vulkan backend against the references of the primitives, and what else a
// backend promises: replay with other buffers, third parties' kernels, the disk cache.
// TENON_TEST_PLUGIN, _BASE and _NN name the plugins.
#include "check.h"

#include <tenon/ops/base_attrs.h>
#include <tenon/ops/nn_attrs.h>
#include <tenon/ops/reference.h>
#include "vulkan_check.h"

// --- reductions ------------------------------------------------------------------------

static tn_dtype reduced_dtype(const char *id, tn_dtype dtype)
{
    if (strcmp(id, "base.argmax/1") == 0)
        return TN_I64;
    if (strcmp(id, "base.sum/1") == 0 && !tn_dtype_in(dtype, TN_FLOAT_DTYPES))
        return tn_dtype_in(dtype, TN_UNSIGNED_DTYPES) ? TN_U64 : TN_I64;
    if (strcmp(id, "base.mean/1") == 0 && !tn_dtype_in(dtype, TN_FLOAT_DTYPES))
        return TN_F64;
    return dtype;
}

static void add_reduction(const char *id, const tn_reduce_attrs *attrs, tn_layout x)
{
    struct application a = {id, attrs, 1, {x}, 1e-5, 100};
    uint32_t set = tn_axis_set(&attrs->axis, x.rank);
    int64_t extent[TN_MAX_RANK];
    int32_t rank = 0;
    for (int32_t i = 0; i < x.rank; i++)
        if (!(set >> i & 1))
            extent[rank++] = x.extent[i];
    a.operands[1] = row_major(reduced_dtype(id, x.dtype), rank, extent);
    add_check(&a);
}

// Invocations share rows on GPUs only.
static void begin_as_gpu(void)
{
    vb_as_gpu = true;
    begin_checks();
}

TestSuite(vulkan_kernels, .init = begin_as_gpu, .fini = end_checks);

static const char *const reductions[] = {"base.sum/1", "base.mean/1", "base.max/1",
                                         "base.min/1", "base.logsumexp/1"};

FIRST_DTYPE_TEST(vulkan_kernels, reductions_over_any_axes_agree_with_the_reference, dtype,
                 TN_BOOL)
{
    static const tn_reduce_attrs all = {0}, last = {.axis = INTS(-1)},
                                 first = {.axis = INTS(0)}, middle = {.axis = INTS(1)},
                                 ends = {.axis = INTS(0, 2)};
    for (int i = 0; i < 5; i++) {
        if (i == 4 && !tn_dtype_in(dtype, TN_FLOAT_DTYPES))
            continue;
        tn_layout cube = LAYOUT(dtype, 5, 37, 9);
        // Of logsumexp, rows of neighbours are not the kernel's.
        tn_layout rows = LAYOUT(dtype, 3, 700), columns = LAYOUT(dtype, 700, 3);
        if (i < 4)
            add_reduction(reductions[i], &all, LAYOUT(dtype, 1000));
        add_reduction(reductions[i], &all, cube);
        add_reduction(reductions[i], &last, cube);
        add_reduction(reductions[i], &first, cube);
        add_reduction(reductions[i], &middle, cube);
        add_reduction(reductions[i], &ends, transposed(cube, 0, 1));
        add_reduction(reductions[i], &last, i < 4 ? rows : transposed(columns, 0, 1));
        add_reduction(reductions[i], &last, LAYOUT(dtype, 19, 31));
    }
    run_checks();
}

Test(vulkan_kernels, large_reductions_agree_with_the_reference)
{
    static const tn_reduce_attrs all = {0}, last = {.axis = INTS(-1)},
                                 first = {.axis = INTS(0)};
    for (int i = 0; i < 5; i++) {
        add_reduction(reductions[i], &all, LAYOUT(TN_F32, 100000)); // in parts
        add_reduction(reductions[i], &all, LAYOUT(TN_F64, 100000));
        add_reduction(reductions[i], &first, LAYOUT(TN_F32, 3000, 40));
        add_reduction(reductions[i], &last, transposed(LAYOUT(TN_F32, 500, 50), 0, 1));
        run_checks();
    }
}

Test(vulkan_kernels, argmax_finds_the_first_of_equals)
{
    static const tn_argmax_attrs all = {.axis = TN_NO_AXIS}, last = {.axis = -1},
                                 first = {.axis = 0};
    for (tn_dtype dtype = TN_BOOL; dtype <= TN_F64; dtype++) {
        tn_layout x = LAYOUT(dtype, 7, 90);
        add_check(&(struct application){
            "base.argmax/1", &all, 1, {x, row_major(TN_I64, 0, NULL)}, 0, 3});
        add_check(
            &(struct application){"base.argmax/1", &last, 1, {x, LAYOUT(TN_I64, 7)}, 0, 3});
        add_check(&(struct application){
            "base.argmax/1", &first, 1, {x, LAYOUT(TN_I64, 90)}, 0, 3});
    }
    run_checks();
}

// --- indices, copies -------------------------------------------------------------------

Test(vulkan_kernels, gathers_and_scatters_agree_with_the_reference)
{
    static const tn_take_attrs middle = {.axis = 1}, first = {.axis = 0};
    for (tn_dtype dtype = TN_BOOL; dtype <= TN_F64; dtype++) {
        for (tn_dtype index = TN_BOOL; index <= TN_F64; index++) {
            if (!tn_dtype_in(index, TN_INTEGER_DTYPES))
                continue;
            // Indices reach beyond both ends.
            add_check(&(struct application){
                "base.take/1",
                &middle,
                2,
                {LAYOUT(dtype, 3, 9, 5), LAYOUT(index, 2, 6), LAYOUT(dtype, 3, 2, 6, 5)},
                0,
                12});
            bool scatters = dtype != TN_BOOL && (index == TN_I32 || index == TN_I64);
            if (scatters)
                add_check(&(struct application){"base.scatter_add/1",
                                                &first,
                                                3,
                                                {LAYOUT(dtype, 8, 3), LAYOUT(index, 20),
                                                 LAYOUT(dtype, 20, 3), LAYOUT(dtype, 8, 3)},
                                                1e-5,
                                                11});
        }
        run_checks();
    }
}

Test(vulkan_kernels, regions_are_copied_to_their_places)
{
    static const tn_concatenate_attrs axis = {.axis = 1};
    static const tn_slice_attrs slice = {
        .start = INTS(1, -2), .stop = INTS(6, -9), .step = INTS(2, -3)};
    for (tn_dtype dtype = TN_BOOL; dtype <= TN_F64; dtype++) {
        add_check(&(struct application){"base.concatenate/1",
                                        &axis,
                                        3,
                                        {LAYOUT(dtype, 4, 3, 2),
                                         transposed(LAYOUT(dtype, 2, 5, 4), 0, 2),
                                         LAYOUT(dtype, 4, 1, 2), LAYOUT(dtype, 4, 9, 2)},
                                        0,
                                        100});
        add_check(&(struct application){
            "base.slice_update/1",
            &slice,
            2,
            {LAYOUT(dtype, 7, 10), LAYOUT(dtype, 3, 3), LAYOUT(dtype, 7, 10)},
            0,
            100});
    }
    run_checks();
}

// Borders of several axes, of whole and of odd numbers of elements, in one pass.
Test(vulkan_kernels, borders_are_put_around)
{
    static const tn_pad_attrs borders[] = {
        {.before = INTS(1, 1), .after = INTS(1, 1), .value = 3},
        {.before = INTS(0, 4, 0), .after = INTS(300, 0, 0), .value = 1},
        {.before = INTS(3, 0, 2, 0), .after = INTS(1, 0, 0, 0), .value = 0},
        {.before = INTS(1, 2, 3, 4), .after = INTS(4, 3, 2, 1), .value = 120},
        {.before = INTS(0, 2, 2, 0, 1), .after = INTS(0, 2, 2, 0, 3), .value = 7}};
    static const tn_dtype dtypes[] = {TN_F32, TN_F16,  TN_COMPLEX64,  TN_U8,
                                      TN_I64, TN_BOOL, TN_COMPLEX128, TN_F8_E5M2};
    for (size_t i = 0; i < sizeof(borders) / sizeof(borders[0]); i++) {
        for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d += 1 + i % 2) {
            tn_layout x[] = {LAYOUT(dtypes[d], 255, 259), LAYOUT(dtypes[d], 37, 8, 64),
                             LAYOUT(dtypes[d], 15, 7, 32, 20),
                             LAYOUT(dtypes[d], 16, 9, 31, 17),
                             LAYOUT(dtypes[d], 3, 20, 20, 6, 9)};
            tn_layout out = x[i];
            for (int32_t axis = 0; axis < out.rank; axis++)
                out.extent[axis] +=
                    borders[i].before.value[axis] + borders[i].after.value[axis];
            add_check(&(struct application){
                .primitive = "base.pad_constant/1",
                .attrs = &borders[i],
                .num_inputs = 1,
                .operands = {x[i], row_major(dtypes[d], out.rank, out.extent)},
                .limit = 100,
                .exact = true});
        }
        run_checks();
    }
}

Test(vulkan_kernels, parts_begin_where_an_array_says)
{
    static const tn_dynamic_slice_attrs sizes = {.sizes = INTS(2, 1, 6)};
    for (tn_dtype dtype = TN_BOOL; dtype <= TN_F64; dtype++) {
        for (tn_dtype index = TN_BOOL; index <= TN_F64; index++) {
            if (!tn_dtype_in(index, TN_INTEGER_DTYPES))
                continue;
            // The last axis is whole: elements are widened. Starts reach beyond both ends.
            add_check(&(struct application){
                "base.dynamic_slice/1",
                &sizes,
                2,
                {LAYOUT(dtype, 5, 3, 6), LAYOUT(index, 2), LAYOUT(dtype, 2, 1, 6)},
                0,
                9});
            for (int in_place = 0; in_place < 2; in_place++)
                add_check(&(struct application){
                    .primitive = "base.dynamic_slice_update/1",
                    .num_inputs = 3,
                    .operands = {LAYOUT(dtype, 7, 10), LAYOUT(dtype, 3, 4),
                                 LAYOUT(index, 2), LAYOUT(dtype, 7, 10)},
                    .limit = 14,
                    .in_place = in_place});
        }
        run_checks();
    }
}

// --- networks --------------------------------------------------------------------------

Test(vulkan_kernels, losses_agree_with_the_reference)
{
    static const tn_dtype floats[] = {TN_F16, TN_BF16, TN_F32, TN_F64};
    static const tn_cross_entropy_attrs none = {0};
    for (int i = 0; i < 4; i++) {
        tn_dtype t = floats[i];
        for (tn_dtype label = TN_BOOL; label <= TN_F64; label++) {
            if (!tn_dtype_in(label, TN_INTEGER_DTYPES))
                continue;
            add_check(
                &(struct application){"nn.cross_entropy/1",
                                      &none,
                                      2,
                                      {LAYOUT(t, 9, 10), LAYOUT(label, 9), LAYOUT(t, 9)},
                                      1e-5,
                                      11});
            add_check(
                &(struct application){"nn.cross_entropy/1",
                                      &none,
                                      2,
                                      {LAYOUT(t, 4, 90), LAYOUT(label, 4), LAYOUT(t, 4)},
                                      1e-5,
                                      95});
        }
    }
    run_checks();
}

Test(vulkan_kernels, pooling_and_its_gradient_agree_with_the_reference)
{
    static const tn_dtype floats[] = {TN_F16, TN_BF16, TN_F32, TN_F64};
    static const tn_pool2d_attrs two = {.window = INTS(2)}, three = {.window = INTS(3, 2),
                                                                     .stride = INTS(2, 1),
                                                                     .padding = INTS(1, 1)};
    for (int i = 0; i < 4; i++) {
        tn_layout x = LAYOUT(floats[i], 2, 8, 6, 3);
        tn_layout y = LAYOUT(floats[i], 2, 4, 3, 3), z = LAYOUT(floats[i], 2, 4, 7, 3);
        add_check(&(struct application){"nn.max_pool2d/1", &two, 1, {x, y}, 0, 0});
        add_check(&(struct application){"nn.max_pool2d/1", &three, 1, {x, z}, 0, 0});
        add_check(
            &(struct application){"nn.max_pool2d_grad/1", &two, 3, {x, y, y, x}, 1e-5, 0});
        add_check(&(struct application){
            "nn.max_pool2d_grad/1", &three, 3, {x, z, z, x}, 1e-5, 0});
    }
    run_checks();
}

// --- what a backend promises -----------------------------------------------------------

// y = x * 3 as a program of one multiplication by a parameter.
static const tn_expr_insn scale_insns[] = {{TN_EXPR_LOAD, TN_F32, 0, 0, 0},
                                           {TN_EXPR_PARAM, TN_F32, 0, 0, 0},
                                           {TN_EXPR_MUL, TN_F32, 0, 1, 0}};
static const tn_dtype scale_dtype = TN_F32;
static const uint32_t scale_output = 2;
static const tn_expr_program scale = {.struct_size = sizeof(scale),
                                      .insns = scale_insns,
                                      .input_dtypes = &scale_dtype,
                                      .output_dtypes = &scale_dtype,
                                      .outputs = &scale_output,
                                      .num_insns = 3,
                                      .num_params = 1,
                                      .num_inputs = 1,
                                      .num_outputs = 1,
                                      .name = "x * k"};

static void add_scale(uint32_t from, uint32_t to, const uint64_t *k)
{
    tn_layout layout = LAYOUT(TN_F32, 64);
    tn_step *step = vb_step(&bench, 1, 1);
    step->program = &scale;
    step->params = k;
    vb_set(step, 0, from, &layout);
    vb_set(step, 1, to, &layout);
}

Test(vulkan_kernels, a_replay_reads_and_writes_the_buffers_that_it_is_given)
{
    double three = 3;
    uint64_t k;
    memcpy(&k, &three, sizeof(k));
    uint32_t x = vb_slot(&bench, 256), t = vb_slot(&bench, 256), y = vb_slot(&bench, 256);
    add_scale(x, t, &k);
    add_scale(t, y, &k); // reads what the first wrote
    cr_assert(eq(int, vb_compile(&bench), TN_OK));
    tn_buffer *inputs[12], *outputs[12];
    uint64_t points[12];
    for (int i = 0; i < 12; i++) {
        float values[64];
        for (int j = 0; j < 64; j++)
            values[j] = (float)(100 * i + j);
        cr_assert(
            eq(int, bench.backend->buffer_create(bench.device, 256, &inputs[i]), TN_OK));
        cr_assert(
            eq(int, bench.backend->buffer_create(bench.device, 256, &outputs[i]), TN_OK));
        cr_assert(eq(int,
                     bench.backend->buffer_write(bench.device, inputs[i], 0, values, 256),
                     TN_OK));
        tn_binding bindings[3] = {{inputs[i], 0}, bench.bindings[t], {outputs[i], 0}};
        tn_submission submission = {.struct_size = sizeof(submission),
                                    .flags = TN_SUBMIT_ASYNC,
                                    .executable = bench.executable,
                                    .bindings = bindings,
                                    .num_bindings = 3,
                                    .binding_size = sizeof(tn_binding)};
        cr_assert(
            eq(int, bench.backend->submit(bench.device, &submission, &points[i]), TN_OK));
    }
    cr_assert(eq(int, bench.backend->wait(bench.device, 0, points[11]), TN_OK));
    for (int i = 0; i < 12; i++) {
        float values[64];
        cr_assert(eq(int,
                     bench.backend->buffer_read(bench.device, outputs[i], 0, values, 256),
                     TN_OK));
        for (int j = 0; j < 64; j++)
            cr_assert(values[j] == 9.0f * (float)(100 * i + j));
        bench.backend->buffer_destroy(bench.device, inputs[i]);
        bench.backend->buffer_destroy(bench.device, outputs[i]);
    }
    vb_clear(&bench);
}

// Two slots bound to one buffer, though neither says that it may be the other's memory: the
// second step does not wait for the first, and the layers must say so.
Test(vulkan_kernels, validation_sees_a_missing_barrier)
{
    double three = 3;
    uint64_t k;
    if (!getenv("TENON_VULKAN_VALIDATION"))
        cr_skip("needs the validation layers: TENON_VULKAN_VALIDATION is not set");
    memcpy(&k, &three, sizeof(k));
    uint32_t x = vb_slot(&bench, 256), t = vb_slot(&bench, 256), u = vb_slot(&bench, 256),
             y = vb_slot(&bench, 256);
    add_scale(x, t, &k);
    add_scale(u, y, &k);
    cr_assert(eq(int, vb_compile(&bench), TN_OK));
    tn_binding bindings[] = {bench.bindings[x], bench.bindings[t], bench.bindings[t],
                             bench.bindings[y]};
    tn_submission submission = {.struct_size = sizeof(submission),
                                .executable = bench.executable,
                                .bindings = bindings,
                                .num_bindings = 4,
                                .binding_size = sizeof(tn_binding)};
    uint64_t point;
    int before = atomic_load(&vb_messages);
    cr_assert(eq(int, bench.backend->submit(bench.device, &submission, &point), TN_OK));
    cr_assert(eq(int, bench.backend->wait(bench.device, 0, point), TN_OK));
    cr_assert(atomic_exchange(&vb_messages, before) > before);
    vb_clear(&bench);
}

struct saxpy_attrs {
    double alpha;
};
static const tn_attr_field saxpy_fields[] = {
    TN_F64_FIELD(struct saxpy_attrs, alpha, 1.0, "factor of x")};
static const tn_primitive saxpy = {.struct_size = sizeof(saxpy),
                                   .id = "test.saxpy/1",
                                   .attrs =
                                       TN_ATTR_TABLE(struct saxpy_attrs, saxpy_fields)};
static const char saxpy_code[] =
    "#version 460\n"
    "layout(local_size_x = 64) in;\n"
    "layout(binding = 0) readonly buffer X { float d[]; } x;\n"
    "layout(binding = 1) readonly buffer Y { float d[]; } y;\n"
    "layout(binding = 2) writeonly buffer Z { float d[]; } z;\n"
    "layout(push_constant) uniform P { uint n; float alpha; uint from; int by; } p;\n"
    "void main() {\n"
    "    uint i = gl_GlobalInvocationID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x * 64u;\n"
    "    if (i < p.n) z.d[i] = p.alpha * x.d[p.from + i * uint(p.by)] + y.d[i];\n"
    "}\n";
// The same with a constant of its author's, whose id is Tenon's own for GRID_ROW.
static const char saxpy_constant_code[] =
    "#version 460\n"
    "layout(local_size_x = 1) in;\n"
    "layout(constant_id = 1000) const uint one = 1;\n"
    "layout(binding = 0) readonly buffer X { float d[]; } x;\n"
    "layout(binding = 1) readonly buffer Y { float d[]; } y;\n"
    "layout(binding = 2) writeonly buffer Z { float d[]; } z;\n"
    "layout(push_constant) uniform P { uint n; float alpha; uint from; int by; } p;\n"
    "void main() {\n"
    "    uint i = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x;\n"
    "    if (i < p.n) z.d[i] = one * p.alpha * x.d[p.from + i * uint(p.by)] + y.d[i];\n"
    "}\n";
static const tn_push_field saxpy_push[] = {{TN_PUSH_COUNT, 0, 0},
                                           {TN_PUSH_ATTR_F32, 0, 0},
                                           {TN_PUSH_OFFSET, 0, 0},
                                           {TN_PUSH_STRIDE, -1, 0}};

static tn_status run_saxpy_of(const char *code, uint64_t size,
                              const struct saxpy_attrs *attrs, int count,
                              uint32_t elements_per_group)
{
    const tn_vulkan_module module = {.code = code, .code_size = size};
    tn_vulkan_kernel payload = {.struct_size = sizeof(payload),
                                .modules = &module,
                                .num_modules = 1,
                                .module_size = sizeof(module),
                                .push = saxpy_push,
                                .num_push = 4,
                                .elements_per_group = elements_per_group};
    tn_kernel kernel = {.struct_size = sizeof(kernel),
                        .primitive = saxpy.id,
                        .family = TN_FAMILY_VULKAN_GLSL,
                        .name = "saxpy",
                        .payload = &payload};
    tn_layout x = LAYOUT(TN_F32, count), y = x;
    x.stride[0] = 2;
    x.offset = 3;
    tn_step *step = vb_step(&bench, 2, 1);
    step->primitive = &saxpy;
    step->attrs = attrs;
    step->kernel = &kernel;
    uint64_t dense = (uint64_t)count * sizeof(float);
    uint32_t slots[3] = {vb_slot(&bench, span(&x)), vb_slot(&bench, dense),
                         vb_slot(&bench, dense)};
    fill(bench.memory[slots[0]], TN_F32, span(&x), 0);
    fill(bench.memory[slots[1]], TN_F32, dense, 0);
    vb_set(step, 0, slots[0], &x);
    vb_set(step, 1, slots[1], &y);
    vb_set(step, 2, slots[2], &y);
    tn_status status = vb_run(&bench);
    const float *a = (const float *)bench.memory[slots[0]];
    const float *b = (const float *)bench.memory[slots[1]];
    const float *c = (const float *)bench.memory[slots[2]];
    for (int i = 0; i < count && status == TN_OK; i++)
        cr_assert(c[i] == (float)attrs->alpha * a[3 + 2 * i] + b[i]);
    vb_clear(&bench);
    return status;
}

static tn_status run_saxpy(const char *code, uint64_t size, const struct saxpy_attrs *attrs)
{
    return run_saxpy_of(code, size, attrs, 100, 64);
}

static bool has_compiler(void)
{
    for (int i = 0; bench.backend->families[i]; i++)
        if (strcmp(bench.backend->families[i], TN_FAMILY_VULKAN_GLSL) == 0)
            return true;
    return false;
}

Test(vulkan_kernels, glsl_of_others_runs_where_there_is_a_compiler)
{
    struct saxpy_attrs attrs = {2.5};
    tn_status status = run_saxpy(saxpy_code, sizeof(saxpy_code) - 1, &attrs);
    cr_assert(eq(int, status, has_compiler() ? TN_OK : TN_ERR_UNSUPPORTED), "%s",
              vb_failure);
}

// More workgroups than one row of the smallest devices has.
Test(vulkan_kernels, constants_of_others_keep_their_values_in_large_grids)
{
    struct saxpy_attrs attrs = {2.5};
    if (!has_compiler())
        cr_skip("this backend has no compiler");
    cr_assert(eq(int, TN_OK,
                 run_saxpy_of(saxpy_constant_code, sizeof(saxpy_constant_code) - 1, &attrs,
                              70000, 1)));
}

Test(vulkan_kernels, a_mistake_in_glsl_is_told_with_its_line)
{
    static const char wrong[] = "#version 460\nlayout(local_size_x = 1) in;\n"
                                "void main() {\n    undeclared = 1;\n}\n";
    struct saxpy_attrs attrs = {1};
    if (!has_compiler())
        cr_skip("this backend has no compiler");
    cr_assert(eq(int, run_saxpy(wrong, sizeof(wrong) - 1, &attrs), TN_ERR_REFUSED));
    check_says(vb_failure, ":4:5: ");
    check_says(vb_failure, "undeclared");
}

// A device of its own, so that nothing is in memory yet.
Test(vulkan_kernels, compiled_code_comes_from_the_disk_cache_and_damage_is_mended)
{
    struct saxpy_attrs attrs = {1.5};
    if (!has_compiler())
        cr_skip("this backend has no compiler");
    cr_assert(eq(int, run_saxpy(saxpy_code, sizeof(saxpy_code) - 1, &attrs), TN_OK));
    for (int damaged = 0; damaged < 2; damaged++) {
        vb_close(&bench);
        cr_assert(vb_open(&bench, bench.plugin));
        int hits = vb_cache_hits, puts = vb_cache_puts;
        vb_cache_damages = damaged;
        cr_assert(eq(int, run_saxpy(saxpy_code, sizeof(saxpy_code) - 1, &attrs), TN_OK));
        vb_cache_damages = false;
        cr_assert(eq(int, vb_cache_hits, hits + 1));
        cr_assert(eq(int, vb_cache_puts, puts + damaged));
    }
}
