// SPDX-License-Identifier: MIT
// Language models on several processes that `tenon run`, or a launcher of MPI, started:
// layers, or parts of each product, are on different processes, which may be on different
// machines.
//
//   tn_lm_rank me = {.struct_size = sizeof(me)};
//   if (tn_lm_open(rt, path, NULL, &lm) || tn_lm_distribute(lm, NULL, &me))
//       return fprintf(stderr, "%s\n", tn_lm_error());
//   if (me.rank > 0)
//       return tn_lm_serve(lm); // until rank 0 closes its model
//   ... // rank 0: as if all of it were here
//
// Processes need the pack org.tenon.dist and a plugin of collectives, org.tenon.mpi.
//
// Failures. A process that ends, or is stopped, is a failure of each call of the others
// that needs it, with its rank and the reason; from then on calls of the model fail with
// that message. One that computes is waited for.
//
// Threads. Functions of this header are called by one thread of a process. Rank 0 then uses
// its model as <tenon/lm.h> says.
#ifndef TENON_LM_DIST_H
#define TENON_LM_DIST_H

#include <tenon/lm.h>

#ifdef __cplusplus
extern "C" {
#endif

// How a model is divided.
enum {
    // Each process has some layers. Steps of several sequences, and chunks of a prompt, are
    // in different processes at once. For models that do not fit the memory of one.
    TN_LM_PIPELINE = 1,
    // Each process has some heads of each layer and some columns of its feed-forward, whose
    // results are summed twice a layer. All compute one step at once: for processes that
    // reach each other fast. The heads of keys, and the width of the feed-forward, are
    // divisible by the number of processes, and parts of quantised rows are whole blocks.
    TN_LM_TENSOR = 2,
};

// Options of tn_lm_distribute. All zero is the default.
typedef struct tn_lm_dist_options {
    uint32_t struct_size; // sizeof(tn_lm_dist_options); 0: that of ABI 1.0
    uint32_t flags;       // 0
    int32_t kind;         // TN_LM_PIPELINE, which 0 is too, or TN_LM_TENSOR
    uint32_t reserved;    // 0
    // Layers of each process, by rank: "16,14", all of the model's. NULL: so that the
    // slowest takes as little time as can be, within the memory of each; processes on
    // unlike devices measure theirs on a layer of the model. Borrowed.
    const char *split;
} tn_lm_dist_options;

// One process and its layers. Texts end in a NUL.
typedef struct tn_lm_rank {
    uint32_t struct_size; // sizeof(tn_lm_rank)
    uint32_t flags;       // 0
    int32_t rank, size;   // of the process, 0 .. size - 1
    int64_t first, end;   // layers first .. end - 1
    char devices[224];    // "vulkan:0 (NVIDIA H200)", for people
} tn_lm_rank;

// Divides a model among the processes that were started together, and loads this one's
// part: all of them call it, for the same model, before they open sequences. Compares
// them first: versions of Tenon and of the architecture's plugin, model, and options of
// tn_lm_open. Later, without sequences, it divides anew: what stays is not read again.
// Fills out_rank->struct_size bytes of *out_rank, which may be NULL. With one process it
// does nothing.
//
// TN_ERR_REFUSED: processes differ; the message says which, and in what. TN_ERR_MEMORY: a
// process has no room, and the message says how much is missing there. TN_ERR_ARGUMENT:
// fewer layers, or heads, than processes, or some that cannot be divided.
TN_API tn_status tn_lm_distribute(tn_lm *model, const tn_lm_dist_options *options,
                                  tn_lm_rank *out_rank);

// Gives the layers and devices of rank `rank`. TN_ERR_ARGUMENT: there is no such rank.
TN_API tn_status tn_lm_rank_of(const tn_lm *model, int32_t rank, tn_lm_rank *out);

// Runs this process's part of the steps of rank 0, until that closes its model: then
// TN_OK. For ranks above 0.
TN_API tn_status tn_lm_serve(tn_lm *model);

#ifdef __cplusplus
}
#endif

#endif // TENON_LM_DIST_H
