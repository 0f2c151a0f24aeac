// SPDX-License-Identifier: MIT
// Copies of <tenon/ops/copies.h>, whole and in parts, beside tn_copy_region(): views of
// random extents, with gaps, turned, reversed and of one element for many.
#include "check.h"
#include <tenon/ops/copies.h>

#include <stdlib.h>
#include <string.h>

#define ROOM 8192 // bytes of a view's memory
static uint64_t seed = 0x9e3779b97f4a7c15;

static int64_t draw(int64_t low, int64_t high)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return low + (int64_t)((seed >> 16) % (uint64_t)(high - low + 1));
}

// Lays the axes out in an order that is drawn, with gaps, some of them reversed.
static void draw_strides(tn_layout *layout, bool is_source)
{
    int32_t order[TN_MAX_RANK];
    int64_t step = 1;
    layout->offset = draw(0, 3);
    for (int32_t i = 0; i < layout->rank; i++)
        order[i] = layout->rank - 1 - i;
    for (int32_t i = layout->rank - 1; i > 0 && draw(0, 1); i--) {
        int32_t k = (int32_t)draw(0, i), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
    for (int32_t i = 0; i < layout->rank; i++) {
        int32_t axis = order[i];
        layout->stride[axis] = is_source && draw(0, 7) == 0 ? 0 : step;
        step *= layout->extent[axis] + (draw(0, 3) == 0);
        if (layout->stride[axis] && draw(0, 5) == 0 && layout->extent[axis] > 0) {
            layout->offset += (layout->extent[axis] - 1) * layout->stride[axis];
            layout->stride[axis] = -layout->stride[axis];
        }
    }
}

struct pair {
    tn_tensor to, from, want;
    unsigned char got[ROOM], expected[ROOM], source[ROOM];
};

static void draw_pair(struct pair *p)
{
    static const tn_dtype dtypes[] = {TN_U8, TN_F16, TN_F32, TN_F64, TN_COMPLEX128};
    tn_layout layout = {.dtype = dtypes[draw(0, 4)], .rank = (int32_t)draw(0, 4)};
    for (int32_t i = 0; i < layout.rank; i++)
        layout.extent[i] = draw(0, 30) == 0 ? 0 : draw(1, 4);
    for (size_t i = 0; i < ROOM; i++)
        p->source[i] = (unsigned char)draw(0, 255);
    memset(p->got, 0xa5, ROOM);
    memset(p->expected, 0xa5, ROOM);
    p->to = (tn_tensor){p->got, layout};
    p->from = (tn_tensor){p->source, layout};
    draw_strides(&p->to.layout, false);
    draw_strides(&p->from.layout, true);
    p->want = (tn_tensor){p->expected, p->to.layout};
    tn_copy_region(&p->want, &p->from);
}

Test(copies, parts_make_the_whole)
{
    for (int round = 0; round < 20000; round++) {
        struct pair p;
        draw_pair(&p);
        int64_t count = tn_layout_count(&p.from.layout);
        for (int64_t begin = -2; begin < count + 2;) {
            int64_t end = begin + draw(1, draw(0, 1) ? 5 : 200);
            tn_copy_range(&p.to, &p.from, begin, end);
            begin = end;
        }
        if (memcmp(p.got, p.expected, ROOM) != 0)
            cr_fatal("round %d: %lld elements of %lld bytes, rank %d, are not as expected",
                     round, (long long)count,
                     (long long)tn_dtype_bytes(p.from.layout.dtype), p.from.layout.rank);
    }
}

// The call's loop in pieces, the last ones first.
static void in_pieces(const tn_cpu_call *call, int64_t n, int64_t grain,
                      void (*body)(void *context, int64_t begin, int64_t end,
                                   uint32_t worker),
                      void *context)
{
    (void)call;
    cr_assert(ge(i64, grain, 1));
    for (int64_t end = n, begin; end > 0; end = begin) {
        begin = end - draw(1, 40);
        begin = begin > 0 ? begin : 0;
        body(context, begin, end, 0);
    }
}

Test(copies, a_view_is_copied_by_the_threads_of_a_launch)
{
    tn_cpu_call call = {.num_threads = 2, .parallel_for = in_pieces};
    for (int round = 0; round < 2000; round++) {
        struct pair p;
        draw_pair(&p);
        tn_copy_view(&call, &p.to, &p.from);
        cr_assert(eq(int, memcmp(p.got, p.expected, ROOM), 0));
    }
}
