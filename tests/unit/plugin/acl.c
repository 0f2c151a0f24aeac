// SPDX-License-Identifier: MIT
// Write access that is granted by an access control list is found.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "plugin/find/acl.h"
#include "stage.h"

struct entry {
    uint16_t tag, permissions;
    uint32_t id;
};
enum { OWNER = 1, USER = 2, OWNING = 4, GROUP = 8, MASK = 16, OTHERS = 32, NO_ID = -1 };
enum { R = 4, W = 2, X = 1 };

static size_t encode(const struct entry *entries, size_t count, unsigned char *out)
{
    const uint32_t version = 2;
    memcpy(out, &version, 4);
    for (size_t i = 0; i < count; i++)
        memcpy(out + 4 + 8 * i, &entries[i], 8);
    return 4 + 8 * count;
}

static const struct sample {
    enum acl_grant grant;
    uint32_t id;
    size_t count;
    struct entry entries[6];
} samples[] = {
    {ACL_NOBODY, 0, 3, {{OWNER, R | W, NO_ID}, {OWNING, R, NO_ID}, {OTHERS, R, NO_ID}}},
    {ACL_USER,
     1234,
     5,
     {{OWNER, R | W, NO_ID},
      {USER, R | W, 1234},
      {OWNING, R, NO_ID},
      {MASK, R | W, NO_ID},
      {OTHERS, R, NO_ID}}},
    {ACL_NOBODY, // the mask takes it
     0,
     5,
     {{OWNER, R | W, NO_ID},
      {USER, R | W, 1234},
      {OWNING, R, NO_ID},
      {MASK, R, NO_ID},
      {OTHERS, R, NO_ID}}},
    {ACL_NOBODY, // reads only
     0,
     5,
     {{OWNER, R | W, NO_ID},
      {USER, R, 1234},
      {OWNING, R | W, NO_ID},
      {MASK, R | W, NO_ID},
      {OTHERS, R, NO_ID}}},
    {ACL_GROUP,
     77,
     5,
     {{OWNER, R | W, NO_ID},
      {OWNING, R, NO_ID},
      {GROUP, W, 77},
      {MASK, R | W | X, NO_ID},
      {OTHERS, R, NO_ID}}},
    {ACL_NOBODY, // this process' own, and root
     0,
     6,
     {{OWNER, R | W, NO_ID},
      {USER, R | W, 0},
      {USER, R | W, 5000},
      {GROUP, R | W, 6000},
      {MASK, R | W, NO_ID},
      {OTHERS, R, NO_ID}}},
    {ACL_USER, // the second of two
     1235,
     6,
     {{OWNER, R | W, NO_ID},
      {USER, R, 1234},
      {USER, R | W, 1235},
      {OWNING, R, NO_ID},
      {MASK, R | W, NO_ID},
      {OTHERS, R, NO_ID}}},
};

TestSuite(acl, .init = stage_setup, .fini = stage_teardown);

Test(acl, grants_are_read_from_lists)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        unsigned char list[ACL_MAX_SIZE];
        const struct sample *sample = &samples[i];
        size_t size = encode(sample->entries, sample->count, list);
        uint32_t id = 0;
        if (acl_writer(list, size, 5000, 6000, &id) != sample->grant)
            cr_fatal("sample %zu", i);
        if (sample->grant != ACL_NOBODY)
            cr_assert(eq(uint, id, sample->id));
    }
}

Test(acl, lists_of_another_format_are_told)
{
    uint32_t id;
    unsigned char list[ACL_MAX_SIZE];
    size_t size = encode(samples[1].entries, samples[1].count, list);
    cr_assert(eq(uint, acl_writer(list, 0, 0, 0, &id), ACL_NOBODY));
    for (size_t cut = 1; cut < size; cut++)
        if ((cut - 4) % 8 != 0)
            cr_assert(eq(uint, acl_writer(list, cut, 0, 0, &id), ACL_WRONG));
    list[0] = 1;
    cr_assert(eq(uint, acl_writer(list, size, 0, 0, &id), ACL_WRONG));
}

// False when the file system has no such lists.
static bool grant(const char *path, const struct sample *sample)
{
    unsigned char list[ACL_MAX_SIZE];
    size_t size = encode(sample->entries, sample->count, list);
    if (setxattr(path, "system.posix_acl_access", list, size, 0) == 0)
        return true;
    cr_assert(eq(int, errno, ENOTSUP));
    return false;
}

// The mode alone looks as if only the user's own group could write.
Test(acl, what_a_list_lets_others_write_is_refused)
{
    static const char *const names[] = {"", "/plugin.json", "/plugin.so"};
    for (size_t i = 0; i < 3; i++) {
        char *path;
        stage_fixture("p", "com.acme.good", "good");
        path = stage_path("p/com.acme.good%s", names[i]);
        check_status(tn_plugin_verify(stage_path("p/com.acme.good")), TN_OK);
        if (!grant(path, &samples[1])) {
            cr_skip("this file system has no access control lists");
        }
        check_status(tn_plugin_verify(stage_path("p/com.acme.good")), TN_ERR_REFUSED);
        check_says(tn_last_error(), "can be changed by user 1234");
        check_says(tn_last_error(), "setfacl -b '");
        tn_runtime *runtime = stage_runtime(stage_path("p"), "TENON_LOG=off", NULL);
        cr_assert(ne(int, tn_plugin_load(runtime, "com.acme.good"), TN_OK));
        tn_runtime_close(runtime);
        cr_assert(grant(path, &samples[2]));
        check_status(tn_plugin_verify(stage_path("p/com.acme.good")), TN_OK);
        cr_assert(eq(int, removexattr(path, "system.posix_acl_access"), 0));
        cr_assert(eq(int, chmod(path, i ? 0644 : 0755), 0));
    }
}
