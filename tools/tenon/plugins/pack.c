// SPDX-License-Identifier: MIT
// tenon plugin pack: packs a plugin's folder as one file.
#include "tnp.h"
#include "commands.h"
#include "files/paths.h"
#include "seal.h"
#include "files/tree.h"

#include <stdio.h>
#include <stdlib.h>

static int pack_sealed(const struct folder *folder, const struct identity *identity,
                       const char *output)
{
    int failed = seal(folder, SEAL_ADD);
    if (!failed && tn_plugin_verify(folder->path))
        failed = oops_library();
    if (!failed)
        failed = archive_pack(folder, identity->id, output);
    if (!failed)
        say("packed %s %s as %s\n", identity->id, identity->version, output);
    return failed;
}

// Packs a copy, whose list of files can be completed.
static int plugin_pack(const struct folder *source, const struct identity *identity,
                       const char *output)
{
    struct folder workplace, copy;
    int failed = temporary_folder(&workplace);
    if (failed)
        return failed;
    failed = tree_copy(source, &workplace, identity->id);
    if (!failed)
        failed = folder_enter(&workplace, identity->id, &copy);
    if (!failed) {
        failed = pack_sealed(&copy, identity, output);
        folder_about(&copy, source->path);
        folder_close(&copy);
    }
    folder_discard(&workplace);
    return failed;
}

int cmd_plugin_pack(const struct command *self, int argc, char **argv)
{
    const char *output = NULL;
    const struct option options[] = {
        {"output", 'o', "FILE", "the archive (ID-VERSION.tnp)", &output, NULL}};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    struct identity identity;
    struct folder source;
    char *own = NULL;
    failed = folder_open(args.items[0], &source);
    if (failed)
        return failed;
    failed = manifest_identity(&source, &identity);
    if (!failed && !output &&
        asprintf(&own, "%s-%s.tnp", identity.id, identity.version) < 0)
        failed = oops_memory();
    if (!failed)
        failed = plugin_pack(&source, &identity, output ? output : own);
    folder_close(&source);
    free(own);
    return failed;
}
