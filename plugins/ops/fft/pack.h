// SPDX-License-Identifier: MIT
// Shared by this pack's files: the list of its primitives, the checks of arguments, and the
// parts common to transforms along one axis and along several.
#ifndef FFT_PACK_H
#define FFT_PACK_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <tenon/checked.h>
#include <tenon/kernel.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/fft_attrs.h>
#include <tenon/ops/rules.h>
#include <tenon/plugin.h>
#include <tenon/primitive.h>

// The primitives, fft_<name>: X(name).
#define FFT_PRIMITIVES(X)                                                                  \
    X(dft)                                                                                 \
    X(dft_of_real)                                                                         \
    X(dft_to_real)                                                                         \
    X(fft)                                                                                 \
    X(ifft)                                                                                \
    X(rfft)                                                                                \
    X(irfft)                                                                               \
    X(fft2)                                                                                \
    X(ifft2)                                                                               \
    X(rfft2)                                                                               \
    X(irfft2)                                                                              \
    X(fftn)                                                                                \
    X(ifftn)                                                                               \
    X(rfftn)                                                                               \
    X(irfftn)                                                                              \
    X(fftfreq)                                                                             \
    X(rfftfreq)                                                                            \
    X(fftshift)                                                                            \
    X(ifftshift)                                                                           \
    X(hfft)                                                                                \
    X(ihfft)                                                                               \
    X(stft)                                                                                \
    X(istft)
#define FFT_DECLARE(name) extern const tn_primitive fft_##name;
FFT_PRIMITIVES(FFT_DECLARE)
#undef FFT_DECLARE

// The record of a primitive made of others. Further fields may follow.
#define DECOMPOSED(name, type, fields, sentence, ...)                                      \
    const tn_primitive fft_##name = {.struct_size = sizeof(tn_primitive),                  \
                                     .id = "fft." #name "/1",                              \
                                     .doc = sentence,                                      \
                                     .attrs = TN_ATTR_TABLE(type, fields),                 \
                                     .infer = name##_infer,                                \
                                     .decompose = name##_decompose,                        \
                                     __VA_ARGS__}
// The record of a composite. Further fields may follow.
#define COMPOSITE(name, sentence, ...)                                                     \
    const tn_primitive fft_##name = {.struct_size = sizeof(tn_primitive),                  \
                                     .id = "fft." #name "/1",                              \
                                     .doc = sentence,                                      \
                                     .decompose = name##_decompose,                        \
                                     __VA_ARGS__}
#define DECOMPOSE(name)                                                                    \
    static tn_status name##_decompose(const tn_build *build, const tn_rule *rule,          \
                                      tn_array **outputs)

// Input lists of "x": of the dtypes that transforms take, and of the real ones among them.
#define FFT_DTYPES (TN_FIRST_DTYPES | TN_COMPLEX_DTYPES)
extern const tn_input_info fft_x[1];
extern const char *const fft_norms[]; // the names of TN_FFT_..., ended by NULL

// The references (reference.c).
tn_status dft_reference(const struct tn_cpu_call *call);
tn_status dft_of_real_reference(const struct tn_cpu_call *call);
tn_status dft_to_real_reference(const struct tn_cpu_call *call);
uint64_t dft_reference_scratch(const struct tn_kernel_query *query);

// --- kinds of transforms ----------------------------------------------------------------

// Kinds of transforms, by the prefix of their names: "", "i", "r" and "ir".
enum kind { FORWARD, INVERSE, OF_REAL, TO_REAL };

// Gives the n of a transform of x along `axis`, which has been checked: `given`, or the
// default (TN_FFT_WHOLE). Fails when n is below 1; `name` is the attribute's name.
tn_status check_length(const tn_host *host, const char *name, enum kind kind,
                       const tn_type *x, int32_t axis, int64_t given, int64_t *out_n);

// The complex dtype of a transform of dtype x.
tn_dtype complex_of(tn_dtype x);

// Fails on complex x where the transform takes real numbers.
tn_status check_real(const tn_host *host, enum kind kind, tn_dtype x);

// --- checks (check.c) -------------------------------------------------------------------

#define SHAPE_TEXT 200
// Writes "[256, 512]" to `buffer`, and returns `buffer`.
const char *shape_text(const tn_type *type, char buffer[SHAPE_TEXT]);

// Gives `axis` counted from the front; a negative `axis` counts from the end. Fails when
// the axis is out of range.
tn_status check_axis(const tn_host *host, int64_t axis, int32_t rank, int32_t *out_axis);

// Gives the axes of a given list, each counted from the front. Fails on an axis that is out
// of range or given twice.
tn_status check_axes(const tn_host *host, const tn_ints *axes, int32_t rank,
                     int32_t out_axes[TN_MAX_RANK]);

// --- graph building ---------------------------------------------------------------------

// Status of a rule that built `array`. The builder has recorded the failure behind a NULL.
static inline tn_status built(const tn_array *array)
{
    return array ? TN_OK : TN_ERR_ARGUMENT;
}

tn_array *cast(const tn_build *build, tn_array *x, tn_dtype dtype);

// Elements [first, first + count) of `axis`: a view.
tn_array *part_of_axis(const tn_build *build, tn_array *x, int32_t axis, int64_t first,
                       int64_t count);

#endif // FFT_PACK_H
