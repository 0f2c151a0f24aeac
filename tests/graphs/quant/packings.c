// SPDX-License-Identifier: MIT
// Packings of third parties: found by their ids, unpacked where no kernel reads them; which
// ones a device wants; and what is told of wrong ones. The plugin is
// tests/fixtures/quant_format.c.
#include "device/device.h"
#include "packing_of.h"
#include "plugin/find/abi.h"
#include "plugin/find/reason.h"

#include <stdbool.h>
#include <stdlib.h>
#include <tenon/ops/quant.h>

enum { N = 7, K = 64 };

static void open_cpu(void)
{
    runtime = open_on("cpu-blas");
}

TestSuite(packings, .init = open_cpu, .fini = teardown);

// The bytes of q8_0 of any numbers: finite scales, any fractions.
static tn_array *blocks(tn_scope *s, int64_t stack)
{
    int64_t count = stack * N * K;
    float *values = malloc((size_t)count * sizeof(*values));
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((i * i * 7 + 3 * i) % 31) / 8 - 2;
    tn_shape shape = stack > 1 ? *TN_SHAPE(stack, N, K) : *TN_SHAPE(N, K);
    tn_array *x = tn_from_data(s, TN_F32, &shape, values);
    free(values);
    return tn_op(s, "quant.quantize", TN_IN(x), tn_attrs("format", "q8_0"));
}

static tn_array *packed(tn_scope *s, const tn_array *w, const char *from, const char *to)
{
    return tn_op(s, "quant.pack", TN_IN(w), tn_attrs("format", from, "to", to));
}

static void check_same(tn_scope *s, const tn_array *a, const tn_array *b, size_t element)
{
    size_t size = element;
    const tn_type *x = tn_array_type(a), *y = tn_array_type(b);
    cr_assert(x && y, "%s", tn_scope_error(s));
    cr_assert(eq(i32, x->rank, y->rank));
    for (int32_t i = 0; i < x->rank; i++) {
        cr_assert(eq(i64, x->extent[i], y->extent[i]));
        size *= (size_t)x->extent[i];
    }
    uint8_t *got = malloc(size), *want = malloc(size);
    must(s, tn_read(s, a, got, size));
    must(s, tn_read(s, b, want, size));
    cr_assert(eq(int, memcmp(got, want, size), 0));
    free(got);
    free(want);
}

// --- found by id ------------------------------------------------------------------------

// What an operator gives of plain rows, and of packed ones.
static void check_operators(tn_scope *s, const char *id, tn_array *w, tn_array *p)
{
    const char *const formats[] = {"q8_0", id};
    tn_array *const weights[] = {w, p};
    tn_array *x = ramp(s, 3, K, -2, 0.03f), *floats[2], *taken[2], *products[2];
    tn_array *ids = tn_from_data(s, TN_I64, TN_SHAPE(4), (const int64_t[]){0, 6, -3, 99});
    for (int i = 0; i < 2; i++) {
        floats[i] =
            tn_op(s, "quant.dequantize", TN_IN(weights[i]), tn_attrs("format", formats[i]));
        taken[i] = tn_op(s, "quant.quantized_take", TN_IN(weights[i], ids),
                         tn_attrs("format", formats[i]));
        products[i] = tn_op(s, "quant.quantized_matmul", TN_IN(x, weights[i]),
                            tn_attrs("format", formats[i], "exact", (int64_t)1));
    }
    check_same(s, floats[1], floats[0], 4);
    check_same(s, taken[1], taken[0], 4);
    float got[3 * N], want[3 * N];
    must(s, tn_read(s, products[1], got, sizeof(got)));
    must(s, tn_read(s, products[0], want, sizeof(want)));
    for (int i = 0; i < 3 * N; i++)
        cr_assert(le(dbl, fabs((double)got[i] - (double)want[i]), 1e-4), "%s, %d", id, i);
}

// A packing with bytes of its own in each row: the rows stay, their bytes do not.
static void check_thirds(void)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *w = blocks(s, 1), *p = packed(s, w, "q8_0", "com.acme.thirds");
    must(s, tn_scope_status(s));
    cr_assert(eq(i64, tn_array_type(p)->extent[0], N));
    cr_assert(eq(i64, tn_array_type(p)->extent[1], K / 32 * 34 + 2));
    check_operators(s, "com.acme.thirds", w, p);
    check_same(s, packed(s, p, "com.acme.thirds", "q8_0"), w, 1);
    // From one packing to another, and in a view of packed rows.
    check_same(s, packed(s, p, "com.acme.thirds", TN_QUANT_R16_ID(q8_0)),
               packed(s, w, "q8_0", TN_QUANT_R16_ID(q8_0)), 1);
    tn_array *turned = un(s, "base.transpose", un(s, "base.transpose", p));
    check_same(s, packed(s, turned, "com.acme.thirds", "q8_0"), w, 1);
    tn_scope_close(s);
}

Test(packings, a_plugins_packing_is_found_and_unpacked)
{
    check_thirds();
}

// Each launch is compared with the definition, which unpacks.
Test(packings, checked_launches_unpack)
{
    tn_runtime_close(runtime);
    runtime =
        open_with((const char *const[]){"TENON_BACKEND=cpu-blas", "TENON_CHECK=1", NULL});
    check_thirds();
    tn_scope *s = tn_scope_open(runtime);
    tn_array *w = blocks(s, 1);
    check_operators(s, TN_QUANT_R16_ID(q8_0), w,
                    packed(s, w, "q8_0", TN_QUANT_R16_ID(q8_0)));
    tn_scope_close(s);
}

Test(packings, each_matrix_of_a_stack_is_packed_alone)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *w = blocks(s, 2), *p = packed(s, w, "q8_0", "com.acme.thirds");
    for (int64_t i = 0; i < 2; i++) {
        tn_array *each[2];
        tn_array *from[2] = {w, p};
        tn_array *at = tn_from_data(s, TN_I64, TN_SCALAR, &i);
        for (int j = 0; j < 2; j++)
            each[j] =
                tn_op(s, "base.take", TN_IN(from[j], at), tn_attrs("axis", (int64_t)0));
        check_same(s, packed(s, each[0], "q8_0", "com.acme.thirds"), each[1], 1);
    }
    tn_array *x = tn_op(s, "base.reshape", TN_IN(ramp(s, 3, K, -2, 0.03f)),
                        tn_attrs("shape", TN_INTS(3, 1, K)));
    tn_array *ids =
        tn_from_data(s, TN_I64, TN_SHAPE(3, 2), (const int64_t[]){0, 1, 1, 1, -2, 5});
    const char *const formats[] = {"q8_0", "com.acme.thirds"};
    float out[2][3 * 2 * N];
    for (int i = 0; i < 2; i++)
        must(s, tn_read(s,
                        tn_op(s, "quant.experts_matmul", TN_IN(x, i ? p : w, ids),
                              tn_attrs("format", formats[i], "exact", (int64_t)1)),
                        out[i], sizeof(out[i])));
    for (int i = 0; i < 3 * 2 * N; i++)
        cr_assert(le(dbl, fabs((double)out[0][i] - (double)out[1][i]), 1e-4), "%d", i);
    tn_scope_close(s);
}

// Of a format that is a plugin's, too; all rows are one group.
Test(packings, a_plugins_format_has_packings)
{
    const uint8_t bytes[3][6] = {
        {16, 3, 0xfe, 8, 1, 2}, {8, 10, 0, 4, 7, 9}, {1, 2, 3, 4, 5, 6}};
    uint8_t got[3][6];
    tn_scope *s = tn_scope_open(runtime);
    tn_array *w = tn_from_data(s, TN_U8, TN_SHAPE(3, 6), bytes);
    tn_array *p = packed(s, w, "acme_3", "com.acme.whole");
    must(s, tn_read(s, p, got, sizeof(got)));
    for (int i = 0; i < 18; i++)
        cr_assert(eq(u8, ((uint8_t *)got)[i], ((const uint8_t *)bytes)[17 - i]));
    check_same(s, packed(s, p, "com.acme.whole", "acme_3"), w, 1);
    check_same(s,
               tn_op(s, "quant.dequantize", TN_IN(p), tn_attrs("format", "com.acme.whole")),
               tn_op(s, "quant.dequantize", TN_IN(w), tn_attrs("format", "acme_3")), 4);
    tn_scope_close(s);
}

Test(packings, wrong_packings_are_told)
{
    static const struct {
        const char *format, *to; // to: NULL: dequantize
        int64_t rows, bytes;
        const char *said;
    } wrongs[] = {
        {"org.acme.none", NULL, 4, 70,
         "a plugin with packing \"org.acme.none\", or use one of the packings "
         "org.tenon.q4_0_r16"},
        {"q4_0_r16", NULL, 16, 18, "a plugin with format \"q4_0_r16\""},
        {"q8_0", "com.Acme", 4, 34, "format is \"com.Acme\", expected one of q4_0"},
        {"com.acme.lost", NULL, 4, 6, "a plugin with format \"acme_none\""},
        {"com.acme.half", NULL, 4, 6, "packing com.acme.half: its record lacks a function"},
        {"com.acme.thirds", NULL, 7, 68,
         "w has shape [7, 68], expected rows of whole blocks: 7 rows of a block have 252 "
         "bytes in com.acme.thirds"},
        {"com.acme.thirds", NULL, 7, 1, "expected rows of whole blocks"},
        {"acme_3", "com.acme.odd", 4, 6,
         "packing com.acme.odd has 25 bytes for 4 rows of 4 elements"},
        {"q8_0", "com.acme.whole", 4, 34,
         "to is \"com.acme.whole\", expected \"q8_0\" or a packed format of it"},
    };
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        uint8_t *bytes = calloc(1, (size_t)(wrongs[i].rows * wrongs[i].bytes));
        tn_array *w =
            tn_from_data(s, TN_U8, TN_SHAPE(wrongs[i].rows, wrongs[i].bytes), bytes);
        free(bytes);
        if (wrongs[i].to)
            packed(s, w, wrongs[i].format, wrongs[i].to);
        else
            tn_op(s, "quant.dequantize", TN_IN(w), tn_attrs("format", wrongs[i].format));
        const char *said = tn_scope_error(s);
        cr_assert(said && strstr(said, wrongs[i].said), "case %zu: %s", i, said);
        tn_scope_close(s);
    }
}

// Rows that are there and are not: the bytes of a row tell the columns.
Test(packings, matrices_without_rows_have_columns)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *w = tn_from_data(s, TN_U8, TN_SHAPE(0, 70), "");
    tn_array *x =
        tn_op(s, "quant.dequantize", TN_IN(w), tn_attrs("format", "com.acme.thirds"));
    must(s, tn_scope_status(s));
    cr_assert(eq(i64, tn_array_type(x)->extent[1], 64));
    x = packed(s, w, "com.acme.thirds", "q8_0");
    must(s, tn_scope_status(s));
    cr_assert(eq(i64, tn_array_type(x)->extent[1], 68));
    must(s, tn_eval(s, x));
    tn_scope_close(s);
}

// --- what a device wants ----------------------------------------------------------------

Test(packings, the_device_tells_which_it_wants)
{
    const tn_packing *packing = (const tn_packing *)(const void *)"not written";
    for (uint32_t i = 0; tn_quant_packing_at(i); i++) {
        const tn_packing *known = tn_quant_packing_at(i);
        must(NULL, tn_selected_packing(runtime, "cpu-blas", known->format, &packing));
        cr_assert(eq(str, (char *)packing->id, (char *)known->id));
        cr_assert(packing->flags & TN_PACKING_STACKED);
    }
    must(NULL, tn_selected_packing(runtime, "cpu-blas:0", "acme_3", &packing));
    cr_assert(eq(ptr, (void *)packing, NULL));
    check_status(tn_selected_packing(runtime, "vulkan:7", "q4_0", &packing),
                 TN_ERR_NOT_FOUND);
    cr_assert(
        ne(ptr, strstr(tn_last_error(), "selected_packing: \"vulkan:7\" is none"), NULL));
    check_status(tn_selected_packing(NULL, "cpu-blas", "q4_0", &packing), TN_ERR_ARGUMENT);
    check_status(tn_selected_packing(runtime, NULL, "q4_0", &packing), TN_ERR_ARGUMENT);
    check_status(tn_selected_packing(runtime, "cpu-blas", NULL, &packing), TN_ERR_ARGUMENT);
    check_status(tn_selected_packing(runtime, "cpu-blas", "q4_0", NULL), TN_ERR_ARGUMENT);
}

// The backend's table with other packings.
static void exchange(tn_backend *table, const void *packings, uint32_t count, uint32_t size)
{
    struct device **devices;
    uint32_t num;
    must(NULL, devices_open(runtime, &devices, &num));
    *table = *devices[0]->ops;
    table->packings = packings;
    table->num_packings = count;
    table->packing_size = size;
    devices[0]->ops = table;
}

// Of a newer backend records are longer; the first of a format is the preferred one.
Test(packings, a_third_partys_backend_has_its_own)
{
    struct {
        tn_packing known;
        uint64_t added[3];
    } list[3] = {{.known = {.format = "q4_0", .id = "com.acme.of_q4_0"}},
                 {.known = {.format = "q8_0", .id = "com.acme.thirds"}},
                 {.known = TN_QUANT_R16(q8_0, 0)}};
    static tn_backend table;
    exchange(&table, list, 3, sizeof(list[0]));
    cr_assert(eq(str, (char *)packing_of(runtime, "q8_0"), "com.acme.thirds"));
    cr_assert(eq(str, (char *)packing_of(runtime, "q4_0"), "com.acme.of_q4_0"));
    cr_assert(eq(ptr, (void *)packing_of(runtime, "q4_1"), NULL));
}

Test(packings, an_older_backend_has_none)
{
    static tn_backend table;
    exchange(&table, tn_quant_packing_at(0), 13, sizeof(tn_packing));
    cr_assert(ne(ptr, (void *)packing_of(runtime, "q4_0"), NULL));
    table.struct_size = (uint32_t)TN_END_OF(&table, buffer_read_after);
    cr_assert(eq(ptr, (void *)packing_of(runtime, "q4_0"), NULL));
}

// --- what the core refuses --------------------------------------------------------------

static void check_refused(const void *packings, uint32_t count, uint32_t size,
                          const char *said)
{
    static tn_backend table;
    struct reason reason = {0};
    exchange(&table, packings, count, size);
    tn_status status = abi_check_backend(&table, "com.acme.x", &reason);
    check_status(status, said ? TN_ERR_REFUSED : TN_OK);
    if (said && !strstr(reason.text, said))
        cr_fatal("%s: %s", said, reason.text);
}

Test(packings, wrong_records_are_refused)
{
    tn_packing good[2] = {TN_QUANT_R16(q8_0, 0), TN_QUANT_R16(q4_0, 0)};
    const uint32_t size = sizeof(good[0]);
    check_refused(good, 2, size, NULL);
    check_refused(NULL, 0, 0, NULL);
    check_refused(NULL, 2, size, "list of packings has 2 entries, at most 0");
    check_refused(good, 2, 0, "its packings are 0 bytes apart");
    check_refused(good, 2, 32, "its packings are 32 bytes apart, expected 56");
    check_refused(good, 1000000, size, "list of packings has 1000000 entries");
    tn_packing wrong[5] = {good[0], good[0], good[0], good[0], good[0]};
    wrong[0].id = "plain";
    wrong[1].format = NULL;
    wrong[2].unpack = NULL;
    wrong[3].group = -1;
    wrong[4].struct_size = size + 8;
    for (int i = 0; i < 4; i++)
        check_refused(&wrong[i], 1, size,
                      "lacks a valid id, a format, a group or a function");
    check_refused(&wrong[4], 1, size, "a packing has 64 bytes in a list of 56 for each");
}
