// SPDX-License-Identifier: MIT
// Arrays with canaries: allocation, layouts, random contents, comparison.
#include "array.h"

#include <math.h>

enum { GUARD = 64 }; // canary elements before and after the data

const char *const layout_names[NUM_LAYOUTS] = {"plain", "shifted",  "transposed",
                                               "gaps",  "reversed", "repeated"};
// Sets strides and offset for `kind`. Returns the span in elements, the shift included.
static int64_t array_lay_out(tn_layout *layout, enum layout_kind kind)
{
    int64_t reach = 1;
    bool is_gapped = kind == GAPS;
    for (int32_t n = 0; n < layout->rank; n++) {
        int32_t axis = kind == TRANSPOSED ? n : layout->rank - 1 - n;
        int64_t step = is_gapped && n == 0 ? 2 : 1; // a gap after each innermost element
        layout->stride[axis] = reach * step;
        reach *= (layout->extent[axis] > 0 ? layout->extent[axis] : 1) * step;
        reach += is_gapped; // padding at the end of each row
    }
    if (kind == REPEATED && layout->rank > 0)
        layout->stride[0] = 0;
    layout->offset = GUARD + (kind == PLAIN ? 0 : 3); // 3 elements off any alignment
    for (int32_t axis = 0; kind == REVERSED && axis < layout->rank; axis++) {
        int64_t last = layout->extent[axis] > 0 ? layout->extent[axis] - 1 : 0;
        layout->offset += last * layout->stride[axis];
        layout->stride[axis] = -layout->stride[axis];
    }
    return reach + 4;
}

// Records which bytes belong to elements; all other bytes are canaries.
static void array_mark(struct array *a, int64_t bytes)
{
    int64_t index[TN_MAX_RANK] = {0};
    if (a->count == 0)
        return;
    do
        memset(a->is_element + tn_offset_at(&a->tensor.layout, index) * bytes, 1,
               (size_t)bytes);
    while (tn_index_next(a->tensor.layout.rank, a->tensor.layout.extent, index));
}

struct array array_new(const tn_type *type, enum layout_kind kind, unsigned char poison)
{
    struct array a = {.tensor.layout = {.dtype = type->dtype, .rank = type->rank},
                      .count = 1};
    int64_t bytes = tn_dtype_bytes(type->dtype);
    for (int32_t i = 0; i < type->rank; i++) {
        a.tensor.layout.extent[i] = type->extent[i];
        a.count *= type->extent[i];
    }
    int64_t reach = array_lay_out(&a.tensor.layout, kind);
    a.size = (uint64_t)((reach + 2 * GUARD) * bytes);
    a.memory = aligned_alloc(64, (a.size + 63) / 64 * 64);
    a.is_element = calloc(1, a.size);
    if (!a.memory || !a.is_element)
        abort(); // checks run in a child process: its parent reports the abort
    memset(a.memory, poison, a.size);
    a.tensor.data = a.memory;
    array_mark(&a, bytes);
    return a;
}

void array_free(struct array *array)
{
    free(array->memory);
    free(array->is_element);
    *array = (struct array){0};
}

tn_type array_type(const struct array *array)
{
    tn_type type = {.dtype = array->tensor.layout.dtype, .rank = array->tensor.layout.rank};
    memcpy(type.extent, array->tensor.layout.extent, sizeof(type.extent));
    return type;
}

void array_copy(struct array *to, const struct array *from)
{
    if (from->count)
        tn_copy_region(&to->tensor, &from->tensor);
}

struct array array_laid_out(struct array *from, enum layout_kind kind)
{
    tn_type type = array_type(from);
    if (!from->tensor.data)
        return *from; // input not given: the copy owns nothing
    if (kind == REPEATED && type.rank > 0 && from->count > 0) {
        tn_tensor first = from->tensor;
        first.layout.stride[0] = 0;
        struct array constant = array_new(&type, PLAIN, 0);
        tn_copy_region(&constant.tensor, &first);
        array_copy(from, &constant);
        array_free(&constant);
    }
    struct array to = array_new(&type, kind, 0x5a);
    array_copy(&to, from);
    return to;
}

bool array_guards_hold(const struct array *array, unsigned char poison)
{
    for (uint64_t i = 0; i < array->size; i++)
        if (!array->is_element[i] && array->memory[i] != poison)
            return false;
    return true;
}

// --- elements --------------------------------------------------------------------------

// Offset of element `i` in row-major order, in elements.
static int64_t element_offset(const struct array *array, int64_t i)
{
    const tn_layout *layout = &array->tensor.layout;
    int64_t at = layout->offset;
    for (int32_t axis = layout->rank - 1; axis >= 0; axis--) {
        at += i % layout->extent[axis] * layout->stride[axis];
        i /= layout->extent[axis];
    }
    return at;
}

double array_get(const struct array *array, int64_t i)
{
    return tn_get_f64(&array->tensor, element_offset(array, i));
}

void array_set(struct array *array, int64_t i, double value)
{
    tn_set_f64(&array->tensor, element_offset(array, i), value);
}

tn_complex128 array_get_complex(const struct array *array, int64_t i)
{
    return tn_get_complex(&array->tensor, element_offset(array, i));
}

void array_set_complex(struct array *array, int64_t i, tn_complex128 value)
{
    tn_set_complex(&array->tensor, element_offset(array, i), value);
}

static double element_distance(tn_complex128 x, tn_complex128 y)
{
    double re = x.re - y.re, im = x.im - y.im;
    return im == 0 ? fabs(re) : hypot(re, im);
}

void array_fill(struct kit *k, struct array *array, double lo, double hi)
{
    tn_dtype dtype = array->tensor.layout.dtype;
    bool is_integer = tn_dtype_in(dtype, TN_INTEGER_DTYPES);
    if (tn_dtype_in(dtype, TN_UNSIGNED_DTYPES))
        lo = fmax(lo, 0);
    for (int64_t i = 0; i < array->count; i++) {
        double x = random_in(k, lo, hi);
        x = is_integer ? floor(random_in(k, lo, hi + 1)) : x;
        array_set(array, i, dtype == TN_BOOL ? (double)random_below(k, 2) : x);
        if (tn_is_complex(dtype))
            array_set_complex(array, i, (tn_complex128){x, random_in(k, lo, hi)});
    }
}

double array_largest(const struct array *array)
{
    double most = 0;
    for (int64_t i = 0; i < array->count; i++) {
        double x = element_distance(array_get_complex(array, i), (tn_complex128){0, 0});
        if (isfinite(x) && x > most)
            most = x;
    }
    return most;
}

static bool element_is_nan(tn_complex128 x)
{
    return isnan(x.re) || isnan(x.im);
}

static bool element_is_finite(tn_complex128 x)
{
    return isfinite(x.re) && isfinite(x.im);
}

// Two complex numbers that are not finite agree: which part is infinite or NaN depends on
// the order of products.
static bool kit_array_agree(tn_complex128 got, tn_complex128 want, bool is_complex,
                            double bound)
{
    if (bound == INFINITY)
        return true;
    if (is_complex && !element_is_finite(got) && !element_is_finite(want))
        return true;
    if (element_is_nan(got) || element_is_nan(want))
        return element_is_nan(got) && element_is_nan(want);
    return (got.re == want.re && got.im == want.im) || element_distance(got, want) <= bound;
}

// "1.5", and "1.5-2j" of a complex dtype.
static const char *kit_array_element_text(const struct array *array, tn_complex128 x,
                                          char text[64])
{
    snprintf(text, 64, tn_is_complex(array->tensor.layout.dtype) ? "%.9g%+.9gj" : "%.9g",
             x.re, x.im);
    return text;
}

const char *array_compare(const struct array *got, const struct array *want,
                          double tolerance, double least, const double *spread)
{
    static char text[300];
    char types[200];
    tn_type pair[2] = {array_type(got), array_type(want)};
    if (memcmp(&pair[0], &pair[1], sizeof(tn_type)) != 0)
        return format_text(text, sizeof(text), "got and expected are %s",
                           types_text(types, sizeof(types), pair, 2));
    double bound = tolerance * fmax(array_largest(want), least);
    for (int64_t i = 0; i < got->count; i++) {
        tn_complex128 x = array_get_complex(got, i), y = array_get_complex(want, i);
        char is[64], expected[64];
        if (!kit_array_agree(x, y, tn_is_complex(pair[1].dtype),
                             bound + (spread ? spread[i] : 0)))
            return format_text(text, sizeof(text),
                               "element %lld of %lld is %s, expected %s to within %.3g",
                               (long long)i, (long long)got->count,
                               kit_array_element_text(got, x, is),
                               kit_array_element_text(want, y, expected), bound);
    }
    return NULL;
}

const char *types_text(char *out, size_t size, const tn_type *types, uint32_t count)
{
    size_t at = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < count && at + 40 < size; i++) {
        const tn_type *t = &types[i];
        bool is_known = t->dtype >= 0 && t->dtype < TN_NUM_DTYPES;
        at += (size_t)snprintf(out + at, size - at, "%s%s[", i ? " " : "",
                               is_known ? tn_dtype_name(t->dtype) : "?");
        for (int32_t axis = 0; axis < t->rank && axis < TN_MAX_RANK && at + 30 < size;
             axis++)
            at += (size_t)snprintf(out + at, size - at, "%s%lld", axis ? "," : "",
                                   (long long)t->extent[axis]);
        at += (size_t)snprintf(out + at, size - at, "]");
    }
    return out;
}
