// SPDX-License-Identifier: MIT
// For applications: parts of arrays, written as NumPy writes them.
//
//   tn_array *last = tn_index(s, x, "..., -1");             // x[..., -1]
//   tn_array *odd = tn_index(s, x, "1::2, None");           // x[1::2, None]
//   tn_array *rows = tn_index_at(s, x, "%:%", i, i + n);    // x[i:i+n]
//
// Threads. As for the building functions of <tenon/tenon.h>.
#ifndef TENON_OPS_INDEX_H
#define TENON_OPS_INDEX_H

#include <tenon/ops/base.h>

#ifdef __cplusplus
extern "C" {
#endif

// Parts of an index: one of each axis, and the shape of the result.
typedef struct tn_index_parts {
    const tn_type *type;  // of the array
    const int64_t *value; // of the next %
    uint64_t num_values;  // that are left
    tn_ints start, stop, step;
    tn_ints removed; // axes of the part that a whole number leaves out
    tn_ints added;   // axes of the result that None puts in
    int32_t axis;    // next axis of the array
    int32_t rank;    // of the result so far
} tn_index_parts;

// Skips blanks.
static inline const char *tn_index_blanks(const char *at)
{
    while (*at == ' ')
        at++;
    return at;
}

// Whether `word` stands at `at`.
static inline int32_t tn_index_begins(const char *at, const char *word)
{
    while (*word && *at == *word)
        at++, word++;
    return !*word;
}

// Reads a whole number or %, if there is one. Gives what stands behind it.
static inline const char *tn_index_number(tn_index_parts *parts, const char *at,
                                          int64_t *value, int32_t *given)
{
    const char *digit = at + (*at == '-' || *at == '+');
    int64_t number = 0;
    *given = 0;
    if (*at == '%' && parts->num_values > 0) {
        *given = 1;
        *value = *parts->value++;
        parts->num_values--;
        return tn_index_blanks(at + 1);
    }
    for (; *digit >= '0' && *digit <= '9' && number < INT64_C(1) << 58; digit++) {
        number = number * 10 + (*digit - '0');
        *given = 1;
    }
    *value = *at == '-' ? -number : number;
    return *given ? tn_index_blanks(digit) : at;
}

// Takes the next axis whole.
static inline void tn_index_whole(tn_index_parts *parts)
{
    parts->start.value[parts->axis] = 0;
    parts->stop.value[parts->axis] = INT64_MAX;
    parts->step.value[parts->axis++] = 1;
    parts->rank++;
}

// Takes whole, for "...", the axes that the items behind it leave.
static inline void tn_index_rest(tn_index_parts *parts, const char *behind)
{
    int32_t taken = 0, within = 0;
    for (; *behind; behind++) {
        if (*behind == ',' || *behind == ' ') {
            within = within && *behind == ' ';
        } else if (!within) {
            within = 1;
            taken += !tn_index_begins(behind, "None");
        }
    }
    while (parts->axis < parts->type->rank - taken)
        tn_index_whole(parts);
}

// One item that is a number or start:stop:step. NULL when it is neither, or out of range.
static inline const char *tn_index_item(tn_index_parts *parts, const char *at)
{
    int64_t first, second, step = 1;
    int32_t has_first, has_second, has_step = 0, axis = parts->axis;
    if (axis >= parts->type->rank)
        return NULL;
    int64_t extent = parts->type->extent[axis];
    at = tn_index_number(parts, at, &first, &has_first);
    if (*at != ':') {
        if (!has_first || first < -extent || first >= extent)
            return NULL;
        parts->removed.value[parts->removed.count++] = axis;
        tn_index_whole(parts);
        parts->rank--;
        parts->start.value[axis] = first;
        parts->stop.value[axis] = first == -1 ? INT64_MAX : first + 1;
        return at;
    }
    at = tn_index_number(parts, tn_index_blanks(at + 1), &second, &has_second);
    if (*at == ':')
        at = tn_index_number(parts, tn_index_blanks(at + 1), &step, &has_step);
    if (!has_step)
        step = 1;
    if (step == 0)
        return NULL;
    tn_index_whole(parts);
    parts->start.value[axis] = has_first ? first : step < 0 ? INT64_MAX : 0;
    parts->stop.value[axis] = has_second ? second : step < 0 ? INT64_MIN : INT64_MAX;
    parts->step.value[axis] = step;
    return at;
}

// Reads the items of `text`. Gives the one that it cannot read, or NULL.
static inline const char *tn_index_read(tn_index_parts *parts, const char *text)
{
    int32_t has_rest = 0;
    const char *at = tn_index_blanks(text);
    while (*at) {
        const char *item = at;
        if (tn_index_begins(at, "...") && !has_rest) {
            has_rest = 1;
            at += 3;
            tn_index_rest(parts, at);
        } else if (tn_index_begins(at, "None")) {
            if (parts->rank >= TN_MAX_RANK)
                return item;
            parts->added.value[parts->added.count++] = parts->rank++;
            at += 4;
        } else {
            at = tn_index_item(parts, at);
        }
        if (!at)
            return item;
        at = tn_index_blanks(at);
        if (*at && *at != ',')
            return item;
        at = tn_index_blanks(at + (*at == ','));
    }
    while (parts->axis < parts->type->rank)
        tn_index_whole(parts);
    return NULL;
}

// The part of `array` that `text` says: items between commas, each a whole number (the axis
// goes), start:stop:step (any of them absent, counted from the end when negative), "..."
// (the axes that the others leave) or None (a new axis of extent 1). Axes behind the last
// item are taken whole. A % stands for the next of `values`. Gives a view where a view
// does.
static inline tn_array *tn_index_n(tn_scope *scope, const tn_array *array, const char *text,
                                   const int64_t *values, uint64_t num_values)
{
    const tn_ints none = {0, 1, {0}};
    if (tn_scope_status(scope) || !array || !text)
        return NULL;
    const tn_type *type = tn_array_type(array);
    const tn_ints all = {(uint32_t)type->rank, 1, {0}};
    tn_index_parts parts = {type, values, num_values, all, all, all, none, none, 0, 0};
    const char *wrong = tn_index_read(&parts, text);
    if (wrong || parts.num_values) {
        tn_scope_fail(scope, TN_ERR_ARGUMENT,
                      "index \"%s\" of an array of rank %d: got \"%s\", expected whole "
                      "numbers within the axis (axis %d has %lld), start:stop:step, ..., "
                      "None, and a number for each %%",
                      text, type->rank, wrong ? wrong : "", parts.axis,
                      (long long)(parts.axis < type->rank ? type->extent[parts.axis] : 0));
        return NULL;
    }
    const tn_slice_options options = {&parts.start, &parts.stop, &parts.step};
    tn_array *part = tn_slice(scope, array, &options);
    if (parts.removed.count)
        part = tn_squeeze(scope, part, &parts.removed);
    return parts.added.count ? tn_expand_dims(scope, part, &parts.added) : part;
}

// tn_index_n without values.
static inline tn_array *tn_index(tn_scope *scope, const tn_array *array, const char *text)
{
    return tn_index_n(scope, array, text, NULL, 0);
}

#ifndef __cplusplus
// tn_index_n with the values as arguments. C only.
#define tn_index_at(scope, array, text, ...)                                               \
    tn_index_n(scope, array, text, (const int64_t[]){__VA_ARGS__},                         \
               sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#endif

#ifdef __cplusplus
}
#endif

#endif // TENON_OPS_INDEX_H
