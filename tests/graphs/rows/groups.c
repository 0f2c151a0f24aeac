// SPDX-License-Identifier: MIT
// Group norm of channels last on the CPU beside loops over f64: samples that are one part
// and such that are cut into several, with and without weights, and an expression behind.
#include "../support/common.h"

static void open_cpu(void)
{
    runtime = open_on("cpu-blas");
}

TestSuite(groups, .init = open_cpu, .fini = teardown);

#define MOST 200000 // elements
#define MOST_CHANNELS 2049

static const struct groups_case {
    const char *what;
    int64_t samples, rows, channels, groups;
    bool weighted, clipped;
} cases[] = {
    {"small samples", 7, 5, 6, 3, true, false},
    {"no weights", 2, 33, 8, 8, false, false},
    {"parts of a sample", 2, 4500, 16, 4, true, false},
    {"parts, an expression behind", 2, 4500, 16, 2, true, true},
    {"an expression behind", 3, 50, 24, 4, false, true},
    {"fewer parts than by size", 1, 98, 2000, 4, true, false},
    {"the most channels", 1, 40, 2048, 32, true, false},
    {"more channels", 1, 3, 2049, 3, true, false},
    {"one row", 3, 1, 64, 4, true, false},
    {"no rows", 3, 0, 64, 4, true, false},
};

static float x[MOST], w[MOST_CHANNELS], b[MOST_CHANNELS], got[MOST];

static void fill(const struct groups_case *c)
{
    for (int64_t i = 0; i < c->samples * c->rows * c->channels; i++)
        x[i] = 20 + sinf((float)(i * 7919 % 10007)) * (float)(1 + i % c->channels % 5);
    for (int64_t i = 0; i < c->channels; i++) {
        w[i] = (float)(i % 7) * 0.3f - 0.7f;
        b[i] = (float)(i % 5) * 0.2f - 0.3f;
    }
}

// Element i of a group, and the channel that it is of.
static int64_t element_of(const struct groups_case *c, int64_t sample, int64_t group,
                          int64_t i, int64_t *channel)
{
    const int64_t each = c->channels / c->groups;
    *channel = group * each + i % each;
    return (sample * c->rows + i / each) * c->channels + *channel;
}

static void check_group(const struct groups_case *c, int64_t sample, int64_t group)
{
    const int64_t n = c->rows * (c->channels / c->groups);
    double mean = 0, variance = 0;
    int64_t channel;
    for (int64_t i = 0; i < n; i++)
        mean += (double)x[element_of(c, sample, group, i, &channel)] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)x[element_of(c, sample, group, i, &channel)] - mean;
        variance += d * d / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at = element_of(c, sample, group, i, &channel);
        double want = ((double)x[at] - mean) / sqrt(variance + 1e-5);
        if (c->weighted)
            want = want * (double)w[channel] + (double)b[channel];
        want = c->clipped && want < 0 ? 0 : want;
        if (!(fabs((double)got[at] - want) <= 2e-5))
            cr_fatal("%s: sample %lld, channel %lld: [%lld] is %g, not %g", c->what,
                     (long long)sample, (long long)channel, (long long)at, (double)got[at],
                     want);
    }
}

Test(groups, are_normalised_as_loops_do)
{
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        const struct groups_case *c = &cases[k];
        tn_scope *s = tn_scope_open(runtime);
        fill(c);
        tn_array *in[3] = {
            tn_from_data(s, TN_F32, TN_SHAPE(c->samples, c->rows, c->channels), x),
            tn_from_data(s, TN_F32, TN_SHAPE(c->channels), w),
            tn_from_data(s, TN_F32, TN_SHAPE(c->channels), b)};
        tn_array *y = tn_op(s, "nn.group_norm/1", (const tn_array *const *)in,
                            c->weighted ? 3 : 1, tn_attrs("groups", c->groups));
        if (c->clipped)
            y = tn_expr(s, "y -> max(y, 0)", TN_IN(y), TN_NO_ATTRS);
        must(s, tn_read(s, y, got,
                        sizeof(float) * (size_t)(c->samples * c->rows * c->channels)));
        for (int64_t i = 0; i < c->samples * c->groups; i++)
            check_group(c, i / c->groups, i % c->groups);
        tn_scope_close(s);
    }
}
