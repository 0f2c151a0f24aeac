// SPDX-License-Identifier: MIT
// Which kernel computes a product of matrices of 16-bit floats, on devices with matrix
// units of subgroups, of workgroups, of both and of neither: the choice by itself, without
// a device.
#include "check.h"

#include "vulkan/matmul/plan_matmul.h"

enum { NONE, SUBGROUPS, GROUPS, BOTH, NUM_DEVICES };
enum { PLAIN, TURNED, BROADCAST, REVERSED }; // how the left operand lies

static const uint32_t features[NUM_DEVICES] = {
    [SUBGROUPS] = TN_VULKAN_HAS_F16_MATRICES | TN_VULKAN_HAS_BF16_MATRICES,
    [GROUPS] = TN_VULKAN_HAS_F16_GROUP_MATRICES | TN_VULKAN_HAS_BF16_GROUP_MATRICES,
    [BOTH] = TN_VULKAN_HAS_F16_MATRICES | TN_VULKAN_HAS_BF16_MATRICES |
             TN_VULKAN_HAS_F16_GROUP_MATRICES | TN_VULKAN_HAS_BF16_GROUP_MATRICES,
};

// clang-format off
static const struct row {
    int64_t batches, m, k, n;
    int lies;
    int64_t offset, out_offset; // of the left operand and the result
    bool fused;                 // a program takes the result
    const char *names[NUM_DEVICES]; // behind "matmul_", with * for the dtype
} rows[] = {
    // Large: those of subgroups are the faster.
    {1, 4096, 4096, 4096, PLAIN, 0, 0, false, {"*_128", "matrix_*_128", "matrix2_*_128", "matrix_*_128"}},
    {1, 4096, 4096, 4096, TURNED, 0, 0, false, {"*_128", "matrix_*_128", "matrix2_*_128", "matrix_*_128"}},
    {1, 1024, 1024, 1024, PLAIN, 0, 0, false, {"*_64", "matrix_*_64", "matrix2_*_64", "matrix_*_64"}},
    {1, 1024, 1024, 1028, TURNED, 0, 0, false, {"*_64", "*_64", "matrix2_*_64", "matrix2_*_64"}},
    // A processor for each tile of 32x64: 128 tiles, and one more.
    {1, 512, 512, 512, PLAIN, 0, 0, false, {"*_64", "matrix_*_64", "matrix2_*_32_aligned", "matrix2_*_32_aligned"}},
    {1, 4096, 4096, 64, PLAIN, 8, 16, false, {"*_64", "matrix_*_64", "matrix2_*_32_aligned", "matrix2_*_32_aligned"}},
    {1, 4112, 4096, 64, PLAIN, 0, 0, false, {"*_64", "matrix_*_64", "matrix2_*_64", "matrix_*_64"}},
    {64, 64, 1024, 64, PLAIN, 0, 0, false, {"*_64", "matrix_*_64", "matrix2_*_32_aligned", "matrix2_*_32_aligned"}},
    {65, 64, 1024, 64, PLAIN, 0, 0, false, {"*_64", "matrix_*_64", "matrix2_*_64", "matrix_*_64"}},
    {1, 4096, 4095, 64, PLAIN, 0, 0, false, {"*_64", "*_64", "matrix2_*_32", "matrix2_*_32"}},
    {1, 4097, 4095, 64, PLAIN, 0, 0, false, {"*_64", "*_64", "matrix2_*_64", "matrix2_*_64"}},
    // 127 and 128 tiles of 128x128.
    {127, 128, 256, 128, PLAIN, 0, 0, false, {"*_64", "matrix_*_64", "matrix2_*_64", "matrix_*_64"}},
    {128, 128, 256, 128, PLAIN, 0, 0, false, {"*_128", "matrix_*_128", "matrix2_*_128", "matrix_*_128"}},
    {127, 128, 256, 128, PLAIN, 1, 0, false, {"*_64", "*_64", "matrix2_*_64", "matrix2_*_64"}},
    {128, 128, 256, 128, PLAIN, 1, 0, false, {"*_128", "*_128", "matrix2_*_128", "matrix2_*_128"}},
    // Half of such a tile would be empty.
    {128, 64, 1024, 128, PLAIN, 0, 0, false, {"*_64", "matrix_*_64", "matrix2_*_64", "matrix_*_64"}},
    {128, 128, 1025, 64, PLAIN, 0, 0, false, {"*_64", "*_64", "matrix2_*_64", "matrix2_*_64"}},
    // Not in eights: an extent, where an operand begins, where the result does.
    {1, 4095, 4095, 4095, PLAIN, 0, 0, false, {"*_128", "*_128", "matrix2_*_128", "matrix2_*_128"}},
    {1, 511, 511, 511, PLAIN, 0, 0, false, {"*_64", "*_64", "matrix2_*_32", "matrix2_*_32"}},
    {1, 512, 512, 512, PLAIN, 4, 0, false, {"*_64", "*_64", "matrix2_*_32", "matrix2_*_32"}},
    {1, 512, 512, 512, PLAIN, 0, 4, false, {"*_64", "matrix_*_64_staged", "matrix2_*_32", "matrix_*_64_staged"}},
    // A program takes elements: not from matrices of workgroups.
    {1, 512, 512, 256, PLAIN, 0, 0, true, {"*_64", "matrix_*_64_staged", "*_64", "matrix_*_64_staged"}},
    {1, 511, 511, 255, PLAIN, 0, 0, true, {"*_64", "*_64", "*_64", "*_64"}},
    // Rows that are one row, or go backwards, are no tensor's.
    {1, 512, 511, 512, BROADCAST, 0, 0, false, {"*_64", "*_64", "*_64", "*_64"}},
    {1, 512, 511, 512, REVERSED, 0, 0, false, {"*_64", "*_64", "*_64", "*_64"}},
    // An operand and a result that end at 2^31 bytes, and beyond.
    {1, 65536, 16383, 64, PLAIN, 0, 0, false, {"*_64", "*_64", "matrix2_*_64", "matrix2_*_64"}},
    {1, 65536, 16385, 64, PLAIN, 0, 0, false, {"*_64", "*_64", "*_64", "*_64"}},
    {1, 65535, 65, 16384, PLAIN, 0, 0, false, {"*_128", "*_128", "matrix2_*_128", "matrix2_*_128"}},
    {1, 65537, 65, 16384, PLAIN, 0, 0, false, {"*_128", "*_128", "*_128", "*_128"}},
    // Few rows or columns, and an operand in lines of eight: on units of subgroups from five on.
    {1, 1, 4096, 4096, PLAIN, 0, 0, false, {"lines_*_1", "lines_*_1", "lines_*_1", "lines_*_1"}},
    {1, 4, 4096, 4096, TURNED, 1, 0, true, {"lines_*_4", "lines_*_4", "lines_*_4", "lines_*_4"}},
    {1, 4096, 4096, 3, PLAIN, 0, 3, false, {"lines_*_4", "lines_*_4", "lines_*_4", "lines_*_4"}},
    {1, 5, 4096, 4096, BROADCAST, 0, 0, true, {"lines_*_8", "strip_*", "lines_*_8", "strip_*"}},
    {1, 16, 4095, 4096, REVERSED, 0, 0, false, {"lines_*_8", "strip_*", "lines_*_8", "strip_*"}},
    {1, 4096, 4096, 17, TURNED, 0, 0, false, {"*_64", "*_64", "*_64", "*_64"}},
    // Not in lines; smaller than it is worth.
    {1, 16, 4096, 4095, PLAIN, 0, 0, false, {"*_few_16", "*_few_16", "*_few_16", "*_few_16"}},
    {1, 4095, 4096, 7, TURNED, 0, 0, false, {"*_few_8", "*_few_8", "*_few_8", "*_few_8"}},
    {1, 16, 512, 504, PLAIN, 0, 0, false, {"*_8", "*_8", "*_8", "*_8"}},
    // Too few rows, terms, multiplications.
    {1, 31, 4095, 4095, PLAIN, 0, 0, false, {"*_64", "*_64", "*_64", "*_64"}},
    {1, 32, 4095, 4095, PLAIN, 0, 0, false, {"*_64", "*_64", "matrix2_*_32", "matrix2_*_32"}},
    {1, 4095, 31, 4095, PLAIN, 0, 0, false, {"*_128", "*_128", "*_128", "*_128"}},
    {1, 127, 127, 127, PLAIN, 0, 0, false, {"*_8", "*_8", "*_8", "*_8"}},
};
// clang-format on

static tn_layout matrices(tn_dtype dtype, int64_t batches, int64_t rows_of, int64_t columns)
{
    return (tn_layout){.dtype = dtype,
                       .rank = 3,
                       .extent = {batches, rows_of, columns},
                       .stride = {rows_of * columns, columns, 1}};
}

static tn_layout left_operand(const struct row *r, tn_dtype dtype)
{
    tn_layout layout = matrices(dtype, r->batches, r->m, r->k);
    layout.offset = r->offset;
    if (r->lies == TURNED) {
        layout.stride[1] = 1;
        layout.stride[2] = r->m;
    }
    if (r->lies == BROADCAST)
        layout.stride[1] = 0;
    if (r->lies == REVERSED) {
        layout.stride[1] = -r->k;
        layout.offset = (r->m - 1) * r->k;
    }
    return layout;
}

// "matrix_*_64" of f16 is "matmul_matrix_f16_64".
static const char *full_name(const char *name, const char *dtype)
{
    static char full[VARIANT_NAME];
    const char *star = strchr(name, '*');
    snprintf(full, sizeof(full), "matmul_%.*s%s%s", (int)(star - name), name, dtype,
             star + 1);
    return full;
}

static struct tiling tiling_on(const tn_vulkan_limits *limits, const struct row *r,
                               tn_dtype dtype)
{
    tn_value in[2] = {{.layout = left_operand(r, dtype)},
                      {.layout = matrices(dtype, r->batches, r->k, r->n)}};
    tn_value out = {.layout = matrices(dtype, r->batches, r->m, r->n)};
    out.layout.offset = r->out_offset;
    const tn_step step = {.num_inputs = 2,
                          .num_outputs = 1,
                          .inputs = in,
                          .outputs = &out,
                          .value_size = sizeof(tn_value),
                          .num_fused = r->fused};
    const struct product p = product_describe(&in[0].layout, &in[1].layout);
    return product_tiling(limits, &step, &p);
}

static void check_row(const struct row *r, int device, tn_dtype dtype, const char *suffix)
{
    const tn_vulkan_limits limits = {.struct_size = sizeof(limits),
                                     .features = features[device],
                                     .max_invocations = 1024,
                                     .max_shared = 49152,
                                     .subgroup_size = 32};
    const struct tiling tiling = tiling_on(&limits, r, dtype);
    cr_assert(eq(str, (char *)tiling.name, (char *)full_name(r->names[device], suffix)),
              "row %td, device %d", r - rows, device);
}

Test(vulkan_products, kernels_of_halves_by_shape_and_device)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int device = 0; device < NUM_DEVICES; device++) {
            check_row(&rows[i], device, TN_F16, "f16");
            check_row(&rows[i], device, TN_BF16, "bf16");
        }
}

// One dtype's units are not the other's.
Test(vulkan_products, dtypes_have_features_of_their_own)
{
    static const struct {
        uint32_t features;
        tn_dtype dtype;
        const char *name;
    } wanted[] = {
        {TN_VULKAN_HAS_F16_GROUP_MATRICES, TN_F16, "matmul_matrix2_f16_128"},
        {TN_VULKAN_HAS_F16_GROUP_MATRICES, TN_BF16, "matmul_bf16_128"},
        {TN_VULKAN_HAS_BF16_GROUP_MATRICES, TN_BF16, "matmul_matrix2_bf16_128"},
        {TN_VULKAN_HAS_BF16_GROUP_MATRICES, TN_F16, "matmul_f16_128"},
        {TN_VULKAN_HAS_F16_GROUP_MATRICES | TN_VULKAN_HAS_BF16_GROUP_MATRICES, TN_F32,
         "matmul_f32_128"},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        const tn_vulkan_limits limits = {.struct_size = sizeof(limits),
                                         .features = wanted[i].features,
                                         .max_invocations = 1024,
                                         .max_shared = 49152,
                                         .subgroup_size = 32};
        tn_value values[3];
        for (int k = 0; k < 3; k++)
            values[k] = (tn_value){.layout = matrices(wanted[i].dtype, 1, 4095, 4095)};
        const tn_step step = {.num_inputs = 2,
                              .num_outputs = 1,
                              .inputs = values,
                              .outputs = values + 2,
                              .value_size = sizeof(tn_value)};
        const struct product p = product_describe(&values[0].layout, &values[1].layout);
        const struct tiling tiling = product_tiling(&limits, &step, &p);
        cr_assert(eq(str, (char *)tiling.name, (char *)wanted[i].name));
    }
}

// Gradients of weights: splits for nearly all places of a large device, of which the last
// may have fewer terms where the kernel can tell.
Test(vulkan_products, long_products_have_splits_that_fill_the_device)
{
    static const struct {
        tn_dtype dtype;
        int64_t m, k, n, offset;
        uint32_t splits, terms, last; // 0: as many as the others
        const char *name;
    } wanted[] = {
        {TN_F32, 384, 16384, 384, 0, 28, 592, 400, "matmul_wide_64x128"},
        {TN_F32, 384, 16384, 1536, 0, 7, 2352, 2272, "matmul_wide_64x128"},
        {TN_F32, 384, 16384, 384, 1, 16, 1024, 0, "matmul_f32_128"},
        {TN_F32, 384, 4092, 384, 0, 1, 4092, 0, "matmul_wide_32x32"},
        {TN_BF16, 384, 16384, 384, 0, 28, 592, 400, "matmul_matrix_bf16_128_split"},
        {TN_BF16, 384, 16384, 1536, 0, 7, 2352, 2272, "matmul_matrix_bf16_128_split"},
    };
    const tn_vulkan_limits limits = {.struct_size = sizeof(limits),
                                     .features = features[SUBGROUPS],
                                     .max_invocations = 1024,
                                     .max_shared = 49152,
                                     .subgroup_size = 32};
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        tn_value in[2] = {
            {.layout = matrices(wanted[i].dtype, 1, wanted[i].m, wanted[i].k)},
            {.layout = matrices(wanted[i].dtype, 1, wanted[i].k, wanted[i].n)}};
        tn_value out = {.layout = matrices(wanted[i].dtype, 1, wanted[i].m, wanted[i].n)};
        in[0].layout.offset = wanted[i].offset;
        const tn_step step = {.num_inputs = 2,
                              .num_outputs = 1,
                              .inputs = in,
                              .outputs = &out,
                              .value_size = sizeof(tn_value)};
        struct product p = product_describe(&in[0].layout, &in[1].layout);
        struct tiling tiling;
        uint32_t splits = product_split(&limits, &step, &p, &tiling);
        cr_assert(eq(u32, splits, wanted[i].splits), "row %zu", i);
        cr_assert(eq(u64, p.terms, wanted[i].terms), "row %zu", i);
        cr_assert(eq(u32, p.extent[MAX_BATCH_AXES - 1], wanted[i].last), "row %zu", i);
        cr_assert(eq(str, (char *)tiling.name, (char *)wanted[i].name), "row %zu", i);
    }
}

// Units of subgroups are for subgroups of 32 alone, and tiles for devices that have their
// shared memory: what lacks either is given what the device without them would run.
Test(vulkan_products, poorer_devices_get_the_next_best_kernel)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (uint32_t size = 4; size <= 128; size *= 2) {
            const uint32_t shared = size == 8 ? 16384 : 32768;
            tn_vulkan_limits limits = {.struct_size = sizeof(limits),
                                       .features = features[BOTH],
                                       .max_invocations = 1024,
                                       .max_shared = size == 32 ? 16384 : shared,
                                       .subgroup_size = size};
            const struct tiling got = tiling_on(&limits, &rows[i], TN_F16);
            limits.features = features[GROUPS];
            const struct tiling wanted = tiling_on(&limits, &rows[i], TN_F16);
            cr_assert(eq(str, (char *)got.name, (char *)wanted.name),
                      "row %zu, subgroups of %u", i, size);
        }
}
