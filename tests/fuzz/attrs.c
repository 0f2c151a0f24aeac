// SPDX-License-Identifier: MIT
// Attributes as text and as bytes: what is read is written, and read again as the same. The
// first byte says which of the two the rest is.
#include "fuzz.h"
#include "primitive/attrs.h"

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

static void same(const struct sample *a, const struct sample *b)
{
    struct hash h = hash_start(0);
    FUZZ_CHECK(attrs_equal(&table, a, b), "equal");
    FUZZ_CHECK(hash_equal(attrs_hash(h, &table, a), attrs_hash(h, &table, b)),
               "equal attributes have one hash");
}

static void as_text(const struct sample *sample, bool all)
{
    struct sample again;
    char *text = attrs_print(&table, sample, all);
    FUZZ_CHECK(text && attrs_parse(&table, text, &again) == TN_OK, "'%s': %s", text,
               fail_text());
    same(sample, &again);
    mem_free(text);
}

static void as_bytes(const struct sample *sample)
{
    struct sample again;
    void *bytes = NULL;
    size_t size = 0;
    FUZZ_CHECK(attrs_serialise(&table, sample, &bytes, &size) == TN_OK &&
                   attrs_deserialise(&table, bytes, size, &again) == TN_OK,
               "%s", fail_text());
    same(sample, &again);
    mem_free(bytes);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    struct sample sample;
    if (!size)
        return;
    char *text = fuzz_text(data + 1, size - 1);
    fail_clear();
    tn_status status = data[0] & 1 ? attrs_deserialise(&table, data + 1, size - 1, &sample)
                                   : attrs_parse(&table, text, &sample);
    FUZZ_CHECK(status == TN_OK || fail_text()[0], "a failure has a text");
    if (status == TN_OK) {
        as_text(&sample, false);
        as_text(&sample, true);
        as_bytes(&sample);
    }
    free(text);
}
