// SPDX-License-Identifier: MIT
// The process-wide list of loaded modules. A module is a plugin's shared object and the
// libraries in its directory that the object needs.
//
// What was hashed is what is loaded: dlopen goes through a descriptor of the private copy,
// by way of /proc/<pid>/fd. The descriptor stays open as long as the code is loaded, so
// that debuggers and symbolisers find the content under the name that the dynamic linker
// reports. The copy's own name, in /proc/<pid>/maps, is the path of the file.
//
// A module is identified by its content. The dynamic linker identifies a file by name and
// by inode. A copy has an inode of its own; a file that is loaded without a copy, because
// only root can change it, is refused when its content has changed since it was loaded. A
// name must never be used twice, even when the program closes descriptors that it does not
// own: detours in the path make each name unique ("/proc/71/fd/../fd/./5").
#include "module.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../../base/memory.h"

// One loaded shared object. Constant once its module is open.
struct object {
    int fd;
    void *handle; // NULL: not loaded, or the process has another library of its name
    unsigned char sha256[32];
    uint64_t size; // these three as in struct content
    bool may_change;
    struct file_version version;
};

// `next`, `references`, `busy`, `is_entered` and `entered_by` are guarded by `lock`; the
// rest is constant once the module is open.
struct module {
    struct module *next;
    dev_t device; // device and inode of the first object
    ino_t inode;
    unsigned char sha256[32];
    struct object objects[MAX_OBJECTS]; // in the order of struct objects
    uint32_t num_objects;
    char displaced[256]; // see module_displaced(); "": none
    uint32_t references;
    bool busy;       // a thread is in dlopen or dlclose
    bool is_entered; // `entered_by` runs init or deinit
    pthread_t entered_by;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; // busy or is_entered was cleared
static struct module *modules;
static _Atomic uint32_t num_opened; // makes the names for dlopen unique

// The listed module with the same content, or loaded from the same inode. Under `lock`.
static struct module *load_module_find(const struct module *like)
{
    for (struct module *module = modules; module; module = module->next)
        if (memcmp(module->sha256, like->sha256, 32) == 0 ||
            (module->device == like->device && module->inode == like->inode))
            return module;
    return NULL;
}

static void module_destroy(struct module *module)
{
    for (uint32_t i = 0; i < module->num_objects; i++)
        if (module->objects[i].fd >= 0)
            close(module->objects[i].fd);
    mem_free(module);
}

static void unlink_module(struct module *module)
{
    struct module **at = &modules;
    while (*at && *at != module)
        at = &(*at)->next;
    if (*at)
        *at = module->next;
}

// --- fork ------------------------------------------------------------------------------

static void module_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void module_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

// The child has no other threads. Modules that other threads were opening or closing leave
// the list, to be opened again when needed; modules that other threads had entered may be
// entered.
static void module_enter_child(void)
{
    for (struct module **at = &modules; *at;) {
        if ((*at)->is_entered && !pthread_equal((*at)->entered_by, pthread_self()))
            (*at)->is_entered = false;
        if ((*at)->busy)
            *at = (*at)->next;
        else
            at = &(*at)->next;
    }
    changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER; // the child has no waiters
    pthread_mutex_unlock(&lock);
}

static void module_watch_forks(void)
{
    pthread_atfork(module_before_fork, module_after_fork,
                   module_enter_child); // on failure, no handler runs
}

// --- opening ---------------------------------------------------------------------------

// Encodes `number` as a detour per bit; at most 32 * 6 characters.
static void unique_name(char *name, size_t size, const char *process, uint32_t number,
                        int fd)
{
    size_t at = (size_t)snprintf(name, size, "/proc/%s/fd/", process);
    for (; number; number >>= 1)
        at += (size_t)snprintf(name + at, size - at, number & 1 ? "../fd/" : "./");
    snprintf(name + at, size - at, "%d", fd);
}

static bool is_same_file(const char *name, int fd)
{
    struct stat there, here;
    return stat(name, &there) == 0 && fstat(fd, &here) == 0 &&
           there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

static void *open_descriptor(int fd)
{
    char name[256], process[32];
    uint32_t number = atomic_fetch_add(&num_opened, 1) + 1;
    snprintf(process, sizeof(process), "%ld", (long)getpid());
    unique_name(name, sizeof(name), process, number, fd);
    if (!is_same_file(name, fd)) // /proc is of another PID namespace
        unique_name(name, sizeof(name), "self", number, fd);
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

bool module_content(int fd, struct content *out)
{
    const struct file_version version = file_version(fd);
    int copy = -1;
    pthread_mutex_lock(&lock);
    for (const struct module *module = modules; module; module = module->next)
        for (uint32_t i = 0; i < module->num_objects && copy < 0; i++) {
            const struct object *object = &module->objects[i];
            if (!file_version_equal(&object->version, &version))
                continue;
            copy = fcntl(object->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
            *out = (struct content){.fd = copy, .size = object->size, .version = version};
            memcpy(out->sha256, object->sha256, 32);
        }
    pthread_mutex_unlock(&lock);
    return copy >= 0;
}

// Whether a listed module loaded `handle` as a needed library with this content.
static bool module_is_ours(const void *handle, const unsigned char sha256[32])
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const struct module *module = modules; module; module = module->next)
        for (uint32_t i = 1; i < module->num_objects; i++)
            found |= module->objects[i].handle == handle &&
                     memcmp(module->objects[i].sha256, sha256, 32) == 0;
    pthread_mutex_unlock(&lock);
    return found;
}

// Whether the process has a library of this name already. The dynamic linker would use that
// one for every object that needs the name, so a second copy is not loaded. Another library
// than the plugin's is recorded in module->displaced.
static bool is_name_taken(struct module *module, const struct object *object,
                          const char *name)
{
    void *taken = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (!taken)
        return false;
    if (!module_is_ours(taken, object->sha256))
        snprintf(module->displaced, sizeof(module->displaced), "%s", name);
    dlclose(taken);
    return true;
}

// Loads the libraries that the first object needs, in dependency order, which is found by
// trial: dlopen of a library whose own needs are not loaded yet fails, before any of its
// code runs, and is tried again after the next success. The error for a library that never
// loads comes from opening the first object.
static void module_open_needed(struct module *module, const char *const *names)
{
    bool is_done[MAX_OBJECTS] = {false};
    bool progress = module->num_objects > 1;
    while (progress) {
        progress = false;
        for (uint32_t i = 1; i < module->num_objects; i++) {
            struct object *object = &module->objects[i];
            if (is_done[i])
                continue;
            is_done[i] = is_name_taken(module, object, names[i]) ||
                         (object->handle = open_descriptor(object->fd));
            progress |= is_done[i];
        }
    }
}

// Hashes a file that was loaded without a copy again: the file may have been rewritten
// after it was hashed.
static tn_status find_change(const struct object *object, bool *out_changed)
{
    struct content now;
    *out_changed = false;
    if (!object->may_change)
        return TN_OK;
    tn_status status = content_hash(object->fd, &now);
    if (status != TN_ERR_MEMORY)
        *out_changed = status != TN_OK || memcmp(now.sha256, object->sha256, 32) != 0;
    return status == TN_ERR_MEMORY ? status : TN_OK;
}

static void close_objects(struct module *module)
{
    for (uint32_t i = 0; i < module->num_objects; i++)
        if (module->objects[i].handle)
            dlclose(module->objects[i].handle);
}

// Refuses the plugin, but not for a shortage of memory, which is temporary. The dynamic
// linker reports the shortage only as text.
static tn_status linker_failed(const char *path, struct reason *reason)
{
    static const char shortage[] = "annot allocate memory";
    const char *text = dlerror();
    if (access("/proc/self/fd", X_OK))
        return reason_record(reason, TN_ERR_REFUSED, REASON_PROC, path,
                             "%s cannot be loaded: its checked copy is opened through "
                             "/proc, which is not mounted",
                             path);
    size_t size = text ? strlen(text) : 0, end = sizeof(shortage) - 1;
    if (size >= end && strcmp(text + size - end, shortage) == 0)
        return fail(TN_ERR_MEMORY, "out of memory: %s", text);
    return reason_record(reason, TN_ERR_REFUSED, REASON_DLOPEN, path,
                         "%s cannot be loaded: %s", path, text ? text : "unknown");
}

static tn_status open_objects(struct module *module, const struct objects *objects,
                              const char *path, struct reason *reason)
{
    module_open_needed(module, objects->names);
    module->objects[0].handle = open_descriptor(module->objects[0].fd);
    if (!module->objects[0].handle) {
        tn_status status = linker_failed(path, reason);
        close_objects(module);
        return status;
    }
    bool is_other = false;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < module->num_objects && status == TN_OK && !is_other; i++)
        status = find_change(&module->objects[i], &is_other);
    if (is_other)
        status = reason_record(reason, TN_ERR_REFUSED, REASON_HASH, path,
                               "%s was rewritten while it was loaded", path);
    if (status != TN_OK)
        close_objects(module);
    return status;
}

// Opens a module that is listed and busy. On failure takes the module off the list and
// destroys it.
static tn_status open_module(struct module *module, const struct objects *objects,
                             const char *path, struct reason *reason)
{
    tn_status status = open_objects(module, objects, path, reason);
    pthread_mutex_lock(&lock);
    module->busy = false;
    if (status != TN_OK)
        unlink_module(module);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (status != TN_OK)
        module_destroy(module);
    return status;
}

// --- acquire and release ---------------------------------------------------------------

static tn_status module_create(const struct objects *objects, const char *path,
                               struct module **out, struct reason *reason)
{
    struct module *module = mem_zalloc(sizeof(*module));
    if (!module)
        return TN_ERR_MEMORY;
    struct stat info = {0};
    bool good = fstat(objects->contents[0].fd, &info) == 0;
    module->device = info.st_dev;
    module->inode = info.st_ino;
    module->references = 1;
    module->busy = true;
    module->num_objects = objects->count;
    objects_sha256(objects, module->sha256);
    for (uint32_t i = 0; i < objects->count; i++) {
        const struct content *content = &objects->contents[i];
        struct object *object = &module->objects[i];
        object->fd = fcntl(content->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        object->size = content->size;
        object->may_change = content->may_change;
        object->version = content->version;
        memcpy(object->sha256, content->sha256, 32);
        good &= object->fd >= 0;
    }
    if (good) {
        *out = module;
        return TN_OK;
    }
    int error = errno;
    module_destroy(module);
    return reason_record(reason, TN_ERR_REFUSED, REASON_READ, path, "%s: %s", path,
                         strerror(error));
}

tn_status module_acquire(const struct objects *objects, const char *path,
                         struct module **out_module, struct reason *reason)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct module *made = NULL, *module;
    tn_status status = module_create(objects, path, &made, reason);
    if (status != TN_OK)
        return status;
    pthread_once(&once, module_watch_forks);

    pthread_mutex_lock(&lock);
    while ((module = load_module_find(made)) && module->busy)
        pthread_cond_wait(&changed, &lock);
    bool same = module && memcmp(module->sha256, made->sha256, 32) == 0;
    if (same) {
        module->references++;
    } else if (!module) {
        made->next = modules;
        modules = made;
    }
    pthread_mutex_unlock(&lock);

    if (!module) {
        status = open_module(made, objects, path, reason);
        module = made;
    } else {
        module_destroy(made);
        if (!same)
            status = reason_record(reason, TN_ERR_REFUSED, REASON_HASH, path,
                                   "%s was changed in place while its code is in use: "
                                   "restart the program",
                                   path);
    }
    if (status == TN_OK)
        *out_module = module;
    return status;
}

void module_release(struct module *module, bool unload)
{
    if (!module)
        return;
    pthread_mutex_lock(&lock);
    bool last = --module->references == 0 && unload;
    module->busy = last;
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    close_objects(module);
    pthread_mutex_lock(&lock);
    unlink_module(module);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    module_destroy(module);
}

bool module_enter(struct module *module)
{
    pthread_mutex_lock(&lock);
    while (module->is_entered && !pthread_equal(module->entered_by, pthread_self()))
        pthread_cond_wait(&changed, &lock);
    bool mine = !module->is_entered;
    module->is_entered = true;
    if (mine)
        module->entered_by = pthread_self();
    pthread_mutex_unlock(&lock);
    return mine;
}

void module_leave(struct module *module)
{
    pthread_mutex_lock(&lock);
    module->is_entered = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

const char *module_name(const struct module *module)
{
    struct link_map *map = NULL;
    return dlinfo(module->objects[0].handle, RTLD_DI_LINKMAP, &map) ? "" : map->l_name;
}

const char *module_displaced(const struct module *module)
{
    return *module->displaced ? module->displaced : NULL;
}

const tn_plugin *module_entry(const struct module *module, uint64_t *out_size)
{
    const tn_plugin *entry = dlsym(module->objects[0].handle, "tn_plugin_v1");
    Dl_info info;
    const Elf64_Sym *symbol = NULL;
    if (!entry || !dladdr1(entry, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
        info.dli_saddr != entry)
        return NULL;
    *out_size = symbol->st_size;
    return entry;
}
