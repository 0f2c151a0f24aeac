// SPDX-License-Identifier: MIT
// Opens NCCL and CUDA's driver, and finds their functions.
#include "library.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NCCL_SONAME "libnccl.so.2"
#define CUDA_SONAME "libcuda.so.1"
// Where NVIDIA's Python packages have NCCL, below site-packages.
#define NCCL_OF_PYTHON "/nvidia/nccl/lib/" NCCL_SONAME

enum { MOST_PATH = 4096 };

struct library_symbol {
    const char *name;
    size_t offset;
};
static const struct library_symbol cuda_symbols[] = {
#define CUDA_SYMBOL(name, symbol, arguments)                                               \
    {symbol, offsetof(struct nccl_library, cuda.name)},
    CUDA_FUNCTIONS(CUDA_SYMBOL)
#undef CUDA_SYMBOL
};
static const struct library_symbol nccl_symbols[] = {
#define NCCL_SYMBOL(name, symbol, arguments)                                               \
    {symbol, offsetof(struct nccl_library, nccl.name)},
    NCCL_FUNCTIONS(NCCL_SYMBOL)
#undef NCCL_SYMBOL
        {"ncclGetErrorString", offsetof(struct nccl_library, nccl.GetErrorString)},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards the variables below
static struct nccl_library library;
static bool is_open;

const char *cuda_error(const struct nccl_library *it, int code)
{
    const char *text = NULL;
    return it->cuda.GetErrorString(code, &text) == CUDA_OK && text ? text : "unknown error";
}

static bool find_symbols(void *object, const struct library_symbol *symbols, size_t count,
                         const char *expected, char *why, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(object, symbols[i].name);
        if (!address) {
            snprintf(why, size, "it has no function %s: expected %s", symbols[i].name,
                     expected);
            return false;
        }
        memcpy((char *)&library + symbols[i].offset, &address, sizeof(address));
    }
    return true;
}

// --- the library of a Python ------------------------------------------------------------

static void *open_found(const char *pattern)
{
    glob_t found;
    void *object = NULL;
    if (glob(pattern, 0, NULL, &found) != 0)
        return NULL;
    for (size_t i = 0; i < found.gl_pathc && !object; i++)
        object = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
    return object;
}

// Opens NCCL from a site-packages folder above this plugin.
static void *open_beside(void)
{
    Dl_info self;
    char path[MOST_PATH];
    void *object = NULL;
    if (!dladdr(nccl_symbols, &self) || strlen(self.dli_fname) >= sizeof(path))
        return NULL;
    snprintf(path, sizeof(path), "%s", self.dli_fname);
    for (char *end = strrchr(path, '/'); end && end > path && !object;
         end = strrchr(path, '/')) {
        *end = 0;
        size_t length = (size_t)(end - path);
        snprintf(end, sizeof(path) - length, "%s", NCCL_OF_PYTHON);
        object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        *end = 0;
    }
    return object;
}

// Opens NCCL of the first Python on PATH that has it.
static void *open_on_path(void)
{
    static const char *const folders[] = {"site-packages", "dist-packages"};
    const char *at = getenv("PATH");
    char pattern[MOST_PATH];
    void *object = NULL;
    while (at && *at && !object) {
        int length = (int)strcspn(at, ":");
        for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !object; i++) {
            int used = snprintf(pattern, sizeof(pattern), "%.*s/../lib/python3*/%s%s",
                                length, at, folders[i], NCCL_OF_PYTHON);
            if (length > 0 && *at == '/' && used < (int)sizeof(pattern))
                object = open_found(pattern);
        }
        at += length;
        at += *at == ':';
    }
    return object;
}

static void *open_nccl(const char *name, char *why, size_t size)
{
    void *object = name ? dlopen(name, RTLD_NOW | RTLD_LOCAL)
                        : dlopen(NCCL_SONAME, RTLD_NOW | RTLD_NOLOAD);
    if (!object && !name)
        object = dlopen(NCCL_SONAME, RTLD_NOW | RTLD_LOCAL);
    const char *said = object ? NULL : dlerror();
    char first[256];
    snprintf(first, sizeof(first), "%s", said ? said : "unknown");
    if (!object && !name)
        object = open_beside();
    if (!object && !name)
        object = open_on_path();
    if (!object)
        snprintf(why, size,
                 "NCCL cannot be opened (%s): install it (PyPI: pip install "
                 "nvidia-nccl-cu13, or -cu12 for a driver of CUDA 12; NVIDIA's packages: "
                 "libnccl2), or set TENON_NCCL to the path of " NCCL_SONAME,
                 first);
    return object;
}

// --- opening ----------------------------------------------------------------------------

static bool read_cuda(char *why, size_t size)
{
    char said[256];
    void *object = dlopen(CUDA_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        const char *error = dlerror();
        snprintf(why, size,
                 "CUDA's driver cannot be opened (%s): NVIDIA's driver of this machine "
                 "has it (Debian: libcuda1)",
                 error ? error : "unknown");
        return false;
    }
    if (find_symbols(object, cuda_symbols, sizeof(cuda_symbols) / sizeof(cuda_symbols[0]),
                     "the driver of CUDA 11.4 or later", said, sizeof(said)))
        return true;
    snprintf(why, size, "CUDA's driver does not serve: %s", said);
    return false;
}

static bool read_nccl(const char *name, char *why, size_t size)
{
    int version = 0;
    char said[256];
    void *object = open_nccl(name, why, size);
    if (!object)
        return false;
    if (!find_symbols(object, nccl_symbols, sizeof(nccl_symbols) / sizeof(nccl_symbols[0]),
                      "NCCL 2.14 or later", said, sizeof(said))) {
        snprintf(why, size, "NCCL does not serve: %s", said);
        return false;
    }
    library.nccl.GetVersion(&version);
    snprintf(library.version, sizeof(library.version), "NCCL %d.%d.%d", version / 10000,
             version / 100 % 100, version % 100);
    return true;
}

const struct nccl_library *nccl_library_open(const char *name, char *why, size_t size)
{
    pthread_mutex_lock(&lock);
    if (!is_open && read_cuda(why, size) && read_nccl(name, why, size)) {
        is_open = true;
        // NVLink's multicast needs a service that not every machine runs, and communicators
        // fail without it. So it is off unless the user sets the variable.
        setenv("NCCL_NVLS_ENABLE", "0", 0);
    }
    const struct nccl_library *found = is_open ? &library : NULL;
    pthread_mutex_unlock(&lock);
    return found;
}
