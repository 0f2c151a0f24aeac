// SPDX-License-Identifier: MIT
// base.matmul/1: any strides, batches broadcast.
#include "kernels.h"

#include <stdio.h>

#define MAX_BATCH_AXES 6
#define SMALL_TILES 256 // up to two small workgroups for each processor of a large device

struct matrix {
    uint32_t row, column; // strides
    int32_t num_batch;    // number of batch axes
};

struct product {
    uint64_t rows, columns, terms, batches;
    struct matrix a, b;
    uint32_t num_axes; // of batches
    uint32_t extent[MAX_BATCH_AXES], a_stride[MAX_BATCH_AXES], b_stride[MAX_BATCH_AXES];
};

// The stride of an operand, which has `own` batch axes, along batch axis `axis` of `num`,
// right-aligned; 0 if broadcast.
static uint32_t batch_stride(const tn_layout *layout, int32_t own, int32_t num,
                             int32_t axis)
{
    int32_t at = axis - (num - own);
    return at < 0 || layout->extent[at] == 1 ? 0 : (uint32_t)layout->stride[at];
}

static int64_t batch_extent(const tn_layout *layout, int32_t own, int32_t num, int32_t axis)
{
    int32_t at = axis - (num - own);
    return at < 0 ? 1 : layout->extent[at];
}

static struct product describe(const tn_layout *a, const tn_layout *b)
{
    struct product p = {.rows = 1, .columns = 1, .batches = 1};
    int32_t a_last = a->rank - 1, b_last = b->rank - 1;
    p.terms = (uint64_t)a->extent[a_last];
    p.a.column = (uint32_t)a->stride[a_last];
    if (a->rank > 1) {
        p.rows = (uint64_t)a->extent[a_last - 1];
        p.a.row = (uint32_t)a->stride[a_last - 1];
        p.a.num_batch = a->rank - 2;
    }
    p.b.row = (uint32_t)b->stride[b_last];
    if (b->rank > 1) {
        p.columns = (uint64_t)b->extent[b_last];
        p.b.column = (uint32_t)b->stride[b_last];
        p.b.row = (uint32_t)b->stride[b_last - 1];
        p.b.num_batch = b->rank - 2;
    }
    int32_t num = p.a.num_batch > p.b.num_batch ? p.a.num_batch : p.b.num_batch;
    for (int32_t axis = 0; axis < num; axis++) {
        int64_t in_a = batch_extent(a, p.a.num_batch, num, axis);
        int64_t in_b = batch_extent(b, p.b.num_batch, num, axis);
        uint32_t at = p.num_axes++;
        p.extent[at] = (uint32_t)(in_a == 1 ? in_b : in_a);
        p.a_stride[at] = batch_stride(a, p.a.num_batch, num, axis);
        p.b_stride[at] = batch_stride(b, p.b.num_batch, num, axis);
        p.batches *= p.extent[at];
    }
    return p;
}

// The largest tile with which a large device still has work for all its processors.
static uint32_t choose_tile(const struct product *p, tn_dtype dtype)
{
    bool is_f32 = tn_dtype_computed(dtype) == TN_F32;
    uint64_t large = ceil_div(p->rows, 128) * ceil_div(p->columns, 128) * p->batches;
    uint64_t middle = ceil_div(p->rows, 64) * ceil_div(p->columns, 64) * p->batches;
    if (is_f32 && large >= 128 && p->rows >= 128 && p->columns >= 128)
        return 128;
    if (middle >= 32)
        return 64;
    uint64_t small = ceil_div(p->rows, 8) * ceil_div(p->columns, 8) * p->batches;
    return is_f32 && small <= SMALL_TILES ? 8 : 16;
}

int32_t vk_matmul_accepts(const tn_kernel_query *query)
{
    return query->inputs[0].dtype != TN_BOOL;
}

static void push_product(struct kernel_launch *launch, const struct product *p,
                         const tn_step *step)
{
    const uint64_t words[] = {p->rows,
                              p->columns,
                              p->terms,
                              p->batches,
                              (uint64_t)tn_step_input(step, 0)->layout.offset,
                              (uint64_t)tn_step_input(step, 1)->layout.offset,
                              (uint64_t)tn_step_output(step, 0)->layout.offset,
                              p->a.row,
                              p->a.column,
                              p->b.row,
                              p->b.column};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        kernel_push(launch, words[i]);
    for (int i = 0; i < MAX_BATCH_AXES; i++)
        kernel_push(launch, p->extent[i]);
    for (int i = 0; i < MAX_BATCH_AXES; i++)
        kernel_push(launch, p->a_stride[i]);
    for (int i = 0; i < MAX_BATCH_AXES; i++)
        kernel_push(launch, p->b_stride[i]);
}

// Lays out `groups` workgroups along an axis; *step is the axis' extent when the device
// takes fewer, else 0.
static uint32_t lay_out(uint64_t groups, uint32_t most, uint32_t *step)
{
    *step = groups > most ? most : 0;
    return *step ? most : (uint32_t)groups;
}

tn_status vk_plan_matmul(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    struct product p =
        describe(&tn_step_input(step, 0)->layout, &tn_step_input(step, 1)->layout);
    if (p.rows == 0 || p.columns == 0 || p.batches == 0)
        return TN_OK;
    tn_dtype dtype = tn_step_output(step, 0)->layout.dtype;
    uint32_t tile = choose_tile(&p, dtype);
    const uint32_t *most = plan->limits->max_groups;
    char name[VARIANT_NAME];
    uint32_t step_x, step_y, step_z;
    snprintf(name, sizeof(name), "matmul_%s_%u", dtype_glsl(dtype), tile);
    struct kernel_launch launch = {
        .name = name,
        .fixed_grid = true,
        .grid = {lay_out(ceil_div(p.columns, tile), most[0], &step_x),
                 lay_out(ceil_div(p.rows, tile), most[1], &step_y),
                 lay_out(p.batches, most[2], &step_z)},
    };
    kernel_spec(&launch, p.num_axes);
    kernel_spec(&launch, p.a.column == 1 || p.a.row != 1);
    kernel_spec(&launch, p.b.row == 1 && p.b.column != 1);
    kernel_spec(&launch, step_x);
    kernel_spec(&launch, step_y);
    kernel_spec(&launch, step_z);
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_output(0));
    push_product(&launch, &p, step);
    return kernel_launch(plan, &launch);
}
