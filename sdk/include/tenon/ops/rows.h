// SPDX-License-Identifier: MIT
// For authors of elementwise cpu.c/1 kernels: tn_for_rows() splits operands of any layout
// into rows and calls a plain loop for each row, on several threads.
//
//   static void square(const tn_row *row)
//   {
//       const float *x = row->data[0];
//       float *out = row->data[1];
//       for (int64_t i = 0; i < row->count; i++)
//           out[i * row->step[1]] = x[i * row->step[0]] * x[i * row->step[0]];
//   }
//   TN_ROW_KERNEL(squares, "acme.square/1", square, TN_TAKES_ANY(TN_DTYPE_BIT(TN_F32)));
//
// An operand's elements are of the dtype that the kernel's rules allow: here all are F32,
// since TN_TAKES_ANY says that all operands have one dtype out of the set. A loop reads
// attributes at row->call->attrs.
//
// Inputs broadcast against output 0. Adjacent axes whose elements are equally far apart
// in every operand are joined to one axis, so contiguous operands of equal extents come as
// long rows with steps of 1. A kernel with a faster loop for such rows, such as a call of a
// library, asks tn_row_is_dense():
//
//   static void scale(const tn_row *row) // y = 2 * x
//   {
//       if (tn_row_copy(row, 0, 1))
//           cblas_sscal((int)row->count, 2.0f, row->data[1], 1);
//       else
//           plain_loop(row);
//   }
//
// Threads. tn_for_rows() calls `body` from several threads at once, for rows that share no
// element of an output; it returns when all rows are done. `body` takes no lock and
// allocates nothing: memory for a row is on its stack. The other functions are pure.
#ifndef TENON_OPS_ROWS_H
#define TENON_OPS_ROWS_H

#include <tenon/kernel.h>
#include <tenon/ops/reference.h>
#include <tenon/pack.h>

// The most operands, inputs and outputs together, of a kernel over rows: arrays of operands
// have this many entries.
#define TN_ROW_MAX_OPERANDS 8

// A row: `count` elements of every operand, along one axis. Operands are numbered inputs
// first, in order, then outputs. Filled by tn_for_rows(), and valid during one call of
// `body`. Element i of operand k is element i * step[k] from data[k].
typedef struct tn_row {
    const tn_cpu_call *call;           // the kernel's call: attrs, host, types of operands
    int64_t count;                     // elements, at least 1
    void *data[TN_ROW_MAX_OPERANDS];   // the first element of the row, of each operand
    int64_t step[TN_ROW_MAX_OPERANDS]; // to the next element, in elements; 0: broadcast
} tn_row;

// The walk over all operands: the axes left after joining, and the strides along them. Made
// by tn_for_rows(), constant while threads read it, and of no use to kernels.
typedef struct tn_row_walk {
    const tn_cpu_call *call;                          // borrowed
    void (*body)(const tn_row *row);                  // called for each row
    int64_t most;                                     // elements of a row, at most
    int64_t extent[TN_MAX_RANK];                      // of the joined axes, outermost first
    int64_t stride[TN_ROW_MAX_OPERANDS][TN_MAX_RANK]; // in elements; 0: broadcast
    uint32_t num_operands;                            // at most TN_ROW_MAX_OPERANDS
    int32_t rank;                                     // number of joined axes, at least 1
} tn_row_walk;

// Operand `k` of a call, counted as in tn_row: inputs in order, then outputs. Borrowed from
// the call. `k` is below num_inputs + num_outputs.
static inline const tn_tensor *tn_call_operand(const tn_cpu_call *call, uint32_t k)
{
    return k < call->num_inputs ? &call->inputs[k] : &call->outputs[k - call->num_inputs];
}

// 1 when the elements of every operand are adjacent (all steps are 1), as BLAS and vector
// code want them; else 0.
static inline int32_t tn_row_is_dense(const tn_row *row)
{
    uint32_t count = row->call->num_inputs + row->call->num_outputs;
    for (uint32_t k = 0; k < count; k++)
        if (row->step[k] != 1)
            return 0;
    return 1;
}

// For routines that overwrite an operand, as BLAS does: copies operand `from` of a dense
// row to operand `to`, of the same dtype, unless both are the same memory. Returns 1, or 0
// for a row that is not dense, which is left alone: the kernel then runs its plain loop.
static inline int32_t tn_row_copy(const tn_row *row, uint32_t from, uint32_t to)
{
    int64_t bytes = tn_dtype_bytes(tn_call_operand(row->call, to)->layout.dtype);
    if (!tn_row_is_dense(row))
        return 0;
    if (row->data[to] != row->data[from])
        __builtin_memcpy(row->data[to], row->data[from], (uint64_t)(row->count * bytes));
    return 1;
}

// Adds axis `axis` of output 0 to the walk, or joins it to the walk's last axis. Called for
// the axes in order, outermost first. An axis joins when, in every operand, the stride of
// the walk's last axis is the new axis' stride times its extent: both are then one longer
// axis. Axes of extent 1 are left out.
static inline void tn_row_walk_axis(tn_row_walk *walk, int32_t axis)
{
    const tn_layout *out = &walk->call->outputs[0].layout;
    int64_t stride[TN_ROW_MAX_OPERANDS] = {0};
    int32_t last = walk->rank - 1, joins = walk->rank > 0;
    if (out->extent[axis] == 1)
        return;
    for (uint32_t k = 0; k < walk->num_operands; k++) {
        const tn_layout *layout = &tn_call_operand(walk->call, k)->layout;
        int32_t own = axis - (out->rank - layout->rank);
        stride[k] = own < 0 || layout->extent[own] == 1 ? 0 : layout->stride[own];
        joins = joins && walk->stride[k][last] == stride[k] * out->extent[axis];
    }
    int32_t position = joins ? last : walk->rank++;
    walk->extent[position] = out->extent[axis] * (joins ? walk->extent[last] : 1);
    for (uint32_t k = 0; k < walk->num_operands; k++)
        walk->stride[k][position] = stride[k];
}

// The body of parallel_for: runs elements [begin, end) of the output, counted in row-major
// order, as rows. `context` is the tn_row_walk. Rows end at the end of the walk's last
// axis, at `end`, and after `most` elements.
static inline void tn_row_walk_range(void *context, int64_t begin, int64_t end,
                                     uint32_t worker)
{
    (void)worker;
    const tn_row_walk *walk = (const tn_row_walk *)context;
    int32_t last = walk->rank - 1;
    tn_row row;
    row.call = walk->call;
    while (begin < end) {
        // The index, along the joined axes, of element `begin`.
        int64_t rest = begin, at[TN_MAX_RANK] = {0};
        for (int32_t axis = last; axis >= 0; axis--) {
            at[axis] = rest % walk->extent[axis];
            rest /= walk->extent[axis];
        }
        row.count = walk->extent[last] - at[last];
        row.count = row.count < end - begin ? row.count : end - begin;
        row.count = row.count < walk->most ? row.count : walk->most;
        for (uint32_t k = 0; k < walk->num_operands; k++) {
            const tn_tensor *tensor = tn_call_operand(walk->call, k);
            int64_t offset = tensor->layout.offset;
            for (int32_t axis = 0; axis <= last; axis++)
                offset += at[axis] * walk->stride[k][axis];
            row.data[k] = tn_element(tensor, offset);
            row.step[k] = walk->extent[last] == 1 ? 1 : walk->stride[k][last];
        }
        walk->body(&row);
        begin += row.count;
    }
}

// Calls `body` with rows of at most `most` elements (at least 1) until every element of
// output 0 was in exactly one row. Elements are dealt to threads in pieces of at least
// `most`. For use within a cpu.c/1 launch, not within a body of parallel_for.
//
// Every output has the extents of output 0, and every input broadcasts to them. An input
// may be the memory of an output with the same strides, if the primitive declares the pair
// in place: `body` then reads an element before it writes the element of the same position.
//
// Returns TN_OK, or TN_ERR_UNSUPPORTED, with a failure recorded, for more than
// TN_ROW_MAX_OPERANDS operands. `body` cannot fail.
static inline tn_status tn_for_rows(const tn_cpu_call *call, int64_t most,
                                    void (*body)(const tn_row *row))
{
    const tn_layout *out = &call->outputs[0].layout;
    tn_row_walk walk;
    walk.call = call;
    walk.body = body;
    walk.most = most;
    walk.rank = 0;
    walk.num_operands = call->num_inputs + call->num_outputs;
    if (walk.num_operands > TN_ROW_MAX_OPERANDS)
        return call->host->fail(call->host, TN_ERR_UNSUPPORTED,
                                "%u operands, expected at most %d", walk.num_operands,
                                TN_ROW_MAX_OPERANDS);
    for (int32_t axis = 0; axis < out->rank; axis++)
        tn_row_walk_axis(&walk, axis);
    if (walk.rank == 0) { // all extents are 1: one row of one element
        walk.rank = 1;
        walk.extent[0] = 1;
        for (uint32_t k = 0; k < walk.num_operands; k++)
            walk.stride[k][0] = 0;
    }
    // The joined axes have as many elements as the output, in the same order.
    if (tn_layout_count(out) > 0)
        call->parallel_for(call, tn_layout_count(out), most, tn_row_walk_range, &walk);
    return TN_OK;
}

#ifndef __cplusplus

// The most elements of a row in TN_ROW_KERNEL: small enough that the caches of a core hold
// a few f32 operands (32 KiB each) between the passes of a loop, large enough that the call
// of the loop costs nothing.
#define TN_ROW_MOST 8192

// Defines a static cpu.c/1 kernel NAME for primitive `op_id` that runs `body` over rows of
// at most TN_ROW_MOST elements. Further arguments are those of TN_CPU_KERNEL of
// <tenon/pack.h>, whose launch this macro writes: TN_TAKES_ANY(...), since rows take any
// strides, and more initialisers of tn_kernel. C only.
#define TN_ROW_KERNEL(kernel_name, op_id, body, ...)                                       \
    static tn_status kernel_name##_launch(const tn_cpu_call *call)                         \
    {                                                                                      \
        return tn_for_rows(call, TN_ROW_MOST, body);                                       \
    }                                                                                      \
    static TN_CPU_KERNEL(kernel_name, op_id, kernel_name##_launch, __VA_ARGS__)

#endif // __cplusplus

#endif // TENON_OPS_ROWS_H
