// SPDX-License-Identifier: MIT
// Archives of plugins: loads the module tenon-archive. It is a file of its own because
// loading libarchive takes longer than most commands do.
#include "tnp.h"
#include "files/paths.h"

#include <dlfcn.h>

static const struct archive_part *tnp_load(void)
{
    static const char *const folders[] = {"../" TN_LIBEXEC, "."};
    char path[PATH_MAX];
    if (!find_beside(folders, COUNT(folders), "tenon-archive.so", path)) {
        oops("the part for archives is not installed (" TN_LIBEXEC "/tenon-archive.so)");
        return NULL;
    }
    void *part = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct archive_part *found = part ? dlsym(part, "tenon_archive") : NULL;
    if (!found)
        oops("cannot load the part for archives: %s", dlerror());
    return found; // stays loaded
}

static int take_failure(const struct archive_part *part, int failed)
{
    return failed ? oops("%s", part->failure()) : 0;
}

int archive_pack(const struct folder *folder, const char *id, const char *path)
{
    const struct archive_part *part = tnp_load();
    return part ? take_failure(part, part->pack(folder, id, path)) : EXIT_OOPS;
}

int archive_unpack(const char *path, const struct folder *target, const char *what)
{
    const struct archive_part *part = tnp_load();
    return part ? take_failure(part, part->unpack(path, target, what)) : EXIT_OOPS;
}
