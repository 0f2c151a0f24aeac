// SPDX-License-Identifier: MIT
// Arrays on the host: filled, laid out on the device in several ways, read back, compared.
#include "suite.h"
#include <inttypes.h>

const char *const layout_names[NUM_LAYOUTS] = {"plain", "transposed", "strided", "reversed",
                                               "repeated"};

struct host_array host_array_new(tn_dtype dtype, int32_t rank, const int64_t *extent)
{
    struct host_array v = {{NULL, {.dtype = dtype, .rank = rank}}, 1};
    for (int32_t i = rank - 1; i >= 0; i--) {
        v.tensor.layout.extent[i] = extent[i];
        v.tensor.layout.stride[i] = v.count;
        v.count *= extent[i];
    }
    v.tensor.data = calloc((size_t)(v.count + 1), (size_t)tn_dtype_bytes(dtype));
    if (!v.tensor.data)
        abort(); // a test program: nothing to save
    return v;
}

void host_array_free(struct host_array *host)
{
    free(host->tensor.data);
    host->tensor.data = NULL;
}

tn_type host_array_type(const struct host_array *host)
{
    tn_type type = {.dtype = host->tensor.layout.dtype, .rank = host->tensor.layout.rank};
    memcpy(type.extent, host->tensor.layout.extent, sizeof(type.extent));
    return type;
}

void host_array_fill(struct suite *s, struct host_array *host, double lo, double hi)
{
    tn_dtype dtype = host->tensor.layout.dtype;
    int bits = (int)tn_dtype_bytes(dtype) * 8;
    if (tn_dtype_in(dtype, TN_UNSIGNED_DTYPES)) {
        lo = fmax(lo, 0);
        hi = fmin(hi, ldexp(1, bits) - 1);
    } else if (tn_dtype_in(dtype, TN_SIGNED_DTYPES)) {
        lo = fmax(lo, -ldexp(1, bits - 1));
        hi = fmin(hi, ldexp(1, bits - 1) - 1);
    }
    for (int64_t i = 0; i < host->count; i++) {
        double x = random_in(s, lo, hi);
        if (dtype == TN_BOOL)
            tn_set_i64(&host->tensor, i, random_bits(s) >> 63);
        else if (tn_dtype_in(dtype, TN_INTEGER_DTYPES))
            tn_set_f64(&host->tensor, i, fmin(fmax(round(x), ceil(lo)), floor(hi)));
        else
            tn_set_f64(&host->tensor, i, x);
    }
}

double host_array_get(const struct host_array *host, int64_t i)
{
    return tn_get_f64(&host->tensor, i);
}

// --- layouts ----------------------------------------------------------------------------

static tn_array *upload(tn_scope *scope, const struct host_array *host)
{
    tn_shape shape = {.rank = host->tensor.layout.rank};
    memcpy(shape.extent, host->tensor.layout.extent, sizeof(shape.extent));
    return tn_from_data(scope, host->tensor.layout.dtype, &shape, host->tensor.data);
}

// A new array of these extents in which the host array's elements stand at
// first + i * step on each axis, or permuted; the rest is left at 77.
static struct host_array spread(const struct host_array *host, const int64_t *extent,
                                int64_t first, int64_t step)
{
    struct host_array wide =
        host_array_new(host->tensor.layout.dtype, host->tensor.layout.rank, extent);
    for (int64_t i = 0; i < wide.count; i++)
        tn_set_f64(&wide.tensor, i, 77);
    tn_tensor part = wide.tensor;
    for (int32_t i = 0; i < part.layout.rank; i++) {
        int64_t n = host->tensor.layout.extent[i];
        part.layout.offset += (step < 0 ? n - 1 : first) * part.layout.stride[i];
        part.layout.extent[i] = n;
        part.layout.stride[i] *= step;
    }
    if (host->count)
        tn_copy_region(&part, &host->tensor);
    return wide;
}

static tn_array *transposed_array(tn_scope *scope, const struct host_array *host)
{
    const tn_layout *layout = &host->tensor.layout;
    int64_t extent[TN_MAX_RANK] = {0};
    for (int32_t i = 0; i < layout->rank; i++)
        extent[i] = layout->extent[layout->rank - 1 - i];
    struct host_array other = host_array_new(layout->dtype, layout->rank, extent);
    tn_tensor seen = other.tensor;
    for (int32_t i = 0; i < layout->rank; i++) {
        seen.layout.extent[i] = layout->extent[i];
        seen.layout.stride[i] = other.tensor.layout.stride[layout->rank - 1 - i];
    }
    tn_copy_region(&seen, &host->tensor);
    tn_array *array =
        tn_op(scope, "base.transpose", TN_IN(upload(scope, &other)), TN_NO_ATTRS);
    host_array_free(&other);
    return array;
}

static tn_array *sliced_array(tn_scope *scope, const struct host_array *host, int64_t first,
                              int64_t step)
{
    int64_t extent[TN_MAX_RANK] = {0};
    tn_ints start = {.count = (uint32_t)host->tensor.layout.rank, .given = 1};
    tn_ints by = start, stop = start;
    for (int32_t i = 0; i < host->tensor.layout.rank; i++) {
        int64_t n = host->tensor.layout.extent[i];
        extent[i] = step > 0 ? first + n * step : n;
        start.value[i] = step > 0 ? first : TN_SLICE_END;
        stop.value[i] = TN_SLICE_END;
        by.value[i] = step;
    }
    struct host_array wide = spread(host, extent, first, step);
    tn_array *array = tn_op(scope, "base.slice", TN_IN(upload(scope, &wide)),
                            tn_attrs("start", &start, "stop", &stop, "step", &by));
    host_array_free(&wide);
    return array;
}

// Makes the first axis constant, keeps one of it, and repeats that on the device.
static tn_array *repeated_array(tn_scope *scope, struct host_array *host)
{
    tn_layout *layout = &host->tensor.layout;
    int64_t size = tn_dtype_bytes(layout->dtype);
    tn_ints shape = {.count = (uint32_t)layout->rank, .given = 1};
    memcpy(shape.value, layout->extent, sizeof(shape.value));
    for (int64_t i = 1; i < layout->extent[0]; i++)
        memcpy((char *)host->tensor.data + i * layout->stride[0] * size, host->tensor.data,
               (size_t)(layout->stride[0] * size));
    struct host_array one = *host;
    one.tensor.layout.extent[0] = 1;
    tn_array *array = upload(scope, &one);
    return tn_op(scope, "base.broadcast_to", TN_IN(array), tn_attrs("shape", &shape));
}

tn_array *host_array_upload(tn_scope *scope, struct host_array *host, enum layout_kind kind)
{
    bool can_repeat = host->tensor.layout.rank > 0 && host->tensor.layout.extent[0] > 0;
    switch (kind) {
    case TRANSPOSED:
        return transposed_array(scope, host);
    case STRIDED:
        return sliced_array(scope, host, 1, 2);
    case REVERSED:
        return sliced_array(scope, host, 0, -1);
    case REPEATED:
        return can_repeat ? repeated_array(scope, host) : upload(scope, host);
    default:
        return upload(scope, host);
    }
}

static bool was_unsupported;

bool read_was_unsupported(void)
{
    bool was = was_unsupported;
    was_unsupported = false;
    return was;
}

bool host_array_read(tn_scope *scope, tn_array *array, struct host_array *out)
{
    const tn_type *type = tn_array_type(array);
    tn_status status = array ? tn_eval(scope, array) : tn_scope_status(scope);
    was_unsupported = status == TN_ERR_UNSUPPORTED;
    if (!array || status != TN_OK)
        return false;
    *out = host_array_new(type->dtype, type->rank, type->extent);
    uint64_t size = (uint64_t)(out->count * tn_dtype_bytes(type->dtype));
    if (tn_read(scope, array, out->tensor.data, size) == TN_OK)
        return true;
    host_array_free(out);
    return false;
}

// --- comparison -------------------------------------------------------------------------

static bool is_near(double got, double want, double relative, double absolute)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (relative < 0)
        return got == want && signbit(got) == signbit(want);
    if (isinf(want) || isinf(got))
        return want == got;
    return fabs(got - want) <= absolute + relative * fabs(want);
}

// Of complex numbers: both parts to within the magnitude of what is wanted; beside a NaN of
// the other part.
static bool is_near_complex(const struct host_array *got, const struct host_array *want,
                            int64_t i, double relative, double absolute)
{
    const tn_complex128 x = tn_get_complex(&got->tensor, i),
                        y = tn_get_complex(&want->tensor, i);
    double size = hypot(isnan(y.re) ? 0 : y.re, isnan(y.im) ? 0 : y.im),
           beside = absolute + fmax(relative, 0) * size;
    return is_near(x.re, y.re, 0, beside) && is_near(x.im, y.im, 0, beside);
}

const char *host_array_compare(const struct host_array *got, const struct host_array *want,
                               double relative, double absolute)
{
    static char text[256];
    const tn_layout *a = &got->tensor.layout, *b = &want->tensor.layout;
    if (a->dtype != b->dtype || a->rank != b->rank ||
        memcmp(a->extent, b->extent, sizeof(int64_t) * (size_t)a->rank) != 0) {
        snprintf(text, sizeof(text),
                 "got %s of rank %d [%" PRId64 ", ...], expected %s of "
                 "rank %d [%" PRId64 ", ...]",
                 tn_dtype_name(a->dtype), a->rank, a->extent[0], tn_dtype_name(b->dtype),
                 b->rank, b->extent[0]);
        return text;
    }
    bool exact = tn_dtype_in(a->dtype, TN_INTEGER_DTYPES) && relative == 0 && absolute == 0;
    for (int64_t i = 0; i < got->count; i++) {
        double x = host_array_get(got, i), y = host_array_get(want, i);
        bool same = exact ? tn_get_i64(&got->tensor, i) == tn_get_i64(&want->tensor, i)
                    : tn_is_complex(a->dtype)
                        ? is_near_complex(got, want, i, relative, absolute)
                        : is_near(x, y, relative, absolute);
        if (same)
            continue;
        snprintf(text, sizeof(text),
                 "element %" PRId64 " of %" PRId64
                 " is %.17g, expected %.17g to within %.3g",
                 i, got->count, x, y, absolute + relative * fabs(y));
        return text;
    }
    return NULL;
}
