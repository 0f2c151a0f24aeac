// SPDX-License-Identifier: MIT
// For authors of cpu.c/1 kernels that move elements: copies of views on several threads.
//
// tn_copy_region() of <tenon/ops/reference.h> says what a copy is, and takes one thread. A
// kernel that joins, pads or replaces parts of arrays calls tn_copy_view() instead:
//
//   static tn_status launch(const tn_cpu_call *call) // out is x, but for a part
//   {
//       tn_copy_view(call, &call->outputs[0], &call->inputs[0]);
//       tn_tensor part = call->outputs[0]; // rows 2 and 3
//       part.layout.offset += 2 * part.layout.stride[0];
//       part.layout.extent[0] = 2;
//       tn_copy_view(call, &part, &call->inputs[1]);
//       return TN_OK;
//   }
//
// A kernel with several parts that have to be copied shares them out itself, so that all
// threads work on all parts: a body of its own for parallel_for, which calls
// tn_copy_range() with the elements of a part that it got.
//
//   static void body(void *context, int64_t begin, int64_t end, uint32_t worker)
//   {
//       const struct join *join = context; // along axis 0: each part behind the last one
//       for (int64_t i = 0, first = 0; i < join->parts; first += join->count[i++])
//           tn_copy_range(&join->to[i], &join->from[i], begin - first, end - first);
//   }
//
// A source with strides of 0 fills an array with one element, of any dtype:
//
//   tn_complex128 value; // room for each dtype
//   tn_tensor one = {&value, out->layout};
//   one.layout.offset = 0;
//   memset(one.layout.stride, 0, sizeof(one.layout.stride));
//   tn_set_f64(&one, 0, 1.5);
//   tn_copy_view(call, out, &one);
//
// What is fast. Axes that both views step through as one are joined first, so views of
// whole arrays are one row whatever their rank. A row that is contiguous in both is copied
// at once, other rows element by element, in a loop of the element's size: some 0.4 ns for
// each of 4 bytes that are in the cache. Turning a large array is faster by tiles, as
// backends do it for a base.transpose that is copied.
//
// What one thread writes should lie together: two threads that write every other element of
// the same memory take it from each other, line by line. Memory that is written twice, as
// of a border around an array, is best written twice while it is in the cache: some 32 KiB
// at a time.
//
// Operands. Views may have any strides, negative ones too; a view that is written has none
// of 0 (its elements are apart), and does not overlap the one that is read. Where a
// primitive declares an output in place of an input, both may be the same memory: such a
// kernel compares `data` and `layout.offset` first, and copies nothing then.
//
// Which of them. An operator of a pack that only shows an array in another way needs no
// kernel: a view (`view` of tn_primitive) copies nothing. One that moves elements by a rule
// of an index is best an expression with gathers, which fuses with what reads it.
//
// Threads. tn_copy_view() is called within a launch, not within a body of parallel_for.
// tn_copy_range() is pure but for the elements that it writes. Neither allocates or fails.
#ifndef TENON_OPS_COPIES_H
#define TENON_OPS_COPIES_H

#include <tenon/kernel.h>
#include <tenon/ops/reference.h>

// The least bytes that a thread copies, unless all that is left is less: a copy of up to
// twice as much takes about as long as it takes to wake the threads. A kernel with pieces
// of its own (rows of several parts, say) computes their least number from it.
#define TN_COPY_BYTES 131072

// The axes of a copy: axes of one element are left out, and adjacent axes that both views
// step through as one are joined. Made by tn_copy_range(), of no use to kernels.
typedef struct tn_copy_walk {
    // All are of `rank` entries. Strides may be negative, and those of `from` 0.
    int64_t extent[TN_MAX_RANK]; // outermost first
    int64_t to[TN_MAX_RANK];     // strides of both views, in bytes
    int64_t from[TN_MAX_RANK];
    int32_t rank;     // at least 1
    int32_t reserved; // 0
} tn_copy_walk;

// Fills `walk` for the views, as tn_copy_range() gets them. Both walk the extents of
// `from`. An axis joins the one in front of it when, in both views, a step along that one
// is as far as all steps along the axis: then the two are one longer axis. Rank 0, and
// extents that are all 1, become one axis of one element, so that a walk has a row.
static inline void tn_copy_walk_make(const tn_tensor *to, const tn_tensor *from,
                                     tn_copy_walk *walk)
{
    const tn_layout *a = &to->layout, *b = &from->layout;
    const int64_t bytes = tn_dtype_bytes(b->dtype);
    int32_t last = -1;
    for (int32_t i = 0; i < b->rank; i++) {
        int64_t to_step = a->stride[i] * bytes, from_step = b->stride[i] * bytes;
        if (b->extent[i] == 1)
            continue;
        if (last >= 0 && walk->to[last] == to_step * b->extent[i] &&
            walk->from[last] == from_step * b->extent[i]) {
            walk->extent[last] *= b->extent[i];
        } else {
            last++;
            walk->extent[last] = b->extent[i];
        }
        walk->to[last] = to_step;
        walk->from[last] = from_step;
    }
    walk->rank = last + 1;
    walk->reserved = 0;
    if (last < 0) { // one element
        walk->rank = 1;
        walk->extent[0] = 1;
        walk->to[0] = walk->from[0] = bytes;
    }
}

// A loop over n elements of `bytes`, a constant, so that each copy is one instruction.
#define TN_COPY_LOOP(bytes)                                                                \
    case bytes:                                                                            \
        for (int64_t i = 0; i < n; i++)                                                    \
            __builtin_memcpy(to + i * to_step, from + i * from_step, bytes);               \
        break;

// The row of a walk, for a kernel that walks on its own. Pure but for what it writes.
// Copies n elements of `bytes` bytes (1, 2, 4, 8 or 16), whose neighbours are `to_step` and
// `from_step` bytes apart. A `from_step` of 0: one element is copied to all. What is filled
// so is the source of the next copy, twice as long each time, since no loop over elements
// is as fast as memcpy.
static inline void tn_copy_row(char *to, int64_t to_step, const char *from,
                               int64_t from_step, int64_t n, int64_t bytes)
{
    if (to_step == bytes && from_step == bytes) {
        __builtin_memcpy(to, from, (uint64_t)(n * bytes));
        return;
    }
    if (to_step == bytes && from_step == 0) { // what is written is copied in turn
        const int64_t all = n * bytes;
        __builtin_memcpy(to, from, (uint64_t)bytes);
        for (int64_t done = bytes; done < all; done *= 2)
            __builtin_memcpy(to + done, to,
                             (uint64_t)(all - done < done ? all - done : done));
        return;
    }
    switch (bytes) {
        TN_COPY_LOOP(1)
        TN_COPY_LOOP(2)
        TN_COPY_LOOP(4)
        TN_COPY_LOOP(8)
    default:
        for (int64_t i = 0; i < n; i++)
            __builtin_memcpy(to + i * to_step, from + i * from_step, (uint64_t)bytes);
    }
}
#undef TN_COPY_LOOP

// Copies elements [begin, end), counted in row-major order, of view `from` to those of view
// `to`; the part of the range before element 0 or behind the last one is left out, so that
// a body may pass its range less the elements of the parts before. Both have one dtype, one
// rank and equal extents, and do not overlap. `from` may have strides of 0: one element is
// then many. Ranges that follow each other copy what one range of all would.
static inline void tn_copy_range(const tn_tensor *to, const tn_tensor *from, int64_t begin,
                                 int64_t end)
{
    const int64_t bytes = tn_dtype_bytes(from->layout.dtype);
    const int64_t count = tn_layout_count(&from->layout);
    int64_t at[TN_MAX_RANK] = {0}, rest = begin < 0 ? 0 : begin;
    tn_copy_walk walk;
    if (end > count)
        end = count;
    if (rest >= end)
        return;
    tn_copy_walk_make(to, from, &walk);
    const int32_t last = walk.rank - 1;
    char *p = (char *)tn_element(to, to->layout.offset);
    const char *q = (const char *)tn_element(from, from->layout.offset);
    begin = rest;
    // The index of the first element, by the joined axes, and its position in both views:
    // the only divisions of a range, but for one a run of rows.
    for (int32_t i = last; i >= 0 && rest > 0; i--) {
        at[i] = rest % walk.extent[i];
        rest /= walk.extent[i];
        p += at[i] * walk.to[i];
        q += at[i] * walk.from[i];
    }
    while (begin < end) {
        int64_t n = walk.extent[last] - at[last];
        n = n < end - begin ? n : end - begin;
        tn_copy_row(p, walk.to[last], q, walk.from[last], n, bytes);
        begin += n;
        if (last == 0) // the range is within one row
            break;
        // Whole rows of the axis before the last, and on to the first element of the next.
        p -= at[last] * walk.to[last];
        q -= at[last] * walk.from[last];
        at[last] = 0;
        n = walk.extent[last];
        int64_t whole = (end - begin) / n, left = walk.extent[last - 1] - 1 - at[last - 1];
        whole = whole < left ? whole : left;
        for (int64_t i = 0; i < whole; i++) {
            p += walk.to[last - 1];
            q += walk.from[last - 1];
            tn_copy_row(p, walk.to[last], q, walk.from[last], n, bytes);
        }
        at[last - 1] += whole;
        begin += whole * n;
        // A carry, as of a number whose digits are the index: an axis that is at its end
        // goes back to its start, and the one in front of it takes a step.
        for (int32_t i = last - 1; i >= 0; i--) {
            p += walk.to[i];
            q += walk.from[i];
            if (++at[i] < walk.extent[i])
                break;
            p -= at[i] * walk.to[i];
            q -= at[i] * walk.from[i];
            at[i] = 0;
        }
    }
}

// State of a copy that threads share. On the stack of tn_copy_view(), until parallel_for
// has returned.
typedef struct tn_copy_views {
    const tn_tensor *to, *from; // borrowed
} tn_copy_views;

// The body of parallel_for of tn_copy_view(): `context` is a tn_copy_views.
static inline void tn_copy_part(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const tn_copy_views *views = (const tn_copy_views *)context;
    (void)worker;
    tn_copy_range(views->to, views->from, begin, end);
}

// The least elements of a piece, for parallel_for over elements of `from`. A loop over rows
// divides this by the elements of a row, and adds 1.
static inline int64_t tn_copy_grain(const tn_tensor *from)
{
    return TN_COPY_BYTES / tn_dtype_bytes(from->layout.dtype);
}

// Copies view `from` to view `to` on the threads of the launch: as tn_copy_region(), with
// the same result. Returns when all is copied. A copy of at most TN_COPY_BYTES wakes no
// thread.
static inline void tn_copy_view(const tn_cpu_call *call, const tn_tensor *to,
                                const tn_tensor *from)
{
    tn_copy_views views = {to, from};
    int64_t count = tn_layout_count(&from->layout);
    if (count > 0)
        call->parallel_for(call, count, tn_copy_grain(from), tn_copy_part, &views);
}

#endif // TENON_OPS_COPIES_H
