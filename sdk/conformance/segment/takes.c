// SPDX-License-Identifier: MIT
// Programs that gather, on devices with TN_DEVICE_TAKES: the element that an index means,
// its place in memory, and gathers in row programs.
#include "segment.h"

enum { ROWS = 13, COUNT_ALONG = 11, MOST_COLUMNS = 3000 };

static struct draft draft;
static struct draft_program program;

// Where the index stands in out[r, c], r < ROWS: table[i[r], c], table[i[r, c]] or
// table[r, i[c]].
enum take_position { OF_ROW, OF_ELEMENT, OF_COLUMN, NUM_POSITIONS };
static const char *const position_names[] = {"an index a row", "an index an element",
                                             "an index a column"};

struct takes_case {
    enum take_form form;
    enum take_position take_position;
    tn_dtype dtype, indices;
    enum layout_kind kind; // of the table and the indices
    int64_t columns;
};

// --- indices ---------------------------------------------------------------------------

// The element that an index means, by the words of <tenon/expr.h>. Of u64 those from 2^63
// on are negative here.
static int64_t segment_takes_meant(tn_dtype dtype, int64_t index)
{
    if (!tn_is_signed(dtype))
        return index >= 0 && index < COUNT_ALONG ? index : COUNT_ALONG - 1;
    if (index < 0)
        index += COUNT_ALONG; // from the end
    return index < 0 ? 0 : index < COUNT_ALONG ? index : COUNT_ALONG - 1;
}

// The i-th index: around both ends, then the extremes of the dtype. Those of TAKE_AT_MOST
// are small, since they are added.
static int64_t nth_index(const struct takes_case *s, int64_t i)
{
    static const int64_t far[] = {INT8_MAX,   INT8_MIN,   UINT8_MAX,       INT16_MAX,
                                  INT16_MIN,  UINT16_MAX, INT32_MAX,       INT32_MIN,
                                  UINT32_MAX, INT64_MAX,  (1LL << 32) + 3, -(1LL << 32) + 3,
                                  INT64_MIN,  -1};
    if (i % 3 == 2 && s->form != TAKE_AT_MOST) {
        int64_t index = far[i / 3 % (int64_t)COUNT(far)];
        int bits = 8 * (int)tn_dtype_bytes(s->indices);
        if (bits == 64)
            return index;
        int64_t wrapped = (int64_t)((uint64_t)index << (64 - bits) >> (64 - bits));
        bool is_negative = tn_is_signed(s->indices) && wrapped >> (bits - 1);
        return is_negative ? wrapped - (INT64_C(1) << bits) : wrapped;
    }
    int64_t below = tn_is_signed(s->indices) ? COUNT_ALONG + 2 : 0;
    return i * 5 % (COUNT_ALONG + 3 + below) - below;
}

// --- one case --------------------------------------------------------------------------

static tn_type segment_takes_type_of(tn_dtype dtype, int64_t rows, int64_t columns)
{
    return (tn_type){.dtype = dtype, .rank = 2, .extent = {rows, columns}};
}

// The layout of an array 1 x n, n x 1 or m x n, broadcast to the extents of the output.
static tn_layout segment_takes_spread(tn_layout layout, int64_t columns)
{
    for (int32_t axis = 0; axis < 2; axis++) {
        layout.stride[axis] = layout.extent[axis] == 1 ? 0 : layout.stride[axis];
        layout.extent[axis] = axis == 0 ? ROWS : columns;
    }
    return layout;
}

struct arrays {
    struct array table, indices, out, want;
};

static struct arrays segment_takes_make_arrays(const struct takes_case *s)
{
    static const struct {
        bool by_row, by_column; // axes along which the indices vary
    } has[] = {{true, false}, {true, true}, {false, true}};
    tn_type table = s->take_position == OF_ROW
                        ? segment_takes_type_of(s->dtype, COUNT_ALONG, s->columns)
                    : s->take_position == OF_COLUMN
                        ? segment_takes_type_of(s->dtype, ROWS, COUNT_ALONG)
                        : segment_takes_type_of(s->dtype, COUNT_ALONG, 1);
    tn_type indices =
        segment_takes_type_of(s->indices, has[s->take_position].by_row ? ROWS : 1,
                              has[s->take_position].by_column ? s->columns : 1);
    tn_type out = segment_takes_type_of(s->dtype, ROWS, s->columns);
    struct arrays a = {array_new(&table, s->kind, 0x33), array_new(&indices, s->kind, 0x5a),
                       array_new(&out, PLAIN, 0x5a), array_new(&out, PLAIN, 0)};
    for (int64_t i = 0; i < a.table.count; i++)
        array_set(&a.table, i, (double)((i * 7 + 3) % 10));
    for (int64_t r = 0; r < indices.extent[0]; r++)
        for (int64_t c = 0; c < indices.extent[1]; c++)
            tn_set_i64(&a.indices.tensor,
                       tn_offset_at(&a.indices.tensor.layout, (const int64_t[]){r, c}),
                       nth_index(s, r * indices.extent[1] + c));
    return a;
}

static int64_t segment_takes_index_at(const struct arrays *a, int64_t r, int64_t c)
{
    const tn_layout *layout = &a->indices.tensor.layout;
    const int64_t at[] = {layout->extent[0] == 1 ? 0 : r, layout->extent[1] == 1 ? 0 : c};
    return tn_get_i64(&a->indices.tensor, tn_offset_at(layout, at));
}

static double segment_takes_taken(const struct takes_case *s, const struct arrays *a,
                                  int64_t index, int64_t r, int64_t c)
{
    int64_t i = segment_takes_meant(s->indices, index);
    int64_t at = s->take_position == OF_ROW      ? i * s->columns + c
                 : s->take_position == OF_COLUMN ? r * COUNT_ALONG + i
                                                 : i;
    return array_get(&a->table, at);
}

static void fill_row(const struct takes_case *s, struct arrays *a, int64_t r)
{
    int64_t most = segment_takes_index_at(a, r, 0);
    double sum = 0;
    for (int64_t c = 0; c < s->columns; c++) {
        most =
            segment_takes_index_at(a, r, c) > most ? segment_takes_index_at(a, r, c) : most;
        sum += segment_takes_taken(s, a, segment_takes_index_at(a, r, c), r, c);
    }
    for (int64_t c = 0; c < s->columns; c++) {
        int64_t index = segment_takes_index_at(a, r, c);
        double value =
            segment_takes_taken(s, a, s->form == TAKE_AT_MOST ? most : index, r, c);
        value += s->form == TAKE_CENTRED   ? -sum
                 : s->form == TAKE_AT_MOST ? (double)index
                                           : 0;
        array_set(&a->want, r * s->columns + c, value);
    }
}

// Drafts the step. `params` must live as long as the draft.
static tn_step *draft_take(struct fixture *f, const struct takes_case *s,
                           const struct arrays *a, uint64_t params[2],
                           tn_buffer *buffers[3])
{
    const tn_layout *table = &a->table.tensor.layout;
    draft_start(&draft);
    program_take(&program, s->form, s->dtype, s->indices);
    tn_value values[] = {segment_upload(f, &draft, &a->table, &buffers[0]),
                         segment_upload(f, &draft, &a->indices, &buffers[1]),
                         segment_upload(f, &draft, &a->out, &buffers[2])};
    int32_t along =
        s->take_position == OF_COLUMN ? 1 : 0; // the axis that indices count along
    params[0] = COUNT_ALONG;
    params[1] = (uint64_t)table->stride[along];
    values[0].layout.extent[along] = 1; // the elements that index 0 means
    values[0].layout = segment_takes_spread(values[0].layout, s->columns);
    values[1].layout = segment_takes_spread(values[1].layout, s->columns);
    if (s->form == TAKE_ELEMENT)
        values_merge(values, 3);
    tn_step *step = draft_program(&draft, &program, values, &values[2], 0, 0);
    step->params = params;
    return step;
}

// Runs a case; false: step_check refused it.
static bool segment_takes_try_sample(struct fixture *f, const struct takes_case *s)
{
    uint64_t params[2];
    tn_buffer *buffers[3];
    char what[120];
    struct arrays a = segment_takes_make_arrays(s);
    for (int64_t r = 0; r < ROWS; r++)
        fill_row(s, &a, r);
    tn_step *step = draft_take(f, s, &a, params, buffers);
    format_text(what, sizeof(what), "%s, %s by %s, %s, %d columns",
                position_names[s->take_position], tn_dtype_name(s->dtype),
                tn_dtype_name(s->indices), layout_names[s->kind], (int)s->columns);
    check_case(f->kit);
    bool accepted = segment_accepts(f, step);
    if (accepted && buffers[0] && buffers[1] && buffers[2] &&
        segment_run(f, &draft, buffers))
        segment_compare(f, buffers[2], &a.out, &a.want, what);
    for (uint32_t i = 0; i < 3; i++)
        if (buffers[i])
            fixture_destroy(f, buffers[i]);
    array_free(&a.table);
    array_free(&a.indices);
    array_free(&a.out);
    array_free(&a.want);
    return accepted;
}

// --- checks ----------------------------------------------------------------------------

// Skips the check where the device lacks one of the flags.
static bool has_flags(struct fixture *f, uint32_t flags, const char *what)
{
    bool has = (f->info.flags & flags) == flags && fixture_consumes(f, TN_FAMILY_EXPR);
    if (!has)
        check_skip(f->kit, "%s", what);
    else if (!fixture_computes(f))
        check_skip(f->kit, "it computes nothing");
    return has && fixture_computes(f);
}

// A device with TN_DEVICE_TAKES has to accept at least one case.
static void expect_some(struct fixture *f, uint32_t accepted)
{
    if (accepted == 0 && !check_failed(f->kit))
        check_fail(f->kit, "its flags say that it gathers, but step_check declines each "
                           "program that does");
}

static void check_takes(struct fixture *f)
{
    if (!has_flags(f, TN_DEVICE_TAKES, "it gathers in no program"))
        return;
    uint32_t accepted = 0, dtypes = f->info.dtypes ? f->info.dtypes : TN_FIRST_DTYPES;
    for (int take_position = 0; take_position < NUM_POSITIONS; take_position++)
        for (int kind = PLAIN; kind <= GAPS && !check_failed(f->kit); kind++)
            accepted += segment_takes_try_sample(
                f, &(struct takes_case){TAKE_ELEMENT, (enum take_position)take_position,
                                        TN_F32, TN_I32, (enum layout_kind)kind, 37});
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++) {
        if (!tn_dtype_in(dtype, dtypes) || check_failed(f->kit))
            continue;
        accepted += segment_takes_try_sample(
            f, &(struct takes_case){TAKE_ELEMENT, OF_ROW, dtype, TN_I32, PLAIN, 40});
        if (tn_dtype_in(dtype, TN_INTEGER_DTYPES))
            accepted +=
                segment_takes_try_sample(f, &(struct takes_case){TAKE_ELEMENT, OF_ELEMENT,
                                                                 TN_F32, dtype, PLAIN, 40});
    }
    expect_some(f, accepted);
}

static void check_takes_rows(struct fixture *f)
{
    static const struct takes_case samples[] = {
        {TAKE_CENTRED, OF_ROW, TN_F32, TN_I32, PLAIN, 40},
        {TAKE_CENTRED, OF_ROW, TN_F32, TN_I64, SHIFTED, 40},
        {TAKE_CENTRED, OF_ROW, TN_I32, TN_I32, PLAIN, 37},
        {TAKE_CENTRED, OF_ROW, TN_F16, TN_I32, GAPS, 5},
        {TAKE_CENTRED, OF_ROW, TN_F32, TN_I32, PLAIN, MOST_COLUMNS},
        {TAKE_CENTRED, OF_ELEMENT, TN_F32, TN_I32, PLAIN, 40},
        {TAKE_CENTRED, OF_ELEMENT, TN_F32, TN_U8, PLAIN, 37},
        {TAKE_CENTRED, OF_COLUMN, TN_F32, TN_I32, SHIFTED, 40},
        {TAKE_CENTRED, OF_COLUMN, TN_F32, TN_I32, TRANSPOSED, 37},
        {TAKE_AT_MOST, OF_ELEMENT, TN_I32, TN_I32, PLAIN, 40},
        {TAKE_AT_MOST, OF_ELEMENT, TN_I32, TN_I32, PLAIN, 37},
    };
    if (!has_flags(f, TN_DEVICE_TAKES | TN_DEVICE_ROWS, "it gathers in no row program"))
        return;
    uint32_t accepted = 0, dtypes = f->info.dtypes ? f->info.dtypes : TN_FIRST_DTYPES;
    for (size_t i = 0; i < COUNT(samples) && !check_failed(f->kit); i++)
        if (tn_dtype_in(samples[i].dtype, dtypes) &&
            tn_dtype_in(samples[i].indices, dtypes))
            accepted += segment_takes_try_sample(f, &samples[i]);
    expect_some(f, accepted);
}

static const struct fixture_check checks[] = {
    {"segment.takes", check_takes},
    {"segment.takes-rows", check_takes_rows},
};

void segment_takes(struct kit *k)
{
    fixture_run(k, checks, COUNT(checks));
}
