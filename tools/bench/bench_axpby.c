// SPDX-License-Identifier: MIT
// alpha * x + beta * y in each form that Tenon offers, beside PyTorch and MLX.
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#define ROWS 256
#define COLUMNS 512
#define EVALUATIONS 5000 // in all, spread over the rounds

struct axpby {
    struct bench *bench;
    tn_array *x, *y;       // kept
    const char *primitive; // NULL: built from base operators
    struct peers *peers;
    const char *work; // request to a peer; NULL: Tenon
};

static tn_array *bench_axpby_build(const struct axpby *a, tn_scope *s)
{
    if (a->primitive)
        return tn_op(s, a->primitive, TN_IN(a->x, a->y),
                     tn_attrs("alpha", 4.0, "beta", 2.0));
    tn_array *ax = tn_op(s, "base.multiply/1", TN_IN(tn_float(s, 4), a->x), TN_NO_ATTRS);
    tn_array *by = tn_op(s, "base.multiply/1", TN_IN(tn_float(s, 2), a->y), TN_NO_ATTRS);
    return tn_op(s, "base.add/1", TN_IN(ax, by), TN_NO_ATTRS);
}

static double bench_axpby_run_tenon(struct contestant *self, uint64_t times)
{
    struct axpby *a = self->state;
    double begin = now_seconds();
    for (uint64_t i = 0; i < times; i++) {
        tn_scope *s = tn_scope_open(a->bench->runtime);
        if (tn_eval(s, bench_axpby_build(a, s))) {
            failed_run(s);
            tn_scope_close(s);
            return -1;
        }
        tn_scope_close(s);
    }
    return now_seconds() - begin;
}

static double run_peer(struct contestant *self, uint64_t times)
{
    struct axpby *a = self->state;
    return peers_run(a->peers, a->work, times);
}

static tn_array *kept_matrix(tn_scope *s)
{
    float *data = malloc(ROWS * COLUMNS * sizeof(*data));
    if (!data)
        return NULL;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = (float)(i % 31) * 0.25f;
    tn_array *kept = tn_keep(s, tn_from_data(s, TN_F32, TN_SHAPE(ROWS, COLUMNS), data));
    free(data);
    return kept;
}

static bool is_installed(const struct bench *bench, const char *primitive)
{
    return tn_primitive_find(bench->runtime, primitive) != NULL;
}

void bench_axpby(struct bench *bench)
{
    static const struct {
        const char *name, *primitive, *work;
    } ways[] = {
        {"simple graph", NULL, NULL},
        {"one-line primitive", "acme.axpby_expr/1", NULL},
        {"BLAS primitive", "acme.axpby/1", NULL},
        {"PyTorch", NULL, "torch axpby"},
        {"MLX", NULL, "mlx axpby"},
    };
    struct peers peers;
    struct axpby states[COUNT(ways)];
    struct contestant list[COUNT(ways)];
    size_t count = 0;
    title(bench,
          "axpby f32 %dx%d, a graph built and evaluated each time "
          "(simple graph no slower than BLAS, ahead of peers)",
          ROWS, COLUMNS);
    peers_start(&peers, bench, "cpu");
    fprintf(bench->out, "  beside %s\n", peers.names);
    tn_scope *s = tn_scope_open(bench->runtime);
    tn_array *x = kept_matrix(s), *y = kept_matrix(s);
    for (size_t i = 0; i < COUNT(ways); i++) {
        const char *work = ways[i].work;
        if (ways[i].primitive && !is_installed(bench, ways[i].primitive))
            continue;
        if (work && !(strncmp(work, "torch", 5) == 0 ? peers.has_torch : peers.has_mlx))
            continue;
        states[count] = (struct axpby){bench, x, y, ways[i].primitive, &peers, work};
        list[count] = (struct contestant){
            ways[i].name, work ? run_peer : bench_axpby_run_tenon, &states[count], {0}, 0};
        count++;
    }
    contest(list, count, bench->rounds, EVALUATIONS / (uint64_t)bench->rounds);
    for (size_t i = 0; i < count; i++)
        report(bench, &list[i], "%.2f times the simple graph",
               list[i].median / list[0].median);
    tn_release(x);
    tn_release(y);
    tn_scope_close(s);
    peers_stop(&peers);
}
