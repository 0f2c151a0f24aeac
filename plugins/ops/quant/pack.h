// SPDX-License-Identifier: MIT
// Shared by this pack's files: the list of its primitives, formats by name, blocks of any
// array, and the checks of arguments.
#ifndef QUANT_PACK_H
#define QUANT_PACK_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <tenon/checked.h>
#include <tenon/kernel.h>
#include <tenon/ops/quant.h>
#include <tenon/ops/quant_attrs.h>
#include <tenon/ops/reference.h>
#include <tenon/ops/rules.h>
#include <tenon/plugin.h>
#include <tenon/primitive.h>

// The primitives: X(name) for quant_<name>.
#define QUANT_PRIMITIVES(X)                                                                \
    X(dequantize)                                                                          \
    X(quantize)                                                                            \
    X(matmul)                                                                              \
    X(normed)                                                                              \
    X(experts)                                                                             \
    X(take)                                                                                \
    X(pack)                                                                                \
    X(cache_update)                                                                        \
    X(cached_attention)                                                                    \
    X(groupwise_quantize)                                                                  \
    X(groupwise_dequantize)                                                                \
    X(groupwise_matmul)                                                                    \
    X(groupwise_gather_matmul)
#define QUANT_DECLARE(name) extern const tn_primitive quant_##name;
QUANT_PRIMITIVES(QUANT_DECLARE)
#undef QUANT_DECLARE
extern const tn_kernel quant_quantize_kernel, quant_cache_update_kernel;

// --- formats (formats.c) ----------------------------------------------------------------

// A format by its name, or by the id of a packing, whose format `plain` is then.
struct format {
    const tn_quant_format *plain;
    const tn_packing *packing; // NULL: rows are plain
};

// Gives the format named `name`, or the packing, of the tables or of a plugin. Fails with
// the known names.
tn_status find_format(const tn_host *host, const char *name, struct format *out);

// Encodes a block, or NULL: a plugin's format that has no rule for it.
typedef void encode_fn(const float *values, uint8_t *out);
encode_fn *format_encoder(const tn_quant_format *format);

// Encodes a block whose squared errors count by weights, which are positive and finite; or
// NULL: the format's encoder has no use for them.
typedef void weigh_fn(const float *values, const float *weights, uint8_t *out);
weigh_fn *format_weigher(const tn_quant_format *format);

// Whether w is of blocks, by an attribute that says `format` of these and nothing of
// floats.
static inline bool is_blocks(const char *format)
{
    return format && *format;
}

// --- products (matmul.c, normed.c) ------------------------------------------------------

// Gives the type of x times the transposed matrix of w, or fails.
tn_status product_type(const tn_host *host, const char *format_name, const tn_type *x,
                       const tn_type *w, tn_type *out);

// A rule of tn_pair_rule, for quant.quantized_matmul/1 with nn.rms_norm/1.
tn_status rewrite_norm(const tn_build *build, const tn_rule *rule, const tn_rule *made,
                       tn_array **output);

// --- weights (weights.c) ----------------------------------------------------------------

// Fails unless w is made of rows of whole blocks. Gives the elements of a row.
tn_status check_weights(const tn_host *host, const char *name, const struct format *format,
                        const tn_type *w, int64_t *out_k);

// Gives the bytes of a row of w in the format, where it has n rows of k elements.
tn_status rows_size(const tn_host *host, const struct format *format, int64_t n, int64_t k,
                    int64_t *out_bytes);

// Rows of k elements, of a matrix in an array of any layout: plain ones, and in groups
// those that a packing has together.
struct rows {
    const tn_host *host;
    const struct format *format;
    const tn_tensor *tensor;
    int64_t first;              // offset of the first byte
    int64_t n, k, width;        // rows, elements of one, and its bytes in the array
    int64_t bytes;              // of a plain row
    int64_t group, group_bytes; // rows that are unpacked together, and their packed bytes
    int64_t room;               // bytes at `packed`
    int64_t held;               // the row that `plain` begins with; -1: none
    uint8_t *plain, *packed;    // owned
};

// Gives the rows of the first matrix of w, which has rows. rows_close() comes after
// success.
tn_status rows_open(const tn_host *host, const struct format *format, const tn_tensor *w,
                    int64_t k, struct rows *out);
void rows_close(struct rows *rows);

// Moves to the matrix at `index`, whose last two entries are 0.
void rows_move(struct rows *rows, const int64_t *index);

// The bytes of a row as a plain one, until the next call.
const uint8_t *rows_read(struct rows *rows, int64_t row);

// Stores the plain rows at rows->plain as the group that begins with row `first`.
void rows_write(struct rows *rows, int64_t first);

// Decodes row `row`: k floats.
void rows_decode(struct rows *rows, int64_t row, float *out);

// Row `row` of k elements of the matrix that `index` leads to: out of the blocks of `rows`
// or, where this is NULL, of floats. `out` has room for k floats behind them.
void row_values(const tn_tensor *w, struct rows *rows, const int64_t *index, int64_t row,
                int64_t k, double *out);

// The next matrix of an array of rank `rank`: an index whose last two entries stay 0. False
// after the last.
bool next_matrix(int32_t rank, const int64_t *extent, int64_t *index);

// The row of n, or the matrix, that an id means: negative ones count from the end.
static inline int64_t row_of(const tn_tensor *ids, int64_t at, int64_t n)
{
    int64_t id = tn_get_i64(ids, at);
    if (id < 0)
        id = ids->layout.dtype == TN_U64 ? n : id + n;
    return id < 0 ? 0 : id < n ? id : n - 1;
}

#define SHAPE_TEXT 200
// Writes "[256, 512]" to `buffer`, and returns `buffer`.
const char *shape_text(const tn_type *type, char buffer[SHAPE_TEXT]);

// Status of a rule that built `array`. The builder has recorded the failure behind a NULL.
static inline tn_status built(const tn_array *array)
{
    return array ? TN_OK : TN_ERR_ARGUMENT;
}

// `array` as `dtype`.
static inline tn_array *cast(const tn_build *build, tn_array *array, tn_dtype dtype)
{
    const tn_type *type = build->type(array);
    return type && type->dtype == dtype ? array
                                        : build->op(build, "base.astype/1", TN_IN(array),
                                                    tn_attrs("dtype", (int64_t)dtype));
}

#endif // QUANT_PACK_H
