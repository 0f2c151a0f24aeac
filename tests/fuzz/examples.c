// SPDX-License-Identifier: MIT
// Examples that authors give `tenon check`: what is read are values of their kinds.
#include "fuzz.h"
#include "pack/sample.h"

struct attrs {
    int64_t flag, count, dtype, mode;
    double alpha;
    tn_ints axes;
    uint64_t bits;
};
static const char *const modes[] = {"none", "left", "right", NULL};
static const tn_attr_field fields[] = {
    TN_BOOL_FIELD(struct attrs, flag, 0, ""),
    TN_I64_FIELD(struct attrs, count, 3, ""),
    TN_DTYPE_FIELD(struct attrs, dtype, TN_DTYPE_NONE, ""),
    TN_CHOICE_FIELD(struct attrs, mode, 1, modes, ""),
    TN_F64_FIELD(struct attrs, alpha, 1.0, ""),
    TN_INTS_FIELD(struct attrs, axes, ""),
    TN_BITS_FIELD(struct attrs, bits, 0, ""),
};
static const tn_primitive primitive = {
    .id = "acme.fft/1", .num_inputs = 2, .attrs = TN_ATTR_TABLE(struct attrs, fields)};

static void check_sample(const struct sample *s)
{
    const struct attrs *attrs = (const void *)s->attrs;
    FUZZ_CHECK(s->num_inputs >= 2 && s->num_inputs <= MAX_IN, "%u inputs", s->num_inputs);
    for (uint32_t i = 0; i < s->num_inputs; i++)
        FUZZ_CHECK(s->types[i].dtype < TN_NUM_DTYPES && s->types[i].rank >= 0 &&
                       s->types[i].rank <= TN_MAX_RANK,
                   "type of input %u", i);
    FUZZ_CHECK(attrs->flag == 0 || attrs->flag == 1, "flag");
    FUZZ_CHECK(attrs->dtype >= 0 && attrs->dtype < TN_NUM_DTYPES, "dtype");
    FUZZ_CHECK(attrs->mode >= 0 && attrs->mode < 3, "mode");
    FUZZ_CHECK(attrs->axes.count <= TN_MAX_RANK, "axes");
    FUZZ_CHECK(sample_text(s)[0], "a text");
}

void fuzz_one(const uint8_t *data, size_t size)
{
    static struct sample samples[MAX_SAMPLES];
    struct kit kit = {
        .examples = fuzz_path(data, size), .check = "fuzz", .outcome = "pass"};
    struct sampling how;
    uint32_t count = examples_read(&kit, &primitive, samples, MAX_SAMPLES, &how);
    FUZZ_CHECK(count <= MAX_SAMPLES, "%u samples", count);
    for (uint32_t i = 0; i < count; i++)
        check_sample(&samples[i]);
}
