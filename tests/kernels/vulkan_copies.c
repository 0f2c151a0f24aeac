// SPDX-License-Identifier: MIT
// Copies that change the order of axes, as GPUs get them. TENON_TEST_PLUGIN names the
// backend.
#include "check.h"

#include <tenon/backend.h>
#include "vulkan_bench.h"

static struct vulkan_bench bench;

static const tn_expr_program *copy_of(tn_dtype dtype)
{
    static const uint32_t position;
    static tn_expr_insn insns[TN_NUM_DTYPES];
    static tn_dtype dtypes[TN_NUM_DTYPES];
    static tn_expr_program programs[TN_NUM_DTYPES];
    insns[dtype] =
        (tn_expr_insn){TN_EXPR_LOAD, (uint16_t)tn_dtype_computed(dtype), 0, 0, 0};
    dtypes[dtype] = dtype;
    programs[dtype] = (tn_expr_program){.struct_size = sizeof(tn_expr_program),
                                        .insns = &insns[dtype],
                                        .input_dtypes = &dtypes[dtype],
                                        .output_dtypes = &dtypes[dtype],
                                        .outputs = &position,
                                        .num_insns = 1,
                                        .num_inputs = 1,
                                        .num_outputs = 1,
                                        .name = "copy"};
    return &programs[dtype];
}

// Axes of the copy, and which of the source each is: its own extents are in that order.
struct turn {
    int32_t rank;
    int64_t extent[5];
    int32_t source_axis[5];
    int64_t from_offset, to_offset, gap; // gap: elements between the source's rows
};

static uint64_t span(const tn_layout *layout)
{
    uint64_t last = (uint64_t)layout->offset;
    for (int32_t axis = 0; axis < layout->rank; axis++)
        last += (uint64_t)((layout->extent[axis] - 1) * layout->stride[axis]);
    return (last + 1) * (uint64_t)tn_dtype_bytes(layout->dtype);
}

static void set_layouts(const struct turn *turn, tn_dtype dtype, tn_layout *from,
                        tn_layout *to)
{
    *from = *to = (tn_layout){.dtype = dtype, .rank = turn->rank};
    from->offset = turn->from_offset;
    to->offset = turn->to_offset;
    int64_t stride = 1;
    for (int32_t axis = turn->rank; axis-- > 0; stride *= turn->extent[axis]) {
        from->extent[axis] = to->extent[axis] = turn->extent[axis];
        to->stride[axis] = stride;
    }
    stride = 1;
    for (int32_t place = turn->rank; place-- > 0;)
        for (int32_t axis = 0; axis < turn->rank; axis++)
            if (turn->source_axis[axis] == place) {
                from->stride[axis] = stride;
                stride *= turn->extent[axis] + (place == turn->rank - 1 ? turn->gap : 0);
            }
}

// Bytes outside the copy stay 0xee.
static void expect(const tn_layout *from, const tn_layout *to, const unsigned char *source,
                   unsigned char *out, uint64_t out_size)
{
    uint64_t size = (uint64_t)tn_dtype_bytes(from->dtype);
    int64_t index[5] = {0};
    memset(out, 0xee, out_size);
    for (;;) {
        int64_t a = from->offset, b = to->offset;
        int32_t axis = from->rank - 1;
        for (int32_t i = 0; i < from->rank; i++) {
            a += index[i] * from->stride[i];
            b += index[i] * to->stride[i];
        }
        memcpy(out + (uint64_t)b * size, source + (uint64_t)a * size, size);
        while (axis >= 0 && ++index[axis] == from->extent[axis])
            index[axis--] = 0;
        if (axis < 0)
            return;
    }
}

static void check(const struct turn *turn, tn_dtype dtype)
{
    tn_layout from, to;
    set_layouts(turn, dtype, &from, &to);
    uint64_t from_size = span(&from), to_size = span(&to) + 256;
    uint32_t source = vb_slot(&bench, from_size), out = vb_slot(&bench, to_size);
    tn_step *step = vb_step(&bench, 1, 1);
    step->program = copy_of(dtype);
    vb_set(step, 0, source, &from);
    vb_set(step, 1, out, &to);
    for (uint64_t i = 0; i < from_size; i++) // small halves and no NaN, in any dtype
        bench.memory[source][i] = (unsigned char)(i * 37 % 113 & 0x3f);
    for (uint64_t i = 0; dtype == TN_BOOL && i < from_size; i++)
        bench.memory[source][i] &= 1;
    memset(bench.memory[out], 0xee, to_size);
    unsigned char *want = malloc(to_size);
    cr_assert(ne(ptr, want, NULL));
    expect(&from, &to, bench.memory[source], want, to_size);
    if (vb_run(&bench) != TN_OK)
        cr_fatal("%s", vb_failure);
    for (uint64_t i = 0; i < to_size; i++)
        if (want[i] != bench.memory[out][i])
            cr_fatal("dtype %d, rank %d, byte %llu: got %02x, expected %02x", dtype,
                     turn->rank, (unsigned long long)i, bench.memory[out][i], want[i]);
    free(want);
    vb_clear(&bench);
}

static const struct turn turns[] = {
    {2, {64, 64}, {1, 0}, 0, 0, 0},
    {2, {32, 200}, {1, 0}, 0, 0, 0},
    {2, {129, 67}, {1, 0}, 3, 5, 1},
    {3, {5, 40, 70}, {0, 2, 1}, 0, 0, 0}, // matrices, each transposed
    {3, {40, 5, 70}, {2, 0, 1}, 0, 7, 2}, // an axis between the two
    {4, {3, 33, 2, 65}, {1, 3, 0, 2}, 1, 0, 0},
    {4, {4, 6, 7, 48}, {0, 2, 3, 1}, 0, 0, 0}, // channels last from channels first
    {2, {31, 64}, {1, 0}, 0, 0, 0},            // too short for tiles
    {3, {34, 1, 36}, {2, 1, 0}, 0, 0, 0},
    {2, {50, 60}, {0, 1}, 2, 0, 3}, // no turn at all
};

static void begin(void)
{
    vb_as_gpu = true;
    if (!vb_begin(&bench, check_getenv("TENON_TEST_PLUGIN")))
        cr_skip("no device is here");
}

static void end(void)
{
    cr_assert(vb_end(&bench));
}

TestSuite(vulkan_copies, .init = begin, .fini = end);

Test(vulkan_copies, elements_of_every_size_arrive_in_the_other_order)
{
    static const tn_dtype dtypes[] = {TN_BOOL,    TN_U8,        TN_I16,
                                      TN_F16,     TN_F32,       TN_I64,
                                      TN_F8_E5M2, TN_COMPLEX64, TN_COMPLEX128};
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++)
        for (size_t k = 0; k < sizeof(dtypes) / sizeof(dtypes[0]); k++)
            check(&turns[i], dtypes[k]);
}
