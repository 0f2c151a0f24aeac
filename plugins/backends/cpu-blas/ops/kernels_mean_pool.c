// SPDX-License-Identifier: MIT
// nn.mean_pool2d/1 and its transpose, for f32, channels last.
#include <string.h>
#include <tenon/ops/nn_attrs.h>
#include "kernels.h"

#define PIECE_ELEMENTS 20000 // least elements of a piece
#define MANY_CHANNELS 16     // so many are vectors by themselves

// Rows or columns.
struct mean_side {
    int64_t size, window, stride, before, out;
    int64_t low, high; // elements that count: from, and up to
};

struct mean_pool {
    int64_t images, channels;
    struct mean_side rows, columns;
    float divisor;     // 0: the elements that count
    const float *from; // x, or a gradient of the means
    float *to;
    const struct cpu_conv_kernels *conv;
};

static struct mean_side read_side(const tn_mean_pool2d_attrs *attrs, uint32_t i,
                                  const tn_layout *images, const tn_layout *windows)
{
    const tn_ints *lists[] = {&attrs->window, &attrs->stride, &attrs->before,
                              &attrs->after};
    int64_t given[4];
    for (int k = 0; k < 4; k++)
        given[k] = lists[k]->value[lists[k]->count > i ? i : 0];
    return (struct mean_side){
        .size = images->extent[i + 1],
        .window = given[0],
        .stride = given[1],
        .before = given[2],
        .out = windows->extent[i + 1],
        .low = attrs->count_padding ? -given[2] : 0,
        .high = images->extent[i + 1] + (attrs->count_padding ? given[3] : 0),
    };
}

static struct mean_pool read_means(const tn_cpu_call *call, const tn_layout *images,
                                   const tn_layout *windows)
{
    const tn_mean_pool2d_attrs *attrs = call->attrs;
    return (struct mean_pool){
        .images = images->extent[0],
        .channels = images->extent[3],
        .rows = read_side(attrs, 0, images, windows),
        .columns = read_side(attrs, 1, images, windows),
        .divisor = (float)attrs->divisor,
        .from = first_element(&call->inputs[0]),
        .to = first_element(&call->outputs[0]),
        .conv = kernel_variant(call)->conv,
    };
}

// How many elements window `at` counts; at least 1.
static int64_t elements_that_count(const struct mean_side *s, int64_t at)
{
    int64_t begin = at * s->stride - s->before, end = begin + s->window;
    begin = begin > s->low ? begin : s->low;
    end = end < s->high ? end : s->high;
    return end > begin ? end - begin : 1;
}

// The end of the windows from `at` on, below `last`, that count as many elements as it.
static int64_t equal_windows(const struct mean_side *s, int64_t at, int64_t last)
{
    int64_t whole = (s->high + s->before - s->window) / s->stride + 1;
    if (elements_that_count(s, at) != s->window)
        return at + 1;
    return whole < at + 1 ? at + 1 : whole < last ? whole : last;
}

// The windows [*begin, *end) whose element `tap` is within the image.
static void valid_windows(const struct mean_side *s, int64_t tap, int64_t *begin,
                          int64_t *end)
{
    int64_t before = s->before - tap, last = s->size - 1 + s->before - tap;
    *begin = before > 0 ? (before + s->stride - 1) / s->stride : 0;
    *end = last < 0 ? 0 : last / s->stride + 1;
    if (*end > s->out)
        *end = s->out;
}

// Where the element `tap` of window `at` of row `y` lies in an image.
static int64_t cpu_mean_pool_element_of(const struct mean_pool *m, int64_t image, int64_t y,
                                        int64_t at, int64_t tap)
{
    int64_t x = at * m->columns.stride + tap - m->columns.before;
    return ((image * m->rows.size + y) * m->columns.size + x) * m->channels;
}

static float cpu_mean_pool_share_of(const struct mean_pool *m, int64_t rows, int64_t at)
{
    if (m->divisor != 0)
        return m->divisor;
    return (float)(rows * elements_that_count(&m->columns, at));
}

// The elements [*begin, *end) of window `at` that are within the image.
static void cpu_mean_pool_clip(const struct mean_side *s, int64_t at, int64_t *begin,
                               int64_t *end)
{
    int64_t first = at * s->stride - s->before, last = first + s->window;
    *begin = first > 0 ? first : 0;
    *end = last < s->size ? last : s->size;
    if (*end < *begin)
        *begin = *end = 0;
}

// A row of means of many channels: windows that are whole at once, others one by one.
static void mean_channels(const struct mean_pool *m, int64_t image, int64_t oy)
{
    const struct mean_side *c = &m->columns;
    int64_t channels = m->channels, counted_rows = elements_that_count(&m->rows, oy);
    int64_t y, y_end, x, x_end;
    cpu_mean_pool_clip(&m->rows, oy, &y, &y_end);
    float *out = m->to + (image * m->rows.out + oy) * c->out * channels;
    for (int64_t at = 0, next; at < c->out; at = next) {
        cpu_mean_pool_clip(c, at, &x, &x_end);
        int64_t whole = (c->size + c->before - c->window) / c->stride + 1;
        next = x_end - x == c->window ? whole < c->out ? whole : c->out : at + 1;
        const struct cpu_window window = {.rows = y_end - y,
                                          .columns = x_end - x,
                                          .row = c->size * channels,
                                          .channels = channels,
                                          .divisor =
                                              cpu_mean_pool_share_of(m, counted_rows, at)};
        m->conv->pool_mean_f32(out + at * channels,
                               m->from +
                                   ((image * m->rows.size + y) * c->size + x) * channels,
                               next - at, c->stride * channels, &window);
    }
}

static void mean_row(const struct mean_pool *m, int64_t image, int64_t oy)
{
    if (m->channels >= MANY_CHANNELS) {
        mean_channels(m, image, oy);
        return;
    }
    int64_t channels = m->channels, n = m->columns.out;
    int64_t counted_rows = elements_that_count(&m->rows, oy);
    float *out = m->to + (image * m->rows.out + oy) * n * channels;
    memset(out, 0, (size_t)(n * channels) * sizeof(float));
    for (int64_t ky = 0; ky < m->rows.window; ky++) {
        int64_t y = oy * m->rows.stride + ky - m->rows.before, begin, end;
        if (y < 0 || y >= m->rows.size)
            continue;
        for (int64_t kx = 0; kx < m->columns.window; kx++) {
            valid_windows(&m->columns, kx, &begin, &end);
            if (begin < end)
                m->conv->pool_add_f32(out + begin * channels,
                                      m->from +
                                          cpu_mean_pool_element_of(m, image, y, begin, kx),
                                      end - begin, channels, m->columns.stride * channels);
        }
    }
    for (int64_t at = 0, next; at < n; at = next) {
        float divisor = cpu_mean_pool_share_of(m, counted_rows, at);
        next = m->divisor != 0 ? n : equal_windows(&m->columns, at, n);
        for (int64_t i = at * channels; i < next * channels; i++)
            out[i] /= divisor;
    }
}

static void mean_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct mean_pool *m = context;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        mean_row(m, i / m->rows.out, i % m->rows.out);
}

static tn_status mean_pool2d(const tn_cpu_call *call)
{
    struct mean_pool m =
        read_means(call, &call->inputs[0].layout, &call->outputs[0].layout);
    int64_t row = m.columns.out * m.channels;
    if (count_elements(&call->outputs[0].layout) == 0)
        return TN_OK;
    call->parallel_for(call, m.images * m.rows.out, 1 + PIECE_ELEMENTS / (row + 1),
                       mean_rows, &m);
    return TN_OK;
}

// Adds what the windows [begin, end) of a row give to their elements `tap` in row `y`.
static void share_tap(const struct mean_pool *m, int64_t image, int64_t oy, int64_t y,
                      int64_t tap)
{
    int64_t channels = m->channels, counted_rows = elements_that_count(&m->rows, oy);
    const float *g = m->from + (image * m->rows.out + oy) * m->columns.out * channels;
    int64_t begin, end;
    valid_windows(&m->columns, tap, &begin, &end);
    for (int64_t at = begin, next; at < end; at = next) {
        next = m->divisor != 0 ? end : equal_windows(&m->columns, at, end);
        m->conv->pool_share_f32(m->to + cpu_mean_pool_element_of(m, image, y, at, tap),
                                g + at * channels, next - at, channels,
                                m->columns.stride * channels,
                                1 / cpu_mean_pool_share_of(m, counted_rows, at));
    }
}

static void share_images(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct mean_pool *m = context;
    int64_t image = m->rows.size * m->columns.size * m->channels;
    (void)worker;
    memset(m->to + begin * image, 0, (size_t)((end - begin) * image) * sizeof(float));
    for (int64_t i = begin; i < end; i++)
        for (int64_t oy = 0; oy < m->rows.out; oy++)
            for (int64_t ky = 0; ky < m->rows.window; ky++) {
                int64_t y = oy * m->rows.stride + ky - m->rows.before;
                for (int64_t kx = 0; kx < m->columns.window && y >= 0 && y < m->rows.size;
                     kx++)
                    share_tap(m, i, oy, y, kx);
            }
}

static tn_status mean_pool2d_input(const tn_cpu_call *call)
{
    struct mean_pool m =
        read_means(call, &call->outputs[0].layout, &call->inputs[0].layout);
    int64_t image = m.rows.size * m.columns.size * m.channels;
    if (count_elements(&call->outputs[0].layout) == 0)
        return TN_OK;
    call->parallel_for(call, m.images, 1 + PIECE_ELEMENTS / (image + 1), share_images, &m);
    return TN_OK;
}

static const tn_operand_rule f32_contiguous[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
};
#define MEAN_KERNEL(of)                                                                    \
    static const tn_cpu_kernel of##_payload = {                                            \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = of,                                                                      \
    };                                                                                     \
    const tn_kernel of##_kernel = {                                                        \
        .struct_size = sizeof(tn_kernel),                                                  \
        .primitive = "nn." #of "/1",                                                       \
        .family = TN_FAMILY_CPU,                                                           \
        .name = "rows",                                                                    \
        .priority = 500,                                                                   \
        TN_OPERANDS(f32_contiguous),                                                       \
        .payload = &of##_payload,                                                          \
    }
MEAN_KERNEL(mean_pool2d);
MEAN_KERNEL(mean_pool2d_input);
