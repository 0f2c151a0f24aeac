// SPDX-License-Identifier: MIT
// nn.max_pool2d/1 and its gradient, for f32, channels last.
#include <math.h>
#include <string.h>
#include <tenon/ops/nn_attrs.h>
#include "kernels.h"

#define PIECE_ELEMENTS 20000 // least elements of a piece
#define MAX_ROW 32768        // most elements of an output row: `taken` is on the stack

struct pool2d {
    int64_t n, h, w, c, oh, ow;
    int64_t kh, kw, sh, sw, ph, pw;
    const float *x, *out, *g; // input, output, the output's gradient
    float *to;                // the output, or the input's gradient
    const struct cpu_conv_kernels *conv;
};

// Entry `i` (0: rows, 1: columns) of a list of two, or the only entry.
static int64_t cpu_pool_pair(const tn_ints *list, uint32_t i, int64_t absent)
{
    if (!list->given || list->count == 0)
        return absent;
    return list->value[list->count > i ? i : 0];
}

static void cpu_read_pool(const tn_cpu_call *call, const tn_layout *x, const tn_layout *out,
                          struct pool2d *p)
{
    const tn_pool2d_attrs *attrs = call->attrs;
    int64_t kh = cpu_pool_pair(&attrs->window, 0, 1),
            kw = cpu_pool_pair(&attrs->window, 1, 1);
    *p = (struct pool2d){
        .n = x->extent[0],
        .h = x->extent[1],
        .w = x->extent[2],
        .c = x->extent[3],
        .oh = out->extent[1],
        .ow = out->extent[2],
        .kh = kh,
        .kw = kw,
        .sh = cpu_pool_pair(&attrs->stride, 0, kh),
        .sw = cpu_pool_pair(&attrs->stride, 1, kw),
        .ph = cpu_pool_pair(&attrs->padding, 0, 0),
        .pw = cpu_pool_pair(&attrs->padding, 1, 0),
        .conv = kernel_variant(call)->conv,
    };
}

// The output pixels [*begin, *end) of a row for which tap `kx` is within the input.
static void valid_pixels(const struct pool2d *p, int64_t kx, int64_t *begin, int64_t *end)
{
    int64_t before = p->pw - kx, last = p->w - 1 + p->pw - kx;
    *begin = before > 0 ? (before + p->sw - 1) / p->sw : 0;
    *end = last < 0 ? 0 : last / p->sw + 1;
    if (*end > p->ow)
        *end = p->ow;
}

// The offset of the input element under tap `kx` of output pixel `ox`, in row `y` of an
// image.
static int64_t tap_offset(const struct pool2d *p, int64_t image, int64_t y, int64_t ox,
                          int64_t kx)
{
    return ((image * p->h + y) * p->w + ox * p->sw + kx - p->pw) * p->c;
}

static void pool_row(const struct pool2d *p, int64_t image, int64_t oy)
{
    float *out = p->to + (image * p->oh + oy) * p->ow * p->c;
    for (int64_t i = 0; i < p->ow * p->c; i++)
        out[i] = -INFINITY;
    for (int64_t ky = 0; ky < p->kh; ky++) {
        int64_t y = oy * p->sh + ky - p->ph, begin, end;
        if (y < 0 || y >= p->h)
            continue;
        for (int64_t kx = 0; kx < p->kw; kx++) {
            valid_pixels(p, kx, &begin, &end);
            if (begin < end)
                p->conv->pool_max_f32(out + begin * p->c,
                                      p->x + tap_offset(p, image, y, begin, kx),
                                      end - begin, p->c, p->sw * p->c);
        }
    }
}

static void pool_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct pool2d *p = context;
    for (int64_t i = begin; i < end; i++)
        pool_row(p, i / p->oh, i % p->oh);
}

static tn_status max_pool2d(const tn_cpu_call *call)
{
    struct pool2d p;
    cpu_read_pool(call, &call->inputs[0].layout, &call->outputs[0].layout, &p);
    p.x = first_element(&call->inputs[0]);
    p.to = first_element(&call->outputs[0]);
    int64_t row = p.ow * p.c * p.kh * p.kw;
    call->parallel_for(call, p.n * p.oh, 1 + PIECE_ELEMENTS / (row + 1), pool_rows, &p);
    return TN_OK;
}

static void grad_row(const struct pool2d *p, int64_t image, int64_t oy)
{
    uint8_t taken[MAX_ROW];
    int64_t row = (image * p->oh + oy) * p->ow * p->c;
    memset(taken, 0, (size_t)(p->ow * p->c));
    for (int64_t ky = 0; ky < p->kh; ky++) {
        int64_t y = oy * p->sh + ky - p->ph, begin, end;
        if (y < 0 || y >= p->h)
            continue;
        for (int64_t kx = 0; kx < p->kw; kx++) {
            valid_pixels(p, kx, &begin, &end);
            if (begin >= end)
                continue;
            int64_t at = tap_offset(p, image, y, begin, kx), from = row + begin * p->c;
            p->conv->pool_grad_f32(p->to + at, p->x + at, p->out + from, p->g + from,
                                   taken + begin * p->c, end - begin, p->c, p->sw * p->c);
        }
    }
}

static void grad_images(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct pool2d *p = context;
    int64_t image = p->h * p->w * p->c;
    memset(p->to + begin * image, 0, (size_t)((end - begin) * image) * sizeof(float));
    for (int64_t i = begin; i < end; i++)
        for (int64_t oy = 0; oy < p->oh; oy++)
            grad_row(p, i, oy);
}

static tn_status max_pool2d_grad(const tn_cpu_call *call)
{
    struct pool2d p;
    cpu_read_pool(call, &call->inputs[0].layout, &call->inputs[1].layout, &p);
    p.x = first_element(&call->inputs[0]);
    p.out = first_element(&call->inputs[1]);
    p.g = first_element(&call->inputs[2]);
    p.to = first_element(&call->outputs[0]);
    int64_t image = p.oh * p.ow * p.c * p.kh * p.kw;
    call->parallel_for(call, p.n, 1 + PIECE_ELEMENTS / (image + 1), grad_images, &p);
    return TN_OK;
}

static int32_t grad_accepts(const tn_kernel_query *query)
{
    return query->inputs[1].extent[2] * query->inputs[1].extent[3] <= MAX_ROW;
}

static const tn_operand_rule f32_contiguous[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
};
static const tn_cpu_kernel pool_payload = {
    .struct_size = sizeof(pool_payload),
    .launch = max_pool2d,
};
const tn_kernel max_pool2d_kernel = {
    .struct_size = sizeof(max_pool2d_kernel),
    .primitive = "nn.max_pool2d/1",
    .family = TN_FAMILY_CPU,
    .name = "rows",
    .priority = 500,
    TN_OPERANDS(f32_contiguous),
    .payload = &pool_payload,
};
static const tn_cpu_kernel grad_payload = {
    .struct_size = sizeof(grad_payload),
    .launch = max_pool2d_grad,
};
const tn_kernel max_pool2d_grad_kernel = {
    .struct_size = sizeof(max_pool2d_grad_kernel),
    .primitive = "nn.max_pool2d_grad/1",
    .family = TN_FAMILY_CPU,
    .name = "rows",
    .priority = 500,
    TN_OPERANDS(f32_contiguous),
    .accepts = grad_accepts,
    .payload = &grad_payload,
};
