// SPDX-License-Identifier: MIT
// For applications: training of networks, on libtenon: parameters by name, layers as
// functions, one step as one traced function, data, checkpoints.
//
//   #include <tenon/train.h> // link with -ltenon-train: pkg-config tenon-train
//
//   static tn_array *loss(tn_net *n, tn_array *const *batch, void *user)
//   {
//       tn_array *h = tn_net_linear(n, "in", batch[0], 128);
//       h = tn_op(n->scope, "nn.relu", TN_IN(h), TN_NO_ATTRS);
//       return tn_net_loss(n, tn_net_linear(n, "out", h, 10), batch[1]);
//   }
//
//   tn_params_create(runtime, 1, &params);
//   tn_trainer_create(params, loss, NULL, NULL, &trainer); // Adam
//   tn_fit(trainer, loader, &(tn_fit_options){.steps = 1000, .save = "m.safetensors"});
//
// Path of data. A table holds rows in the host's memory. A loader shuffles row numbers by
// its seed and the epoch alone, gathers batches on a thread ahead of their use, and gives
// each as arrays. Where the device has memory of its own, of which the tables take at most
// a quarter, the first batch brings the tables there, and the device gathers. The trainer
// runs the step: loss, gradients, optimiser. Parameters, the state of the optimiser and the
// number of the step go from step to step on the device, in place; the host reads a loss
// only where somebody asks for it.
//
// Parameters are made by the layers at their first use: the first step runs the loss once
// as plain graph for that, before it is traced. From then on their number is fixed.
//
// Ownership. What a _create or _read function gives, the function's _destroy or _finish
// takes back. Arrays belong to scopes, as in <tenon/tenon.h>. Destroy trainers before their
// parameters, loaders before their tables, all before the runtime is closed.
//
// Threads. An object is used by one thread at a time; different objects by any. A loader's
// own thread touches its tables, which stay as they are.
//
// Errors. Functions with a scope or a tn_net record in the scope, as building functions do;
// the others return a status, and tn_train_error() has the sentence. On failure nothing is
// lost: parameters keep their values from before, files at their path stay as they were.
#ifndef TENON_TRAIN_H
#define TENON_TRAIN_H

#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

// The message of the last failed call of this header on this thread that takes no scope;
// "".
TN_API const char *tn_train_error(void);

// --- parameters ------------------------------------------------------------------------

// Named parameters, the optimiser's state of each, the number of steps done, and the seed
// from which initial values and random numbers come. Names are paths: "block0.q.weight".
typedef struct tn_params tn_params;

// Gives an empty set. The same seed gives the same values, for the same names and shapes.
TN_API tn_status tn_params_create(tn_runtime *runtime, uint64_t seed,
                                  tn_params **out_params);
TN_API void tn_params_destroy(tn_params *params); // NULL is fine

// The number of parameters so far, the name of parameter `index` in the order of first use
// (NULL behind the last), and the array with the name, a kept one (NULL: none). Borrowed.
TN_API uint64_t tn_params_count(const tn_params *params);
TN_API const char *tn_params_name(const tn_params *params, uint64_t index);
TN_API tn_array *tn_params_array(const tn_params *params, const char *name);

// The number of elements of all parameters, and of steps done.
TN_API uint64_t tn_params_elements(const tn_params *params);
TN_API uint64_t tn_params_step(const tn_params *params);
TN_API uint64_t tn_params_seed(const tn_params *params);

// Texts of the application that are saved and loaded with the set, such as the size of a
// batch: at most 16, of at most 255 bytes, under keys of at most 31 without spaces. The
// text under a key, borrowed until it is set again; NULL: none.
TN_API tn_status tn_params_set_note(tn_params *params, const char *key, const char *text);
TN_API const char *tn_params_note(const tn_params *params, const char *key);

// Writes parameters, state, step and seed to a safetensors file, which appears complete or
// not at all. TN_ERR_ARGUMENT: a parameter is NaN or infinite, and the file before is worth
// more.
TN_API tn_status tn_params_save(tn_params *params, const char *path);

// Reads such a file into a set whose layers have not run: training goes on as if it had
// never stopped, bit for bit on the same device. A parameter that has another shape than
// its layer wants, one that no layer uses and one that the file lacks fail at the first
// step, with its name and the file's.
TN_API tn_status tn_params_load(tn_params *params, const char *path);

// --- networks --------------------------------------------------------------------------

// A net, which layers take: the parameters and the scope that graph is built in. Made by
// the trainer for the body of a loss; by the application, with `training` 0, to apply a
// network. Zeros at first but for these members.
typedef struct tn_net {
    tn_params *params;
    tn_scope *scope;
    tn_array *key;    // of random numbers in this step; NULL: none are drawn
    uint32_t draws;   // of random numbers so far
    int32_t training; // not 0: dropout drops
    char path[256];   // of the layers around: tn_net_enter
} tn_net;

// Layers until tn_net_leave are below `name` ("%" is the number): "block%" and 3 give
// "block3.q.weight". Nested calls nest.
TN_API void tn_net_enter(tn_net *net, const char *name, int64_t number);
TN_API void tn_net_leave(tn_net *net);

// The f32 parameter `name` below the path, made at its first use. `init`: "zeros", "ones",
// "normal" (deviation `scale`), "uniform" (between -scale and scale), "xavier" (uniform,
// Glorot's bound times scale) or "he" (normal, of fan-in, times scale); the last two take
// the first extent as the outputs and the others as the inputs of a unit.
TN_API tn_array *tn_net_param(tn_net *net, const char *name, const tn_shape *shape,
                              const char *init, double scale);

// A state of a layer, such as running statistics: f32, made as a parameter is, saved with
// them, not trained. tn_net_set_state gives its value behind the step that is built, by the
// name that tn_net_state got; without a trainer the state stays as it is.
TN_API tn_array *tn_net_state(tn_net *net, const char *name, const tn_shape *shape,
                              const char *init);
TN_API void tn_net_set_state(tn_net *net, const char *name, tn_array *value);

// x [..., inputs] times a weight [outputs, inputs], plus a bias [outputs], as PyTorch's
// Linear, whose initial values have the same distribution.
TN_API tn_array *tn_net_linear(tn_net *net, const char *name, tn_array *x, int64_t outputs);

// The rows that `ids`, whole numbers, name of a weight [count, width], at first normal.
TN_API tn_array *tn_net_embedding(tn_net *net, const char *name, tn_array *ids,
                                  int64_t count, int64_t width);

// Layer norm of the last axis, with weight and bias.
TN_API tn_array *tn_net_norm(tn_net *net, const char *name, tn_array *x);

// Norms over channels, which are last, with weight and bias: batch norm, whose running mean
// and variance are states (training moves them by 0.1 of the way to the batch's, and they
// apply outside of training); instance norm, of each sample and channel; group norm.
TN_API tn_array *tn_net_batch_norm(tn_net *net, const char *name, tn_array *x);
TN_API tn_array *tn_net_instance_norm(tn_net *net, const char *name, tn_array *x);
TN_API tn_array *tn_net_group_norm(tn_net *net, const char *name, tn_array *x,
                                   int64_t groups);

// Options of tn_net_conv. Zero is the default, but for `outputs`. Lists have a number for
// each axis of x between its first and last, or one for all; NULL is the default.
typedef struct tn_net_conv_options {
    uint32_t struct_size;          // sizeof(tn_net_conv_options); 0: that of ABI 1.0
    uint32_t flags;                // 0
    int64_t outputs;               // channels of the result
    int64_t groups;                // of channels and of outputs; 0: one
    const tn_ints *size;           // of filters; 1
    const tn_ints *stride;         // 1
    const tn_ints *padding;        // zeros on both sides; 0
    const tn_ints *dilation;       // distance of elements in a filter; 1
    const tn_ints *output_padding; // of a transpose: elements behind the result; 0
    int32_t transposes;            // not 0: the transpose of a convolution
    int32_t no_bias;               // not 0: no bias is added
} tn_net_conv_options;

// Convolution of x [n, ..., channels] over one to three axes, by its rank, with filters
// [outputs, size..., channels / groups]; a transpose has [channels, size..., outputs /
// groups]. Initial values have the distribution of PyTorch's.
TN_API tn_array *tn_net_conv(tn_net *net, const char *name, tn_array *x,
                             const tn_net_conv_options *options);

// The same of images [n, rows, columns, channels] by `outputs` square filters of `size`.
TN_API tn_array *tn_net_conv2d(tn_net *net, const char *name, tn_array *x, int64_t outputs,
                               int64_t size, int64_t stride, int64_t padding);

// The greatest element, and the mean, of windows of x [n, ..., channels] over one to three
// axes, each window of `size` along each; stride 0: windows side by side. Zeros around x
// count in means, as PyTorch's.
TN_API tn_array *tn_net_max_pool(tn_net *net, tn_array *x, int64_t size, int64_t stride,
                                 int64_t padding);
TN_API tn_array *tn_net_avg_pool(tn_net *net, tn_array *x, int64_t size, int64_t stride,
                                 int64_t padding);
// Adaptive pools have `size` windows that divide each axis; global pools one of all
// positions, which gives [n, channels].
TN_API tn_array *tn_net_adaptive_max_pool(tn_net *net, tn_array *x, int64_t size);
TN_API tn_array *tn_net_adaptive_avg_pool(tn_net *net, tn_array *x, int64_t size);
TN_API tn_array *tn_net_global_max_pool(tn_net *net, tn_array *x);
TN_API tn_array *tn_net_global_avg_pool(tn_net *net, tn_array *x);

// Attention of x [batch, time, width] to itself: projections q, k, v and out, in `heads` of
// equal width; `causal` not 0: to positions up to the own one.
TN_API tn_array *tn_net_attention(tn_net *net, const char *name, tn_array *x, int64_t heads,
                                  int32_t causal);

// An LSTM, a GRU, and a recurrence of tanh, over x [batch, time, inputs]: outputs [batch,
// time, width], from zeros. Weights and gates are ordered as PyTorch's.
TN_API tn_array *tn_net_lstm(tn_net *net, const char *name, tn_array *x, int64_t width);
TN_API tn_array *tn_net_gru(tn_net *net, const char *name, tn_array *x, int64_t width);
TN_API tn_array *tn_net_rnn(tn_net *net, const char *name, tn_array *x, int64_t width);

// Zero for a share `p` of the elements, the others divided by 1 - p, while training.
TN_API tn_array *tn_net_dropout(tn_net *net, tn_array *x, double p);

// The mean cross entropy of scores [..., classes] and whole labels [...], and the share of
// rows whose greatest score is the label's.
TN_API tn_array *tn_net_loss(tn_net *net, tn_array *scores, tn_array *labels);
TN_API tn_array *tn_net_accuracy(tn_net *net, tn_array *scores, tn_array *labels);

// The share of rows by label (first axis) and by the class of the greatest score.
TN_API tn_array *tn_net_confusion(tn_net *net, tn_array *scores, tn_array *labels);

// --- steps -----------------------------------------------------------------------------

// Builds the loss of a batch, one number, by layers. NULL after a failure.
typedef tn_array *(*tn_loss_body)(tn_net *net, tn_array *const *batch, void *user);

// Options of tn_trainer_create. All zero is the default.
typedef struct tn_trainer_options {
    uint32_t struct_size;  // sizeof(tn_trainer_options); 0: that of ABI 1.0
    uint32_t flags;        // 0
    const char *optimiser; // of pack "optim", such as "adamw"; NULL: "adam"
    double lr;             // 0: the optimiser's own
    double clip;           // greatest norm of all gradients as one vector; 0: any
    tn_attr_list attrs;    // further attributes of the optimiser: numbers. Copied
    // Gives the learning rate as a number of f32 from the steps done, a scalar; NULL: lr.
    tn_array *(*schedule)(tn_scope *scope, tn_array *step, void *user);
    // A group of processes (<tenon/dist.h>), "world": each takes its part of a batch, and
    // all take the same step. NULL: this process alone.
    const char *group;
} tn_trainer_options;

// A loss with its optimiser.
//
// In a group of processes a step's loss, its gradients and states of layers are the means
// of the members', reduced in buckets while the rest is computed. So with equal parts of
// one batch (tn_loader_options.part) losses and parameters are those of one process within
// rounding, where the loss is a mean over rows. Running statistics are means of those of
// the parts; random numbers, of dropout say, differ from those of one process. All members
// begin with the same parameters: the same seed, or one file.
typedef struct tn_trainer tn_trainer;

// This process's rank in the trainer's group, and the number of members; 0 of 1 without.
TN_API int32_t tn_trainer_rank(const tn_trainer *trainer);
TN_API int32_t tn_trainer_size(const tn_trainer *trainer);

// Gives a trainer. Keeps `params` and `user` until it is destroyed. TN_ERR_ARGUMENT: an
// optimiser that is not known; the message lists those that are.
TN_API tn_status tn_trainer_create(tn_params *params, tn_loss_body loss, void *user,
                                   const tn_trainer_options *options,
                                   tn_trainer **out_trainer);
TN_API void tn_trainer_destroy(tn_trainer *trainer); // NULL is fine

// One step on a batch: gives the loss before the step, an array of `scope` that nobody has
// waited for. Returns the scope's first failure; then the parameters are as before.
TN_API tn_status tn_trainer_step(tn_trainer *trainer, tn_scope *scope,
                                 tn_array *const *batch, uint64_t num_batch,
                                 tn_array **out_loss);

// --- data ------------------------------------------------------------------------------

// Rows in the host's memory: the first axis counts them.
typedef struct tn_table {
    tn_dtype dtype;
    uint32_t reserved; // 0
    tn_shape shape;
    void *data; // row-major without gaps
} tn_table;

// Reads a file, whole, gzipped or plain but for npy: IDX by its first bytes, ".npy" and
// ".csv" (numbers with commas, a first line of names is skipped: f32) by the name's end
// before a ".gz", others as text, a byte a row.
// Fails, with the position, for a file that holds less or more than it says.
TN_API tn_status tn_table_read(tn_runtime *runtime, const char *path, tn_table *out_table);
TN_API void tn_table_finish(tn_table *table); // zeros are fine

// Fails, with `name`, the row and the number, where a number of a table is not from `low`
// to `high`, such as a label that is no class, for which tn_net_loss gives 0.
TN_API tn_status tn_table_check(const tn_table *table, const char *name, double low,
                                double high);

// Options of tn_loader_create. All zero is the default, but for `batch`.
typedef struct tn_loader_options {
    uint32_t struct_size; // sizeof(tn_loader_options); 0: that of ABI 1.0
    uint32_t flags;       // 0
    int64_t batch;        // rows of a batch, at least 1; the rest of an epoch is left out
    // Rows of a sample in one table of bytes: they lie behind each other, and the batch is
    // two arrays of i32, the samples and those one row later; 0: a sample is a row of each
    // table.
    int64_t window;
    uint64_t seed;     // of the order
    int32_t in_order;  // not 0: without shuffling
    uint32_t reserved; // 0
    // This loader gives number `part` of `parts` equal parts of each batch, as one of so
    // many processes, on all of which batches are the same; 0 of 0: the whole.
    int32_t part, parts;
} tn_loader_options;

// Batches of tables with equally many rows, epoch after epoch.
typedef struct tn_loader tn_loader;

// Gives a loader, whose thread begins at once. Keeps the tables until it is destroyed.
TN_API tn_status tn_loader_create(const tn_table *tables, uint64_t num_tables,
                                  const tn_loader_options *options, tn_loader **out_loader);
TN_API void tn_loader_destroy(tn_loader *loader); // NULL is fine

// The number of arrays of a batch, and of batches of an epoch.
TN_API uint64_t tn_loader_arrays(const tn_loader *loader);
TN_API uint64_t tn_loader_batches(const tn_loader *loader);

// The next batch is number `batch` from now on, as after tn_params_load: the order depends
// on seed and number alone.
TN_API void tn_loader_seek(tn_loader *loader, uint64_t batch);

// Gives the next batch, tn_loader_arrays() of them. Returns the scope's first failure.
TN_API tn_status tn_loader_next(tn_loader *loader, tn_scope *scope, tn_array **out_batch);

// --- the loop --------------------------------------------------------------------------

// Options of tn_fit. All zero is the default, but for `steps`.
typedef struct tn_fit_options {
    uint32_t struct_size; // sizeof(tn_fit_options); 0: that of ABI 1.0
    uint32_t flags;       // 0
    uint64_t steps;       // until so many are done, those before tn_params_load included
    uint64_t every;       // steps from report to report; 0: 100
    const char *save;     // a checkpoint is written there at each report; NULL: none
    const char *plot;     // and the losses as a picture (SVG); NULL: none
    // Called at each report with the mean loss since the one before; NULL: a line is
    // printed to stderr. Other than 0 ends the loop with TN_OK.
    int32_t (*report)(uint64_t step, double loss, void *user);
    void *user; // for report and each
    // Called for each step in order, when its loss is read, some steps later; or NULL.
    void (*each)(uint64_t step, double loss, void *user);
    // Not 0 ends the loop before its next step with TN_OK, behind a checkpoint; NULL: no.
    const volatile int32_t *stop;
    // 1 and 2: step, loss, rate and time left on stdout or stderr, in a line that is
    // redrawn on a terminal and else in lines; 0: none.
    int32_t progress;
    uint32_t reserved; // 0
} tn_fit_options;

// Steps through the batches of a loader, from the one that follows the steps done.
//
// In a group (tn_trainer_options.group) all members call it with the same options, and end
// with the same step, `stop` of one ending all; member 0 alone writes files, shows progress
// and prints. Where a member fails, each that is left writes the checkpoint of the step
// before, and fails with the name of that member.
// TN_ERR_ARGUMENT: a loss is no finite number; the message has the step, and the checkpoint
// before stays.
TN_API tn_status tn_fit(tn_trainer *trainer, tn_loader *loader,
                        const tn_fit_options *options);

// Gives the means over all rows of the `num_means` numbers of f32, such as an accuracy or a
// confusion, that `body` makes of batches of `tables`, without training; the last batch
// counts by its rows. Fails where a layer wants a parameter that the set lacks.
TN_API tn_status tn_evaluate(tn_params *params, tn_loss_body body, void *user,
                             const tn_table *tables, uint64_t num_tables, int64_t batch,
                             double *out_means, uint64_t num_means);

// Writes a line through `count` numbers as an SVG picture, not finite ones left out.
TN_API tn_status tn_plot_svg(const char *path, const char *title, const double *values,
                             uint64_t count);

// --- chains that keep less -------------------------------------------------------------

// `num_bodies` functions one after the other, each from `num_inputs` arrays to as many:
// what the last one gives. They are divided into `segments` parts, of lengths that differ
// by one at most. The reverse-mode derivative keeps what goes from part to part, and
// computes the rest of a part again when it comes to it, so that of n functions in sqrt(n)
// parts some 2 sqrt(n) results are kept rather than n; one part keeps all and computes
// nothing again. Derivatives are the same, to the bit where parts share no arrays (sums
// over parts have another order).
//
// `users`: one for each body; NULL: all are NULL. TN_ERR_ARGUMENT: no functions, or more
// segments than functions.
TN_API tn_status tn_checkpoint_sequential(tn_scope *scope, const tn_function_body *bodies,
                                          void *const *users, uint64_t num_bodies,
                                          uint64_t segments, tn_array *const *inputs,
                                          uint64_t num_inputs, tn_array **outputs);

// Builds layer `number` of a network on x. NULL after a failure.
typedef tn_array *(*tn_net_layer)(tn_net *net, tn_array *x, uint64_t number, void *user);

// The same of `count` layers of a network, in a loss that is trained; elsewhere the layers
// alone. Parameters, random numbers and states are those that the layers have without it.
TN_API tn_array *tn_net_segments(tn_net *net, tn_net_layer layer, void *user,
                                 uint64_t count, uint64_t segments, tn_array *x);

// --- transforms ------------------------------------------------------------------------

// Derivatives are by the input alone: an array that is given as another input, too, or that
// the body reads beside its inputs, is a constant there. Inputs that derivatives are taken
// by are of floats, or, for gradients of a real number, complex as in PyTorch.

// The value of `body`, whose one output is a number, and its derivatives by inputs 0 ..
// num_wrt - 1, each of the type of the input. `out_value` may be NULL.
TN_API tn_status tn_value_and_grad(tn_scope *scope, tn_function_body body, void *user,
                                   tn_array *const *inputs, uint64_t num_inputs,
                                   uint64_t num_wrt, tn_array **out_value,
                                   tn_array **gradients);

// The derivative of `body` by input `wrt` alone. NULL after a failure.
TN_API tn_array *tn_grad(tn_scope *scope, tn_function_body body, void *user,
                         tn_array *const *inputs, uint64_t num_inputs, uint64_t wrt);

// Derivatives of each element of the one output of `body` by each of input `wrt`: the
// output's axes, then the input's. By rows, reverse mode.
TN_API tn_array *tn_jacobian(tn_scope *scope, tn_function_body body, void *user,
                             tn_array *const *inputs, uint64_t num_inputs, uint64_t wrt);

// Second derivatives of a number by input `wrt`: its axes two times. Forward over reverse.
TN_API tn_array *tn_hessian(tn_scope *scope, tn_function_body body, void *user,
                            tn_array *const *inputs, uint64_t num_inputs, uint64_t wrt);

// --- functions for all extents ----------------------------------------------------------

// A body that is traced for the extents of one call, and built for others without calling
// it again:
//
//   tn_shapeless_create(runtime, body, NULL, 0, &shapeless);
//   tn_function_create(runtime, tn_shapeless_body, shapeless, NULL, &f);
//   tn_function_call(f, ...); // plans for each signature, traces for the first
//
// With the first call the body is traced for other extents, too, some four times for each
// extent of its inputs that differs from the others: numbers of its operations that change
// with an extent (those of a reshape, an arange, the divisor of a mean) are then functions
// of it that fit all these traces, or the extent keeps its value: each call with another
// one traces again. Extents that are equal in the first call stay equal, extents of 0 and 1
// stay as they are, else the body is traced again for the new pattern.
//
// A body that builds other operations for other extents is detected only if it does so for
// the extents that are tried (one more, and 2 and 257 times as many). Devices that it
// chooses (tn_scope_device) are not kept. It uses kept and retained arrays and its inputs
// alone, as that of a tn_function does.
//
// Threads. Any; bodies are called by one at a time.
typedef struct tn_shapeless tn_shapeless;

// An extent that would keep its value is an error of the call.
#define TN_SHAPELESS_STRICT ((uint32_t)1 << 0)
// Calls in which an extent is 1 are served by the traces for extents from 2 on.
#define TN_SHAPELESS_ONES ((uint32_t)1 << 1)

// Gives what tn_shapeless_body takes as `user`. Keeps `user` until it is destroyed, behind
// the functions that have it. `flags`: of TN_SHAPELESS_... TN_ERR_NOT_FOUND: the plugin of
// graph files (org.tenon.graph) is not installed.
TN_API tn_status tn_shapeless_create(tn_runtime *runtime, tn_function_body body, void *user,
                                     uint32_t flags, tn_shapeless **out_shapeless);
TN_API void tn_shapeless_destroy(tn_shapeless *shapeless); // NULL is fine

// The body of a function: `user` is a tn_shapeless.
TN_API tn_status tn_shapeless_body(tn_scope *scope, tn_array *const *inputs,
                                   uint64_t num_inputs, tn_array **outputs,
                                   uint64_t num_outputs, void *user);

// How often the body was called so far.
TN_API uint64_t tn_shapeless_traces(tn_shapeless *shapeless);

// Tells which extents keep their value, and why, a line each: writes at most `size` bytes,
// the NUL included, and gives the length of the whole.
TN_API uint64_t tn_shapeless_why(tn_shapeless *shapeless, char *out, uint64_t size);

#ifdef __cplusplus
}
#endif

#endif // TENON_TRAIN_H
