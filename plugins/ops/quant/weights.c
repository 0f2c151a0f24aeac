// SPDX-License-Identifier: MIT
// Arrays of blocks: checks, and access to rows of any layout and packing.
#include "pack.h"

#include <stdio.h>

const char *shape_text(const tn_type *type, char buffer[SHAPE_TEXT])
{
    int at = snprintf(buffer, SHAPE_TEXT, "[");
    for (int32_t i = 0; i < type->rank; i++)
        at += snprintf(buffer + at, (size_t)(SHAPE_TEXT - at), "%s%" PRId64, i ? ", " : "",
                       type->extent[i]);
    snprintf(buffer + at, (size_t)(SHAPE_TEXT - at), "]");
    return buffer;
}

// --- sizes ------------------------------------------------------------------------------

// The packing's bytes for rows of n elements; -1: more than an array [rows, n] can have.
static int64_t quant_weights_packed_bytes(const tn_packing *packing, int64_t rows,
                                          int64_t k)
{
    int64_t bytes = rows > 0 && k > 0 ? packing->rows_bytes(packing, rows, k) : 0;
    return bytes >= (k > 0 ? rows : 0) && (rows == 0 || bytes % rows == 0) ? bytes : -1;
}

// The most columns, a multiple of the block, whose packed rows have at most `bytes` bytes.
static int64_t packed_columns(const struct format *format, int64_t rows, int64_t bytes)
{
    int64_t block = format->plain->block, least = 0, most = INT64_MAX / block;
    while (least < most) {
        int64_t blocks = least + (most - least + 1) / 2;
        int64_t taken = format->packing->rows_bytes(format->packing, rows, blocks * block);
        if (taken >= 0 && taken <= bytes)
            least = blocks;
        else
            most = blocks - 1;
    }
    return least * block;
}

// Matrices without rows have the bytes of one row.
static tn_status check_packed(const tn_host *host, const char *name,
                              const struct format *format, const tn_type *w, int64_t *out_k)
{
    char text[SHAPE_TEXT];
    int64_t row = w->extent[w->rank - 1], n = w->extent[w->rank - 2], bytes;
    n = n > 0 ? n : 1;
    if (tn_checked_multiply_extents(n, row, &bytes)) {
        int64_t k = packed_columns(format, n, bytes);
        if (quant_weights_packed_bytes(format->packing, n, k) == bytes) {
            *out_k = k;
            return TN_OK;
        }
    }
    return host->fail(host, TN_ERR_ARGUMENT,
                      "w has shape %s, expected rows of whole blocks: %" PRId64
                      " rows of a block have %" PRId64 " bytes in %s",
                      shape_text(w, text), n,
                      format->packing->rows_bytes(format->packing, n, format->plain->block),
                      name);
}

tn_status check_weights(const tn_host *host, const char *name, const struct format *format,
                        const tn_type *w, int64_t *out_k)
{
    const tn_quant_format *plain = format->plain;
    char text[SHAPE_TEXT];
    int32_t least = format->packing ? 2 : 1;
    if (w->rank < least)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "w has shape %s, expected rank %d or more%s", shape_text(w, text),
                          least,
                          format->packing ? ": rows of a packed format lie together" : "");
    if (format->packing)
        return check_packed(host, name, format, w, out_k);
    int64_t bytes = w->extent[w->rank - 1];
    if (bytes % plain->bytes)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "w has shape %s, expected rows of whole blocks: %s has blocks of "
                          "%" PRId64 " bytes",
                          shape_text(w, text), name, plain->bytes);
    if (tn_checked_multiply_extents(bytes / plain->bytes, plain->block, out_k))
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT,
                      "w has shape %s, whose rows stand for more than 2^63 - 1 elements",
                      shape_text(w, text));
}

tn_status rows_size(const tn_host *host, const struct format *format, int64_t n, int64_t k,
                    int64_t *out_bytes)
{
    n = n > 0 ? n : 1;
    int64_t bytes = format->packing ? quant_weights_packed_bytes(format->packing, n, k)
                                    : k / format->plain->block * format->plain->bytes;
    if (bytes < 0)
        return host->fail(host, TN_ERR_REFUSED,
                          "packing %s has %" PRId64 " bytes for %" PRId64
                          " rows of %" PRId64 " elements, expected as many for each row",
                          format->packing->id,
                          format->packing->rows_bytes(format->packing, n, k), n, k);
    *out_bytes = format->packing ? bytes / n : bytes;
    return TN_OK;
}

// --- rows -------------------------------------------------------------------------------

// Fails unless the matrix's bytes are whole groups and the rows behind the last group.
static tn_status find_groups(struct rows *rows)
{
    const tn_packing *packing = rows->format->packing;
    int64_t left = rows->n % rows->group, before = -1, behind = -1, all = -1, whole;
    if (packing->group >= 0) {
        before = quant_weights_packed_bytes(packing, rows->group, rows->k);
        behind = quant_weights_packed_bytes(packing, left, rows->k);
        all = quant_weights_packed_bytes(packing, rows->n, rows->k);
    }
    if (before < 0 || behind < 0 || all != rows->n * rows->width ||
        !tn_checked_multiply_extents(rows->n / rows->group, before, &whole) ||
        whole != all - behind)
        return rows->host->fail(
            rows->host, TN_ERR_REFUSED,
            "packing %s has %" PRId64 " bytes for groups of %" PRId64 " rows, %" PRId64
            " for the %" PRId64 " behind them and %" PRId64 " for all %" PRId64
            ", expected the sum",
            packing->id, before, packing->group, behind, left, all, rows->n);
    rows->group_bytes = before;
    rows->room = before > behind ? before : behind;
    return TN_OK;
}

tn_status rows_open(const tn_host *host, const struct format *format, const tn_tensor *w,
                    int64_t k, struct rows *out)
{
    const tn_layout *layout = &w->layout;
    const tn_packing *packing = format->packing;
    int32_t rank = layout->rank;
    *out = (struct rows){.host = host,
                         .format = format,
                         .tensor = w,
                         .first = layout->offset,
                         .n = rank > 1 ? layout->extent[rank - 2] : 1,
                         .k = k,
                         .width = layout->extent[rank - 1],
                         .bytes = k / format->plain->block * format->plain->bytes,
                         .group = 1,
                         .held = -1};
    if (packing)
        out->group =
            packing->group > 0 && packing->group < out->n ? packing->group : out->n;
    tn_status status = packing ? find_groups(out) : TN_OK;
    if (status != TN_OK)
        return status;
    uint64_t plain = tn_saturated_multiply((uint64_t)out->group, (uint64_t)out->bytes);
    out->plain = host->alloc(host, tn_saturated_add(plain, 1), 0);
    out->packed = packing ? host->alloc(host, (uint64_t)out->room + 1, 0) : NULL;
    if (out->plain && (out->packed || !packing))
        return TN_OK;
    rows_close(out);
    return TN_ERR_MEMORY;
}

void rows_close(struct rows *rows)
{
    rows->host->free(rows->host, rows->plain);
    rows->host->free(rows->host, rows->packed);
}

void rows_move(struct rows *rows, const int64_t *index)
{
    int64_t first = tn_offset_at(&rows->tensor->layout, index);
    if (first != rows->first)
        rows->held = -1;
    rows->first = first;
}

// Copies `count` bytes of the matrix, from byte `at` on, to `out`; or, with `from`, from
// there to the matrix.
static void quant_weights_copy_bytes(const struct rows *rows, int64_t at, int64_t count,
                                     uint8_t *out, const uint8_t *from)
{
    const tn_layout *layout = &rows->tensor->layout;
    int32_t last = layout->rank - 1;
    uint8_t *data = rows->tensor->data;
    for (int64_t i = 0; i < count; i++, at++) {
        int64_t position = rows->first + at % rows->width * layout->stride[last];
        if (last > 0)
            position += at / rows->width * layout->stride[last - 1];
        if (from)
            data[position] = from[i];
        else
            out[i] = data[position];
    }
}

// The number of rows of the group that begins at row `first`.
static int64_t rows_there(const struct rows *rows, int64_t first)
{
    return rows->n - first < rows->group ? rows->n - first : rows->group;
}

const uint8_t *rows_read(struct rows *rows, int64_t row)
{
    const tn_packing *packing = rows->format->packing;
    int64_t inside = row % rows->group, first = row - inside;
    if (rows->held != first && !packing) {
        quant_weights_copy_bytes(rows, first * rows->width, rows->width, rows->plain, NULL);
    } else if (rows->held != first) {
        int64_t count = rows_there(rows, first),
                at = first / rows->group * rows->group_bytes;
        quant_weights_copy_bytes(rows, at,
                                 quant_weights_packed_bytes(packing, count, rows->k),
                                 rows->packed, NULL);
        packing->unpack(packing, rows->packed, count, rows->k, rows->plain);
    }
    rows->held = first;
    return rows->plain + inside * rows->bytes;
}

void rows_write(struct rows *rows, int64_t first)
{
    const tn_packing *packing = rows->format->packing;
    if (!packing) {
        quant_weights_copy_bytes(rows, first * rows->width, rows->width, NULL, rows->plain);
        return;
    }
    int64_t count = rows_there(rows, first), at = first / rows->group * rows->group_bytes;
    packing->pack(packing, rows->plain, count, rows->k, rows->packed);
    quant_weights_copy_bytes(rows, at, quant_weights_packed_bytes(packing, count, rows->k),
                             NULL, rows->packed);
}

void rows_decode(struct rows *rows, int64_t row, float *out)
{
    const tn_quant_format *plain = rows->format->plain;
    const uint8_t *block = rows_read(rows, row);
    for (int64_t i = 0; i < rows->k; i += plain->block, block += plain->bytes)
        plain->decode(block, out + i);
}

void row_values(const tn_tensor *w, struct rows *rows, const int64_t *index, int64_t row,
                int64_t k, double *out)
{
    if (rows) {
        float *values = (float *)(void *)(out + k);
        rows_move(rows, index);
        rows_decode(rows, row, values);
        for (int64_t i = 0; i < k; i++)
            out[i] = (double)values[i];
        return;
    }
    const int64_t *stride = w->layout.stride + w->layout.rank - 2;
    int64_t from = tn_offset_at(&w->layout, index) + row * stride[0];
    for (int64_t i = 0; i < k; i++)
        out[i] = tn_get_f64(w, from + i * stride[1]);
}

bool next_matrix(int32_t rank, const int64_t *extent, int64_t *index)
{
    for (int32_t i = rank - 3; i >= 0; i--) {
        if (++index[i] < extent[i])
            return true;
        index[i] = 0;
    }
    return false;
}
