// SPDX-License-Identifier: MIT
// Discrete Fourier transforms of rows of complex numbers:
//
//   out[k] = scale * sum over j of in[j] * exp(-2 pi i j k / n), or +2 pi i when inverse
//
// A plan has the factors and tables for one length n of one precision. Lengths whose prime
// factors are at most CPU_FFT_MAX_RADIX are computed by mixed radices (Stockham's order: no
// reversal of bits), long ones as n = a * b by transforms of length a and b (Bailey's
// four steps), primes by a convolution of length n - 1 where that has such factors (Rader).
// Other lengths are convolutions with a chirp (Bluestein), of a length with such factors.
//
// A transform runs in the lanes of vectors: each lane is a row, or one of the transforms of
// length a or b. Every variant with fused multiply-adds gives the same bits.
#ifndef KERNELS_CPU_FFT_H
#define KERNELS_CPU_FFT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CPU_FFT_LANE_BYTES = 64, // of the widest vector: 16 lanes of f32, 8 of f64
    CPU_FFT_MAX_RADIX = 31,
    CPU_FFT_MAX_PASSES = 16,  // 4^16 is over CPU_FFT_MAX_LANES
    CPU_FFT_MAX_LANES = 1024, // longest transform in lanes
    CPU_FFT_ALIGNMENT = 64,   // of plans and of scratch memory, in bytes
};

enum cpu_fft_kind { CPU_FFT_LANES, CPU_FFT_RADER, CPU_FFT_FOUR_STEP, CPU_FFT_BLUESTEIN };

// A pass of Stockham's algorithm: `groups` times `stride` butterflies of `radix` elements.
struct cpu_fft_pass {
    int64_t radix, groups, stride;
    const void *twiddles; // [groups][radix - 1]
    const void *roots;    // [radix], for a radix above 5; else NULL
};

// A plan. Its tables lie behind it in memory; they are arrays of complex numbers of the
// plan's precision, real part first.
struct cpu_fft {
    int64_t n;
    enum cpu_fft_kind kind;
    bool is_f64;
    uint64_t scratch; // bytes that a run needs
    // LANES
    int32_t num_passes;
    struct cpu_fft_pass passes[CPU_FFT_MAX_PASSES];
    // FOUR_STEP: n = first->n * second->n. The factor exp(-2 pi i r c / n) of row r of
    // first->n and column c of second->n is steps[r][c], all real before all imaginary
    // parts. Where `bases` is not NULL, it is steps[r][lane] * bases[block][r], where a
    // block is as many columns as the widest vector has lanes, and the last block ends with
    // the columns.
    const struct cpu_fft *first, *second;
    const void *steps, *bases;
    uint64_t between; // bytes of the column stage's results, which begin the scratch memory
    // RADER, BLUESTEIN
    const struct cpu_fft *convolution;
    const void *spectrum; // [convolution->n], divided by convolution->n: transform of the
                          // roots (RADER), or of the chirp's conjugate (BLUESTEIN)
    const void *chirp;    // BLUESTEIN: [n]: exp(-pi i j j / n)
    const int32_t *order; // RADER: [n - 1] positions of operands, then [n - 1] positions
                          // of results
};

// A run of a plan on rows of n complex numbers, real part first. Rows lie `in_row` and
// `out_row` complex numbers apart. `out` may be `in` if these are equal. `scratch` has
// plan->scratch bytes, for this call alone.
struct cpu_fft_call {
    const struct cpu_fft *plan;
    const void *in;
    void *out;
    int64_t rows, in_row, out_row;
    double scale;
    bool is_inverse;
    void *scratch;
    // NULL, or for plans of kind LANES and RADER the `factors` of cpu_fft_fold below: then
    // a row is 2 n real numbers, transformed to n + 1 complex ones, or back if inverse.
    const void *factors;
};
typedef void cpu_fft_fn(const struct cpu_fft_call *call);

// Rows of n > 0 numbers that are to be transformed; `rows` influences the kind of plan.
struct cpu_fft_rows {
    int64_t n, rows;
    bool is_f64;
};

// Bytes of a plan with its tables; of the scratch memory for a run, or for making the plan;
// and for plans of kind FOUR_STEP of the scratch memory of a cpu_fft_stage, and of
// cpu_fft.between. The last two are 0 for other kinds.
struct cpu_fft_size {
    uint64_t plan, scratch, stage, between;
};
struct cpu_fft_size cpu_fft_measure(const struct cpu_fft_rows *of);

// Writes a plan to `memory` and returns it. Borrows `scratch`. `run` is a cpu_fft_fn of the
// same precision, of any variant, for making tables. Sizes: cpu_fft_measure(of).
const struct cpu_fft *cpu_fft_plan(void *memory, const struct cpu_fft_rows *of,
                                   cpu_fft_fn *run, void *scratch);

// A share of one stage of transforming one row by a plan of kind FOUR_STEP. The column
// stage has blocks of columns, the row stage blocks of rows, as many as the widest vector
// has lanes. Threads may share the blocks; the row stage begins after all of the column
// stage.
struct cpu_fft_stage {
    const struct cpu_fft_call *call; // one row; its scratch: plan->between bytes, aligned
    bool is_row_stage;
    int64_t begin, end; // range of blocks within [0, cpu_fft_blocks())
    void *scratch;      // cpu_fft_size.stage bytes, for this call alone
};
typedef void cpu_fft_stage_fn(const struct cpu_fft_stage *stage);

static inline int64_t cpu_fft_blocks(const struct cpu_fft *plan, bool is_row_stage)
{
    int64_t lanes = CPU_FFT_LANE_BYTES / (plan->is_f64 ? 8 : 4);
    return ((is_row_stage ? plan->first : plan->second)->n + lanes - 1) / lanes;
}

// --- real numbers ------------------------------------------------------------------------
//
// n = 2 * half real numbers are taken as `half` complex ones, z. The transform Z of z and
// the transform X of the real numbers follow from each other:
//
//   forward   X[k] = Z[k] + conj(Z[half - k]) - factors[k] (Z[k] - conj(Z[half - k]))
//   inverse   Z[k] = X[k] + conj(X[half - k]) - conj(factors[k]) (X[k] - conj(X[half - k]))
//
// with factors[k] = i exp(-2 pi i k / n). The forward formula gives twice the transform:
// callers halve the scale of Z.

// Turns rows of `half` complex numbers Z into rows of half + 1 complex numbers X. Inverse:
// X into Z, with X[0] and X[half] taken for real numbers. `out` may be `in` if is_inverse
// is false and in_row equals out_row.
struct cpu_fft_fold {
    int64_t half;
    const void *factors; // half / 2 + 1 complex numbers, by cpu_fft_unpack_factors
    const void *in;
    void *out;
    int64_t rows, in_row, out_row; // number of rows; complex numbers from row to row
    bool is_inverse;
    int64_t begin, end; // range of k in 0 .. half / 2: results k and half - k are computed
};
typedef void cpu_fft_fold_fn(const struct cpu_fft_fold *fold);

void cpu_fft_unpack_factors(void *factors, int64_t half, bool is_f64);

#endif // KERNELS_CPU_FFT_H
