// SPDX-License-Identifier: MIT
// The helpers for op packs: records made by <tenon/pack.h>, and rows of <tenon/ops/rows.h>
// over layouts of all kinds against plain loops
#include "check.h"
#include <tenon/ops/rows.h>

#include <time.h>

// --- records ---------------------------------------------------------------------------

TN_NUMBER_ATTRS(many, a, 1, b, -2, c, 0.5, d, 4, e, 5, f, 6, g, 7, h, 8);
TN_OP(many_inputs, "test.many/1", (p, q, r, s, t, u, v, w), .attrs = TN_ATTRS_OF(many),
      TN_IN_PLACE(2, 0), TN_MEANS("p + q + r + s + t + u + v + w"));
TN_EXPR_OP(one, "test.one/1", (x), (factor, 3), "factor * x");

static tn_status launch(const tn_cpu_call *call)
{
    (void)call;
    return TN_OK;
}
static TN_CPU_KERNEL(quick, "test.one/1", launch,
                     TN_TAKES_CONTIGUOUS(TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64)));
TN_PACK("com.example.test", "1.2.3", "Example", TN_PRIMITIVES(&many_inputs, &one),
        TN_KERNELS(&quick));

Test(pack, an_operator_has_the_inputs_and_attributes_that_are_listed)
{
    static const char *const names[] = {"p", "q", "r", "s", "t", "u", "v", "w"};
    static const double defaults[] = {1, -2, 0.5, 4, 5, 6, 7, 8};
    cr_assert(eq(uint, many_inputs.num_inputs, 8));
    cr_assert(eq(uint, many_inputs.attrs.num_fields, 8));
    cr_assert(eq(sz, many_inputs.attrs.size, 8 * sizeof(double)));
    for (uint32_t i = 0; i < 8; i++) {
        const tn_attr_field *field = &many_inputs.attrs.fields[i];
        cr_assert(eq(str, many_inputs.inputs[i].name, names[i]));
        cr_assert(eq(uint, field->kind, TN_ATTR_F64));
        cr_assert(eq(sz, field->offset, i * sizeof(double)));
        cr_assert(eq(dbl, field->default_f, defaults[i]));
    }
    cr_assert(eq(uint, many_inputs.num_in_place, 1));
    cr_assert(eq(int, many_inputs.in_place->input, 2));
    cr_assert(eq(uint, one.num_inputs, 1));
    cr_assert(eq(str, one.attrs.fields[0].name, "factor"));
    cr_assert(eq(str, one.expr, "factor * x"));
}

Test(pack, a_pack_offers_what_it_lists)
{
    const tn_ops *ops = tn_plugin_v1.query(TN_IFACE_OPS);
    cr_assert(ne(ptr, ops, NULL));
    cr_assert(eq(ptr, tn_plugin_v1.query(TN_IFACE_BACKEND), NULL));
    cr_assert(eq(uint, ops->num_primitives, 2));
    cr_assert(eq(ptr, ops->primitives[1], &one));
    cr_assert(eq(uint, ops->num_kernels, 1));
    const tn_kernel *kernel = ops->kernels[0];
    cr_assert(eq(str, kernel->name, "quick"));
    cr_assert(eq(str, kernel->family, TN_FAMILY_CPU));
    cr_assert(eq(uint, kernel->flags, TN_KERNEL_SAME_DTYPE));
    cr_assert(eq(uint, kernel->operands->needs, TN_NEEDS_CONTIGUOUS));
    const tn_cpu_kernel *payload = kernel->payload;
    cr_assert(payload->launch == launch);
    cr_assert(eq(str, tn_plugin_v1.version, "1.2.3"));
}

// --- rows ------------------------------------------------------------------------------

#define MAX_ELEMENTS 4096
#define NUM_OPERANDS 3

static uint64_t seed, random_state;

static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

static int64_t draw_below(int64_t n)
{
    return (int64_t)(draw() >> 33) % n;
}

// Pieces of any length that keeps to the grain, in any order of two.
static void in_pieces(const tn_cpu_call *call, int64_t n, int64_t grain,
                      void (*body)(void *context, int64_t begin, int64_t end,
                                   uint32_t worker),
                      void *context)
{
    int64_t cut = n > grain ? grain + draw_below(n - grain + 1) : n;
    (void)call;
    if (cut < n)
        body(context, cut, n, 0);
    body(context, 0, cut, 0);
}

// Memory with its axes in any order, gaps between elements, and backwards where chosen.
static void draw_layout(tn_layout *layout, int32_t rank, const int64_t *extent)
{
    int64_t next = 1 + draw_below(2);
    layout->dtype = TN_F32;
    layout->rank = rank;
    layout->offset = draw_below(3);
    uint32_t left = (1u << rank) - 1;
    while (left) {
        int32_t axis = (int32_t)draw_below(rank);
        if (!(left >> axis & 1))
            continue;
        left &= ~(1u << axis);
        layout->extent[axis] = extent[axis];
        layout->stride[axis] = next;
        next *= extent[axis] + draw_below(2);
        if (draw_below(4) == 0) {
            layout->offset += layout->stride[axis] * (extent[axis] - 1);
            layout->stride[axis] = -layout->stride[axis];
        }
    }
}

// out = x + 1000 * y; counts what was visited.
static int64_t visited, longest;

static void add_rows(const tn_row *row)
{
    const float *x = row->data[0], *y = row->data[1];
    float *out = row->data[2];
    for (int64_t i = 0; i < row->count; i++)
        out[i * row->step[2]] = x[i * row->step[0]] + 1000 * y[i * row->step[1]];
    visited += row->count;
    longest = row->count > longest ? row->count : longest;
}

static int64_t element_of(const tn_layout *out, const tn_layout *layout,
                          const int64_t *index)
{
    int64_t offset = layout->offset;
    for (int32_t axis = 0; axis < layout->rank; axis++) {
        int32_t whole = axis + out->rank - layout->rank;
        if (layout->extent[axis] != 1)
            offset += index[whole] * layout->stride[axis];
    }
    return offset;
}

static void check_rows(const tn_tensor *tensors, int64_t most)
{
    const tn_tensor *out = &tensors[2];
    const tn_cpu_call call = {.struct_size = sizeof(call),
                              .inputs = tensors,
                              .outputs = out,
                              .num_inputs = 2,
                              .num_outputs = 1,
                              .num_threads = 1,
                              .parallel_for = in_pieces};
    int64_t index[TN_MAX_RANK] = {0}, count = tn_layout_count(&out->layout);
    visited = longest = 0;
    cr_assert(eq(int, tn_for_rows(&call, most, add_rows), TN_OK));
    cr_assert(eq(i64, visited, count));
    cr_assert(longest <= most);
    do {
        const float *x = tensors[0].data, *y = tensors[1].data, *got = out->data;
        float expected = x[element_of(&out->layout, &tensors[0].layout, index)] +
                         1000 * y[element_of(&out->layout, &tensors[1].layout, index)];
        float value = got[tn_offset_at(&out->layout, index)];
        if (value != expected)
            cr_fatal("seed %llu: got %g, expected %g", (unsigned long long)seed,
                     (double)value, (double)expected);
    } while (count > 0 && tn_index_next(out->layout.rank, out->layout.extent, index));
}

static void draw_seed(void)
{
    seed = check_seed((uint64_t)time(NULL) % 1000000 + 1);
    random_state = seed * UINT64_C(0x9e3779b97f4a7c15);
}

Test(pack, rows_agree_with_loops_over_any_layouts, .init = draw_seed)
{
    static float memory[NUM_OPERANDS][MAX_ELEMENTS];
    for (int round = 0; round < 2000; round++) {
        int64_t extent[4], own[4];
        int32_t rank = (int32_t)draw_below(5);
        tn_tensor tensors[NUM_OPERANDS] = {{0}};
        for (int32_t axis = 0; axis < rank; axis++)
            extent[axis] = 1 + draw_below(5);
        for (uint32_t k = 0; k < NUM_OPERANDS; k++) {
            // An input may lack leading axes, and be broadcast along others.
            int32_t missing = k < 2 && rank ? (int32_t)draw_below(rank + 1) : 0;
            for (int32_t axis = missing; axis < rank; axis++)
                own[axis - missing] = k < 2 && draw_below(4) == 0 ? 1 : extent[axis];
            draw_layout(&tensors[k].layout, rank - missing, own);
            tensors[k].data = memory[k];
            for (int i = 0; i < MAX_ELEMENTS; i++)
                memory[k][i] = (float)(k < 2 ? i % 997 : -1);
        }
        check_rows(tensors, 1 + draw_below(100));
    }
}

Test(pack, contiguous_operands_are_one_long_row, .init = draw_seed)
{
    static float memory[NUM_OPERANDS][60];
    tn_tensor tensors[NUM_OPERANDS];
    for (uint32_t k = 0; k < NUM_OPERANDS; k++)
        tensors[k] = (tn_tensor){
            .data = memory[k],
            .layout = {
                .dtype = TN_F32, .rank = 3, .extent = {3, 4, 5}, .stride = {20, 5, 1}}};
    check_rows(tensors, 60);
    cr_assert(eq(i64, longest, 60));
}

// --- failures --------------------------------------------------------------------------

static tn_status note_failure(const tn_host *host, tn_status status, const char *format,
                              ...)
{
    (void)host, (void)format;
    return status;
}

Test(pack, too_many_operands_are_refused)
{
    tn_tensor tensors[TN_ROW_MAX_OPERANDS + 1] = {{0}};
    const tn_host host = {.struct_size = sizeof(host), .fail = note_failure};
    const tn_cpu_call call = {.struct_size = sizeof(call),
                              .host = &host,
                              .inputs = tensors,
                              .outputs = &tensors[TN_ROW_MAX_OPERANDS],
                              .num_inputs = TN_ROW_MAX_OPERANDS,
                              .num_outputs = 1,
                              .parallel_for = in_pieces};
    cr_assert(eq(int, tn_for_rows(&call, 1, add_rows), TN_ERR_UNSUPPORTED));
}
