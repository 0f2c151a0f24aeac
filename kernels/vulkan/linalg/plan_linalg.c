// SPDX-License-Identifier: MIT
// linalg.cholesky/1 and linalg.solve_triangular/1 by blocks of rows: what a block makes,
// then what that changes behind it (triangular.comp).
#include "../record.h"

#include <stdio.h>
#include <tenon/ops/linalg_attrs.h>
#include "../matmul/plan_matmul.h"

#define BLOCK 32 // of triangular.comp, and the invocations that solve, and the tile
#define GROUP 128
#define TILE 64

// A matrix in memory: the first element, and the strides of rows and columns.
struct linalg_matrix {
    int64_t offset, row, column;
};

struct linalg_blocks {
    const char *family; // of variants
    struct product p;   // of its operands batches and strides: a by b
    struct linalg_matrix source, result, triangle;
    uint64_t columns; // of the result
    bool has_triangle, is_unit;
};

static struct linalg_matrix linalg_plan_transposed(struct linalg_matrix m)
{
    return (struct linalg_matrix){m.offset, m.column, m.row};
}

// The last row first; `columns`: the last column first, too.
static struct linalg_matrix linalg_plan_reversed(struct linalg_matrix m, uint64_t n,
                                                 bool columns)
{
    int64_t last = (int64_t)n - 1;
    m.offset += last * (m.row + (columns ? m.column : 0));
    m.row = -m.row;
    m.column = columns ? -m.column : m.column;
    return m;
}

static void linalg_matrix_push(struct kernel_launch *launch, const struct linalg_matrix *m)
{
    kernel_push(launch, (uint64_t)m->row);
    kernel_push(launch, (uint64_t)m->column);
}

// Launches `op`, on so many workgroups for each matrix, at the block that begins at
// `first`.
static tn_status plan_op(const tn_vulkan_plan *plan, const struct linalg_blocks *b,
                         const char *op, uint64_t first, uint64_t groups)
{
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "%s_%s_%s", b->family, op,
             dtype_glsl(tn_step_output(plan->step, 0)->layout.dtype));
    struct kernel_launch launch = {.name = name, .groups = groups * b->p.batches};
    kernel_spec(&launch, b->p.num_axes);
    if (b->has_triangle)
        kernel_spec(&launch, b->is_unit);
    kernel_bind(&launch, tn_vulkan_input(b->has_triangle ? 1 : 0));
    kernel_bind(&launch,
                operand_for(tn_vulkan_output(0), TN_VULKAN_READS | TN_VULKAN_WRITES));
    if (b->has_triangle)
        kernel_bind(&launch, tn_vulkan_input(0));
    const uint64_t words[] = {b->p.terms,
                              b->columns,
                              b->p.batches,
                              first,
                              (uint64_t)b->source.offset,
                              (uint64_t)b->result.offset,
                              (uint64_t)b->triangle.offset};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        kernel_push(&launch, words[i]);
    linalg_matrix_push(&launch, &b->source);
    linalg_matrix_push(&launch, &b->result);
    linalg_matrix_push(&launch, &b->triangle);
    for (int i = 0; i < MAX_BATCH_AXES; i++)
        kernel_push(&launch, b->p.extent[i]);
    for (int i = 0; i < MAX_BATCH_AXES; i++)
        kernel_push(&launch, b->has_triangle ? b->p.b_stride[i] : b->p.a_stride[i]);
    for (int i = 0; i < MAX_BATCH_AXES; i++)
        kernel_push(&launch, b->p.a_stride[i]);
    return kernel_launch(plan, &launch);
}

// --- cholesky ---------------------------------------------------------------------------

static tn_status cholesky_plan(const tn_vulkan_plan *plan)
{
    const tn_cholesky_attrs *attrs = plan->step->attrs;
    const tn_layout *a = &tn_step_input(plan->step, 0)->layout;
    struct linalg_blocks b = {.family = "cholesky", .p = product_of_batches(a, a)};
    uint64_t n = b.columns = b.p.terms;
    b.source = (struct linalg_matrix){a->offset, b.p.a.row, b.p.a.column};
    b.result =
        (struct linalg_matrix){tn_step_output(plan->step, 0)->layout.offset, (int64_t)n, 1};
    if (attrs->upper) {
        b.source = linalg_plan_transposed(b.source);
        b.result = linalg_plan_transposed(b.result);
    }
    tn_status status = TN_OK;
    for (uint64_t first = 0; first + BLOCK < n && status == TN_OK; first += BLOCK) {
        uint64_t behind = n - first - BLOCK, tiles = ceil_div(behind, TILE);
        status = plan_op(plan, &b, "solve", first, ceil_div(behind, GROUP));
        if (status == TN_OK)
            status = plan_op(plan, &b, "update", first, tiles * tiles);
    }
    return status == TN_OK ? plan_op(plan, &b, "factor", 0, ceil_div(n, BLOCK)) : status;
}

// --- solve_triangular -------------------------------------------------------------------

// Forward substitution: other triangles are read in an order in which they are lower ones.
static tn_status solve_plan(const tn_vulkan_plan *plan)
{
    const tn_solve_triangular_attrs *attrs = plan->step->attrs;
    const tn_layout *a = &tn_step_input(plan->step, 0)->layout,
                    *x = &tn_step_input(plan->step, 1)->layout;
    struct linalg_blocks b = {.family = "triangular",
                              .p = product_of_batches(a, x),
                              .has_triangle = true,
                              .is_unit = attrs->unit_diagonal != 0};
    uint64_t n = b.p.terms;
    b.columns = b.p.columns;
    b.triangle = (struct linalg_matrix){a->offset, b.p.a.row, b.p.a.column};
    b.source = (struct linalg_matrix){x->offset, b.p.b.row, b.p.b.column};
    b.result = (struct linalg_matrix){tn_step_output(plan->step, 0)->layout.offset,
                                      (int64_t)b.columns, 1};
    if (attrs->transpose != TN_LINALG_NONE)
        b.triangle = linalg_plan_transposed(b.triangle);
    if ((attrs->lower != 0) == (attrs->transpose != TN_LINALG_NONE)) {
        b.triangle = linalg_plan_reversed(b.triangle, n, true);
        b.source = linalg_plan_reversed(b.source, n, false);
        b.result = linalg_plan_reversed(b.result, n, false);
    }
    tn_status status = TN_OK;
    for (uint64_t first = 0; first < n && status == TN_OK; first += BLOCK) {
        status = plan_op(plan, &b, "solve", first, ceil_div(b.columns, GROUP));
        if (status == TN_OK && first + BLOCK < n)
            status = plan_op(plan, &b, "update", first,
                             ceil_div(n - first - BLOCK, TILE) * ceil_div(b.columns, TILE));
    }
    return status;
}

// --- records ----------------------------------------------------------------------------

#define REAL_DTYPES (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64))
static const tn_operand_rule triangular_rules[] = {{REAL_DTYPES, TN_NEEDS_ANY},
                                                   {REAL_DTYPES, TN_NEEDS_ANY},
                                                   {REAL_DTYPES, TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule cholesky_rules[] = {{REAL_DTYPES, TN_NEEDS_ANY},
                                                 {REAL_DTYPES, TN_NEEDS_CONTIGUOUS}};
OWN_KERNEL(cholesky, "linalg.cholesky/1", cholesky_plan, KERNEL_OTHER, cholesky_rules);
OWN_KERNEL(solve_triangular, "linalg.solve_triangular/1", solve_plan, KERNEL_OTHER,
           triangular_rules);
