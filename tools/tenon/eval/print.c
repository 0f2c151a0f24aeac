// SPDX-License-Identifier: MIT
// Prints arrays: cells of equal width, with as few digits as tell the elements apart.
#include "print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THRESHOLD 1000 // elements beyond which the middle is left out
#define EDGE 3         // elements shown at each end of an axis then
#define MAX_DIGITS 8   // after the point
#define LINE 75        // columns
#define CELL 64

// How the elements of one array are written.
struct style {
    const struct host_array *array;
    bool summary;
    bool exponent; // 1.5e+10
    int digits;    // after the point
    int width;     // of a cell
};

// --- numbers ---------------------------------------------------------------------------

static bool eval_print_is_float(tn_dtype dtype)
{
    return TN_DTYPE_BIT(dtype) & (TN_FLOAT_DTYPES | TN_FLOAT8_DTYPES);
}

// Number of parts of an element: 2 for complex dtypes, else 1.
static uint64_t eval_print_parts_of(const struct host_array *array)
{
    return tn_is_complex(array->dtype) ? 2 : 1;
}

static double eval_print_part(const struct host_array *array, uint64_t i, uint64_t k)
{
    const struct host_array parts = {.data = array->data,
                                     .dtype = tn_dtype_real(array->dtype)};
    return host_array_number(&parts, eval_print_parts_of(array) * i + k);
}

// Significant decimal digits that tell all values of the dtype apart.
static int eval_print_significant(tn_dtype dtype)
{
    return 2 + tn_dtype_precision(dtype) * 30103 / 100000; // log10(2)
}

// True when `text` reads back as the same element.
static bool eval_print_same(const struct host_array *array, double value, const char *text)
{
    double back = strtod(text, NULL);
    switch (tn_dtype_real(array->dtype)) {
    case TN_F64:
        return back == value;
    case TN_F32:
        return (float)back == (float)value;
    default: // half floats: within half a unit of the last place
        return fabs(back - value) <=
               ldexp(fabs(value), -1 - tn_dtype_precision(array->dtype));
    }
}

// The fewest significant digits, at least 1, that read back as the value.
static int eval_print_shortest(const struct host_array *array, double value)
{
    char text[CELL];
    int most = eval_print_significant(array->dtype);
    for (int digits = 1; digits < most; digits++) {
        snprintf(text, sizeof(text), "%.*e", digits - 1, value);
        if (eval_print_same(array, value, text))
            return digits;
    }
    return most;
}

// Digits after the point that tell the value apart, in the notation of the style.
static int own_digits(const struct style *style, double value)
{
    char text[CELL];
    int digits = eval_print_shortest(style->array, value) - 1;
    if (!style->exponent) {
        snprintf(text, sizeof(text), "%.*e", digits, value);
        digits -= atoi(strchr(text, 'e') + 1);
    }
    return digits < 0 ? 0 : digits;
}

static int eval_print_fewer(int a, int b)
{
    return a < b ? a : b;
}

// "1.5", "2.": no trailing zeros.
static void fixed_text(const struct style *style, double value, char text[CELL])
{
    int digits = value == 0 ? 0 : eval_print_fewer(own_digits(style, value), style->digits);
    snprintf(text, CELL, "%#.*f", digits, value);
    size_t n = strlen(text);
    while (n && text[n - 1] == '0')
        text[--n] = '\0';
}

// "1.50e+10": as many digits as the others.
static void exponent_text(const struct style *style, double value, char text[CELL])
{
    char exponent[16];
    int digits = value == 0 ? 0 : eval_print_fewer(own_digits(style, value), style->digits);
    snprintf(text, CELL, "%#.*e", digits, value);
    char *e = strchr(text, 'e');
    snprintf(exponent, sizeof(exponent), "%s", e);
    for (; digits < style->digits; digits++)
        *e++ = '0';
    strcpy(e, exponent);
}

static void float_text(const struct style *style, double value, char text[CELL])
{
    if (isnan(value))
        snprintf(text, CELL, "nan");
    else if (isinf(value))
        snprintf(text, CELL, value < 0 ? "-inf" : "inf");
    else if (style->exponent)
        exponent_text(style, value, text);
    else
        fixed_text(style, value, text);
}

// "1.5-2.j"
static void complex_text(const struct style *style, uint64_t i, char text[CELL])
{
    char re[CELL], im[CELL];
    float_text(style, eval_print_part(style->array, i, 0), re);
    float_text(style, eval_print_part(style->array, i, 1), im);
    snprintf(text, CELL, "%.30s%s%.30sj", re, im[0] == '-' ? "" : "+", im);
}

static void eval_print_element_text(const struct style *style, uint64_t i, char text[CELL])
{
    const struct host_array *array = style->array;
    double value = host_array_number(array, i);
    if (tn_is_complex(array->dtype))
        complex_text(style, i, text);
    else if (array->dtype == TN_BOOL)
        snprintf(text, CELL, "%s", value != 0 ? "true" : "false");
    else if (array->dtype == TN_U64)
        snprintf(text, CELL, "%" PRIu64, ((const uint64_t *)array->data)[i]);
    else if (array->dtype == TN_I64)
        snprintf(text, CELL, "%" PRId64, ((const int64_t *)array->data)[i]);
    else if (!eval_print_is_float(array->dtype))
        snprintf(text, CELL, "%.0f", value);
    else
        float_text(style, value, text);
}

// --- which elements are shown ----------------------------------------------------------

// Called for each element that is shown.
typedef void visitor(struct style *style, uint64_t i, void *context);

static bool next_shown(const struct style *style, int64_t *at)
{
    const tn_shape *shape = &style->array->shape;
    for (int32_t axis = shape->rank - 1; axis >= 0; axis--) {
        int64_t extent = shape->extent[axis];
        at[axis]++;
        if (style->summary && extent > 2 * EDGE && at[axis] == EDGE)
            at[axis] = extent - EDGE;
        if (at[axis] < extent)
            return true;
        at[axis] = 0;
    }
    return false;
}

static void visit_shown(struct style *style, visitor *visit, void *context)
{
    const tn_shape *shape = &style->array->shape;
    int64_t at[TN_MAX_RANK] = {0};
    if (!style->array->bytes)
        return;
    do {
        uint64_t i = 0;
        for (int32_t axis = 0; axis < shape->rank; axis++)
            i = i * (uint64_t)shape->extent[axis] + (uint64_t)at[axis];
        visit(style, i, context);
    } while (next_shown(style, at));
}

// --- choosing a style ------------------------------------------------------------------

struct eval_print_range {
    double least, most; // of the magnitudes that are finite and not 0
    int digits;         // digits after the point, in the chosen notation
};

static void see_range(struct style *style, uint64_t i, void *context)
{
    struct eval_print_range *range = context;
    for (uint64_t k = 0; k < eval_print_parts_of(style->array); k++) {
        double magnitude = fabs(eval_print_part(style->array, i, k));
        if (!isfinite(magnitude) || magnitude == 0)
            continue;
        range->least = fmin(range->least, magnitude);
        range->most = fmax(range->most, magnitude);
    }
}

static void see_digits(struct style *style, uint64_t i, void *context)
{
    struct eval_print_range *range = context;
    for (uint64_t k = 0; k < eval_print_parts_of(style->array); k++) {
        double value = eval_print_part(style->array, i, k);
        if (!isfinite(value) || value == 0)
            continue;
        int digits = own_digits(style, value);
        if (digits > range->digits)
            range->digits = digits;
    }
}

static void see_width(struct style *style, uint64_t i, void *context)
{
    char text[CELL];
    int *width = context; // [0]: up to the point, [1]: after it, [2]: no point
    eval_print_element_text(style, i, text);
    const char *point = eval_print_is_float(style->array->dtype) ? strchr(text, '.') : NULL;
    int before = point ? (int)(point - text) + 1 : (int)strlen(text);
    int behind = (int)strlen(text) - before;
    if (!point) {
        width[2] = before > width[2] ? before : width[2]; // nan, inf, integers
        return;
    }
    width[0] = before > width[0] ? before : width[0];
    width[1] = behind > width[1] ? behind : width[1];
}

static void choose_style(struct style *style)
{
    struct eval_print_range range = {.least = INFINITY};
    int widths[3] = {0};
    bool is_complex = tn_is_complex(style->array->dtype);
    if (eval_print_is_float(style->array->dtype) || is_complex) {
        visit_shown(style, see_range, &range);
        // NumPy's rule for exponents.
        style->exponent = range.most >= 1e8 || (range.most > 0 && range.least < 1e-4) ||
                          range.most / range.least > 1000;
        visit_shown(style, see_digits, &range);
        style->digits = range.digits > MAX_DIGITS ? MAX_DIGITS : range.digits;
    }
    visit_shown(style, see_width, widths);
    style->digits = style->exponent || is_complex ? style->digits : widths[1];
    style->width = widths[0] + widths[1];
    style->width = widths[2] > style->width ? widths[2] : style->width;
}

// --- printing --------------------------------------------------------------------------

// Prints one cell without its trailing blanks. Returns how many these are.
static int print_element(const struct style *style, uint64_t i)
{
    char text[CELL];
    eval_print_element_text(style, i, text);
    // Fixed notation is padded after the point, so that the points align.
    const char *point = strchr(text, '.');
    int missing = 0;
    if (eval_print_is_float(style->array->dtype) && !style->exponent && point)
        missing = style->digits - (int)strlen(point + 1);
    printf("%*s", style->width - missing, text);
    return missing;
}

static void print_row(const struct style *style, uint64_t base, int64_t extent, int indent)
{
    int column = indent, blanks = 0;
    for (int64_t i = 0; i < extent; i++) {
        bool gap = style->summary && extent > 2 * EDGE && i == EDGE;
        int width = gap ? 3 : style->width;
        if (i && column + 1 + width > LINE) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (i) {
            printf("%*s", blanks + 1, "");
            column++;
        }
        column += width;
        blanks = 0;
        if (gap) {
            printf("...");
            i = extent - EDGE - 1;
        } else {
            blanks = print_element(style, base + (uint64_t)i);
        }
    }
    printf("%*s", blanks, "");
}

// Recursive, at most TN_MAX_RANK deep.
static void print_axes(const struct style *style, int32_t axis, uint64_t base)
{
    const tn_shape *shape = &style->array->shape;
    if (axis == shape->rank) {
        print_element(style, base);
        return;
    }
    int64_t extent = shape->extent[axis];
    putchar('[');
    if (axis + 1 == shape->rank) {
        print_row(style, base, extent, axis + 1);
    } else {
        for (int64_t i = 0; i < extent; i++) {
            for (int32_t j = axis + 1; i && j < shape->rank; j++)
                putchar('\n');
            printf("%*s", i ? axis + 1 : 0, "");
            if (style->summary && extent > 2 * EDGE && i == EDGE) {
                printf("...");
                i = extent - EDGE - 1;
                continue;
            }
            print_axes(style, axis + 1,
                       (base + (uint64_t)i) * (uint64_t)shape->extent[axis + 1]);
        }
    }
    putchar(']');
}

int array_print(const struct host_array *array)
{
    char shape[SHAPE_TEXT];
    struct style style = {.array = array};
    style.summary = array->bytes / dtype_size(array->dtype) > THRESHOLD;
    choose_style(&style);
    printf("%s %s\n", dtype_name(array->dtype), shape_text(&array->shape, shape));
    if (array->bytes || !array->shape.rank)
        print_axes(&style, 0, 0);
    else
        printf("[]");
    putchar('\n');
    return 0;
}

// --- JSON ------------------------------------------------------------------------------

static json_t *part_json(const struct host_array *array, uint64_t i, uint64_t k)
{
    struct style style = {.array = array};
    char text[CELL];
    double value = eval_print_part(array, i, k);
    float_text(&style, value, text);
    return isfinite(value) ? json_real(value) : json_string(text);
}

static json_t *element_json(const struct host_array *array, uint64_t i)
{
    struct style style = {.array = array};
    char text[CELL];
    double value = host_array_number(array, i);
    if (tn_is_complex(array->dtype))
        return json_pack("[o, o]", part_json(array, i, 0), part_json(array, i, 1));
    if (array->dtype == TN_BOOL)
        return json_boolean(value != 0);
    if (eval_print_is_float(array->dtype) && isfinite(value))
        return json_real(value);
    eval_print_element_text(&style, i, text);
    if (eval_print_is_float(array->dtype) ||
        (array->dtype == TN_U64 && ((const uint64_t *)array->data)[i] > INT64_MAX))
        return json_string(text);
    return json_integer(array->dtype == TN_I64 ? ((const int64_t *)array->data)[i]
                        : array->dtype == TN_U64
                            ? (int64_t)((const uint64_t *)array->data)[i]
                            : (int64_t)value);
}

// Recursive, at most TN_MAX_RANK deep.
static json_t *axes_json(const struct host_array *array, int32_t axis, uint64_t *i)
{
    if (axis == array->shape.rank)
        return element_json(array, (*i)++);
    json_t *list = json_array();
    for (int64_t k = 0; k < array->shape.extent[axis]; k++)
        if (json_array_append_new(list, axes_json(array, axis + 1, i)))
            break;
    return list;
}

json_t *array_json(const struct host_array *array)
{
    uint64_t i = 0;
    json_t *shape = json_array();
    for (int32_t axis = 0; axis < array->shape.rank; axis++)
        json_array_append_new(shape, json_integer(array->shape.extent[axis]));
    return json_pack("{s:s, s:o, s:o}", "dtype", dtype_name(array->dtype), "shape", shape,
                     "data", axes_json(array, 0, &i));
}
