// SPDX-License-Identifier: MIT
// Hostile indices: out of range, negative, of every integer dtype.
#include "suite.h"

enum { LENGTH = 5 };

// The place that index `i` of x stands for, counted from the front: below 0 or LENGTH and
// more for those out of range.
static int64_t place_of(const struct host_array *x, int64_t i)
{
    int64_t at = tn_get_i64(&x->tensor, i);
    if (at >= 0)
        return at;
    return x->tensor.layout.dtype == TN_U64 ? LENGTH : at < -LENGTH ? -1 : at + LENGTH;
}

static struct host_array counted(int32_t rank, const int64_t *extent)
{
    struct host_array v = host_array_new(TN_F32, rank, extent);
    for (int64_t i = 0; i < v.count; i++)
        tn_set_f64(&v.tensor, i, (double)(i + 1));
    return v;
}

// The derivative with respect to `wrt`, from a cotangent like `like`, counted.
static tn_array *derivative(tn_scope *scope, tn_array *y, const struct host_array *like,
                            tn_array *wrt)
{
    struct host_array g = counted(1, &like->count);
    tn_array *cotangent = host_array_upload(scope, &g, PLAIN), *gradient = NULL;
    host_array_free(&g);
    return tn_vjp(scope, &y, &cotangent, 1, &wrt, 1, &gradient) == TN_OK ? gradient : NULL;
}

static void check_take(struct suite *s, struct host_array *indices, const char *what)
{
    struct host_array x = counted(1, (int64_t[]){LENGTH});
    struct host_array want = host_array_new(TN_F32, 1, &indices->count);
    struct host_array gradient = host_array_new(TN_F32, 1, &x.count);
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t at = place_of(indices, i);
        at = at < 0 ? 0 : at < LENGTH ? at : LENGTH - 1;
        tn_set_f64(&want.tensor, i, (double)(at + 1));
        tn_set_f64(&gradient.tensor, at, host_array_get(&gradient, at) + (double)(i + 1));
    }
    tn_scope *scope = tn_scope_open(s->runtime);
    tn_array *in[] = {host_array_upload(scope, &x, PLAIN),
                      host_array_upload(scope, indices, PLAIN)};
    tn_array *y = tn_op(scope, "base.take", TN_IN(in[0], in[1]), TN_NO_ATTRS);
    check_array(s, scope, y, &want, 0, what);
    check_array(s, scope, derivative(scope, y, indices, in[0]), &gradient, 0, what);
    tn_scope_close(scope);
    host_array_free(&x);
}

// Parts of 2 of x that begin at each of the indices, as rows: NumPy's x[at:at + 2] with
// `at` clamped to 0 ... LENGTH - 2.
static void check_parts(struct suite *s, struct host_array *indices, const char *what)
{
    enum { PART = 2 };
    struct host_array x = counted(1, (int64_t[]){LENGTH}),
                      update = counted(1, (int64_t[]){PART});
    for (int64_t i = 0; i < indices->count; i++) {
        struct host_array part = host_array_new(TN_F32, 1, (int64_t[]){PART});
        struct host_array whole = counted(1, &x.count), start;
        int64_t at = place_of(indices, i);
        at = at < 0 ? 0 : at < LENGTH - PART ? at : LENGTH - PART;
        for (int64_t k = 0; k < PART; k++) {
            tn_set_f64(&part.tensor, k, (double)(at + k + 1));
            tn_set_f64(&whole.tensor, at + k, (double)(k + 1));
        }
        start = host_array_new(indices->tensor.layout.dtype, 1, (int64_t[]){1});
        tn_set_i64(&start.tensor, 0, tn_get_i64(&indices->tensor, i));
        tn_scope *scope = tn_scope_open(s->runtime);
        tn_array *in[] = {host_array_upload(scope, &x, PLAIN),
                          host_array_upload(scope, &start, PLAIN),
                          host_array_upload(scope, &update, PLAIN)};
        check_array(s, scope,
                    tn_op(scope, "base.dynamic_slice", TN_IN(in[0], in[1]),
                          tn_attrs("sizes", TN_INTS(PART))),
                    &part, 0, what);
        check_array(s, scope,
                    tn_op(scope, "base.dynamic_slice_update", TN_IN(in[0], in[2], in[1]),
                          TN_NO_ATTRS),
                    &whole, 0, what);
        tn_scope_close(scope);
        host_array_free(&start);
    }
    host_array_free(&x);
    host_array_free(&update);
}

static void check_scatter(struct suite *s, struct host_array *indices, const char *what)
{
    struct host_array x = counted(1, (int64_t[]){LENGTH}), want = counted(1, &x.count);
    struct host_array updates = counted(1, &indices->count);
    struct host_array gradient = host_array_new(TN_F32, 1, &indices->count);
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t at = place_of(indices, i);
        if (at < 0 || at >= LENGTH)
            continue;
        tn_set_f64(&want.tensor, at, host_array_get(&want, at) + (double)(i + 1));
        tn_set_f64(&gradient.tensor, i, (double)(at + 1));
    }
    tn_scope *scope = tn_scope_open(s->runtime);
    tn_array *in[] = {host_array_upload(scope, &x, PLAIN),
                      host_array_upload(scope, indices, PLAIN),
                      host_array_upload(scope, &updates, PLAIN)};
    tn_array *y = tn_op(scope, "base.scatter_add", TN_IN(in[0], in[1], in[2]), TN_NO_ATTRS);
    check_array(s, scope, y, &want, 0, what);
    check_array(s, scope, derivative(scope, y, &x, in[2]), &gradient, 0, what);
    tn_scope_close(scope);
    host_array_free(&x);
    host_array_free(&updates);
}

// Equal logits: each class costs log(LENGTH), and what is no class nothing.
static void check_labels(struct suite *s, struct host_array *labels, const char *what)
{
    struct host_array x = host_array_new(TN_F32, 2, (int64_t[]){labels->count, LENGTH});
    struct host_array want = host_array_new(TN_F32, 1, &labels->count);
    for (int64_t i = 0; i < labels->count; i++) {
        int64_t label = tn_get_i64(&labels->tensor, i);
        tn_set_f64(&want.tensor, i, label >= 0 && label < LENGTH ? log(LENGTH) : 0);
    }
    tn_scope *scope = tn_scope_open(s->runtime);
    tn_array *in[] = {host_array_upload(scope, &x, PLAIN),
                      host_array_upload(scope, labels, PLAIN)};
    check_array(s, scope,
                tn_op(scope, "nn.cross_entropy", TN_IN(in[0], in[1]), TN_NO_ATTRS), &want,
                1e-5, what);
    tn_scope_close(scope);
    host_array_free(&x);
}

void index_tests(struct suite *s)
{
    if (!test_begin(s, "hostile indices"))
        return;
    for (tn_dtype dtype = TN_BOOL; dtype <= TN_F64; dtype++) {
        if (!tn_dtype_in(dtype, TN_INTEGER_DTYPES))
            continue;
        const int64_t list[] = {0,         4,
                                5,         -1,
                                -5,        -6,
                                127,       -128,
                                1LL << 32, (1LL << 32) + 1,
                                INT64_MAX, INT64_MIN,
                                3,         -(1LL << 32) + 2,
                                1LL << 31, INT32_MIN,
                                INT32_MAX, -(1LL << 32) - 1};
        struct host_array indices = host_array_new(
            dtype, 1, (int64_t[]){(int64_t)(sizeof(list) / sizeof(list[0]))});
        for (int64_t i = 0; i < indices.count; i++)
            tn_set_i64(&indices.tensor, i, list[i]);
        char what[4][64];
        snprintf(what[0], sizeof(what[0]), "take by %s", tn_dtype_name(dtype));
        snprintf(what[1], sizeof(what[1]), "scatter_add by %s", tn_dtype_name(dtype));
        snprintf(what[2], sizeof(what[2]), "cross_entropy of %s", tn_dtype_name(dtype));
        check_take(s, &indices, what[0]);
        check_scatter(s, &indices, what[1]);
        check_labels(s, &indices, what[2]);
        snprintf(what[3], sizeof(what[3]), "parts at %s", tn_dtype_name(dtype));
        check_parts(s, &indices, what[3]);
        host_array_free(&indices);
    }
    test_end(s);
}
