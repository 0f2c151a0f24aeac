// SPDX-License-Identifier: MIT
// Compares what a device computed with what the definition gives; see compare.h. Owns the
// tolerance, and the message about a difference.
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tenon/ops/reference.h>
#include "../base/dtype.h"
#include "../base/shape.h"
#include "../plan/plan.h"
#include "../plugin/load/plugins.h"
#include "operands.h"
#include "oracle.h"

// The tolerance, relative to the largest magnitude among the expected output and a 64th of
// the inputs, since sums of inputs may cancel. A kernel may sum in another order and round
// intermediate results: 512 units in the last place for floats, 4 for half floats, 1 for
// floats of 8 bits. Integers must be equal.
static double allowed_of(tn_dtype dtype)
{
    int spared = tn_dtype_in(dtype, TN_FLOAT8_DTYPES) ? 1
                 : tn_dtype_computed(dtype) == dtype  ? 10
                                                      : 3;
    return dtype_is_inexact(dtype) ? ldexp(1, spared - tn_dtype_precision(dtype)) : 0;
}

// How one output differs from the expected one. `got` and `expected` are of element
// `worst`.
struct difference {
    uint32_t output;                // as step_output()
    int64_t count, elements, worst; // worst: row-major index of the largest error
    double error, allowed;
    tn_complex128 got, expected; // real, but of a complex dtype
};

static bool is_float_step(const tn_step *step)
{
    for (uint32_t i = 0; i < step_num_inputs(step); i++)
        if (dtype_is_inexact(step_input(step, i)->layout.dtype))
            return true;
    return false;
}

static double check_compare_distance(tn_complex128 x, tn_complex128 y)
{
    double re = x.re - y.re, im = x.im - y.im;
    return im == 0 ? fabs(re) : hypot(re, im);
}

static bool is_nan(tn_complex128 x)
{
    return isnan(x.re) || isnan(x.im);
}

static double check_compare_largest(const tn_tensor *tensor)
{
    int64_t at[TN_MAX_RANK] = {0}, count = layout_elements(&tensor->layout);
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        const tn_complex128 zero = {0, 0};
        double value = check_compare_distance(
            tn_get_complex(tensor, tensor_offset(&tensor->layout, at)), zero);
        if (isfinite(value) && value > most)
            most = value;
        tensor_next(&tensor->layout, at);
    }
    return most;
}

static double largest_input(const tn_step *step, const tn_tensor *inputs)
{
    double most = 0;
    for (uint32_t i = 0; i < step_num_inputs(step); i++)
        if (inputs[i].data && dtype_is_inexact(inputs[i].layout.dtype))
            most = fmax(most, check_compare_largest(&inputs[i]));
    return most;
}

// Fills *out. Both tensors are contiguous. `from_inputs`: the largest magnitude of the
// inputs. False when all elements agree.
static bool check_compare(const tn_tensor *got, const tn_tensor *expected,
                          double from_inputs, struct difference *out)
{
    tn_dtype dtype = expected->layout.dtype;
    bool floats = dtype_is_inexact(dtype);
    out->elements = layout_elements(&expected->layout);
    out->allowed =
        allowed_of(dtype) * fmax(check_compare_largest(expected) + from_inputs / 64, 1e-30);
    out->count = 0;
    out->error = -1;
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t a = got->layout.offset + i, b = expected->layout.offset + i;
        tn_complex128 x = tn_get_complex(got, a), y = tn_get_complex(expected, b);
        double error = check_compare_distance(x, y);
        bool equal = x.re == y.re && x.im == y.im;
        bool same = floats ? equal || (is_nan(x) && is_nan(y)) || error <= out->allowed
                           : memcmp(tensor_element(got, a), tensor_element(expected, b),
                                    dtype_size(dtype)) == 0;
        if (same)
            continue;
        out->count++;
        error = isnan(error) ? INFINITY : error;
        if (error <= out->error)
            continue;
        out->error = error;
        out->worst = i;
        out->got = x;
        out->expected = y;
    }
    return out->count > 0;
}

static void describe_inputs(const tn_step *step, char *text, size_t size)
{
    size_t length = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < step_num_inputs(step) && length + TYPE_TEXT < size; i++) {
        const tn_layout *layout = &step_input(step, i)->layout;
        char one[TYPE_TEXT];
        if (step_input(step, i)->flags & TN_VALUE_FUSED)
            continue;
        tn_type type = layout_type(layout);
        length += (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "",
                                   layout->dtype == TN_DTYPE_NONE ? "none"
                                                                  : type_print(&type, one));
    }
}

// The number of an output among those in memory.
static uint32_t check_compare_number_of(const tn_step *step, uint32_t output)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < output; i++)
        number += value_has_memory(step_output(step, i));
    return number;
}

static void check_compare_report(const struct device *device, const tn_step *step,
                                 const struct difference *d)
{
    char inputs[1024], kernel[256];
    if (step->kernel) {
        snprintf(kernel, sizeof(kernel), "kernel %s (%s) of %s",
                 step->kernel->name ? step->kernel->name : step->primitive->id,
                 step->kernel->family, kernel_plugin(step->kernel));
    } else {
        snprintf(kernel, sizeof(kernel), "an expression as %s runs it",
                 plugin_id(device->plugin));
    }
    describe_inputs(step, inputs, sizeof(inputs));
    bool is_complex = tn_is_complex(step_output(step, d->output)->layout.dtype);
    char got[64] = "", expected[64] = "";
    if (is_complex) {
        snprintf(got, sizeof(got), "%+.9gj", d->got.im);
        snprintf(expected, sizeof(expected), "%+.9gj", d->expected.im);
    }
    log_write(device->runtime->config, TN_LOG_WARN, "check",
              "%s: %s on %s differs from the definition in %lld of %lld elements of output "
              "%u, inputs %s: element %lld is %.9g%s, expected %.9g%s (error %.3g, allowed "
              "%.3g)",
              step->label, kernel, device->name, (long long)d->count,
              (long long)d->elements, check_compare_number_of(step, d->output), inputs,
              (long long)d->worst, d->got.re, got, d->expected.re, expected, d->error,
              d->allowed);
}

// Whether rounding explains the difference: it may flip a comparison of floats or an index
// computed from floats, so one in a thousand of such integers may differ.
static bool is_rounding(const tn_step *step, const struct difference *d)
{
    return !dtype_is_inexact(step_output(step, d->output)->layout.dtype) &&
           is_float_step(step) && d->count <= 1 + d->elements / 1000;
}

void compare_step(const struct device *device, const tn_step *step,
                  const tn_tensor *tensors)
{
    uint32_t num_outputs = step_num_outputs(step);
    const tn_tensor *got = tensors + step_num_inputs(step);
    const tn_tensor *expected = got + num_outputs;
    double from_inputs = largest_input(step, tensors);
    stats_count(device->runtime, STATS_CHECKED, 1);
    for (uint32_t i = 0; i < num_outputs; i++) {
        struct difference d = {.output = i};
        if (!got[i].data || !check_compare(&got[i], &expected[i], from_inputs, &d) ||
            is_rounding(step, &d))
            continue;
        stats_count(device->runtime, STATS_DIFFERING, 1);
        check_compare_report(device, step, &d);
        return;
    }
}
