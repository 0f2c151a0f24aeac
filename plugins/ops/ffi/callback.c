// SPDX-License-Identifier: MIT
// Callbacks of applications, by runtime: registered, removed, called.
//
// A struct callback lives until its runtime closes, because graphs may use its primitive.
// Removing a callback only takes its function away.
#include "callback.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "manifest.h"
#include "rules.h"
#include "signature.h"

struct callback {
    struct callback *next;
    struct ffi_pack pack; // of the one function
    struct ffi_function *function;
    char *signature;
    uint32_t flags;
    // Held for reading during calls, for writing to change the function's address and
    // `user`, and is_removed.
    pthread_rwlock_t lock;
    bool is_removed;
    bool is_registered; // the core has the primitive; constant once in the list
};

// The callbacks of one runtime.
struct registry {
    struct registry *next;
    const tn_host *host;
    struct callback *callbacks;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of the registries
static struct registry *registries;

// --- registries ------------------------------------------------------------------------

static struct registry *find_registry(const tn_host *host)
{
    struct registry *registry = registries;
    while (registry && registry->host != host)
        registry = registry->next;
    return registry;
}

tn_status callbacks_open(const tn_host *host)
{
    struct registry *registry = calloc(1, sizeof(*registry));
    if (!registry)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    registry->host = host;
    pthread_mutex_lock(&lock);
    registry->next = registries;
    registries = registry;
    pthread_mutex_unlock(&lock);
    return TN_OK;
}

static void callback_destroy(struct callback *callback)
{
    if (callback->function)
        closures_free(callback->function);
    pack_finish(&callback->pack);
    pthread_rwlock_destroy(&callback->lock);
    free(callback->signature);
    free(callback);
}

void callbacks_close(const tn_host *host)
{
    pthread_mutex_lock(&lock);
    struct registry **at = &registries;
    while (*at && (*at)->host != host)
        at = &(*at)->next;
    struct registry *registry = *at;
    if (registry)
        *at = registry->next;
    pthread_mutex_unlock(&lock);
    for (struct callback *c = registry ? registry->callbacks : NULL, *next; c; c = next) {
        next = c->next;
        callback_destroy(c);
    }
    free(registry);
}

static struct callback *find_callback(const tn_host *host, const char *id)
{
    struct callback *found = NULL;
    pthread_mutex_lock(&lock);
    struct registry *registry = find_registry(host);
    for (struct callback *c = registry ? registry->callbacks : NULL; c && !found;
         c = c->next)
        if (c->is_registered && strcmp(c->function->id, id) == 0)
            found = c;
    pthread_mutex_unlock(&lock);
    return found;
}

// Adds the callback to the host's list, which owns the callback from then on.
static void put_callback(const tn_host *host, struct callback *callback)
{
    pthread_mutex_lock(&lock);
    struct registry *registry = find_registry(host);
    callback->next = registry->callbacks;
    registry->callbacks = callback;
    pthread_mutex_unlock(&lock);
}

// --- making ----------------------------------------------------------------------------

// Splits an id such as "app.clip3/1" into pack, name and revision. False: not an id.
static bool split_id(const char *id, char pack[64], char name[64], int *out_revision)
{
    const char *slash = strchr(id, '/'), *point = slash;
    while (point && point > id && *point != '.')
        point--;
    if (!point || point == id || point - id >= 64 || slash - point > 63)
        return false;
    snprintf(pack, 64, "%.*s", (int)(point - id), id);
    snprintf(name, 64, "%.*s", (int)(slash - point - 1), point + 1);
    size_t digits = strspn(slash + 1, "0123456789");
    *out_revision = digits && digits < 5 && !slash[1 + digits] ? atoi(slash + 1) : 0;
    return *out_revision >= 1;
}

static tn_status read_callback(struct callback *callback, const tn_callback *given,
                               struct problem *problem)
{
    char pack[64], name[64];
    int revision = 0;
    if (!split_id(given->primitive, pack, name, &revision))
        return problem_set(problem, TN_ERR_ARGUMENT,
                           "the primitive's id is '%.60s', expected PACK.NAME/REVISION",
                           given->primitive);
    json_t *json = signature_parse(given->signature, problem);
    if (!json)
        return problem->status;
    if (json_object_set_new(json, "name", json_string(name)) ||
        json_object_set_new(json, "revision", json_integer(revision)) ||
        json_object_set_new(json, "thread_safe",
                            json_boolean(!(given->flags & TN_CALLBACK_SERIAL))))
        problem_set(problem, TN_ERR_MEMORY, "out of memory");
    struct json_reader reader = {&callback->pack.arena, problem, "", NULL, 0};
    struct field root = {NULL, NULL, 0, json};
    callback->function = reader_alloc(&reader, sizeof(*callback->function));
    callback->pack.functions = reader_alloc(&reader, sizeof(*callback->pack.functions));
    if (callback->pack.functions && callback->function) {
        callback->pack.functions[0] = callback->function;
        callback->pack.num_functions = 1;
        callback->function->pack = &callback->pack;
        read_function(&reader, &root, pack, NULL, callback->function);
    }
    json_decref(json);
    const struct rules *rules =
        problem->status == TN_OK ? closures_make(callback->function, problem) : NULL;
    return rules ? function_bind(callback->function, rules, problem) : problem->status;
}

static void set_function(struct callback *callback, const tn_callback *given)
{
    void *address;
    memcpy(&address, &given->function, sizeof(address));
    callback->function->user = given->user;
    atomic_store(&callback->function->variants[0].address, address);
    callback->is_removed = false;
}

static tn_status make_callback(const tn_callback *given, struct callback **out,
                               struct problem *problem)
{
    struct callback *callback = calloc(1, sizeof(*callback));
    if (!callback || !(callback->signature = strdup(given->signature))) {
        free(callback);
        return problem_set(problem, TN_ERR_MEMORY, "out of memory");
    }
    pack_init(&callback->pack, NULL, 0);
    pthread_rwlock_init(&callback->lock, NULL);
    callback->flags = given->flags;
    tn_status status = read_callback(callback, given, problem);
    if (status != TN_OK) {
        callback_destroy(callback);
        return status;
    }
    callback->function->callback = callback;
    set_function(callback, given);
    *out = callback;
    return TN_OK;
}

static tn_status ffi_callback_check_given(const tn_host *host, const tn_callback *given)
{
    const char *missing = !given                                 ? "the callback"
                          : !given->primitive                    ? "primitive"
                          : !given->signature                    ? "signature"
                          : given->function == (void (*)(void))0 ? "function"
                                                                 : NULL;
    if (missing)
        return host->fail(host, TN_ERR_ARGUMENT, "callback: %s is NULL", missing);
    if (given->flags & ~(uint32_t)TN_CALLBACK_SERIAL)
        return host->fail(host, TN_ERR_ARGUMENT, "callback %s: unknown flags 0x%x",
                          given->primitive, given->flags);
    return TN_OK;
}

// --- registering and removing ----------------------------------------------------------

const tn_host_callbacks *callbacks_of(const tn_host *host)
{
    const tn_host_callbacks *service =
        host->query ? host->query(host, TN_HOST_CALLBACKS) : NULL;
    return TN_HAS(service, is_inside) ? service : NULL;
}

// Adding a callback again and removing one wait until no call of the callback runs. A
// thread inside a callback of the runtime would wait for its own call, so both fail there.
static tn_status check_outside(const tn_host *host, const char *id)
{
    const tn_host_callbacks *service = callbacks_of(host);
    if (!service || !service->is_inside(host))
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT,
                      "callback %s: a callback changes one of the runtime that called it, "
                      "which would wait for itself",
                      id);
}

// Gives a removed callback its function back; the core still has its primitive.
static tn_status ffi_callback_revive(const tn_host *host, struct callback *callback,
                                     const tn_callback *given)
{
    tn_status status = check_outside(host, given->primitive);
    if (status != TN_OK)
        return status;
    pthread_rwlock_wrlock(&callback->lock);
    if (!callback->is_removed)
        status = TN_ERR_REFUSED;
    else if (strcmp(callback->signature, given->signature) != 0 ||
             callback->flags != given->flags)
        status = TN_ERR_ARGUMENT;
    else
        set_function(callback, given);
    pthread_rwlock_unlock(&callback->lock);
    if (status == TN_ERR_REFUSED)
        return host->fail(host, status,
                          "callback %s is registered already: remove it first",
                          given->primitive);
    if (status != TN_OK)
        return host->fail(host, status,
                          "callback %s: got \"%.100s\", expected the signature and flags "
                          "that it had before, \"%.100s\": or choose another revision",
                          given->primitive, given->signature, callback->signature);
    return TN_OK;
}

tn_status callback_add(const tn_host *host, const tn_callback *given)
{
    struct problem problem = {0};
    struct callback *callback = NULL;
    const tn_host_primitives *service = host->query(host, TN_HOST_PRIMITIVES);
    tn_status status = ffi_callback_check_given(host, given);
    if (status != TN_OK)
        return status;
    if (!TN_HAS(service, add))
        return host->fail(host, TN_ERR_UNSUPPORTED,
                          "this host registers no primitives while running");
    struct callback *known = find_callback(host, given->primitive);
    if (known)
        return ffi_callback_revive(host, known, given);
    status = make_callback(given, &callback, &problem);
    if (status != TN_OK)
        return host->fail(host, status, "callback %s: %s", given->primitive, problem.text);
    // No lock is held here, so another thread may register the same id first. The core then
    // refuses this callback, which stays in the list with is_registered false.
    const tn_kernel *kernel = &callback->function->kernel;
    status = service->add(host, &callback->function->primitive, &kernel, 1);
    callback->is_registered = status == TN_OK;
    put_callback(host, callback);
    return status;
}

tn_status callback_remove(const tn_host *host, const char *id)
{
    struct callback *callback = id ? find_callback(host, id) : NULL;
    bool was_there = false;
    if (callback) {
        tn_status status = check_outside(host, id);
        if (status != TN_OK)
            return status;
        pthread_rwlock_wrlock(&callback->lock);
        was_there = !callback->is_removed;
        callback->is_removed = true;
        pthread_rwlock_unlock(&callback->lock);
    }
    return was_there ? TN_OK
                     : host->fail(host, TN_ERR_NOT_FOUND, "no callback '%s' is registered",
                                  id ? id : "NULL");
}

tn_status callback_call(struct ffi_function *function, const tn_cpu_call *call)
{
    struct callback *callback = function->callback;
    pthread_rwlock_rdlock(&callback->lock);
    tn_status status =
        callback->is_removed
            ? call->host->fail(call->host, TN_ERR_NOT_FOUND,
                               "the callback %s was removed: add it again", function->id)
            : function_call(function, call);
    pthread_rwlock_unlock(&callback->lock);
    return status;
}
