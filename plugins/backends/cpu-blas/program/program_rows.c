// SPDX-License-Identifier: MIT
// Prepares row programs: phases between reductions.
//
// The level of a value is the number of reductions that it depends on, in the longest
// chain. Phase L computes, once a row, the values of rows at level L, and then for each
// block of the row the elements at level L; reductions of these are folded as it goes, and
// finished when phase L + 1 begins. Outputs are written in the last phase, since they may
// share memory with inputs.
//
// Elements that a later phase reads, too, have registers for the whole row, so that each is
// computed once; the others have registers of one block. A row that is too long for this is
// read again by each phase, which computes again what it needs.
#include "program_prepare.h"

// The most bytes of registers for whole rows: what a second-level cache holds beside the
// operands.
#define MOST_ROW_BYTES 98304

// Shorter rows are not worth an operation each: the core's other way of running the
// expression is faster.
#define SHORT_ROW 32

// Rows so long are cut by the core's other way of running the expression, whose reductions
// are spread over threads, unless there are enough rows for all threads.
#define LONG_ROW 32768

static bool is_reduction(const struct prepare *p, uint32_t i)
{
    return tn_expr_class(p->source->insns[i].op) == TN_EXPR_CLASS_REDUCE;
}

static int32_t reduction_of(uint32_t op)
{
    return op == TN_EXPR_REDUCE_SUM    ? CPU_REDUCE_SUM
           : op == TN_EXPR_REDUCE_PROD ? CPU_REDUCE_PROD
           : op == TN_EXPR_REDUCE_MIN  ? CPU_REDUCE_MIN
                                       : CPU_REDUCE_MAX;
}

// The extents of a step, rows included, are those of its inputs.
static const tn_layout *step_shape(const tn_step *step)
{
    return step->num_inputs > 0 ? &tn_step_input(step, 0)->layout
                                : &tn_step_output(step, 0)->layout;
}

// --- levels ----------------------------------------------------------------------------

static enum value_scope load_scope(const tn_layout *layout)
{
    int32_t last = layout->rank - 1;
    return prepare_is_uniform(layout)                               ? SCOPE_ALL
           : layout->stride[last] == 0 && layout->extent[last] != 1 ? SCOPE_ROW
                                                                    : SCOPE_ELEMENT;
}

static void cpu_rows_find_level(struct prepare *p, uint32_t i)
{
    const tn_expr_insn *insn = &p->source->insns[i];
    const struct fusion *fusion = &p->fusions[i];
    uint8_t scope = insn->op == TN_EXPR_INDEX ? SCOPE_ELEMENT : SCOPE_ALL, level = 0;
    if (insn->op == TN_EXPR_LOAD)
        scope = (uint8_t)load_scope(&tn_step_input(p->step, insn->a)->layout);
    for (uint32_t k = 0; k < fusion->num_operands; k++) {
        uint32_t from = fusion->operands[k];
        scope = p->values[from].scope < scope ? p->values[from].scope : scope;
        level = p->levels[from] > level ? p->levels[from] : level;
    }
    if (is_reduction(p, i)) {
        scope = SCOPE_ROW;
        level++;
    }
    p->values[i].scope = scope;
    p->levels[i] = level;
    if (level >= p->num_phases)
        p->num_phases = level + 1u;
}

// --- instructions ----------------------------------------------------------------------

static void cpu_rows_load(struct prepare *p, uint32_t i, uint32_t input)
{
    struct program_value *value = &p->values[i];
    const tn_layout *layout = &tn_step_input(p->step, input)->layout;
    int32_t last = layout->rank - 1;
    uint32_t size = cpu_dtype_size(layout->dtype);
    value->scope = (uint8_t)load_scope(layout);
    value->is_input = value->dtype == layout->dtype;
    if (value->scope != SCOPE_ELEMENT) {
        value->location = prepare_pointer(p, input, 0);
    } else if (p->group > 1 && prepare_is_repeated(p, layout)) {
        value->is_input = false;
        value->location = prepare_location(p, LOCATION_REGISTER);
        p->fills[p->num_fills++] =
            (struct program_op){.action = ACTION_REPEAT,
                                .out = value->location,
                                .operand = (uint16_t)input,
                                .size_log2 = log2_size(layout->dtype)};
    } else if (layout->stride[last] == 1 || layout->extent[last] == 1) {
        value->location = prepare_pointer(p, input, size);
    } else {
        value->is_input = false;
        value->location = prepare_location(p, LOCATION_REGISTER);
        struct program_op *op = prepare_op(p, ACTION_GATHER, value->location);
        op->operand = (uint16_t)input;
        op->size_log2 = log2_size(layout->dtype);
    }
    if (value->dtype != layout->dtype)
        value->location = prepare_converted(p, value->location, layout->dtype, value->dtype,
                                            value->scope);
}

// The dtype of an accumulator's content.
static int32_t cpu_rows_total_dtype(const struct prepare *p, uint32_t i)
{
    return reduction_total(p->source->insns[i].dtype);
}

// Begins reduction i: what an empty row gives, its accumulator and, for f32, its result,
// which the last fold of a row writes.
static void start_total(struct prepare *p, uint32_t i)
{
    const tn_expr_insn *insn = &p->source->insns[i];
    uint16_t start = prepare_location(p, LOCATION_SCALAR);
    union cpu_accumulator value = reduction_start(reduction_of(insn->op), insn->dtype);
    memcpy(&p->scalars[start], &value, sizeof(value));
    p->starts[i] = start;
    p->totals[i] = prepare_location(p, LOCATION_LINE);
    p->singles[i] =
        insn->dtype == TN_F32 ? prepare_location(p, LOCATION_LINE) : NO_LOCATION;
}

static void fold_total(struct prepare *p, uint32_t i)
{
    const tn_expr_insn *insn = &p->source->insns[i];
    const struct fusion *fusion = &p->fusions[i];
    const struct program_value *from = &p->values[fusion->operands[0]];
    const struct cpu_reduce_kernels *reduce = p->device->kernels->reduce;
    uint16_t in = from->scope == SCOPE_ELEMENT ? from->location
                                               : prepare_filled(p, fusion->operands[0]);
    struct program_op *op = prepare_op(p, ACTION_REDUCE, p->totals[i]);
    op->in[0] = in;
    op->num_in = (uint8_t)fusion->num_operands;
    if (op->num_in == 1) {
        op->fold = reduce->row[reduction_of(insn->op)][insn->dtype];
    } else {
        op->sum = reduce->sum[fusion->op][insn->dtype];
        const struct program_value *other = &p->values[fusion->operands[1]];
        op->in[1] = other->location;
        op->by_rows = other->scope == SCOPE_ROW;
        op->scalars = other->scope == SCOPE_ALL ? 2 : 0;
    }
    op->size_log2 = log2_size(insn->dtype);
    if (p->group > 1 && insn->op == TN_EXPR_REDUCE_SUM && insn->dtype == TN_F32) {
        op->action = ACTION_SUM_ROWS;
        op->rows = reduce->sum_rows[op->num_in == 1 ? CPU_SUM_ELEMENTS : fusion->op];
    }
    op->start = p->starts[i];
    op->single = p->singles[i];
    p->cost += 80; // picoseconds
}

// The location of a finished reduction.
static uint16_t total_location(struct prepare *p, uint32_t i)
{
    int32_t dtype = p->source->insns[i].dtype, wide = cpu_rows_total_dtype(p, i);
    if (dtype == TN_F32)
        return p->singles[i];
    return dtype == wide ? p->totals[i]
                         : prepare_converted(p, p->totals[i], wide, dtype, SCOPE_ROW);
}

static void cpu_rows_add_insn(struct prepare *p, uint32_t i)
{
    const tn_expr_insn *insn = &p->source->insns[i];
    struct program_value *value = &p->values[i];
    if (insn->op != TN_EXPR_LOAD && insn->op != TN_EXPR_EXTENT &&
        tn_expr_class(insn->op) != TN_EXPR_CLASS_REDUCE) {
        prepare_insn(p, i);
        return;
    }
    value->dtype = insn->dtype;
    value->location = value->filled = NO_LOCATION;
    if (insn->op == TN_EXPR_LOAD) {
        cpu_rows_load(p, i, insn->a);
    } else if (insn->op == TN_EXPR_EXTENT) {
        prepare_number(p, i, (uint64_t)p->row);
    } else {
        value->scope = SCOPE_ROW;
        value->location = total_location(p, i);
    }
}

// --- outputs ---------------------------------------------------------------------------

// Whether output k has one element for each row, and rows have another number of elements.
static bool is_row_output(const struct prepare *p, uint32_t k)
{
    const tn_layout *layout = &tn_step_output(p->step, k)->layout;
    return layout->extent[layout->rank - 1] != p->row;
}

static void write_row_output(struct prepare *p, uint32_t k)
{
    const struct program_value *value = &p->values[p->source->outputs[k]];
    const tn_layout *layout = &tn_step_output(p->step, k)->layout;
    struct program_op *op =
        prepare_op(p, ACTION_MAP, prepare_pointer(p, p->step->num_inputs + k, 0));
    op->map = p->device->kernels->cast[value->dtype][layout->dtype];
    op->in[0] = value->scope == SCOPE_ALL // rows that run together have one each
                    ? prepare_filled(p, p->source->outputs[k])
                    : value->location;
    op->num_in = 1;
    op->once_a_row = true;
}

// Writes a value that is in `location`, of the output's dtype, to an output whose rows have
// gaps.
static void cpu_rows_scatter(struct prepare *p, uint32_t k, uint16_t location)
{
    struct program_op *op = prepare_op(p, ACTION_SCATTER, location);
    op->in[0] = location;
    op->num_in = 1;
    op->operand = (uint16_t)(p->step->num_inputs + k);
    op->size_log2 = log2_size(tn_step_output(p->step, k)->layout.dtype);
}

// Writes one value to all elements of a row.
static void spread_output(struct prepare *p, uint32_t k)
{
    struct program_value value = p->values[p->source->outputs[k]];
    const tn_layout *layout = &tn_step_output(p->step, k)->layout;
    int32_t last = layout->rank - 1;
    if (value.dtype != layout->dtype)
        value.location =
            prepare_converted(p, value.location, value.dtype, layout->dtype, value.scope);
    value.dtype = layout->dtype;
    value.filled = NO_LOCATION;
    if (layout->stride[last] != 1 && layout->extent[last] != 1) {
        p->values[p->source->num_insns] = value; // a temporary
        cpu_rows_scatter(p, k, prepare_filled(p, p->source->num_insns));
        return;
    }
    struct program_op *op = prepare_op(
        p, ACTION_SPREAD,
        prepare_pointer(p, p->step->num_inputs + k, cpu_dtype_size(layout->dtype)));
    op->by_rows = value.scope == SCOPE_ROW;
    op->in[0] = value.location;
    op->num_in = 1;
    op->size_log2 = log2_size(layout->dtype);
}

// Writes elements whose rows have no gaps past the caches.
static void cpu_rows_stream(struct prepare *p, uint32_t k)
{
    const struct program_value *value = &p->values[p->source->outputs[k]];
    int32_t dtype = tn_step_output(p->step, k)->layout.dtype;
    uint16_t from = value->location;
    if (value->dtype != dtype)
        from = prepare_converted(p, from, value->dtype, dtype, SCOPE_ELEMENT);
    uint16_t to = prepare_pointer(p, p->step->num_inputs + k, cpu_dtype_size(dtype));
    struct program_op *op = prepare_op(p, ACTION_STREAM, to);
    op->in[0] = from;
    op->num_in = 1;
    op->size_log2 = log2_size(dtype);
}

static void cpu_rows_write_elements(struct prepare *p, uint32_t k)
{
    struct program_value *value = &p->values[p->source->outputs[k]];
    const tn_layout *layout = &tn_step_output(p->step, k)->layout;
    int32_t last = layout->rank - 1;
    uint32_t operand = p->step->num_inputs + k, size = cpu_dtype_size(layout->dtype);
    if (layout->stride[last] != 1 && layout->extent[last] != 1) {
        uint16_t location = value->location;
        if (value->dtype != layout->dtype || p->kinds[location] != LOCATION_REGISTER)
            location =
                prepare_converted(p, location, value->dtype, layout->dtype, SCOPE_ELEMENT);
        cpu_rows_scatter(p, k, location);
        return;
    }
    if (p->streams) {
        cpu_rows_stream(p, k);
        return;
    }
    if (value->dtype == layout->dtype && prepare_may_write_directly(p, value)) {
        p->kinds[value->location] = LOCATION_POINTER;
        p->pointers[p->num_pointers++] = (struct program_pointer){
            value->location, (uint16_t)size, (uint16_t)operand, false};
        value->is_output = true;
        return;
    }
    struct program_op *op = prepare_op(p, ACTION_MAP, prepare_pointer(p, operand, size));
    op->map = p->device->kernels->cast[value->dtype][layout->dtype];
    op->in[0] = value->location;
    op->num_in = 1;
}

// An input may share its memory with an output, so inputs that are outputs themselves are
// copied to registers before any output is written.
static void write_outputs(struct prepare *p)
{
    const tn_expr_program *source = p->source;
    for (uint32_t k = 0; k < source->num_outputs && source->num_outputs > 1; k++) {
        struct program_value *value = &p->values[source->outputs[k]];
        if (!value->is_input || is_row_output(p, k))
            continue;
        value->location =
            prepare_converted(p, value->location, value->dtype, value->dtype, value->scope);
        value->is_input = false;
    }
    for (uint32_t k = 0; k < source->num_outputs; k++) {
        if (is_row_output(p, k))
            continue;
        if (p->values[source->outputs[k]].scope == SCOPE_ELEMENT)
            cpu_rows_write_elements(p, k);
        else
            spread_output(p, k);
    }
}

// --- phases ----------------------------------------------------------------------------

// Marks the elements that phase `level` needs when it computes them anew.
static void cpu_rows_mark_needed(const struct prepare *p, uint32_t level, bool *needed)
{
    const tn_expr_program *source = p->source;
    memset(needed, 0, source->num_insns * sizeof(*needed));
    for (uint32_t i = 0; i < source->num_insns; i++) {
        bool folds = is_reduction(p, i) && p->levels[i] == level + 1;
        for (uint32_t k = 0; k < p->fusions[i].num_operands && folds; k++)
            needed[p->fusions[i].operands[k]] = true;
    }
    for (uint32_t k = 0; k < source->num_outputs && level + 1 == p->num_phases; k++)
        needed[source->outputs[k]] = true;
    for (uint32_t left = source->num_insns; left > 0; left--) {
        uint32_t i = left - 1;
        if (needed[i] && !is_reduction(p, i))
            for (uint32_t k = 0; k < p->fusions[i].num_operands; k++)
                needed[p->fusions[i].operands[k]] = true;
    }
}

static void prepare_row_part(struct prepare *p, uint32_t level)
{
    const tn_expr_program *source = p->source;
    for (uint32_t i = 0; i < source->num_insns; i++) {
        if (p->values[i].scope == SCOPE_ROW)
            p->values[i].filled = p->many_blocks ? NO_LOCATION : p->values[i].filled;
        if (p->values[i].scope != SCOPE_ELEMENT && p->levels[i] == level &&
            !p->fusions[i].absorbed)
            cpu_rows_add_insn(p, i);
        if (is_reduction(p, i) && p->levels[i] == level + 1)
            start_total(p, i);
    }
    for (uint32_t k = 0; k < source->num_outputs && level + 1 == p->num_phases; k++)
        if (is_row_output(p, k))
            write_row_output(p, k);
}

static void prepare_block_part(struct prepare *p, uint32_t level)
{
    bool needed[TN_EXPR_MAX_INSNS];
    if (p->many_blocks)
        cpu_rows_mark_needed(p, level, needed);
    for (uint32_t i = 0; i < p->source->num_insns; i++) {
        if (is_reduction(p, i)) {
            if (p->levels[i] == level + 1)
                fold_total(p, i);
        } else if (p->values[i].scope == SCOPE_ELEMENT && !p->fusions[i].absorbed &&
                   (p->many_blocks ? needed[i] : p->levels[i] == level)) {
            cpu_rows_add_insn(p, i);
        }
    }
    if (level + 1 == p->num_phases)
        write_outputs(p);
}

// Finds registers that are written in one phase and read in a later one: these are for
// whole rows.
static void find_residents(struct prepare *p)
{
    uint16_t written[PROGRAM_MAX_LOCATIONS] = {0}; // 1 + the phase
    p->num_residents = 0;
    for (uint32_t level = 0; level < p->num_phases; level++) {
        const struct program_phase *phase = &p->phases[level];
        for (uint32_t i = phase->first; i < phase->first + phase->num_ops; i++) {
            const struct program_op *op = &p->ops[i];
            for (uint32_t k = 0; k < op->num_in; k++) {
                uint16_t in = op->in[k];
                if (p->kinds[in] != LOCATION_REGISTER || !written[in] ||
                    written[in] == level + 1)
                    continue;
                p->kinds[in] = LOCATION_RESIDENT;
                p->numbers[in] = (uint16_t)p->num_residents++;
            }
            if (op->action != ACTION_SCATTER && !written[op->out])
                written[op->out] = (uint16_t)(level + 1);
        }
    }
    if (p->num_residents > 0)
        p->residents = prepare_location(p, LOCATION_BASE);
}

// The operation that writes the elements of output k, when it writes them to memory of
// rows without gaps; else num_ops.
static uint32_t cpu_rows_find_writer(const struct prepare *p, uint32_t k)
{
    const struct program_phase *phase = &p->phases[p->num_phases - 1];
    for (uint32_t i = 0; i < p->num_pointers; i++) {
        const struct program_pointer *pointer = &p->pointers[i];
        if (pointer->operand != p->step->num_inputs + k || pointer->step == 0)
            continue;
        for (uint32_t op = phase->first; op < phase->first + phase->num_ops; op++)
            if (p->ops[op].out == pointer->location && p->ops[op].action == ACTION_MAP)
                return op;
    }
    return p->num_ops;
}

static bool is_read_after(const struct prepare *p, uint16_t location, uint32_t last)
{
    for (uint32_t i = last + 1; i < p->num_ops; i++)
        for (uint32_t k = 0; k < p->ops[i].num_in; k++)
            if (p->ops[i].in[k] == location)
                return true;
    return false;
}

// Keeps, for each output, one register for whole rows in the output's memory until it is
// written: the caches have one array less to hold, and fetch it while a phase computes
// instead of in the last one, which does little else than store.
static void use_outputs(struct prepare *p)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->step->num_outputs && !p->in_place && !p->streams; k++) {
        tn_dtype dtype = tn_step_output(p->step, k)->layout.dtype;
        uint32_t writer = cpu_rows_find_writer(p, k);
        for (uint32_t i = 0; i < p->source->num_insns && writer < p->num_ops; i++) {
            uint16_t location = p->values[i].location;
            if (p->values[i].scope != SCOPE_ELEMENT || p->values[i].dtype != dtype ||
                p->fusions[i].absorbed || p->kinds[location] != LOCATION_RESIDENT ||
                is_read_after(p, location, writer))
                continue;
            p->kinds[location] = LOCATION_POINTER;
            p->pointers[p->num_pointers++] =
                (struct program_pointer){location, (uint16_t)cpu_dtype_size(dtype),
                                         (uint16_t)(p->step->num_inputs + k), false};
            break;
        }
    }
    for (uint16_t i = 0; i < p->num_locations; i++)
        if (p->kinds[i] == LOCATION_RESIDENT)
            p->numbers[i] = (uint16_t)count++;
    p->num_residents = count;
}

static void prepare_phases(struct prepare *p)
{
    for (uint32_t i = 0; i < p->source->num_insns; i++)
        cpu_rows_find_level(p, i);
    for (uint32_t level = 0; level < p->num_phases; level++) {
        struct program_phase *phase = &p->phases[level];
        phase->first = p->num_ops;
        prepare_row_part(p, level);
        phase->num_row_ops = p->num_ops - phase->first;
        prepare_block_part(p, level);
        phase->num_ops = p->num_ops - phase->first;
    }
    find_residents(p);
    use_outputs(p);
    prepare_registers(p);
}

// Bytes of the step's operands; what repeats counts once.
static uint64_t operand_bytes(const tn_step *step)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < step->num_inputs + step->num_outputs; i++) {
        const tn_value *value = i < step->num_inputs
                                    ? tn_step_input(step, i)
                                    : tn_step_output(step, i - step->num_inputs);
        uint64_t size = cpu_dtype_size(value->layout.dtype);
        for (int32_t axis = 0; axis < value->layout.rank; axis++)
            if (value->layout.stride[axis] != 0)
                size *= (uint64_t)value->layout.extent[axis];
        bytes += size;
    }
    return bytes;
}

// Whether outputs are written past the caches: where they are so large that they leave them
// before the next step reads them, and the last phase does little else than store. With
// functions, the caches fetch what is overwritten while these are computed. What is
// overwritten in place was read, and is there.
static bool writes_past_caches(const struct prepare *p)
{
    for (uint32_t i = 0; i < p->source->num_insns; i++) {
        bool is_power = p->source->insns[i].op == TN_EXPR_POW; // or a product instead
        uint32_t op = is_power ? p->fusions[i].op : p->source->insns[i].op;
        uint32_t kind = cpu_op_class((int32_t)op);
        if (kind == TN_EXPR_CLASS_FUNCTION || kind == TN_EXPR_CLASS_CIRCULAR ||
            kind == TN_EXPR_CLASS_POWER)
            return false;
    }
    return !p->in_place && operand_bytes(p->step) >= p->device->stream_from;
}

// Begins to prepare anew.
static void cpu_begin_rows(struct prepare *p)
{
    const tn_layout *shape = step_shape(p->step);
    prepare_init(p, p->device, p->arena, p->step);
    p->row = shape->extent[shape->rank - 1];
}

void prepare_rows(struct prepare *p)
{
    const tn_layout *shape = step_shape(p->step);
    p->row = shape->extent[shape->rank - 1];
    p->streams = writes_past_caches(p);
    p->group = prepare_group(p);
    if (p->group > 1) {
        prepare_phases(p);
        p->group = prepare_group(p);
        if (p->group > 1)
            return;
        cpu_begin_rows(p);
    }
    prepare_phases(p);
    if (p->num_residents * p->row * prepare_width(p) <= MOST_ROW_BYTES)
        return;
    cpu_begin_rows(p);
    p->many_blocks = true;
    prepare_phases(p);
}

// --- limits ----------------------------------------------------------------------------

// Whether rows of operands are not adjacent in memory, but elements of different rows are:
// reductions by columns are faster.
static bool cpu_rows_has_columns(const tn_step *step)
{
    for (uint32_t i = 0; i < step->num_inputs; i++) {
        const tn_layout *layout = &tn_step_input(step, i)->layout;
        int32_t last = layout->rank - 1;
        if (load_scope(layout) == SCOPE_ELEMENT && layout->extent[last] > 1 &&
            layout->stride[last] != 1)
            return true;
    }
    return false;
}

const char *program_rows_refused(const tn_device *device, const tn_step *step)
{
    const tn_layout *shape = step_shape(step);
    int64_t rows = 1, row = shape->extent[shape->rank - 1];
    for (int32_t i = 0; i < shape->rank - 1; i++)
        rows *= shape->extent[i];
    uint32_t reductions = 0; // each begins a phase, with the program's instructions at most
    for (uint32_t i = 0; i < step->program->num_insns; i++)
        reductions += tn_expr_class(step->program->insns[i].op) == TN_EXPR_CLASS_REDUCE;
    if (step->program->num_insns * (reductions + 1) > TN_EXPR_MAX_INSNS)
        return "it has more than 256 instructions, counted once for each reduction";
    if (cpu_rows_has_columns(step))
        return "reductions by columns are faster than rows with gaps";
    if (row < SHORT_ROW)
        return "reductions are faster for rows as short as these";
    if (row >= LONG_ROW && rows < (int64_t)device->num_threads)
        return "it has fewer rows than the device has threads";
    return NULL;
}
