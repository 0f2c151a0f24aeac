// SPDX-License-Identifier: MIT
// Plans of Fourier transforms. Each plan is built twice by the same functions: without
// memory, to count bytes, and then in place.
#include "fft.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define PI 3.14159265358979323846
#define LANE_ROWS 0         // as a number of rows: the transform is computed in lanes
#define LONGEST_TABLE 16384 // longest n with one table of factors; else steps and bases

// --- memory ------------------------------------------------------------------------------

struct room {
    char *base; // NULL: bytes are counted only
    uint64_t used;
};

static uint64_t fft_plan_aligned(uint64_t bytes)
{
    return (bytes + CPU_FFT_ALIGNMENT - 1) / CPU_FFT_ALIGNMENT * CPU_FFT_ALIGNMENT;
}

static void *fft_plan_take(struct room *room, uint64_t bytes)
{
    void *memory = room->base ? room->base + room->used : NULL;
    room->used += fft_plan_aligned(bytes);
    return memory;
}

static uint64_t complex_bytes(bool is_f64)
{
    return is_f64 ? 2 * sizeof(double) : 2 * sizeof(float);
}

static int64_t fft_plan_lanes_of(bool is_f64)
{
    return CPU_FFT_LANE_BYTES / (int64_t)(is_f64 ? sizeof(double) : sizeof(float));
}

// --- roots of unity ----------------------------------------------------------------------

struct root {
    double re, im;
};

// exp(-2 pi i k / n), from the sine and cosine of an angle of at most pi / 4.
static struct root fft_plan_root_of(int64_t k, int64_t n)
{
    int64_t eighths = 8 * (k % n), quarter = (eighths + n) / (2 * n); // the nearest quarter
    double angle = (double)(eighths - 2 * quarter * n) / (double)n * (PI / 4);
    double c = cos(angle), s = sin(angle);
    switch (quarter % 4) {
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

static void fft_plan_set_number(void *table, int64_t at, double value, bool is_f64)
{
    if (is_f64)
        ((double *)table)[at] = value;
    else
        ((float *)table)[at] = (float)value;
}

static void set_root(void *table, int64_t at, struct root root, bool is_f64)
{
    fft_plan_set_number(table, 2 * at, root.re, is_f64);
    fft_plan_set_number(table, 2 * at + 1, root.im, is_f64);
}

// --- factors -----------------------------------------------------------------------------

// The next radix that is a power of 2 (2, 4, 8, 16), or 1 for odd n. Passes of 8 and 16 are
// chosen such that they leave no single factor of 2.
static int64_t fft_plan_power_of_two(int64_t n)
{
    int twos = 0;
    while ((n & 1) == 0 && twos < 62) {
        n >>= 1;
        twos++;
    }
    switch (twos % 3) {
    case 1:
        return twos == 1 ? 2 : 16;
    case 2:
        return twos == 2 ? 4 : twos == 5 ? 8 : 16;
    default:
        return twos == 0 ? 1 : 8;
    }
}

// The radix of the next pass, or 0 where the least prime factor is too large.
static int64_t next_radix(int64_t n)
{
    int64_t power = fft_plan_power_of_two(n);
    if (power > 1)
        return power;
    for (int64_t radix = 3; radix <= CPU_FFT_MAX_RADIX; radix += 2)
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

static bool is_prime(int64_t n)
{
    for (int64_t i = 2; i * i <= n; i++)
        if (n % i == 0)
            return false;
    return n > 1;
}

static int64_t power_modulo(int64_t base, int64_t exponent, int64_t n)
{
    int64_t power = 1;
    for (; exponent > 0; exponent /= 2, base = base * base % n)
        if (exponent % 2)
            power = power * base % n;
    return power;
}

// A number whose powers modulo a prime n are all numbers but 0.
static int64_t generator_of(int64_t n)
{
    for (int64_t g = 2; g < n; g++) {
        bool good = true;
        for (int64_t factor = 2, left = n - 1; left > 1 && good; factor++) {
            if (left % factor)
                continue;
            good = power_modulo(g, (n - 1) / factor, n) != 1;
            while (left % factor == 0)
                left /= factor;
        }
        if (good)
            return g;
    }
    return 1;
}

// Whether transforms of length n can be computed in lanes.
static bool fits_lanes(int64_t n)
{
    return n <= CPU_FFT_MAX_LANES && (is_smooth(n) || (is_prime(n) && is_smooth(n - 1)));
}

// The shortest length of at least `least` that is 2^k times 1, 3, 5 or 9, which divides
// well into two factors.
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

// --- costs -------------------------------------------------------------------------------
//
// Approximate cycles for a vector of complex numbers whose parts are 16 floats.

#define COST_TRANSPOSE 9
#define COST_FACTOR 4
#define COST_ROOM (1.0 / 128) // for each vector of memory between passes of a stage
#define COST_ROW 60           // for each row that is computed in four steps
#define COST_CHIRP 180        // for a convolution with a chirp
#define CACHED_LANES 160      // longest transform in the first-level cache
#define COST_UNCACHED 1.1     // factor for longer transforms

static double cost_of_lanes(int64_t n)
{
    static const double costs[] = {[2] = 5, [3] = 7, [4] = 6, [5] = 9, [8] = 8, [16] = 12};
    double cost = 0, factor = n > CACHED_LANES ? COST_UNCACHED : 1;
    if (!is_smooth(n))
        return 2 * cost_of_lanes(n - 1) + 12 * factor;
    for (int64_t left = n, radix; left > 1; left /= radix) {
        radix = next_radix(left);
        cost += radix <= 16 && costs[radix] > 0 ? costs[radix] : 2 * (double)radix;
    }
    return cost * factor;
}

// Ratio of computed lanes to lanes in use.
static double waste_of(int64_t size, int64_t lanes)
{
    return size ? (double)((size + lanes - 1) / lanes * lanes) / (double)size : 1;
}

static double cost_of_rows(const struct cpu_fft_rows *of, int64_t lanes)
{
    return (cost_of_lanes(of->n) + 2 * COST_TRANSPOSE) * waste_of(of->rows, lanes);
}

static double cost_of_four_steps(int64_t first, int64_t second, int64_t lanes)
{
    double room = (double)(first + 2 * second) * COST_ROOM; // use of the first-level cache
    return (cost_of_lanes(first) + COST_FACTOR) * waste_of(second, lanes) +
           (cost_of_lanes(second) + COST_TRANSPOSE) * waste_of(first, lanes) + room +
           COST_ROW * (double)lanes / (double)(first * second);
}

// The first factor of the cheapest n = first * second that lanes can transform; 0: there is
// none.
static int64_t best_factor(int64_t n, int64_t lanes, double *out_cost)
{
    int64_t best = 0;
    for (int64_t first = 2; first <= CPU_FFT_MAX_LANES && first <= n / 2; first++) {
        if (n % first || !fits_lanes(first) || !fits_lanes(n / first))
            continue;
        double cost = cost_of_four_steps(first, n / first, lanes);
        if (best && cost > *out_cost)
            continue;
        *out_cost = cost;
        best = first;
    }
    return best;
}

// The largest divisor of n that is at most its square root, and short enough for lanes.
static int64_t middle_factor(int64_t n)
{
    int64_t factor = (int64_t)sqrt((double)n);
    factor = factor < CPU_FFT_MAX_LANES ? factor : CPU_FFT_MAX_LANES;
    while (n % factor)
        factor--;
    return factor;
}

static enum cpu_fft_kind kind_of_lanes(int64_t n)
{
    return is_smooth(n) ? CPU_FFT_LANES : CPU_FFT_RADER;
}

static enum cpu_fft_kind fft_plan_kind_of(const struct cpu_fft_rows *of,
                                          int64_t *out_factor)
{
    int64_t n = of->n, lanes = fft_plan_lanes_of(of->is_f64);
    double cost = 0;
    *out_factor = best_factor(n, lanes, &cost);
    if (fits_lanes(n)) {
        double rows = cost_of_rows(of, lanes);
        bool is_best = *out_factor == 0 || rows <= cost;
        if (is_best && (is_smooth(n) || rows <= COST_CHIRP))
            return kind_of_lanes(n);
    }
    if (*out_factor)
        return CPU_FFT_FOUR_STEP;
    *out_factor = is_smooth(n) ? middle_factor(n) : 0;
    return *out_factor ? CPU_FFT_FOUR_STEP : CPU_FFT_BLUESTEIN;
}

// --- plans -------------------------------------------------------------------------------

struct planner {
    struct room room;
    bool is_f64;
    cpu_fft_fn *run;
    void *scratch;
};

static const struct cpu_fft *fft_plan_build(struct planner *planner, int64_t n,
                                            int64_t rows, uint64_t *out_scratch);

static void fill_pass(const struct planner *planner, struct cpu_fft_pass *pass, int64_t n,
                      void *twiddles, void *roots)
{
    bool is_f64 = planner->is_f64;
    for (int64_t p = 0; p < pass->groups; p++)
        for (int64_t j = 1; j < pass->radix; j++)
            set_root(twiddles, p * (pass->radix - 1) + j - 1, fft_plan_root_of(p * j, n),
                     is_f64);
    for (int64_t j = 0; roots && j < pass->radix; j++)
        set_root(roots, j, fft_plan_root_of(j, pass->radix), is_f64);
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
        void *twiddles =
            fft_plan_take(&planner->room, (uint64_t)(pass.groups * (radix - 1)) * size);
        void *roots =
            radix > 5 ? fft_plan_take(&planner->room, (uint64_t)radix * size) : NULL;
        if (!plan)
            continue;
        fill_pass(planner, &pass, left, twiddles, roots);
        plan->passes[count] = pass;
    }
    if (plan)
        plan->num_passes = count;
}

static uint64_t fft_plan_largest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// Bytes of scratch memory of a transform of n in lanes: three arrays of n vectors of real
// and n of imaginary parts.
static uint64_t lanes_scratch(int64_t n)
{
    return (uint64_t)n * 6 * CPU_FFT_LANE_BYTES;
}

static int64_t count_blocks(int64_t size, int64_t lanes)
{
    return (size + lanes - 1) / lanes;
}

static void fill_bases(const struct planner *planner, const struct cpu_fft *plan,
                       void *steps, void *bases)
{
    int64_t lanes = fft_plan_lanes_of(planner->is_f64), rows = plan->first->n;
    int64_t columns = plan->second->n;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t lane = 0; lane < lanes; lane++) {
            struct root root = fft_plan_root_of(r * lane, plan->n);
            fft_plan_set_number(steps, 2 * r * lanes + lane, root.re, planner->is_f64);
            fft_plan_set_number(steps, (2 * r + 1) * lanes + lane, root.im,
                                planner->is_f64);
        }
    for (int64_t block = 0; block < count_blocks(columns, lanes); block++) {
        bool is_last = (block + 1) * lanes > columns && columns >= lanes;
        int64_t column = is_last ? columns - lanes : block * lanes;
        for (int64_t r = 0; r < rows; r++)
            set_root(bases, block * rows + r, fft_plan_root_of(r * column, plan->n),
                     planner->is_f64);
    }
}

static void fill_steps(const struct planner *planner, const struct cpu_fft *plan,
                       void *steps)
{
    int64_t columns = plan->second->n;
    for (int64_t at = 0; at < plan->n; at++) {
        struct root root = fft_plan_root_of(at / columns * (at % columns), plan->n);
        fft_plan_set_number(steps, at, root.re, planner->is_f64);
        fft_plan_set_number(steps, plan->n + at, root.im, planner->is_f64);
    }
}

// Bytes of scratch memory between the two stages: tiles, with room for reads behind the
// last rows; or a plain row, if the row stage is not computed in lanes.
static uint64_t between_bytes(int64_t first, int64_t second, bool is_f64)
{
    int64_t lanes = fft_plan_lanes_of(is_f64);
    int64_t columns = fits_lanes(second) ? count_blocks(second, lanes) * lanes : second;
    uint64_t bytes = (uint64_t)(columns * first) * complex_bytes(is_f64);
    return fft_plan_aligned(bytes) + (uint64_t)(2 * lanes) * CPU_FFT_LANE_BYTES;
}

static void fft_plan_build_four_step(struct planner *planner, struct cpu_fft *plan,
                                     int64_t n, int64_t factor, uint64_t *out_scratch)
{
    int64_t other = n / factor, lanes = fft_plan_lanes_of(planner->is_f64);
    uint64_t size = complex_bytes(planner->is_f64), scratch[2], between;
    const struct cpu_fft *first = fft_plan_build(planner, factor, LANE_ROWS, &scratch[0]);
    const struct cpu_fft *second =
        fft_plan_build(planner, other, fits_lanes(other) ? LANE_ROWS : 1, &scratch[1]);
    bool is_long = n > LONGEST_TABLE;
    uint64_t blocks = (uint64_t)count_blocks(other, lanes);
    // Where there are fewer columns than lanes, reads go up to a vector beyond the table.
    void *steps =
        fft_plan_take(&planner->room, is_long ? 2 * CPU_FFT_LANE_BYTES * (uint64_t)factor
                                              : (uint64_t)n * size + CPU_FFT_LANE_BYTES);
    void *bases =
        is_long ? fft_plan_take(&planner->room, blocks * (uint64_t)factor * size) : NULL;
    // The second factor also needs vectors for groups of rows, or rows that are not
    // computed in lanes.
    scratch[1] += fits_lanes(other) ? (uint64_t)(2 * lanes) * CPU_FFT_LANE_BYTES
                                    : (uint64_t)(lanes * other) * size;
    between = between_bytes(factor, other, planner->is_f64);
    *out_scratch = between + fft_plan_largest(scratch[0], scratch[1]);
    if (!plan)
        return;
    plan->first = first;
    plan->second = second;
    plan->steps = steps;
    plan->bases = bases;
    plan->between = between;
    if (is_long)
        fill_bases(planner, plan, steps, bases);
    else
        fill_steps(planner, plan, steps);
}

// Transforms the factors of a convolution in place, and divides them by its length.
static void transform_spectrum(const struct planner *planner, const struct cpu_fft *plan,
                               void *spectrum)
{
    const struct cpu_fft_call call = {.plan = plan->convolution,
                                      .in = spectrum,
                                      .out = spectrum,
                                      .rows = 1,
                                      .scale = 1.0 / (double)plan->convolution->n,
                                      .scratch = planner->scratch};
    planner->run(&call);
}

// Fills the spectrum of the chirp's conjugate, which wraps around the convolution's end.
static void fill_spectrum(const struct planner *planner, const struct cpu_fft *plan,
                          void *spectrum)
{
    int64_t m = plan->convolution->n;
    bool is_f64 = planner->is_f64;
    memset(spectrum, 0, (uint64_t)m * complex_bytes(is_f64));
    for (int64_t j = 0; j < plan->n; j++) {
        struct root root = fft_plan_root_of(j * j % (2 * plan->n), 2 * plan->n);
        root.im = -root.im;
        set_root(spectrum, j, root, is_f64);
        if (j > 0)
            set_root(spectrum, m - j, root, is_f64);
    }
    transform_spectrum(planner, plan, spectrum);
}

static void build_chirp(struct planner *planner, struct cpu_fft *plan, int64_t n,
                        uint64_t *out_scratch)
{
    int64_t m = convolution_length(2 * n - 1);
    uint64_t size = complex_bytes(planner->is_f64), scratch;
    const struct cpu_fft *convolution = fft_plan_build(planner, m, 1, &scratch);
    void *chirp = fft_plan_take(&planner->room, (uint64_t)n * size);
    void *spectrum = fft_plan_take(&planner->room, (uint64_t)m * size);
    *out_scratch = (uint64_t)m * size + CPU_FFT_ALIGNMENT + scratch;
    if (!plan)
        return;
    for (int64_t j = 0; j < n; j++)
        set_root(chirp, j, fft_plan_root_of(j * j % (2 * n), 2 * n), planner->is_f64);
    plan->convolution = convolution;
    plan->chirp = chirp;
    fill_spectrum(planner, plan, spectrum);
    plan->spectrum = spectrum;
}

// Fills the tables of a prime for lanes: the spectrum of exp(-2 pi i g^-q / n), divided by
// n - 1, and the positions g^q and g^-q, where g = generator_of(n).
static void fill_prime(const struct planner *planner, const struct cpu_fft *plan,
                       void *spectrum, int32_t *order)
{
    int64_t n = plan->n, m = n - 1, g = generator_of(n), at = 1;
    for (int64_t q = 0; q < m; q++, at = at * g % n) {
        order[q] = (int32_t)at;
        order[m + (m - q) % m] = (int32_t)at;
        set_root(spectrum, (m - q) % m, fft_plan_root_of(at, n), planner->is_f64);
    }
    transform_spectrum(planner, plan, spectrum);
}

static void build_prime(struct planner *planner, struct cpu_fft *plan, int64_t n,
                        uint64_t *out_scratch)
{
    uint64_t size = complex_bytes(planner->is_f64), scratch;
    const struct cpu_fft *convolution = fft_plan_build(planner, n - 1, LANE_ROWS, &scratch);
    void *spectrum = fft_plan_take(&planner->room, (uint64_t)(n - 1) * size);
    int32_t *order = fft_plan_take(&planner->room, (uint64_t)(n - 1) * 2 * sizeof(*order));
    *out_scratch = lanes_scratch(n);
    if (!plan)
        return;
    plan->convolution = convolution;
    plan->order = order;
    fill_prime(planner, plan, spectrum, order);
    plan->spectrum = spectrum;
}

static const struct cpu_fft *fft_plan_build(struct planner *planner, int64_t n,
                                            int64_t rows, uint64_t *out_scratch)
{
    struct cpu_fft *plan = fft_plan_take(&planner->room, sizeof(*plan));
    int64_t factor;
    enum cpu_fft_kind kind =
        rows == LANE_ROWS
            ? kind_of_lanes(n)
            : fft_plan_kind_of(&(struct cpu_fft_rows){n, rows, planner->is_f64}, &factor);
    if (plan)
        *plan = (struct cpu_fft){.n = n, .kind = kind, .is_f64 = planner->is_f64};
    switch (kind) {
    case CPU_FFT_BLUESTEIN:
        build_chirp(planner, plan, n, out_scratch);
        break;
    case CPU_FFT_RADER:
        build_prime(planner, plan, n, out_scratch);
        break;
    case CPU_FFT_FOUR_STEP:
        fft_plan_build_four_step(planner, plan, n, factor, out_scratch);
        break;
    default:
        build_lanes(planner, plan, n);
        *out_scratch = lanes_scratch(n);
    }
    if (plan)
        plan->scratch = *out_scratch;
    return plan;
}

struct cpu_fft_size cpu_fft_measure(const struct cpu_fft_rows *of)
{
    struct planner planner = {.is_f64 = of->is_f64};
    struct cpu_fft_size size = {0};
    int64_t factor;
    (void)fft_plan_build(&planner, of->n, of->rows, &size.scratch);
    size.plan = planner.room.used;
    if (fft_plan_kind_of(of, &factor) != CPU_FFT_FOUR_STEP)
        return size;
    size.between = between_bytes(factor, of->n / factor, of->is_f64);
    size.stage = size.scratch - size.between;
    return size;
}

const struct cpu_fft *cpu_fft_plan(void *memory, const struct cpu_fft_rows *of,
                                   cpu_fft_fn *run, void *scratch)
{
    struct planner planner = {{memory, 0}, of->is_f64, run, scratch};
    uint64_t size;
    return fft_plan_build(&planner, of->n, of->rows, &size);
}

void cpu_fft_unpack_factors(void *factors, int64_t half, bool is_f64)
{
    for (int64_t k = 0; k <= half / 2; k++) {
        struct root root = fft_plan_root_of(k, 2 * half);
        set_root(factors, k, (struct root){-root.im, root.re}, is_f64);
    }
}
