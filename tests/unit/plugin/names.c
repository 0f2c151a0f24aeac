// SPDX-License-Identifier: MIT
// Names in manifests.
#include "stage.h"
#include "plugin/find/names.h"

Test(names, ids_are_parts_between_dots)
{
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
        cr_assert(id_valid(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert(not(id_valid(bad[i])));
}

Test(names, versions_are_ordered_as_semver_says)
{
    const char *order[] = {
        "0.0.1",      "0.9.0",        "1.0.0-alpha",   "1.0.0-alpha.1", "1.0.0-alpha.beta",
        "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",    "1.0.0",
        "1.9.0",      "1.10.0",       "2.0.0"};
    int count = sizeof(order) / sizeof(order[0]);
    for (int i = 0; i < count; i++) {
        cr_assert(version_valid(order[i]));
        for (int j = 0; j < count; j++) {
            int got = tn_version_compare(order[i], order[j]);
            cr_assert(eq(int, (got > 0) - (got < 0), (i > j) - (i < j)));
        }
    }
    cr_assert(eq(int, tn_version_compare("1.0.0+a", "1.0.0+b"), 0));
    const char *bad[] = {"",       "1",      "1.0",    "1.0.0.0", "1.0.x",
                         "v1.0.0", "1.0.0-", "1.0.0+", "1.0.0 ",  "9999999999.0.0",
                         "-1.0.0", "1.0.0-ä"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_assert(not(version_valid(bad[i])));
        cr_assert(tn_version_compare(bad[i], "0.0.0-0") < 0);
        cr_assert(tn_version_compare("0.0.0-0", bad[i]) > 0);
        cr_assert(eq(int, tn_version_compare(bad[i], NULL), 0));
    }
}

Test(names, file_names_stay_in_the_directory)
{
    cr_assert(file_name_valid("plugin.so"));
    cr_assert(file_name_valid("shaders/add.spv"));
    const char *bad[] = {"",        "/etc/passwd", "..",   "../x", "a/../b", "a/./b",
                         ".hidden", "a/",          "a//b", "a\\b", "a\nb",   "./a"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert(not(file_name_valid(bad[i])));
}

Test(names, primitives_are_meant_by_id_name_or_last_part)
{
    const char *id = "acme.axpby/1";
    cr_assert(primitive_matches("acme.axpby/1", id));
    cr_assert(primitive_matches("acme.axpby", id));
    cr_assert(primitive_matches("axpby", id));
    cr_assert(primitive_matches("axpby/1", id));
    cr_assert(not(primitive_matches("acme.axpby/2", id)));
    cr_assert(not(primitive_matches("acme.axpb", id)));
    cr_assert(not(primitive_matches("pby", id)));
    cr_assert(not(primitive_matches("acme", id)));
    cr_assert(not(primitive_matches("", id)));
    cr_assert(not(primitive_matches("other.axpby", id)));
}
