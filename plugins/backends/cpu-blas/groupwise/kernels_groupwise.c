// SPDX-License-Identifier: MIT
// Pack "quant": products with words of groupwise codes, some of which indices choose, and
// the elements of such words.
//
// Few rows of x are multiplied in the time of reading the words, which become f32 in
// registers (kernels/cpu/quant/groupwise.h), or are multiplied as bytes with x rounded to
// bytes, unless the product is to be exact. For more rows, and for matrices that are not
// transposed, some columns become f32 in the worker's scratch memory, which BLAS reads: it
// needs less time for a row, and the time of decoding beside. Successive products of a
// batch that share a matrix are one. x and results of 16 bits are f32 in scratch memory.
#include <limits.h>
#include <string.h>
#include <tenon/ops/quant_attrs.h>
#include "blas/blas.h"
#include "ops/kernels.h"

#define FEW 8                 // rows of x that words are read for in registers
#define ROUNDED 64            // rows of x that are rounded together
#define MOST_EXACT 20         // rows of x up to which BLAS is slower
#define MOST_ROUNDED 64       // the same where x is rounded
#define PIECE_WORK 65536      // multiplications of a piece of a loop, at least
#define WIDENED_BYTES 4194304 // of elements as f32, of one worker
#define COLUMNS 16            // of a piece, at least

// A launch. Strides are whole: arrays lie without gaps.
struct groupwise_run {
    const struct cpu_groupwise_kernels *kernels;
    const struct cpu_groupwise_rounding *rounding; // of rows of x; NULL: none
    const struct cpu_kernels *maps;
    const struct blas *blas;
    struct cpu_groupwise w;
    const tn_cpu_call *call;
    tn_dtype scales_dtype, biases_dtype;
    const uint8_t *words, *scales, *biases; // of the current matrix
    const float *x;                         // of the current product
    float *out;
    int64_t rows, n, k, w_rows; // of a product; rows of a matrix of words
    int64_t columns_each;       // of a piece
    int64_t most_rows;          // of x that are multiplied together
    bool is_transposed;
    float numbers[256]; // that scales of u8 are
    float *prepared;
    uint8_t *scratch; // of the workers
    uint64_t part;    // bytes of each
};

static uint64_t cpu_groupwise_aligned(uint64_t bytes)
{
    return tn_saturated_add(bytes, 63) / 64 * 64;
}

static uint64_t float_bytes(int64_t a, int64_t b)
{
    return cpu_groupwise_aligned(tn_saturated_multiply(
        tn_saturated_multiply((uint64_t)a, (uint64_t)b), sizeof(float)));
}

static int64_t count_matrices(const tn_layout *layout)
{
    int64_t count = 1;
    for (int32_t i = 0; i < layout->rank - 2; i++)
        count *= layout->extent[i];
    return count;
}

// --- rows of words ----------------------------------------------------------------------

// `count` numbers from `at` on of an array as floats; `room` where they are not.
static const float *as_floats(const struct groupwise_run *r, const uint8_t *data,
                              tn_dtype dtype, int64_t at, int64_t count, float *room)
{
    const void *from = data + at * tn_dtype_bytes(dtype);
    if (dtype == TN_F32)
        return from;
    if (dtype == TN_U8)
        for (int64_t i = 0; i < count; i++)
            room[i] = r->numbers[((const uint8_t *)from)[i]];
    else
        r->maps->cast[dtype][TN_F32](room, &from, count, 0);
    return room;
}

// Row `row` of the current matrix, from group `group` on, `groups` of them. `room` has 2 *
// groups floats.
static struct cpu_groupwise_row cpu_groupwise_row_of(const struct groupwise_run *r,
                                                     int64_t row, int64_t row_groups,
                                                     int64_t group, int64_t groups,
                                                     float *room)
{
    const int64_t at = row * row_groups + group, words = r->w.group * r->w.bits / 32;
    struct cpu_groupwise_row out = {
        .words = (const uint32_t *)(const void *)r->words + at * words,
        .scales = as_floats(r, r->scales, r->scales_dtype, at, groups, room)};
    if (r->w.mode == TN_GROUPWISE_affine)
        out.biases = as_floats(r, r->biases, r->biases_dtype, at, groups, room + groups);
    return out;
}

// --- few rows ---------------------------------------------------------------------------

// Pieces of columns.
static void cpu_groupwise_multiply_few(void *context, int64_t begin, int64_t end,
                                       uint32_t worker)
{
    const struct groupwise_run *r = context;
    float *room = (float *)(void *)(r->scratch + worker * r->part);
    int64_t groups = r->k / r->w.group, last = end * COLUMNS < r->n ? end * COLUMNS : r->n;
    const int64_t step = cpu_groupwise_prepared(r->k, r->w.group);
    for (int64_t column = begin * COLUMNS; column < last; column += COLUMNS) {
        const int64_t columns = last - column < COLUMNS ? last - column : COLUMNS;
        const struct cpu_groupwise_row row =
            cpu_groupwise_row_of(r, column, groups, 0, columns * groups, room);
        for (int64_t t = 0; t < r->rows; t += CPU_GROUPWISE_ROWS) {
            int64_t count =
                r->rows - t < CPU_GROUPWISE_ROWS ? r->rows - t : CPU_GROUPWISE_ROWS;
            (r->rounding ? r->rounding->dot
                         : r->kernels->dot)(&r->w, &row, columns, r->prepared + t * step,
                                            count, r->out + t * r->n + column, r->n);
        }
    }
}

static void cpu_groupwise_prepare_rows(void *context, int64_t begin, int64_t end,
                                       uint32_t worker)
{
    const struct groupwise_run *r = context;
    const int64_t step = cpu_groupwise_prepared(r->k, r->w.group);
    (void)worker;
    for (int64_t t = begin; t < end; t++)
        (r->rounding ? r->rounding->prepare : r->kernels->prepare)(&r->w, r->x + t * r->k,
                                                                   r->prepared + t * step);
}

static void cpu_groupwise_launch_few(struct groupwise_run *r)
{
    r->call->parallel_for(r->call, r->rows, 1 + PIECE_WORK / 4 / r->k,
                          cpu_groupwise_prepare_rows, r);
    r->call->parallel_for(r->call, (r->n + COLUMNS - 1) / COLUMNS,
                          1 + PIECE_WORK / (r->rows * r->k * COLUMNS + 1),
                          cpu_groupwise_multiply_few, r);
}

// Rows of x that are prepared together.
static int64_t prepared_rows(const struct groupwise_run *r)
{
    return r->rounding ? ROUNDED : FEW;
}

static tn_status launch_prepared(const struct groupwise_run *all)
{
    for (int64_t row = 0; row < all->rows; row += prepared_rows(all)) {
        const int64_t left = all->rows - row;
        struct groupwise_run r = *all;
        r.rows = left < prepared_rows(all) ? left : prepared_rows(all);
        r.x += row * r.k;
        r.out += row * r.n;
        cpu_groupwise_launch_few(&r);
    }
    return TN_OK;
}

// --- many rows --------------------------------------------------------------------------

// Columns that become floats together: whole groups where these are along a row.
static int64_t cpu_groupwise_widened_columns(int64_t n, int64_t k, int64_t group,
                                             bool is_transposed)
{
    const int64_t unit = is_transposed ? COLUMNS : group > COLUMNS ? group : COLUMNS;
    int64_t most = WIDENED_BYTES / (int64_t)sizeof(float) / (k > 0 ? k : 1) / unit * unit;
    most = most < 4 * unit ? 4 * unit : most;
    return most < n ? most : (n + unit - 1) / unit * unit;
}

// Rows of a matrix that is not transposed that become floats together.
static int64_t widened_rows(int64_t columns)
{
    const int64_t most =
        WIDENED_BYTES / (int64_t)sizeof(float) / (columns > 0 ? columns : 1);
    return most < 1 ? 1 : most;
}

static void multiply_transposed(const struct groupwise_run *r, int64_t first, int64_t count,
                                float *values, float *room)
{
    const int64_t k = r->k, groups = k / r->w.group;
    for (int64_t i = 0; i < count; i++) {
        const struct cpu_groupwise_row row =
            cpu_groupwise_row_of(r, first + i, groups, 0, groups, room);
        r->kernels->decode(&r->w, &row, values + i * k);
    }
    r->blas->sgemm(BLAS_ROW_MAJOR, BLAS_NO_TRANS, BLAS_TRANS, (int)r->rows, (int)count,
                   (int)k, 1, r->x, (int)k, values, (int)k, 0, r->out + first, (int)r->n);
}

static void multiply_plain(const struct groupwise_run *r, int64_t first, int64_t count,
                           float *values, float *room)
{
    const int64_t group = r->w.group, most = widened_rows(count);
    struct cpu_groupwise part = r->w;
    part.k = count;
    for (int64_t row = 0; row < r->k; row += most) {
        const int64_t rows = r->k - row < most ? r->k - row : most;
        for (int64_t i = 0; i < rows; i++) {
            const struct cpu_groupwise_row at = cpu_groupwise_row_of(
                r, row + i, r->n / group, first / group, count / group, room);
            r->kernels->decode(&part, &at, values + i * count);
        }
        r->blas->sgemm(BLAS_ROW_MAJOR, BLAS_NO_TRANS, BLAS_NO_TRANS, (int)r->rows,
                       (int)count, (int)rows, 1, r->x + row, (int)r->k, values, (int)count,
                       row > 0, r->out + first, (int)r->n);
    }
}

// Pieces of columns_each columns.
static void cpu_groupwise_multiply_widened(void *context, int64_t begin, int64_t end,
                                           uint32_t worker)
{
    const struct groupwise_run *r = context;
    float *room = (float *)(void *)(r->scratch + worker * r->part);
    const int64_t groups = (r->is_transposed ? r->k : r->n) / r->w.group;
    float *values = room + (2 * groups + 15) / 16 * 16;
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t first = piece * r->columns_each, left = r->n - first;
        const int64_t count = left < r->columns_each ? left : r->columns_each;
        if (r->is_transposed)
            multiply_transposed(r, first, count, values, room);
        else
            multiply_plain(r, first, count, values, room);
    }
}

static tn_status cpu_groupwise_launch_many(struct groupwise_run *r)
{
    tn_status status = blas_enter(r->call, &r->blas);
    if (status != TN_OK)
        return status;
    r->columns_each =
        cpu_groupwise_widened_columns(r->n, r->k, r->w.group, r->is_transposed);
    int64_t pieces = (r->n + r->columns_each - 1) / r->columns_each;
    int64_t work = r->rows * r->k * r->columns_each;
    if (blas_is_threaded())
        cpu_groupwise_multiply_widened(r, 0, pieces, 0);
    else
        r->call->parallel_for(r->call, pieces, 1 + PIECE_WORK / (work + 1),
                              cpu_groupwise_multiply_widened, r);
    blas_leave();
    return TN_OK;
}

// --- batches ----------------------------------------------------------------------------

// The number of the matrix of input `i` that is used at `index` of the result's batch axes:
// by its own axes, which broadcast, or by indices, input `ids`, where these are given.
static int64_t cpu_groupwise_matrix_at(const tn_cpu_call *call, uint32_t i, uint32_t ids,
                                       const int64_t *index, int32_t batches)
{
    const bool is_chosen = ids < call->num_inputs && call->inputs[ids].data;
    const tn_layout *layout = &call->inputs[is_chosen ? ids : i].layout;
    const int32_t own = is_chosen ? layout->rank : layout->rank > 2 ? layout->rank - 2 : 0;
    int64_t at = 0;
    for (int32_t axis = 0; axis < own; axis++)
        at = at * layout->extent[axis] +
             (layout->extent[axis] == 1 ? 0 : index[batches - own + axis]);
    if (!is_chosen)
        return at;
    const tn_tensor *numbers = &call->inputs[ids];
    const int64_t n = count_matrices(&call->inputs[i].layout);
    int64_t id = tn_get_i64(numbers, numbers->layout.offset + at);
    if (id < 0)
        id = numbers->layout.dtype == TN_U64 ? n : id + n;
    return id < 0 ? 0 : id < n ? id : n - 1;
}

static bool is_prepared(const struct groupwise_run *r)
{
    const int64_t most = r->rounding ? MOST_ROUNDED : MOST_EXACT;
    return r->is_transposed && (r->rows <= most || !blas_open());
}

static tn_status multiply_matrix(struct groupwise_run *r, int64_t matrix)
{
    const tn_cpu_call *call = r->call;
    const int64_t groups = r->w_rows * (r->is_transposed ? r->k : r->n) / r->w.group;
    const int64_t at = matrix * groups;
    const uint8_t *words = first_element(&call->inputs[1]);
    const uint8_t *scales = first_element(&call->inputs[2]);
    r->words = words + at * (r->w.group * r->w.bits / 8);
    r->scales = scales + at * tn_dtype_bytes(r->scales_dtype);
    if (r->w.mode == TN_GROUPWISE_affine)
        r->biases = (const uint8_t *)first_element(&call->inputs[3]) +
                    at * tn_dtype_bytes(r->biases_dtype);
    return is_prepared(r) ? launch_prepared(r) : cpu_groupwise_launch_many(r);
}

// Successive products of a batch that share a matrix, and whose matrices of x lie one
// behind the other, are one product.
static tn_status multiply_batches(struct groupwise_run *r, int32_t batches, const float *x,
                                  float *out)
{
    const tn_layout *layout = &r->call->outputs[0].layout;
    const int64_t each = r->rows;
    int64_t index[TN_MAX_RANK] = {0},
            w = cpu_groupwise_matrix_at(r->call, 1, 5, index, batches);
    int64_t from = cpu_groupwise_matrix_at(r->call, 0, 4, index, batches), count = 1;
    tn_status status = TN_OK;
    bool is_more;
    do {
        is_more = tn_index_next(batches, layout->extent, index);
        const int64_t next_w =
            is_more ? cpu_groupwise_matrix_at(r->call, 1, 5, index, batches) : -1;
        const int64_t next =
            is_more ? cpu_groupwise_matrix_at(r->call, 0, 4, index, batches) : -1;
        if (next_w == w && next == from + count && (count + 1) * each <= r->most_rows) {
            count++;
            continue;
        }
        r->rows = count * each;
        r->x = x + from * each * r->k;
        r->out = out;
        status = multiply_matrix(r, w);
        out += r->rows * r->n;
        w = next_w;
        from = next;
        count = 1;
    } while (is_more && status == TN_OK);
    return status;
}

// --- launches ---------------------------------------------------------------------------

// `mode`, `bits` and `group` are the first members of all structs of attributes; 0 stands
// for the mode's default.
static struct cpu_groupwise cpu_groupwise_format_of(const void *attrs)
{
    static const int32_t usual[][2] = {
#define USUAL(name, bits, group) {bits, group},
        TN_GROUPWISE_MODES(USUAL)
#undef USUAL
    };
    const tn_groupwise_quantize_attrs *a = attrs;
    return (struct cpu_groupwise){
        .mode = (int32_t)a->mode,
        .bits = a->bits ? (int32_t)a->bits : usual[a->mode][0],
        .group = a->group ? (int32_t)a->group : usual[a->mode][1],
    };
}

static const struct cpu_groupwise_kernels *groupwise_variant(const tn_cpu_call *call)
{
    return cpu_groupwise_pick((call->cpu_features & TN_CPU_AVX2 ? CPU_HAS_AVX2 : 0) |
                              (call->cpu_features & TN_CPU_AVX512 ? CPU_HAS_AVX512 : 0));
}

// Bytes of all prepared rows of x that may be one product.
static uint64_t prepared_bytes(const void *attrs, const tn_layout *x, int64_t group)
{
    const int64_t k = x->extent[x->rank - 1], rows = k > 0 ? count_elements(x) / k : 0;
    const int64_t most = ((const tn_groupwise_matmul_attrs *)attrs)->exact ? FEW : ROUNDED;
    return float_bytes(rows < most ? rows : most, cpu_groupwise_prepared(k, group));
}

static uint64_t cpu_groupwise_worker_bytes(int64_t n, int64_t k, int64_t group,
                                           bool is_transposed)
{
    const int64_t columns = cpu_groupwise_widened_columns(n, k, group, is_transposed);
    const int64_t rows =
        is_transposed || widened_rows(columns) > k ? k : widened_rows(columns);
    return tn_saturated_add(float_bytes(2 * COLUMNS, (is_transposed ? k : n) / group + 16),
                            float_bytes(columns, rows));
}

static uint64_t other_bytes(const tn_layout *layout)
{
    return layout->dtype == TN_F32 ? 0 : float_bytes(count_elements(layout), 1);
}

static bool is_transposed(const void *attrs)
{
    return ((const tn_groupwise_matmul_attrs *)attrs)->transpose;
}

static uint64_t cpu_groupwise_product_scratch(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0], *out = &query->outputs[0];
    const struct cpu_groupwise w = cpu_groupwise_format_of(query->attrs);
    const int64_t k = x->extent[x->rank - 1], n = out->extent[out->rank - 1];
    uint64_t bytes = tn_saturated_add(other_bytes(x), other_bytes(out));
    bytes = tn_saturated_add(bytes, prepared_bytes(query->attrs, x, w.group));
    return tn_saturated_add(
        bytes, tn_saturated_multiply(
                   cpu_groupwise_worker_bytes(n, k, w.group, is_transposed(query->attrs)),
                   query->num_workers));
}

static void cpu_groupwise_read_numbers(struct groupwise_run *r)
{
    for (int32_t i = 0; i < 256 && r->scales_dtype == TN_U8; i++)
        r->numbers[i] = tn_groupwise_scale(r->w.mode, (uint8_t)i);
}

static tn_status groupwise_product(const tn_cpu_call *call)
{
    const tn_layout *x = &call->inputs[0].layout, *out = &call->outputs[0].layout;
    const int32_t axes = x->rank > 1 ? 2 : 1;
    const int64_t count = count_elements(out), given = count_elements(x);
    struct groupwise_run r = {
        .kernels = groupwise_variant(call),
        .maps = kernel_variant(call),
        .w = cpu_groupwise_format_of(call->attrs),
        .call = call,
        .scales_dtype = call->inputs[2].layout.dtype,
        .biases_dtype = call->num_inputs > 3 ? call->inputs[3].layout.dtype : TN_DTYPE_NONE,
        .rows = axes > 1 ? x->extent[x->rank - 2] : 1,
        .k = x->extent[x->rank - 1],
        .n = out->extent[out->rank - 1],
        .w_rows = call->inputs[1].layout.extent[call->inputs[1].layout.rank - 2],
        .most_rows = blas_open() ? INT_MAX : FEW,
        .is_transposed = is_transposed(call->attrs),
    };
    uint8_t *scratch = call->scratch;
    const void *from = first_element(&call->inputs[0]);
    void *to = first_element(&call->outputs[0]);
    if (count == 0)
        return TN_OK;
    if (r.k == 0) {
        memset(to, 0, (size_t)(count * tn_dtype_bytes(out->dtype)));
        return TN_OK;
    }
    const float *floats = from;
    float *results = to;
    if (x->dtype != TN_F32) {
        r.maps->cast[x->dtype][TN_F32](scratch, &from, given, 0);
        floats = (const float *)(const void *)scratch;
        scratch += other_bytes(x);
    }
    if (out->dtype != TN_F32) {
        results = (float *)(void *)scratch;
        scratch += other_bytes(out);
    }
    cpu_groupwise_read_numbers(&r);
    r.w.k = r.is_transposed ? r.k : r.n;
    if (!((const tn_groupwise_matmul_attrs *)call->attrs)->exact)
        r.rounding = cpu_groupwise_rounding_pick(
            &r.w, (call->cpu_features & TN_CPU_AVX512 ? CPU_HAS_AVX512 : 0) |
                      (call->cpu_features & TN_CPU_VNNI ? CPU_HAS_VNNI : 0));
    r.prepared = (float *)(void *)scratch;
    r.scratch = scratch + prepared_bytes(call->attrs, x, r.w.group);
    r.part = cpu_groupwise_worker_bytes(r.n, r.k, r.w.group, r.is_transposed);
    tn_status status = multiply_batches(&r, out->rank - axes, floats, results);
    const void *done = results;
    if (status == TN_OK && out->dtype != TN_F32)
        r.maps->cast[TN_F32][out->dtype](to, &done, count, 0);
    return status;
}

static int32_t product_accepts(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0], *out = &query->outputs[0];
    const int64_t rows = x->rank > 1 ? x->extent[x->rank - 2] : 1;
    const bool is_few = is_transposed(query->attrs) && rows <= FEW;
    return (is_few || blas_open()) && rows <= INT_MAX &&
           x->extent[x->rank - 1] <= INT_MAX && out->extent[out->rank - 1] <= INT_MAX;
}

// --- values -----------------------------------------------------------------------------

static void decode_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct groupwise_run *r = context;
    const tn_dtype dtype = r->call->outputs[0].layout.dtype;
    uint8_t *to = first_element(&r->call->outputs[0]);
    float *room = (float *)(void *)(r->scratch + worker * r->part);
    const int64_t k = r->w.k, groups = k / r->w.group;
    float *values = room + (2 * groups + 15) / 16 * 16;
    for (int64_t row = begin; row < end; row++) {
        const struct cpu_groupwise_row at =
            cpu_groupwise_row_of(r, row, groups, 0, groups, room);
        uint8_t *out = to + row * k * tn_dtype_bytes(dtype);
        r->kernels->decode(&r->w, &at, dtype == TN_F32 ? (float *)(void *)out : values);
        const void *from = values;
        if (dtype != TN_F32)
            r->maps->cast[TN_F32][dtype](out, &from, k, 0);
    }
}

static uint64_t cpu_groupwise_row_bytes(int64_t k, int64_t group)
{
    return tn_saturated_add(float_bytes(2, k / group + 16), float_bytes(k, 1));
}

static uint64_t values_scratch(const tn_kernel_query *query)
{
    const tn_layout *out = &query->outputs[0];
    return tn_saturated_multiply(
        cpu_groupwise_row_bytes(out->extent[out->rank - 1],
                                cpu_groupwise_format_of(query->attrs).group),
        query->num_workers);
}

// Codes with a factor of the whole matrix are left to the decomposition.
static int32_t values_accepts(const tn_kernel_query *query)
{
    return query->num_inputs < 4 || query->inputs[3].dtype == TN_DTYPE_NONE;
}

static tn_status groupwise_values(const tn_cpu_call *call)
{
    const tn_layout *out = &call->outputs[0].layout;
    const int64_t count = count_elements(out), k = out->extent[out->rank - 1];
    if (count == 0)
        return TN_OK;
    struct groupwise_run r = {
        .kernels = groupwise_variant(call),
        .maps = kernel_variant(call),
        .w = cpu_groupwise_format_of(call->attrs),
        .call = call,
        .words = first_element(&call->inputs[0]),
        .scales = first_element(&call->inputs[1]),
        .scales_dtype = call->inputs[1].layout.dtype,
        .scratch = call->scratch,
    };
    if (r.w.mode == TN_GROUPWISE_affine) {
        r.biases = first_element(&call->inputs[2]);
        r.biases_dtype = call->inputs[2].layout.dtype;
    }
    cpu_groupwise_read_numbers(&r);
    r.w.k = k;
    r.part = cpu_groupwise_row_bytes(k, r.w.group);
    call->parallel_for(call, count / k, 1 + PIECE_WORK / 8 / k, decode_rows, &r);
    return TN_OK;
}

// --- records ----------------------------------------------------------------------------

#define ONE(dtype) TN_DTYPE_BIT(dtype)
#define FLOATS (ONE(TN_F16) | ONE(TN_BF16) | ONE(TN_F32))
#define WEIGHTS                                                                            \
    {ONE(TN_U32), TN_NEEDS_CONTIGUOUS}, {FLOATS | ONE(TN_U8), TN_NEEDS_CONTIGUOUS},        \
    {                                                                                      \
        FLOATS, TN_NEEDS_CONTIGUOUS                                                        \
    }
static const tn_operand_rule matmul_rules[] = {
    {FLOATS, TN_NEEDS_CONTIGUOUS}, WEIGHTS, {FLOATS, TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule gather_rules[] = {{FLOATS, TN_NEEDS_CONTIGUOUS},
                                               WEIGHTS,
                                               {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
                                               {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
                                               {FLOATS, TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule values_rules[] = {
    WEIGHTS, {ONE(TN_F32), TN_NEEDS_CONTIGUOUS}, {FLOATS, TN_NEEDS_CONTIGUOUS}};

#define RECORD(id, function, text, rules, ...)                                             \
    static const tn_cpu_kernel id##_payload = {.struct_size = sizeof(tn_cpu_kernel),       \
                                               .launch = function};                        \
    const tn_kernel id##_kernel = {.struct_size = sizeof(tn_kernel),                       \
                                   .primitive = text,                                      \
                                   .family = TN_FAMILY_CPU,                                \
                                   .name = #id,                                            \
                                   .priority = 700,                                        \
                                   TN_OPERANDS(rules),                                     \
                                   .payload = &id##_payload,                               \
                                   __VA_ARGS__}
RECORD(groupwise_matmul, groupwise_product, "quant.groupwise_matmul/1", matmul_rules,
       .accepts = product_accepts, .scratch_size = cpu_groupwise_product_scratch);
RECORD(groupwise_gather_matmul, groupwise_product, "quant.groupwise_gather_matmul/1",
       gather_rules, .accepts = product_accepts,
       .scratch_size = cpu_groupwise_product_scratch);
RECORD(groupwise_dequantize, groupwise_values, "quant.groupwise_dequantize/1", values_rules,
       .accepts = values_accepts, .scratch_size = values_scratch);
