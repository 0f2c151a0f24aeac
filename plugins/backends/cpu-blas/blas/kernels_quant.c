// SPDX-License-Identifier: MIT
// Pack "quant": products with weights of a few bits an element, rows of them as floats, and
// packing.
//
// Of packed formats, x is rounded to bytes, and the kernels of kernels/cpu/quant/quant.h
// multiply 16 rows of weights at a time: the weights are read once for the rows of x that
// fit the second-level cache, so that one row of x takes the time of reading the weights.
// Of other formats, and where the product has to be exact, some rows of weights become
// floats in the worker's scratch memory, which f32 products read.
#include <limits.h>
#include <string.h>
#include <tenon/ops/quant_attrs.h>
#include "quant_matmul.h"
#include "blas.h"
#include "ops/kernels.h"

#define GROUP TN_QUANT_PACKED_ROWS
#define PIECE_WORK 65536     // multiplications of a piece of a loop, at least
#define CACHED_BYTES 131072  // of rounded rows of x that groups of weights share
#define DECODED_BYTES 131072 // of rows of weights as floats, of one worker
#define PIECE_BYTES 16384    // written by a piece of a loop, at least
#define BLOCK_BYTES 32768    // of results that pass through a program together

// A matrix of blocks in memory without gaps.
struct cpu_quant_weights {
    const uint8_t *data;
    int64_t n, k, row_bytes, block_bytes;
    uint32_t format;      // number in TN_QUANT_FORMATS
    int32_t packed;       // number in TN_QUANT_PACKED_FORMATS, or -1
    tn_quant_order order; // of packed rows
};

// A launch.
struct quant_run {
    const struct cpu_quant_kernels *quant;
    const struct cpu_kernels *kernels;
    const struct blas *blas; // NULL: not needed
    struct cpu_quant_weights w;
    const float *x;
    float *out;
    int64_t rows;      // of x, or ids
    int64_t rows_each; // rows of x, or of weights, that are handled together
    uint8_t *scratch;
    uint64_t part; // bytes of scratch memory of each worker
    const tn_tensor *ids;
    const tn_cpu_call *call;
    float *values;    // of each worker: a row of x that passes through a program
    uint8_t *results; // of each worker: a block of those that do; NULL: they lie at `out`
    uint64_t block;   // bytes of it
};

static uint64_t cpu_quant_aligned(uint64_t bytes)
{
    return tn_saturated_add(bytes, 63) / 64 * 64;
}

// --- weights ----------------------------------------------------------------------------

static uint32_t format_number(const tn_quant_format *format)
{
    uint32_t i = 0;
    while (tn_quant_at(i) != format)
        i++;
    return i;
}

static int32_t cpu_quant_packed_number(const char *name)
{
    static const char *const ids[] = {
#define ID(name, plain, ...) TN_QUANT_R16_ID(plain),
        TN_QUANT_PACKED_FORMATS(ID)
#undef ID
    };
    int32_t i = (int32_t)(sizeof(ids) / sizeof(ids[0])) - 1;
    while (i >= 0 && strcmp(ids[i], name) != 0)
        i--;
    return i;
}

// False where the table has no such format.
static bool read_weights(const char *name, const tn_layout *layout,
                         struct cpu_quant_weights *out)
{
    int32_t last = layout->rank - 1;
    tn_quant_order order = {0};
    const tn_quant_format *format = tn_quant_find(name);
    if (!format)
        format = tn_quant_unpacked(name, &order);
    if (!format)
        return false;
    *out = (struct cpu_quant_weights){.n = last > 0 ? layout->extent[last - 1] : 1,
                                      .row_bytes = layout->extent[last],
                                      .block_bytes = format->bytes,
                                      .format = format_number(format),
                                      .packed = cpu_quant_packed_number(name),
                                      .order = order};
    out->k = out->row_bytes / format->bytes * format->block;
    return true;
}

// Copies `size` bytes from plain to packed order if `is_packing`, else back.
static void move_bytes(uint8_t *packed, uint8_t *plain, size_t size, bool is_packing)
{
    memcpy(is_packing ? packed : plain, is_packing ? plain : packed, size);
}

// Copies an arranged block to row `row` of 16 packed ones, or back.
static void move_block(const tn_quant_order *order, uint8_t *group, int64_t row,
                       uint8_t *block, bool is_packing)
{
    int64_t behind = order->bytes - order->head, words = behind / 4, rest = behind % 4;
    for (int32_t i = 0; i < order->head; i += 2)
        move_bytes(group + 16 * i + 2 * row, block + i, 2, is_packing);
    group += GROUP * order->head;
    block += order->head;
    for (int64_t i = 0; i < words; i++)
        move_bytes(group + 64 * i + 4 * row, block + 4 * i, 4, is_packing);
    move_bytes(group + 64 * words + rest * row, block + 4 * words, (size_t)rest,
               is_packing);
}

// Copies the blocks of row `row` of 16 packed rows to `plain`, or back.
static void move_row(const struct cpu_quant_weights *w, uint8_t *group, int64_t row,
                     uint8_t *plain, bool is_packing)
{
    const tn_quant_order *order = &w->order;
    bool is_arranged = order->pieces[1] == order->bytes && order->bits == 0;
    uint8_t room[TN_QUANT_MAX_BYTES];
    for (int64_t at = 0; at < w->row_bytes; at += w->block_bytes) {
        uint8_t *block = is_arranged ? plain + at : room;
        if (is_packing && !is_arranged)
            tn_quant_arrange(order, plain + at, room);
        move_block(order, group + at * GROUP, row, block, is_packing);
        if (!is_packing && !is_arranged)
            tn_quant_restore(order, room, plain + at);
    }
}

static bool is_in_group(const struct cpu_quant_weights *w, int64_t row)
{
    return w->packed >= 0 && row < w->n / GROUP * GROUP;
}

// Row `row` as floats. `room`: a row's bytes.
static void cpu_quant_decode_row(const struct quant_run *r, const uint8_t *data,
                                 int64_t row, uint8_t *room, float *out)
{
    const struct cpu_quant_weights *w = &r->w;
    const uint8_t *from = data + row * w->row_bytes;
    if (is_in_group(w, row)) {
        int64_t first = row / GROUP * GROUP;
        move_row(w, (uint8_t *)data + first * w->row_bytes, row - first, room, false);
        from = room;
    }
    r->quant->decode(w->format, from, w->row_bytes / w->block_bytes, out);
}

static uint64_t plain_room(const struct cpu_quant_weights *w)
{
    return w->packed >= 0 ? cpu_quant_aligned((uint64_t)w->row_bytes) : 0;
}

static int64_t cpu_quant_rows_of(const tn_layout *x)
{
    int64_t rows = 1;
    for (int32_t i = 0; i < x->rank - 1; i++)
        rows *= x->extent[i];
    return rows;
}

// --- products of floats -----------------------------------------------------------------

// Rows of w from `first` on, which are floats at `values`, times all of x.
static void cpu_quant_multiply_floats(const struct quant_run *r, const float *values,
                                      int64_t first, int64_t count)
{
    int64_t k = r->w.k, n = r->w.n;
    if (r->blas && r->rows > CPU_FEW_ROWS) {
        r->blas->sgemm(BLAS_ROW_MAJOR, BLAS_NO_TRANS, BLAS_TRANS, (int)r->rows, (int)count,
                       (int)k, 1, r->x, (int)k, values, (int)k, 0, r->out + first, (int)n);
        return;
    }
    for (int64_t row = 0; row < r->rows; row += CPU_FEW_ROWS) {
        int64_t left = r->rows - row;
        r->kernels->few->by_rows(&(struct cpu_few_rows){
            .a = r->x + row * k,
            .b = values,
            .c = r->out + row * n + first,
            .m = left < CPU_FEW_ROWS ? left : CPU_FEW_ROWS,
            .n = count,
            .k = k,
            .a_row = k,
            .b_row = k,
            .c_row = n,
            .scale = 1,
        });
    }
}

// Pieces of rows_each rows of w.
static void multiply_decoded(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct quant_run *r = context;
    uint8_t *room = r->scratch + worker * r->part;
    float *values = (float *)(void *)(room + plain_room(&r->w));
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t first = piece * r->rows_each, left = r->w.n - first;
        int64_t count = left < r->rows_each ? left : r->rows_each;
        for (int64_t i = 0; i < count; i++)
            cpu_quant_decode_row(r, r->w.data, first + i, room, values + i * r->w.k);
        cpu_quant_multiply_floats(r, values, first, count);
    }
}

// Rows of weights that become floats together.
static int64_t decoded_rows(int64_t k)
{
    int64_t rows = DECODED_BYTES / 4 / (k > 0 ? k : 1) / 4 * 4;
    return rows < 4 ? 4 : rows > 64 ? 64 : rows;
}

static uint64_t decoded_part(const struct cpu_quant_weights *w)
{
    uint64_t row = tn_saturated_multiply((uint64_t)w->k, sizeof(float));
    uint64_t values = tn_saturated_multiply(row, (uint64_t)decoded_rows(w->k));
    return tn_saturated_add(plain_room(w), cpu_quant_aligned(values));
}

static tn_status launch_decoded(const tn_cpu_call *call, struct quant_run *r)
{
    int64_t most = (r->w.n + decoded_rows(r->w.k) - 1) / decoded_rows(r->w.k);
    int64_t work = r->rows * r->w.k * decoded_rows(r->w.k);
    bool needs_blas = r->rows > CPU_FEW_ROWS && blas_open();
    r->rows_each = decoded_rows(r->w.k);
    r->part = decoded_part(&r->w);
    r->scratch = call->scratch;
    tn_status status = needs_blas ? blas_enter(call, &r->blas) : TN_OK;
    if (status)
        return status;
    if (needs_blas && blas_is_threaded())
        multiply_decoded(r, 0, most, 0);
    else
        call->parallel_for(call, most, 1 + PIECE_WORK / (work + 1), multiply_decoded, r);
    if (needs_blas)
        blas_leave();
    return TN_OK;
}

// --- products of bytes ------------------------------------------------------------------

static void round_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct quant_run *r = context;
    int64_t k = r->w.k;
    float *values = r->values + worker * k;
    for (int64_t row = begin; row < end; row++) {
        if (!r->x)
            r->call->load(r->call, 0, row * k, k, values, worker);
        r->quant->round(r->w.packed, r->x ? r->x + row * k : values, k,
                        r->scratch + row * cpu_quant_row_bytes(k));
    }
}

// Computes `count` groups from `group` on, of the rows of x from `row` on.
static void cpu_quant_multiply_block(const struct quant_run *r, int64_t row, int64_t rows,
                                     int64_t group, int64_t count, float *out,
                                     int64_t out_row)
{
    r->quant->product(&(struct cpu_quant_product){
        .w = r->w.data + group * GROUP * r->w.row_bytes,
        .x = r->scratch + row * cpu_quant_row_bytes(r->w.k),
        .out = out,
        .out_row = out_row,
        .k = r->w.k,
        .rows = rows,
        .groups = count,
        .format = r->w.packed,
    });
}

// cpu_quant_multiply_block() by blocks of results, which pass through an epilogue.
static void store_blocks(const struct quant_run *r, int64_t row, int64_t rows,
                         int64_t group, int64_t count, uint32_t worker)
{
    float *block = (float *)(void *)(r->results + worker * r->block);
    int64_t most = (int64_t)r->block / (rows * GROUP * (int64_t)sizeof(float));
    for (int64_t end = group + count; group < end; group += most) {
        int64_t groups = end - group < most ? end - group : most, columns = groups * GROUP;
        cpu_quant_multiply_block(r, row, rows, group, groups, block, columns);
        for (int64_t i = 0; i < rows; i++)
            r->call->store(r->call, 0, (row + i) * r->w.n + group * GROUP, columns,
                           block + i * columns, worker);
    }
}

// Item i: group i % groups of weights, with rows_each rows of x from i / groups on.
static void cpu_quant_multiply_groups(void *context, int64_t begin, int64_t end,
                                      uint32_t worker)
{
    const struct quant_run *r = context;
    int64_t groups = r->w.n / GROUP;
    while (begin < end) {
        int64_t part = begin / groups, group = begin % groups, row = part * r->rows_each;
        int64_t left = groups - group, rows = r->rows - row;
        int64_t count = end - begin < left ? end - begin : left;
        rows = rows < r->rows_each ? rows : r->rows_each;
        if (r->results)
            store_blocks(r, row, rows, group, count, worker);
        else
            cpu_quant_multiply_block(r, row, rows, group, count,
                                     r->out + row * r->w.n + group * GROUP, r->w.n);
        begin += count;
    }
}

// The rows behind the last group, which are plain ones, one by one.
static void multiply_rest(struct quant_run *r, uint8_t *room)
{
    for (int64_t row = r->w.n / GROUP * GROUP; row < r->w.n; row++) {
        float *values = (float *)(void *)room;
        cpu_quant_decode_row(r, r->w.data, row, NULL, values);
        cpu_quant_multiply_floats(r, values, row, 1);
    }
}

// Rows of x that groups of weights share: whole tiles of each variant.
static int64_t shared_rows(int64_t k)
{
    int64_t each = CACHED_BYTES / cpu_quant_row_bytes(k) / 16 * 16;
    return each < 32 ? 32 : each;
}

// Bytes of a worker's block of results: a group of columns at least.
static uint64_t cpu_quant_block_bytes(int64_t k)
{
    uint64_t least = (uint64_t)shared_rows(k) * GROUP * sizeof(float);
    return least > BLOCK_BYTES ? least : BLOCK_BYTES;
}

static void launch_packed(const tn_cpu_call *call, struct quant_run *r)
{
    int64_t bytes = cpu_quant_row_bytes(r->w.k);
    int64_t groups = r->w.n / GROUP, row_work = r->w.k * GROUP;
    r->call = call;
    r->scratch = call->scratch;
    r->rows_each = shared_rows(r->w.k);
    r->values = (float *)(void *)(r->scratch + r->rows * bytes);
    if (!call->outputs[0].data) {
        r->block = cpu_quant_block_bytes(r->w.k);
        r->results = (uint8_t *)(r->values + call->num_threads * r->w.k);
    }
    if (groups > 0) {
        int64_t parts = (r->rows + r->rows_each - 1) / r->rows_each;
        int64_t together = r->rows < r->rows_each ? r->rows : r->rows_each;
        if (r->rows == 1)
            round_rows(r, 0, 1, 0);
        else
            call->parallel_for(call, r->rows, 1 + PIECE_WORK / 4 / r->w.k, round_rows, r);
        call->parallel_for(call, parts * groups, 1 + PIECE_WORK / (row_work * together),
                           cpu_quant_multiply_groups, r);
    }
    multiply_rest(r, (uint8_t *)r->values);
}

// --- the kernels of quant.quantized_matmul ---------------------------------------------

tn_status quant_matmul(const tn_cpu_call *call)
{
    const tn_quant_matmul_attrs *attrs = call->attrs;
    const tn_layout *w = &call->inputs[1].layout;
    struct quant_run r = {.quant = quant_variant(call), .kernels = kernel_variant(call)};
    if (!read_weights(attrs->format, w, &r.w) ||
        count_elements(&call->outputs[0].layout) == 0)
        return TN_OK;
    r.w.data = first_element(&call->inputs[1]);
    r.x = call->inputs[0].data ? first_element(&call->inputs[0]) : NULL;
    r.out = call->outputs[0].data ? first_element(&call->outputs[0]) : NULL;
    r.rows = cpu_quant_rows_of(&call->inputs[0].layout);
    if (r.w.k == 0)
        memset(r.out, 0, (size_t)(r.rows * r.w.n) * sizeof(float));
    else if (r.w.packed < 0 || attrs->exact)
        return launch_decoded(call, &r);
    else
        launch_packed(call, &r);
    return TN_OK;
}

static uint64_t packed_scratch(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0];
    uint64_t k = (uint64_t)x->extent[x->rank - 1], rows = (uint64_t)cpu_quant_rows_of(x);
    uint64_t bytes = tn_saturated_add(cpu_quant_aligned(tn_saturated_add(k, k / 4)), 64);
    uint64_t values = tn_saturated_multiply(k, sizeof(float)), own = 0;
    if (query->fused)
        own = tn_saturated_add(values, k ? cpu_quant_block_bytes((int64_t)k) : 0);
    return tn_saturated_add(
        tn_saturated_multiply(rows, bytes),
        tn_saturated_add(values, tn_saturated_multiply(own, query->num_workers)));
}

static uint64_t decoded_scratch(const tn_kernel_query *query)
{
    const tn_quant_matmul_attrs *attrs = query->attrs;
    struct cpu_quant_weights w;
    if (!read_weights(attrs->format, &query->inputs[1], &w))
        return 0;
    return tn_saturated_multiply(decoded_part(&w), query->num_workers);
}

static bool fits_blas(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0];
    return cpu_quant_rows_of(x) <= INT_MAX && x->extent[x->rank - 1] <= INT_MAX &&
           query->inputs[1].extent[0] <= INT_MAX;
}

static int32_t packed_accepts(const tn_kernel_query *query)
{
    const tn_quant_matmul_attrs *attrs = query->attrs;
    const tn_layout *x = &query->inputs[0];
    bool is_whole = query->inputs[1].extent[0] % GROUP == 0 && x->extent[x->rank - 1] > 0;
    return !attrs->exact && cpu_quant_packed_number(attrs->format) >= 0 &&
           (!query->fused || is_whole);
}

int32_t quant_matmul_accepts(const tn_kernel_query *query)
{
    const tn_quant_matmul_attrs *attrs = query->attrs;
    struct cpu_quant_weights w;
    return !query->fused && read_weights(attrs->format, &query->inputs[1], &w) &&
           fits_blas(query);
}

uint64_t quant_matmul_scratch(const tn_kernel_query *query)
{
    uint64_t packed = packed_scratch(query), decoded = decoded_scratch(query);
    return packed > decoded ? packed : decoded;
}

// --- rows as values ---------------------------------------------------------------------

static void cpu_quant_write_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct quant_run *r = context;
    uint8_t *room = r->scratch ? r->scratch + worker * r->part : NULL;
    for (int64_t i = begin; i < end; i++) {
        int64_t row = i, n = r->w.n;
        const uint8_t *matrix = r->w.data;
        if (r->ids) {
            int64_t at = r->ids->layout.offset + i;
            row = tn_get_i64(r->ids, at);
            if (row < 0)
                row = r->ids->layout.dtype == TN_U64 ? n : row + n;
            row = row < 0 ? 0 : row < n ? row : n - 1;
        } else {
            matrix += i / n * n * r->w.row_bytes;
            row = i % n;
        }
        cpu_quant_decode_row(r, matrix, row, room, r->out + i * r->w.k);
    }
}

static tn_status rows_launch(const tn_cpu_call *call, const char *format,
                             const tn_tensor *ids)
{
    struct quant_run r = {.quant = quant_variant(call), .ids = ids};
    if (!read_weights(format, &call->inputs[0].layout, &r.w) ||
        count_elements(&call->outputs[0].layout) == 0)
        return TN_OK;
    r.w.data = first_element(&call->inputs[0]);
    r.out = first_element(&call->outputs[0]);
    r.scratch = call->scratch;
    r.part = plain_room(&r.w);
    r.rows = cpu_quant_rows_of(&call->outputs[0].layout);
    call->parallel_for(call, r.rows, 1 + PIECE_BYTES / 4 / r.w.k, cpu_quant_write_rows, &r);
    return TN_OK;
}

static tn_status quant_take(const tn_cpu_call *call)
{
    return rows_launch(call, ((const tn_quant_take_attrs *)call->attrs)->format,
                       &call->inputs[1]);
}

static tn_status quant_dequantize(const tn_cpu_call *call)
{
    return rows_launch(call, ((const tn_quant_dequantize_attrs *)call->attrs)->format,
                       NULL);
}

// `format` is the first member of both structs of attributes.
static int32_t rows_accepts(const tn_kernel_query *query)
{
    struct cpu_quant_weights w;
    return read_weights(*(const char *const *)query->attrs, &query->inputs[0], &w);
}

static uint64_t rows_scratch(const tn_kernel_query *query)
{
    struct cpu_quant_weights w;
    if (!read_weights(*(const char *const *)query->attrs, &query->inputs[0], &w))
        return 0;
    return tn_saturated_multiply(plain_room(&w), query->num_workers);
}

// --- packing ----------------------------------------------------------------------------

struct cpu_quant_packing {
    struct cpu_quant_weights w; // of the packed format
    const uint8_t *from;
    uint8_t *to;
    bool is_packing;
};

// Item i: 16 rows, or the rest of a matrix.
static void cpu_quant_pack_groups(void *context, int64_t begin, int64_t end,
                                  uint32_t worker)
{
    const struct cpu_quant_packing *p = context;
    int64_t each = (p->w.n + GROUP - 1) / GROUP;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i % each * GROUP, left = p->w.n - first;
        int64_t at = (i / each * p->w.n + first) * p->w.row_bytes;
        if (left < GROUP) {
            memcpy(p->to + at, p->from + at, (size_t)(left * p->w.row_bytes));
            continue;
        }
        uint8_t *from = (uint8_t *)p->from + at, *to = p->to + at;
        for (int64_t row = 0; row < GROUP; row++)
            move_row(&p->w, p->is_packing ? to : from, row,
                     (p->is_packing ? from : to) + row * p->w.row_bytes, p->is_packing);
    }
}

static tn_status quant_pack(const tn_cpu_call *call)
{
    const tn_quant_pack_attrs *attrs = call->attrs;
    const tn_layout *w = &call->inputs[0].layout;
    struct cpu_quant_packing p = {.is_packing = cpu_quant_packed_number(attrs->to) >= 0,
                                  .from = first_element(&call->inputs[0]),
                                  .to = first_element(&call->outputs[0])};
    int64_t count = count_elements(w);
    bool is_same = (cpu_quant_packed_number(attrs->format) >= 0) == p.is_packing;
    if (count == 0 || is_same ||
        !read_weights(p.is_packing ? attrs->to : attrs->format, w, &p.w)) {
        if (count > 0)
            memcpy(p.to, p.from, (size_t)count);
        return TN_OK;
    }
    int64_t matrices = count / (p.w.n * p.w.row_bytes);
    call->parallel_for(call, matrices * ((p.w.n + GROUP - 1) / GROUP),
                       1 + PIECE_BYTES / (GROUP * p.w.row_bytes), cpu_quant_pack_groups,
                       &p);
    return TN_OK;
}

static int32_t pack_accepts(const tn_kernel_query *query)
{
    const tn_quant_pack_attrs *attrs = query->attrs;
    struct cpu_quant_weights w;
    return read_weights(attrs->format, &query->inputs[0], &w) &&
           read_weights(attrs->to, &query->inputs[0], &w);
}

// --- records ----------------------------------------------------------------------------

#define ONE(dtype) TN_DTYPE_BIT(dtype)
static const tn_operand_rule matmul_rules[] = {
    {ONE(TN_F32), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES},
    {ONE(TN_U8), TN_NEEDS_CONTIGUOUS},
    {ONE(TN_F32), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
static const tn_operand_rule take_rules[] = {{ONE(TN_U8), TN_NEEDS_CONTIGUOUS},
                                             {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
                                             {ONE(TN_F32), TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule dequantize_rules[] = {{ONE(TN_U8), TN_NEEDS_CONTIGUOUS},
                                                   {ONE(TN_F32), TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule pack_rules[] = {{ONE(TN_U8), TN_NEEDS_CONTIGUOUS}};

#define RECORD(id, function, text, order, rules, ...)                                      \
    static const tn_cpu_kernel id##_payload = {.struct_size = sizeof(tn_cpu_kernel),       \
                                               .launch = function};                        \
    const tn_kernel id##_kernel = {.struct_size = sizeof(tn_kernel),                       \
                                   .primitive = text,                                      \
                                   .family = TN_FAMILY_CPU,                                \
                                   .name = #id,                                            \
                                   .priority = order,                                      \
                                   TN_OPERANDS(rules),                                     \
                                   .payload = &id##_payload,                               \
                                   __VA_ARGS__}
RECORD(quant_packed, quant_matmul, "quant.quantized_matmul/1", 700, matmul_rules,
       .accepts = packed_accepts, .scratch_size = packed_scratch);
RECORD(quant_decoded, quant_matmul, "quant.quantized_matmul/1", 600, matmul_rules,
       .accepts = quant_matmul_accepts, .scratch_size = decoded_scratch);
RECORD(quant_take, quant_take, "quant.quantized_take/1", 700, take_rules,
       .accepts = rows_accepts, .scratch_size = rows_scratch);
RECORD(quant_dequantize, quant_dequantize, "quant.dequantize/1", 700, dequantize_rules,
       .accepts = rows_accepts, .scratch_size = rows_scratch);
RECORD(quant_pack, quant_pack, "quant.pack/1", 700, pack_rules, .accepts = pack_accepts);
