// SPDX-License-Identifier: MIT
// Modes of `member` in which members wait for messages: late ones, and those of each other.
#include <stdio.h>
#include <unistd.h>
#include "member.h"

static tn_array *receive_from(tn_scope *s, const char *group, int from, int tag)
{
    return tn_op(s, "dist.receive", NULL, 0,
                 tn_attrs("shape", TN_INTS(3), "dtype", "f32", "source", from, "tag", tag,
                          "group", group));
}

// Rank 0 is late, and each other waits for a message of the rank before it.
void mode_late(tn_scope *s)
{
    double mine[3] = {1, 2, 3}, got[3];
    tn_array *x = numbers(s, TN_F32, 3, mine);
    if (rank == 0)
        usleep(1200000);
    else
        expect(s, receive_from(s, "world", rank - 1, 0), 3, mine, "a late message");
    if (rank < size - 1)
        read_numbers(s, tn_op(s, "dist.send", TN_IN(x), tn_attrs("root", rank + 1)), 3,
                     got);
    reduce_once(s, 1);
    printf("rank %d: right\n", rank);
}

// Members of a group that wait for each other, in one way or another: their last result.

// Rank 1 waits for a message that nobody sends.
static tn_array *await_nothing(tn_scope *s, const char *group)
{
    tn_array *x =
        rank == 1 ? receive_from(s, group, 0, 0) : numbers(s, TN_F32, 1, &(double){0});
    return tn_op(s, "dist.all_reduce", TN_IN(x), tn_attrs("group", group));
}

static tn_array *await_ring(tn_scope *s, const char *group)
{
    return receive_from(s, group, (rank + 1) % size, 0);
}

// Rank 1 waits for another tag than that of what rank 0 sends.
static tn_array *await_tag(tn_scope *s, const char *group)
{
    tn_array *x = numbers(s, TN_F32, 3, (double[]){1, 2, 3});
    if (rank == 0)
        x = tn_op(s, "dist.send", TN_IN(x), tn_attrs("root", 1, "tag", 7, "group", group));
    else if (rank == 1)
        x = receive_from(s, group, 0, 5);
    return tn_op(s, "dist.all_reduce", TN_IN(x), tn_attrs("group", group));
}

// A message that does not end before it is received.
static tn_array *send_large(tn_scope *s, const char *group, int to, int tag)
{
    enum { COUNT = 1 << 20 };
    static float values[COUNT];
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(COUNT), values);
    return tn_op(s, "dist.send", TN_IN(x),
                 tn_attrs("root", to, "tag", tag, "group", group));
}

static tn_array *await_receivers(tn_scope *s, const char *group)
{
    return send_large(s, group, (rank + 1) % size, 3);
}

static tn_array *await_large_tag(tn_scope *s, const char *group)
{
    return rank == 0   ? send_large(s, group, 1, 7)
           : rank == 1 ? receive_from(s, group, 0, 5)
                       : receive_from(s, group, 0, 0);
}

// Members wait for each other, in one group after another.
void mode_awaits(tn_scope *unused)
{
    static const struct {
        const char *name;
        tn_array *(*build)(tn_scope *s, const char *group);
    } cases[] = {{"nothing", await_nothing},
                 {"ring", await_ring},
                 {"tag", await_tag},
                 {"receivers", await_receivers},
                 {"large", await_large_tag}};
    (void)unused;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        check_dist(dist->split(host, NULL, 0, 0, cases[i].name));
        double began = now();
        tn_array *x = cases[i].build(s, cases[i].name);
        check(tn_eval(s, x) != TN_OK, "members that wait for each other");
        printf("%s of %d, %.1f s: %s\n", cases[i].name, rank, now() - began,
               tn_scope_error(s));
        fflush(stdout);
        tn_scope_close(s);
    }
}
