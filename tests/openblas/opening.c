// SPDX-License-Identifier: MIT
// OpenBLAS as it is opened on processors that are not this one: CPUID is made to fault, and
// answered as another model does. Each case is a process of its own.
#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "check.h"
#include <tenon/plugin.h>
#include "openblas/openblas.h"
#include "openblas/processor.h"

#define LIBRARY "libopenblas.so.0"

// --- another processor -----------------------------------------------------------------

#if defined(__x86_64__)
#include <cpuid.h>

#define ARCH_SET_CPUID 0x1012

static struct {
    const char *vendor;
    uint32_t signature;     // leaf 1's eax
    uint32_t without_leaf7; // bits of ebx that are hidden
} guise;

static bool set_faulting(bool faults)
{
    return syscall(SYS_arch_prctl, ARCH_SET_CPUID, !faults) == 0;
}

static void answer(uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
    set_faulting(false);
    __cpuid_count(leaf, subleaf, r[0], r[1], r[2], r[3]);
    set_faulting(true);
    if (leaf == 0) {
        memcpy(&r[1], guise.vendor, 4);
        memcpy(&r[3], guise.vendor + 4, 4);
        memcpy(&r[2], guise.vendor + 8, 4);
    } else if (leaf == 1) {
        r[0] = guise.signature;
    } else if (leaf == 7 && subleaf == 0) {
        r[1] &= ~guise.without_leaf7;
    } else if (leaf == 7 && guise.without_leaf7) {
        r[0] = 0; // AVX-512 BF16 goes with the rest
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)(uintptr_t)g[REG_RIP];
    (void)number, (void)info;
    if (code[0] != 0x0f || code[1] != 0xa2)
        _exit(3);
    uint32_t r[4];
    answer((uint32_t)g[REG_RAX], (uint32_t)g[REG_RCX], r);
    g[REG_RAX] = r[0], g[REG_RBX] = r[1], g[REG_RCX] = r[2], g[REG_RDX] = r[3];
    g[REG_RIP] += 2;
}

static bool become(const char *vendor, uint32_t signature, uint32_t without_leaf7)
{
    const struct sigaction action = {.sa_sigaction = on_fault,
                                     .sa_flags = SA_SIGINFO | SA_NODEFER};
    guise.vendor = vendor;
    guise.signature = signature;
    guise.without_leaf7 = without_leaf7;
    return sigaction(SIGSEGV, &action, NULL) == 0 && set_faulting(true);
}
#define AVX512_BITS 0xd0030000u
#define AVX2_BIT 0x20u
#else
static bool become(const char *vendor, uint32_t signature, uint32_t without_leaf7)
{
    (void)vendor, (void)signature, (void)without_leaf7;
    return false;
}
#define AVX512_BITS 0u
#define AVX2_BIT 0u
#endif

// --- cases -----------------------------------------------------------------------------

enum { RIGHT = 0, WRONG = 1, CANNOT = 77 };

struct guest {
    const char *what, *vendor;
    uint32_t signature, without;
    enum blas_level level; // that OpenBLAS is to have
};

static const struct guest guests[] = {
    {"Emerald Rapids", "GenuineIntel", 0xc06f2, 0, BLAS_AVX512},
    {"Emerald Rapids without AVX-512", "GenuineIntel", 0xc06f2, AVX512_BITS, BLAS_AVX2},
    {"Emerald Rapids without AVX2", "GenuineIntel", 0xc06f2, AVX512_BITS | AVX2_BIT,
     BLAS_AVX},
    {"Sapphire Rapids", "GenuineIntel", 0x806f8, 0, BLAS_AVX512},
    {"Granite Rapids", "GenuineIntel", 0xa06d1, 0, BLAS_AVX512},
    {"Raptor Lake", "GenuineIntel", 0xb06f2, AVX512_BITS, BLAS_AVX2},
    {"Arrow Lake", "GenuineIntel", 0xc0662, AVX512_BITS, BLAS_AVX2},
    {"Diamond Rapids", "GenuineIntel", 0x400f10, 0, BLAS_AVX512},
    {"Zen 3", "AuthenticAMD", 0xa20f10, AVX512_BITS, BLAS_AVX2},
    {"Zen 2 without AVX2", "AuthenticAMD", 0x830f10, AVX512_BITS | AVX2_BIT, BLAS_AVX},
    {"Zen 4", "AuthenticAMD", 0xa10f11, 0, BLAS_AVX512},
    {"Zen 5", "AuthenticAMD", 0xb40f40, 0, BLAS_AVX512},
    {"Zhaoxin", "  Shanghai  ", 0x70650, AVX512_BITS, BLAS_AVX2},
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int in_child(int (*body)(const void *), const void *argument)
{
    pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0)
        _exit(body(argument));
    int status = 0;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static bool has_all_instructions(void)
{
    struct processor here = processor_read();
    return processor_level(&here) == BLAS_AVX512;
}

static int runs_kernels_of_its_level(const void *argument)
{
    const struct guest *guest = argument;
    struct openblas_advice advice = {0};
    if (!become(guest->vendor, guest->signature, guest->without))
        return CANNOT;
    if (!openblas_dlopen(LIBRARY))
        return CANNOT;
    const struct openblas *blas = openblas_find();
    if (!blas || !blas->chooses_at_start)
        return CANNOT;
    bool slow = openblas_is_slow(blas, &advice);
    if (blas_core_level(blas->core) == guest->level && !slow && blas->get_threads() == 1)
        return RIGHT;
    fprintf(stderr, "# %s: %s kernels; %s\n", guest->what, blas->core, advice.warning);
    return WRONG;
}

// One case among others: what cannot be shown is told, and the others go on.
static bool is_right(const char *what, int code)
{
    if (code == CANNOT)
        fprintf(stderr, "# %s: cannot be shown here\n", what);
    else if (code != RIGHT)
        cr_fatal("%s: exit %d", what, code);
    return code == RIGHT;
}

static void clear_environment(void)
{
    unsetenv("OPENBLAS_CORETYPE");
    unsetenv("OPENBLAS_NUM_THREADS");
}

TestSuite(opening, .init = clear_environment);

Test(opening, each_processor_runs_kernels_of_its_level)
{
    // Without: an older kernel, no faulting CPUID, another build of OpenBLAS.
    bool can = is_right("other processors", has_all_instructions() ? RIGHT : CANNOT);
    for (size_t i = 0; i < COUNT(guests) && can; i++)
        can = is_right(guests[i].what, in_child(runs_kernels_of_its_level, &guests[i]));
}

static int warns(const char *expected)
{
    struct openblas_advice advice = {0};
    if (!openblas_dlopen(LIBRARY) || !openblas_find()->chooses_at_start)
        return CANNOT;
    if (openblas_is_slow(openblas_find(), &advice) && strstr(advice.remedy, expected))
        return RIGHT;
    fprintf(stderr, "# %s: %s\n", advice.warning, advice.remedy);
    return WRONG;
}

static int the_users_choice_counts(const void *argument)
{
    (void)argument;
    setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    return warns("unset OPENBLAS_CORETYPE");
}

static int an_earlier_opening_counts(const void *argument)
{
    (void)argument;
    setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    if (!dlopen(LIBRARY, RTLD_NOW))
        return CANNOT;
    unsetenv("OPENBLAS_CORETYPE");
    return warns("start the program with OPENBLAS_CORETYPE=");
}

static int leaves_the_environment_as_it_was(const void *argument)
{
    (void)argument;
    char **before = environ;
    if (!openblas_dlopen(LIBRARY))
        return CANNOT;
    return environ == before && !getenv("OPENBLAS_NUM_THREADS") ? RIGHT : WRONG;
}

static int takes_the_users_number_of_threads(const void *argument)
{
    (void)argument;
    setenv("OPENBLAS_NUM_THREADS", "2", 1);
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2 || !openblas_dlopen(LIBRARY))
        return CANNOT;
    return openblas_find()->get_threads() == 2 ? RIGHT : WRONG;
}

// Room for the library alone. What the user asked for would try for ever.
static int runs_on_one_thread_without_room(const void *argument)
{
    (void)argument;
    setenv("OPENBLAS_NUM_THREADS", "2", 1);
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%ld", &pages) != 1)
        return CANNOT;
    fclose(file);
    rlim_t bytes = (rlim_t)pages * 4096 + (200 << 20);
    if (setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}))
        return CANNOT;
    if (!openblas_dlopen(LIBRARY))
        return CANNOT;
    char message[OPENBLAS_MESSAGE] = "";
    if (openblas_find()->get_threads() != 1 || openblas_reserve(1, message) != TN_OK)
        return WRONG;
    if (openblas_reserve(1, message) != TN_ERR_MEMORY || !strstr(message, "ulimit -v"))
        return WRONG;
    openblas_release(1);
    return openblas_reserve(1, message) == TN_OK ? RIGHT : WRONG;
}

static const struct {
    const char *what;
    int (*body)(const void *);
    bool limits_memory; // which sanitizers do not survive
} cases[] = {
    {"the user's choice counts", the_users_choice_counts, false},
    {"an earlier opening counts", an_earlier_opening_counts, false},
    {"leaves the environment as it was", leaves_the_environment_as_it_was, false},
    {"takes the user's number of threads", takes_the_users_number_of_threads, false},
    {"runs on one thread without room", runs_on_one_thread_without_room, true},
};

Test(opening, opening_does_what_was_asked)
{
    bool sanitized = TN_SANITIZER_HERE != TN_SANITIZER_NONE;
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (cases[i].limits_memory && sanitized)
            continue;
        is_right(cases[i].what, in_child(cases[i].body, NULL));
    }
}
