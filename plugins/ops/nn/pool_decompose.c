// SPDX-License-Identifier: MIT
// Decompositions of pooling, for devices without a kernel: one strided slice of x for each
// tap, which is a position within the window.
#include "pool.h"

// The block of x that one tap reads over all windows.
static struct window pool_decompose_tap_at(const struct nn_pool *p, int64_t row,
                                           int64_t column)
{
    return (struct window){row,         column,       0,           p->out[0], p->out[1],
                           p->channels, p->stride[0], p->stride[1]};
}

static tn_status pool_decompose_read(const tn_build *build, const tn_rule *rule,
                                     struct nn_pool *out)
{
    const tn_type *x = build->type(rule->inputs[0]);
    return x ? pool_of(build->host, rule->attrs, x, out) : TN_ERR_ARGUMENT;
}

tn_status max_pool2d_decompose(const tn_build *build, const tn_rule *rule,
                               tn_array **outputs)
{
    struct nn_pool p;
    if (pool_decompose_read(build, rule, &p))
        return TN_ERR_ARGUMENT;
    tn_array *x = pad_image(build, rule->inputs[0], p.padding, -INFINITY), *out = NULL;
    for (int64_t row = 0; row < p.window[0]; row++)
        for (int64_t column = 0; column < p.window[1]; column++) {
            struct window tap = pool_decompose_tap_at(&p, row, column);
            tn_array *part = window_slice(build, x, &tap);
            out =
                out ? build->expr(build, "x, y -> max(x, y)", TN_IN(out, part), TN_NO_ATTRS)
                    : build->expr(build, "x -> x", TN_IN(part), TN_NO_ATTRS);
        }
    outputs[0] = out;
    return built(out);
}

// `image`, which is padded, plus `part` at the positions that the tap reads. Where windows
// do not overlap, those positions are still 0, so `part` replaces them. `zero_image` is
// all zeros.
static tn_array *pool_decompose_put(const tn_build *build, const struct nn_pool *p,
                                    tn_array *image, tn_array *zero_image, tn_array *part,
                                    const struct window *tap)
{
    if (p->stride[0] >= p->window[0] && p->stride[1] >= p->window[1])
        return window_update(build, image, part, tap);
    return add(build, image, window_update(build, zero_image, part, tap));
}

// Whether a tap's element is the first in its window that equals the maximum. *unmatched:
// whether no tap so far was; NULL before the first tap. A NaN in x is its window's maximum.
static tn_array *first_hit(const tn_build *build, tn_array *part, tn_array *y,
                           tn_array **unmatched)
{
    tn_array *hit =
        build->expr(build, "x, y -> (x == y) | isnan(x)", TN_IN(part, y), TN_NO_ATTRS);
    tn_array *first = *unmatched ? build->expr(build, "h, f -> h & f",
                                               TN_IN(hit, *unmatched), TN_NO_ATTRS)
                                 : hit;
    *unmatched = *unmatched ? build->expr(build, "f, h -> f & !h", TN_IN(*unmatched, hit),
                                          TN_NO_ATTRS)
                            : build->expr(build, "h -> !h", TN_IN(hit), TN_NO_ATTRS);
    return first;
}

// The tangent of the element that the gradient goes to.
tn_status max_pool2d_jvp(const tn_build *build, const tn_rule *rule,
                         tn_array *const *tangents, tn_array **out_tangents)
{
    struct nn_pool p;
    if (pool_decompose_read(build, rule, &p))
        return TN_ERR_ARGUMENT;
    tn_array *x = pad_image(build, rule->inputs[0], p.padding, -INFINITY);
    tn_array *t = pad_image(build, tangents[0], p.padding, 0), *unmatched = NULL;
    tn_array *out = zeros(build, dtype_of(build, t), 4,
                          (int64_t[]){p.images, p.out[0], p.out[1], p.channels});
    for (int64_t row = 0; row < p.window[0]; row++)
        for (int64_t column = 0; column < p.window[1]; column++) {
            struct window tap = pool_decompose_tap_at(&p, row, column);
            tn_array *first = first_hit(build, window_slice(build, x, &tap),
                                        rule->outputs[0], &unmatched);
            out = build->expr(build, "h, t, o -> select(h, t, o)",
                              TN_IN(first, window_slice(build, t, &tap), out), TN_NO_ATTRS);
        }
    out_tangents[0] = out;
    return built(out);
}

tn_status max_pool2d_grad_decompose(const tn_build *build, const tn_rule *rule,
                                    tn_array **outputs)
{
    struct nn_pool p;
    if (pool_decompose_read(build, rule, &p))
        return TN_ERR_ARGUMENT;
    tn_array *y = rule->inputs[1], *g = rule->inputs[2];
    tn_array *unmatched = NULL; // whether no tap so far equals the window's maximum
    tn_array *x = pad_image(build, rule->inputs[0], p.padding, -INFINITY);
    int64_t padded[4] = {p.images, p.size[0] + 2 * p.padding[0],
                         p.size[1] + 2 * p.padding[1], p.channels};
    tn_dtype dtype = dtype_of(build, x);
    if (tn_dtype_computed(dtype) != dtype) // sums are accumulated in f32
        g = cast(build, g, tn_dtype_computed(dtype));
    tn_array *zero_image = zeros(build, dtype_of(build, g), 4, padded), *out = zero_image;
    for (int64_t row = 0; row < p.window[0]; row++)
        for (int64_t column = 0; column < p.window[1]; column++) {
            struct window tap = pool_decompose_tap_at(&p, row, column);
            tn_array *part = window_slice(build, x, &tap);
            tn_array *first = first_hit(build, part, y, &unmatched);
            tn_array *share =
                build->expr(build, "h, g -> select(h, g, 0)", TN_IN(first, g), TN_NO_ATTRS);
            out = pool_decompose_put(build, &p, out, zero_image, share, &tap);
        }
    out = crop_image(build, out, p.padding);
    outputs[0] = dtype_of(build, out) == dtype ? out : cast(build, out, dtype);
    return built(outputs[0]);
}
