// SPDX-License-Identifier: MIT
// Programs or kernels for the checks of segments and queues, and their expected results.
#include "arithmetic.h"

// --- the sum as a kernel ---------------------------------------------------------------

static const tn_primitive sum = {
    .struct_size = sizeof(sum), .id = "base.add/1", .num_inputs = 2, .num_outputs = 1};

static tn_status launch_sum(const tn_cpu_call *call)
{
    const tn_layout *layouts[] = {&call->inputs[0].layout, &call->inputs[1].layout,
                                  &call->outputs[0].layout};
    const float *x = call->inputs[0].data, *y = call->inputs[1].data;
    float *out = call->outputs[0].data;
    for (int64_t i = 0; i < layouts[2]->extent[0]; i++)
        out[layouts[2]->offset + i] = x[layouts[0]->offset + i] + y[layouts[1]->offset + i];
    return TN_OK;
}

static const tn_cpu_kernel sum_payload = {sizeof(sum_payload), 0, launch_sum};
static const tn_kernel cpu_sum = {.struct_size = sizeof(cpu_sum),
                                  .primitive = "base.add/1",
                                  .family = TN_FAMILY_CPU,
                                  .name = "kit",
                                  .payload = &sum_payload};

// --- kernels that the backend consumes -------------------------------------------------

static bool has_dtype(const struct fixture *f, tn_dtype dtype)
{
    return tn_dtype_in(dtype, f->info.dtypes ? f->info.dtypes : TN_FIRST_DTYPES);
}

// Whether the kernel adds arrays of every length that the checks use, without scratch.
static bool kernel_adds(const tn_kernel *kernel, tn_dtype dtype)
{
    static const int64_t counts[] = {256, 3001, 4000, 1 << 20};
    for (uint32_t i = 0; i < kernel->num_operands; i++)
        if (kernel->operands[i].dtypes && !tn_dtype_in(dtype, kernel->operands[i].dtypes))
            return false;
    for (size_t i = 0; i < COUNT(counts); i++) {
        const tn_layout layout = flat_value(0, dtype, counts[i]).layout;
        const tn_layout inputs[] = {layout, layout};
        const tn_kernel_query query = {.struct_size = sizeof(query),
                                       .inputs = inputs,
                                       .outputs = &layout,
                                       .num_inputs = 2,
                                       .num_outputs = 1,
                                       .num_workers = 1};
        if ((kernel->accepts && !kernel->accepts(&query)) ||
            (kernel->scratch_size && kernel->scratch_size(&query) > 0))
            return false;
    }
    return true;
}

static bool is_public_family(const char *family)
{
    static const char *const families[] = {TN_FAMILY_EXPR, TN_FAMILY_CPU,
                                           TN_FAMILY_VULKAN_GLSL, TN_FAMILY_VULKAN_SPIRV};
    for (size_t i = 0; i < COUNT(families); i++)
        if (strcmp(family, families[i]) == 0)
            return true;
    return false;
}

// The plugin's kernel of base.add/1 in a family of its own. NULL: it has none.
static const tn_kernel *own_sum(const struct fixture *f, tn_dtype dtype)
{
    const tn_ops *ops = subject_ops(&f->subject);
    for (uint32_t i = 0; ops && i < ops->num_kernels; i++) {
        const tn_kernel *kernel = ops->kernels[i];
        if (strcmp(kernel->primitive, sum.id) == 0 && !is_public_family(kernel->family) &&
            fixture_consumes(f, kernel->family) && kernel_adds(kernel, dtype))
            return kernel;
    }
    return NULL;
}

bool arithmetic_find(const struct fixture *f, struct arithmetic *m)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_I32};
    *m = (struct arithmetic){.dtype = TN_I32};
    program_affine(&m->affine, TN_I32);
    program_combine(&m->combine, TN_I32);
    if (fixture_consumes(f, TN_FAMILY_EXPR) && has_dtype(f, TN_I32))
        return true;
    for (size_t i = 0; i < COUNT(dtypes) && !m->kernel; i++) {
        m->dtype = dtypes[i];
        m->kernel = has_dtype(f, dtypes[i]) ? own_sum(f, dtypes[i]) : NULL;
    }
    if (m->kernel || !fixture_consumes(f, TN_FAMILY_CPU) || !has_dtype(f, TN_F32))
        return m->kernel != NULL;
    m->dtype = TN_F32;
    m->kernel = &cpu_sum;
    return true;
}

bool arithmetic_begin(struct fixture *f, struct arithmetic *m)
{
    bool found = arithmetic_find(f, m);
    if (!found)
        check_skip(f->kit,
                   "it runs no programs of i32 and no functions in C, and its plugin has "
                   "no kernel of base.add/1 for f32 or i32");
    return found;
}

// --- steps -----------------------------------------------------------------------------

tn_value arithmetic_value(const struct arithmetic *m, uint32_t slot, int64_t count)
{
    return flat_value(slot, m->dtype, count);
}

tn_step *draft_affine(struct draft *d, const struct arithmetic *m, const tn_value *x,
                      const tn_value *out, uint32_t a, uint32_t b)
{
    const tn_value twice[] = {*x, *x};
    return m->kernel ? draft_kernel(d, &sum, m->kernel, twice, 2, out)
                     : draft_program(d, &m->affine, x, out, a, b);
}

tn_step *draft_combine(struct draft *d, const struct arithmetic *m, const tn_value *x_and_y,
                       const tn_value *out, uint32_t a)
{
    return m->kernel ? draft_kernel(d, &sum, m->kernel, x_and_y, 2, out)
                     : draft_program(d, &m->combine, x_and_y, out, a, 0);
}

// --- elements --------------------------------------------------------------------------

static uint32_t sum_of(const struct arithmetic *m, uint32_t x, uint32_t y)
{
    float a, b;
    if (m->dtype == TN_I32)
        return x + y;
    memcpy(&a, &x, sizeof(a));
    memcpy(&b, &y, sizeof(b));
    a += b; // one rounding
    memcpy(&x, &a, sizeof(x));
    return x;
}

uint32_t affine_of(const struct arithmetic *m, uint32_t x, uint32_t a, uint32_t b)
{
    return m->kernel ? sum_of(m, x, x) : a * x + b;
}

uint32_t combine_of(const struct arithmetic *m, uint32_t x, uint32_t y, uint32_t a)
{
    return m->kernel ? sum_of(m, x, y) : a * x + y;
}

uint32_t affine_repeated(const struct arithmetic *m, uint32_t x, uint32_t a, uint32_t b,
                         int times)
{
    while (times-- > 0)
        x = affine_of(m, x, a, b);
    return x;
}

uint32_t element_of(const struct arithmetic *m, uint32_t n)
{
    float real = (float)n;
    if (m->dtype == TN_F32)
        memcpy(&n, &real, sizeof(n));
    return n;
}

double element_value(const struct arithmetic *m, uint32_t element)
{
    float real;
    memcpy(&real, &element, sizeof(real));
    return m->dtype == TN_F32 ? (double)real : (double)(int32_t)element;
}
