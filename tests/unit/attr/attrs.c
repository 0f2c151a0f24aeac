// SPDX-License-Identifier: MIT
// What is derived from tables of attributes.
#include "check.h"
#include <inttypes.h>
#include <math.h>
#include "base/dtype.h"
#include "base/fail.h"
#include "base/memory.h"
#include <tenon/tenon.h>
#include "attr/attrs.h"
#include "attr_text.h"

struct sample {
    int64_t flag, count;
    double alpha;
    int64_t dtype, mode;
    tn_ints axes;
    uint64_t bits;
    const char *text;
    const tn_int_list *ints;
    const tn_float_list *floats;
    int64_t gap; // in no field: as good as padding
};

#define TIMES_4(text) text text text text
#define LONG_NAME TIMES_4(TIMES_4(TIMES_4("long")))
static const char *const modes[] = {"none", "left", "right", LONG_NAME, NULL};
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

struct needed {
    double x;
};
static const tn_attr_field needed_fields[] = {
    TN_REQUIRED_FIELD(struct needed, x, TN_ATTR_F64, "must be given")};
static const tn_attr_table needed_table = TN_ATTR_TABLE(struct needed, needed_fields);

// The values of all tests of this program, which end when it does.
static struct intern_refs *refs(void)
{
    static struct intern_refs refs;
    if (!refs.set)
        check_status(intern_set_create(&refs.set), TN_OK);
    return &refs;
}

static struct sample parse(const char *text)
{
    struct sample sample;
    memset(&sample, 0xa5, sizeof(sample)); // all of it must be written
    check_status(fill_from_text(refs(), &table, text, &sample), TN_OK);
    return sample;
}

Test(attrs, texts_parse_to_values)
{
    struct sample s = parse("flag=true, count=-1,alpha = 4 ,dtype=f32, mode=right, "
                            "axes=[0, -1], bits=0xff");
    cr_assert(eq(i64, s.flag, 1));
    cr_assert(eq(i64, s.count, -1));
    cr_assert(s.alpha == 4);
    cr_assert(eq(i64, s.dtype, TN_F32));
    cr_assert(eq(i64, s.mode, 2));
    cr_assert(eq(uint, s.axes.count, 2));
    cr_assert(eq(i64, s.axes.value[1], -1));
    cr_assert(eq(u64, s.bits, 255));
    s = parse("");
    cr_assert(eq(i64, s.count, 3));
    cr_assert(eq(uint, s.axes.given, 0));
    cr_assert(eq(uint, parse("axes=(2,3)").axes.count, 2));
    cr_assert(eq(uint, parse("axes=(2,)").axes.count, 1));
    cr_assert(eq(i64, parse("axes=7").axes.value[0], 7));
    cr_assert(eq(uint, parse("axes=[]").axes.given, 1));
    cr_assert(eq(uint, parse("axes=none").axes.given, 0));
    cr_assert(eq(i64, parse("dtype=float64").dtype, TN_F64));
    cr_assert(eq(i64, parse("count=-9223372036854775808").count, INT64_MIN));
}

static void check_same(const struct sample *a, const struct sample *b)
{
    cr_assert(hash_equal(attrs_hash(hash_start(0), &table, a),
                         attrs_hash(hash_start(0), &table, b)));
}

Test(attrs, what_is_printed_parses_to_the_same)
{
    static const char *const texts[] = {
        "",
        "flag=true",
        "count=-9223372036854775808, alpha=0.1",
        "alpha=-inf, dtype=bf16",
        "alpha=nan",
        "alpha=1e-300, mode=none, axes=[]",
        "axes=[1, -2, 3], bits=0xffffffffffffffff",
        "mode=" LONG_NAME,
        "text=\"\"",
        "text=\"ij,jk->ik\", ints=[]",
        "text=\"a \\\"b\\\", \\\\ [\\n\\x01\\x7f \303\251\"",
        "ints=[1, 2, 3, 4, 5, 6, 7, 8, 9, -9223372036854775808], floats=[]",
        "floats=[0.1, nan, -inf, 1e+300, -0]",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct sample first = parse(texts[i]);
        char *text = attrs_print(&table, &first, false);
        cr_assert(eq(str, text, texts[i]));
        struct sample again = parse(text);
        check_same(&first, &again);
        mem_free(text);
        text = attrs_print(&table, &first, true);
        again = parse(text);
        check_same(&first, &again);
        mem_free(text);
    }
    struct sample defaults = parse("");
    char *all = attrs_print(&table, &defaults, true);
    cr_assert(eq(str, all,
                 "flag=false, count=3, alpha=1, dtype=none, mode=left, "
                 "axes=none, bits=0x0, text=none, ints=none, floats=none"));
    mem_free(all);
}

Test(attrs, hashes_see_content_only)
{
    struct sample a = parse("axes=[1]"), b = a;
    b.gap = 12345;
    b.axes.value[5] = 99; // beyond the count
    cr_assert(hash_equal(attrs_hash(hash_start(0), &table, &a),
                         attrs_hash(hash_start(0), &table, &b)));
    a.alpha = (double)NAN;
    b.alpha = -(double)NAN;
    cr_assert(hash_equal(attrs_hash(hash_start(0), &table, &a),
                         attrs_hash(hash_start(0), &table, &b)));
    struct sample c = parse("axes=[]"), d = parse("");
    cr_assert(not(hash_equal(attrs_hash(hash_start(0), &table, &c),
                             attrs_hash(hash_start(0), &table, &d))));
    c = parse("count=1"), d = parse("bits=1");
    cr_assert(not(hash_equal(attrs_hash(hash_start(0), &table, &c),
                             attrs_hash(hash_start(0), &table, &d))));
}

Test(attrs, given_values_convert_where_nothing_is_lost)
{
    struct sample s;
    const tn_ints axes = {.count = 1, .given = 1, .value = {2}};
    check_status(
        attrs_fill(refs(), &table, tn_attrs("alpha", 4, "count", 7.0, "axes", 1), &s, NULL),
        TN_OK);
    cr_assert(s.alpha == 4 && s.count == 7);
    cr_assert(eq(uint, s.axes.count, 1));
    check_status(
        attrs_fill(refs(), &table, tn_attrs("axes", &axes, "mode", "none"), &s, NULL),
        TN_OK);
    cr_assert(eq(i64, s.axes.value[0], 2));
    cr_assert(eq(i64, s.mode, 0));
}

static void expect_error(tn_status status, const char *part)
{
    check_status(status, TN_ERR_ARGUMENT);
    check_says(fail_text(), part);
}

Test(attrs, errors_name_the_field_what_was_got_and_expected)
{
    struct sample s;
    struct needed n;
    const int64_t big = INT64_MAX;
    expect_error(fill_from_text(refs(), &table, "alhpa=1", &s),
                 "'alhpa', did you mean 'alpha'?");
    expect_error(fill_from_text(refs(), &table, "count=1.5", &s),
                 "'count': got '1.5', expected an int");
    expect_error(fill_from_text(refs(), &table, "count=99999999999999999999", &s),
                 "expected an int");
    expect_error(fill_from_text(refs(), &table, "flag=2", &s), "expected true or false");
    expect_error(fill_from_text(refs(), &table, "dtype=f31", &s), "expected a dtype");
    expect_error(fill_from_text(refs(), &table, "mode=up", &s),
                 "expected one of 'none', 'left', 'right'");
    expect_error(fill_from_text(refs(), &table, "axes=[1,2", &s),
                 "got '[1,2', expected at most 8");
    expect_error(fill_from_text(refs(), &table, "axes=[1,2,3,4,5,6,7,8,9]", &s),
                 "at most 8 integers");
    expect_error(fill_from_text(refs(), &table, "alpha", &s), "'alpha': the text is NULL");
    expect_error(fill_from_text(refs(), &table, "alpha=", &s), "expected a number");
    expect_error(fill_from_text(refs(), &table, "alpha=1, alpha=2", &s),
                 "'alpha' is given twice");
    expect_error(fill_from_text(refs(), &needed_table, "", &n),
                 "'x' is missing, expected a number");
    expect_error(attrs_fill(refs(), &table, tn_attrs("count", 1.5), &s, NULL),
                 "got 1.5, expected an int");
    expect_error(attrs_fill(refs(), &table, tn_attrs("dtype", 77), &s, NULL),
                 "got 77, expected a dtype");
    expect_error(attrs_fill(refs(), &table, tn_attrs("alpha", big), &s, NULL), "not exact");
    expect_error(attrs_fill(refs(), &table, tn_attrs("nothing_like_it", 1), &s, NULL),
                 "expected one of");
    expect_error(attrs_fill(refs(), &table, tn_attrs("flag", TN_INTS(1)), &s, NULL),
                 "got a list");
    expect_error(attrs_fill(refs(), &needed_table, TN_NO_ATTRS, &n, NULL),
                 "'x' is missing");
}

Test(attrs, texts_and_lists_are_interned)
{
    struct sample a = parse("text=\"ij\", ints=[1, 2], floats=[nan, 1]"), b;
    const int64_t ints[] = {1, 2};
    const double floats[] = {-(double)NAN, 1};
    tn_int_list int_list = {2, ints};
    const tn_float_list float_list = {2, floats};
    char text[] = "ij";
    check_status(
        attrs_fill(refs(), &table,
                   tn_attrs("text", text, "ints", &int_list, "floats", &float_list), &b,
                   NULL),
        TN_OK);
    cr_assert(a.text == b.text && a.ints == b.ints && a.floats == b.floats);
    cr_assert(b.text != text && b.ints->value != ints);
    check_same(&a, &b);
    cr_assert(eq(u64, a.ints->count, 2));
    cr_assert(eq(i64, a.ints->value[1], 2));
    b = parse("text=\"ik\", ints=[1, 2]");
    cr_assert(a.text != b.text && a.ints == b.ints);
    struct sample empty = parse("text=\"\", ints=[], floats=[]"), none = parse("");
    cr_assert(empty.text && !*empty.text && empty.ints && empty.ints->count == 0);
    cr_assert(none.text == NULL && !none.ints && !none.floats);
    cr_assert(not(hash_equal(attrs_hash(hash_start(0), &table, &empty),
                             attrs_hash(hash_start(0), &table, &none))));
    // the same numbers as integers and as floats, and the text of a list: three values
    empty = parse("ints=[3]"), none = parse("floats=[3]");
    cr_assert(not(hash_equal(attrs_hash(hash_start(0), &table, &empty),
                             attrs_hash(hash_start(0), &table, &none))));
}

Test(attrs, lists_convert_where_nothing_is_lost)
{
    struct sample s;
    check_status(attrs_fill(refs(), &table,
                            tn_attrs("ints", TN_INTS(4, 5), "floats", TN_INT_LIST(1, 2),
                                     "axes", TN_INT_LIST(0, -1), "text", "none"),
                            &s, NULL),
                 TN_OK);
    cr_assert(eq(i64, s.ints->value[1], 5));
    cr_assert(s.floats->value[1] == 2);
    cr_assert(eq(i64, s.axes.value[1], -1));
    cr_assert(eq(str, (char *)s.text, "none"));
    check_status(
        attrs_fill(refs(), &table,
                   tn_attrs("ints", TN_FLOATS(7, 8), "floats", 0.5, "axes", TN_FLOATS(2)),
                   &s, NULL),
        TN_OK);
    cr_assert(eq(i64, s.ints->value[0], 7));
    cr_assert(s.floats->count == 1 && s.floats->value[0] == 0.5);
    cr_assert(eq(i64, s.axes.value[0], 2));
    check_status(attrs_fill(refs(), &table,
                            tn_attrs("ints", 3, "floats", (const tn_float_list *)NULL,
                                     "axes", (const tn_int_list *)NULL),
                            &s, NULL),
                 TN_OK);
    cr_assert(s.ints->count == 1 && !s.floats && !s.axes.given);
}

struct texts {
    const char *text;
    const tn_int_list *ints;
};
static const tn_attr_field texts_fields[] = {
    TN_REQUIRED_FIELD(struct texts, text, TN_ATTR_STRING, "must be given"),
    TN_REQUIRED_FIELD(struct texts, ints, TN_ATTR_INT_LIST, "must be given"),
};
static const tn_attr_table texts_table = TN_ATTR_TABLE(struct texts, texts_fields);

Test(attrs, bad_texts_and_lists_are_refused)
{
    struct sample s;
    struct texts t;
    static int64_t many[(1 << 20) + 1];
    static char large[(1 << 20) + 2];
    memset(large, 'x', sizeof(large) - 1);
    const tn_int_list nine = {9, many}, more = {(1 << 20) + 1, many}, lost = {3, NULL};
    const tn_attr not_a_text = {.name = "alpha", .kind = TN_ATTR_STRING, .text = "1"};
    const struct {
        tn_attr_list given;
        const char *part;
    } cases[] = {
        {tn_attrs("text", "a\x80z"), "'text': byte 1 of the text is 0x80, expected UTF-8"},
        {tn_attrs("text", "\xed\xa0\x80"), "byte 0 of the text is 0xed"},
        {tn_attrs("text", large), "a text of 1048577 bytes, expected at most 1048576"},
        {tn_attrs("text", 3), "'text': got 3, expected a text"},
        {tn_attrs("text", 0.5), "'text': got 0.5, expected a text"},
        {tn_attrs("text", TN_INTS(1)), "'text': got a list, expected a text"},
        {tn_attrs("text", TN_FLOATS(1)), "'text': got a list, expected a text"},
        {tn_attrs("alpha", TN_INT_LIST(1)), "'alpha': got a list, expected a number"},
        {TN_ATTR_LIST(&not_a_text, 1), "'alpha': got a text, expected a number"},
        {tn_attrs("axes", &nine), "'axes': got 9 integers, expected at most 8"},
        {tn_attrs("axes", TN_FLOATS(0.5)), "'axes': value 0 is 0.5, expected at most 8"},
        {tn_attrs("ints", &more), "got 1048577 values, expected at most 1048576"},
        {tn_attrs("ints", &lost), "'ints': 3 values, but they are NULL"},
        {tn_attrs("ints", TN_FLOATS(1, 2.5)),
         "value 1 is 2.5, expected a list of integers"},
        {tn_attrs("ints", 2.5), "value 0 is 2.5, expected a list of integers"},
        {tn_attrs("floats", TN_INT_LIST(INT64_MAX)), "which is not exact as an f64"},
        {tn_attrs("ints", "[1, 2"), "got '[1, 2', expected a list of integers"},
        {tn_attrs("ints", "[1.5]"), "got '[1.5]', expected a list of integers"},
        {tn_attrs("ints", "[99999999999999999999]"), "expected a list of integers"},
        {tn_attrs("floats", "[1, x]"), "got '[1, x]', expected a list of numbers"},
        {tn_attrs("text", "a", "text", "b"), "'text' is given twice"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        expect_error(attrs_fill(refs(), &table, cases[i].given, &s, NULL), cases[i].part);
    expect_error(attrs_fill(refs(), &texts_table, tn_attrs("ints", 1), &t, NULL),
                 "'text' is missing, expected a text");
    expect_error(attrs_fill(refs(), &texts_table,
                            tn_attrs("text", "", "ints", (const tn_int_list *)NULL), &t,
                            NULL),
                 "'ints' is missing, expected a list of integers");
}

// What nobody refers to is freed, and one value has as many owners as refer to it.
Test(attrs, values_live_as_long_as_somebody_refers_to_them)
{
    struct intern_set *set;
    struct sample s;
    check_status(intern_set_create(&set), TN_OK);
    struct intern_refs scope = {.set = set}, plan = {.set = set};
    for (int i = 0; i < 1000; i++) { // one by one: the set's table has to let go, too
        struct intern_refs one = {.set = set};
        check_status(attrs_fill(&one, &table, tn_attrs("ints", i), &s, NULL), TN_OK);
        intern_refs_release(&one);
        cr_assert(eq(uint, intern_set_count(set), 0));
    }
    check_status(attrs_fill(&scope, &table, tn_attrs("ints", 1, "text", "t"), &s, NULL),
                 TN_OK);
    check_status(attrs_fill(&scope, &table, tn_attrs("ints", 1, "text", "u"), &s, NULL),
                 TN_OK);
    cr_assert(eq(uint, intern_set_count(set), 3));
    check_status(intern_attrs(&plan, &table, &s), TN_OK);
    check_status(intern_attrs(&plan, &table, &s), TN_OK);
    intern_refs_release(&scope);
    cr_assert(eq(uint, intern_set_count(set), 2));
    cr_assert(eq(str, (char *)s.text, "u"));
    intern_refs_release(&plan);
    cr_assert(eq(uint, intern_set_count(set), 0));
    intern_set_destroy(set);
}

// A newer caller's tn_attr is longer; one that is shorter than the first release's is not
// read.
Test(attrs, items_of_other_sizes_are_read_by_the_rules)
{
    struct {
        tn_attr known;
        uint64_t unknown[3];
    } items[] = {{{.name = "count", .kind = TN_ATTR_I64, .i = 7}, {1, 2, 3}},
                 {{.name = "alpha", .kind = TN_ATTR_F64, .f = 0.5}, {4, 5, 6}}};
    struct sample s;
    tn_attr_list list = {&items[0].known, 2, sizeof(items[0]), 0};
    check_status(attrs_fill(refs(), &table, list, &s, NULL), TN_OK);
    cr_assert(s.count == 7 && s.alpha == 0.5);
    for (uint32_t size = 0; size < sizeof(tn_attr); size += 8) {
        list.item_size = size;
        expect_error(attrs_fill(refs(), &table, list, &s, NULL), "the size of a tn_attr");
    }
}
