// SPDX-License-Identifier: MIT
// Products of matrices through tn_eval, beside the same call of cblas_sgemm. The backend
// opens OpenBLAS first, for it chooses the kernels: a program that links it would choose
// before.
#include "bench.h"

#include <dlfcn.h>
#include <stdlib.h>

struct bench_matmul_product {
    struct bench *bench;
    int64_t m, k, n;
    float *a, *b, *c;
    tn_array *x, *y; // kept
};

static double bench_matmul_run_tenon(struct contestant *self, uint64_t times)
{
    struct bench_matmul_product *p = self->state;
    double begin = now_seconds();
    for (uint64_t i = 0; i < times; i++) {
        tn_scope *s = tn_scope_open(p->bench->runtime);
        tn_array *z = tn_op(s, "base.matmul/1", TN_IN(p->x, p->y), TN_NO_ATTRS);
        if (tn_eval(s, z)) {
            failed_run(s);
            tn_scope_close(s);
            return -1;
        }
        tn_scope_close(s);
    }
    return now_seconds() - begin;
}

// Constants of cblas.h, whose enumerations are ints.
enum { ROW_MAJOR = 101, NO_TRANS = 111 };
static void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                     const float *a, int lda, const float *b, int ldb, float beta, float *c,
                     int ldc);

static double run_blas(struct contestant *self, uint64_t times)
{
    struct bench_matmul_product *p = self->state;
    double begin = now_seconds();
    for (uint64_t i = 0; i < times; i++)
        sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, (int)p->m, (int)p->n, (int)p->k, 1, p->a,
              (int)p->k, p->b, (int)p->n, 0, p->c, (int)p->n);
    return now_seconds() - begin;
}

static float *bench_matmul_filled(int64_t count)
{
    float *data = malloc((size_t)count * sizeof(*data));
    for (int64_t i = 0; data && i < count; i++)
        data[i] = (float)(i % 17) * 0.125f - 1;
    return data;
}

// Behind the first product of the backend.
static bool open_blas(const struct bench *bench, struct contestant *ours)
{
    if (sgemm || ours->run(ours, 1) < 0)
        return sgemm != NULL;
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void (*set_threads)(int);
    if (!library)
        return false;
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    *(void **)&sgemm = dlsym(library, "cblas_sgemm");
    if (set_threads)
        set_threads(bench->threads);
    return sgemm != NULL;
}

static void one_size(struct bench *bench, int64_t m, int64_t k, int64_t n, uint64_t times)
{
    struct bench_matmul_product p = {.bench = bench,
                                     .m = m,
                                     .k = k,
                                     .n = n,
                                     .a = bench_matmul_filled(m * k),
                                     .b = bench_matmul_filled(k * n),
                                     .c = bench_matmul_filled(m * n)};
    tn_scope *s = tn_scope_open(bench->runtime);
    if (p.a && p.b && p.c && s) {
        p.x = tn_keep(s, tn_from_data(s, TN_F32, TN_SHAPE(m, k), p.a));
        p.y = tn_keep(s, tn_from_data(s, TN_F32, TN_SHAPE(k, n), p.b));
        struct contestant list[] = {{"tenon", bench_matmul_run_tenon, &p},
                                    {"cblas_sgemm", run_blas, &p}};
        title(bench, "matmul f32 %lldx%lldx%lld (at least 0.97 of cblas_sgemm)",
              (long long)m, (long long)k, (long long)n);
        size_t count = open_blas(bench, &list[0]) ? COUNT(list) : 1;
        contest(list, count, bench->rounds, times);
        double work = 2e-9 * (double)m * (double)k * (double)n;
        for (size_t i = 0; i < count; i++)
            report(bench, &list[i], "%.1f GFLOP/s, %.3f of %s", work / list[i].median,
                   list[count - 1].median / list[i].median, list[count - 1].name);
    }
    tn_scope_close(s);
    tn_release(p.x);
    tn_release(p.y);
    free(p.a);
    free(p.b);
    free(p.c);
}

void bench_matmul(struct bench *bench)
{
    one_size(bench, 1024, 1024, 1024, 5);
    one_size(bench, 4096, 64, 4096, 5);
}
