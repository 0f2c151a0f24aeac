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

// The primitives, quant_<name>: X(name).
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

// A format by its name, or a packing by its id; then `plain` is the packing's format.
struct format {
    const tn_quant_format *plain;
    const tn_packing *packing; // NULL: rows are plain
};

// Gives the format or packing `name`, from the tables or a plugin. Fails with the known
// names.
tn_status find_format(const tn_host *host, const char *name, struct format *out);

// Encodes a block. NULL: a plugin's format without an encoder.
typedef void encode_fn(const float *values, uint8_t *out);
encode_fn *format_encoder(const tn_quant_format *format);

// Encodes a block whose squared errors have weights, positive and finite. NULL: the
// format's encoder takes no weights.
typedef void weigh_fn(const float *values, const float *weights, uint8_t *out);
weigh_fn *format_weigher(const tn_quant_format *format);

// Whether w is made of blocks, by an attribute that names the format of blocks and is
// absent for floats.
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

// Fails unless w is made of rows of whole blocks. Gives the number of elements of a row.
tn_status check_weights(const tn_host *host, const char *name, const struct format *format,
                        const tn_type *w, int64_t *out_k);

// Gives the bytes of a row of w in the format, for n rows of k elements.
tn_status rows_size(const tn_host *host, const struct format *format, int64_t n, int64_t k,
                    int64_t *out_bytes);

// Rows of k elements, of one matrix in an array of any layout: plain rows, or groups of
// rows that a packing stores together.
struct rows {
    const tn_host *host;
    const struct format *format;
    const tn_tensor *tensor;
    int64_t first;              // offset of the first byte
    int64_t n, k, width;        // rows, elements of a row, bytes of a row in the array
    int64_t bytes;              // of a plain row
    int64_t group, group_bytes; // rows of a group, and their packed bytes
    int64_t room;               // bytes at `packed`
    int64_t held;               // number of the first row in `plain`; -1: none
    uint8_t *plain, *packed;    // owned
};

// Opens the rows of the first matrix of w, which has rows. After success rows_close() is
// due.
tn_status rows_open(const tn_host *host, const struct format *format, const tn_tensor *w,
                    int64_t k, struct rows *out);
void rows_close(struct rows *rows);

// Moves to the matrix at `index`, whose last two entries are 0.
void rows_move(struct rows *rows, const int64_t *index);

// Returns a row's bytes as plain blocks, valid until the next call.
const uint8_t *rows_read(struct rows *rows, int64_t row);

// Stores the plain rows at rows->plain as the group that begins with row `first`.
void rows_write(struct rows *rows, int64_t first);

// Decodes row `row`: k floats.
void rows_decode(struct rows *rows, int64_t row, float *out);

// Gives row `row` of k elements of the matrix at `index`: decoded by `rows` or, where this
// is NULL, floats of w. `out` has room for k floats.
void row_values(const tn_tensor *w, struct rows *rows, const int64_t *index, int64_t row,
                int64_t k, double *out);

// Moves to the next matrix of an array of rank `rank`; the last two entries of `index` stay
// 0. False after the last.
bool next_matrix(int32_t rank, const int64_t *extent, int64_t *index);

// The number of the row or matrix, of n, that an id names: negative ids count from the end.
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

// `array` converted to `dtype`.
static inline tn_array *cast(const tn_build *build, tn_array *array, tn_dtype dtype)
{
    const tn_type *type = build->type(array);
    return type && type->dtype == dtype ? array
                                        : build->op(build, "base.astype/1", TN_IN(array),
                                                    tn_attrs("dtype", (int64_t)dtype));
}

#endif // QUANT_PACK_H
