// SPDX-License-Identifier: MIT
// tenon plugin sign: the list of files is made anew, and plugin.json is signed.
#include "commands.h"
#include "file.h"
#include "keys.h"
#include "seal.h"
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MANIFEST (1u << 20)

static int write_signature(const char *folder, const struct secret_key *key)
{
    char *manifest = path_join(folder, "plugin.json");
    char *path = path_join(folder, "plugin.json.minisig");
    char *data = NULL, *text = NULL;
    uint64_t size;
    int failed =
        manifest && path ? file_read(manifest, MAX_MANIFEST, &data, &size) : oops_memory();
    if (!failed)
        failed = key_sign(key, data, (size_t)size, "file:plugin.json\thashed", &text);
    if (!failed)
        failed = file_write(path, text, strlen(text));
    free(text);
    free(data);
    free(path);
    free(manifest);
    return failed;
}

int cmd_plugin_sign(const struct command *self, int argc, char **argv)
{
    struct args args;
    int failed = args_parse(self, NULL, 0, 2, 2, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    const char *folder = args.items[0];
    struct secret_key key;
    struct identity identity;
    char number[KEY_NUMBER_SIZE];
    failed = manifest_identity(folder, &identity);
    if (!failed)
        failed = key_read_secret(args.items[1], &key);
    if (failed)
        return failed;
    failed = seal(folder, SEAL_RENEW);
    if (!failed)
        failed = write_signature(folder, &key);
    key_number(key.number, number);
    key_forget(&key);
    if (!failed)
        printf("signed %s %s with key %s\n", identity.id, identity.version, number);
    return failed;
}
