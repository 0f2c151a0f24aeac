// SPDX-License-Identifier: MIT
// What is derived from tables of attributes.
#include "../check.h"
#include <inttypes.h>
#include <math.h>
#include "base/dtype.h"
#include "base/fail.h"
#include "base/memory.h"
#include "primitive/prim_set.h"

struct sample {
    int64_t flag, count;
    double alpha;
    int64_t dtype, mode;
    tn_ints axes;
    uint64_t bits;
    int64_t gap; // in no field: as good as padding
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

struct needed {
    double x;
};
static const tn_attr_field needed_fields[] = {
    TN_REQUIRED_FIELD(struct needed, x, TN_ATTR_F64, "must be given")};
static const tn_attr_table needed_table = TN_ATTR_TABLE(struct needed, needed_fields);

static struct sample parse(const char *text)
{
    struct sample sample;
    memset(&sample, 0xa5, sizeof(sample)); // all of it must be written
    assert_int_equal(attrs_parse(&table, text, &sample), TN_OK);
    return sample;
}

static void texts_parse_to_values(void **state)
{
    (void)state;
    struct sample s = parse("flag=true, count=-1,alpha = 4 ,dtype=f32, mode=right, "
                            "axes=[0, -1], bits=0xff");
    assert_int_equal(s.flag, 1);
    assert_int_equal(s.count, -1);
    assert_true(s.alpha == 4);
    assert_int_equal(s.dtype, TN_F32);
    assert_int_equal(s.mode, 2);
    assert_int_equal(s.axes.count, 2);
    assert_int_equal(s.axes.value[1], -1);
    assert_int_equal(s.bits, 255);
    s = parse("");
    assert_int_equal(s.count, 3);
    assert_int_equal(s.axes.given, 0);
    assert_int_equal(parse("axes=(2,3)").axes.count, 2);
    assert_int_equal(parse("axes=(2,)").axes.count, 1);
    assert_int_equal(parse("axes=7").axes.value[0], 7);
    assert_int_equal(parse("axes=[]").axes.given, 1);
    assert_int_equal(parse("axes=none").axes.given, 0);
    assert_int_equal(parse("dtype=float64").dtype, TN_F64);
    assert_int_equal(parse("count=-9223372036854775808").count, INT64_MIN);
}

static void what_is_printed_parses_to_the_same(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "flag=true",
        "count=-9223372036854775808, alpha=0.1",
        "alpha=-inf, dtype=bf16",
        "alpha=nan",
        "alpha=1e-300, mode=none, axes=[]",
        "axes=[1, -2, 3], bits=0xffffffffffffffff",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct sample first = parse(texts[i]);
        char *text = attrs_print(&table, &first, false);
        assert_string_equal(text, texts[i]);
        struct sample again = parse(text);
        assert_true(attrs_equal(&table, &first, &again));
        mem_free(text);
        text = attrs_print(&table, &first, true);
        again = parse(text);
        assert_true(attrs_equal(&table, &first, &again));
        mem_free(text);
    }
    struct sample defaults = parse("");
    char *all = attrs_print(&table, &defaults, true);
    assert_string_equal(all, "flag=false, count=3, alpha=1, dtype=none, mode=left, "
                             "axes=none, bits=0x0");
    mem_free(all);
}

static void bytes_read_back_and_leave_defaults_out(void **state)
{
    (void)state;
    struct sample s = parse("mode=right, axes=[4, 5], alpha=nan, bits=0x8000000000000001"),
                  t;
    void *bytes = NULL;
    size_t size = 0;
    assert_int_equal(attrs_serialise(&table, &s, &bytes, &size), TN_OK);
    assert_int_equal(attrs_deserialise(&table, bytes, size, &t), TN_OK);
    assert_true(attrs_equal(&table, &s, &t));
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(attrs_deserialise(&table, bytes, cut, &t), TN_ERR_ARGUMENT);
    for (size_t i = 0; i < size; i++) { // damaged bytes: an error or other values, no crash
        unsigned char *copy = malloc(size);
        memcpy(copy, bytes, size);
        copy[i] ^= 0xff;
        (void)attrs_deserialise(&table, copy, size, &t);
        free(copy);
    }
    mem_free(bytes);
    s = parse("");
    assert_int_equal(attrs_serialise(&table, &s, &bytes, &size), TN_OK);
    assert_int_equal(size, 4);
    mem_free(bytes);
}

static void hashes_see_content_only(void **state)
{
    (void)state;
    struct sample a = parse("axes=[1]"), b = a;
    b.gap = 12345;
    b.axes.value[5] = 99; // beyond the count
    assert_true(attrs_equal(&table, &a, &b));
    assert_true(hash_equal(attrs_hash(hash_start(0), &table, &a),
                           attrs_hash(hash_start(0), &table, &b)));
    a.alpha = (double)NAN;
    b.alpha = -(double)NAN;
    assert_true(attrs_equal(&table, &a, &b));
    assert_true(hash_equal(attrs_hash(hash_start(0), &table, &a),
                           attrs_hash(hash_start(0), &table, &b)));
    struct sample c = parse("axes=[]"), d = parse("");
    assert_false(attrs_equal(&table, &c, &d));
    assert_false(hash_equal(attrs_hash(hash_start(0), &table, &c),
                            attrs_hash(hash_start(0), &table, &d)));
    c = parse("count=1"), d = parse("bits=1");
    assert_false(hash_equal(attrs_hash(hash_start(0), &table, &c),
                            attrs_hash(hash_start(0), &table, &d)));
}

static void given_values_convert_where_nothing_is_lost(void **state)
{
    (void)state;
    struct sample s;
    const tn_ints axes = {.count = 1, .given = 1, .value = {2}};
    assert_int_equal(attrs_fill(&table, tn_attrs("alpha", 4, "count", 7.0, "axes", 1), &s),
                     TN_OK);
    assert_true(s.alpha == 4 && s.count == 7);
    assert_int_equal(s.axes.count, 1);
    assert_int_equal(attrs_fill(&table, tn_attrs("axes", &axes, "mode", "none"), &s),
                     TN_OK);
    assert_int_equal(s.axes.value[0], 2);
    assert_int_equal(s.mode, 0);
}

static void expect_error(tn_status status, const char *part)
{
    assert_int_equal(status, TN_ERR_ARGUMENT);
    if (!strstr(fail_text(), part)) {
        print_error("got \"%s\", expected \"%s\"\n", fail_text(), part);
        _fail(__FILE__, __LINE__);
    }
}

static void errors_name_the_field_what_was_got_and_expected(void **state)
{
    (void)state;
    struct sample s;
    struct needed n;
    const int64_t big = INT64_MAX;
    expect_error(attrs_parse(&table, "alhpa=1", &s), "'alhpa', did you mean 'alpha'?");
    expect_error(attrs_parse(&table, "count=1.5", &s),
                 "'count': got '1.5', expected an int");
    expect_error(attrs_parse(&table, "count=99999999999999999999", &s), "expected an int");
    expect_error(attrs_parse(&table, "flag=2", &s), "expected true or false");
    expect_error(attrs_parse(&table, "dtype=f31", &s), "expected a dtype");
    expect_error(attrs_parse(&table, "mode=up", &s),
                 "expected one of 'none', 'left', 'right'");
    expect_error(attrs_parse(&table, "axes=[1,2", &s), "got '[1,2', expected at most 8");
    expect_error(attrs_parse(&table, "axes=[1,2,3,4,5,6,7,8,9]", &s), "at most 8 integers");
    expect_error(attrs_parse(&table, "alpha", &s), "got 'alpha', expected name=value");
    expect_error(attrs_parse(&table, "alpha=", &s), "expected a number");
    expect_error(attrs_parse(&table, "alpha=1, alpha=2", &s), "'alpha' is given twice");
    expect_error(attrs_parse(&needed_table, "", &n), "'x' is missing, expected a number");
    expect_error(attrs_fill(&table, tn_attrs("count", 1.5), &s),
                 "got 1.5, expected an int");
    expect_error(attrs_fill(&table, tn_attrs("dtype", 77), &s), "got 77, expected a dtype");
    expect_error(attrs_fill(&table, tn_attrs("alpha", big), &s), "not exact");
    expect_error(attrs_fill(&table, tn_attrs("nothing_like_it", 1), &s), "expected one of");
    expect_error(attrs_fill(&table, tn_attrs("flag", TN_INTS(1)), &s), "got a list");
    expect_error(attrs_fill(&needed_table, TN_NO_ATTRS, &n), "'x' is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_parse_to_values),
        cmocka_unit_test(what_is_printed_parses_to_the_same),
        cmocka_unit_test(bytes_read_back_and_leave_defaults_out),
        cmocka_unit_test(hashes_see_content_only),
        cmocka_unit_test(given_values_convert_where_nothing_is_lost),
        cmocka_unit_test(errors_name_the_field_what_was_got_and_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
