// SPDX-License-Identifier: MIT
// The end of a runtime: closing one that is in use, and what a child of fork() may do.
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <tenon/plugin.h>
#include <tenon/retain.h>
#include "../support/common.h"

#define SECONDS 60 // that a child may take: sanitizers are slow, hanging is for ever

static double product_item(tn_runtime *rt, int64_t n)
{
    tn_scope *s = tn_scope_open(rt);
    if (!s)
        return NAN;
    tn_array *x = ramp(s, n, n, 1, 0);
    double item = tn_item(s, un(s, "base.sum", bin(s, "base.matmul", x, x)));
    tn_scope_close(s);
    return item;
}

static void is_right(tn_runtime *rt)
{
    const double n = 64;
    cr_assert(product_item(rt, 64) == n * n * n);
}

// --- closing ---------------------------------------------------------------------------

static tn_status twice(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                       tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)num_inputs, (void)num_outputs, (void)user;
    outputs[0] = bin(scope, "base.add", inputs[0], inputs[0]);
    return tn_scope_status(scope);
}

struct used {
    tn_scope *scopes[2];
    tn_array *kept;
    tn_function *function;
};

static void refused(tn_runtime *rt, const char *count)
{
    check_status(tn_runtime_close(rt), TN_ERR_ARGUMENT);
    check_says(tn_last_error(), count);
    is_right(rt);
}

Test(life, a_runtime_in_use_is_not_closed)
{
    tn_runtime *rt = open_with((const char *const[]){"TENON_LOG=off", NULL});
    struct used used = {.scopes = {tn_scope_open(rt), tn_scope_open(rt)}};
    tn_scope *s = used.scopes[0];
    used.kept = tn_keep(s, ramp(s, 2, 2, 1, 1));
    must(NULL, tn_function_create(rt, twice, NULL, NULL, &used.function));
    tn_array *out = NULL;
    must(s, tn_function_call(used.function, s, &used.kept, 1, &out, 1));
    refused(rt, "in use by 2 scopes, 1 kept or retained array, 1 function:");
    tn_scope_close(used.scopes[1]);
    refused(rt, "in use by 1 scope, 1 kept or retained array, 1 function:");
    tn_scope_close(used.scopes[0]);
    refused(rt, "in use by 1 kept or retained array, 1 function:");
    tn_function_destroy(used.function);
    refused(rt, "in use by 1 kept or retained array:");
    tn_release(used.kept);
    check_status(tn_runtime_close(rt), TN_OK);
    cr_assert(eq(str, tn_last_error(), ""));
    check_status(tn_runtime_close(NULL), TN_OK);
}

struct worker {
    tn_runtime *runtime;
    _Atomic bool stop;
    _Atomic int rounds;
    bool wrong;
};

static void *evaluate(void *argument)
{
    struct worker *w = argument;
    while (!atomic_load(&w->stop)) {
        w->wrong |= product_item(w->runtime, 96) != 96.0 * 96 * 96;
        atomic_fetch_add(&w->rounds, 1);
    }
    return NULL;
}

static void start(struct worker *w, pthread_t *thread)
{
    cr_assert(eq(int, pthread_create(thread, NULL, evaluate, w), 0));
    while (atomic_load(&w->rounds) == 0)
        usleep(100);
}

static void stop(struct worker *w, pthread_t thread)
{
    atomic_store(&w->stop, true);
    pthread_join(thread, NULL);
    cr_assert(not(w->wrong));
}

Test(life, a_runtime_that_another_thread_uses_is_not_closed)
{
    struct worker w = {.runtime = open_with((const char *const[]){"TENON_LOG=off", NULL})};
    pthread_t thread;
    tn_scope *held = tn_scope_open(w.runtime); // so that each try is one in use
    start(&w, &thread);
    for (int i = 0; i < 200; i++)
        check_status(tn_runtime_close(w.runtime), TN_ERR_ARGUMENT);
    stop(&w, thread);
    tn_scope_close(held);
    check_status(tn_runtime_close(w.runtime), TN_OK);
}

// --- fork ------------------------------------------------------------------------------

// What a child inherits.
struct family {
    tn_runtime *runtime;
    tn_scope *scope;
    tn_array *x, *late; // evaluated; perhaps on its way still
    tn_array *kept, *retained;
    tn_function *function;
};

static struct family make_family(void)
{
    struct family f = {.runtime = open_with(NULL)};
    f.scope = tn_scope_open(f.runtime);
    f.x = ramp(f.scope, 512, 512, 1, 0);
    must(f.scope, tn_eval_n(f.scope, &f.x, 1));
    f.kept = tn_keep(f.scope, f.x);
    must(NULL, tn_function_create(f.runtime, twice, NULL, NULL, &f.function));
    tn_array *out = NULL;
    must(f.scope, tn_function_call(f.function, f.scope, &f.kept, 1, &out, 1));
    is_right(f.runtime); // the pool and OpenBLAS are there
    f.late = bin(f.scope, "base.matmul", f.x, f.x);
    f.retained = tn_retain(f.scope, un(f.scope, "base.exp", f.late));
    return f;
}

static tn_status end_family(struct family *f)
{
    tn_function_destroy(f->function);
    tn_release(f->kept);
    tn_scope_close(f->scope);
    tn_release(f->retained);
    return tn_runtime_close(f->runtime);
}

// Each returns 0 when all was right, else the line of what was not. In a child: no asserts.
#define CHECK(what)                                                                        \
    if (!(what))                                                                           \
    return __LINE__

static bool says_fork(const char *text)
{
    return strstr(text, "before fork()") != NULL;
}

static int closes(struct family *f)
{
    CHECK(end_family(f) == TN_OK);
    return 0;
}

static int closes_the_runtime_alone(struct family *f)
{
    CHECK(tn_runtime_close(f->runtime) == TN_OK);
    return 0;
}

// ThreadSanitizer cannot start threads in the child of a process that has some.
static const char *const own_variables[] = {
    TN_SANITIZER_HERE == TN_SANITIZER_THREAD ? "TENON_THREADS=1" : "TENON_LOG=warn", NULL};

// Drivers of Vulkan do not survive fork(): a child is told to exec, each time it tries.
static bool needs_exec(void)
{
    const char *backend = getenv("TENON_BACKEND");
    return backend && strncmp(backend, "vulkan", 6) == 0;
}

static bool says_exec(const char *text)
{
    return says_fork(text) && strstr(text, "exec a program of its own") != NULL;
}

static int opens_its_own(struct family *f)
{
    tn_runtime *own;
    const tn_runtime_options options = {.struct_size = sizeof(options),
                                        .variables = own_variables};
    CHECK(tn_runtime_open(&options, &own) == TN_OK);
    for (int i = 0; i < 3; i++) {
        double item = product_item(own, 256);
        CHECK(needs_exec() ? isnan(item) && says_exec(tn_last_error())
                           : item == 256.0 * 256 * 256);
    }
    CHECK(tn_runtime_close(own) == TN_OK);
    CHECK(end_family(f) == TN_OK);
    return 0;
}

static int forks_again(struct family *f)
{
    pid_t child = fork();
    if (child == 0)
        _exit(opens_its_own(f) ? 1 : 0);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return closes(f);
}

static int is_refused(struct family *f)
{
    const void *table;
    const tn_host *host;
    tn_array *out = NULL;
    uint64_t count = 0;
    float data[512 * 512];
    CHECK(!tn_scope_open(f->runtime) && says_fork(tn_last_error()));
    CHECK(tn_devices(f->runtime, NULL, &count) != TN_OK && says_fork(tn_last_error()));
    CHECK(tn_plugin_load(f->runtime, "org.tenon.nn") != TN_OK &&
          says_fork(tn_last_error()));
    CHECK(tn_interface_find(f->runtime, "tn.ffi/1", &table, &host) != TN_OK &&
          says_fork(tn_last_error()));
    CHECK(!tn_primitive_find(f->runtime, "base.add") && says_fork(tn_last_error()));
    CHECK(!tn_primitive_names(f->runtime)[0]);
    CHECK(!tn_retain(NULL, f->retained) && says_fork(tn_last_error()));
    CHECK(tn_scope_status(f->scope) == TN_OK);
    struct {
        const char *what;
        tn_status status;
    } calls[] = {
        {"op", un(f->scope, "base.exp", f->x) ? TN_OK : tn_scope_status(f->scope)},
        {"", (tn_scope_clear_error(f->scope), TN_ERR_ARGUMENT)},
        {"eval", tn_eval_n(f->scope, &f->late, 1)},
        {"", (tn_scope_clear_error(f->scope), TN_ERR_ARGUMENT)},
        {"async", tn_eval_async_n(f->scope, &f->late, 1)},
        {"", (tn_scope_clear_error(f->scope), TN_ERR_ARGUMENT)},
        {"read", tn_read(f->scope, f->x, data, sizeof(data))},
        {"", (tn_scope_clear_error(f->scope), TN_ERR_ARGUMENT)},
        {"call", tn_function_call(f->function, f->scope, &f->kept, 1, &out, 1)},
    };
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        CHECK(calls[i].status == TN_ERR_ARGUMENT);
    CHECK(says_fork(tn_scope_error(f->scope)));
    tn_scope_clear_error(f->scope);
    CHECK(!tn_data(f->scope, f->x) && says_fork(tn_scope_error(f->scope)));
    tn_scope_clear_error(f->scope);
    CHECK(!tn_from_data(f->scope, TN_F32, TN_SHAPE(1), data) &&
          says_fork(tn_scope_error(f->scope)));
    return closes(f);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void child_does(const char *what, int (*body)(struct family *), struct family *f)
{
    pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0)
        _exit(body(f) ? 1 : 0);
    int status = 0;
    double end = now() + SECONDS;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (now() > end) {
            kill(child, SIGKILL);
            waitpid(child, NULL, 0);
            cr_fatal("a child that %s did not end in %d s", what, SECONDS);
        }
        usleep(500);
    }
    if (status != 0)
        cr_fatal("a child that %s: status 0x%x", what, status);
}

static const struct {
    const char *what;
    int (*body)(struct family *);
} children[] = {
    {"closes what it inherited", closes},
    {"closes the runtime alone", closes_the_runtime_alone},
    {"opens a runtime of its own", opens_its_own},
    {"forks again", forks_again},
    {"calls what it may not", is_refused},
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

Test(life, a_child_of_an_idle_runtime_ends)
{
    struct family f = make_family();
    for (size_t i = 0; i < COUNT(children); i++)
        child_does(children[i].what, children[i].body, &f);
    must(f.scope, tn_eval_n(f.scope, &f.late, 1)); // the parent goes on
    check_status(end_family(&f), TN_OK);
}

// Queued work, and another thread that evaluates and opens runtimes all the while.
// The address sanitizer's allocators of gcc 12 and clang 14 have no fork handler: a child
// inherits the locks of other threads, and may hang in malloc.
#ifdef __has_feature
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
#define ALLOCATOR_SURVIVES_FORK false
#else
#define ALLOCATOR_SURVIVES_FORK true
#endif

Test(life, a_child_of_a_busy_runtime_ends)
{
    if (!ALLOCATOR_SURVIVES_FORK)
        cr_skip(
            "the address sanitizer's allocator does not survive fork() of a busy process");
    struct family f = make_family();
    struct worker w = {.runtime = f.runtime};
    pthread_t thread;
    start(&w, &thread);
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < COUNT(children); i++) {
            tn_array *late = bin(f.scope, "base.matmul", f.x, f.x);
            must(f.scope, tn_eval_async_n(f.scope, &late, 1));
            child_does(children[i].what, children[i].body, &f);
        }
    stop(&w, thread);
    check_status(end_family(&f), TN_OK);
}
