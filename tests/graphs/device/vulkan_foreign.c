// SPDX-License-Identifier: MIT
// Third parties' kernels on Vulkan, from the op pack of tests/fixtures/kernels.c: right
// ones compute what their primitive means, wrong ones are refused with plugin, kernel and
// reason before a driver sees them.
//
// TENON_TEST_BACKEND says which backend.
#include "../support/common.h"

static const char *backend;

static void open_backend(void)
{
    backend = getenv("TENON_TEST_BACKEND");
    char variable[64];
    need_device(backend);
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", backend);
    runtime = open_with((const char *const[]){variable, NULL});
}

// The plan says that the pack's kernel runs, not the expression.
static void chosen(tn_scope *s, tn_array *x, const char *kernel)
{
    char *json = NULL;
    must(s, tn_explain(s, &x, 1, &json));
    check_says(json, kernel);
    tn_text_free(json);
}

static void check_strided(tn_scope *s, tn_array *x, tn_array *y, int64_t count)
{
    tn_array *got = tn_op(s, "kernels.strided", TN_IN(x, y),
                          tn_attrs("alpha", 2.5, "beta", (int64_t)-3));
    tn_array *want = tn_expr(s, "x, y -> 2.5 * x - 3 * y", TN_IN(x, y), TN_NO_ATTRS);
    float a[512], b[512];
    cr_assert(count <= 512);
    chosen(s, got, "\"test\"");
    must(s, tn_read(s, got, a, (uint64_t)count * sizeof(float)));
    must(s, tn_read(s, want, b, (uint64_t)count * sizeof(float)));
    for (int64_t i = 0; i < count; i++)
        if (fabsf(a[i] - b[i]) > 1e-4f)
            cr_fatal("element %d: got %g, expected %g", (int)i, (double)a[i], (double)b[i]);
}

TestSuite(vulkan_foreign, .init = open_backend, .fini = teardown);

Test(vulkan_foreign, strides_offsets_and_attributes_arrive)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 16, 24, -3, 0.25f), *y = ramp(s, 24, 16, 5, -0.5f);
    check_strided(s, x, un(s, "transpose", y), 16 * 24);
    check_strided(s, un(s, "transpose", x), y, 24 * 16);
    tn_array *part = tn_op(
        s, "slice", TN_IN(x),
        tn_attrs("start", TN_INTS(2, 3), "stop", TN_INTS(14, 20), "step", TN_INTS(3, 2)));
    check_strided(s, part, part, 4 * 9);
    check_strided(s, part, ramp(s, 4, 9, 1, 1), 4 * 9);
    tn_scope_close(s);
}

Test(vulkan_foreign, layouts_that_a_kernel_does_not_accept_run_as_the_expression)
{
    tn_scope *s = tn_scope_open(runtime);
    float got[3];
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(3), (float[]){1, 2, 3});
    tn_array *y = tn_float(s, 2);
    must(s, tn_read(s, tn_op(s, "kernels.strided", TN_IN(x, y), tn_attrs("alpha", 2.0)),
                    got, sizeof(got)));
    cr_assert(got[0] == 4 && got[1] == 6 && got[2] == 8);
    tn_scope_close(s);
}

Test(vulkan_foreign, more_than_65535_workgroups_are_folded)
{
    enum { COUNT = 2 * 65535 + 7 };
    tn_scope *s = tn_scope_open(runtime);
    float *data = malloc(COUNT * sizeof(*data)), *got = malloc(COUNT * sizeof(*got));
    static const int64_t counts[] = {1, 65534, 65535, 65536, 2 * 65535, COUNT};
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        for (int64_t i = 0; i < counts[k]; i++)
            data[i] = (float)(i % 9973);
        tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(counts[k]), data);
        x = un(s, "kernels.plain", x);
        chosen(s, x, "\"test\"");
        must(s, tn_read(s, x, got, (uint64_t)counts[k] * sizeof(*got)));
        for (int64_t i = 0; i < counts[k]; i++)
            cr_assert(got[i] == 2 * data[i]);
    }
    free(data);
    free(got);
    tn_scope_close(s);
}

Test(vulkan_foreign, empty_arrays_launch_nothing)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(0), NULL);
    must(s, tn_eval(s, un(s, "kernels.plain", x)));
    x = tn_from_data(s, TN_F32, TN_SHAPE(0, 5), NULL);
    must(s, tn_eval(s, tn_op(s, "kernels.strided", TN_IN(x, x), TN_NO_ATTRS)));
    tn_scope_close(s);
}

Test(vulkan_foreign, sixteen_bit_elements_arrive)
{
    static const struct {
        const char *op;
        tn_dtype dtype;
        uint16_t given[5], doubled[5]; // 1, -2, 0, the largest half of a number, infinity
    } cases[] = {
        {"kernels.half",
         TN_F16,
         {0x3c00, 0xc000, 0x0000, 0x7800, 0x7c00},
         {0x4000, 0xc400, 0x0000, 0x7c00, 0x7c00}},
        {"kernels.brain",
         TN_BF16,
         {0x3f80, 0xc000, 0x0000, 0x3e80, 0x7f80},
         {0x4000, 0xc080, 0x0000, 0x3f00, 0x7f80}},
    };
    tn_scope *s = tn_scope_open(runtime);
    for (int i = 0; i < 2; i++) {
        uint16_t got[5];
        tn_array *x = tn_from_data(s, cases[i].dtype, TN_SHAPE(5), cases[i].given);
        x = un(s, cases[i].op, x);
        chosen(s, x, "\"test\"");
        must(s, tn_read(s, x, got, sizeof(got)));
        cr_assert(
            eq(mem, bytes_of(got, sizeof(got)), bytes_of(cases[i].doubled, sizeof(got))));
    }
    tn_scope_close(s);
}

static tn_array *ramp_of_100(tn_scope *s)
{
    return tn_op(s, "reshape", TN_IN(ramp(s, 1, 100, 1, 1)),
                 tn_attrs("shape", TN_INTS(100)));
}

Test(vulkan_foreign, packed_modules_are_unpacked)
{
    tn_scope *s = tn_scope_open(runtime);
    float got[100];
    tn_array *x = un(s, "kernels.packed", ramp_of_100(s));
    chosen(s, x, "\"test\"");
    must(s, tn_read(s, x, got, sizeof(got)));
    for (int i = 0; i < 100; i++)
        cr_assert(got[i] == 2 * (float)(i + 1));
    cr_assert(tn_eval(s, un(s, "kernels.damaged", ramp_of_100(s))) == TN_ERR_MEMORY);
    check_says(tn_scope_error(s), "no memory for module 0");
    tn_scope_close(s);
}

Test(vulkan_foreign, launches_are_compared_with_what_the_module_declares)
{
    static const struct {
        const char *op, *part;
    } cases[] = {
        {"kernels.sized_shared", "bytes of shared memory, but a workgroup has at most"},
        {"kernels.sized_group", "x1x1, the device takes"},
        {"kernels.sized_push",
         "has a push-constant block of 16 bytes, but the launch pushes 12"},
        {"kernels.sized_id",
         "has no specialisation constant 9, which the launch gives a value"},
    };
    tn_scope *s = tn_scope_open(runtime);
    float got[100];
    tn_array *y = un(s, "kernels.sized", ramp_of_100(s));
    chosen(s, y, "\"test\"");
    must(s, tn_read(s, y, got, sizeof(got)));
    cr_assert(got[0] == 2 && got[99] == 200);
    tn_scope_close(s);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char full[128];
        snprintf(full, sizeof(full),
                 "kernel com.acme.kernels/test of %s/1: its module sized ", cases[i].op);
        s = tn_scope_open(runtime);
        tn_array *x = un(s, cases[i].op, ramp_of_100(s));
        check_status(tn_read(s, x, got, sizeof(got)), TN_ERR_REFUSED);
        check_says(tn_scope_error(s), full);
        check_says(tn_scope_error(s), cases[i].part);
        tn_scope_close(s);
    }
}

// negative(x), the operator, then + y: one step.
static tn_array *between_programs(tn_scope *s, const char *op, tn_dtype dtype)
{
    const char *name = tn_dtype_name(dtype);
    tn_array *x = tn_op(s, "astype", TN_IN(ramp_of_100(s)), tn_attrs("dtype", name));
    tn_array *y = tn_op(s, "astype", TN_IN(tn_float(s, 0.5)), tn_attrs("dtype", name));
    must(s, tn_eval(s, x, y));
    return bin(s, "add", un(s, op, un(s, "negative", x)), y);
}

Test(vulkan_foreign, kernels_take_elementwise_work_in)
{
    static const struct {
        const char *op;
        tn_dtype dtype;
    } cases[] = {{"kernels.fuses", TN_F32},
                 {"kernels.fuses_half", TN_F16},
                 {"kernels.fuses_brain", TN_BF16}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        float got[100];
        tn_array *z = between_programs(s, cases[i].op, cases[i].dtype);
        chosen(s, z, "\"test\"");
        uint64_t before = stats_of(runtime).steps;
        must(s, tn_eval(s, z));
        cr_assert(eq(u64, stats_of(runtime).steps - before, 1));
        z = tn_op(s, "astype", TN_IN(z), tn_attrs("dtype", "f32"));
        must(s, tn_read(s, z, got, sizeof(got)));
        // Of a bf16 above 128 the half is lost.
        for (int k = 0; k < 100; k++)
            if (!(fabsf(got[k] - (0.5f - 2 * (float)(k + 1))) <= (k < 60 ? 0 : 0.5f)))
                cr_fatal("%s: element %d is %g, expected %g", cases[i].op, k,
                         (double)got[k], 0.5 - 2 * (k + 1));
        tn_scope_close(s);
    }
}

Test(vulkan_foreign, modules_that_cannot_take_work_in_are_refused)
{
    static const struct {
        const char *op, *part;
    } cases[] = {
        {"kernels.fuses_reads",
         "reaches binding 1 by an instruction 61, expected that it only "
         "stores single elements"},
        {"kernels.fuses_counted",
         "has at binding 1 no array alone, expected one of dtype f32"},
        {"kernels.fuses_pairs", "elements of 64 bits, expected 32 for dtype f32"},
        {"kernels.fuses_many", "a launch of 32 operands, expected at most 8 where operands "
                               "pass through programs"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char full[128];
        float got[100];
        tn_scope *s = tn_scope_open(runtime);
        snprintf(full, sizeof(full), "kernel com.acme.kernels/test of %s/1: ", cases[i].op);
        tn_array *z = between_programs(s, cases[i].op, TN_F32);
        check_status(tn_read(s, z, got, sizeof(got)), TN_ERR_REFUSED);
        check_says(tn_scope_error(s), full);
        check_says(tn_scope_error(s), cases[i].part);
        tn_scope_close(s);
    }
}

Test(vulkan_foreign, wrong_kernels_are_refused_with_their_reason)
{
    static const struct {
        const char *name, *part;
        bool glsl;
    } cases[] = {
        {"odd_size", "expected a multiple of 4", false},
        {"wrong_magic", "begins with 0xdeadbeef, expected 0x07230203", false},
        {"cut", "is cut off", false},
        {"no_entry", "no entry point \"other\"", false},
        {"many_bindings", "has a binding 2, but the launch has 2 operands", false},
        {"no_code", "it has no code", false},
        {"wrong_text", "GLSL:5:5: 'undeclared' is not declared", true},
        {"text_entry", "no entry point \"elsewhere\"", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char op[64], full[128];
        float got[4];
        snprintf(op, sizeof(op), "kernels.%s", cases[i].name);
        snprintf(full, sizeof(full), "kernel com.acme.kernels/test of %s/1: ", op);
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = un(s, op, ramp(s, 2, 2, 1, 1));
        tn_status status = tn_read(s, x, got, sizeof(got));
        if (cases[i].glsl && strcmp(backend, "vulkan") == 0) {
            must(s, status); // nobody there compiles GLSL: the expression runs
            cr_assert(got[3] == 8);
        } else {
            check_status(status, TN_ERR_REFUSED);
            check_says(tn_scope_error(s), full);
            check_says(tn_scope_error(s), cases[i].part);
            check_says(tn_scope_error(s), backend);
        }
        tn_scope_close(s);
    }
}

// What a device has beyond the least is on: lavapipe has both.
Test(vulkan_foreign, features_of_the_device_are_there_for_kernels)
{
    static const char *const ops[] = {"kernels.wide", "kernels.atomics"};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        float got[4];
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = un(s, ops[i], ramp(s, 2, 2, 1, 1));
        chosen(s, x, "\"test\"");
        must(s, tn_read(s, x, got, sizeof(got)));
        cr_assert(got[0] == 2 && got[3] == 8);
        tn_scope_close(s);
    }
}

Test(vulkan_foreign, a_wrong_kernel_can_be_left_out_by_name)
{
    char variable[64];
    float got[4];
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", backend);
    tn_runtime *rt = open_with((const char *const[]){
        variable, "TENON_KERNELS=kernels.*=!com.acme.kernels/test", NULL});
    tn_scope *s = tn_scope_open(rt);
    must(s, tn_read(s, un(s, "kernels.cut", ramp(s, 2, 2, 1, 1)), got, sizeof(got)));
    cr_assert(got[3] == 8);
    tn_scope_close(s);
    tn_runtime_close(rt);
}
