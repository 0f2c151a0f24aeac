// SPDX-License-Identifier: MIT
// Schedules: a rate as a graph of a counter of steps. An integer counter gives an f32 rate.
// Names and values are MLX's; several schedules are joined at boundaries.
#include "pack.h"

#define COUNTER_DTYPES (TN_INTEGER_DTYPES | TN_FLOAT_DTYPES)

static const tn_input_info counter_input[] = {
    {"step", "steps done so far, from 0", TN_INPUT_CONSTANT, COUNTER_DTYPES}};

typedef struct {
    double init, end, rate;
    int64_t steps;
} schedule_attrs;
#define INIT_FIELD TN_F64_FIELD(schedule_attrs, init, 1e-3, "the rate at step 0")
#define END_FIELD TN_F64_FIELD(schedule_attrs, end, 0, "the rate from `steps` on")
#define STEPS_FIELD(text) TN_I64_FIELD(schedule_attrs, steps, 1000, text)

// Applies expression `text` to the counter, with `attrs`.
static tn_status optim_schedule(const tn_build *build, const tn_rule *rule,
                                const char *text, tn_attr_list attrs, tn_array **outputs)
{
    const tn_type *type = rule->inputs[0] ? build->type(rule->inputs[0]) : NULL;
    bool is_whole = type && tn_dtype_in(type->dtype, TN_INTEGER_DTYPES);
    tn_array *step =
        type ? optim_cast(build, rule->inputs[0], is_whole ? TN_F32 : type->dtype) : NULL;
    outputs[0] = build->expr(build, text, TN_IN(optim_constant(build, step)), attrs);
    return built(outputs[0]);
}

static tn_status schedule_check_steps(const tn_build *build, int64_t steps)
{
    return steps >= 1
               ? TN_OK
               : build->host->fail(build->host, TN_ERR_ARGUMENT,
                                   "steps is %lld, expected at least 1", (long long)steps);
}

#define SCHEDULE(name, sentence, ...)                                                      \
    static const tn_attr_field name##_fields[] = {__VA_ARGS__};                            \
    COMPOSITE(name, sentence, TN_INPUTS(counter_input),                                    \
              .attrs = TN_ATTR_TABLE(schedule_attrs, name##_fields))

DECOMPOSE(constant_schedule)
{
    const schedule_attrs *attrs = rule->attrs;
    return optim_schedule(build, rule, "step -> 0 * step + init",
                          tn_attrs("init", attrs->init), outputs);
}
SCHEDULE(constant_schedule, "The same rate at each step.", INIT_FIELD);

DECOMPOSE(step_decay)
{
    const schedule_attrs *attrs = rule->attrs;
    tn_status status = schedule_check_steps(build, attrs->steps);
    return status
               ? status
               : optim_schedule(build, rule, "step -> init * rate ** floor(step / steps)",
                                tn_attrs("init", attrs->init, "rate", attrs->rate, "steps",
                                         (double)attrs->steps),
                                outputs);
}
SCHEDULE(step_decay, "A rate times a factor after each so many steps.", INIT_FIELD,
         TN_F64_FIELD(schedule_attrs, rate, 0.1, "the factor"),
         STEPS_FIELD("steps from factor to factor"));

DECOMPOSE(exponential_decay)
{
    const schedule_attrs *attrs = rule->attrs;
    return optim_schedule(build, rule, "step -> init * rate ** step",
                          tn_attrs("init", attrs->init, "rate", attrs->rate), outputs);
}
SCHEDULE(exponential_decay, "A rate times a factor after each step.", INIT_FIELD,
         TN_F64_FIELD(schedule_attrs, rate, 0.9, "the factor"));

DECOMPOSE(cosine_decay)
{
    const schedule_attrs *attrs = rule->attrs;
    tn_status status = schedule_check_steps(build, attrs->steps);
    return status ? status
                  : optim_schedule(build, rule,
                                   "step -> end + 0.5 * (init - end) * "
                                   "(1 + cos(min(step, steps) * (pi / steps)))",
                                   tn_attrs("init", attrs->init, "end", attrs->end, "steps",
                                            (double)attrs->steps),
                                   outputs);
}
SCHEDULE(cosine_decay, "A rate that falls by half a cosine.", INIT_FIELD, END_FIELD,
         STEPS_FIELD("steps of the fall"));

DECOMPOSE(linear_schedule)
{
    const schedule_attrs *attrs = rule->attrs;
    tn_status status = schedule_check_steps(build, attrs->steps);
    return status
               ? status
               : optim_schedule(build, rule,
                                "step -> init + min(step, steps) * ((end - init) / steps)",
                                tn_attrs("init", attrs->init, "end", attrs->end, "steps",
                                         (double)attrs->steps),
                                outputs);
}
SCHEDULE(linear_schedule, "A rate that changes evenly, such as a warm-up.", INIT_FIELD,
         END_FIELD, STEPS_FIELD("steps of the change"));

DECOMPOSE(polynomial_decay)
{
    const schedule_attrs *attrs = rule->attrs;
    tn_status status = schedule_check_steps(build, attrs->steps);
    return status ? status
                  : optim_schedule(build, rule,
                                   "step -> end + (init - end) * "
                                   "((steps - min(step, steps)) / steps) ** power",
                                   tn_attrs("init", attrs->init, "end", attrs->end, "power",
                                            attrs->rate, "steps", (double)attrs->steps),
                                   outputs);
}
SCHEDULE(polynomial_decay, "A rate that falls by a power of the steps that are left.",
         INIT_FIELD, END_FIELD,
         {"power", "the power", TN_ATTR_F64, 0, offsetof(schedule_attrs, rate), 0, 1.0,
          NULL},
         STEPS_FIELD("steps of the fall"));

// --- several ----------------------------------------------------------------------------

typedef struct {
    const tn_int_list *boundaries;
} join_attrs;
static const tn_input_info join_inputs[] = {
    {"step", "steps done so far, from 0", TN_INPUT_CONSTANT, COUNTER_DTYPES},
    {"schedules", "rates; each is a schedule of step less its boundary", TN_INPUT_VARIADIC,
     0},
};
static const tn_attr_field join_fields[] = {TN_INT_LIST_FIELD(
    join_attrs, boundaries, "the step from which each but the first holds")};

DECOMPOSE(join_schedules)
{
    const join_attrs *attrs = rule->attrs;
    uint64_t count = attrs->boundaries ? attrs->boundaries->count : 0;
    if (count + 2 != rule->num_inputs)
        return build->host->fail(
            build->host, TN_ERR_ARGUMENT,
            "got %u schedules and %llu boundaries, expected one boundary "
            "less than schedules",
            rule->num_inputs - 1, (unsigned long long)count);
    outputs[0] = rule->inputs[1];
    for (uint64_t i = 0; i < count; i++) {
        int64_t from = attrs->boundaries->value[i];
        if (i > 0 && from < attrs->boundaries->value[i - 1])
            return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                     "boundary %llu is %lld, below the one before",
                                     (unsigned long long)i, (long long)from);
        outputs[0] =
            build->expr(build, "step, before, behind -> step < from ? before : behind",
                        TN_IN(rule->inputs[0], outputs[0], rule->inputs[2 + i]),
                        tn_attrs("from", (double)from));
    }
    return built(outputs[0]);
}

COMPOSITE(join_schedules, "Schedules one behind the other, by boundaries.",
          TN_INPUTS(join_inputs), .attrs = TN_ATTR_TABLE(join_attrs, join_fields));
