// SPDX-License-Identifier: MIT
// Tests, checks and the generator of the conformance suite; its command line.
//
//   tenon-suite BACKEND [--with BACKENDS] [--seed N] [--only TEXT] [--golden FILE] [--share
//   N]
//               [--partial] [--verbose]
//
// --with: backends behind it, which run what it cannot.
// --partial: what the backend says it cannot do is no failure.
#include "cases.h"
#include <tenon/backend.h>
#include <fnmatch.h>
#include <stdarg.h>

// --- tests and checks -------------------------------------------------------------------

uint64_t random_bits(struct suite *s)
{
    return numbers_next(&s->random);
}

double random_in(struct suite *s, double lo, double hi)
{
    return numbers_between(&s->random, lo, hi);
}

bool test_begin(struct suite *s, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(s->name, sizeof(s->name), format, list);
    va_end(list);
    if (s->only && !strstr(s->name, s->only))
        return false;
    s->checks = s->failures = s->excepted = s->unexpected = s->unsupported = 0;
    s->random = numbers_named(s->seed, s->name);
    return true;
}

void test_end(struct suite *s)
{
    bool passed = s->failures == 0 && s->unexpected == 0 && s->checks > 0;
    s->tests++;
    s->failed_tests += !passed;
    if (s->checks == 0)
        printf("# %s: no check was made\n", s->name);
    printf("%s %u - %s (%u checks", passed ? "ok" : "not ok", s->tests, s->name, s->checks);
    if (s->excepted)
        printf(", %u excepted", s->excepted);
    if (s->unsupported)
        printf(", %u not on this backend", s->unsupported);
    printf(")%s\n",
           s->checks && s->unsupported == s->checks ? " # SKIP not on this backend" : "");
    fflush(stdout);
}

void test_skip(struct suite *s, const char *name, const char *reason)
{
    s->tests++;
    printf("ok %u - %s # SKIP %s\n", s->tests, name, reason);
}

void check(struct suite *s, const char *failure, const char *format, ...)
{
    char name[256], full[512];
    va_list list;
    va_start(list, format);
    vsnprintf(name, sizeof(name), format, list);
    va_end(list);
    snprintf(full, sizeof(full), "%s/%s", s->name, name);
    const char *reason = exception_of(s->backend, full);
    s->checks++;
    bool unsupported = read_was_unsupported() && failure && s->partial;
    if (s->verbose)
        printf("# %s: %s\n", full, failure ? failure : "passed");
    if (unsupported) {
        s->unsupported++;
        return;
    }
    if (failure && (reason || driver_exception_of(s->backend, full))) {
        s->excepted++;
        return;
    }
    if (reason) {
        s->unexpected++;
        printf("# %s passed, but is excepted: %s\n", full, reason);
    }
    if (failure && s->failures++ < 8)
        printf("# %s: %s\n", full, failure);
}

// --- coverage ---------------------------------------------------------------------------

enum { MAX_COVERED = 1024 };
static char covered[MAX_COVERED][64];
static uint32_t num_covered;

void cover(const char *primitive)
{
    for (uint32_t i = 0; i < num_covered; i++)
        if (strcmp(covered[i], primitive) == 0)
            return;
    if (num_covered < MAX_COVERED)
        snprintf(covered[num_covered++], sizeof(covered[0]), "%s", primitive);
}

static bool is_covered(const char *id)
{
    for (uint32_t i = 0; i < num_covered; i++)
        if (case_is_of(covered[i], id))
            return true;
    return false;
}

bool takes_graphs(const tn_primitive *record)
{
    const tn_attr_table *table = &record->attrs;
    for (uint32_t i = 0; i < table->num_fields; i++) {
        const tn_attr_field *field =
            (const void *)((const char *)table->fields + (uint64_t)i * table->field_size);
        if (field->kind == TN_ATTR_GRAPH)
            return true;
    }
    return false;
}

void coverage_test(struct suite *s)
{
    if (s->only || !test_begin(s, "every primitive has a test"))
        return;
    cover("base.print");                   // for its effect: tests/tools/eval.py
    cover("nn.mean_pool2d");               // avg_pool2d is made of it
    cover("nn.mean_pool2d_input");         // its derivative
    cover("nn.bag_sum");                   // embedding_bag is made of it
    cover("nn.resample2d");                // interpolate is made of it
    cover("nn.resample2d_input");          // its derivative
    cover("nn.recurrence");                // lstm, gru and rnn are made of it
    cover("nn.recurrence_steps");          // likewise, with what derivatives need
    cover("nn.recurrence_grad");           // their derivative
    cover("nn.attention_with_sinks_grad"); // tests/python
    const char *const *ids = tn_primitive_names(s->runtime);
    for (uint32_t i = 0; ids && ids[i]; i++) {
        bool ours = strncmp(ids[i], "base.", 5) == 0 || strncmp(ids[i], "nn.", 3) == 0;
        if (ours && !takes_graphs(tn_primitive_find(s->runtime, ids[i])))
            check(s, is_covered(ids[i]) ? NULL : "has no test", "%s", ids[i]);
    }
    test_end(s);
}

// --- command line -----------------------------------------------------------------------

static int usage(void)
{
    fprintf(stderr, "usage: tenon-suite BACKEND [--with BACKENDS] [--seed N] [--only TEXT] "
                    "[--golden FILE] "
                    "[--share N] [--partial] [--verbose]\n");
    return 2;
}

// How many devices the backend has here.
static int count_devices(struct suite *s)
{
    uint64_t count = 0;
    if (tn_devices(s->runtime, NULL, &count))
        return 0;
    tn_device_summary *all = calloc(count ? count : 1, sizeof(*all));
    if (!all)
        return 0;
    for (uint64_t i = 0; i < count; i++)
        all[i].struct_size = sizeof(*all);
    int found = 0;
    if (tn_devices(s->runtime, all, &count) == TN_OK)
        for (uint64_t i = 0; i < count; i++) {
            if (strcmp(all[i].backend, s->backend) != 0)
                continue;
            if (all[i].reason && all[i].reason[0])
                printf("# %s: %s\n", s->backend, all[i].reason);
            else if (!found++) { // the first one is what TENON_BACKEND names
                s->is_software = all[i].flags & TN_DEVICE_SOFTWARE;
                s->is_cpu = all[i].flags & TN_DEVICE_HOST_MEMORY && !s->is_software;
            }
        }
    free(all);
    return found;
}

// Whether the device makes 0 of a subnormal operand or result: a GPU may, and what it says
// of itself is of one kind of shader. Halves of numbers, and subnormal ones times 1 and
// plus 0.
static bool flushes_subnormals(struct suite *s)
{
    static const struct {
        const char *name;
        float x, y;
    } trials[] = {{"multiply", 0x1p-126f, 0.5f}, {"multiply", 0x1.8p-130f, 1},
                  {"add", -0x1p-149f, 0},        {"maximum", 0x1p-140f, 0},
                  {"divide", 0x1.8p-120f, 1024}, {"subtract", 0x1.8p-126f, 0x1p-126f}};
    bool flushes = false;
    tn_scope *scope = tn_scope_open(s->runtime);
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
        float got = 1;
        tn_array *in[] = {tn_from_data(scope, TN_F32, TN_SHAPE(1), &trials[i].x),
                          tn_from_data(scope, TN_F32, TN_SHAPE(1), &trials[i].y)};
        tn_array *out = tn_op(scope, trials[i].name, TN_IN(in[0], in[1]), TN_NO_ATTRS);
        if (tn_read(scope, out, &got, sizeof(got)) == TN_OK && got == 0)
            flushes = true;
    }
    tn_scope_close(scope);
    return flushes;
}

// `with`: backends behind the one that is tested, or NULL.
static int run(struct suite *s, const char *golden, const char *with)
{
    char variable[256];
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s%s%s", s->backend,
             with ? "," : "", with ? with : "");
    const char *variables[] = {variable, NULL};
    if (tn_runtime_open(&(tn_runtime_options){.variables = variables}, &s->runtime)) {
        printf("Bail out! %s\n", tn_last_error());
        return 1;
    }
    if (!count_devices(s)) {
        printf("1..0 # SKIP backend %s has no device here: %s\n", s->backend,
               tn_last_error());
        tn_runtime_close(s->runtime);
        return 0;
    }
    s->flushes = !s->is_cpu && flushes_subnormals(s);
    printf("# conformance %s --seed %llu\n", s->backend, (unsigned long long)s->seed);
    if (s->flushes)
        printf("# subnormal numbers of f32 are 0 on this device\n");
    elementwise_tests(s);
    hostile_tests(s);
    primitive_tests(s);
    random_tests(s);
    optimiser_tests(s);
    error_tests(s);
    gradient_tests(s);
    batching_tests(s);
    accuracy_tests(s);
    empty_tests(s);
    golden_tests(s, golden);
    coverage_test(s);
    printf("1..%u\n", s->tests);
    if (s->failed_tests)
        printf("# %u of %u tests failed; replay: --seed %llu\n", s->failed_tests, s->tests,
               (unsigned long long)s->seed);
    tn_runtime_close(s->runtime);
    return s->failed_tests != 0;
}

int main(int argc, char **argv)
{
    struct suite s = {.seed = 1, .share = 1};
    const char *golden = NULL, *with = NULL;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--seed") == 0 && more)
            s.seed = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--only") == 0 && more)
            s.only = argv[++i];
        else if (strcmp(argv[i], "--with") == 0 && more)
            with = argv[++i];
        else if (strcmp(argv[i], "--golden") == 0 && more)
            golden = argv[++i];
        else if (strcmp(argv[i], "--share") == 0 && more)
            s.share = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--partial") == 0)
            s.partial = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            s.verbose = true;
        else if (argv[i][0] != '-' && !s.backend)
            s.backend = argv[i];
        else
            return usage();
    }
    if (!s.backend || s.share == 0)
        return usage();
    return run(&s, golden, with);
}
