// SPDX-License-Identifier: MIT
// C functions as primitives. By itself the plugin org.tenon.ffi: callbacks and the maker of
// packs. With a manifest behind its last byte, a pack: the functions that it describes.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "callback.h"
#include "make.h"
#include "rules.h"

// What a pack is read into. Its records live as long as the code does, as tables that are
// compiled do: no call says when they are no longer used.
static _Alignas(16) unsigned char room[ARENA_MAX];

// What this copy of the code is. Read from its own file when it is first asked, because no
// other call comes before query.
static struct {
    pthread_once_t once;
    struct pack pack;
    struct problem problem; // why a pack has no functions
    bool is_pack;
    tn_ops ops;
    const tn_primitive **primitives;
    const tn_kernel **kernels;
} self = {.once = PTHREAD_ONCE_INIT};

static const tn_plugin *identity(void);

static const char *own_file(void)
{
    Dl_info info;
    return dladdr(identity(), &info) ? info.dli_fname : NULL;
}

static tn_status list_functions(void)
{
    uint32_t count = self.pack.num_functions;
    self.primitives = arena_alloc(&self.pack.arena, count * sizeof(*self.primitives));
    self.kernels = arena_alloc(&self.pack.arena, count * sizeof(*self.kernels));
    if (!self.primitives || !self.kernels)
        return problem_set(&self.problem, TN_ERR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        self.primitives[i] = &self.pack.functions[i]->primitive;
        self.kernels[i] = &self.pack.functions[i]->kernel;
    }
    slots_fill(self.pack.functions);
    self.ops = (tn_ops){.struct_size = sizeof(tn_ops),
                        .primitives = self.primitives,
                        .kernels = self.kernels,
                        .num_primitives = count,
                        .num_kernels = count};
    return TN_OK;
}

static void read_self(void)
{
    char *text = NULL;
    size_t size = 0;
    const char *file = own_file();
    self.is_pack = strcmp(identity()->id, "org.tenon.ffi") != 0;
    if (!self.is_pack)
        return;
    tn_status status = file ? pack_find(file, &text, &size, &self.problem)
                            : problem_set(&self.problem, TN_ERR_IO, "its file is unknown");
    if (status == TN_OK && !text)
        status = problem_set(&self.problem, TN_ERR_REFUSED,
                             "its manifest was cut off, by strip perhaps: make it again "
                             "with `tenon ffi make`");
    pack_init(&self.pack, room);
    if (status == TN_OK)
        status = pack_read(text, size, "its manifest", false, &self.pack, &self.problem);
    if (status == TN_OK)
        status = list_functions();
    free(text);
}

// --- the interface ---------------------------------------------------------------------

static tn_status make_in(const char *manifest, const char *directory, char *id,
                         struct problem *problem)
{
    char path[4096];
    tn_status status = pack_write(manifest, NULL, NULL, !directory, id, problem);
    if (status != TN_OK || !directory)
        return status;
    if (snprintf(path, sizeof(path) - 80, "%s/%s", directory, id) >= (int)sizeof(path) - 80)
        return problem_set(problem, TN_ERR_ARGUMENT, "the directory's name is too long");
    if (mkdir(path, 0755)) {
        struct stat info;
        if (stat(path, &info) || !S_ISDIR(info.st_mode))
            return problem_set(problem, TN_ERR_IO, "%s cannot be made", path);
    }
    size_t length = strlen(path);
    snprintf(path + length, sizeof(path) - length, "/%s.so", id);
    return pack_write(manifest, own_file(), path, false, id, problem);
}

static tn_status ffi_pack_make(const tn_host *host, const char *manifest,
                               const char *directory, char *out_id)
{
    struct problem problem = {0};
    tn_status status = make_in(manifest, directory, out_id, &problem);
    return status == TN_OK ? TN_OK : host->fail(host, status, "%s", problem.text);
}

static const tn_ffi interface = {
    .struct_size = sizeof(interface),
    .callback_add = callback_add,
    .callback_remove = callback_remove,
    .pack_make = ffi_pack_make,
};

// --- could a function be called? -------------------------------------------------------

static tn_status ffi_check(const tn_host *host, const char *primitive)
{
    struct problem problem = {0};
    void *address;
    for (uint32_t i = 0; i < self.pack.num_functions; i++) {
        struct function *function = self.pack.functions[i];
        if (strcmp(function->id, primitive) != 0)
            continue;
        for (uint32_t k = 0; k < function->num_variants; k++)
            if (variant_find(function, k, &address, &problem) != TN_OK)
                return host->fail(host, problem.status, "%s", problem.text);
    }
    return TN_OK;
}

static const tn_ops_check check = {.struct_size = sizeof(check), .check = ffi_check};

// --- the plugin ------------------------------------------------------------------------

static tn_status ffi_init(const tn_host *host)
{
    pthread_once(&self.once, read_self);
    if (self.problem.status != TN_OK)
        return host->fail(host, self.problem.status, "%s", self.problem.text);
    return self.is_pack ? TN_OK : callbacks_open(host);
}

static const void *ffi_query(const char *id)
{
    static const char *const own[] = {TN_IFACE_FFI, NULL};
    pthread_once(&self.once, read_self);
    if (self.problem.status != TN_OK)
        return NULL;
    if (self.is_pack && strcmp(id, TN_IFACE_OPS) == 0)
        return &self.ops;
    if (self.is_pack && strcmp(id, TN_IFACE_OPS_CHECK) == 0)
        return &check;
    if (!self.is_pack && strcmp(id, TN_IFACE_FFI) == 0)
        return &interface;
    if (!self.is_pack && strcmp(id, TN_IFACE_LIST) == 0)
        return own;
    return NULL;
}

// The strings are those of the note, so that a pack is made by changing them in one place.
#pragma GCC diagnostic ignored "-Woverride-init"
TN_PLUGIN("org.tenon.ffi", "0.1.0", "Tenon", .id = tn_note_image_.content.id,
          .version = tn_note_image_.content.version,
          .vendor = tn_note_image_.content.vendor, .init = ffi_init,
          .deinit = callbacks_close, .query = ffi_query);

static const tn_plugin *identity(void)
{
    // The note is changed after compiling: the compiler must not know what it says.
    const tn_plugin *plugin = &tn_plugin_v1;
    __asm__("" : "+r"(plugin));
    return plugin;
}
