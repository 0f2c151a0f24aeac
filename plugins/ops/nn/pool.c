// SPDX-License-Identifier: MIT
// max_pool2d and its gradient: type inference, references, primitives.
#include "pool.h"

// --- types ------------------------------------------------------------------------------

tn_status pool_of(const tn_host *host, const tn_pool2d_attrs *attrs, const tn_type *x,
                  struct nn_pool *out)
{
    static const char *const names[] = {"rows", "columns"};
    tn_status status = check_float(host, "x", x);
    if (status == TN_OK)
        status = check_rank(host, "x", x, 4, "N, H, W, C");
    if (status == TN_OK)
        status = read_pair(host, "window", &attrs->window, 0, 1, out->window);
    if (status)
        return status;
    status = read_pair(host, "stride", &attrs->stride, 0, 1, out->stride);
    if (status == TN_OK)
        status = read_pair(host, "padding", &attrs->padding, 0, 0, out->padding);
    out->images = x->extent[0];
    out->channels = x->extent[3];
    for (int i = 0; i < 2 && status == TN_OK; i++) {
        out->size[i] = x->extent[i + 1];
        if (!attrs->stride.given)
            out->stride[i] = out->window[i];
        if (out->padding[i] * 2 > out->window[i])
            return host->fail(host, TN_ERR_ARGUMENT,
                              "padding is %" PRId64 " for %s, expected at most half of the "
                              "window's %" PRId64,
                              out->padding[i], names[i], out->window[i]);
        int64_t room = out->size[i] > INT64_MAX / 2 ? out->size[i]
                                                    : out->size[i] + 2 * out->padding[i];
        if (out->size[i] == 0 || out->window[i] > room)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "window has %" PRId64
                              " %s, expected no more than the %" PRId64
                              " of x with its padding",
                              out->window[i], names[i], room);
        out->out[i] = (room - out->window[i]) / out->stride[i] + 1;
    }
    return status;
}

static tn_status max_pool2d_infer(const tn_infer *infer, tn_type *types)
{
    struct nn_pool p;
    tn_status status = pool_of(infer->host, infer->attrs, &infer->types[0], &p);
    if (status == TN_OK)
        types[0] =
            (tn_type){infer->types[0].dtype, 4, {p.images, p.out[0], p.out[1], p.channels}};
    return status;
}

static tn_status max_pool2d_grad_infer(const tn_infer *infer, tn_type *types)
{
    static const char *const names[] = {"x", "out", "gradient"};
    const tn_type *x = &infer->types[0];
    struct nn_pool p;
    tn_status status = pool_of(infer->host, infer->attrs, x, &p);
    if (status)
        return status;
    int64_t expected[4] = {p.images, p.out[0], p.out[1], p.channels};
    for (int i = 1; i < 3 && status == TN_OK; i++) {
        status = check_dtype(infer->host, names[i], &infer->types[i], x->dtype);
        if (status == TN_OK)
            status = check_extents(infer->host, names[i], &infer->types[i], 4, expected);
    }
    if (status == TN_OK)
        types[0] = *x;
    return status;
}

// --- references -------------------------------------------------------------------------

static tn_status pool_of_call(const tn_cpu_call *call, struct nn_pool *out)
{
    const tn_layout *x = &call->inputs[0].layout;
    tn_type type = {.dtype = x->dtype, .rank = x->rank};
    memcpy(type.extent, x->extent, sizeof(type.extent));
    return pool_of(call->host, call->attrs, &type, out);
}

// Gives the index in x of the first maximum in the window of output element `index`; NaN
// counts as the greatest. Padding is at most half of a window, so each window overlaps x.
static void find_max(const struct nn_pool *p, const tn_tensor *x, const int64_t *index,
                     int64_t out[4])
{
    int64_t window[2] = {0};
    double best = 0;
    int found = 0;
    do {
        int64_t at[4] = {index[0], index[1] * p->stride[0] + window[0] - p->padding[0],
                         index[2] * p->stride[1] + window[1] - p->padding[1], index[3]};
        if (at[1] < 0 || at[1] >= p->size[0] || at[2] < 0 || at[2] >= p->size[1])
            continue;
        double v = tn_get_f64(x, tn_offset_at(&x->layout, at));
        if (found && !(v > best || (isnan(v) && !isnan(best))))
            continue;
        found = 1;
        best = v;
        memcpy(out, at, sizeof(at));
    } while (tn_index_next(2, p->window, window));
}

static tn_status max_pool2d_reference(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    int64_t index[TN_MAX_RANK] = {0}, at[4] = {0};
    struct nn_pool p;
    tn_status status = pool_of_call(call, &p);
    if (status || tn_layout_count(&out->layout) == 0)
        return status;
    do {
        find_max(&p, x, index, at);
        memcpy(tn_element(out, tn_offset_at(&out->layout, index)),
               tn_element(x, tn_offset_at(&x->layout, at)),
               (size_t)tn_dtype_bytes(x->layout.dtype));
    } while (tn_index_next(4, out->layout.extent, index));
    return TN_OK;
}

static tn_status max_pool2d_grad_reference(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *g = &call->inputs[2], *out = &call->outputs[0];
    int64_t index[TN_MAX_RANK] = {0}, at[4] = {0};
    struct nn_pool p;
    tn_status status = pool_of_call(call, &p);
    if (status || tn_layout_count(&out->layout) == 0)
        return status;
    do
        tn_set_f64(out, tn_offset_at(&out->layout, index), 0);
    while (tn_index_next(4, out->layout.extent, index));
    if (tn_layout_count(&g->layout) == 0)
        return TN_OK;
    do {
        find_max(&p, x, index, at);
        int64_t to = tn_offset_at(&out->layout, at);
        double sum = tn_get_f64(out, to) + tn_get_f64(g, tn_offset_at(&g->layout, index));
        tn_set_f64(out, to, sum);
    } while (tn_index_next(4, g->layout.extent, index));
    return TN_OK;
}

// --- derivatives and primitives ---------------------------------------------------------

tn_attr_list pool_attrs(const tn_pool2d_attrs *attrs, tn_attr items[3])
{
    uint64_t n = 0;
    items[n++] = (tn_attr)TN_ATTR_INIT("window", &attrs->window);
    if (attrs->stride.given)
        items[n++] = (tn_attr)TN_ATTR_INIT("stride", &attrs->stride);
    if (attrs->padding.given)
        items[n++] = (tn_attr)TN_ATTR_INIT("padding", &attrs->padding);
    return TN_ATTR_LIST(items, n);
}

static tn_status max_pool2d_vjp(const tn_build *build, const tn_rule *rule,
                                tn_array *const *cotangents, const uint64_t *wanted,
                                tn_array **gradients)
{
    tn_attr items[3];
    (void)wanted;
    gradients[0] = build->op(build, "nn.max_pool2d_grad/1",
                             TN_IN(rule->inputs[0], rule->outputs[0], cotangents[0]),
                             pool_attrs(rule->attrs, items));
    return built(gradients[0]);
}

static const tn_attr_field pool_fields[] = {
    TN_REQUIRED_FIELD(tn_pool2d_attrs, window, TN_ATTR_INTS,
                      "rows and columns of a window, or one for both"),
    TN_INTS_FIELD(tn_pool2d_attrs, stride, "distance of windows; not given: the window"),
    TN_INTS_FIELD(tn_pool2d_attrs, padding, "minus infinities on each side; not given: 0"),
};
static const tn_input_info pool_inputs[] = {
    {"x", "N, H, W, C: images, channels last", 0, 0},
};
static const tn_input_info pool_grad_inputs[] = {
    {"x", "max_pool2d's input", TN_INPUT_CONSTANT, 0},
    {"out", "max_pool2d's output", TN_INPUT_CONSTANT, 0},
    {"gradient", "of the output", 0, 0},
};

const tn_primitive nn_max_pool2d = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.max_pool2d/1",
    .doc = "The greatest element of each window, channel by channel.",
    TN_INPUTS(pool_inputs),
    .attrs = TN_ATTR_TABLE(tn_pool2d_attrs, pool_fields),
    .infer = max_pool2d_infer,
    .reference = max_pool2d_reference,
    .decompose = max_pool2d_decompose,
    .vjp = max_pool2d_vjp,
    .jvp = max_pool2d_jvp,
    .vmap = max_pool2d_vmap,
};

const tn_primitive nn_max_pool2d_grad = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.max_pool2d_grad/1",
    .doc = "max_pool2d's derivative: each gradient goes to its window's first maximum.",
    TN_INPUTS(pool_grad_inputs),
    .attrs = TN_ATTR_TABLE(tn_pool2d_attrs, pool_fields),
    .infer = max_pool2d_grad_infer,
    .reference = max_pool2d_grad_reference,
    .decompose = max_pool2d_grad_decompose,
    .vmap = max_pool2d_grad_vmap,
};
