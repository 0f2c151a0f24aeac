// SPDX-License-Identifier: MIT
#include "metadata.h"

#include <string.h>

#define TEXT(text)                                                                         \
    {                                                                                      \
        text, sizeof(text) - 1                                                             \
    }

// Ends of ranges, an embedded zero byte, empty texts and lists.
static const tn_text word[] = {TEXT("a model")}, quoted[] = {TEXT("\"1\"\n{}\t\\")},
                     split[] = {TEXT("a\0b")}, nothing[] = {TEXT("")},
                     words[] = {TEXT("zwölf"), TEXT(""), TEXT("<|end|>")};
static const int64_t zero[] = {0}, one[] = {-1}, least[] = {INT64_MIN},
                     most[] = {INT64_MAX}, middle[] = {4294967295},
                     integers[] = {-129, 3, 70000}, long_integers[] = {0, 1099511627776};
static const uint64_t large[] = {UINT64_MAX}, larges[] = {1, UINT64_MAX};
static const double half[] = {0.5}, tenth[] = {0.1}, huge[] = {-1e300},
                    numbers[] = {1e-5, 0, -0.25};
static const uint8_t yes[] = {1}, no[] = {0}, answers[] = {1, 0, 1};

#define ONE(key, values, kind)                                                             \
    {                                                                                      \
        key, values, 1, kind, 0                                                            \
    }
#define MANY(key, values, kind)                                                            \
    {                                                                                      \
        key, values, sizeof(values) / sizeof((values)[0]), kind, TN_METADATA_LIST          \
    }
#define NONE(key, kind)                                                                    \
    {                                                                                      \
        key, NULL, 0, kind, TN_METADATA_LIST                                               \
    }

const tn_metadata metadata_samples[] = {
    ONE("general.name", word, TN_METADATA_TEXT),
    ONE("text.quoted", quoted, TN_METADATA_TEXT),
    ONE("text.zero", split, TN_METADATA_TEXT),
    ONE("text.empty", nothing, TN_METADATA_TEXT),
    ONE("integer.zero", zero, TN_METADATA_INTEGER),
    ONE("integer.negative", one, TN_METADATA_INTEGER),
    ONE("integer.middle", middle, TN_METADATA_INTEGER),
    ONE("integer.least", least, TN_METADATA_INTEGER),
    ONE("integer.most", most, TN_METADATA_INTEGER),
    ONE("unsigned.large", large, TN_METADATA_UNSIGNED),
    ONE("float.half", half, TN_METADATA_FLOAT),
    ONE("float.tenth", tenth, TN_METADATA_FLOAT),
    ONE("float.huge", huge, TN_METADATA_FLOAT),
    ONE("bool.yes", yes, TN_METADATA_BOOL),
    ONE("bool.no", no, TN_METADATA_BOOL),
    MANY("texts", words, TN_METADATA_TEXT),
    MANY("integers", integers, TN_METADATA_INTEGER),
    MANY("integers.long", long_integers, TN_METADATA_INTEGER),
    MANY("integers.one", one, TN_METADATA_INTEGER),
    MANY("unsigneds", larges, TN_METADATA_UNSIGNED),
    MANY("floats", numbers, TN_METADATA_FLOAT),
    MANY("bools", answers, TN_METADATA_BOOL),
    NONE("texts.none", TN_METADATA_TEXT),
    NONE("integers.none", TN_METADATA_INTEGER),
    NONE("floats.none", TN_METADATA_FLOAT),
};
const uint64_t num_metadata_samples =
    sizeof(metadata_samples) / sizeof(metadata_samples[0]);

void metadata_draw(struct kit *k, tn_format_content *content)
{
    uint64_t begin = random_below(k, num_metadata_samples + 1);
    content->metadata = metadata_samples + begin;
    content->num_metadata = random_below(k, num_metadata_samples - begin + 1);
    content->metadata_size = sizeof(metadata_samples[0]);
}

static tn_metadata_list format_metadata_listed(const tn_format_content *got)
{
    tn_metadata_list list = {.struct_size = sizeof(list)};
    if (TN_HAS(got, metadata_size)) {
        list.entry_size = got->metadata_size;
        list.entries = got->metadata;
        list.count = got->num_metadata;
    }
    return list;
}

static bool texts_same(const tn_text *a, const tn_text *b, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (a[i].size != b[i].size || memcmp(a[i].data, b[i].data, a[i].size) != 0 ||
            b[i].data[b[i].size] != 0)
            return false;
    return true;
}

static bool values_same(const tn_metadata *want, const tn_metadata *got)
{
    if (want->kind != got->kind || want->flags != got->flags || want->count != got->count)
        return false;
    if (want->kind == TN_METADATA_TEXT)
        return texts_same(want->data, got->data, want->count);
    uint64_t size = want->kind == TN_METADATA_BOOL ? 1 : 8;
    return !want->count || memcmp(want->data, got->data, want->count * size) == 0;
}

void metadata_expect(struct kit *k, const tn_format_content *got, const tn_metadata *want)
{
    const tn_metadata_list list = format_metadata_listed(got);
    const tn_metadata *pair = tn_metadata_find(&list, want->key);
    if (!pair)
        check_fail(k, "metadata '%s' were written, and are not listed", want->key);
    else if (!values_same(want, pair))
        check_fail(
            k,
            "metadata '%s' were written as %llu of kind %u, and are listed as %llu of "
            "kind %u, or with other values",
            want->key, (unsigned long long)want->count, want->kind,
            (unsigned long long)pair->count, pair->kind);
}

static void text_expect_valid(struct kit *k, const tn_metadata *pair)
{
    const tn_text *texts = pair->data;
    for (uint64_t i = 0; i < pair->count; i++)
        if (!texts[i].data || texts[i].data[texts[i].size] != 0) {
            check_fail(k, "metadata '%.80s': text %llu has no zero byte behind it",
                       pair->key, (unsigned long long)i);
            return;
        }
}

void metadata_expect_valid(struct kit *k, const tn_format_content *got)
{
    const tn_metadata_list list = format_metadata_listed(got);
    for (uint64_t i = 0; i < list.count && !check_failed(k); i++) {
        const tn_metadata *pair = tn_metadata_at(&list, i);
        bool is_list = pair->flags & TN_METADATA_LIST;
        if (!pair->key || !pair->kind || pair->flags & ~(uint32_t)TN_METADATA_LIST)
            check_fail(k, "metadata %llu have no key or kind", (unsigned long long)i);
        else if ((!is_list && pair->count != 1) || (pair->count && !pair->data) ||
                 (uintptr_t)pair->data % 8 != 0)
            check_fail(k, "metadata '%.80s' of %llu values have none, or not aligned ones",
                       pair->key, (unsigned long long)pair->count);
        else if (tn_metadata_find(&list, pair->key) != pair)
            check_fail(k, "metadata have the key '%.80s' twice", pair->key);
        else if (pair->kind == TN_METADATA_TEXT)
            text_expect_valid(k, pair);
    }
}

const tn_text *metadata_listed_text(const tn_format_content *got, const char *key)
{
    const tn_metadata_list list = format_metadata_listed(got);
    const tn_metadata *pair = tn_metadata_find(&list, key);
    bool is_text = pair && pair->kind == TN_METADATA_TEXT && pair->flags == 0;
    return is_text ? pair->data : NULL;
}
