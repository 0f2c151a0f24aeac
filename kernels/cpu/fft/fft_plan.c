// SPDX-License-Identifier: MIT
// Plans of Fourier transforms. Each plan is built twice by the same functions: without
// memory, to count bytes, and then in place.
#include "fft.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define PI 3.14159265358979323846
#define SHORTEST_PARTS 128 // shorter transforms are not divided
#define LEAST_PART 8

// --- memory ------------------------------------------------------------------------------

struct room {
    char *base; // NULL: bytes are counted only
    uint64_t used;
};

static void *take(struct room *room, uint64_t bytes)
{
    void *memory = room->base ? room->base + room->used : NULL;
    room->used += (bytes + CPU_FFT_ALIGNMENT - 1) / CPU_FFT_ALIGNMENT * CPU_FFT_ALIGNMENT;
    return memory;
}

static uint64_t complex_bytes(bool is_f64)
{
    return is_f64 ? 2 * sizeof(double) : 2 * sizeof(float);
}

static int64_t lanes_of(bool is_f64)
{
    return CPU_FFT_LANE_BYTES / (int64_t)(is_f64 ? sizeof(double) : sizeof(float));
}

// --- roots of unity ----------------------------------------------------------------------

struct root {
    double re, im;
};

// exp(-2 pi i k / n), by an angle of at most pi / 4.
static struct root root_of(int64_t k, int64_t n)
{
    int64_t eighths = 8 * (k % n), part = (eighths + n) / (2 * n); // the nearest quarter
    double angle = (double)(eighths - 2 * part * n) / (double)n * (PI / 4);
    double c = cos(angle), s = sin(angle);
    switch (part % 4) {
    case 0:
        return (struct root){c, -s};
    case 1:
        return (struct root){-s, -c};
    case 2:
        return (struct root){-c, s};
    default:
        return (struct root){s, c};
    }
}

static void set_number(void *table, int64_t at, double value, bool is_f64)
{
    if (is_f64)
        ((double *)table)[at] = value;
    else
        ((float *)table)[at] = (float)value;
}

static void set_root(void *table, int64_t at, struct root root, bool is_f64)
{
    set_number(table, 2 * at, root.re, is_f64);
    set_number(table, 2 * at + 1, root.im, is_f64);
}

// --- factors -----------------------------------------------------------------------------

// The radix of the next pass, or 0 where the least prime factor is too large.
static int64_t next_radix(int64_t n)
{
    if (n % 4 == 0)
        return 4;
    for (int64_t radix = 2; radix <= CPU_FFT_MAX_RADIX; radix++)
        if (n % radix == 0)
            return radix;
    return 0;
}

static bool is_smooth(int64_t n)
{
    for (int64_t radix; n > 1; n /= radix)
        if ((radix = next_radix(n)) == 0)
            return false;
    return true;
}

// The largest divisor of n that is at most its square root, and short enough for lanes.
static int64_t part_of(int64_t n)
{
    int64_t part = (int64_t)sqrt((double)n);
    part = part < CPU_FFT_MAX_LANES ? part : CPU_FFT_MAX_LANES;
    while (n % part)
        part--;
    return part;
}

// The least length of at least `least` with the prime factors 2, 3 and 5 that divides into
// parts well: 2^k times 1, 3, 5 or 9.
static int64_t convolution_length(int64_t least)
{
    static const int64_t odd[] = {1, 3, 5, 9};
    int64_t best = INT64_MAX;
    for (int i = 0; i < 4; i++) {
        int64_t length = odd[i];
        while (length < least)
            length *= 2;
        best = length < best ? length : best;
    }
    return best;
}

// --- plans -------------------------------------------------------------------------------

struct planner {
    struct room room;
    bool is_f64;
    cpu_fft_fn *run;
    void *scratch;
};

// `divides`: whether a transform that is short enough for lanes may be divided.
static const struct cpu_fft *build(struct planner *planner, int64_t n, bool divides,
                                   uint64_t *out_scratch);

static void fill_pass(const struct planner *planner, struct cpu_fft_pass *pass, int64_t n,
                      void *twiddles, void *roots)
{
    bool is_f64 = planner->is_f64;
    for (int64_t p = 0; p < pass->groups; p++)
        for (int64_t j = 1; j < pass->radix; j++)
            set_root(twiddles, p * (pass->radix - 1) + j - 1, root_of(p * j, n), is_f64);
    for (int64_t j = 0; roots && j < pass->radix; j++)
        set_root(roots, j, root_of(j, pass->radix), is_f64);
    pass->twiddles = twiddles;
    pass->roots = roots;
}

static void build_lanes(struct planner *planner, struct cpu_fft *plan, int64_t n)
{
    int64_t left = n, stride = 1;
    int32_t count = 0;
    for (int64_t radix; left > 1; left /= radix, stride *= radix, count++) {
        radix = next_radix(left);
        struct cpu_fft_pass pass = {radix, left / radix, stride, NULL, NULL};
        uint64_t size = complex_bytes(planner->is_f64);
        void *twiddles = take(&planner->room, (uint64_t)(pass.groups * (radix - 1)) * size);
        void *roots = radix > 5 ? take(&planner->room, (uint64_t)radix * size) : NULL;
        if (!plan)
            continue;
        fill_pass(planner, &pass, left, twiddles, roots);
        plan->passes[count] = pass;
    }
    if (plan)
        plan->num_passes = count;
}

static uint64_t largest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// Of a transform of n in lanes: two arrays of vectors of real and imaginary parts.
static uint64_t lanes_scratch(int64_t n)
{
    return (uint64_t)n * 4 * CPU_FFT_LANE_BYTES;
}

static void fill_steps(const struct planner *planner, struct cpu_fft *plan, void *steps,
                       void *bases)
{
    int64_t lanes = lanes_of(planner->is_f64), rows = plan->first->n;
    int64_t blocks = (plan->second->n + lanes - 1) / lanes;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t lane = 0; lane < lanes; lane++) {
            struct root root = root_of(r * lane, plan->n);
            set_number(steps, 2 * r * lanes + lane, root.re, planner->is_f64);
            set_number(steps, (2 * r + 1) * lanes + lane, root.im, planner->is_f64);
        }
    for (int64_t block = 0; block < blocks; block++)
        for (int64_t r = 0; r < rows; r++)
            set_root(bases, block * rows + r, root_of(r * lanes * block, plan->n),
                     planner->is_f64);
    plan->steps = steps;
    plan->bases = bases;
}

// The row between the parts, and up to the alignment of what follows.
static uint64_t between_bytes(int64_t n, bool is_f64)
{
    return (uint64_t)n * complex_bytes(is_f64) + CPU_FFT_ALIGNMENT;
}

static void build_parts(struct planner *planner, struct cpu_fft *plan, int64_t n,
                        int64_t part, uint64_t *out_scratch)
{
    int64_t other = n / part, lanes = lanes_of(planner->is_f64);
    uint64_t size = complex_bytes(planner->is_f64), scratch[2];
    const struct cpu_fft *first = build(planner, part, false, &scratch[0]);
    const struct cpu_fft *second = build(planner, other, false, &scratch[1]);
    void *steps = take(&planner->room, 2 * CPU_FFT_LANE_BYTES * (uint64_t)part);
    void *bases =
        take(&planner->room, (uint64_t)((other + lanes - 1) / lanes * part) * size);
    // The transposed array; what either part needs, and rows where those of the second are
    // not computed in lanes.
    if (other > CPU_FFT_MAX_LANES)
        scratch[1] += (uint64_t)(lanes * other) * size;
    *out_scratch = between_bytes(n, planner->is_f64) + largest(scratch[0], scratch[1]);
    if (!plan)
        return;
    plan->first = first;
    plan->second = second;
    fill_steps(planner, plan, steps, bases);
}

// The spectrum of the chirp's conjugate, which is wrapped around the convolution's end.
static void fill_spectrum(const struct planner *planner, const struct cpu_fft *plan,
                          void *spectrum)
{
    int64_t m = plan->convolution->n;
    bool is_f64 = planner->is_f64;
    memset(spectrum, 0, (uint64_t)m * complex_bytes(is_f64));
    for (int64_t j = 0; j < plan->n; j++) {
        struct root root = root_of(j * j % (2 * plan->n), 2 * plan->n);
        root.im = -root.im;
        set_root(spectrum, j, root, is_f64);
        if (j > 0)
            set_root(spectrum, m - j, root, is_f64);
    }
    const struct cpu_fft_call call = {.plan = plan->convolution,
                                      .in = spectrum,
                                      .out = spectrum,
                                      .rows = 1,
                                      .scale = 1.0 / (double)m,
                                      .scratch = planner->scratch};
    planner->run(&call);
}

static void build_chirp(struct planner *planner, struct cpu_fft *plan, int64_t n,
                        uint64_t *out_scratch)
{
    int64_t m = convolution_length(2 * n - 1);
    uint64_t size = complex_bytes(planner->is_f64), scratch;
    const struct cpu_fft *convolution = build(planner, m, true, &scratch);
    void *chirp = take(&planner->room, (uint64_t)n * size);
    void *spectrum = take(&planner->room, (uint64_t)m * size);
    *out_scratch = (uint64_t)m * size + CPU_FFT_ALIGNMENT + scratch;
    if (!plan)
        return;
    for (int64_t j = 0; j < n; j++)
        set_root(chirp, j, root_of(j * j % (2 * n), 2 * n), planner->is_f64);
    plan->convolution = convolution;
    plan->chirp = chirp;
    fill_spectrum(planner, plan, spectrum);
    plan->spectrum = spectrum;
}

static enum cpu_fft_kind kind_of(int64_t n, bool divides, int64_t *out_part)
{
    bool is_long = n > CPU_FFT_MAX_LANES;
    *out_part = 1;
    if (!is_smooth(n))
        return CPU_FFT_CHIRP;
    if (is_long || (divides && n >= SHORTEST_PARTS))
        *out_part = part_of(n);
    return is_long || *out_part >= LEAST_PART ? CPU_FFT_PARTS : CPU_FFT_LANES;
}

static const struct cpu_fft *build(struct planner *planner, int64_t n, bool divides,
                                   uint64_t *out_scratch)
{
    struct cpu_fft *plan = take(&planner->room, sizeof(*plan));
    int64_t part;
    enum cpu_fft_kind kind = kind_of(n, divides, &part);
    if (plan)
        *plan = (struct cpu_fft){.n = n, .kind = kind, .is_f64 = planner->is_f64};
    if (kind == CPU_FFT_CHIRP) {
        build_chirp(planner, plan, n, out_scratch);
    } else if (kind == CPU_FFT_PARTS) {
        build_parts(planner, plan, n, part, out_scratch);
    } else {
        build_lanes(planner, plan, n);
        *out_scratch = lanes_scratch(n);
    }
    if (plan)
        plan->scratch = *out_scratch;
    return plan;
}

struct cpu_fft_size cpu_fft_measure(int64_t n, bool is_f64)
{
    struct planner planner = {.is_f64 = is_f64};
    struct cpu_fft_size size = {0};
    int64_t part;
    (void)build(&planner, n, true, &size.scratch);
    size.plan = planner.room.used;
    if (kind_of(n, true, &part) == CPU_FFT_PARTS)
        size.part = size.scratch - between_bytes(n, is_f64);
    return size;
}

const struct cpu_fft *cpu_fft_plan(void *memory, int64_t n, bool is_f64, cpu_fft_fn *run,
                                   void *scratch)
{
    struct planner planner = {{memory, 0}, is_f64, run, scratch};
    uint64_t size;
    return build(&planner, n, true, &size);
}

void cpu_fft_turns(void *turns, int64_t half, bool is_f64)
{
    for (int64_t k = 0; k <= half / 2; k++) {
        struct root root = root_of(k, 2 * half);
        set_root(turns, k, (struct root){-root.im, root.re}, is_f64);
    }
}
