// SPDX-License-Identifier: MIT
// Discrete Fourier transforms of rows of complex numbers:
//
//   out[k] = scale * sum over j of in[j] * exp(-2 pi i j k / n), or +2 pi i when inverse
//
// A plan has the factors and tables for one length n of one precision. Lengths whose prime
// factors are at most CPU_FFT_MAX_RADIX are computed by mixed radices (Stockham's order: no
// reversal of bits), long ones as n = a * b by transforms of length a and b (Bailey's
// four steps), primes by a convolution of n - 1 where that has such factors (Rader). Others
// are convolutions with a chirp (Bluestein): of a length that has such factors.
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
    CPU_FFT_ALIGNMENT = 64,   // bytes: of plans and of scratch memory
};

enum cpu_fft_kind { CPU_FFT_LANES, CPU_FFT_PRIME, CPU_FFT_PARTS, CPU_FFT_CHIRP };

// A pass of Stockham's algorithm: `groups` times `stride` butterflies of `radix` elements.
struct cpu_fft_pass {
    int64_t radix, groups, stride;
    const void *twiddles; // [groups][radix - 1]
    const void *roots;    // [radix], for a radix without a butterfly of its own
};

// Tables are arrays of complex numbers of the plan's precision, real part first, and lie
// behind the plan.
struct cpu_fft {
    int64_t n;
    enum cpu_fft_kind kind;
    bool is_f64;
    uint64_t scratch; // bytes that a run needs
    // LANES
    int32_t num_passes;
    struct cpu_fft_pass passes[CPU_FFT_MAX_PASSES];
    // PARTS: n = first->n * second->n. The factor exp(-2 pi i r c / n) of row r of first->n
    // and column c of second->n is steps[r][c], real parts before all imaginary ones; of
    // long rows it is the product of steps[r][lane], by rows, and bases[block][r], of
    // blocks of lanes of the widest vector, the last of which ends with the columns.
    const struct cpu_fft *first, *second;
    const void *steps, *bases;
    uint64_t between; // bytes of scratch memory between the parts, before that of a part
    // PRIME, CHIRP
    const struct cpu_fft *convolution;
    const void *spectrum; // [convolution->n], over convolution->n: of the roots, PRIME;
                          // of the chirp's conjugate, CHIRP
    const void *chirp;    // CHIRP: [n]: exp(-pi i j j / n)
    const int32_t *order; // PRIME: [n - 1] positions of what is read, and [n - 1] of
                          // results
};

// Rows of n complex numbers, real part first, each `in_row` and `out_row` numbers apart.
// `out` may be `in` where the rows lie alike. `scratch` has plan->scratch bytes, for this
// call.
struct cpu_fft_call {
    const struct cpu_fft *plan;
    const void *in;
    void *out;
    int64_t rows, in_row, out_row;
    double scale;
    bool is_inverse;
    void *scratch;
    // For plans of kind LANES and PRIME, else NULL: the rows of n numbers are 2 n real
    // ones, and they are transformed to, or from, n + 1 numbers; as cpu_fft_fold, below.
    const void *factors;
};
typedef void cpu_fft_fn(const struct cpu_fft_call *call);

// Rows of n > 0 numbers that are transformed; how many depends on the kind of plan.
struct cpu_fft_rows {
    int64_t n, rows;
    bool is_f64;
};

// Bytes: of a plan with its tables, and of the scratch memory of a run, or of making it.
// `part` is 0 where the plan has no parts; `between`: of theirs.
struct cpu_fft_size {
    uint64_t plan, scratch, part, between;
};
struct cpu_fft_size cpu_fft_measure(const struct cpu_fft_rows *of);

// Writes a plan to `memory`, with `run` of the same precision, of any variant. Gives the
// plan, which lies at `memory`. Sizes are those of cpu_fft_measure.
const struct cpu_fft *cpu_fft_plan(void *memory, const struct cpu_fft_rows *of,
                                   cpu_fft_fn *run, void *scratch);

// Both parts of a row of a plan of kind PARTS, the second after all of the first, in blocks
// of as many columns, or rows, as a vector has lanes: threads may share them out.
struct cpu_fft_part {
    const struct cpu_fft_call *call; // of one row; scratch: memory for a row, aligned
    bool is_second;
    int64_t begin, end; // blocks, from 0 to cpu_fft_blocks
    void *scratch;      // cpu_fft_size.part bytes, for this call
};
typedef void cpu_fft_part_fn(const struct cpu_fft_part *part);

static inline int64_t cpu_fft_blocks(const struct cpu_fft *plan, bool is_second)
{
    int64_t lanes = CPU_FFT_LANE_BYTES / (plan->is_f64 ? 8 : 4);
    return ((is_second ? plan->first : plan->second)->n + lanes - 1) / lanes;
}

// --- real numbers ------------------------------------------------------------------------
//
// n = 2 * half real numbers are half complex ones, z, whose transform Z and that of the
// real numbers, X, give each other:
//
//   forward   X[k] = Z[k] + conj(Z[half - k]) - factors[k] (Z[k] - conj(Z[half - k]))
//   inverse   Z[k] = X[k] + conj(X[half - k]) - conj(factors[k]) (X[k] - conj(X[half - k]))
//
// with factors[k] = i exp(-2 pi i k / n). The forward one gives twice the transform:
// callers scale Z by a half of what they want.

// Rows of half complex numbers Z and half + 1 complex numbers X; inverse from X to Z, which
// takes X[0] and X[half] for real. `out` may be `in` going forward, where the rows lie
// alike.
struct cpu_fft_fold {
    int64_t half;
    const void *factors; // half / 2 + 1 complex numbers, by cpu_fft_unpack_factors
    const void *in;
    void *out;
    int64_t rows, in_row, out_row; // rows and their distances in complex numbers
    bool is_inverse;
    int64_t begin, end; // of 0 .. half / 2: which k, with half - k, are computed
};
typedef void cpu_fft_fold_fn(const struct cpu_fft_fold *fold);

void cpu_fft_unpack_factors(void *factors, int64_t half, bool is_f64);

#endif // KERNELS_CPU_FFT_H
