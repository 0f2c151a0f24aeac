// SPDX-License-Identifier: MIT
// Attributes as text: what is read is printed, and read again as the same.
#include "fuzz.h"
#include "../attr_text.h"
#include "attr/fields.h"

struct sample {
    int64_t flag, count;
    double alpha;
    int64_t dtype, mode;
    tn_ints axes;
    uint64_t bits;
    const char *text;
    const tn_int_list *ints;
    const tn_float_list *floats;
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
    TN_STRING_FIELD(struct sample, text, "a text"),
    TN_INT_LIST_FIELD(struct sample, ints, "integers"),
    TN_FLOAT_LIST_FIELD(struct sample, floats, "numbers"),
};
static const tn_attr_table table = TN_ATTR_TABLE(struct sample, fields);

static void print_and_fill(struct intern_refs *refs, const struct sample *sample, bool all)
{
    struct sample again;
    struct hash h = hash_start(0);
    char *text = attrs_print(&table, sample, all);
    FUZZ_CHECK(text && fill_from_text(refs, &table, text, &again) == TN_OK, "'%s': %s",
               text, fail_text());
    FUZZ_CHECK(hash_equal(attrs_hash(h, &table, sample), attrs_hash(h, &table, &again)),
               "'%s' is read as something else", text);
    FUZZ_CHECK(sample->text == again.text && sample->ints == again.ints &&
                   sample->floats == again.floats,
               "'%s': equal values are not one", text);
    mem_free(text);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    static struct intern_set *set;
    struct intern_refs refs = {0};
    struct sample sample;
    char *text = fuzz_text(data, size);
    if (!set)
        FUZZ_CHECK(intern_set_create(&set) == TN_OK, "%s", fail_text());
    refs.set = set;
    fail_clear();
    tn_status status = fill_from_text(&refs, &table, text, &sample);
    FUZZ_CHECK(status == TN_OK || fail_text()[0], "a failure has a text");
    if (status == TN_OK) {
        print_and_fill(&refs, &sample, false);
        print_and_fill(&refs, &sample, true);
    }
    intern_refs_release(&refs);
    FUZZ_CHECK(intern_set_count(set) == 0, "a value is left");
    free(text);
}
