// SPDX-License-Identifier: MIT
// Plans of kernels for Vulkan (<tenon/vulkan.h>), without a device: the launches that a
// plan emits are recorded, checked against the contract and the limits of two devices, and
// compared with those of an equal step.
#include <stdarg.h>
#include <tenon/checked.h>
#include <tenon/vulkan.h>
#include "query.h"

// Limits of a small device and of a large one.
static const tn_vulkan_limits devices[] = {
    {.struct_size = sizeof(tn_vulkan_limits),
     .max_groups = {65535, 65535, 65535},
     .max_group_size = {256, 256, 64},
     .max_invocations = 256,
     .max_shared = 16384,
     .max_push = 128,
     .max_constants = 16,
     .max_operands = 8,
     .subgroup_size = 8,
     .subgroup_operations = TN_VULKAN_SUBGROUP_BASIC | TN_VULKAN_SUBGROUP_ARITHMETIC,
     .max_range = UINT64_C(1) << 27},
    {.struct_size = sizeof(tn_vulkan_limits),
     .features = TN_VULKAN_HAS_F16 | TN_VULKAN_HAS_F64 | TN_VULKAN_HAS_I8 |
                 TN_VULKAN_HAS_I16 | TN_VULKAN_HAS_I64,
     .max_groups = {INT32_MAX, 65535, 65535},
     .max_group_size = {1024, 1024, 64},
     .max_invocations = 1024,
     .max_shared = 49152,
     .max_push = 256,
     .max_constants = 64,
     .max_operands = 32,
     .subgroup_size = 32,
     .subgroup_operations = 255,
     .max_range = UINT32_MAX},
};

// Record of a plan's launches in order: the numbers and bytes that have to be equal in
// equal plans.
struct launch_record {
    unsigned char *bytes;
    size_t size;
    uint32_t num_launches;
};

// A call of a plan. The plan gets `face`.
struct planned_call {
    tn_vulkan_plan face; // first: its functions are called with its address
    tn_step step;
    tn_value values[MAX_IN + MAX_OUT];
    bool in_place; // what `shares` answers for declared pairs
    struct launch_record record;
    char wrong[300]; // "": nothing
};

static void write_down(struct launch_record *r, const void *bytes, size_t size)
{
    if (size == 0)
        return;
    r->bytes = realloc(r->bytes, r->size + size);
    if (!r->bytes)
        abort();
    memcpy(r->bytes + r->size, bytes, size);
    r->size += size;
}

static void call_complain(struct planned_call *c, const char *format, ...)
    PRINTF_LIKE(2, 3);
static void call_complain(struct planned_call *c, const char *format, ...)
{
    va_list list;
    if (c->wrong[0])
        return;
    va_start(list, format);
    vsnprintf(c->wrong, sizeof(c->wrong), format, list);
    va_end(list);
}

// --- a launch --------------------------------------------------------------------------

static void conformance_plan_read_operand(struct planned_call *c, uint32_t i,
                                          const tn_vulkan_operand *o)
{
    const tn_step *step = &c->step;
    bool is_input = o->kind == TN_VULKAN_INPUT, is_output = o->kind == TN_VULKAN_OUTPUT;
    uint64_t scratch = step->scratch_size;
    write_down(&c->record, &o->kind, sizeof(o->kind));
    write_down(&c->record, &o->access, sizeof(o->access));
    if (o->access == 0 || o->access & ~(TN_VULKAN_READS | TN_VULKAN_WRITES))
        call_complain(c, "operand %u has access %u, expected 1 to 3", i, o->access);
    if (is_input || is_output) {
        uint32_t count = is_input ? step->num_inputs : step->num_outputs;
        write_down(&c->record, &o->index, sizeof(o->index));
        if (o->index >= count)
            call_complain(c, "operand %u is %s %u, but the step has %u", i,
                          is_input ? "input" : "output", o->index, count);
        if (is_input && o->access & TN_VULKAN_WRITES)
            call_complain(c, "operand %u writes to input %u", i, o->index);
        else if (is_output && o->index < count && o->access & TN_VULKAN_READS &&
                 tn_step_output(step, o->index)->flags & TN_VALUE_FUSED)
            call_complain(c, "operand %u reads output %u, which passes through a program",
                          i, o->index);
        return;
    }
    write_down(&c->record, &o->offset, sizeof(o->offset));
    write_down(&c->record, &o->size, sizeof(o->size));
    if (o->size == 0 || o->size % 4 != 0)
        call_complain(c, "operand %u has %llu bytes, expected a multiple of 4", i,
                      (unsigned long long)o->size);
    else if (o->kind == TN_VULKAN_DATA && o->data && o->access == TN_VULKAN_READS)
        write_down(&c->record, o->data, o->size);
    else if (o->kind != TN_VULKAN_SCRATCH)
        call_complain(c, "operand %u is of kind %u and access %u, with%s data", i, o->kind,
                      o->access, o->data ? "" : "out");
    else if (o->size > scratch || o->offset > scratch - o->size)
        call_complain(
            c, "operand %u ends at byte %llu of the scratch memory, but it asked for %llu",
            i, (unsigned long long)tn_saturated_add(o->offset, o->size),
            (unsigned long long)scratch);
    else if (o->offset % TN_VULKAN_ALIGNMENT != 0)
        call_complain(c,
                      "operand %u begins at byte %llu of the scratch memory, expected a "
                      "multiple of %d",
                      i, (unsigned long long)o->offset, TN_VULKAN_ALIGNMENT);
}

static void conformance_plan_read_constants(struct planned_call *c,
                                            const tn_vulkan_launch *launch)
{
    for (uint32_t i = 0; i < launch->num_constants; i++) {
        const tn_vulkan_constant *one = &launch->constants[i];
        write_down(&c->record, one, sizeof(*one));
        for (uint32_t j = 0; j < i; j++)
            if (launch->constants[j].id == one->id)
                call_complain(c, "specialisation constant %u has two values", one->id);
    }
}

// Whether the lists of a launch are present, and no longer than the device takes.
static bool lists_fit(struct planned_call *c, const tn_vulkan_launch *launch)
{
    const tn_vulkan_limits *limits = c->face.limits;
    const struct {
        const char *what;
        const void *list;
        uint32_t count, most, size, expected;
    } lists[] = {
        {"operands", launch->operands, launch->num_operands, limits->max_operands,
         launch->operand_size, sizeof(tn_vulkan_operand)},
        {"specialisation constants", launch->constants, launch->num_constants,
         limits->max_constants, launch->constant_size, sizeof(tn_vulkan_constant)},
        {"words of push constants", launch->push, launch->num_push, limits->max_push / 4, 4,
         4},
    };
    for (size_t i = 0; i < COUNT(lists); i++) {
        if (lists[i].count > lists[i].most)
            call_complain(c, "got %u %s, but a device takes at most %u", lists[i].count,
                          lists[i].what, lists[i].most);
        else if (lists[i].count > 0 &&
                 (!lists[i].list || lists[i].size != lists[i].expected))
            call_complain(c, "got %u %s of %u bytes%s, expected %u bytes each",
                          lists[i].count, lists[i].what, lists[i].size,
                          lists[i].list ? "" : " at no address", lists[i].expected);
    }
    return !c->wrong[0];
}

static tn_status on_launch(const tn_vulkan_plan *plan, const tn_vulkan_launch *launch)
{
    struct planned_call *c = (struct planned_call *)(uintptr_t)plan;
    const tn_vulkan_kernel *kernel = c->step.kernel->payload;
    const uint32_t *groups = launch->groups;
    c->record.num_launches++;
    if (launch->struct_size != sizeof(*launch))
        call_complain(c, "struct_size is %u, expected %u", launch->struct_size,
                      (unsigned)sizeof(*launch));
    else if (launch->module >= kernel->num_modules)
        call_complain(c, "it launches module %u, but has %u", launch->module,
                      kernel->num_modules);
    else if (groups[0] != 0 && groups[1] == 0 && groups[2] == 0)
        call_complain(c, "%u x 0 x 0 workgroups, expected %u x 1 x 1", groups[0],
                      groups[0]);
    for (int axis = 0; axis < 3; axis++)
        if (groups[axis] > plan->limits->max_groups[axis])
            call_complain(c, "got %u workgroups along %c, but a device takes at most %u",
                          groups[axis], "xyz"[axis], plan -> limits -> max_groups[axis]);
    if (!c->wrong[0] && lists_fit(c, launch)) {
        write_down(&c->record, &launch->module, sizeof(launch->module));
        write_down(&c->record, groups, sizeof(launch->groups));
        write_down(&c->record, launch->push, launch->num_push * sizeof(launch->push[0]));
        for (uint32_t i = 0; i < launch->num_operands; i++)
            conformance_plan_read_operand(c, i, &launch->operands[i]);
        conformance_plan_read_constants(c, launch);
    }
    return c->wrong[0] ? plan->host->fail(plan->host, TN_ERR_REFUSED, "%s", c->wrong)
                       : TN_OK;
}

static int32_t on_shares(const tn_vulkan_plan *plan, uint32_t input, uint32_t output)
{
    const struct planned_call *c = (const struct planned_call *)plan;
    const tn_primitive *p = c->step.primitive;
    for (uint32_t i = 0; i < p->num_in_place && c->in_place; i++)
        if ((uint32_t)p->in_place[i].input == input &&
            (uint32_t)p->in_place[i].output == output)
            return 1;
    return 0;
}

// --- calling a plan --------------------------------------------------------------------

struct subject_plan {
    struct pack *pack;
    const tn_kernel *kernel;
    struct sample *s;
    const struct array *in;
    uint64_t fused; // operands that pass through programs, inputs first
};

// Makes the plan's step. `position` moves slots, offsets and ids, on which a plan must not
// depend.
static void conformance_plan_make_step(struct planned_call *c,
                                       const struct subject_plan *subject,
                                       uint32_t position)
{
    const struct sample *s = subject->s;
    struct array out[MAX_OUT];
    uint32_t count = sample_operands(s);
    outputs_new(s, PLAIN, 0, out);
    for (uint32_t i = 0; i < count + s->num_outputs; i++) {
        const struct array *array = i < s->num_inputs ? &subject->in[i]
                                    : i < count       ? &s->in[i]
                                                      : &out[i - count];
        c->values[i] = (tn_value){.slot = (i + position) % 7,
                                  .offset = (uint64_t)position * 4096 + i * 65536,
                                  .id = i + 1 + position,
                                  .layout = array->tensor.layout};
        if (subject->fused >> i & 1)
            c->values[i] =
                (tn_value){.flags = TN_VALUE_FUSED, .layout = array->tensor.layout};
    }
    outputs_free(out);
    c->step = (tn_step){.struct_size = sizeof(c->step),
                        .primitive = s->primitive,
                        .attrs = s->attrs,
                        .kernel = subject->kernel,
                        .inputs = c->values,
                        .outputs = c->values + count,
                        .num_inputs = count,
                        .num_outputs = s->num_outputs,
                        .scratch_slot = position,
                        .value_size = sizeof(tn_value),
                        .scratch_offset = (uint64_t)position * 512,
                        .scratch_size = kernel_scratch(subject->kernel, s, subject->in),
                        .label = "a step",
                        .plugin = "the plugin"};
}

// Calls the plan. False: the plan broke its contract; check_fail was called.
static bool conformance_call_plan(struct kit *k, const struct subject_plan *subject,
                                  const tn_vulkan_limits *limits, uint32_t position,
                                  struct launch_record *out)
{
    static struct planned_call c;
    struct fake_host *host = &subject->pack->host;
    const tn_vulkan_kernel *payload = subject->kernel->payload;
    memset(&c, 0, sizeof(c));
    conformance_plan_make_step(&c, subject, position);
    c.face = (tn_vulkan_plan){.struct_size = sizeof(c.face),
                              .host = host->table,
                              .step = &c.step,
                              .limits = limits,
                              .launch = on_launch,
                              .shares = on_shares};
    c.in_place = position >= 2;
    fake_host_reset(host);
    tn_status status = payload->plan(&c.face);
    *out = c.record;
    if (c.wrong[0])
        check_fail(k, "%s: launch %u: %s", sample_text(subject->s),
                   c.record.num_launches - 1, c.wrong);
    else if (status != TN_OK && !host->failures)
        check_fail(k, "%s: it fails with status %d and without a message",
                   sample_text(subject->s), status);
    else if (host->allocations)
        check_fail(k, "%s: it allocates through the host", sample_text(subject->s));
    else
        return true;
    return false;
}

// --- checks ----------------------------------------------------------------------------

static void check_plan(struct kit *k, const struct subject_plan *subject)
{
    check_case(k);
    for (size_t device = 0; device < COUNT(devices); device++)
        for (uint32_t position = 0; position < 3; position += 2) {
            struct launch_record r = {0};
            conformance_call_plan(k, subject, &devices[device], position, &r);
            free(r.bytes);
        }
}

// The plan of a step with fused operands. The small device takes TN_VULKAN_FUSED_OPERANDS
// operands.
static void check_plan_fused(struct kit *k, const struct subject_plan *subject)
{
    struct subject_plan fused = *subject;
    fused.fused = kernel_fused(subject->kernel, subject->s, subject->in);
    if (!fused.fused)
        return;
    check_case(k);
    for (size_t device = 0; device < COUNT(devices); device++) {
        struct launch_record r = {0};
        conformance_call_plan(k, &fused, &devices[device], 0, &r);
        free(r.bytes);
    }
}

static void check_plan_pure(struct kit *k, const struct subject_plan *subject)
{
    struct launch_record first = {0}, second = {0};
    check_case(k);
    if (conformance_call_plan(k, subject, &devices[1], 0, &first) &&
        conformance_call_plan(k, subject, &devices[1], 1, &second) &&
        (first.size != second.size ||
         (first.size > 0 && memcmp(first.bytes, second.bytes, first.size) != 0)))
        check_fail(k,
                   "%s: for an equal step in other memory it emits other launches: %u of "
                   "%zu bytes, before %u of %zu",
                   sample_text(subject->s), second.num_launches, second.size,
                   first.num_launches, first.size);
    free(first.bytes);
    free(second.bytes);
}

static bool conformance_plan_is_empty(const struct sample *s)
{
    for (uint32_t i = 0; i < s->num_outputs; i++) {
        int64_t count = 1;
        for (int32_t axis = 0; axis < s->outputs[i].rank; axis++)
            count *= s->outputs[i].extent[axis];
        if (count > 0)
            return false;
    }
    return true;
}

// Checks the plan for each layout that the kernel takes.
static void check_plan_sample(struct kit *k, struct pack *pack, const tn_kernel *kernel,
                              struct sample *s,
                              void (*check)(struct kit *k,
                                            const struct subject_plan *subject))
{
    sample_fill(k, s);
    for (int kind = PLAIN; kind < REPEATED && !conformance_plan_is_empty(s); kind++) {
        struct array in[MAX_IN] = {0};
        for (uint32_t i = 0; i < s->num_inputs; i++)
            in[i] = array_laid_out(&s->in[i], (enum layout_kind)kind);
        if (kernel_layouts_fit(kernel, s, in) && kernel_accepts(kernel, s, in))
            check(k, &(struct subject_plan){pack, kernel, s, in, 0});
        for (uint32_t i = 0; i < s->num_inputs; i++)
            array_free(&in[i]);
    }
    sample_free(s);
}

void check_plans(struct kit *k, struct pack *pack, const tn_kernel *kernel)
{
    static const struct {
        const char *name;
        void (*check)(struct kit *k, const struct subject_plan *subject);
    } checks[] = {{"kernel.plan", check_plan},
                  {"kernel.plan-pure", check_plan_pure},
                  {"kernel.plan-fused", check_plan_fused}};
    static struct sample samples[2 * MAX_SAMPLES];
    const tn_vulkan_kernel *payload = kernel->payload;
    bool is_vulkan = strcmp(kernel->family, TN_FAMILY_VULKAN_GLSL) == 0 ||
                     strcmp(kernel->family, TN_FAMILY_VULKAN_SPIRV) == 0;
    if (!is_vulkan || !TN_HAS(payload, plan))
        return;
    for (size_t c = 0; c < COUNT(checks); c++) {
        bool is_needed = checks[c].check != check_plan_fused || kernel_says_fuses(kernel);
        if (!is_needed ||
            !check_begin(k, checks[c].name, "%s %s", kernel->primitive, kernel->name))
            continue;
        const tn_primitive *p = pack_primitive(pack, kernel->primitive);
        uint32_t count =
            p ? kernel_samples(&pack->maker, kernel, p, samples, COUNT(samples)) : 0;
        for (uint32_t i = 0; i < count; i++)
            check_plan_sample(k, pack, kernel, &samples[i], checks[c].check);
        if (!p)
            check_skip(k, "no pack here has this primitive");
        else if (k->cases == 0)
            check_warn(k, "none of the applications drawn is one that it takes: give "
                          "examples (--examples)");
        check_end(k);
    }
}
