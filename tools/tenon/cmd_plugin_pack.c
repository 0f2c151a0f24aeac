// SPDX-License-Identifier: MIT
// tenon plugin pack: a plugin's folder as one file.
#include "tnp.h"
#include "commands.h"
#include "place.h"
#include "seal.h"
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>

// A copy in `workplace`, so that its list of files can be completed.
static int pack(const char *source, const struct identity *identity, const char *workplace,
                const char *output)
{
    char *copy = path_join(workplace, identity->id);
    int failed = copy ? tree_copy(source, copy) : oops_memory();
    if (!failed)
        failed = seal(copy, SEAL_ADD);
    if (!failed && tn_plugin_verify(copy))
        failed = oops_library();
    if (!failed)
        failed = archive_pack(copy, identity->id, output);
    if (!failed)
        printf("packed %s %s as %s\n", identity->id, identity->version, output);
    free(copy);
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
    char *workplace = NULL, *own = NULL;
    failed = manifest_identity(args.items[0], &identity);
    if (!failed && !output &&
        asprintf(&own, "%s-%s.tnp", identity.id, identity.version) < 0)
        failed = oops_memory();
    if (!failed)
        failed = temporary_folder(&workplace);
    if (!failed)
        failed = pack(args.items[0], &identity, workplace, output ? output : own);
    if (workplace)
        tree_remove(workplace);
    free(workplace);
    free(own);
    return failed;
}
