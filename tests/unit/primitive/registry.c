// SPDX-License-Identifier: MIT
// The registry: what it refuses and says, how primitives are found, kernels' order of
// choice.
#include "check.h"
#include <pthread.h>
#include "base/fail.h"
#include "base/memory.h"
#include "expr/expr.h"
#include "attr/attrs.h"
#include "plugin/load/primitives.h"
#include "primitive/registry.h"

static tn_runtime runtime;

static void open_sets(void)
{
    runtime = (tn_runtime){0};
    check_status(expr_set_create(&runtime), TN_OK);
    check_status(prim_set_create(&runtime), TN_OK);
}

static void close_sets(void)
{
    prim_set_destroy(&runtime);
    expr_set_destroy(&runtime);
}

static const tn_input_info xy[] = {{.name = "x"}, {.name = "y"}};

static tn_primitive record(const char *id)
{
    return (tn_primitive){
        .struct_size = sizeof(tn_primitive), .id = id, TN_INPUTS(xy), .expr = "x + y"};
}

static void add(const char *id)
{
    tn_primitive r = record(id);
    check_status(prim_register(&runtime, NULL, &r), TN_OK);
}

static const char *found(const char *name)
{
    const struct prim *prim = NULL;
    return prim_find(&runtime, name, &prim) == TN_OK ? prim->record.id : fail_text();
}

TestSuite(registry, .init = open_sets, .fini = close_sets);

Test(registry, primitives_are_found_by_id_and_by_name)
{
    add("acme.axpby/1");
    add("acme.axpby/2");
    add("acme.other/1");
    cr_assert(eq(str, found("acme.axpby/1"), "acme.axpby/1"));
    cr_assert(eq(str, found("acme.axpby"), "acme.axpby/2"));
    cr_assert(eq(str, found("axpby"), "acme.axpby/2"));
    cr_assert(eq(str, found("axpby/1"), "acme.axpby/1"));
    add("acme.axpby/10"); // the newest now: earlier answers are forgotten
    cr_assert(eq(str, found("axpby"), "acme.axpby/10"));
    add("com.vendor.axpby/1");
    check_says(found("axpby"), "ambiguous, it may be: acme.axpby/1, ");
    cr_assert(eq(str, found("com.vendor.axpby"), "com.vendor.axpby/1"));
    check_says(found("acme.axpbi"), "did you mean 'acme.axpby");
    cr_assert(eq(str, (add("base.axpby/1"), found("axpby")), "base.axpby/1"));
    check_says(found(""), "unknown primitive");
}

// A revision may have any number of leading zeros.
Test(registry, texts_without_end_are_found_and_not_all_remembered)
{
    char text[2 * MAX_TEXTS];
    add("acme.axpby/1");
    for (int zeros = 1; zeros < MAX_TEXTS + 200; zeros++) {
        snprintf(text, sizeof(text), "axpby/%0*d", zeros, 1);
        cr_assert(eq(str, found(text), "acme.axpby/1"));
        cr_assert(eq(str, found(text), "acme.axpby/1"));
    }
    cr_assert(eq(uint, runtime.prims->num_texts, MAX_TEXTS));
    add("acme.axpby/2");
    cr_assert(eq(str, found("axpby"), "acme.axpby/2"));
    cr_assert(eq(uint, runtime.prims->num_texts, 1));
}

Test(registry, names_are_sorted_and_grow)
{
    add("b.two/1");
    const char *const *before = tn_primitive_names(&runtime);
    cr_assert(eq(str, before[0], "b.two/1"));
    cr_assert(eq(ptr, before[1], NULL));
    add("a.one/1");
    const char *const *after = tn_primitive_names(&runtime);
    cr_assert(eq(str, after[0], "a.one/1"));
    cr_assert(eq(str, after[1], "b.two/1"));
    cr_assert(eq(ptr, after[2], NULL));
    cr_assert(eq(str, before[0], "b.two/1")); // still there
    cr_assert(eq(ptr, tn_primitive_names(&runtime), after));
    cr_assert(eq(str, tn_primitive_find(&runtime, "one")->id, "a.one/1"));
    cr_assert(eq(ptr, tn_primitive_find(&runtime, "three"), NULL));
}

// --- records that are refused ----------------------------------------------------------

static void refused(const tn_primitive *r, const char *part)
{
    check_status(prim_register(&runtime, NULL, r), TN_ERR_REFUSED);
    check_says(fail_text(), part);
}

Test(registry, bad_ids_are_refused)
{
    static const char *const ids[] = {
        "axpby",   "acme.axpby", "acme.axpby/", "axpby/1",     "a.b/0",
        "a.b/01",  "a.b/1x",     "A.b/1",       ".b/1",        "a./1",
        "a b.c/1", "a.b/-1",     "a.b/1/2",     "a.b/9999999", ""};
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        tn_primitive r = record(ids[i]);
        refused(&r, "expected pack.name/revision");
    }
    tn_primitive r = record(NULL);
    refused(&r, "id is NULL");
}

Test(registry, a_second_registration_is_refused)
{
    add("a.b/1");
    tn_primitive r = record("a.b/1");
    refused(&r, "'a.b/1': the core has registered it already");
}

Test(registry, records_without_meaning_or_with_a_wrong_one_are_refused)
{
    tn_primitive r = record("a.b/1");
    r.expr = NULL;
    refused(&r, "it has no meaning");
    r = record("a.b/1");
    r.expr = "x + z";
    refused(&r, "unknown name 'z'");
    r.expr = "x, y";
    refused(&r, "expr has 2 outputs, the primitive 1");
    r = record("a.b/1");
    r.flags = TN_PRIM_OWN_TYPE;
    refused(&r, "infer is NULL");
    r.flags = TN_PRIM_VIEW;
    refused(&r, "TN_PRIM_VIEW needs");
    r.flags = 1u << 31;
    refused(&r, "unknown flags 0x80000000");
    r = record("a.b/1");
    r.role = TN_ROLE_SUM_TO;
    refused(&r, "needs an attribute `shape`");
    r.role = TN_ROLE_RESHAPE;
    refused(&r, "needs an attribute `shape`");
    r.role = TN_ROLE_TRANSPOSE;
    refused(&r, "role tn.transpose/1 needs an attribute `axes` of integers");
}

static tn_status count_outputs(const tn_infer *infer, uint64_t *out_count)
{
    (void)infer, (void)out_count;
    return TN_ERR_INTERNAL;
}

static tn_status infer_nothing(const tn_infer *infer, tn_type *types)
{
    (void)infer, (void)types;
    return TN_ERR_INTERNAL;
}

static tn_status compute_nothing(const tn_cpu_call *call)
{
    (void)call;
    return TN_ERR_INTERNAL;
}

Test(registry, bad_inputs_and_pairs_are_refused)
{
    static const tn_input_info same[] = {{.name = "x"}, {.name = "x"}};
    static const tn_input_info late[] = {{.name = "x", .flags = TN_INPUT_OPTIONAL},
                                         {.name = "y"}};
    static const tn_input_info many[] = {{.name = "x", .flags = TN_INPUT_VARIADIC},
                                         {.name = "y"}};
    static const tn_input_info unnamed[] = {{.name = "x"}, {.name = "2y"}};
    static const tn_output_info two[] = {{.name = "a"}, {.name = "b"}};
    static const tn_in_place own[] = {{.input = 0, .output = 0}};
    static const tn_in_place pair[] = {{.input = 2, .output = 0}};
    tn_primitive r = record("a.b/1");
    r.inputs = same;
    refused(&r, "two inputs are named 'x'");
    r.inputs = late;
    refused(&r, "expression needs all");
    r.inputs = many;
    refused(&r, "variadic but not the last");
    r.inputs = unnamed;
    refused(&r, "'2y', expected an identifier");
    r.inputs = NULL;
    refused(&r, "in no table");
    r = record("a.b/1");
    r.in_place = pair;
    r.in_place_size = sizeof(pair[0]);
    r.num_in_place = 1;
    refused(&r, "in_place[0]: input 2 and output 0, expected below 2 and 1");
    static const tn_in_place update[] = {{.update = 3}}, newer[] = {{.reserved = 1}};
    r.in_place = update;
    refused(&r, "in_place[0]: update 3 and reserved 0, expected at most 2 and 0");
    r.in_place = newer;
    refused(&r, "in_place[0]: update 0 and reserved 1, expected at most 2 and 0");
    r = record("a.b/1");
    r.num_outputs = 9;
    refused(&r, "outputs: got 9, expected at most 8");
    r = record("a.b/1");
    r.count_outputs = count_outputs;
    refused(&r, "count_outputs together with expr");
    r.expr = NULL;
    r.reference = compute_nothing;
    r.infer = infer_nothing;
    r.outputs = two;
    r.output_size = sizeof(two[0]);
    r.num_outputs = 2;
    refused(&r, "count_outputs together with a number of outputs");
    r.num_outputs = 1;
    r.in_place = own;
    r.in_place_size = sizeof(own[0]);
    r.num_in_place = 1;
    refused(&r, "count_outputs together with in_place");
}

struct attrs {
    double alpha;
    int64_t mode;
};

static void attrs_refused(const tn_attr_field *fields, uint32_t count, const char *part)
{
    tn_primitive r = record("a.b/1");
    r.attrs = (tn_attr_table){sizeof(struct attrs), count, sizeof(*fields), fields};
    refused(&r, part);
}

Test(registry, bad_attribute_tables_are_refused)
{
    static const char *const choices[] = {"a", "b", NULL};
    attrs_refused((tn_attr_field[]){TN_F64_FIELD(struct attrs, alpha, 1, ""),
                                    TN_F64_FIELD(struct attrs, alpha, 1, "")},
                  2, "two attributes are named 'alpha'");
    attrs_refused((tn_attr_field[]){{.name = "x", .kind = TN_ATTR_F64}}, 1,
                  "'x' names an input and an attribute");
    attrs_refused((tn_attr_field[]){{.name = "a", .kind = TN_ATTR_F64, .offset = 16}}, 1,
                  "expected within the struct's 16");
    attrs_refused((tn_attr_field[]){{.name = "a", .kind = TN_ATTR_INTS, .offset = 0}}, 1,
                  "expected within the struct's 16");
    attrs_refused((tn_attr_field[]){{.name = "a", .kind = TN_ATTR_F64, .offset = 4}}, 1,
                  "at a multiple of 8");
    attrs_refused((tn_attr_field[]){{.name = "a", .kind = TN_ATTR_F64},
                                    {.name = "b", .kind = TN_ATTR_I64}},
                  2, "attributes 'a' and 'b' overlap");
    attrs_refused((tn_attr_field[]){{.name = "a", .kind = 12}}, 1, "unknown kind 12");
    attrs_refused((tn_attr_field[]){TN_CHOICE_FIELD(struct attrs, mode, 2, choices, "")}, 1,
                  "default 2, expected one of 'a', 'b'");
    attrs_refused((tn_attr_field[]){TN_CHOICE_FIELD(struct attrs, mode, 0, NULL, "")}, 1,
                  "has no choices");
    attrs_refused((tn_attr_field[]){TN_BOOL_FIELD(struct attrs, mode, 2, "")}, 1,
                  "default 2, expected true or false");
    attrs_refused((tn_attr_field[]){{.name = "a", .kind = TN_ATTR_STRING, .default_i = 1}},
                  1, "attribute 'a': default 1, expected none");
}

// --- structs that grow -----------------------------------------------------------------

Test(registry, records_of_other_sizes_are_read_by_the_rules)
{
    struct {
        tn_primitive known;
        uint64_t unknown[2];
    } larger = {.known = record("a.larger/1")};
    larger.known.struct_size = sizeof(larger);
    check_status(prim_register(&runtime, NULL, &larger.known), TN_OK);
    cr_assert(eq(str, found("a.larger"), "a.larger/1"));
    larger.known.id = "a.newer/1";
    larger.unknown[1] = 1;
    refused(&larger.known, "needs a newer tenon");

    tn_primitive smaller = record("a.smaller/1");
    smaller.struct_size = (uint32_t)TN_END_OF(&smaller, infer);
    memset(&smaller.view, 0xff, sizeof(smaller) - smaller.struct_size); // not ours to read
    check_status(prim_register(&runtime, NULL, &smaller), TN_OK);
    cr_assert(eq(ptr, tn_primitive_find(&runtime, "a.smaller")->vjp, NULL));
    smaller.struct_size = 8;
    refused(&smaller, "struct_size is 8, expected at least");
    smaller.struct_size = 1025;
    refused(&smaller, "and at most 1024");
    smaller.struct_size = UINT32_MAX;
    refused(&smaller, "struct_size is 4294967295");

    tn_primitive pairs = record("a.pairs/1");
    pairs.in_place = &(tn_in_place){0, 0};
    pairs.in_place_size = sizeof(tn_in_place);
    pairs.num_in_place = UINT32_MAX;
    refused(&pairs, "in_place: got 4294967295 pairs, expected at most 512");
}

Test(registry, attribute_fields_of_other_sizes_are_read_by_the_rules)
{
    struct field {
        tn_attr_field known;
        uint64_t unknown;
    } fields[] = {{.known = TN_F64_FIELD(struct attrs, alpha, 2.0, "")},
                  {.known = TN_I64_FIELD(struct attrs, mode, 5, "")}};
    tn_primitive r = record("a.b/1");
    r.attrs =
        (tn_attr_table){sizeof(struct attrs), 2, sizeof(struct field), &fields[0].known};
    check_status(prim_register(&runtime, NULL, &r), TN_OK);
    struct attrs attrs;
    const tn_attr_table *table = &tn_primitive_find(&runtime, "a.b")->attrs;
    check_status(attrs_fill(&(struct intern_refs){0}, table, TN_NO_ATTRS, &attrs, NULL),
                 TN_OK);
    cr_assert(attrs.alpha == 2 && attrs.mode == 5);
    r.id = "a.c/1";
    fields[1].unknown = 7;
    refused(&r, "attrs.fields: byte");
}

// --- tables of records -----------------------------------------------------------------

// A record of each table, as a newer version of its struct, and with `size` in place of the
// size that travels beside the table.
struct tables {
    struct {
        tn_input_info known;
        uint64_t unknown;
    } inputs[2];
    struct {
        tn_output_info known;
        uint64_t unknown;
    } outputs[1];
    struct {
        tn_in_place known;
        uint64_t unknown;
    } in_place[1];
    struct {
        tn_operand_rule known;
        uint64_t unknown;
    } rules[2];
};

static const struct tables newer = {
    .inputs = {{{.name = "x", .dtypes = TN_FLOAT_DTYPES}}, {{.name = "y"}}},
    .outputs = {{{.name = "out"}}},
    .in_place = {{{.input = 1, .output = 0}}},
    .rules = {{{TN_DTYPE_BIT(TN_F32), TN_NEEDS_ROWS}}, {{0, TN_NEEDS_ANY}}},
};

static tn_primitive record_of(const struct tables *t, const char *id)
{
    tn_primitive r = record(id);
    r.inputs = &t->inputs[0].known;
    r.input_size = sizeof(t->inputs[0]);
    r.outputs = &t->outputs[0].known;
    r.output_size = sizeof(t->outputs[0]);
    r.num_outputs = 1;
    r.in_place = &t->in_place[0].known;
    r.in_place_size = sizeof(t->in_place[0]);
    r.num_in_place = 1;
    return r;
}

static tn_kernel kernel_of(const struct tables *t, const char *id);

Test(registry, tables_of_other_sizes_are_read_by_the_rules)
{
    static const tn_operand_rule first = {TN_FIRST_DTYPES, TN_NEEDS_ANY};
    static struct tables t;
    const struct provider p = {.id = "p"};
    const struct prim *prim;
    t = newer;
    tn_primitive r = record_of(&t, "a.b/1");
    tn_kernel kernel = kernel_of(&t, "a.b/1");
    check_status(prim_register(&runtime, NULL, &r), TN_OK);
    check_status(kernel_register(&runtime, &p, &kernel), TN_OK);
    check_status(prim_find(&runtime, "a.b/1", &prim), TN_OK);
    cr_assert(eq(str, (char *)prim->record.inputs[1].name, "y"));
    cr_assert(eq(u32, prim->record.inputs[0].dtypes, TN_FLOAT_DTYPES));
    cr_assert(eq(u32, prim->record.inputs[1].dtypes, TN_FIRST_DTYPES));
    cr_assert(eq(u32, prim->in_place_of[0], 2));
    cr_assert(kernel_rule(&prim->kernels->kernel, 0)->needs == TN_NEEDS_ROWS);
    for (uint32_t operand = 1; operand < 3; operand++)
        cr_assert(memcmp(kernel_rule(&prim->kernels->kernel, operand), &first,
                         sizeof(first)) == 0);
}

// A table has an unknown field that is set, or a size of 0.
Test(registry, a_wrong_table_is_refused_by_name)
{
    static const char *const names[] = {"inputs", "outputs", "in_place", "operands"};
    static struct tables t;
    const struct provider p = {.id = "p"};
    uint64_t *const unknown[] = {&t.inputs[1].unknown, &t.outputs[0].unknown,
                                 &t.in_place[0].unknown, &t.rules[1].unknown};
    for (int i = 0; i < 8; i++) {
        bool is_sized = i < 4;
        t = newer;
        tn_primitive r = record_of(&t, "a.b/1");
        tn_kernel kernel = kernel_of(&t, "a.b/1");
        uint32_t *const sizes[] = {&r.input_size, &r.output_size, &r.in_place_size,
                                   &kernel.operand_size};
        if (is_sized)
            *unknown[i] = 1;
        else
            *sizes[i - 4] = 0;
        check_status(i % 4 < 3 ? prim_register(&runtime, NULL, &r)
                               : kernel_register(&runtime, &p, &kernel),
                     TN_ERR_REFUSED);
        char says[64];
        snprintf(says, sizeof(says), "%s: %s", names[i % 4],
                 is_sized ? "byte" : "got elements of 0 bytes");
        check_says(fail_text(), says);
    }
}

// --- kernels ---------------------------------------------------------------------------

static tn_status launch(const tn_cpu_call *call)
{
    (void)call;
    return TN_OK;
}
static const tn_cpu_kernel payload = {.struct_size = sizeof(payload), .launch = launch};

static tn_kernel kernel_of(const struct tables *t, const char *id)
{
    return (tn_kernel){.struct_size = sizeof(tn_kernel),
                       .primitive = id,
                       .family = TN_FAMILY_CPU,
                       .name = "rules",
                       .operands = &t->rules[0].known,
                       .num_operands = 2,
                       .operand_size = sizeof(t->rules[0]),
                       .payload = &payload};
}

static void add_kernel(const char *plugin, const char *name, int32_t priority,
                       uint32_t dtypes)
{
    static tn_operand_rule rules[64]; // records are static in plugins
    static int num_rules;
    tn_operand_rule *rule = &rules[num_rules++];
    rule->dtypes = dtypes;
    const tn_kernel kernel = {.struct_size = sizeof(kernel),
                              .primitive = "a.b/1",
                              .family = TN_FAMILY_CPU,
                              .name = name,
                              .priority = priority,
                              .operands = dtypes ? rule : NULL,
                              .num_operands = dtypes ? 1 : 0,
                              .operand_size = sizeof(*rule),
                              .payload = &payload};
    check_status(kernel_register(&runtime, &(struct provider){.id = plugin}, &kernel),
                 TN_OK);
}

static void check_order(const char *expected)
{
    const struct prim *prim = NULL;
    char text[200] = "";
    check_status(prim_find(&runtime, "a.b/1", &prim), TN_OK);
    for (const struct kernel_entry *k = prim->kernels; k; k = k->next)
        sprintf(text + strlen(text), "%s:%s ", k->plugin_id, k->kernel.name);
    cr_assert(eq(str, text, expected));
}

// The same kernels in two orders, before and after the primitive.
Test(registry, kernels_stand_in_the_order_of_choice)
{
    const uint32_t f32 = TN_DTYPE_BIT(TN_F32), floats = TN_FLOAT_DTYPES;
    const char *expected = "p:tuned q:tuned p:narrow p:floats p:a p:b q:a p:slow ";
    add_kernel("q", "a", 200, 0);
    add_kernel("p", "slow", 50, f32);
    add_kernel("p", "floats", 200, floats);
    add_kernel("q", "tuned", 500, 0);
    add("a.b/1");
    add_kernel("p", "b", 200, 0);
    add_kernel("p", "narrow", 200, f32);
    add_kernel("p", "tuned", 500, 0);
    add_kernel("p", "a", 200, 0);
    check_order(expected);
    close_sets();
    open_sets();
    add("a.b/1");
    add_kernel("p", "a", 200, 0);
    add_kernel("p", "tuned", 500, 0);
    add_kernel("p", "narrow", 200, f32);
    add_kernel("p", "b", 200, 0);
    add_kernel("q", "tuned", 500, 0);
    add_kernel("p", "floats", 200, floats);
    add_kernel("p", "slow", 50, f32);
    add_kernel("q", "a", 200, 0);
    check_order(expected);
}

static tn_status register_from_p(const tn_kernel *kernel)
{
    return kernel_register(&runtime, &(struct provider){.id = "p"}, kernel);
}
Test(registry, bad_kernels_are_refused)
{
    tn_kernel kernel = {.struct_size = sizeof(kernel),
                        .primitive = "a.b",
                        .family = TN_FAMILY_CPU,
                        .name = "k",
                        .payload = &payload};
    check_status(register_from_p(&kernel), TN_ERR_REFUSED);
    check_says(fail_text(), "kernel 'k' of 'a.b' from p: primitive is 'a.b'");
    kernel.primitive = "a.b/1";
    kernel.payload = NULL;
    check_status(register_from_p(&kernel), TN_ERR_REFUSED);
    check_says(fail_text(), "a payload with `launch`");
    kernel.payload = &payload;
    kernel.operands = &(tn_operand_rule){0};
    kernel.operand_size = sizeof(tn_operand_rule);
    kernel.num_operands = UINT32_MAX;
    check_status(register_from_p(&kernel), TN_ERR_REFUSED);
    check_says(fail_text(), "got 4294967295 rules, expected at most 72");
    kernel.num_operands = 1;
    kernel.family = TN_FAMILY_VULKAN_SPIRV;
    kernel.payload = &(tn_vulkan_kernel){.struct_size = sizeof(tn_vulkan_kernel)};
    check_status(register_from_p(&kernel), TN_ERR_REFUSED);
    check_says(fail_text(), "modules: got 0 in no table of 0 bytes each");
    kernel.payload = &(tn_vulkan_kernel){.struct_size = sizeof(tn_vulkan_kernel),
                                         .modules = &(tn_vulkan_module){0},
                                         .num_modules = 1,
                                         .module_size = sizeof(tn_vulkan_module),
                                         .num_push = 33};
    check_status(register_from_p(&kernel), TN_ERR_REFUSED);
    check_says(fail_text(), "push: got 33 fields in no table");
    kernel.family = TN_FAMILY_CPU;
    kernel.payload = &payload;
    check_status(register_from_p(&kernel), TN_OK);
    check_status(register_from_p(&kernel), TN_ERR_REFUSED);
    check_says(fail_text(), "one of that name already");
    kernel.name = "";
    check_status(register_from_p(&kernel), TN_ERR_REFUSED);
}

// --- threads and memory ----------------------------------------------------------------

static void *find_often(void *context)
{
    (void)context;
    for (int i = 0; i < 2000; i++) {
        const struct prim *prim = NULL;
        if (prim_find(&runtime, i % 2 ? "a.b" : "a.b/1", &prim) != TN_OK)
            return (void *)1;
        const struct expr *expr = NULL;
        const tn_expr_program *program = NULL;
        const struct expr_input inputs[] = {{.dtype = TN_F32}, {.dtype = TN_F32}};
        char text[64];
        snprintf(text, sizeof(text), "x, y -> x * y + %d", i % 50);
        if (expr_parse_arrow(&runtime, text, &expr) != TN_OK ||
            expr_compile(expr, inputs, NULL, &program) != TN_OK)
            return (void *)1;
    }
    return NULL;
}

Test(registry, threads_may_look_up_while_others_register)
{
    pthread_t threads[4];
    add("a.b/1");
    for (int i = 0; i < 4; i++)
        cr_assert(eq(int, pthread_create(&threads[i], NULL, find_often, NULL), 0));
    char id[32];
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof(id), "c.p%d/1", i);
        tn_primitive r = record(strdup(id));
        check_status(prim_register(&runtime, NULL, &r), TN_OK);
    }
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        cr_assert(eq(ptr, failed, NULL));
    }
    const char *const *names = tn_primitive_names(&runtime);
    for (int i = 1; names[i]; i++)
        free((char *)names[i]);
}

Test(registry, allocation_failures_leave_the_registry_usable)
{
    tn_status status = TN_ERR_MEMORY;
    for (int64_t n = 1; status == TN_ERR_MEMORY && n < 200; n++) {
        tn_primitive r = record("a.b/1");
        r.expr = "x * y + 3 - x";
        mem_fail_nth(n);
        status = prim_register(&runtime, NULL, &r);
        mem_fail_nth(0);
        if (status == TN_ERR_MEMORY)
            check_says(found("a.b"), "unknown");
    }
    check_status(status, TN_OK);
    cr_assert(eq(str, found("a.b"), "a.b/1"));
}
