// SPDX-License-Identifier: MIT
// A packing under a runtime: operators of pack "quant" on the backend's device, each launch
// compared with its definition too (TENON_CHECK).
#include "packing.h"

#include <math.h>
#include <tenon/tenon.h>

enum { ROWS = 37, IDS = 4, STACK = 2 };
#define ERROR 1e-5 // error of sums in another order, relative to the greatest value

struct packing_trial {
    const struct packing *p;
    tn_scope *scope;
    tn_array *plain, *packed; // the weights
    const char *what;         // the operator
};

static tn_array *values_draw(struct packing_trial *t, int32_t rank, const int64_t *extent)
{
    tn_shape shape = {.rank = rank};
    int64_t count = 1;
    for (int32_t i = 0; i < rank; i++)
        count *= shape.extent[i] = extent[i];
    float *values = malloc((size_t)count * sizeof(*values));
    for (int64_t i = 0; values && i < count; i++)
        values[i] = (float)random_in(t->p->kit, -2, 2);
    tn_array *out = values ? tn_from_data(t->scope, TN_F32, &shape, values) : NULL;
    free(values);
    return out;
}

static int64_t values_count(const tn_array *array)
{
    const tn_type *type = array ? tn_array_type(array) : NULL;
    int64_t count = type ? 1 : 0;
    for (int32_t i = 0; type && i < type->rank; i++)
        count *= type->extent[i];
    return count;
}

// Fills a block with finite values of usual size; with zeros if random blocks are rarely
// such.
static void weights_fill_block(const struct packing *p, uint8_t *block)
{
    float values[TN_QUANT_MAX_BLOCK];
    for (int tries = 0; tries < 2000; tries++) {
        double most = 0;
        for (int64_t i = 0; i < p->format->bytes; i++)
            block[i] = (uint8_t)random_bits(p->kit);
        p->format->decode(block, values);
        for (int64_t i = 0; i < p->format->block; i++)
            most = isfinite(values[i]) ? fmax(most, fabs((double)values[i])) : INFINITY;
        if (most > 0.01 && most < 100)
            return;
    }
    memset(block, 0, (size_t)p->format->bytes);
}

static tn_array *weights_draw(struct packing_trial *t, int64_t columns)
{
    const struct packing *p = t->p;
    int64_t row = columns / p->format->block * p->format->bytes, size = ROWS * row;
    uint8_t *bytes = malloc((size_t)size);
    for (int64_t at = 0; bytes && at < size; at += p->format->bytes)
        weights_fill_block(p, bytes + at);
    tn_array *out =
        bytes ? tn_from_data(t->scope, TN_U8, TN_SHAPE(ROWS, row), bytes) : NULL;
    free(bytes);
    return out;
}

// The bytes of an array, `size` an element, for free(). NULL: the check has failed, or no
// selected device runs the operator.
static void *values_read(struct packing_trial *t, tn_array *array, size_t size)
{
    size_t bytes = (size_t)values_count(array) * size;
    void *out = malloc(bytes + 1);
    tn_status status = out && array ? tn_read(t->scope, array, out, bytes) : TN_ERR_MEMORY;
    if (status == TN_OK)
        return out;
    if (tn_scope_status(t->scope) == TN_ERR_UNSUPPORTED)
        tn_scope_clear_error(t->scope);
    else
        check_fail(t->p->kit, "%s fails: %s", t->what, tn_scope_error(t->scope));
    free(out);
    return NULL;
}

// Compares two results of the operator `what`, of floats.
static void values_compare(struct packing_trial *t, const char *what, tn_array *a,
                           tn_array *b)
{
    t->what = what;
    float *got = values_read(t, a, sizeof(float)),
          *want = got ? values_read(t, b, sizeof(float)) : NULL;
    double most = 0;
    int64_t count = values_count(a);
    if (want && count != values_count(b))
        check_fail(t->p->kit, "%s of packed rows has another shape", what);
    else if (want)
        check_case(t->p->kit);
    for (int64_t i = 0; want && i < count; i++)
        most = fmax(most, fabs((double)want[i]));
    for (int64_t i = 0; want && i < count && !check_failed(t->p->kit); i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= ERROR * most))
            check_fail(t->p->kit,
                       "%s of packed rows gives %g for element %lld, expected %g", what,
                       (double)got[i], (long long)i, (double)want[i]);
    free(got);
    free(want);
}

// quant.pack on the device must give the record's bytes, and unpack them.
static void values_check_pack(struct packing_trial *t)
{
    const struct packing *p = t->p;
    const char *id = p->record->id;
    const tn_type *type = t->packed ? tn_array_type(t->packed) : NULL;
    int64_t columns = 3 * p->format->block;
    int64_t size = type ? p->record->rows_bytes(p->record, ROWS, columns) : 0;
    t->what = "quant.pack";
    if (type &&
        (type->rank != 2 || type->extent[0] != ROWS || ROWS * type->extent[1] != size))
        check_fail(p->kit, "quant.pack gives rows of %lld bytes, expected %lld",
                   (long long)type->extent[type->rank - 1], (long long)size / ROWS);
    tn_array *back = tn_op(t->scope, "quant.pack", TN_IN(t->packed),
                           tn_attrs("format", id, "to", p->format->name));
    uint8_t *plain = values_read(t, t->plain, 1),
            *packed = plain ? values_read(t, t->packed, 1) : NULL;
    uint8_t *again = packed ? values_read(t, back, 1) : NULL,
            *want = malloc((size_t)size + 1);
    if (again && want && !check_failed(p->kit)) {
        p->record->pack(p->record, plain, ROWS, columns, want);
        check_case(p->kit);
        if (memcmp(packed, want, (size_t)size) != 0)
            check_fail(p->kit, "quant.pack gives other bytes than the record's pack");
        if (memcmp(plain, again, (size_t)values_count(t->plain)) != 0)
            check_fail(p->kit, "quant.pack back gives other bytes than it had");
    }
    free(plain);
    free(packed);
    free(again);
    free(want);
}

// Results of operators with packed rows, or with plain ones.
struct packing_results {
    tn_array *floats, *taken, *product, *chosen;
};

static struct packing_results values_compute(struct packing_trial *t, const char *format,
                                             tn_array *w, tn_array *x, tn_array *ids)
{
    tn_scope *s = t->scope;
    const struct packing *p = t->p;
    struct packing_results out = {
        .floats = tn_op(s, "quant.dequantize", TN_IN(w), tn_attrs("format", format)),
        .taken =
            tn_op(s, "quant.quantized_take", TN_IN(w, ids), tn_attrs("format", format)),
        .product = tn_op(s, "quant.quantized_matmul", TN_IN(x, w),
                         tn_attrs("format", format, "exact", (int64_t)1)),
    };
    if (!(p->record->flags & TN_PACKING_STACKED) ||
        !tn_primitive_find(tn_scope_runtime(s), "base.stack/1"))
        return out;
    static const int64_t chosen[] = {1, 0};
    tn_array *both = tn_op(s, "base.stack", TN_IN(w, w), tn_attrs("axis", (int64_t)0));
    tn_array *rows = tn_op(s, "base.expand_dims", TN_IN(x), tn_attrs("axis", TN_INTS(1)));
    out.chosen =
        tn_op(s, "quant.experts_matmul",
              TN_IN(rows, both, tn_from_data(s, TN_I64, TN_SHAPE(STACK, 1), chosen)),
              tn_attrs("format", format, "exact", (int64_t)1));
    return out;
}

void packing_check_values(const struct packing *p, tn_runtime *runtime)
{
    static const int64_t positions[IDS] = {0, ROWS - 1, 16, -3};
    const int64_t columns = 3 * p->format->block;
    const char *plain = p->format->name, *id = p->record->id;
    struct packing_trial t = {.p = p, .scope = tn_scope_open(runtime)};
    tn_scope *s = t.scope;
    tn_array *x = values_draw(&t, 2, (const int64_t[]){STACK, columns});
    tn_array *ids = tn_from_data(s, TN_I64, TN_SHAPE(IDS), positions);
    t.plain = weights_draw(&t, columns);
    t.packed = tn_op(s, "quant.pack", TN_IN(t.plain), tn_attrs("format", plain, "to", id));
    values_check_pack(&t);
    struct packing_results want = values_compute(&t, plain, t.plain, x, ids),
                           got = values_compute(&t, id, t.packed, x, ids);
    if (!check_failed(p->kit))
        values_compare(&t, "quant.dequantize", got.floats, want.floats);
    if (!check_failed(p->kit))
        values_compare(&t, "quant.quantized_take", got.taken, want.taken);
    if (!check_failed(p->kit))
        values_compare(&t, "quant.quantized_matmul", got.product, want.product);
    if (!check_failed(p->kit) && want.chosen)
        values_compare(&t, "quant.experts_matmul", got.chosen, want.chosen);
    if (p->kit->cases == 0 && !check_failed(p->kit))
        check_skip(p->kit, "the device runs none of these operators: try --with cpu-blas");
    tn_scope_close(s);
}
