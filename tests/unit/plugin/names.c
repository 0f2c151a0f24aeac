// SPDX-License-Identifier: MIT
// Names in manifests.
#include "stage.h"
#include "plugin/names.h"

static void ids_are_parts_between_dots(void **state)
{
    (void)state;
    const char *good[] = {"org.tenon.null", "a", "com.acme.x-2", "0"};
    const char *bad[] = {
        "",           ".",
        "..",         "a..b",
        ".a",         "a.",
        "A",          "a/b",
        "a b",        "-a",
        "a\n",        "a.b.",
        "ä",          "../x",
        "com.acme_x", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(id_valid(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(id_valid(bad[i]));
}

static void versions_are_ordered_as_semver_says(void **state)
{
    (void)state;
    const char *order[] = {
        "0.0.1",      "0.9.0",        "1.0.0-alpha",   "1.0.0-alpha.1", "1.0.0-alpha.beta",
        "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",    "1.0.0",
        "1.9.0",      "1.10.0",       "2.0.0"};
    int count = sizeof(order) / sizeof(order[0]);
    for (int i = 0; i < count; i++) {
        assert_true(version_valid(order[i]));
        for (int j = 0; j < count; j++) {
            int got = tn_version_compare(order[i], order[j]);
            assert_int_equal((got > 0) - (got < 0), (i > j) - (i < j));
        }
    }
    assert_int_equal(tn_version_compare("1.0.0+a", "1.0.0+b"), 0);
    const char *bad[] = {"",       "1",      "1.0",    "1.0.0.0", "1.0.x",
                         "v1.0.0", "1.0.0-", "1.0.0+", "1.0.0 ",  "9999999999.0.0",
                         "-1.0.0", "1.0.0-ä"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(version_valid(bad[i]));
        assert_true(tn_version_compare(bad[i], "0.0.0-0") < 0);
        assert_true(tn_version_compare("0.0.0-0", bad[i]) > 0);
        assert_int_equal(tn_version_compare(bad[i], NULL), 0);
    }
}

static void file_names_stay_in_the_directory(void **state)
{
    (void)state;
    assert_true(file_name_valid("plugin.so"));
    assert_true(file_name_valid("shaders/add.spv"));
    const char *bad[] = {"",        "/etc/passwd", "..",   "../x", "a/../b", "a/./b",
                         ".hidden", "a/",          "a//b", "a\\b", "a\nb",   "./a"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(file_name_valid(bad[i]));
}

static void primitives_are_meant_by_id_name_or_last_part(void **state)
{
    (void)state;
    const char *id = "acme.axpby/1";
    assert_true(primitive_matches("acme.axpby/1", id));
    assert_true(primitive_matches("acme.axpby", id));
    assert_true(primitive_matches("axpby", id));
    assert_true(primitive_matches("axpby/1", id));
    assert_false(primitive_matches("acme.axpby/2", id));
    assert_false(primitive_matches("acme.axpb", id));
    assert_false(primitive_matches("pby", id));
    assert_false(primitive_matches("acme", id));
    assert_false(primitive_matches("", id));
    assert_false(primitive_matches("other.axpby", id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_parts_between_dots),
        cmocka_unit_test(versions_are_ordered_as_semver_says),
        cmocka_unit_test(file_names_stay_in_the_directory),
        cmocka_unit_test(primitives_are_meant_by_id_name_or_last_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
