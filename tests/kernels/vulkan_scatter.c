// SPDX-License-Identifier: MIT
// base.scatter_add/1 and base.scatter_set/1 on a Vulkan backend, bit for bit the
// reference's results: few indices and many, in and out of range, all for one row.
// TENON_TEST_PLUGIN, _BASE and _NN name the plugins.
#include "check.h"

#include <tenon/ops/base_attrs.h>
#include <tenon/ops/reference.h>
#include "vulkan_check.h"

enum order { RANDOM, EQUAL, SORTED, REVERSED, BEYOND, RUNS, NUM_ORDERS };

static const int64_t extremes[] = {INT64_MIN, INT64_MAX, -1, INT32_MIN, INT32_MAX, 0};

// Index m of `count`, for an axis of n; BEYOND: at both ends and past them.
static int64_t index_for(enum order order, int64_t m, int64_t count, int64_t n)
{
    const int64_t ends[] = {-n - 1, -n, n - 1, n};
    switch (order) {
    case EQUAL:
        return n - 1 - n / 3;
    case SORTED:
        return m * n / count;
    case REVERSED:
        return -1 - m * n / count;
    case BEYOND:
        return m % 10 < 6 ? extremes[m % 10] : ends[m % 10 - 6];
    case RUNS: // of 1, 2, 3, ... equal ones, far from each other
        for (int64_t run = 1, row = 0;; m -= run++, row += 7919)
            if (m < run)
                return row % n;
    default:
        return random_between(-n, n - 1);
    }
}

// Numbers whose sums depend on the order.
static void fill_floats(unsigned char *memory, const tn_layout *layout)
{
    tn_tensor tensor = {memory, *layout};
    if (!tn_dtype_in(layout->dtype, TN_FLOAT_DTYPES))
        return;
    for (int64_t i = 0; i < tn_layout_count(layout); i++)
        tn_set_f64(&tensor, layout->offset + i,
                   (double)random_between(-999999, 999999) / 8191);
}

struct scatter {
    tn_dtype dtype, index;
    int64_t outer, extent, inner, count;
    enum order order;
    bool in_place, sets;
};

static tn_step *add_scatter(const struct scatter *s)
{
    static const tn_take_attrs middle = {.axis = 1};
    tn_layout x = LAYOUT(s->dtype, s->outer, s->extent, s->inner);
    tn_step *step = add_check(&(struct application){
        .primitive = s->sets ? "base.scatter_set/1" : "base.scatter_add/1",
        .attrs = &middle,
        .num_inputs = 3,
        .operands = {x, LAYOUT(s->index, s->count),
                     LAYOUT(s->dtype, s->outer, s->count, s->inner), x},
        .limit = 100,
        .exact = true,
        .in_place = s->in_place});
    for (uint32_t i = 0; i < 3; i += 2)
        fill_floats(bench.memory[tn_step_input(step, i)->slot] +
                        tn_step_input(step, i)->offset,
                    &tn_step_input(step, i)->layout);
    tn_tensor indices = {bench.memory[tn_step_input(step, 1)->slot],
                         tn_step_input(step, 1)->layout};
    for (int64_t m = 0; m < s->count; m++)
        tn_set_i64(&indices, m, index_for(s->order, m, s->count, s->extent));
    return step;
}

TestSuite(vulkan_scatter, .init = begin_checks, .fini = end_checks);

Test(vulkan_scatter, every_dtype_takes_every_index)
{
    for (tn_dtype dtype = TN_BOOL + 1; dtype <= TN_F64; dtype++) {
        for (tn_dtype index = TN_BOOL; index <= TN_F64; index++)
            for (int few = 0; few < 2 && tn_dtype_in(index, TN_INTEGER_DTYPES); few++)
                for (int order = 0; order < 2; order++)
                    add_scatter(&(struct scatter){dtype, index, 2, few ? 20 : 300,
                                                  few ? 3 : 5, few ? 40 : 1100,
                                                  order ? BEYOND : RANDOM, false});
        run_checks();
    }
}

// Sums of integers by atomic additions, in shared memory where a vector's elements fit
// there (16, 32 and 48 KiB) and without; and the last of equal indices.
Test(vulkan_scatter, every_dtype_of_many_updates)
{
    static const tn_dtype dtypes[] = {TN_I64, TN_U32, TN_I32, TN_U64};
    static const struct {
        int64_t outer, extent, inner, count;
    } shapes[] = {{1, 1, 1, 1048577},  {1, 37, 1, 65537},  {1, 2048, 1, 4097},
                  {1, 2049, 1, 4096},  {1, 6144, 1, 5000}, {1, 6145, 1, 1025},
                  {1, 12289, 1, 1025}, {1, 700, 3, 1025},  {3, 700, 1, 1025}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        add_scatter(&(struct scatter){dtypes[i % 4], i % 2 ? TN_I32 : TN_I64,
                                      shapes[i].outer, shapes[i].extent, shapes[i].inner,
                                      shapes[i].count, (enum order)(i % 5), i % 3 == 0});
    run_checks();
    // Sums of floats in their order, of updates that are moved first; of more than one tile
    // of them, and of as many elements as 16 and 48 KiB of shared memory have room for.
    static const struct {
        tn_dtype dtype;
        int64_t extent, count;
        enum order order;
    } vectors[] = {{TN_F32, 100, 65536, RANDOM},  {TN_F16, 513, 65537, BEYOND},
                   {TN_F64, 1536, 73731, RANDOM}, {TN_BF16, 512, 65599, SORTED},
                   {TN_F32, 1000, 114689, RUNS},  {TN_F32, 1537, 65536, RANDOM},
                   {TN_F64, 17, 90000, EQUAL},    {TN_F32, 30, 2300001, RANDOM}};
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
        add_scatter(&(struct scatter){vectors[i].dtype, (tn_dtype)(TN_I16 + (int)i % 3), 1,
                                      vectors[i].extent, 1, vectors[i].count,
                                      vectors[i].order, i % 2});
    run_checks();
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++)
        for (int order = 0; order < 2; order++)
            add_scatter(&(struct scatter){dtype, (tn_dtype)(TN_I8 + (int)dtype % 4), 2,
                                          order ? 60 : 113, 1 + (int)dtype % 8, 1025,
                                          order ? BEYOND : RANDOM, order, true});
    run_checks();
}

// Numbers of indices around those where another way is taken, and sizes around those of
// workgroups, digits and tiles. Axes are long enough for sorting.
Test(vulkan_scatter, sizes_around_every_border)
{
    static const int64_t counts[] = {0,   1,   4,    5,    64,   65,   66,   255,  256,
                                     257, 511, 1023, 1024, 1025, 2047, 2049, 4097, 9000};
    static const struct {
        int64_t outer, extent, inner;
    } shapes[] = {{1, 70000, 3},  {1, 255, 833}, {1, 256, 1025}, {3, 257, 280},
                  {1, 1, 210000}, {2, 65536, 2}, {1, 220000, 1}};
    const size_t num_shapes = sizeof(shapes) / sizeof(shapes[0]);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (size_t k = 0; k < num_shapes; k++) {
            // At most a million updates; each order comes with each shape.
            if (counts[i] * shapes[k].outer * shapes[k].inner > 1000000)
                continue;
            add_scatter(&(struct scatter){
                TN_F32, TN_I32, shapes[k].outer, shapes[k].extent, shapes[k].inner,
                counts[i], (enum order)((i + k) % NUM_ORDERS), i / NUM_ORDERS % 2});
        }
        run_checks();
    }
}

// Rows of so many updates that a workgroup fetches them in several tiles.
Test(vulkan_scatter, long_rows_are_summed_in_order)
{
    static const int64_t inners[] = {1, 2, 5, 8, 9, 40};
    for (size_t i = 0; i < sizeof(inners) / sizeof(inners[0]); i++) {
        int64_t inner = inners[i];
        for (int order = EQUAL; order < NUM_ORDERS; order++)
            for (int kind = 0; kind < 3; kind++)
                add_scatter(&(struct scatter){kind == 0   ? TN_F16
                                              : kind == 1 ? TN_F64
                                                          : TN_F32,
                                              TN_I64, 2, 37, inner, inner < 8 ? 9001 : 3000,
                                              order, kind == 1});
        run_checks();
    }
}

// More indices than are sorted at once.
Test(vulkan_scatter, millions_of_indices_are_sorted_in_parts)
{
    add_scatter(
        &(struct scatter){TN_I16, TN_U16, 1, 1000, 1, 4194304 + 300, RANDOM, false});
    run_checks();
    add_scatter(&(struct scatter){TN_F32, TN_I32, 1, 300000, 1, 300001, RANDOM, false});
    run_checks();
}

Test(vulkan_scatter, the_same_bits_come_each_time)
{
    tn_step *steps[] = {
        add_scatter(&(struct scatter){TN_F32, TN_I32, 1, 3000, 9, 20000, RANDOM, false}),
        add_scatter(&(struct scatter){TN_BF16, TN_I64, 2, 11, 3, 20000, RUNS, false}),
        add_scatter(&(struct scatter){TN_F64, TN_U8, 1, 250, 33, 900, RANDOM, false})};
    unsigned char *first[3];
    cr_assert(eq(int, vb_run(&bench), TN_OK));
    for (int i = 0; i < 3; i++) {
        uint32_t slot = steps[i]->outputs[0].slot;
        first[i] = malloc(bench.slots[slot].size);
        cr_assert(ne(ptr, first[i], NULL));
        memcpy(first[i], bench.memory[slot], bench.slots[slot].size);
    }
    for (int times = 0; times < 5; times++) {
        cr_assert(eq(int, vb_submit(&bench, 3), TN_OK));
        cr_assert(eq(int, vb_download(&bench), TN_OK));
        for (int i = 0; i < 3; i++) {
            uint32_t slot = steps[i]->outputs[0].slot;
            cr_assert(eq(mem, bytes_of(bench.memory[slot], bench.slots[slot].size),
                         bytes_of(first[i], bench.slots[slot].size)));
        }
    }
    for (int i = 0; i < 3; i++)
        free(first[i]);
    run_checks();
}
