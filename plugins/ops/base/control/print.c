// SPDX-License-Identifier: MIT
// base.print: the one primitive of this pack with an effect. A line is one write to
// standard error, so that lines of several threads do not mix.
#include <stdarg.h>
#include <stdio.h>
#include "../pack.h"

static const tn_in_place print_in_place[] = {{.input = 0, .output = 0}};

#define MOST_SHOWN 32 // elements of one line
#define LINE_SIZE 2048

static const tn_attr_field print_fields[] = {
    TN_STRING_FIELD(tn_print_attrs, text, "what stands in front of the elements"),
};

static tn_status print_infer(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return TN_OK;
}

// A line that is being filled; text beyond its room is cut.
struct print_node_line {
    char text[LINE_SIZE];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void
print_node_append(struct print_node_line *line, const char *format, ...)
{
    va_list list;
    size_t room = sizeof(line->text) - line->used;
    va_start(list, format);
    int count = vsnprintf(line->text + line->used, room, format, list);
    va_end(list);
    if (count > 0)
        line->used += (size_t)count < room ? (size_t)count : room - 1;
}

static void append_element(struct print_node_line *line, const tn_tensor *x, int64_t at)
{
    if (tn_is_float(x->layout.dtype))
        print_node_append(line, " %.*g", x->layout.dtype == TN_F64 ? 17 : 9,
                          tn_get_f64(x, at));
    else if (x->layout.dtype == TN_U64)
        print_node_append(line, " %" PRIu64, (uint64_t)tn_get_i64(x, at));
    else
        print_node_append(line, " %" PRId64, tn_get_i64(x, at));
}

static void print_node_write_line(const tn_tensor *x, const char *text)
{
    struct print_node_line line = {.used = 0};
    int64_t index[TN_MAX_RANK] = {0}, shown = 0, count = tn_layout_count(&x->layout);
    if (text && *text)
        print_node_append(&line, "%.1024s ", text);
    print_node_append(&line, "%s[", tn_dtype_name(x->layout.dtype));
    for (int32_t i = 0; i < x->layout.rank; i++)
        print_node_append(&line, i ? ",%" PRId64 : "%" PRId64, x->layout.extent[i]);
    print_node_append(&line, "]");
    if (count > 0)
        do
            append_element(&line, x, tn_offset_at(&x->layout, index));
        while (++shown < MOST_SHOWN &&
               tn_index_next(x->layout.rank, x->layout.extent, index));
    fprintf(stderr, "%s%s\n", line.text, shown < count ? " ..." : "");
}

static tn_status print_reference(const tn_cpu_call *call)
{
    const tn_print_attrs *attrs = call->attrs;
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    int64_t index[TN_MAX_RANK] = {0};
    size_t size = tn_dtype_bytes(x->layout.dtype);
    print_node_write_line(x, attrs->text);
    if (tn_layout_count(&x->layout) == 0)
        return TN_OK;
    do {
        int64_t from = tn_offset_at(&x->layout, index),
                to = tn_offset_at(&out->layout, index);
        memmove((char *)out->data + (size_t)to * size,
                (const char *)x->data + (size_t)from * size,
                size); // in place they are the same byte
    } while (tn_index_next(x->layout.rank, x->layout.extent, index));
    return TN_OK;
}

const tn_primitive base_print = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_EFFECT,
    .id = "base.print/1",
    .doc = "x; when it is computed, its elements are written to standard error.",
    TN_INPUTS(base_x),
    .num_outputs = 1,
    .in_place = print_in_place,
    .num_in_place = 1,
    .in_place_size = sizeof(tn_in_place),
    .attrs = TN_ATTR_TABLE(tn_print_attrs, print_fields),
    .infer = print_infer,
    .reference = print_reference,
    .effects = TN_EFFECTS_OUTPUT,
};
