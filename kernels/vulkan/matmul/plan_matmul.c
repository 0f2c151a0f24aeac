// SPDX-License-Identifier: MIT
// base.matmul/1: any strides, batches broadcast.
#include "plan_matmul.h"

#include <stdio.h>
#include <tenon/checked.h>
#include "../reduce/plan_reduce.h"
#include "../record.h"

#define ENOUGH_TILES 128 // a large device has work for all its processors
#define SMALL_TILES 256  // up to two small workgroups for each processor of a large device

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

// Batches of the left operand alone whose rows follow each other are more rows.
static void fold_batches(struct product *p)
{
    while (p->num_axes > 0) {
        uint32_t at = p->num_axes - 1, extent = p->extent[at];
        bool follow = p->rows == 1 || p->a_stride[at] == p->rows * p->a.row;
        if (extent == 0 || (extent > 1 && (p->b_stride[at] != 0 || !follow)))
            return;
        if (p->rows == 1 && extent > 1)
            p->a.row = p->a_stride[at];
        p->rows *= extent;
        p->batches /= extent;
        p->extent[at] = p->a_stride[at] = p->b_stride[at] = 0;
        p->num_axes--;
    }
}

struct product product_of_batches(const tn_layout *a, const tn_layout *b)
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

struct product product_describe(const tn_layout *a, const tn_layout *b)
{
    struct product p = product_of_batches(a, b);
    fold_batches(&p);
    return p;
}

// Cooperative matrices take 16-bit floats, eight at a time along one axis of each operand.
// A product of a few rows is bound by memory, and of a few terms by the result.
#define MATRIX_ALIGNMENT 8
#define MATRIX_GROUP 128    // four subgroups of 32
#define LEAST_MATRIX 32     // rows, columns and terms
#define LEAST_WORK 4194304  // multiplications: fewer take the time of a launch either way
#define MATRIX_SHARED 20480 // bytes of shared memory, of its tiles of 128
#define MATRIX_LARGE 36864

// Whether a kernel may read the operand `alignment` elements at a time, along an axis.
static bool is_aligned(int64_t offset, const struct matrix *m, uint64_t rows,
                       uint64_t columns, uint32_t alignment)
{
    uint64_t across = m->column == 1 ? m->row : m->column;
    uint64_t along = m->column == 1 ? columns : rows;
    return (m->column == 1 || m->row == 1) &&
           ((uint64_t)offset | across | along) % alignment == 0;
}

bool product_aligned(const tn_step *step, const struct product *p, uint32_t alignment)
{
    bool fits = is_aligned(tn_step_input(step, 0)->layout.offset, &p->a, p->rows, p->terms,
                           alignment) &&
                is_aligned(tn_step_input(step, 1)->layout.offset, &p->b, p->terms,
                           p->columns, alignment);
    for (uint32_t i = 0; i < p->num_axes; i++)
        fits = fits && (p->a_stride[i] | p->b_stride[i]) % alignment == 0;
    return fits;
}

static uint64_t matmul_plan_count_tiles(const struct product *p, uint32_t rows,
                                        uint32_t columns)
{
    return ceil_div(p->rows, rows) * ceil_div(p->columns, columns) * p->batches;
}

// The largest tile with which a large device still has work for all its processors.
static uint32_t choose_tile(const struct product *p, tn_dtype dtype)
{
    bool is_f32 = tn_dtype_computed(dtype) == TN_F32;
    if (is_f32 && matmul_plan_count_tiles(p, 128, 128) >= ENOUGH_TILES && p->rows >= 128 &&
        p->columns >= 128)
        return 128;
    if (matmul_plan_count_tiles(p, 64, 64) >= 32)
        return 64;
    return is_f32 && matmul_plan_count_tiles(p, 8, 8) <= SMALL_TILES ? 8 : 16;
}

// Largest first.
static const struct product_wide wides[] = {
    {"128x128", 128, 128, 256, 16896, true},
    {"64x128", 64, 128, 128, 25600, false},
    {"32x64", 32, 64, 128, 13312, false},
    {"32x32", 32, 32, 64, 18432, true},
};
#define SMALLEST_WIDE (&wides[sizeof(wides) / sizeof(wides[0]) - 1])

// The quickest tiles, of large products too. On an H200 4096x4096x4096 takes 3.02 ms, 3.22
// in tiles of 128x128; 16384x384x1536 456 us, 462; 1536x16384x384, in splits, 498 and 622.
#define WIDE_QUICKEST (&wides[1])

static bool takes_wide(const tn_vulkan_limits *limits, const struct product_wide *wide)
{
    return limits->max_invocations >= wide->group && limits->max_shared >= wide->shared;
}

const struct product_wide *product_wide(const tn_vulkan_limits *limits, uint64_t rows,
                                        uint64_t columns, uint64_t layers)
{
    const struct product_wide *wide = wides;
    while (wide < SMALLEST_WIDE &&
           (!takes_wide(limits, wide) || 2 * rows <= wide->rows ||
            columns < wide->columns ||
            ceil_div(rows, wide->rows) * ceil_div(columns, wide->columns) * layers <
                ENOUGH_TILES))
        wide++;
    return takes_wide(limits, wide) ? wide : NULL;
}

// NULL: the product is not for these kernels.
static const struct product_wide *matmul_plan_choose_wide(const tn_vulkan_limits *limits,
                                                          const tn_step *step,
                                                          const struct product *p)
{
    const tn_layout *out = &tn_step_output(step, 0)->layout;
    if (tn_step_input(step, 0)->layout.dtype != TN_F32 ||
        matmul_plan_count_tiles(p, 8, 8) <= SMALL_TILES ||
        ((uint64_t)out->offset | p->columns) % WIDE_ALIGNMENT != 0 ||
        !product_aligned(step, p, WIDE_ALIGNMENT))
        return NULL;
    const struct product_wide *wide = product_wide(limits, p->rows, p->columns, p->batches);
    if (wide == wides && step->num_fused == 0 && takes_wide(limits, WIDE_QUICKEST))
        return WIDE_QUICKEST;
    return wide && (step->num_fused == 0 || wide->stores_by_element) ? wide : NULL;
}

// Whether the product's dtype runs on cooperative matrices, they have work, and the device
// has them: features `f16` or `bf16`, by dtype.
static bool matmul_has_matrices(const tn_vulkan_limits *limits, const tn_step *step,
                                const struct product *p, uint32_t f16, uint32_t bf16)
{
    tn_dtype dtype = tn_step_input(step, 0)->layout.dtype;
    uint32_t needed = dtype == TN_F16 ? f16 : dtype == TN_BF16 ? bf16 : 0;
    return needed && (limits->features & needed) && p->rows >= LEAST_MATRIX &&
           p->columns >= LEAST_MATRIX && p->terms >= LEAST_MATRIX &&
           tn_saturated_multiply(p->rows * p->columns, p->terms) >= LEAST_WORK;
}

// Whether tiles of 128x128 keep a large device busy. Half-empty ones are slower than
// tiles of 64: 64x1024x16384 takes 24.7 us on an H200, 22.2.
static bool takes_128(const struct product *p)
{
    return matmul_plan_count_tiles(p, 128, 128) >= ENOUGH_TILES && p->rows > 64 &&
           p->columns > 64;
}

// The tile of a product on cooperative matrices of subgroups; 0: it runs without them.
static uint32_t matrix_tile(const tn_vulkan_limits *limits, const tn_step *step,
                            const struct product *p)
{
    if (!matmul_has_matrices(limits, step, p, TN_VULKAN_HAS_F16_MATRICES,
                             TN_VULKAN_HAS_BF16_MATRICES) ||
        limits->subgroup_size != 32 || limits->max_shared < MATRIX_SHARED ||
        limits->max_invocations < MATRIX_GROUP ||
        !product_aligned(step, p, MATRIX_ALIGNMENT))
        return 0;
    return takes_128(p) && limits->max_shared >= MATRIX_LARGE ? 128 : 64;
}

// Whether a matrix is lines in memory, one behind the other: neither broadcast nor
// reversed. Its last byte is at a distance that has 31 bits: drivers do not document how
// wide the integers are with which they compute addresses of a tensor's elements.
static bool is_lines(const struct matrix *m, uint64_t rows, uint64_t columns)
{
    uint64_t across = m->column == 1 ? m->row : m->column;
    uint64_t along = m->column == 1 ? columns : rows;
    uint64_t lines = m->column == 1 ? rows : columns;
    return (m->column == 1 || m->row == 1) && across >= along &&
           tn_saturated_multiply(across, lines) <= INT32_MAX / 2;
}

// Tiles of matmul_matrix2.comp, whose matrices are workgroups'.
static const struct group_tile {
    const char *suffix;
    uint32_t rows, columns;
} group_128 = {"128", 128, 128}, group_64 = {"64", 64, 64}, group_32 = {"32", 32, 64},
  group_aligned = {"32_aligned", 32, 64};

// From so many terms on, splits of them on matrices of subgroups are faster than all on
// those of workgroups: 64x4096x4096 takes 23 us on an H200, and 30.
#define SPLIT_TERMS 2048

// With so few terms the stores decide: 4096x64x4096 takes 75 us on an H100, 88 in tiles of
// subgroups.
#define THIN_TERMS 64

// The tile of a product on cooperative matrices of workgroups; NULL: it runs without them.
// They take thin products and what those of subgroups do not, where loads by element give
// zeros at the edges, and products so small that each tile of 32x64 has a processor to
// itself. Microseconds on an H200 (rows, terms, columns), beside the kernels without
// cooperative matrices and those of subgroups:
//   4095x4095x4095    838    3863        512x512x512     6.6     8.9
//   2047x2047x2047    108     513        256x256x256     4.8     6.3
//   1023x1023x1023     27      97        4096x4096x64     27      44
//   511x511x511       8.6      36        64x4096x4096     30      67
//   4095x4095x63       42     265        704x704x704    14.4    11.5
//   160x160x160       5.4     5.9        8064x1024x64     16      14
//   127x127x127       4.7     4.7        4096x4096x4096  638     519
// Products with a program behind them have few elements, and are left to the others.
static const struct group_tile *choose_group(const tn_vulkan_limits *limits,
                                             const tn_step *step, const struct product *p)
{
    const tn_layout *out = &tn_step_output(step, 0)->layout;
    const struct matrix of_result = {.row = (uint32_t)p->columns, .column = 1};
    if (!matmul_has_matrices(limits, step, p, TN_VULKAN_HAS_F16_GROUP_MATRICES,
                             TN_VULKAN_HAS_BF16_GROUP_MATRICES) ||
        limits->max_invocations < MATRIX_GROUP || step->num_fused > 0 ||
        !is_lines(&p->a, p->rows, p->terms) || !is_lines(&p->b, p->terms, p->columns) ||
        !is_lines(&of_result, p->rows, p->columns))
        return NULL;
    bool is_small =
        matmul_plan_count_tiles(p, group_32.rows, group_32.columns) <= ENOUGH_TILES;
    if (is_small && product_aligned(step, p, MATRIX_ALIGNMENT) &&
        ((uint64_t)out->offset | p->columns) % MATRIX_ALIGNMENT == 0)
        return &group_aligned;
    if (p->terms <= THIN_TERMS)
        return is_small ? &group_32 : &group_64;
    if (matrix_tile(limits, step, p))
        return NULL;
    return is_small ? &group_32 : takes_128(p) ? &group_128 : &group_64;
}

// Whether the result is stored by element: matrices of 16x16 do not fill it, or a program
// takes it.
static bool matmul_plan_is_staged(const tn_step *step, const struct product *p)
{
    const tn_value *out = tn_step_output(step, 0);
    return step->num_fused > 0 || p->rows % 16 != 0 || p->columns % 16 != 0 ||
           out->layout.offset % MATRIX_ALIGNMENT != 0;
}

bool product_a_along_k(const struct product *p)
{
    return p->a.column == 1 || p->a.row != 1;
}

bool product_b_along_k(const struct product *p)
{
    return p->b.row == 1 && p->b.column != 1;
}

// Products of a few rows, whose workgroups have strips of columns (matmul_few.glsl). Of
// batches, or of few terms, there is less to read than a workgroup has invocations.
#define FEW_TERMS 256

static bool matmul_plan_has_few_rows(tn_dtype dtype, const struct product *p)
{
    return tn_dtype_computed(dtype) == TN_F32 && p->rows <= PRODUCT_FEW_ROWS &&
           p->batches == 1 && p->terms >= FEW_TERMS;
}

// Other products with few rows or columns, where reading one large operand takes the time.
#define MORE_ROWS 16
#define MORE_COLUMNS 32 // of a workgroup
#define MORE_ELEMENTS (1 << 20)

static struct product product_transposed(const struct product *p)
{
    struct product q = *p;
    q.rows = p->columns;
    q.columns = p->rows;
    q.a = (struct matrix){.row = p->b.column, .column = p->b.row};
    q.b = (struct matrix){.row = p->a.column, .column = p->a.row};
    return q;
}

static bool has_more_rows(tn_dtype dtype, const struct product *p)
{
    return tn_dtype_computed(dtype) == TN_F32 && p->rows <= MORE_ROWS && p->batches == 1 &&
           p->terms >= FEW_TERMS &&
           tn_saturated_multiply(p->terms, p->columns) >= MORE_ELEMENTS;
}

static struct tiling few_rows(tn_dtype dtype, const struct product *p)
{
    bool has_more = p->rows > PRODUCT_FEW_ROWS;
    struct tiling few = {.rows = p->rows > 8   ? 16
                                 : p->rows > 4 ? 8
                                 : p->rows > 1 ? 4
                                               : 1,
                         .columns = has_more ? MORE_COLUMNS : PRODUCT_FEW_COLUMNS,
                         .takes_any = !has_more,
                         .is_whole = true,
                         .b_along_k = product_b_along_k(p)};
    snprintf(few.name, sizeof(few.name), "matmul_%s_few_%u", dtype_glsl(dtype), few.rows);
    return few;
}

struct tiling product_tiling(const tn_vulkan_limits *limits, const tn_step *step,
                             const struct product *p)
{
    tn_dtype dtype = tn_step_output(step, 0)->layout.dtype;
    struct product_few one_few;
    if (product_few(limits, step, p, &one_few)) {
        struct tiling lines = {.rows = one_few.tile_rows, .columns = one_few.tile_columns};
        snprintf(lines.name, sizeof(lines.name), "%s", one_few.name);
        return lines;
    }
    if (matmul_plan_has_few_rows(dtype, p))
        return few_rows(dtype, p);
    const struct product q = p->columns < p->rows ? product_transposed(p) : *p;
    if (has_more_rows(dtype, &q)) {
        struct tiling few = few_rows(dtype, &q);
        few.takes_any = false;
        few.is_transposed = p->columns < p->rows;
        return few;
    }
    const struct product_wide *wide = matmul_plan_choose_wide(limits, step, p);
    struct tiling tiling = {.b_along_k = p->b.column != 1};
    if (wide) {
        snprintf(tiling.name, sizeof(tiling.name), "matmul_wide_%s%s", wide->name,
                 step->num_fused > 0 ? "_by_element" : "");
        tiling.rows = wide->rows;
        tiling.columns = wide->columns;
        tiling.takes_rest = true;
        return tiling;
    }
    const struct group_tile *group = choose_group(limits, step, p);
    if (group) {
        snprintf(tiling.name, sizeof(tiling.name), "matmul_matrix2_%s_%s",
                 dtype_glsl(dtype), group->suffix);
        tiling.rows = group->rows;
        tiling.columns = group->columns;
        tiling.may_split = p->terms >= SPLIT_TERMS && matrix_tile(limits, step, p) > 0;
        return tiling;
    }
    uint32_t matrix = matrix_tile(limits, step, p);
    tiling.rows = tiling.columns = matrix ? matrix : choose_tile(p, dtype);
    snprintf(tiling.name, sizeof(tiling.name), "matmul_%s%s_%u%s", matrix ? "matrix_" : "",
             dtype_glsl(dtype), tiling.rows,
             matrix && matmul_plan_is_staged(step, p) ? "_staged" : "");
    tiling.may_split = matrix > 0;
    tiling.takes_any = !matrix;
    if (tiling.takes_any)
        tiling.b_along_k = product_b_along_k(p);
    return tiling;
}

// On an H200 4096x1024x4096 with bias, gelu and residual takes 888 us, 909 in two launches;
// 4096x4096x4096 3.4 to 3.5 ms, 3.7.
#define HIDING_TERMS 1024

bool product_hides_program(const tn_vulkan_limits *limits, const tn_step *step)
{
    const struct product p =
        product_describe(&tn_step_input(step, 0)->layout, &tn_step_input(step, 1)->layout);
    return p.terms >= HIDING_TERMS && matmul_plan_choose_wide(limits, step, &p) == wides;
}

static int32_t matmul_accepts(const tn_kernel_query *query)
{
    return query->inputs[0].dtype != TN_BOOL;
}

// out_offset: of the result, in elements.
static void matmul_plan_push_product(struct kernel_launch *launch, const struct product *p,
                                     const tn_step *step, bool is_transposed,
                                     uint64_t out_offset)
{
    const uint64_t words[] = {p->rows,
                              p->columns,
                              p->terms,
                              p->batches,
                              (uint64_t)tn_step_input(step, is_transposed)->layout.offset,
                              (uint64_t)tn_step_input(step, !is_transposed)->layout.offset,
                              out_offset,
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
static uint32_t matmul_plan_lay_out(uint64_t groups, uint32_t most, uint32_t *step)
{
    *step = groups > most ? most : 0;
    return *step ? most : (uint32_t)groups;
}

tn_status product_launch(const tn_vulkan_plan *plan, const struct product *p,
                         const struct tiling *tiling, tn_vulkan_operand out,
                         uint64_t out_offset)
{
    uint32_t step_x, step_y, step_z;
    const uint32_t *most = plan->limits->max_groups;
    struct kernel_launch launch = {
        .name = tiling->name,
        .fixed_grid = true,
        .grid = {matmul_plan_lay_out(ceil_div(p->columns, tiling->columns), most[0],
                                     &step_x),
                 matmul_plan_lay_out(ceil_div(p->rows, tiling->rows), most[1], &step_y),
                 matmul_plan_lay_out(p->batches, most[2], &step_z)},
    };
    kernel_spec(&launch, p->num_axes);
    kernel_spec(&launch, product_a_along_k(p));
    kernel_spec(&launch, tiling->b_along_k);
    kernel_spec(&launch, step_x);
    kernel_spec(&launch, step_y);
    kernel_spec(&launch, step_z);
    if (tiling->is_transposed)
        kernel_spec(&launch, 1);
    kernel_bind(&launch, tn_vulkan_input(tiling->is_transposed));
    kernel_bind(&launch, tn_vulkan_input(!tiling->is_transposed));
    kernel_bind(&launch, out);
    matmul_plan_push_product(&launch, p, plan->step, tiling->is_transposed, out_offset);
    return kernel_launch(plan, &launch);
}

static tn_status matmul_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    struct product p =
        product_describe(&tn_step_input(step, 0)->layout, &tn_step_input(step, 1)->layout);
    if (p.rows == 0 || p.columns == 0 || p.batches == 0)
        return TN_OK;
    struct product_few few;
    if (product_few(plan->limits, step, &p, &few))
        return product_few_launch(plan, &few);
    struct tiling tiling;
    uint32_t splits = product_split(plan->limits, step, &p, &tiling);
    if (tiling.is_transposed)
        p = product_transposed(&p);
    tn_vulkan_operand out = tn_vulkan_output(0);
    uint64_t out_offset = (uint64_t)tn_step_output(step, 0)->layout.offset;
    if (splits > 1) {
        out = tn_vulkan_scratch(0, product_splits_size(&p, splits), TN_VULKAN_WRITES);
        out_offset = 0;
    }
    tn_status status = product_launch(plan, &p, &tiling, out, out_offset);
    return status == TN_OK && splits > 1
               ? vk_plan_sum_splits(plan, p.rows * p.columns, splits)
               : status;
}

// --- records ---------------------------------------------------------------------------

static const tn_operand_rule matmul_rules[] = {
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_ANY},
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_ANY},
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
OWN_KERNEL(matmul, "base.matmul/1", matmul_plan, KERNEL_MATMUL, matmul_rules,
           .accepts = matmul_accepts, .scratch_size = vk_matmul_scratch);
