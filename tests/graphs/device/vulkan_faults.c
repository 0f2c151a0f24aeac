// SPDX-License-Identifier: MIT
// Vulkan's failures: a lost device, memory that is not there, pipelines that cannot be
// made, and each call that may fail failing in turn. Each time: one message that says
// device, call and what helps, nothing left behind, and a process that computes on.
//
// TENON_TEST_BACKEND says which backend, TENON_TEST_LOADER where the shared object of
// tests/fixtures/vulkan_loader.c is.
#include "../support/common.h"

#include <dlfcn.h>
#include <unistd.h>
#include "../../fixtures/vulkan_loader.h"

static struct vulkan_faults *faults;
static const char *backend;

static void no_faults(void)
{
    *faults = (struct vulkan_faults){0};
}

static void arm(const char *call, uint64_t nth, VkResult result)
{
    faults->call = call;
    faults->result = result;
    atomic_store(&faults->num_calls, 0);
    atomic_store(&faults->num_failed, 0);
    faults->nth = nth;
}

static void disarm(void)
{
    faults->nth = 0;
    faults->onwards = false;
}

static void load(void)
{
    void *loader = dlopen(getenv("TENON_TEST_LOADER"), RTLD_NOW | RTLD_GLOBAL);
    faults = loader ? dlsym(loader, "vulkan_faults") : NULL;
    if (!faults)
        cr_fatal("%s", dlerror());
    backend = getenv("TENON_TEST_BACKEND");
    need_device(backend);
    no_faults();
}

#define NO_CACHE "TENON_CACHE_DIR=/proc/none" // behind `more` alone: NULL ends the list
static tn_runtime *open_list(const char *format, const char *more)
{
    char list[96], variable[128];
    snprintf(list, sizeof(list), format, backend);
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", list);
    return open_with((const char *const[]){variable, more, NO_CACHE, NULL});
}

// 2 * x + 1 summed, for x = 0, 1, ..., 63: a program and a reduction.
#define EXPECTED 4096.0f
static tn_status compute(tn_runtime *rt, float *out)
{
    *out = NAN;
    tn_scope *s = tn_scope_open(rt);
    if (!s)
        return TN_ERR_MEMORY;
    tn_array *x = ramp(s, 8, 8, 0, 1);
    tn_array *y = bin(s, "add", bin(s, "multiply", x, tn_float(s, 2)), tn_float(s, 1));
    tn_status status = tn_read(s, un(s, "sum", y), out, sizeof(*out));
    tn_scope_close(s);
    return status;
}

static void computes(tn_runtime *rt)
{
    float got;
    must(NULL, compute(rt, &got));
    cr_assert(got == EXPECTED);
}

static void fails(tn_runtime *rt, tn_status expected, const char *const *parts)
{
    float got;
    tn_status status = compute(rt, &got);
    if (status != expected)
        cr_fatal("status %s, expected %s: %s", tn_status_name(status),
                 tn_status_name(expected), tn_last_error());
    for (; *parts; parts++)
        check_says(tn_last_error(), *parts);
}
#define FAILS(rt, status, ...) fails(rt, status, (const char *const[]){__VA_ARGS__, NULL})

// --- a lost device -----------------------------------------------------------------------

TestSuite(vulkan_faults, .init = load, .timeout = 280);

Test(vulkan_faults, a_lost_device_is_named_with_the_call_and_the_remedy)
{
    static const char *const calls[] = {"vkQueueSubmit", "vkWaitSemaphores"};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        tn_runtime *rt = open_list("%s", NULL);
        computes(rt);
        arm(calls[i], 1, VK_ERROR_DEVICE_LOST);
        char device[64];
        snprintf(device, sizeof(device), "device %s:0: ", backend);
        FAILS(rt, TN_ERR_DEVICE, device, calls[i], "VK_ERROR_DEVICE_LOST",
              "open a new runtime", "TENON_BACKEND");
        cr_assert(eq(int, atomic_load(&faults->num_failed), 1));
        disarm();
        FAILS(rt, TN_ERR_DEVICE, device, "was lost before", "open a new runtime");
        tn_runtime *other = open_list("%s", NULL),
                   *cpu = open_with((const char *const[]){"TENON_BACKEND=cpu-blas", NULL});
        computes(other);
        computes(cpu);
        FAILS(rt, TN_ERR_DEVICE, "was lost before");
        tn_runtime_close(cpu);
        tn_runtime_close(other);
        tn_runtime_close(rt);
        cr_assert(eq(int, atomic_load(&faults->num_objects), 0));
    }
}

Test(vulkan_faults, what_a_lost_device_held_cannot_be_read)
{
    float got;
    tn_runtime *rt = open_list("%s", NULL);
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = un(s, "sum", ramp(s, 8, 8, 0, 1)), *kept = tn_keep(s, x);
    must(s, tn_read(s, x, &got, sizeof(got)));
    arm("vkQueueSubmit", 1, VK_ERROR_DEVICE_LOST);
    FAILS(rt, TN_ERR_DEVICE, "VK_ERROR_DEVICE_LOST");
    disarm();
    check_status(tn_read(s, x, &got, sizeof(got)), TN_ERR_DEVICE);
    check_says(tn_scope_error(s), "was lost before");
    tn_scope_close(s);
    s = tn_scope_open(rt);
    check_status(tn_read(s, kept, &got, sizeof(got)), TN_ERR_DEVICE);
    tn_scope_close(s);
    tn_release(kept);
    tn_runtime_close(rt);
    cr_assert(eq(int, atomic_load(&faults->num_objects), 0));
}

Test(vulkan_faults, work_that_nobody_waited_for_is_not_taken_for_done)
{
    float got[2];
    tn_runtime *rt = open_list("%s", NULL);
    computes(rt);
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = un(s, "exp", ramp(s, 1, 2, 0, 1));
    must(s, tn_eval_async(s, x));
    arm("vkWaitSemaphores", 1, VK_ERROR_DEVICE_LOST);
    check_status(tn_read(s, x, got, sizeof(got)), TN_ERR_DEVICE);
    disarm();
    tn_scope_close(s);
    tn_runtime_close(rt);
    cr_assert(eq(int, atomic_load(&faults->num_objects), 0));
}

Test(vulkan_faults, of_several_devices_the_lost_one_is_named)
{
    char name[64];
    faults->least_devices = 2;
    tn_runtime *rt = open_list("%s:1,cpu-blas", NULL);
    computes(rt);
    arm("vkQueueSubmit", 1, VK_ERROR_DEVICE_LOST);
    snprintf(name, sizeof(name), "device %s:1: ", backend);
    FAILS(rt, TN_ERR_DEVICE, name, "vkQueueSubmit");
    disarm();
    tn_runtime_close(rt);
    cr_assert(eq(int, atomic_load(&faults->num_objects), 0));
}

// The second of the list, which gets what the first may not run.
Test(vulkan_faults, a_second_device_may_be_lost_alone)
{
    char name[64], list[64], kernels[96];
    const char *other = strcmp(backend, "vulkan") == 0 ? "vulkan-jit" : "vulkan";
    snprintf(kernels, sizeof(kernels), "TENON_KERNELS=base.sum@%s=!*", other);
    snprintf(list, sizeof(list), "%s,%%s:0", other);
    tn_runtime *rt = open_list(list, kernels), *first = open_list("%s:0", NULL);
    float got[4];
    if (compute(rt, got) == TN_ERR_NOT_FOUND) {
        fprintf(stderr, "# only one Vulkan backend is here\n");
        goto finish;
    }
    computes(first);
    arm("vkQueueSubmit", 2, VK_ERROR_DEVICE_LOST);
    snprintf(name, sizeof(name), "device %s:0: ", backend);
    FAILS(rt, TN_ERR_DEVICE, name, "vkQueueSubmit");
    disarm();
    computes(first); // another device of the same hardware is not lost with it
    tn_scope *s = tn_scope_open(rt);
    // What runs on the first device alone still does.
    must(s, tn_read(s, un(s, "exp", ramp(s, 2, 2, 0, 0)), got, sizeof(got)));
    cr_assert(got[3] == 1);
    tn_scope_close(s);
finish:
    tn_runtime_close(first);
    tn_runtime_close(rt);
    cr_assert(eq(int, atomic_load(&faults->num_objects), 0));
}

// --- memory and pipelines ----------------------------------------------------------------

Test(vulkan_faults, memory_that_is_not_there_is_said_and_later_calls_work)
{
    tn_runtime *rt = open_list("%s", NULL);
    arm("vkAllocateMemory", 1, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    faults->onwards = true;
    FAILS(rt, TN_ERR_MEMORY, backend, "vkAllocateMemory", "bytes",
          "VK_ERROR_OUT_OF_DEVICE_MEMORY", "free arrays", "were asked for, ", " are free");
    disarm();
    computes(rt);
    tn_runtime_close(rt);
    cr_assert(eq(int, atomic_load(&faults->num_objects), 0));
}

Test(vulkan_faults, memory_that_was_short_once_is_asked_for_again)
{
    tn_runtime *rt = open_list("%s", NULL);
    arm("vkAllocateMemory", 1, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    computes(rt);
    cr_assert(eq(int, atomic_load(&faults->num_failed), 1));
    tn_runtime_close(rt);
    cr_assert(eq(int, atomic_load(&faults->num_objects), 0));
}

// A chain of products, for which a plan that has run often gets a kernel of its own.
static tn_status chain(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                       uint64_t num_out, void *user)
{
    tn_array *x = in[0], *w = ramp(s, 16, 16, -0.1f, 0.001f);
    (void)num_in, (void)num_out, (void)user;
    for (int i = 0; i < 20; i++)
        x = bin(s, "multiply", bin(s, "matmul", x, w), tn_float(s, 1 + i / 16.0));
    out[0] = x;
    return tn_scope_status(s);
}

// Runs the chain; gives how many runs failed. The others have the same results.
static int run_chain(tn_function *function, tn_runtime *rt, int runs, float first[256])
{
    int failed = 0;
    for (int run = 0; run < runs; run++) {
        float got[256];
        tn_scope *s = tn_scope_open(rt);
        tn_array *x = ramp(s, 16, 16, -1, 0.01f), *y;
        if (tn_function_call(function, s, &x, 1, &y, 1) || tn_read(s, y, got, sizeof(got)))
            failed++;
        else if (isnan(first[0]))
            memcpy(first, got, sizeof(got));
        else
            cr_assert(memcmp(first, got, sizeof(got)) == 0);
        tn_scope_close(s);
    }
    return failed;
}

Test(vulkan_faults, kernels_of_one_shape_that_cannot_be_made_are_done_without)
{
    static const struct {
        const char *call;
        bool onwards;
        int failed; // runs
    } cases[] = {
        {"vkCreateShaderModule", true, 0},
        {"vkCreateComputePipelines", true, 0},
        {"vkCreateDescriptorPool", false, 1}, // of the commands that are recorded anew
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        float first[256] = {NAN};
        tn_runtime *rt = open_list("%s", "TENON_VULKAN_AS_GPU=1");
        tn_function *function;
        must(NULL, tn_function_create(rt, chain, NULL, NULL, &function));
        cr_assert(eq(int, run_chain(function, rt, 3, first), 0));
        arm(cases[i].call, 1, VK_ERROR_OUT_OF_DEVICE_MEMORY);
        faults->onwards = cases[i].onwards;
        int failed = run_chain(function, rt, 12, first);
        for (int wait = 0; wait < 500 && atomic_load(&faults->num_failed) == 0; wait++) {
            usleep(10000);
            failed += run_chain(function, rt, 1, first);
        }
        disarm();
        cr_assert(faults->num_failed > 0 && failed == cases[i].failed, "case %zu", i);
        cr_assert(eq(int, run_chain(function, rt, 3, first), 0));
        tn_function_destroy(function);
        tn_runtime_close(rt);
        cr_assert(eq(int, atomic_load(&faults->num_objects), 0));
    }
}

Test(vulkan_faults, a_pipeline_that_cannot_be_made_is_named)
{
    static const char *const calls[] = {"vkCreateComputePipelines", "vkCreateShaderModule",
                                        "vkCreatePipelineLayout",
                                        "vkCreateDescriptorSetLayout"};
    tn_runtime *rt = open_list("%s", NULL);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        arm(calls[i], 1, VK_ERROR_INITIALIZATION_FAILED);
        faults->onwards = true; // refused again when it is compiled anew
        FAILS(rt, TN_ERR_INTERNAL, backend, "kernel ", calls[i],
              "VK_ERROR_INITIALIZATION_FAILED");
        disarm();
    }
    computes(rt), tn_runtime_close(rt);
    cr_assert(eq(int, atomic_load(&faults->num_objects), 0));
}

// --- each call in turn -------------------------------------------------------------------

// Opens, computes and closes.
static tn_status everything(float *out)
{
    tn_runtime *rt = open_list("%s", NULL);
    tn_status status = compute(rt, out);
    tn_runtime_close(rt);
    return status;
}

static void check_each_call(VkResult result)
{
    uint64_t n = 1, num_failed = 0;
    for (;; n++) {
        float got = NAN;
        arm(NULL, n, result);
        tn_status status = everything(&got);
        disarm();
        if (atomic_load(&faults->num_failed) == 0) {
            must(NULL, status);
            break;
        }
        cr_assert(eq(int, atomic_load(&faults->num_objects), 0));
        if (status == TN_OK) { // got over
            cr_assert(got == EXPECTED);
            continue;
        }
        num_failed++;
        const char *text = tn_last_error();
        if (!strstr(text, faults->failed) || !strstr(text, backend))
            cr_fatal("call %d, %s: the message is \"%s\"", (int)n, faults->failed, text);
    }
    fprintf(stderr, "# %s: %d of %d calls failed when one did\n",
            result == VK_ERROR_DEVICE_LOST ? "lost" : "no memory", (int)num_failed,
            (int)n - 1);
    cr_assert(num_failed > 15);
}

Test(vulkan_faults, each_call_may_run_out_of_memory)
{
    check_each_call(VK_ERROR_OUT_OF_HOST_MEMORY);
}

Test(vulkan_faults, each_call_may_lose_the_device)
{
    check_each_call(VK_ERROR_DEVICE_LOST);
}

Test(vulkan_faults, each_call_may_fail_where_copies_are_staged)
{
    faults->split_memory = true;
    check_each_call(VK_ERROR_OUT_OF_HOST_MEMORY);
    check_each_call(VK_ERROR_DEVICE_LOST);
}

Test(vulkan_faults, each_call_of_a_replay_may_fail)
{
    for (int split = 0; split < 2; split++) {
        faults->split_memory = split;
        tn_runtime *rt = open_list("%s", NULL);
        computes(rt);
        uint64_t n = 1;
        for (int fine = 0; fine < 2; n++) {
            float got;
            arm(NULL, n, VK_ERROR_OUT_OF_HOST_MEMORY);
            tn_status status = compute(rt, &got);
            disarm();
            fine = atomic_load(&faults->num_failed) == 0 ? fine + 1 : 0;
            if (status != TN_OK)
                check_says(tn_last_error(), faults->failed);
            computes(rt);
        }
        cr_assert(n > 3);
        tn_runtime_close(rt);
        cr_assert(eq(int, atomic_load(&faults->num_objects), 0));
    }
}

// The host does not see the device's memory, or what of it is behind 100 MiB.
Test(vulkan_faults, values_pass_through_staging_whole)
{
    enum { COUNT = 5 << 20, VALUES = 4 }; // more than one piece of 16 MiB
    float *data = malloc(COUNT * sizeof(*data)), *got = malloc(COUNT * sizeof(*got));
    for (int split = 0; split < 2; split++) {
        faults->split_memory = split;
        faults->visible_bytes = split ? 0 : 100 << 20;
        tn_runtime *rt = open_list("%s", NULL);
        tn_scope *s = tn_scope_open(rt);
        tn_array *sums[VALUES];
        for (int k = 0; k < VALUES; k++) {
            for (int i = 0; i < COUNT; i++)
                data[i] = (float)(i % 8191 + k);
            sums[k] = un(s, "abs", tn_from_data(s, TN_F32, TN_SHAPE(COUNT), data));
            must(s, tn_eval(s, sums[k]));
        }
        for (int k = 0; k < VALUES; k++) {
            must(s, tn_read(s, sums[k], got, COUNT * sizeof(*got)));
            for (int i = 0; i < COUNT; i++)
                cr_assert(got[i] == (float)(i % 8191 + k));
        }
        tn_scope_close(s);
        tn_runtime_close(rt);
    }
    cr_assert(atomic_load(&faults->num_visible) > 100 << 20);
    free(data);
    free(got);
}

// --- a small grid ------------------------------------------------------------------------

// Small integers, whose products and sums are exact.
static float element(int64_t i)
{
    return (float)(i * 7 % 11 - 5);
}

static tn_array *integers(tn_scope *s, const tn_shape *shape)
{
    int64_t count = 1;
    for (int32_t axis = 0; axis < shape->rank; axis++)
        count *= shape->extent[axis];
    float *data = malloc((size_t)count * sizeof(*data));
    for (int64_t i = 0; data && i < count; i++)
        data[i] = element(i);
    tn_array *array = tn_from_data(s, TN_F32, shape, data);
    free(data);
    return array;
}

static tn_array *as(tn_scope *s, const tn_array *x, tn_dtype dtype)
{
    return tn_op(s, "astype", &x, 1, tn_attrs("dtype", (int64_t)dtype));
}

static void multiplies(tn_runtime *rt, tn_dtype dtype, int64_t batches, int64_t rows,
                       int64_t terms, int64_t columns)
{
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = integers(s, TN_SHAPE(batches, rows, terms));
    tn_array *y = integers(s, TN_SHAPE(batches, terms, columns));
    if (dtype != TN_F32) {
        x = as(s, x, dtype);
        y = as(s, y, dtype);
    }
    tn_array *out = bin(s, "matmul", x, y);
    if (dtype != TN_F32)
        out = as(s, out, TN_F32);
    uint64_t size = (uint64_t)(batches * rows * columns) * sizeof(float);
    float *got = malloc(size);
    must(s, tn_read(s, out, got, size));
    for (int64_t at = 0; at < batches * rows * columns; at++) {
        int64_t row = at / columns, column = at % columns, batch = row / rows;
        float sum = 0;
        for (int64_t k = 0; k < terms; k++)
            sum +=
                element(row * terms + k) * element((batch * terms + k) * columns + column);
        cr_assert(got[at] == sum);
    }
    free(got);
    tn_scope_close(s);
}

static void adds(tn_runtime *rt, int64_t count)
{
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = integers(s, TN_SHAPE(count, 1));
    float *got = malloc((size_t)count * sizeof(*got));
    must(s, tn_read(s, bin(s, "add", x, x), got, (uint64_t)count * sizeof(*got)));
    for (int64_t i = 0; i < count; i++)
        cr_assert(got[i] == 2 * element(i));
    free(got);
    tn_scope_close(s);
}

// Real devices take 65535 workgroups and more along an axis.
Test(vulkan_faults, work_larger_than_a_grid_is_done)
{
    faults->max_groups = 7;
    tn_runtime *rt = open_list("%s", NULL);
    multiplies(rt, TN_F32, 1, 100, 20, 120); // tiles of 8
    multiplies(rt, TN_F32, 20, 3, 2, 3);
    multiplies(rt, TN_I32, 1, 130, 3, 120); // tiles of 16
    multiplies(rt, TN_F32, 1, 700, 5, 600); // tiles of 64
    multiplies(rt, TN_F32, 9, 100, 5, 150);
    adds(rt, 20000);
    tn_runtime_close(rt);
}

// --- a device without f64 ----------------------------------------------------------------

// complex128 has parts of f64; complex64 needs nothing of the device.
Test(vulkan_faults, without_f64_there_is_no_complex128)
{
    static const struct {
        const char *text, *refusal;
    } cases[] = {
        {"x -> f32(abs(complex128(x)))", "the device has no complex128"}, // inside alone
        {"x -> complex128(x) * 2", "the device has no complex128"},
        {"x -> f64(real(x))", "the device has no f64"},
    };
    const tn_complex64 single = {3, -4};
    float size;
    faults->no_f64 = true;
    tn_runtime *rt = open_list("%s", NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tn_scope *s = tn_scope_open(rt);
        char *why;
        tn_array *x = tn_from_data(s, TN_COMPLEX64, TN_SHAPE(1), &single);
        tn_array *y = tn_expr(s, cases[i].text, TN_IN(x), TN_NO_ATTRS);
        must(s, tn_explain(s, &y, 1, &why));
        check_says(why, cases[i].refusal);
        tn_text_free(why);
        check_status(tn_eval(s, y), TN_ERR_UNSUPPORTED);
        check_says(tn_scope_error(s), "runs on none of the selected devices");
        tn_scope_close(s);
    }
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = tn_from_data(s, TN_COMPLEX64, TN_SHAPE(1), &single);
    must(s, tn_read(s, un(s, "abs", x), &size, sizeof(size)));
    cr_assert(fabsf(size - 5) < 1e-5f);
    tn_array *wide = tn_from_data(s, TN_COMPLEX128, TN_SHAPE(1), &(tn_complex128){1, 2});
    check_status(tn_eval(s, bin(s, "base.take", wide, tn_i32(s, 0))), TN_ERR_UNSUPPORTED);
    tn_scope_close(s);
    tn_runtime_close(rt);
}

// --- kernels of others that need more than the device has
// ----------------------------------

// The driver does not see them; the kernel, the capability and, of text, the place are
// named. The pack is tests/fixtures/kernels.c.
Test(vulkan_faults, a_capability_that_is_not_there_is_named)
{
    static const struct {
        const char *op, *capability;
        bool no_f64, no_atomics;
    } cases[] = {
        {"kernels.wide", "Float64 (10 of SPIR-V)", true, false},
        {"kernels.atomics", "Int64Atomics (12 of SPIR-V)", false, true},
        {"kernels.matrix", "CooperativeMatrixKHR (6022 of SPIR-V)", false, false},
    };
    const float x[] = {1, 2, 3};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char name[96];
        float got[3];
        snprintf(name, sizeof(name), "kernel com.acme.kernels/test of %s/1: ", cases[i].op);
        no_faults();
        faults->no_f64 = cases[i].no_f64;
        faults->no_atomics = cases[i].no_atomics;
        arm("vkCreateShaderModule", UINT64_MAX, VK_SUCCESS); // counts
        tn_runtime *rt = open_list("%s", NULL);
        tn_scope *s = tn_scope_open(rt);
        tn_array *y = un(s, cases[i].op, tn_from_data(s, TN_F32, TN_SHAPE(3), x));
        check_status(tn_read(s, y, got, sizeof(got)), TN_ERR_REFUSED);
        check_says(tn_scope_error(s), name);
        check_says(tn_scope_error(s), cases[i].capability);
        if (strcmp(backend, "vulkan-jit") == 0)
            check_says(tn_scope_error(s), "kernels.comp:");
        cr_assert(eq(u64, atomic_load(&faults->num_calls), 0));
        tn_scope_close(s);
        tn_runtime_close(rt);
    }
}

// --- no device at all --------------------------------------------------------------------

Test(vulkan_faults, why_there_is_no_device_is_said_with_what_helps)
{
    tn_runtime *rt;
    char here[96];
    snprintf(here, sizeof(here), "backend %s has no device here: ", backend);
#define REFUSED(...)                                                                       \
    rt = open_list("%s", NULL);                                                            \
    FAILS(rt, TN_ERR_NOT_FOUND, here, __VA_ARGS__);                                        \
    tn_runtime_close(rt);                                                                  \
    no_faults()
    faults->api_version = VK_MAKE_API_VERSION(0, 1, 1, 200);
    REFUSED("has Vulkan 1.1, 1.2 is needed", "llvmpipe");
    faults->no_timeline = true;
    faults->least_devices = 2;
    REFUSED("llvmpipe", "has no timeline semaphores; llvmpipe");
    faults->no_devices = true;
    REFUSED("found no device", "install");
    arm("vkCreateInstance", 1, VK_ERROR_INCOMPATIBLE_DRIVER);
    REFUSED("found no driver", "mesa-vulkan-drivers");
    arm("vkCreateInstance", 1, VK_ERROR_INITIALIZATION_FAILED);
    REFUSED("vkCreateInstance: VK_ERROR_INITIALIZATION_FAILED", "VK_LOADER_DEBUG");
#undef REFUSED
    rt = open_list("%s", NULL);
    computes(rt);
    tn_runtime_close(rt);
}
