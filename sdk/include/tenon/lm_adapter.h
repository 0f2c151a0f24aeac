// SPDX-License-Identifier: MIT
// Adapters of language models: low-rank additions to products (Hu et al., "LoRA: low-rank
// adaptation of large language models", ICLR 2022), read from files, and trained.
//
//   tn_lm_training how = {.struct_size = sizeof(how), .steps = 200};
//   if (tn_lm_train_adapter(lm, ids, count, &how) ||
//       tn_lm_adapter_save(lm, "poems.safetensors"))
//       return fprintf(stderr, "%s\n", tn_lm_error());
//
// For a weight W [out, in] the adapter has A [rank, in] and B [out, rank]: where the model
// multiplies x by the transpose of W, alpha / rank * (x A^T) B^T is added. W stays as it
// is, in blocks where the file has it so.
//
// Files have the names of GGUF's adapters: "blk.0.attn_q.weight.lora_a" for A, "...lora_b"
// for B, and the number "adapter.lora.alpha"; rows of B are in the order of the rows that
// the model's file has. Any format that knows arrays by name will do.
//
// A folder is one of Hugging Face's library PEFT: adapter_config.json, and
// adapter_model.safetensors with its names ("base_model.model.model.layers.0.self_attn
// .q_proj.lora_A.weight") and rows of B in the order of halves.
//
// An adapter belongs to the loaded layers: tn_lm_ensure_shard, where it loads others,
// removes the adapter. Sequences of the model are closed before an adapter changes
// (TN_ERR_ARGUMENT).
//
// Errors and ownership are those of <tenon/lm.h>.
//
// Threads. While one of these functions runs, no other function of the model is called.
#ifndef TENON_LM_ADAPTER_H
#define TENON_LM_ADAPTER_H

#include <tenon/lm.h>

#ifdef __cplusplus
extern "C" {
#endif

// Puts the adapter of a file, an array file of any format or a folder, in the place of the
// model's adapter; loads all layers where none are. What it adds is multiplied by `scale`,
// too: 1 as it was trained. Its arrays are of half floats or f32, and are copied. `path`
// NULL: no adapter.
//
// TN_ERR_REFUSED: the file has an array that belongs to no product of the layers that are
// loaded, A without B, or shapes that do not fit; TN_ERR_UNSUPPORTED: the configuration of
// a folder asks for more than products of low rank. The model has the adapter it had.
TN_API tn_status tn_lm_adapter_load(tn_lm *model, const char *path, double scale);

// Writes the model's adapter, in f32, to a file whose extension says the format, such as
// .safetensors or .gguf; complete, or not at all. A path that ends with '/', or is of a
// folder, is written as PEFT's, arrays first. TN_ERR_ARGUMENT: the model has none;
// TN_ERR_REFUSED: a value of it is NaN or infinite, and the file stays as it was.
TN_API tn_status tn_lm_adapter_save(tn_lm *model, const char *path);

// Report of training after a step.
typedef struct tn_lm_trained {
    uint32_t struct_size; // sizeof(tn_lm_trained)
    uint32_t flags;       // 0
    int64_t step, steps;  // this one, from 1, of so many
    double loss;          // mean surprise of the step's tokens, in nats
    double seconds;       // since the training began
} tn_lm_trained;

// Options of tn_lm_train_adapter. All zero is the default.
typedef struct tn_lm_training {
    uint32_t struct_size;       // sizeof(tn_lm_training)
    uint32_t flags;             // 0
    const char *const *weights; // names without "blk.N." and ".weight"; NULL: "attn_q" and
    uint64_t num_weights;       // "attn_v". Weights of one name have A and B in each layer
    int64_t rank;               // 0: 8
    double alpha;               // 0: twice the rank
    int64_t window;             // tokens of a step, at most the context; 0: 128
    int64_t steps;              // 0: 100
    double rate;                // of Adam; 0: 3e-4
    uint64_t seed;              // of the first A and of the windows that are drawn

    // Optional: called after each step, on the calling thread. Returns 0, or another number
    // to end the training, which is no failure.
    int32_t (*progress)(void *context, const tn_lm_trained *now);
    void *context;

    // Windows of a step, over which the loss is the mean; 0: 1, or one for each member.
    int64_t batch;
    // A group of processes (<tenon/dist.h>), "world": all call this with the same numbers,
    // each reads its part of the windows, and all take the same steps, those of one process
    // within rounding. NULL: this process alone.
    const char *group;
} tn_lm_training;

// Trains an adapter on `count` tokens, which are one text: each step reads windows of it,
// drawn at random, and takes one step of Adam on the mean cross-entropy of each next token.
// Goes on with the model's adapter where it has one, whose rank, alpha and weights stay;
// else begins with B = 0 and A uniform within 1 / sqrt(in). Loads all layers where none
// are; a shard of them is TN_ERR_ARGUMENT, as are fewer than two tokens and a weight of a
// name that no product has. The same seed gives the same adapter on one backend.
//
// On failure the model has the adapter of the last step that ended well; if none did, the
// adapter from before, or one that adds nothing. TN_ERR_REFUSED: a loss, or a value of the
// adapter, is NaN or infinite; the model has the adapter from before the training.
TN_API tn_status tn_lm_train_adapter(tn_lm *model, const int32_t *ids, uint64_t count,
                                     const tn_lm_training *how);

#ifdef __cplusplus
}
#endif

#endif // TENON_LM_ADAPTER_H
