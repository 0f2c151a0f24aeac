// SPDX-License-Identifier: MIT
// Failures of the library, element types and host arrays.
#include "tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/checked.h>
#include <tenon/ops/reference.h>

bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

int oops_library(void)
{
    const char *text = tn_last_error();
    return oops("%s", text && text[0] ? text : "failed without saying why");
}

int oops_scope(const tn_scope *scope)
{
    const char *text = tn_scope_error(scope);
    return text && text[0] ? oops("%s", text) : oops_library();
}

int open_runtime(tn_runtime **out_runtime)
{
    return tn_runtime_open(NULL, out_runtime) ? oops_library() : 0;
}

const char *dtype_name(tn_dtype dtype)
{
    return tn_dtype_name(dtype);
}

uint64_t dtype_size(tn_dtype dtype)
{
    return (uint64_t)tn_dtype_bytes(dtype);
}

bool type_bytes(tn_dtype dtype, const tn_shape *shape, uint64_t *out_elements,
                uint64_t *out_bytes)
{
    // The product of the other extents has to fit even if one extent is 0.
    int64_t product = 1, size = (int64_t)dtype_size(dtype);
    bool empty = false;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->extent[i] < 0)
            return false;
        empty |= shape->extent[i] == 0;
        if (shape->extent[i] &&
            !tn_checked_multiply_extents(product, shape->extent[i], &product))
            return false;
    }
    if (!tn_checked_multiply_extents(product, size, &size))
        return false;
    *out_elements = empty ? 0 : (uint64_t)product;
    *out_bytes = empty ? 0 : (uint64_t)size;
    return true;
}

const char *shape_text(const tn_shape *shape, char text[SHAPE_TEXT])
{
    size_t used = (size_t)snprintf(text, SHAPE_TEXT, "(");
    for (int32_t i = 0; i < shape->rank; i++)
        used += (size_t)snprintf(text + used, SHAPE_TEXT - used, "%s%" PRId64,
                                 i ? ", " : "", shape->extent[i]);
    snprintf(text + used, SHAPE_TEXT - used, shape->rank == 1 ? ",)" : ")");
    return text;
}

void host_array_finish(struct host_array *array)
{
    free(array->data);
    *array = (struct host_array){0};
}

int host_array_read(tn_scope *scope, tn_array *array, struct host_array *out)
{
    const tn_type *type = tn_array_type(array);
    if (!array)
        return oops_scope(scope);
    struct host_array mine = {.dtype = type->dtype, .shape.rank = type->rank};
    memcpy(mine.shape.extent, type->extent, sizeof(mine.shape.extent));
    uint64_t elements;
    if (!type_bytes(mine.dtype, &mine.shape, &elements, &mine.bytes))
        return oops("the result's bytes overflow 64 bits");
    mine.data = malloc(mine.bytes ? mine.bytes : 1);
    if (!mine.data)
        return oops("out of memory: the result has %" PRIu64 " bytes", mine.bytes);
    if (tn_read(scope, array, mine.data, mine.bytes)) {
        host_array_finish(&mine);
        return oops_scope(scope);
    }
    *out = mine;
    return 0;
}

double host_array_number(const struct host_array *array, uint64_t i)
{
    const tn_tensor tensor = {array->data, {.dtype = array->dtype}};
    return tn_get_f64(&tensor, (int64_t)i);
}

const char *size_text(uint64_t bytes, char text[SIZE_TEXT])
{
    static const char units[] = "kMG";
    double size = (double)bytes;
    size_t unit = 0;
    while (size >= 999.5 && unit < 3) {
        size /= 1000;
        unit++;
    }
    if (unit == 0)
        snprintf(text, SIZE_TEXT, "%d B", (int)bytes);
    else
        snprintf(text, SIZE_TEXT, "%.*f %cB", size < 9.95 ? 1 : 0, size, units[unit - 1]);
    return text;
}
