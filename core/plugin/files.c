// SPDX-License-Identifier: MIT
// The service that gives a plugin the files in its folder.
#include "plugin.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "../base/fail.h"
#include "trust.h"

static const struct manifest *manifest_of(const struct plugin *plugin)
{
    return plugin->newer ? &plugin->newer->manifest : &plugin->manifest;
}

static const struct manifest_file *find_file(const struct manifest *manifest,
                                             const char *name)
{
    for (uint32_t i = 0; i < manifest->num_files; i++)
        if (strcmp(manifest->files[i].name, name) == 0)
            return &manifest->files[i];
    return NULL;
}

static const char *files_directory(const tn_host *host)
{
    return host->self->plugin->directory;
}

static tn_status files_read(const tn_host *host, const char *name, void **out_data,
                            uint64_t *out_size)
{
    const struct plugin *plugin = host->self->plugin;
    const struct manifest_file *file = find_file(manifest_of(plugin), name);
    struct reason reason;
    char *data = NULL;
    size_t size = 0;
    int directory = -1;
    if (!file)
        return fail(TN_ERR_NOT_FOUND, "'%s' is not among the files of %s/" MANIFEST_FILE,
                    name, plugin->directory);
    tn_status status = trust_open_directory(AT_FDCWD, plugin->directory, plugin->directory,
                                            &directory, &reason);
    if (status != TN_OK)
        return status;
    status = trust_read_listed(&plugin->set->trust, directory, plugin->directory, file,
                               &data, &size, &reason);
    close(directory);
    if (status != TN_OK)
        return status;
    *out_data = data;
    *out_size = size;
    return TN_OK;
}

const tn_host_files *files_service(void)
{
    static const tn_host_files service = {
        .struct_size = sizeof(service), .directory = files_directory, .read = files_read};
    return &service;
}
