// SPDX-License-Identifier: MIT
#include "content.h"

#include <stdlib.h>

const tn_format_text content_texts[CONTENT_TEXTS] = {{"made by", "a check"},
                                                     {"zwölf", "\"12\"\n{}\t\\"}};

static void array_draw(struct kit *k, struct drawn_content *c, uint64_t i,
                       const tn_type *type)
{
    static const char *const names[CONTENT_ARRAYS] = {"w", "layer.0.weight", "größe", "a b",
                                                      "x/y"};
    tn_format_array *array = &c->arrays[i];
    uint64_t bytes = 0;
    *array = (tn_format_array){.name = names[i], .type = *type};
    (void)tn_format_bytes(&array->type, &bytes);
    c->data[i] = malloc(bytes + 1);
    if (!c->data[i])
        abort(); // checks run in a child process: its parent reports the abort
    for (uint64_t at = 0; at < bytes; at++)
        c->data[i][at] =
            (unsigned char)(random_bits(k) >> (type->dtype == TN_BOOL ? 63 : 56));
    array->data = c->data[i];
    array->size = bytes;
}

static tn_type type_draw(struct kit *k, tn_dtype dtype, int32_t rank)
{
    tn_type type = {.dtype = dtype, .rank = rank};
    for (int32_t axis = 0; axis < rank; axis++)
        type.extent[axis] = (int64_t)random_below(k, rank > 4 ? 3 : 5);
    return type;
}

void content_draw(struct kit *k, struct drawn_content *c, const tn_format *format,
                  tn_dtype dtype)
{
    bool single = format->flags & TN_FORMAT_SINGLE;
    uint64_t count = single ? 1 : dtype ? 1 + random_below(k, 2) : random_below(k, 6);
    *c = (struct drawn_content){
        .table = {.struct_size = sizeof(c->table),
                  .arrays = c->arrays,
                  .texts = content_texts,
                  .num_arrays = count,
                  .num_texts = single ? 0 : random_below(k, CONTENT_TEXTS + 1),
                  .array_size = sizeof(c->arrays[0]),
                  .text_size = sizeof(content_texts[0])}};
    for (uint64_t i = 0; i < count; i++) {
        tn_dtype any = (tn_dtype)(1 + random_below(k, TN_NUM_DTYPES - 1));
        const tn_type type =
            type_draw(k, dtype ? dtype : any, (int32_t)random_below(k, TN_MAX_RANK + 1));
        array_draw(k, c, i, &type);
    }
    if (single)
        c->arrays[0].name = "";
}

void content_draw_one(struct kit *k, struct drawn_content *c, const tn_format *format,
                      const tn_type *type)
{
    bool single = format->flags & TN_FORMAT_SINGLE;
    *c = (struct drawn_content){.table = {.struct_size = sizeof(c->table),
                                          .arrays = c->arrays,
                                          .num_arrays = 1,
                                          .array_size = sizeof(c->arrays[0]),
                                          .text_size = sizeof(content_texts[0])}};
    array_draw(k, c, 0, type);
    if (single)
        c->arrays[0].name = "";
}

void content_draw_row(struct kit *k, struct drawn_content *c, const tn_format *format,
                      tn_dtype dtype, int64_t extent)
{
    const tn_type type = {.dtype = dtype, .rank = 1, .extent = {extent}};
    content_draw_one(k, c, format, &type);
}

void content_free(struct drawn_content *c)
{
    for (uint64_t i = 0; i < c->table.num_arrays; i++)
        free(c->data[i]);
}
