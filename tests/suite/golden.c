// SPDX-License-Identifier: MIT
// Cases that NumPy decided, read from the file that golden.py writes.
//
// The file comes from our own build: what is wrong in it ends the reading, no more.
#include "cases.h"

// The `roundings` of a case in which every bit counts. All are run, whatever share is.
#define EVERY_BIT (1 << 20)

enum { MAX_INPUTS = 24, MAX_LIST = 6, MAX_RESULTS = 6 };

struct golden {
    char name[64];
    char keys[MAX_LIST][32], texts[MAX_LIST][128];
    int64_t num_attrs, num_inputs, num_results;
    int64_t roundings; // that elements may be off by, beside those of a quotient
    struct host_array in[MAX_INPUTS], want[MAX_RESULTS];
};

static bool read_number(FILE *file, int64_t most, int64_t *out)
{
    return fread(out, sizeof(*out), 1, file) == 1 && *out >= 0 && *out <= most;
}

static bool read_text(FILE *file, char *out, int64_t size)
{
    int64_t length;
    if (!read_number(file, size - 1, &length) ||
        fread(out, 1, (size_t)length, file) != (size_t)length)
        return false;
    out[length] = 0;
    return true;
}

static bool read_array(FILE *file, struct host_array *out)
{
    int64_t dtype, rank, extent[TN_MAX_RANK];
    if (!read_number(file, TN_COMPLEX128, &dtype) || !read_number(file, TN_MAX_RANK, &rank))
        return false;
    for (int64_t i = 0; i < rank; i++)
        if (!read_number(file, 1 << 20, &extent[i]))
            return false;
    if (dtype == TN_DTYPE_NONE) // an input that is not given
        return true;
    *out = host_array_new((tn_dtype)dtype, (int32_t)rank, extent);
    size_t size = (size_t)(out->count * tn_dtype_bytes((tn_dtype)dtype));
    return fread(out->tensor.data, 1, size, file) == size;
}

static bool read_case(FILE *file, struct golden *g)
{
    if (!read_text(file, g->name, sizeof(g->name)) ||
        !read_number(file, MAX_LIST, &g->num_attrs))
        return false;
    for (int64_t i = 0; i < g->num_attrs; i++)
        if (!read_text(file, g->keys[i], sizeof(g->keys[i])) ||
            !read_text(file, g->texts[i], sizeof(g->texts[i])))
            return false;
    if (!read_number(file, MAX_INPUTS, &g->num_inputs))
        return false;
    for (int64_t i = 0; i < g->num_inputs; i++)
        if (!read_array(file, &g->in[i]))
            return false;
    if (!read_number(file, EVERY_BIT, &g->roundings) ||
        !read_number(file, MAX_RESULTS, &g->num_results))
        return false;
    for (int64_t i = 0; i < g->num_results; i++)
        if (!read_array(file, &g->want[i]))
            return false;
    return true;
}

static bool is_subnormal(const struct host_array *a, int64_t i)
{
    return a->tensor.layout.dtype == TN_F32 && fabs(host_array_get(a, i)) < 0x1p-126 &&
           host_array_get(a, i) != 0;
}

// Where a device does not tell subnormal numbers of f32 from 0, results that are subnormal
// and those of subnormal elements become NumPy's.
static void excuse_subnormal(const struct golden *g, struct host_array *got,
                             const struct host_array *want)
{
    size_t bytes = (size_t)tn_dtype_bytes(want->tensor.layout.dtype);
    if (got->tensor.layout.dtype != want->tensor.layout.dtype || got->count != want->count)
        return;
    for (int64_t i = 0; i < got->count; i++) {
        bool excused = is_subnormal(want, i) && fabs(host_array_get(got, i)) <= 0x1p-126;
        for (int64_t k = 0; k < g->num_inputs; k++)
            excused =
                excused || (g->in[k].count == got->count && is_subnormal(&g->in[k], i));
        if (excused)
            memcpy((char *)got->tensor.data + (size_t)i * bytes,
                   (const char *)want->tensor.data + (size_t)i * bytes, bytes);
    }
}

// NULL when output `number` is as NumPy has it, else a message.
static const char *compare_output(struct suite *s, const struct golden *g, tn_scope *scope,
                                  tn_array *out, int64_t number)
{
    struct host_array got;
    if (!host_array_read(scope, out, &got))
        return tn_scope_error(scope);
    // Whole numbers, but for quotients: one rounding, and 3 units on a GPU.
    double unit = dtype_rounding(got.tensor.layout.dtype) * (s->is_cpu ? 1 : 4);
    double beside = (double)g->roundings * unit;
    if (s->flushes)
        excuse_subnormal(g, &got, &g->want[number]);
    const char *failure =
        host_array_compare(&got, &g->want[number],
                           g->roundings == EVERY_BIT ? -1 : fmax(2 * unit, beside), beside);
    host_array_free(&got);
    return failure;
}

static void check_golden(struct suite *s, struct golden *g, int64_t number)
{
    tn_array *in[MAX_INPUTS] = {NULL}, *out[MAX_RESULTS] = {NULL};
    tn_attr items[MAX_LIST];
    const char *failure = NULL;
    tn_scope *scope = tn_scope_open(s->runtime);
    for (int64_t i = 0; i < g->num_inputs; i++)
        if (g->in[i].tensor.data)
            in[i] = host_array_upload(scope, &g->in[i], PLAIN);
    for (int64_t i = 0; i < g->num_attrs; i++)
        items[i] = (tn_attr){.name = g->keys[i], .kind = TN_ATTR_TEXT, .text = g->texts[i]};
    tn_op_n(scope, g->name, (const tn_array *const *)in, (uint64_t)g->num_inputs,
            TN_ATTR_LIST(items, (uint64_t)g->num_attrs), out, (uint64_t)g->num_results);
    for (int64_t i = 0; i < g->num_results && !failure; i++)
        failure = compare_output(s, g, scope, out[i], i);
    check(s, failure, "%s %s %s #%lld", g->name,
          g->num_inputs ? tn_dtype_name(g->in[0].tensor.layout.dtype) : "",
          g->num_inputs > 1 ? tn_dtype_name(g->in[1].tensor.layout.dtype) : "",
          (long long)number);
    tn_scope_close(scope);
}

void golden_tests(struct suite *s, const char *file)
{
    FILE *stream = file ? fopen(file, "rb") : NULL;
    int64_t count = 0, i = 0;
    if (!stream) {
        test_skip(s, "what NumPy gives", "no NumPy when this was built");
        for (uint32_t k = 0; k < num_operator_cases; k++)
            cover(operator_cases[k].primitive);
        return;
    }
    if (test_begin(s, "what NumPy gives")) {
        if (!read_number(stream, 1 << 20, &count))
            count = 0;
        for (; i < count; i++) {
            struct golden g = {0};
            bool good = read_case(stream, &g);
            cover(g.name);
            bool in_share = (uint64_t)i % s->share == s->seed % s->share;
            if (good && (in_share || g.roundings == EVERY_BIT))
                check_golden(s, &g, i);
            for (int64_t k = 0; k < MAX_INPUTS; k++)
                host_array_free(&g.in[k]);
            for (int64_t k = 0; k < MAX_RESULTS; k++)
                host_array_free(&g.want[k]);
            if (!good)
                break;
        }
        check(s, i == count && count > 0 ? NULL : "the file of cases is damaged", "file");
        test_end(s);
    }
    fclose(stream);
}
