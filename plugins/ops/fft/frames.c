// SPDX-License-Identifier: MIT
// Transforms of overlapping frames, stft and istft, and of symmetric sequences, hfft and
// ihfft. All are composites.
//
// Griffin, Lim, "Signal estimation from modified short-time Fourier transform", IEEE
// Transactions on Acoustics, Speech and Signal Processing 32(2), 1984: the overlapping sum
// divided by that of the squared windows.
#include "pack.h"

#define LEAST_ENVELOPE 1e-11 // of summed squared windows, below which an element is unknown

typedef struct {
    int64_t n_fft, hop_length, win_length, center, pad_mode, norm, onesided, length;
} frames_attrs;

static const char *const pad_modes[] = {"reflect", "constant", "edge", NULL};
static const int64_t pad_choices[] = {2, 0, 1}; // of base.pad/1
static const char *const sides[] = {"auto", "one", "two", NULL};
enum { SIDES_AUTO, SIDES_ONE, SIDES_TWO };

#define FRAMES                                                                             \
    TN_I64_FIELD(frames_attrs, hop_length, 0,                                              \
                 "elements from frame to frame; 0: a quarter of n_fft"),                   \
        TN_I64_FIELD(frames_attrs, win_length, 0,                                          \
                     "elements of the window, around which are zeros; 0: n_fft"),          \
        TN_BOOL_FIELD(frames_attrs, center, 1,                                             \
                      "frame t is around element t * hop_length"),                         \
        TN_CHOICE_FIELD(frames_attrs, norm, TN_FFT_BACKWARD, fft_norms,                    \
                        "which of the two directions is divided by n"),                    \
        TN_CHOICE_FIELD(frames_attrs, onesided, SIDES_AUTO, sides,                         \
                        "half of the frequencies, or all; auto: half of real numbers")
static const tn_attr_field stft_fields[] = {
    TN_I64_FIELD(frames_attrs, n_fft, 2048, "elements of a frame"),
    FRAMES,
    TN_CHOICE_FIELD(frames_attrs, pad_mode, 0, pad_modes, "of the ends, when centered"),
};
static const tn_attr_field istft_fields[] = {
    TN_I64_FIELD(frames_attrs, n_fft, 0, "elements of a frame; 0: by the frequencies"),
    FRAMES,
    TN_I64_FIELD(frames_attrs, length, -1,
                 "elements of the result; -1: as the frames have it"),
};
static const tn_input_info stft_inputs[] = {
    {"x", "the signal, along the last axis", 0, FFT_DTYPES},
    {"window", "factors of a frame's elements; not given: ones", TN_INPUT_OPTIONAL, 0},
};
static const tn_input_info istft_inputs[] = {
    {"x", "frequencies by frames: what stft gives", 0, TN_COMPLEX_DTYPES},
    {"window", "factors of a frame's elements; not given: ones", TN_INPUT_OPTIONAL, 0},
};

static tn_array *frames_reshape(const tn_build *build, const tn_array *x,
                                const tn_ints *shape)
{
    return build->op(build, "base.reshape/1", TN_IN(x), tn_attrs("shape", shape));
}

// Checks the frame lengths, and fills in absent ones.
static tn_status frames_check(const tn_build *build, frames_attrs *a)
{
    const tn_host *host = build->host;
    if (a->n_fft < 1)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "n_fft is %" PRId64 ", expected at least 1", a->n_fft);
    a->hop_length = a->hop_length ? a->hop_length : a->n_fft / 4 > 1 ? a->n_fft / 4 : 1;
    a->win_length = a->win_length ? a->win_length : a->n_fft;
    if (a->hop_length < 1)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "hop_length is %" PRId64 ", expected at least 1", a->hop_length);
    if (a->win_length < 1 || a->win_length > a->n_fft)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "win_length is %" PRId64 ", expected 1 to n_fft, %" PRId64,
                          a->win_length, a->n_fft);
    return TN_OK;
}

// The window of a whole frame, in a real dtype; NULL where it is all ones.
static tn_status frames_window(const tn_build *build, const tn_rule *rule, frames_attrs *a,
                               tn_dtype dtype, tn_array **out)
{
    tn_array *window = rule->num_inputs > 1 ? rule->inputs[1] : NULL;
    const tn_type *type = build->type(window);
    const tn_host *host = build->host;
    *out = NULL;
    if (type && (type->rank != 1 || type->extent[0] != a->win_length))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "window has rank %d and %" PRId64
                          " elements, expected rank 1 and win_length, %" PRId64,
                          type->rank, type->rank ? type->extent[0] : 1, a->win_length);
    if (!type && a->win_length == a->n_fft)
        return TN_OK;
    if (!type) {
        const tn_ints shape = {1, 1, {a->win_length}};
        window =
            build->op(build, "base.full/1", NULL, 0,
                      tn_attrs("shape", &shape, "value", 1.0, "dtype", (int64_t)dtype));
    }
    int64_t left = (a->n_fft - a->win_length) / 2;
    window = cast(build, window, dtype);
    if (a->win_length < a->n_fft)
        window = build->op(build, "base.pad/1", TN_IN(window),
                           tn_attrs("before", TN_INTS(left), "after",
                                    TN_INTS(a->n_fft - a->win_length - left)));
    *out = window;
    return built(window);
}

// Cuts the last axis into frames, [..., frames, n_fft]: a view, as frames overlap.
static tn_status frames_cut(const tn_build *build, tn_array *x, const frames_attrs *a,
                            tn_array **out)
{
    const tn_host *host = build->host;
    tn_ints shape = tn_extents(build, x), strides = {.given = 1};
    if (shape.count == 0)
        return TN_ERR_ARGUMENT;
    int64_t n = shape.value[shape.count - 1], step = 1;
    if (shape.count == TN_MAX_RANK)
        return host->fail(host, TN_ERR_ARGUMENT, "x has rank %d, expected at most %d",
                          TN_MAX_RANK, TN_MAX_RANK - 1);
    if (n < a->n_fft)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "a frame has %" PRId64 " elements and the last axis %" PRId64,
                          a->n_fft, n);
    strides.count = shape.count + 1;
    for (int32_t i = (int32_t)shape.count - 1; i >= 0; step *= shape.value[i--])
        strides.value[i] = step;
    strides.value[shape.count - 1] = a->hop_length;
    strides.value[shape.count] = 1;
    shape.value[shape.count - 1] = 1 + (n - a->n_fft) / a->hop_length;
    shape.value[shape.count++] = a->n_fft;
    *out = build->op(build, "base.as_strided/1", TN_IN(x),
                     tn_attrs("shape", &shape, "strides", &strides));
    return built(*out);
}

DECOMPOSE(stft)
{
    frames_attrs a = *(const frames_attrs *)rule->attrs;
    tn_array *x = rule->inputs[0], *window, *frames = NULL;
    const tn_type *type = build->type(x);
    const tn_host *host = build->host;
    tn_status status = frames_check(build, &a);
    if (status == TN_OK && type->rank == 0)
        status = host->fail(host, TN_ERR_ARGUMENT, "x has rank 0, expected at least 1");
    if (status == TN_OK && a.onesided == SIDES_ONE && tn_is_complex(type->dtype))
        status = host->fail(host, TN_ERR_ARGUMENT,
                            "x is %s: half of the frequencies do not "
                            "tell of complex numbers",
                            tn_dtype_name(type->dtype));
    tn_dtype dtype = complex_of(type->dtype), real = tn_dtype_real(dtype);
    int is_real = !tn_is_complex(type->dtype);
    if (status == TN_OK)
        status = frames_window(build, rule, &a, real, &window);
    if (status)
        return status;
    x = cast(build, x, is_real ? real : dtype);
    if (a.center) {
        tn_ints sides_of = {(uint32_t)type->rank, 1, {0}};
        sides_of.value[type->rank - 1] = a.n_fft / 2;
        x = build->op(build, "base.pad/1", TN_IN(x),
                      tn_attrs("before", (const tn_ints *)&sides_of, "after",
                               (const tn_ints *)&sides_of, "mode",
                               pad_choices[a.pad_mode]));
    }
    status = x ? frames_cut(build, x, &a, &frames) : TN_ERR_ARGUMENT;
    if (status)
        return status;
    if (window)
        frames = build->expr(build, "x, w -> x * w", TN_IN(frames, window), TN_NO_ATTRS);
    int is_half = is_real && a.onesided != SIDES_TWO;
    frames = build->op(build, is_half ? "fft.rfft/1" : "fft.fft/1", TN_IN(frames),
                       tn_attrs("norm", a.norm));
    outputs[0] = build->op(build, "base.matrix_transpose/1", TN_IN(frames), TN_NO_ATTRS);
    return built(outputs[0]);
}

COMPOSITE(stft, "The transforms of overlapping frames: [..., frequencies, frames].",
          TN_INPUTS(stft_inputs), .attrs = TN_ATTR_TABLE(frames_attrs, stft_fields));

// --- istft ------------------------------------------------------------------------------

// Sums frames [frames, n_fft, ...] where they overlap: [n, ...].
static tn_array *frames_overlap(const tn_build *build, tn_array *frames,
                                const frames_attrs *a)
{
    tn_ints of_frames = tn_extents(build, frames), sum = {.given = 1};
    if (of_frames.count < 2)
        return NULL;
    int64_t count = of_frames.value[0];
    sum.value[sum.count++] = count ? a->n_fft + (count - 1) * a->hop_length : 0;
    for (uint32_t i = 2; i < of_frames.count; i++)
        sum.value[sum.count++] = of_frames.value[i];
    const tn_ints column = {2, 1, {count, 1}};
    tn_array *frame = build->op(build, "base.arange/1", NULL, 0,
                                tn_attrs("stop", count, "dtype", (int64_t)TN_I64));
    tn_array *inside = build->op(build, "base.arange/1", NULL, 0,
                                 tn_attrs("stop", a->n_fft, "dtype", (int64_t)TN_I64));
    tn_array *at = build->expr(build, "t, i -> t * hop + i",
                               TN_IN(frames_reshape(build, frame, &column), inside),
                               tn_attrs("hop", a->hop_length));
    const tn_type *type = build->type(frames);
    tn_array *none =
        build->op(build, "base.full/1", NULL, 0,
                  tn_attrs("shape", (const tn_ints *)&sum, "dtype", (int64_t)type->dtype));
    return build->op(build, "base.scatter_add/1", TN_IN(none, at, frames), TN_NO_ATTRS);
}

// Elements first to first + count of axis 0; zeros beyond its end.
static tn_array *frames_trim(const tn_build *build, tn_array *x, int64_t first,
                             int64_t count)
{
    tn_ints before = tn_extents(build, x), after = before;
    if (before.count == 0)
        return NULL;
    int64_t there = before.value[0] - first;
    there = there < 0 ? 0 : there < count ? there : count;
    x = part_of_axis(build, x, 0, first, there);
    for (uint32_t i = 0; i < before.count; i++)
        before.value[i] = after.value[i] = 0;
    after.value[0] = count - there;
    return there == count ? x
                          : build->op(build, "base.pad/1", TN_IN(x),
                                      tn_attrs("before", (const tn_ints *)&before, "after",
                                               (const tn_ints *)&after));
}

DECOMPOSE(istft)
{
    frames_attrs a = *(const frames_attrs *)rule->attrs;
    const tn_host *host = build->host;
    tn_array *x = rule->inputs[0], *window;
    const tn_type *type = build->type(x);
    int is_half = a.onesided != SIDES_TWO;
    if (type->rank < 2)
        return host->fail(host, TN_ERR_ARGUMENT, "x has rank %d, expected at least 2",
                          type->rank);
    int64_t frequencies = type->extent[type->rank - 2];
    a.n_fft = a.n_fft ? a.n_fft : is_half ? 2 * (frequencies - 1) : frequencies;
    tn_status status = frames_check(build, &a);
    if (status == TN_OK && frequencies != (is_half ? a.n_fft / 2 + 1 : a.n_fft))
        status = host->fail(host, TN_ERR_ARGUMENT,
                            "x has %" PRId64 " frequencies, expected %" PRId64
                            " of frames of %" PRId64,
                            frequencies, is_half ? a.n_fft / 2 + 1 : a.n_fft, a.n_fft);
    tn_dtype real = tn_dtype_real(type->dtype);
    if (status == TN_OK)
        status = frames_window(build, rule, &a, real, &window);
    if (status)
        return status;
    x = build->op(build, "base.matrix_transpose/1", TN_IN(x), TN_NO_ATTRS);
    x = build->op(build, is_half ? "fft.irfft/1" : "fft.ifft/1", TN_IN(x),
                  tn_attrs("n", a.n_fft, "norm", a.norm));
    if (window)
        x = build->expr(build, "x, w -> x * w", TN_IN(x, window), TN_NO_ATTRS);
    // The frames' two axes go to the front, as sums are along axis 0.
    x = tn_move_axis(build, x, type->rank - 1, 0);
    x = frames_overlap(build, tn_move_axis(build, x, type->rank - 1, 0), &a);
    int64_t count = type->extent[type->rank - 1],
            whole = count ? a.n_fft + (count - 1) * a.hop_length : 0;
    const tn_ints frames = {2, 1, {count, a.n_fft}};
    tn_array *squares = window
                            ? build->expr(build, "w -> w * w", TN_IN(window), TN_NO_ATTRS)
                            : build->scalar(build, real, 1);
    squares =
        build->op(build, "base.broadcast_to/1", TN_IN(squares), tn_attrs("shape", &frames));
    tn_ints column = {(uint32_t)type->rank - 1, 1, {whole, 1, 1, 1, 1, 1, 1, 1}};
    tn_array *envelope = frames_reshape(build, frames_overlap(build, squares, &a), &column);
    x = build->expr(build, "x, e -> e > least ? x / e : x", TN_IN(x, envelope),
                    tn_attrs("least", LEAST_ENVELOPE));
    int64_t first = a.center ? a.n_fft / 2 : 0;
    int64_t length = a.length >= 0 ? a.length : whole - 2 * first;
    x = frames_trim(build, x, first, length > 0 ? length : 0);
    outputs[0] = tn_move_axis(build, x, 0, type->rank - 2);
    return built(outputs[0]);
}

COMPOSITE(istft, "The inverse of stft: frames overlap, divided by their squared windows.",
          TN_INPUTS(istft_inputs), .attrs = TN_ATTR_TABLE(frames_attrs, istft_fields));

// --- hfft and ihfft ---------------------------------------------------------------------

// The norm of the inverse direction.
static int64_t hfft_norm(int64_t norm)
{
    return norm == TN_FFT_BACKWARD  ? TN_FFT_FORWARD
           : norm == TN_FFT_FORWARD ? TN_FFT_BACKWARD
                                    : norm;
}

static const tn_attr_field symmetric_fields[] = {
    TN_I64_FIELD(tn_fft_attrs, n, TN_FFT_WHOLE, "elements of the real numbers"),
    TN_I64_FIELD(tn_fft_attrs, axis, -1, "axis to transform along"),
    TN_CHOICE_FIELD(tn_fft_attrs, norm, TN_FFT_BACKWARD, fft_norms,
                    "which of the two directions is divided by n"),
};

DECOMPOSE(hfft)
{
    const tn_fft_attrs *attrs = rule->attrs;
    tn_array *x = build->expr(build, "x -> conj(x)", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    outputs[0] = build->op(
        build, "fft.irfft/1", TN_IN(x),
        tn_attrs("n", attrs->n, "axis", attrs->axis, "norm", hfft_norm(attrs->norm)));
    return built(outputs[0]);
}

DECOMPOSE(ihfft)
{
    const tn_fft_attrs *attrs = rule->attrs;
    tn_array *x = build->op(
        build, "fft.rfft/1", TN_IN(rule->inputs[0]),
        tn_attrs("n", attrs->n, "axis", attrs->axis, "norm", hfft_norm(attrs->norm)));
    outputs[0] = build->expr(build, "x -> conj(x)", TN_IN(x), TN_NO_ATTRS);
    return built(outputs[0]);
}

COMPOSITE(hfft, "The transform of numbers whose mirror image is their conjugate: real.",
          TN_INPUTS(fft_x), .attrs = TN_ATTR_TABLE(tn_fft_attrs, symmetric_fields));
COMPOSITE(ihfft, "The inverse of hfft.", TN_INPUTS(fft_x),
          .attrs = TN_ATTR_TABLE(tn_fft_attrs, symmetric_fields));
