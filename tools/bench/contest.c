// SPDX-License-Identifier: MIT
// Runs contestants in rounds, computes medians, and prints results.
#include "bench.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int contest_by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_of(const double *values, int count)
{
    double sorted[MAX_ROUNDS];
    memcpy(sorted, values, (size_t)count * sizeof(*values));
    qsort(sorted, (size_t)count, sizeof(*sorted), contest_by_value);
    // A failed run is negative and sorts first: one failed run fails the whole.
    return sorted[0] < 0 ? -1 : sorted[count / 2];
}

void contest(struct contestant *list, size_t count, int rounds, uint64_t times)
{
    rounds = rounds < MAX_ROUNDS ? rounds : MAX_ROUNDS;
    for (int round = -1; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            uint64_t calls = list[i].times ? list[i].times : times;
            double seconds = list[i].run(&list[i], calls);
            if (round >= 0)
                list[i].seconds[round] = seconds < 0 ? -1 : seconds / (double)calls;
        }
    }
    for (size_t i = 0; i < count; i++)
        list[i].median = median_of(list[i].seconds, rounds);
}

uint64_t bench_times(struct contestant *c, double least)
{
    uint64_t times = 1;
    double seconds = c->run(c, times);
    while (seconds >= 0 && seconds < least && times < 1 << 20)
        seconds = c->run(c, times *= 2);
    return times;
}

double bench_least(const struct contestant *c, int rounds)
{
    double least = c->seconds[0];
    for (int i = 1; i < rounds; i++)
        least = c->seconds[i] < least ? c->seconds[i] : least;
    return least;
}

tn_array *bench_values(tn_scope *s, const tn_type *type, int below)
{
    tn_shape shape = {.rank = type->rank};
    uint64_t count = 1;
    uint32_t random = 1;
    for (int32_t i = 0; i < type->rank; i++)
        count *= (uint64_t)(shape.extent[i] = type->extent[i]);
    float *numbers = malloc(count * sizeof(*numbers) + 1);
    if (!numbers)
        return NULL;
    for (uint64_t i = 0; i < count; i++) {
        random = (uint32_t)((uint64_t)random * 48271 % 0x7fffffff);
        float unit = (float)(random >> 8) / (float)(1 << 23);
        numbers[i] = below ? (float)(int)(unit * (float)below) : unit;
    }
    tn_array *x = tn_from_data(s, TN_F32, &shape, numbers);
    free(numbers);
    if (type->dtype != TN_F32)
        x = tn_op(s, "base.astype/1", TN_IN(x), tn_attrs("dtype", (int64_t)type->dtype));
    return tn_keep(s, x);
}

void title(const struct bench *bench, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputc('\n', bench->out);
    vfprintf(bench->out, format, args);
    fputc('\n', bench->out);
    va_end(args);
}

// The unit of a line: that of its median.
struct contest_unit {
    double above, factor;
    const char *name;
};

static const struct contest_unit *contest_unit_of(const struct contestant *c)
{
    static const struct contest_unit units[] = {
        {1, 1, "s"}, {1e-3, 1e3, "ms"}, {1e-6, 1e6, "us"}, {0, 1e9, "ns"}};
    const struct contest_unit *unit = units;
    while (c->median < unit->above)
        unit++;
    return unit;
}

void report(const struct bench *bench, const struct contestant *c, const char *format, ...)
{
    va_list args;
    if (c->median < 0) {
        fprintf(bench->out, "  %-36s failed\n", c->name);
        return;
    }
    const struct contest_unit *unit = contest_unit_of(c);
    fprintf(bench->out, "  %-36s %9.3f %-2s  ", c->name, c->median * unit->factor,
            unit->name);
    va_start(args, format);
    vfprintf(bench->out, format, args);
    va_end(args);
    fputc('\n', bench->out);
    fflush(bench->out);
}

void report_least(const struct bench *bench, const struct contestant *c)
{
    if (c->median < 0) {
        report(bench, c, "%s", "");
        return;
    }
    const struct contest_unit *unit = contest_unit_of(c);
    report(bench, c, "least %.3f %s", bench_least(c, bench->rounds) * unit->factor,
           unit->name);
}

double failed_run(const tn_scope *scope)
{
    const char *text =
        scope && tn_scope_status(scope) ? tn_scope_error(scope) : tn_last_error();
    fprintf(stderr, "tenon-bench: %s\n", text);
    return -1;
}
