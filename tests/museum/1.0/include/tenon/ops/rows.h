// SPDX-License-Identifier: MIT
// For those who write cpu.c/1 kernels that work element by element: tn_for_rows() cuts any
// layouts into rows and calls a plain loop for each, on several threads.
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
// Inputs broadcast against output 0. Axes that can be walked as one are one, so contiguous
// operands of equal extents come as long rows with steps of 1.
//
// Threads. Pure functions; `body` is called from several threads at once.
#ifndef TENON_OPS_ROWS_H
#define TENON_OPS_ROWS_H

#include <tenon/kernel.h>
#include <tenon/ops/reference.h>
#include <tenon/pack.h>

// The most inputs and outputs, in all, that a kernel over rows may have.
#define TN_ROW_MAX_OPERANDS 8

// A run of elements of every operand, inputs in order and then outputs.
typedef struct tn_row {
    const tn_cpu_call *call;
    int64_t count;                     // elements, at least 1
    void *data[TN_ROW_MAX_OPERANDS];   // the first element of the row
    int64_t step[TN_ROW_MAX_OPERANDS]; // from one to the next, in elements; 0: broadcast
} tn_row;

// How all operands are walked: the axes that are left, and the strides along them.
typedef struct tn_row_walk {
    const tn_cpu_call *call;
    void (*body)(const tn_row *row); // what is called for each row
    int64_t most;                    // elements a row
    int64_t extent[TN_MAX_RANK];
    int64_t stride[TN_ROW_MAX_OPERANDS][TN_MAX_RANK];
    uint32_t num_operands;
    int32_t rank; // at least 1
} tn_row_walk;

// Operand `k` of a call: inputs in order, then outputs.
static inline const tn_tensor *tn_call_operand(const tn_cpu_call *call, uint32_t k)
{
    return k < call->num_inputs ? &call->inputs[k] : &call->outputs[k - call->num_inputs];
}

// Whether all steps of a row are 1: what BLAS and vector code want.
static inline int32_t tn_row_is_dense(const tn_row *row)
{
    uint32_t count = row->call->num_inputs + row->call->num_outputs;
    for (uint32_t k = 0; k < count; k++)
        if (row->step[k] != 1)
            return 0;
    return 1;
}

// Copies operand `from` of a row to operand `to`, of the same dtype, unless it lies there
// already; for kernels that write over an operand, as BLAS does. Returns whether the row is
// dense: one that is not is left alone.
static inline int32_t tn_row_copy(const tn_row *row, uint32_t from, uint32_t to)
{
    int64_t bytes = tn_dtype_bytes(tn_call_operand(row->call, to)->layout.dtype);
    if (!tn_row_is_dense(row))
        return 0;
    if (row->data[to] != row->data[from])
        __builtin_memcpy(row->data[to], row->data[from], (uint64_t)(row->count * bytes));
    return 1;
}

// Adds an axis of the output to the walk, or lengthens the last one by it.
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
    int32_t place = joins ? last : walk->rank++;
    walk->extent[place] = out->extent[axis] * (joins ? walk->extent[last] : 1);
    for (uint32_t k = 0; k < walk->num_operands; k++)
        walk->stride[k][place] = stride[k];
}

// Elements [begin, end) of the output in row-major order.
static inline void tn_row_walk_range(void *context, int64_t begin, int64_t end)
{
    const tn_row_walk *walk = (const tn_row_walk *)context;
    int32_t last = walk->rank - 1;
    tn_row row;
    row.call = walk->call;
    while (begin < end) {
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

// Calls `body` with rows of at most `most` elements until every element of output 0 was in
// one. Every output has the extents of output 0. More than TN_ROW_MAX_OPERANDS operands:
// TN_ERR_UNSUPPORTED.
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
    if (walk.rank == 0) { // one element
        walk.rank = 1;
        walk.extent[0] = 1;
        for (uint32_t k = 0; k < walk.num_operands; k++)
            walk.stride[k][0] = 0;
    }
    if (tn_layout_count(out) > 0)
        call->parallel_for(call, tn_layout_count(out), most, tn_row_walk_range, &walk);
    return TN_OK;
}

#ifndef __cplusplus

// A cpu.c/1 kernel NAME that runs `body` over rows of at most TN_ROW_MOST elements, and
// what it takes: as TN_CPU_KERNEL of <tenon/pack.h>, with the launch made here.
#define TN_ROW_MOST 8192 // a few f32 operands of so many fit into the first-level cache
#define TN_ROW_KERNEL(kernel_name, op_id, body, ...)                                       \
    static tn_status kernel_name##_launch(const tn_cpu_call *call)                         \
    {                                                                                      \
        return tn_for_rows(call, TN_ROW_MOST, body);                                       \
    }                                                                                      \
    static TN_CPU_KERNEL(kernel_name, op_id, kernel_name##_launch, __VA_ARGS__)

#endif // __cplusplus

#endif // TENON_OPS_ROWS_H
