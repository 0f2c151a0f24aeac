// SPDX-License-Identifier: MIT
// plugin.json: what is read, and everything that is refused.
#include "stage.h"

#include <jansson.h>
#include "base/memory.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD                                                                               \
    "{\"format\": 1, \"id\": \"com.acme.x\", \"version\": \"1.2.3\", \"vendor\": "         \
    "\"Acme\","
#define ABI "\"abi\": {\"major\": 1, \"minor_min\": 0, \"minor_max\": 2}, \"sanitizer\": 0,"
#define FILES                                                                              \
    "\"file\": \"x.so\", \"files\": [{\"name\": \"x.so\", \"size\": 10, \"sha256\": "      \
    "\"" HASH "\"}]"
#define GOOD HEAD ABI FILES "}"

static tn_status parse(const char *text, struct reason *reason)
{
    struct manifest manifest = {0};
    tn_status status = manifest_parse(text, strlen(text), "/dir", &manifest, reason);
    manifest_finish(&manifest);
    return status;
}

Test(manifest, a_manifest_is_read)
{
    struct manifest manifest;
    struct reason reason;
    const char *text = HEAD ABI FILES
        ", \"backends\": [{\"name\": \"x\", \"default\": true, \"families\": "
        "[\"expr/1\"]}],"
        "\"primitives\": [{\"id\": \"acme.a/1\"}, {\"id\": \"acme.b/2\", \"role\": "
        "\"r/1\"}],"
        "\"kernels\": [{\"primitive\": \"p/1\", \"family\": \"cpu.c/1\", \"name\": "
        "\"fast\"}],"
        "\"interfaces\": [\"tn.ops/1\"], \"of a later format\": [1, {\"x\": null}]}";
    check_status(manifest_parse(text, strlen(text), "/dir", &manifest, &reason), TN_OK);
    cr_assert(eq(str, manifest.id, "com.acme.x"));
    cr_assert(eq(str, manifest.version, "1.2.3"));
    cr_assert(eq(uint, manifest.abi.minor_max, 2));
    cr_assert(eq(u64, manifest_object(&manifest)->size, 10));
    cr_assert(eq(u8, manifest_object(&manifest)->sha256[1], 0x23));
    cr_assert(manifest.backends[0].is_default);
    cr_assert(eq(str, manifest.primitive_ids[1], "acme.b/2"));
    cr_assert(eq(str, manifest.primitives[1].role, "r/1"));
    cr_assert(eq(ptr, manifest.primitives[0].role, NULL));
    cr_assert(eq(ptr, manifest.primitive_ids[2], NULL));
    cr_assert(eq(str, manifest.kernel_texts[0], "p/1 cpu.c/1 fast"));
    cr_assert(eq(str, manifest.interfaces[0], "tn.ops/1"));
    manifest_finish(&manifest);
}

Test(manifest, hostile_manifests_are_refused_with_what_is_wrong)
{
    const struct {
        const char *text, *says;
    } cases[] = {
        {"", "line 1"},
        {"{", "line 1"},
        {"[]", "expected an object"},
        {"nonsense", "line 1"},
        {GOOD "x", "end of file"},
        {"{\"format\": 2}", "format 2, this version reads 1"},
        {"{\"format\": \"1\"}", "\"format\": got a string"},
        {"{}", "\"format\": got nothing"},
        {"{\"format\": 1, \"format\": 1}", "duplicate"},
        {"{\"format\": 1, \"id\": 5}", "\"id\": got an integer"},
        {"{\"format\": 1, \"id\": \"../up\"}", "'../up'"},
        {"{\"format\": 1, \"id\": \"a\\u0000b\"}", "line 1"},
        {"{\"format\": 1, \"id\": \"a\", \"version\": \"one\"}", "semantic version"},
        {HEAD "\"abi\": []}", "\"abi\": got an array"},
        {HEAD "\"abi\": {\"major\": -1}}", "\"major\": -1"},
        {HEAD "\"abi\": {\"major\": 1.5}}", "\"major\": got a real"},
        {HEAD "\"abi\": {\"major\": 1, \"minor_min\": 3, \"minor_max\": 2}}", "above"},
        {HEAD "\"abi\": {\"major\": 99999999999}}", "expected 0 .. 4294967295"},
        {HEAD "\"abi\": {\"major\": 999999999999999999999}}", "line 1"},
        {HEAD ABI "\"file\": \"x.so\"}", "not among"},
        {HEAD ABI "\"file\": \"x.so\", \"files\": {}}", "\"files\": got an object"},
        {HEAD ABI "\"file\": \"x.so\", \"files\": [5]}", "\"files\"[0]: got an integer"},
        {HEAD ABI "\"files\": [{\"name\": \"../x.so\", \"size\": 1, \"sha256\": \"" HASH
                  "\"}]}",
         "'../x.so'"},
        {HEAD ABI "\"files\": [{\"name\": \"/x.so\", \"size\": 1, \"sha256\": \"" HASH
                  "\"}]}",
         "'/x.so'"},
        {HEAD ABI "\"files\": [{\"name\": \"x\", \"size\": -1, \"sha256\": \"" HASH "\"}]}",
         "\"size\": -1"},
        {HEAD ABI "\"files\": [{\"name\": \"x\", \"size\": 1, \"sha256\": \"0123\"}]}",
         "64 hexadecimal"},
        {HEAD ABI FILES ", \"backends\": [{\"name\": \"x\", \"default\": 1}]}",
         "\"default\""},
        {HEAD ABI FILES ", \"primitives\": [{\"id\": null}]}", "\"id\": got null"},
        {HEAD ABI FILES ", \"kernels\": [{\"primitive\": \"x\"}]}", "\"family\""},
        {HEAD ABI FILES ", \"interfaces\": [1]}", "\"interfaces\"[0]"},
        {HEAD ABI FILES ", \"selectors\": [1]}", "\"selectors\"[0]"},
        {HEAD ABI FILES ", \"selectors\": [{\"interface\": \"a/1\", \"kind\": \"Ext\", "
                        "\"value\": \"x\"}]}",
         "'Ext' 'x', expected a kind"},
        {HEAD ABI FILES ", \"selectors\": [{\"interface\": \"a/1\", \"kind\": \"magic\", "
                        "\"value\": \"934\"}]}",
         "hexadecimal"},
        {HEAD ABI FILES ", \"selectors\": [{\"interface\": \"a/1\", \"kind\": \"magic\", "
                        "\"value\": \"????\"}]}",
         "hexadecimal"},
        {"[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]", "nested"},
        {"{\"format\": \xff}", "line 1"},
    };
    struct reason reason;
    check_status(parse(GOOD, &reason), TN_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        reason = (struct reason){0};
        check_status(parse(cases[i].text, &reason), TN_ERR_REFUSED);
        cr_assert(eq(uint, reason.code, REASON_MANIFEST));
        if (!strstr(reason.text, cases[i].says))
            cr_fatal("'%s' lacks '%s'", reason.text, cases[i].says);
        check_says(reason.text, "/dir: ");
        cr_assert(eq(str, fail_text(), reason.text));
    }
}

Test(manifest, a_deep_or_huge_manifest_costs_nothing)
{
    size_t size = MANIFEST_MAX_SIZE;
    char *text = malloc(size + 2);
    struct reason reason;
    memset(text, '[', size + 1);
    text[size] = 0;
    check_status(parse(text, &reason), TN_ERR_REFUSED); // a million levels
    check_says(reason.text, "nested");
    text[size] = '[';
    text[size + 1] = 0;
    check_status(parse(text, &reason), TN_ERR_REFUSED);
    check_says(reason.text, "at most 1048576");
    free(text);
}

// Every prefix, and every byte replaced: refused or read, never worse.
Test(manifest, cut_and_changed_manifests_are_survived)
{
    char text[sizeof(GOOD)];
    struct reason reason;
    for (size_t i = 0; i + 1 < sizeof(GOOD); i++) {
        memcpy(text, GOOD, sizeof(GOOD));
        text[i] = 0;
        check_status(parse(text, &reason), TN_ERR_REFUSED);
        for (int byte = 1; byte < 256; byte += 7) {
            memcpy(text, GOOD, sizeof(GOOD));
            text[i] = (char)byte;
            tn_status status = parse(text, &reason);
            cr_assert(status == TN_OK || status == TN_ERR_REFUSED);
        }
    }
}

// --- running out of memory -------------------------------------------------------------

static int64_t fails_in; // allocations of jansson's; 0: none fails

static void *may_fail(size_t size)
{
    return fails_in > 0 && --fails_in == 0 ? NULL : malloc(size);
}

// Jansson says "invalid token" of a sound text then: that is no reason to refuse it.
Test(manifest, a_shortage_is_not_a_wrong_manifest)
{
    struct reason reason;
    json_malloc_t usual;
    json_free_t release;
    int64_t number_of_failures = 0;
    json_get_alloc_funcs(&usual, &release);
    json_set_alloc_funcs(may_fail, release);
    for (int64_t n = 1; fails_in == 0; n++) {
        fails_in = n;
        json_t *root = json_loadb(GOOD, sizeof(GOOD) - 1, JSON_REJECT_DUPLICATES, NULL);
        json_decref(root);
        if (root) // cut short in silence, or none failed
            continue;
        fails_in = n;
        check_status(parse(GOOD, &reason), TN_OK);
        number_of_failures++;
    }
    fails_in = 0;
    json_set_alloc_funcs(usual, release);
    cr_assert(number_of_failures > 20);
    for (int64_t n = 1; n < 3; n++) {
        mem_fail_nth(n);
        check_status(parse(GOOD, &reason), TN_ERR_MEMORY);
        mem_fail_nth(0);
    }
}
