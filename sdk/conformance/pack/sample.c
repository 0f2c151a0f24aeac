// SPDX-License-Identifier: MIT
// Applications of a primitive: their attributes, values, and how exact results are.
#include "sample.h"

#include <math.h>

enum { FEW_ELEMENTS = 64 };

// --- attributes ------------------------------------------------------------------------

static uint32_t count_runtime(const tn_attr_table *table)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->num_fields && i < MAX_FIELDS; i++)
        count += (table->fields[i].flags & TN_ATTR_RUNTIME) != 0;
    return count;
}

bool sample_fits(const tn_primitive *p)
{
    return p->num_inputs + count_runtime(&p->attrs) <= MAX_IN &&
           p->num_outputs <= MAX_OUT && p->attrs.size <= MAX_ATTR_BYTES &&
           p->attrs.num_fields <= MAX_FIELDS;
}

void sample_defaults(const tn_primitive *primitive, struct sample *s)
{
    *s = (struct sample){.primitive = primitive, .low = -2, .high = 2};
    s->num_outputs = primitive->num_outputs ? primitive->num_outputs : 1;
    s->num_runtime = count_runtime(&primitive->attrs);
    for (uint32_t i = 0; i < primitive->attrs.num_fields && i < MAX_FIELDS; i++) {
        const tn_attr_field *field = &primitive->attrs.fields[i];
        s->runtime[i] =
            field->kind == TN_ATTR_F64 ? field->default_f : (double)field->default_i;
        if (field->kind == TN_ATTR_F64)
            *(double *)sample_field(s, field) = field->default_f;
        else if (field->kind != TN_ATTR_INTS)
            *(int64_t *)sample_field(s, field) = field->default_i;
    }
}

tn_attr_list sample_attr_list(const struct sample *s, tn_attr *items)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < s->primitive->attrs.num_fields && i < MAX_FIELDS; i++) {
        const tn_attr_field *field = &s->primitive->attrs.fields[i];
        const void *at = (const char *)s->attrs + field->offset;
        if (!(s->given >> i & 1))
            continue;
        tn_attr *item = &items[count++];
        *item = (tn_attr){.name = field->name, .kind = field->kind};
        if (field->flags & TN_ATTR_RUNTIME) {
            item->f = s->runtime[i];
            item->i = (int64_t)s->runtime[i];
        } else if (field->kind == TN_ATTR_F64)
            item->f = *(const double *)at;
        else if (field->kind == TN_ATTR_INTS)
            item->ints = at;
        else if (field->kind == TN_ATTR_STRING)
            item->text = *(const char *const *)at;
        else if (field->kind == TN_ATTR_INT_LIST)
            item->int_list = *(const tn_int_list *const *)at;
        else if (field->kind == TN_ATTR_FLOAT_LIST)
            item->float_list = *(const tn_float_list *const *)at;
        else if (field->kind == TN_ATTR_GRAPH)
            item->graph = *(const tn_graph *const *)at;
        else
            item->i = *(const int64_t *)at;
        if (field->kind == TN_ATTR_CHOICE)
            item->kind = TN_ATTR_I64; // as the index of the choice
    }
    return TN_ATTR_LIST(items, count);
}

// --- inputs ----------------------------------------------------------------------------

uint32_t sample_given(const struct sample *s)
{
    uint32_t count = s->num_inputs;
    while (count > 0 && s->types[count - 1].dtype == TN_DTYPE_NONE)
        count--;
    return count;
}

bool sample_has_gap(const struct sample *s)
{
    for (uint32_t i = 0; i < sample_given(s); i++)
        if (s->types[i].dtype == TN_DTYPE_NONE)
            return true;
    return false;
}

// --- values ----------------------------------------------------------------------------

static double pack_sample_elements(const tn_type *type)
{
    double count = type->dtype != TN_DTYPE_NONE;
    for (int32_t axis = 0; axis < type->rank; axis++)
        count *= (double)type->extent[axis];
    return count;
}

// Estimates from shapes how many terms enter an element: for a sum, inputs over outputs;
// for a product of matrices (m x k by k x n), sqrt(mk * kn / mn) = k.
static double terms_of(const struct sample *s)
{
    double out = 1, first = 0, second = 0;
    for (uint32_t i = 0; i < s->num_outputs; i++)
        out = fmax(out, pack_sample_elements(&s->outputs[i]));
    for (uint32_t i = 0; i < s->num_inputs; i++) {
        double count = pack_sample_elements(&s->types[i]);
        second = fmax(second, fmin(first, count));
        first = fmax(first, count);
    }
    return fmax(first / out, sqrt(first * second / out));
}

double sample_tolerance(const struct sample *s, bool is_exact)
{
    double rounding = 0;
    if (s->tolerance > 0)
        return s->tolerance;
    for (uint32_t i = 0; i < s->num_outputs; i++)
        rounding = fmax(rounding, dtype_rounding(s->outputs[i].dtype));
    if (rounding == 0)
        return 0; // integers are exact
    double bound = rounding * (16 + 2 * terms_of(s));
    return is_exact ? bound : fmax(bound, 2e-3);
}

double sample_magnitude(const struct sample *s, const struct array *output)
{
    double most = 0;
    for (uint32_t i = 0; i < s->num_inputs && output->count < FEW_ELEMENTS; i++)
        if (dtype_derives(s->types[i].dtype) && s->in[i].tensor.data)
            most = fmax(most, array_largest(&s->in[i]));
    return most;
}

static void fill_runtime(struct sample *s)
{
    const tn_attr_table *table = &s->primitive->attrs;
    uint32_t n = s->num_inputs;
    for (uint32_t i = 0; i < table->num_fields && n < MAX_IN; i++) {
        if (!(table->fields[i].flags & TN_ATTR_RUNTIME))
            continue;
        s->in[n] = array_new(&s->types[n], PLAIN, 0x5a);
        tn_set_f64(&s->in[n].tensor, s->in[n].tensor.layout.offset, s->runtime[i]);
        n++;
    }
}

static void add_to_diagonal(struct array *x, double value)
{
    const tn_layout *l = &x->tensor.layout;
    if (value == 0 || l->rank < 2)
        return;
    int64_t rows = l->extent[l->rank - 2], columns = l->extent[l->rank - 1];
    for (int64_t i = 0; i < x->count; i++) {
        tn_complex128 v = array_get_complex(x, i);
        v.re += i / columns % rows == i % columns ? value : 0;
        array_set_complex(x, i, v);
    }
}

void sample_fill(struct kit *k, struct sample *s)
{
    bool any_float = false;
    for (uint32_t i = 0; i < s->num_inputs; i++)
        any_float |= dtype_derives(s->types[i].dtype);
    for (uint32_t i = 0; i < s->num_inputs; i++) {
        tn_dtype dtype = s->types[i].dtype;
        if (dtype == TN_DTYPE_NONE)
            continue;
        s->in[i] = array_new(&s->types[i], PLAIN, 0x5a);
        if (dtype_derives(dtype)) {
            array_fill(k, &s->in[i], s->low, s->high);
            add_to_diagonal(&s->in[i], s->diagonal);
        } else if (any_float)
            array_fill(k, &s->in[i], 0, 2); // integers beside floats: most likely indices
        else
            array_fill(k, &s->in[i], i ? 0 : -5, i ? 3 : 5);
    }
    fill_runtime(s);
}

void sample_free(struct sample *s)
{
    for (uint32_t i = 0; i < MAX_IN; i++)
        array_free(&s->in[i]);
}

const char *sample_text(const struct sample *s)
{
    static char text[500];
    char types[300];
    char *attrs = tn_attrs_print(&s->primitive->attrs, s->attrs, 0);
    format_text(text, sizeof(text), "%s%s%.180s",
                types_text(types, sizeof(types), s->types, s->num_inputs),
                attrs && attrs[0] ? ", " : "", attrs ? attrs : "");
    tn_text_free(attrs);
    return text;
}

void sampling_apply(const struct sampling *how, struct sample *s)
{
    s->low = how->low;
    s->high = how->high;
    s->diagonal = how->diagonal;
    s->tolerance = how->tolerance;
}
