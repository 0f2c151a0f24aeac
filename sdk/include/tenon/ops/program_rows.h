// SPDX-License-Identifier: MIT
// For authors of backends: runs a row program of <tenon/expr.h> (TN_EXPR_ROWS) on ordinary
// memory, one element at a time. It defines the instructions of class REDUCE and EXTENT,
// plainly and slowly, as <tenon/ops/program.h> defines the others: the core compares
// launches with it (TENON_CHECK), and tests compare backends. A backend that runs steps by
// tn_program_run() adds:
//
//   if (step->program->flags & TN_EXPR_ROWS)
//       tn_program_run_rows(step->program, step->params, inputs, outputs);
//   else
//       tn_program_run(step->program, step->params, inputs, outputs);
//
// and sets TN_DEVICE_ROWS in tn_device_info.flags.
//
// How a row is run. "x * rsqrt(mean(x * x) + eps) * w", on f32, is
//
//   0  LOAD x   1  MUL 0, 0   2  REDUCE_SUM 1   3  EXTENT   4  CAST 3   5  DIV 2, 4
//   6  PARAM    7  ADD 5, 6   8  RSQRT 7        9  MUL 0, 8   10  LOAD w   11  MUL 9, 10
//
// and a backend runs it in phases. The first one computes 0 and 1 for each element and
// folds 1. Then come, once a row, 2 to 8, whose values are the same for all elements. The
// last phase computes 9 to 11 for each element and stores them. In general an instruction
// is in the phase after those of the reductions that it depends on. A row that fits
// registers, shared memory or a cache is read once, and what the first phase computed of
// each element is kept; a longer row is read again by each phase. The functions here
// compute all instructions of the row anew for each reduction, which needs no phases and no
// memory.
//
// Functions, from the whole to the parts:
//
//   tn_program_run_rows      all rows
//     tn_program_element     all instructions of one element but class REDUCE
//     tn_reduction_start     what folding begins with
//     tn_reduction_fold      one element
//     tn_program_store       the outputs of one element
//
// Exactness. Sums and products of floats are computed in double and rounded once, so they
// are nearer to the exact result than <tenon/expr.h> demands: a backend may differ by n
// units in the last place of the sum of the absolute values, n being the row's extent.
//
// Threads. Any thread. tn_program_run_rows writes the elements of the outputs; the other
// functions are pure. None fails or checks its arguments: the core has checked programs and
// layouts.
#ifndef TENON_OPS_PROGRAM_ROWS_H
#define TENON_OPS_PROGRAM_ROWS_H

#include <tenon/ops/program.h>

// The result of a reduction `op` over an empty row, in which folding begins. `dtype` is the
// instruction's. 0 for a sum, 1 for a product; for REDUCE_MIN and REDUCE_MAX the greatest
// and the least value of the dtype, of floats an infinity.
static inline tn_scalar_value tn_reduction_start(uint32_t op, tn_dtype dtype)
{
    int32_t is_max = op == TN_EXPR_REDUCE_MAX, is_prod = op == TN_EXPR_REDUCE_PROD;
    tn_scalar_value v;
    v.u = 0;
    if (op == TN_EXPR_REDUCE_SUM || is_prod) {
        if (tn_is_float(dtype))
            v.f = is_prod;
        else
            v.i = is_prod;
        return v;
    }
    if (tn_is_float(dtype)) {
        v.f = is_max ? -__builtin_inf() : __builtin_inf();
        return v;
    }
    // By conversion, which gives the nearest integer of the dtype; a bool is 0 or 1.
    if (dtype == TN_BOOL)
        v.u = !is_max;
    else
        v.i = tn_integer_of_f64(dtype, is_max ? -__builtin_inf() : __builtin_inf());
    return v;
}

// One step of reduction `op`: `v`, an element of `dtype`, folded into `sum`. Floats are not
// rounded to `dtype` here, integers wrap in 64 bits; tn_value_fit() gives the result.
//
// A backend folds in any order and in partial results, since ADD, MUL, MIN and MAX are
// associative, but for rounding; it merges two partial results as it folds an element. A
// NaN stays once it is there: MIN and MAX of a NaN are NaN, in either order.
static inline tn_scalar_value tn_reduction_fold(uint32_t op, tn_dtype dtype,
                                                tn_scalar_value sum, tn_scalar_value v)
{
    uint32_t by = op == TN_EXPR_REDUCE_SUM    ? TN_EXPR_ADD
                  : op == TN_EXPR_REDUCE_PROD ? TN_EXPR_MUL
                  : op == TN_EXPR_REDUCE_MIN  ? TN_EXPR_MIN
                                              : TN_EXPR_MAX;
    if (tn_is_float(dtype))
        sum.f = tn_float_operation(by, dtype, sum.f, v.f);
    else
        sum.u = tn_integer_operation(by, dtype, sum.u, v.u);
    return sum;
}

// Computes the first `count` instructions of `program` for the element at index `at`, whose
// row-major number is `element`, in rows of `extent` elements. Values of instructions of
// class REDUCE are left as they are in `values`: they are the row's, and the caller has put
// them there. Each of the others is written to `values`, which has room for all.
//
// INDEX is `element`, and EXTENT is `extent`. Without elements (`extent` 0) LOAD and TAKE
// give 0, since there is no memory to read: what depends on it is not used, because an
// output with one element a row depends on reductions, constants and params alone.
static inline void tn_program_element(const tn_expr_program *program,
                                      const uint64_t *params, const tn_tensor *inputs,
                                      const int64_t *at, int64_t element, int64_t extent,
                                      uint32_t count, tn_scalar_value *values)
{
    for (uint32_t i = 0; i < count; i++) {
        const tn_expr_insn *insn = &program->insns[i];
        if (tn_expr_class(insn->op) == TN_EXPR_CLASS_REDUCE)
            continue;
        if (insn->op == TN_EXPR_INDEX || insn->op == TN_EXPR_EXTENT) {
            values[i].i = insn->op == TN_EXPR_INDEX ? element : extent;
        } else if ((insn->op == TN_EXPR_LOAD || insn->op == TN_EXPR_TAKE) && extent == 0) {
            values[i].u = 0;
        } else if (insn->op == TN_EXPR_LOAD || insn->op == TN_EXPR_TAKE) {
            const tn_tensor *in = &inputs[insn->a];
            int64_t taken =
                insn->op == TN_EXPR_TAKE ? tn_taken_offset(program, i, params, values) : 0;
            values[i] = tn_value_load(in, tn_offset_at(&in->layout, at) + taken);
        } else {
            values[i] = tn_program_step(program, i, params, values);
        }
    }
}

// Writes the outputs at index `at`, from the values of all instructions there, converted
// from the dtype of the instruction to that of the tensor. Of an output with one element a
// row only the row's first element is written, at index 0 of the last axis; an empty row
// has that element, too, and no element of the other outputs.
static inline void tn_program_store(const tn_expr_program *program, int64_t extent,
                                    const int64_t *at, const tn_scalar_value *values,
                                    const tn_tensor *outputs)
{
    for (uint32_t i = 0; i < program->num_outputs; i++) {
        const tn_tensor *out = &outputs[i];
        int32_t last = out->layout.rank - 1;
        tn_dtype dtype = program->insns[program->outputs[i]].dtype;
        if (at[last] > 0 && out->layout.extent[last] != extent)
            continue;
        if (extent == 0 && out->layout.extent[last] == 0)
            continue;
        tn_value_store(out, tn_offset_at(&out->layout, at), dtype,
                       values[program->outputs[i]]);
    }
}

// Runs a row program. `inputs` and `outputs` are program->num_inputs and num_outputs
// tensors of one rank, at least 1, with extents as <tenon/expr.h> says: rows are along the
// last axis. Their dtypes are those of the program. An output may be the memory of an input
// with the same strides: a row is read before it is written, but for elements that are read
// just before they are written.
//
// Borrows its arguments. Uses 4 KiB of stack, allocates nothing, and computes the whole row
// again for each reduction: time in proportion to elements times instructions times one
// more than the reductions.
//
//   float x[6] = {1, 2, 3, 4, 5, 6}, y[6]; // the program of "x / sum(x)" in <tenon/expr.h>
//   tn_layout layout = {.dtype = TN_F32, .rank = 2, .extent = {2, 3}, .stride = {3, 1}};
//   tn_tensor in = {x, layout}, out = {y, layout};
//   tn_program_run_rows(&program, NULL, &in, &out); // each row of y sums to 1
static inline void tn_program_run_rows(const tn_expr_program *program,
                                       const uint64_t *params, const tn_tensor *inputs,
                                       const tn_tensor *outputs)
{
    const tn_layout *shape =
        program->num_inputs > 0 ? &inputs[0].layout : &outputs[0].layout;
    int32_t last = shape->rank - 1;
    int64_t at[TN_MAX_RANK] = {0}, n = shape->extent[last], row = 0;
    tn_scalar_value values[TN_EXPR_MAX_INSNS];
    for (int32_t i = 0; i < last; i++)
        if (shape->extent[i] == 0)
            return;
    do {
        for (uint32_t i = 0; i < program->num_insns; i++) {
            const tn_expr_insn *insn = &program->insns[i];
            if (tn_expr_class(insn->op) != TN_EXPR_CLASS_REDUCE)
                continue;
            tn_scalar_value sum = tn_reduction_start(insn->op, insn->dtype);
            for (at[last] = 0; at[last] < n; at[last]++) {
                tn_program_element(program, params, inputs, at, row * n + at[last], n, i,
                                   values);
                sum = tn_reduction_fold(insn->op, insn->dtype, sum, values[insn->a]);
            }
            values[i] = tn_value_fit(insn->dtype, sum);
        }
        at[last] = 0;
        do {
            tn_program_element(program, params, inputs, at, row * n + at[last], n,
                               program->num_insns, values);
            tn_program_store(program, n, at, values, outputs);
        } while (++at[last] < n);
        at[last] = 0;
        row++;
    } while (tn_index_next(last, shape->extent, at));
}

#endif // TENON_OPS_PROGRAM_ROWS_H
