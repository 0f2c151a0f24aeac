// SPDX-License-Identifier: MIT
// The process-wide list of loaded shared objects.
//
// The file that was hashed is the one that is loaded: dlopen goes through its descriptor,
// by way of /proc/<pid>/fd, and the descriptor stays open as long as the code is loaded, so
// that debuggers and symbolisers find the file by the name that the dynamic linker tells
// them.
//
// The dynamic linker recognises a file that it has by name and by inode. The same inode is
// the same module here too; so a module whose content has changed since it was loaded, in
// place, is refused. The name must never come twice, even when a program closes descriptors
// that are not its own: detours make it unique ("/proc/71/fd/../fd/./5").
#include "module.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/memory.h"

struct module {
    struct module *next;
    dev_t device;
    ino_t inode;
    unsigned char sha256[32];
    void *handle; // NULL: being opened, or closed
    int fd;       // of the file
    uint32_t references;
    bool busy;       // a thread is in dlopen or dlclose
    bool is_entered; // a thread is in init or deinit:
    pthread_t entered_by;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct module *modules;
static uint32_t num_opened; // makes names unique

static struct module *find(const struct stat *info)
{
    for (struct module *module = modules; module; module = module->next)
        if (module->device == info->st_dev && module->inode == info->st_ino)
            return module;
    return NULL;
}

static void destroy(struct module *module)
{
    close(module->fd);
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

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

// Threads that opened, closed or entered a module stayed in the parent: their modules are
// opened again when needed, or free to be entered.
static void enter_child(void)
{
    for (struct module **at = &modules; *at;) {
        if ((*at)->is_entered && !pthread_equal((*at)->entered_by, pthread_self()))
            (*at)->is_entered = false;
        if ((*at)->busy)
            *at = (*at)->next;
        else
            at = &(*at)->next;
    }
    changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER; // nobody waits here
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, enter_child); // out of memory: as without
}

// Each bit of `number` is one detour; at most 32 * 6 characters.
static void unique_name(char *name, size_t size, const char *process, uint32_t number,
                        int fd)
{
    size_t at = (size_t)snprintf(name, size, "/proc/%s/fd/", process);
    for (; number; number >>= 1)
        at += (size_t)snprintf(name + at, size - at, number & 1 ? "../fd/" : "./");
    snprintf(name + at, size - at, "%d", fd);
}

static bool is_file(const char *name, const struct module *module)
{
    struct stat info;
    return stat(name, &info) == 0 && info.st_dev == module->device &&
           info.st_ino == module->inode;
}

static void *open_descriptor(const struct module *module, uint32_t number)
{
    char name[256], process[32];
    snprintf(process, sizeof(process), "%ld", (long)getpid());
    unique_name(name, sizeof(name), process, number, module->fd);
    if (!is_file(name, module)) // /proc shows another namespace's numbers
        unique_name(name, sizeof(name), "self", number, module->fd);
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static tn_status refused_by_linker(const char *path, struct reason *reason)
{
    const char *text = dlerror();
    return reason_record(reason, TN_ERR_REFUSED, REASON_DLOPEN, path,
                         "%s cannot be loaded: %s", path, text ? text : "unknown");
}

// Opens a module that is in the list and busy; takes it out again on failure.
static tn_status open_module(struct module *module, uint32_t number, const char *path,
                             struct reason *reason)
{
    void *handle = open_descriptor(module, number);
    tn_status status = handle ? TN_OK : refused_by_linker(path, reason);
    pthread_mutex_lock(&lock);
    module->busy = false;
    module->handle = handle;
    if (!handle)
        unlink_module(module);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (!handle)
        destroy(module);
    return status;
}

tn_status module_acquire(int fd, const unsigned char sha256[32], const char *path,
                         struct module **out_module, struct reason *reason)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct stat info;
    pthread_once(&once, watch_forks);
    if (fstat(fd, &info))
        return reason_record(reason, TN_ERR_REFUSED, REASON_READ, path,
                             "%s: its status cannot be read", path);
    struct module *made = mem_zalloc(sizeof(*made));
    if (!made)
        return TN_ERR_MEMORY;
    *made = (struct module){
        .device = info.st_dev, .inode = info.st_ino, .references = 1, .busy = true};
    memcpy(made->sha256, sha256, 32);
    made->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (made->fd < 0) {
        mem_free(made);
        return reason_record(reason, TN_ERR_REFUSED, REASON_READ, path, "%s: %s", path,
                             strerror(errno));
    }

    pthread_mutex_lock(&lock);
    struct module *module;
    while ((module = find(&info)) && module->busy)
        pthread_cond_wait(&changed, &lock);
    bool same = module && memcmp(module->sha256, sha256, 32) == 0;
    uint32_t number = 0;
    if (same) {
        module->references++;
    } else if (!module) {
        number = ++num_opened;
        made->next = modules;
        modules = made;
    }
    pthread_mutex_unlock(&lock);

    tn_status status = TN_OK;
    if (!module) {
        status = open_module(made, number, path, reason);
        module = made;
    } else {
        destroy(made);
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
    dlclose(module->handle);
    pthread_mutex_lock(&lock);
    unlink_module(module);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    destroy(module);
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

const tn_plugin *module_entry(const struct module *module, uint64_t *out_size)
{
    const tn_plugin *entry = dlsym(module->handle, "tn_plugin_v1");
    Dl_info info;
    const Elf64_Sym *symbol = NULL;
    if (!entry || !dladdr1(entry, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
        info.dli_saddr != entry)
        return NULL;
    *out_size = symbol->st_size;
    return entry;
}
