// SPDX-License-Identifier: MIT
// The other process of shared.c: gets memory of a device over a socket, its standard input,
// answers with the sum of its elements, then adds one to each in place, and answers again.
//
//   shared_peer BACKEND
#include "shared_peer.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static tn_array *apply(tn_scope *s, const char *op, tn_array *x, tn_array *y)
{
    return tn_op(s, op, (const tn_array *const[]){x, y}, y ? 2 : 1, TN_NO_ATTRS);
}

static tn_status increment(tn_scope *s, tn_array *const *in, uint64_t num_in,
                           tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = apply(s, "base.add", in[0], tn_float(s, 1));
    return tn_scope_status(s);
}

static int say(tn_scope *s, double number)
{
    const struct peer_answer answer = {.number = number, .status = tn_scope_status(s)};
    if (answer.status != TN_OK)
        fprintf(stderr, "# peer: %s\n", tn_scope_error(s));
    return write(STDIN_FILENO, &answer, sizeof(answer)) == sizeof(answer) ? 0 : 1;
}

static void work(tn_runtime *rt, tn_scope *s, const tn_shared_memory *memory)
{
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = &(const uint32_t){0}, .num_donated = 1};
    tn_function *function;
    tn_array *x = tn_array_import_fd(s, TN_F32, TN_SHAPE(PEER_COUNT), memory), *y = NULL;
    close(memory->fd); // the import keeps the memory
    if (say(s, tn_item(s, apply(s, "base.sum", x, NULL))) ||
        tn_function_create(rt, increment, NULL, &options, &function) != TN_OK)
        return;
    if (tn_function_call(function, s, &x, 1, &y, 1) == TN_OK)
        tn_eval(s, y);
    say(s, 0);
    tn_function_destroy(function);
}

int main(int argc, char **argv)
{
    char variable[96];
    tn_runtime *rt;
    tn_shared_memory memory;
    if (argc != 2 || !peer_receive(STDIN_FILENO, &memory))
        return 2;
    memory.flags = TN_MEMORY_WRITABLE;
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", argv[1]);
    const tn_runtime_options options = {.struct_size = sizeof(options),
                                        .variables = (const char *const[]){variable, NULL}};
    if (tn_runtime_open(&options, &rt) != TN_OK)
        return 3;
    tn_scope *s = tn_scope_open(rt);
    work(rt, s, &memory);
    tn_scope_close(s);
    // No look for leaks: drivers keep some memory.
    _exit(tn_runtime_close(rt) == TN_OK ? 0 : 4);
}
