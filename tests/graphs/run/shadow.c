// SPDX-License-Identifier: MIT
// TENON_CHECK: launches are compared with their definitions, whatever these are, and what
// differs is said. The core itself is linked in: operators and kernels of the test's own,
// some of them wrong, are registered by hand.
#include "primitive/prim_set.h"
#include "../support/common.h"

#include <fcntl.h>
#include <tenon/control.h>
#include <tenon/kernel.h>
#include <tenon/ops/reference.h>
#include <unistd.h>

// --- operators: y = 2 x, said in three ways --------------------------------------------

static tn_status same_type(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return TN_OK;
}

static tn_status scale(const tn_cpu_call *call, double factor)
{
    const tn_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    int64_t at[TN_MAX_RANK] = {0}, count = tn_layout_count(&y->layout);
    for (int64_t i = 0; i < count; i++) {
        tn_set_f64(y, tn_offset_at(&y->layout, at),
                   factor * tn_get_f64(x, tn_offset_at(&x->layout, at)));
        tn_index_next(y->layout.rank, y->layout.extent, at);
    }
    return TN_OK;
}

static tn_status double_it(const tn_cpu_call *call)
{
    return scale(call, 2);
}

static tn_status triple_it(const tn_cpu_call *call)
{
    return scale(call, 3);
}

// 2 x by way of a view, a number and a sum.
static tn_status decompose(const tn_build *build, const tn_rule *rule, tn_array **outputs)
{
    const tn_array *x = rule->inputs[0];
    tn_ints axis = {.count = 1, .given = 1, .value = {0}};
    tn_array *both =
        build->op(build, "base.expand_dims", TN_IN(x), tn_attrs("axis", &axis));
    both = build->op(build, "base.concatenate", TN_IN(both, both), tn_attrs("axis", 0));
    outputs[0] = build->op(build, "base.sum", TN_IN(both), tn_attrs("axis", &axis));
    outputs[0] = build->op(build, "base.multiply",
                           TN_IN(outputs[0], build->scalar(build, TN_F32, 1)), TN_NO_ATTRS);
    return TN_OK;
}

static const tn_input_info inputs[] = {{.name = "x", .doc = "what is doubled"}};
static const tn_primitive operators[] = {
    {.struct_size = sizeof(tn_primitive),
     .id = "acme.by_reference/1",
     .doc = "2 x",
     TN_INPUTS(inputs),
     .infer = same_type,
     .reference = double_it},
    {.struct_size = sizeof(tn_primitive),
     .id = "acme.by_expression/1",
     .doc = "2 x",
     TN_INPUTS(inputs),
     .expr = "x + x"},
    {.struct_size = sizeof(tn_primitive),
     .id = "acme.by_decomposition/1",
     .doc = "2 x",
     TN_INPUTS(inputs),
     .infer = same_type,
     .decompose = decompose},
};
#define NUM_OPERATORS 3

static const tn_cpu_kernel right = {sizeof(right), 0, double_it};
static const tn_cpu_kernel wrong = {sizeof(wrong), 0, triple_it};

static tn_runtime *open_checked(const char *rate, const tn_cpu_kernel *kernel)
{
    tn_runtime *rt = open_with((const char *const[]){"TENON_BACKEND=cpu-blas", rate, NULL});
    for (int i = 0; i < NUM_OPERATORS; i++) {
        const tn_kernel record = {.struct_size = sizeof(record),
                                  .primitive = operators[i].id,
                                  .family = TN_FAMILY_CPU,
                                  .name = "fast",
                                  .priority = 500,
                                  .payload = kernel};
        must(NULL, prim_register(rt, NULL, &operators[i]));
        must(NULL,
             kernel_register(rt, &(struct provider){.id = "com.acme.kernels"}, &record));
    }
    return rt;
}

// --- what the log says -----------------------------------------------------------------

static char said[8192];

static int catch_log(int *out_saved)
{
    char path[] = "/tmp/tenon-shadow-XXXXXX";
    int file = mkstemp(path);
    cr_assert(file >= 0);
    unlink(path);
    fflush(stderr);
    *out_saved = dup(2);
    dup2(file, 2);
    return file;
}

static void read_log(int file, int saved)
{
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    lseek(file, 0, SEEK_SET);
    ssize_t size = read(file, said, sizeof(said) - 1);
    said[size > 0 ? size : 0] = 0;
    close(file);
}

// Each operator on a strided input, and a fused program after it; element 1 of the last.
static float run_once(tn_runtime *rt, int rounds)
{
    float values[12] = {0};
    for (int round = 0; round < rounds; round++) {
        tn_scope *s = tn_scope_open(rt);
        tn_array *x = un(s, "transpose", ramp(s, 3, 4, 1, 1));
        for (int i = 0; i < NUM_OPERATORS; i++) {
            tn_array *y = un(s, operators[i].id, x);
            y = bin(s, "add", un(s, "tanh", y), un(s, "exp", x));
            must(s, tn_eval(s, y));
            must(s, tn_read(s, y, values, sizeof(values)));
        }
        tn_scope_close(s);
    }
    return values[1];
}

// --- tests -----------------------------------------------------------------------------

Test(shadow, right_kernels_pass_whatever_defines_the_operator)
{
    int saved, file;
    tn_runtime *rt = open_checked("TENON_CHECK=1", &right);
    file = catch_log(&saved);
    float checked = run_once(rt, 1);
    read_log(file, saved);
    cr_assert(eq(str, said, ""));
    cr_assert(stats_of(rt).checked >= 2 * NUM_OPERATORS);
    cr_assert(eq(u64, stats_of(rt).differing, 0));
    tn_runtime *plain = open_checked(NULL, &right);
    cr_assert(run_once(plain, 1) == checked); // results are those of an unchecked run
    cr_assert(eq(u64, stats_of(plain).checked, 0));
    tn_runtime_close(plain);
    tn_runtime_close(rt);
}

// An array of no elements may have no memory.
Test(shadow, nothing_is_checked_by_a_decomposition_as_anything)
{
    int saved, file;
    tn_runtime *rt = open_checked("TENON_CHECK=1", &right);
    file = catch_log(&saved);
    tn_scope *s = tn_scope_open(rt);
    tn_array *found[2], *x = tn_from_data(s, TN_F32, TN_SHAPE(0), NULL);
    must(s, tn_op_n(s, "nonzero", TN_IN(x), tn_attrs("size", (int64_t)3), found, 2));
    must(s, tn_eval(s, found[0], found[1]));
    tn_scope_close(s);
    read_log(file, saved);
    cr_assert(eq(str, said, ""));
    cr_assert(stats_of(rt).checked > 0);
    tn_runtime_close(rt);
}

Test(shadow, wrong_kernels_are_named_with_inputs_and_error)
{
    int saved, file;
    tn_runtime *rt = open_checked("TENON_CHECK=1", &wrong);
    file = catch_log(&saved);
    run_once(rt, 1);
    read_log(file, saved);
    cr_assert(eq(u64, stats_of(rt).differing, NUM_OPERATORS));
    for (int i = 0; i < NUM_OPERATORS; i++)
        check_says(said, operators[i].id);
    check_says(said, "kernel fast (cpu.c/1) of com.acme.kernels on cpu-blas:0");
    check_says(said, "differs from the definition in 12 of 12 elements");
    check_says(said, "inputs f32[4, 3]");
    check_says(said, "element 11 is 36, expected 24 (error 12, allowed");
    tn_runtime_close(rt);
}

Test(shadow, a_share_of_the_launches_is_checked)
{
    int saved, file;
    tn_runtime *rt = open_checked("TENON_CHECK=0.25", &wrong);
    file = catch_log(&saved);
    run_once(rt, 100);
    read_log(file, saved);
    tn_stats stats = stats_of(rt);
    double share = (double)stats.checked / (double)stats.steps;
    cr_assert(share > 0.15 && share < 0.35);
    cr_assert(stats.differing > 0 && stats.differing < stats.checked);
    tn_runtime_close(rt);
}

Test(shadow, a_share_that_is_no_share_is_ignored)
{
    static const char *const bad[] = {"TENON_CHECK=often", "TENON_CHECK=1.5",
                                      "TENON_CHECK=-1", "TENON_CHECK=nan",
                                      "TENON_CHECK=0.5x"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tn_runtime *rt;
        const tn_runtime_options options = {.struct_size = sizeof(options),
                                            .variables = (const char *[]){bad[i], NULL}};
        must(NULL, tn_runtime_open(&options, &rt));
        cr_assert(eq(ptr, tn_config(rt, "TENON_CHECK"), NULL));
        tn_runtime_close(rt);
    }
}

// --- devices of the environment --------------------------------------------------------

static tn_status add_itself(tn_scope *s, tn_array *const *in, uint64_t num_in,
                            tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = bin(s, "add", in[0], in[0]);
    return tn_scope_status(s);
}

static tn_status exponentiate(tn_scope *s, tn_array *const *in, uint64_t num_in,
                              tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = un(s, "exp", in[0]);
    return tn_scope_status(s);
}

// cond reads its condition behind the work of the device that computes it.
Test(shadow, the_host_reads_what_a_checked_device_computes)
{
    tn_runtime *rt = open_with((const char *const[]){"TENON_CHECK=1", NULL});
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = ramp(s, 2, 2, 1, 1), *y;
    must(s, tn_cond_call(s, un(s, "isnan", un(s, "sum", x)), exponentiate, add_itself, NULL,
                         TN_ARRAYS(x), &y, 1));
    cr_assert(tn_item(s, un(s, "sum", y)) == 2 * tn_item(s, un(s, "sum", x)));
    cr_assert(eq(u64, stats_of(rt).differing, 0));
    tn_scope_close(s);
    tn_runtime_close(rt);
}
