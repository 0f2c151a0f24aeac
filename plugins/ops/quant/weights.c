// SPDX-License-Identifier: MIT
// Arrays of blocks: their check, and blocks of any layout.
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

tn_status check_weights(const tn_host *host, const char *name, const struct format *format,
                        const tn_type *w, int64_t *out_k)
{
    const tn_quant_format *plain = format->plain;
    char text[SHAPE_TEXT];
    int32_t least = format->is_packed ? 2 : 1;
    if (w->rank < least)
        return host->fail(
            host, TN_ERR_ARGUMENT, "w has shape %s, expected rank %d or more%s",
            shape_text(w, text), least,
            format->is_packed ? ": rows of a packed format lie together" : "");
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

struct rows rows_at(const struct format *format, const tn_tensor *w, const int64_t *index)
{
    const tn_layout *layout = &w->layout;
    int32_t rank = layout->rank;
    return (struct rows){
        .format = format,
        .tensor = w,
        .first = tn_offset_at(layout, index),
        .n = rank > 1 ? layout->extent[rank - 2] : 1,
        .blocks = layout->extent[rank - 1] / format->plain->bytes,
    };
}

static bool is_in_group(const struct rows *rows, int64_t row)
{
    return rows->format->is_packed &&
           row < rows->n / TN_QUANT_PACKED_ROWS * TN_QUANT_PACKED_ROWS;
}

// Where byte `byte` of block `block` of row `row` lies, as an offset from tensor->data. Of
// rows that lie together it is a byte of an arranged block.
static int64_t rows_byte(const struct rows *rows, int64_t row, int64_t block, int32_t byte)
{
    const tn_layout *layout = &rows->tensor->layout;
    int64_t bytes = rows->format->plain->bytes, at = block * bytes + byte;
    if (is_in_group(rows, row)) {
        // The number of the byte among those of the 16 rows, and the row that it lies in.
        int64_t inside = row % TN_QUANT_PACKED_ROWS, length = rows->blocks * bytes;
        at = block * bytes * TN_QUANT_PACKED_ROWS +
             tn_quant_r16_at(&rows->format->order, (int32_t)inside, byte);
        row += at / length - inside;
        at %= length;
    }
    int32_t last = layout->rank - 1;
    return rows->first + at * layout->stride[last] +
           (last > 0 ? row * layout->stride[last - 1] : 0);
}

void rows_read(const struct rows *rows, int64_t row, int64_t block, uint8_t *out)
{
    const uint8_t *data = rows->tensor->data;
    uint8_t arranged[TN_QUANT_MAX_BYTES];
    uint8_t *to = is_in_group(rows, row) ? arranged : out;
    for (int32_t byte = 0; byte < rows->format->plain->bytes; byte++)
        to[byte] = data[rows_byte(rows, row, block, byte)];
    if (to == arranged)
        tn_quant_restore(&rows->format->order, arranged, out);
}

void rows_write(const struct rows *rows, int64_t row, int64_t block, const uint8_t *from)
{
    uint8_t *data = rows->tensor->data;
    uint8_t arranged[TN_QUANT_MAX_BYTES];
    if (is_in_group(rows, row)) {
        tn_quant_arrange(&rows->format->order, from, arranged);
        from = arranged;
    }
    for (int32_t byte = 0; byte < rows->format->plain->bytes; byte++)
        data[rows_byte(rows, row, block, byte)] = from[byte];
}

void rows_decode(const struct rows *rows, int64_t row, float *out)
{
    const tn_quant_format *plain = rows->format->plain;
    uint8_t block[TN_QUANT_MAX_BYTES];
    for (int64_t i = 0; i < rows->blocks; i++, out += plain->block) {
        rows_read(rows, row, i, block);
        plain->decode(block, out);
    }
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
