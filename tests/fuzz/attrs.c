// SPDX-License-Identifier: MIT
// Attributes as text: what is read is printed, and read again as the same.
#include "fuzz.h"
#include "../attr_text.h"
#include "attr/internal.h"

struct sample {
    int64_t flag, count;
    double alpha;
    int64_t dtype, mode;
    tn_ints axes;
    uint64_t bits;
};

static const char *const modes[] = {"none", "left", "right", NULL};
static const tn_attr_field fields[] = {
    TN_BOOL_FIELD(struct sample, flag, 0, "a flag"),
    TN_I64_FIELD(struct sample, count, 3, "a count"),
    TN_F64_FIELD(struct sample, alpha, 1.0, "a factor"),
    TN_DTYPE_FIELD(struct sample, dtype, TN_DTYPE_NONE, "a dtype"),
    TN_CHOICE_FIELD(struct sample, mode, 1, modes, "a mode"),
    TN_INTS_FIELD(struct sample, axes, "some axes"),
    TN_BITS_FIELD(struct sample, bits, 0, "raw bits"),
};
static const tn_attr_table table = TN_ATTR_TABLE(struct sample, fields);

static void print_and_fill(const struct sample *sample, bool all)
{
    struct sample again;
    struct hash h = hash_start(0);
    char *text = attrs_print(&table, sample, all);
    FUZZ_CHECK(text && fill_from_text(&table, text, &again) == TN_OK, "'%s': %s", text,
               fail_text());
    FUZZ_CHECK(hash_equal(attrs_hash(h, &table, sample), attrs_hash(h, &table, &again)),
               "'%s' is read as something else", text);
    mem_free(text);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    struct sample sample;
    char *text = fuzz_text(data, size);
    fail_clear();
    tn_status status = fill_from_text(&table, text, &sample);
    FUZZ_CHECK(status == TN_OK || fail_text()[0], "a failure has a text");
    if (status == TN_OK) {
        print_and_fill(&sample, false);
        print_and_fill(&sample, true);
    }
    free(text);
}
