// SPDX-License-Identifier: MIT
// The interface for applications: runtimes, scopes, lazy arrays, evaluation, transforms.
//
//   #include <tenon/tenon.h> // link with -ltenon; pkg-config knows it as "tenon"
//
//   tn_runtime *rt;
//   if (tn_runtime_open(NULL, &rt)) ...
//   tn_scope *s = tn_scope_open(rt);
//   tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(256, 512), data);
//   tn_array *y = tn_op(s, "acme.axpby", TN_IN(x, x), tn_attrs("alpha", 4.0, "beta", 2.0));
//   if (tn_eval(s, y))                         // one check for all of the above
//       fprintf(stderr, "%s\n", tn_scope_error(s));
//   tn_scope_close(s);                         // frees all arrays but those of tn_keep()
//   tn_runtime_close(rt);
//
// Ownership. An array belongs to the scope in which it is made, and lives until that scope
// is closed. Functions that give something else say so. Arguments (options, texts, data,
// lists) are borrowed for the call.
//
// Threads. A runtime may be used from any thread; a scope, and the arrays in it, by one
// thread at a time. What tn_keep gives may be used in any scopes of the same runtime.
//
// Processes. A runtime belongs to the process that opened it. A child of fork() may close
// the runtimes, scopes, functions and kept arrays that it inherited; all other calls on
// them fail with TN_ERR_ARGUMENT, as their threads and devices are in the parent. Closing
// gives back no device memory there: that goes when the child ends or calls exec. A runtime
// that the child opens itself computes as any does, on the CPU; Vulkan's drivers do not
// survive fork(), so a child of a process that used one has to exec first.
//
// Errors. Building functions return NULL on failure and take NULL arrays: the scope keeps
// the first failure, later calls in the scope do nothing, and tn_eval returns that failure.
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include <tenon/primitive.h>
#include <tenon/status.h>
#include <tenon/types.h>

#ifdef __cplusplus
extern "C" {
#endif

// Marks a function that the library exports.
#if defined(__GNUC__)
#define TN_API __attribute__((visibility("default")))
#else
#define TN_API
#endif

// The version of these headers and of the library that comes with them.
#define TN_VERSION "0.1.0"

// --- runtime ---------------------------------------------------------------------------

// Plugins, devices, plan cache and configuration. There are no hidden globals: several
// runtimes may live side by side.
typedef struct tn_runtime tn_runtime;

// Options of tn_runtime_open. Zero is the default; variables override the environment's.
typedef struct tn_runtime_options {
    uint32_t struct_size;         // sizeof(tn_runtime_options); 0: that of ABI 1.0
    uint32_t flags;               // 0
    const char *plugin_path;      // searched before all else, as TENON_PLUGIN_PATH
    const char *const *variables; // "TENON_BACKEND=null", ..., ended by NULL
} tn_runtime_options;

// Gives a runtime. Reads the environment and the manifests of installed plugins; loads no
// plugin, touches no device. `options` may be NULL. On failure *out_runtime is NULL, and
// tn_last_error() says why.
TN_API tn_status tn_runtime_open(const tn_runtime_options *options,
                                 tn_runtime **out_runtime);

// Waits for queued work, and closes the runtime. NULL is fine.
//
// Before, close the runtime's scopes, release its kept and retained arrays, destroy its
// functions, and let all other calls return. While some are left, and from within a
// callback of this runtime, closing fails with TN_ERR_ARGUMENT: the runtime stays open and
// can be used; tn_last_error() and the log say how many of each are left. The count is no
// lock: a call on the runtime that begins during this one is an error of the program.
//
// In a child of fork() that inherited the runtime, closing waits for nothing and gives
// TN_OK: see "Processes" above.
TN_API tn_status tn_runtime_close(tn_runtime *runtime);

// The message of the last failed call on this thread among those that take no scope; ""
// when none failed. Valid until this thread's next call.
TN_API const char *tn_last_error(void);

// The name of a status code: "argument", "not found", ... Static text.
TN_API const char *tn_status_name(tn_status status);

// --- scopes ----------------------------------------------------------------------------

// Gives a scope, which tn_scope_close takes back. NULL only when out of memory, or when the
// runtime was inherited over fork().
TN_API tn_scope *tn_scope_open(tn_runtime *runtime);

// Frees the scope and every array in it; what tn_keep gave lives on. NULL is fine.
TN_API void tn_scope_close(tn_scope *scope);

// The scope's first failure, or TN_OK; the failure's message, or "". The message lives
// until the scope is closed or cleared.
TN_API tn_status tn_scope_status(const tn_scope *scope);
TN_API const char *tn_scope_error(const tn_scope *scope);

// Forgets the failure: the scope can be used again.
TN_API void tn_scope_clear_error(tn_scope *scope);

// Records a failure in the scope, unless the scope has one already, as if a building
// function had failed: for building functions of the application's own. printf's format.
// Returns `status`.
TN_API tn_status tn_scope_fail(tn_scope *scope, tn_status status, const char *format, ...);

// The runtime that the scope was opened in. Borrowed.
TN_API tn_runtime *tn_scope_runtime(const tn_scope *scope);

// Names the device that operations applied in this scope from now on run on, and that data
// goes to: "vulkan:1", or "vulkan" for "vulkan:0", of those that TENON_BACKEND selects.
// NULL: the first that can, as before the first call. Derivatives and batches run where
// their operation does. What the device cannot run falls back to the others, in order, or
// fails, as TENON_FALLBACK says. TN_ERR_NOT_FOUND: no such device; the scope keeps that.
TN_API tn_status tn_scope_device(tn_scope *scope, const char *device);

// --- arrays from data ------------------------------------------------------------------

#ifndef __cplusplus
// A shape from extents: TN_SHAPE(256, 512). For a scalar: TN_SCALAR.
#define TN_SHAPE(...)                                                                      \
    (&(const tn_shape){                                                                    \
        sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), 0, {__VA_ARGS__}})
#define TN_SCALAR (&(const tn_shape){0})
#endif

// Copies `data`, row-major without gaps, into a new array. `data` may be NULL when the
// shape has no elements.
TN_API tn_array *tn_from_data(tn_scope *scope, tn_dtype dtype, const tn_shape *shape,
                              const void *data);

// Flags of tn_host_memory.
enum {
    // Nobody else reads or writes the memory any more: when the array is donated to a
    // function, the memory may hold an output. Without this flag nothing writes the memory.
    TN_MEMORY_WRITABLE = 1,
    // Fail with TN_ERR_UNSUPPORTED rather than copy.
    TN_MEMORY_NO_COPY = 2,
};

// Memory of the application that becomes an array. Members after `data` may be 0.
typedef struct tn_host_memory {
    uint32_t struct_size;   // sizeof(tn_host_memory); 0: that of ABI 1.0
    uint32_t flags;         // TN_MEMORY_...
    void *data;             // element (0, 0, ...); NULL only without elements
    const int64_t *strides; // in elements, one an axis; NULL: row-major without gaps
    void (*release)(void *context); // called once, when the memory is not needed any more
    void *context;                  // for release
} tn_host_memory;

// Gives an array whose elements are memory of the application: in place on a device that
// computes in the host's memory (cpu-blas; Vulkan without a bus between, from a page on,
// at multiples of 16 bytes), elsewhere by a copy. It is aligned to the size of an element,
// or more, and may be mapped read-only. A TN_BOOL is 0 or 1.
//
// The memory stays as it is, and valid, until `release` is called: exactly once, by any
// thread, when no array refers to it and no work uses it; after a copy or a failure before
// the call returns, which then gives NULL; at the latest while the runtime is closed. It is
// not called in a child of fork() that inherited the runtime. `release` calls nothing of
// this runtime.
//
// TN_ERR_ARGUMENT: a pointer that is NULL or not aligned, strides that leave the address
// space. Copies `memory` and what its `strides` point to.
TN_API tn_array *tn_array_import_host(tn_scope *scope, tn_dtype dtype,
                                      const tn_shape *shape, const tn_host_memory *memory);

// DLPack's structures: <tenon/dlpack.h>, or the original <dlpack/dlpack.h>.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

// Gives an array whose elements are those of a DLPack tensor, as tn_array_import_host does:
// in place where the device and the tensor's alignment permit. Takes the tensor, and calls
// its deleter exactly once, as tn_array_import_host calls `release`; a tensor that failed
// is deleted, too. Never writes to it.
//
// Fails for memory that is not the host's (kDLCPU, kDLCUDAHost), a type that is no dtype
// of Tenon's (lanes), more than TN_MAX_RANK axes, and a major version other than 1.
TN_API tn_array *tn_array_import(tn_scope *scope, struct DLManagedTensor *tensor);
TN_API tn_array *tn_array_import_versioned(tn_scope *scope,
                                           struct DLManagedTensorVersioned *tensor);

// Evaluates if needed, and gives the array as a DLPack tensor of the host (kDLCPU): the
// array's own memory where the host sees it, strides included, else a copy of it that the
// array keeps. Others must not write to it: arrays are immutable. The versioned one says so
// by its flag, DLPACK_FLAG_BITMASK_READ_ONLY.
//
// The tensor outlives the scope: the receiver calls its deleter, from any thread. It counts
// as in use: until then tn_runtime_close refuses. NULL on failure.
TN_API struct DLManagedTensor *tn_array_export(tn_scope *scope, tn_array *array);
TN_API struct DLManagedTensorVersioned *tn_array_export_versioned(tn_scope *scope,
                                                                  tn_array *array);

// Scalars (rank 0) of a fixed dtype. tn_scalar converts `value` to `dtype`, as CAST does.
TN_API tn_array *tn_f32(tn_scope *scope, float value);
TN_API tn_array *tn_f64(tn_scope *scope, double value);
TN_API tn_array *tn_i32(tn_scope *scope, int32_t value);
TN_API tn_array *tn_i64(tn_scope *scope, int64_t value);
TN_API tn_array *tn_bool(tn_scope *scope, int32_t value);
TN_API tn_array *tn_scalar(tn_scope *scope, tn_dtype dtype, double value);

// Numbers without a dtype of their own: in an operation they take the dtype of the other
// operand, as Python's numbers do in NumPy, so 2 * x keeps x's dtype. Alone they are i64,
// f64 and complex128; `re` + `im` i is complex64 beside f32, else complex128. tn_uint is
// for integers above INT64_MAX, and u64 alone.
//
// Beside an integer array a number compares as it is, and arithmetic with a number that the
// array's dtype does not hold is an error. Operations on integers alone are computed at
// once, exactly; a result that fits neither i64 nor u64 is an error.
TN_API tn_array *tn_int(tn_scope *scope, int64_t value);
TN_API tn_array *tn_uint(tn_scope *scope, uint64_t value);
TN_API tn_array *tn_float(tn_scope *scope, double value);
TN_API tn_array *tn_complex(tn_scope *scope, double re, double im);

// --- building graph --------------------------------------------------------------------

// Applies a primitive that has one output. `name` is an id ("base.matmul/1"), an id without
// revision (the newest), or a name alone when only one pack has it ("matmul").
TN_API tn_array *tn_op(tn_scope *scope, const char *name, const tn_array *const *inputs,
                       uint64_t num_inputs, tn_attr_list attrs);

// Applies a primitive with any number of outputs, and writes them to outputs[0 ..
// num_outputs); num_outputs must be that of the primitive, or tn_op_outputs() of this
// application.
TN_API tn_status tn_op_n(tn_scope *scope, const char *name, const tn_array *const *inputs,
                         uint64_t num_inputs, tn_attr_list attrs, tn_array **outputs,
                         uint64_t num_outputs);

// The number of outputs that this application of a primitive has, at most TN_MAX_OUTPUTS:
// for primitives whose number of outputs follows from inputs and attributes, such as
// base.split. Applies nothing. 0 on failure, which the scope keeps.
TN_API uint64_t tn_op_outputs(tn_scope *scope, const char *name,
                              const tn_array *const *inputs, uint64_t num_inputs,
                              tn_attr_list attrs);

// Applies an expression without a primitive: "x, y -> alpha * x + beta * y". The names
// before the arrow stand for the inputs, other names for attributes. One output.
TN_API tn_array *tn_expr(tn_scope *scope, const char *text, const tn_array *const *inputs,
                         uint64_t num_inputs, tn_attr_list attrs);

// Names an array, for people: in tn_graph_dot, tn_explain, traces and messages. Copies the
// text; NULL removes the name. An array that tn_keep makes of a named array has the name,
// too; an array that is kept already is named in this scope alone. Gives the array that has
// the name, so that a call can stand within an expression; NULL for NULL and after a
// failure.
TN_API tn_array *tn_name(tn_scope *scope, tn_array *array, const char *name);

// The dtype and extents of an array, known without evaluation. Borrowed from the array. For
// NULL, as failed functions give: TN_DTYPE_NONE, and TN_MAX_RANK extents that are all 1.
TN_API const tn_type *tn_array_type(const tn_array *array);

// The id of the primitive that made the array ("" for data), for messages. Borrowed.
TN_API const char *tn_array_op(const tn_array *array);

// --- evaluating and reading ------------------------------------------------------------

// Computes the arrays, and returns when they are done. Returns the scope's first failure.
TN_API tn_status tn_eval_n(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays);

// Starts computing; returns as soon as the work is queued. Reading an array waits for its
// work, and fails, each time, when that work or the work that computed its inputs failed.
TN_API tn_status tn_eval_async_n(tn_scope *scope, tn_array *const *arrays,
                                 uint64_t num_arrays);

#ifndef __cplusplus
// Arrays as an argument list: tn_eval(scope, x, y) computes both. C only.
#define TN_ARRAYS(...)                                                                     \
    ((tn_array *const[]){__VA_ARGS__}),                                                    \
        (sizeof((tn_array *const[]){__VA_ARGS__}) / sizeof(tn_array *))
#define tn_eval(scope, ...) tn_eval_n(scope, TN_ARRAYS(__VA_ARGS__))
#define tn_eval_async(scope, ...) tn_eval_async_n(scope, TN_ARRAYS(__VA_ARGS__))
#endif

// Evaluates if needed, and copies the elements, row-major without gaps, to `data`. `size`
// must be the array's size in bytes.
TN_API tn_status tn_read(tn_scope *scope, tn_array *array, void *data, uint64_t size);

// Evaluates if needed, and gives the elements in place, row-major without gaps. Borrowed
// until the array is freed. NULL on failure.
TN_API const void *tn_data(tn_scope *scope, tn_array *array);

// Element 0 of an array of one element, converted. NaN on failure.
TN_API double tn_item(tn_scope *scope, tn_array *array);

// Makes an array outlive its scope: evaluates the array, and gives a reference that
// tn_release takes back, on any thread; scopes hold on to what they use. The result is
// data, without the graph that computed it: derivatives stop there. NULL on failure.
// tn_retain of <tenon/retain.h> does not evaluate.
TN_API tn_array *tn_keep(tn_scope *scope, tn_array *array);
TN_API void tn_release(tn_array *array);

// --- transforms ------------------------------------------------------------------------

// Reverse-mode derivatives. Given cotangents (d loss / d output) for each output, builds
// d loss / d wrt[i] into gradients. NULL cotangents: ones, for outputs of one element.
TN_API tn_status tn_vjp(tn_scope *scope, tn_array *const *outputs,
                        tn_array *const *cotangents, uint64_t num_outputs,
                        tn_array *const *wrt, uint64_t num_wrt, tn_array **gradients);

// Forward-mode derivatives: given tangents of wrt, builds the outputs' tangents.
TN_API tn_status tn_jvp(tn_scope *scope, tn_array *const *outputs, uint64_t num_outputs,
                        tn_array *const *wrt, tn_array *const *tangents, uint64_t num_wrt,
                        tn_array **out_tangents);

// Builds outputs from inputs in `scope`: a body for tn_vmap_call and tn_function_call.
// Fills outputs[0 .. num_outputs). `user` is the pointer given with the body.
typedef tn_status (*tn_function_body)(tn_scope *scope, tn_array *const *inputs,
                                      uint64_t num_inputs, tn_array **outputs,
                                      uint64_t num_outputs, void *user);

// Batching: applies `body`, which is written for one slice, to all slices of the inputs at
// once. in_axes[i] is the axis along which input i is sliced, from 0; -1: `body` gets input
// i whole, the same for each slice. out_axes[i] is the position of the batch axis in output
// i; -1: output i is the same for all slices. NULL axes are all 0.
//
// Calls `body` once, with placeholders that have a slice's type but no data: `body` builds
// graph, may call transforms, and cannot read the placeholders.
TN_API tn_status tn_vmap_call(tn_scope *scope, tn_function_body body, void *user,
                              tn_array *const *inputs, const int32_t *in_axes,
                              uint64_t num_inputs, tn_array **outputs,
                              const int32_t *out_axes, uint64_t num_outputs);

// Batching of a graph that is built already: gives the batches of `outputs` for slices[i]
// replaced by each slice of inputs[i] in turn. slices[i] has a slice's type. Where
// in_axes[i] is -1, slices[i] and inputs[i] are not read.
TN_API tn_status tn_vmap(tn_scope *scope, tn_array *const *outputs, const int32_t *out_axes,
                         uint64_t num_outputs, tn_array *const *slices,
                         tn_array *const *inputs, const int32_t *in_axes,
                         uint64_t num_inputs, tn_array **out_batches);

// --- functions -------------------------------------------------------------------------

// A traced function: `body` is called once per signature of the inputs to build its graph
// in `trace`; later calls replay the plan with no work per node. The signature is the
// dtypes and shapes, and which donated inputs nobody else can read. A function keeps its
// latest traces, of 32 MiB at most, and traces again what it dropped: tn_stats counts and
// the log warns (topic "sched"; each trace at level info).
typedef struct tn_function tn_function;

// Options of tn_function_create. All zero is the default.
typedef struct tn_function_options {
    uint32_t struct_size; // sizeof(tn_function_options); 0: that of ABI 1.0
    uint32_t flags;       // 0
    // Numbers of the inputs that the caller donates, num_donated of them in any order.
    // Their memory may become an output's; the input arrays are empty after a call, and
    // reading them fails. Where something else can still read the memory (a view, a kept
    // array, the same array as another input), the input counts as not donated in that
    // call: a step copies what it would have written over. Copied by tn_function_create.
    const uint32_t *donated;
    uint64_t num_donated;
    uint64_t max_traces; // that are kept; 0: 256
    // For each of `donated`, in that order: the number of the output that it is carried to,
    // each once, or UINT32_MAX; NULL: all are UINT32_MAX. Where the input is a kept or
    // retained array, a call takes the caller's reference to it, and gives one to the
    // output, which outlives the scope, too: the same array, with other data, unless
    // something else refers to it, which sees it donated. What tn_retain of the output
    // and tn_release of the input do, at a fraction of their time. Copied.
    const uint32_t *carried_to;
} tn_function_options;

// Gives a function. Keeps `user` until tn_function_destroy. TN_ERR_ARGUMENT: an input is
// listed twice in `donated`, or an output in `carried_to`.
TN_API tn_status tn_function_create(tn_runtime *runtime, tn_function_body body, void *user,
                                    const tn_function_options *options,
                                    tn_function **out_function);
TN_API void tn_function_destroy(tn_function *function);

// Evaluates the inputs if needed, and starts the function on them. The outputs are arrays
// of `scope`, but for what is carried, whose work is queued; reading one waits for its
// work. Within the body of another function or graph, the body's nodes are put there, and
// nothing is donated. TN_ERR_ARGUMENT: a function whose body calls itself, directly or
// through others; a number in the options that the call has no input or output for; with
// `carried_to` an array that is donated twice. A call that fails after its first work was
// queued has taken the data of its donated inputs; one that fails before leaves them.
// Neither takes references.
TN_API tn_status tn_function_call(tn_function *function, tn_scope *scope,
                                  tn_array *const *inputs, uint64_t num_inputs,
                                  tn_array **outputs, uint64_t num_outputs);

// --- looking around: plugins, devices, primitives, reasons -----------------------------

// States of a plugin, for tn_plugin_info.
enum {
    TN_PLUGIN_FOUND = 1,    // its manifest was accepted
    TN_PLUGIN_LOADED = 2,   // its code is in the process
    TN_PLUGIN_REFUSED = 3,  // `reason` says why
    TN_PLUGIN_DISABLED = 4, // by TENON_PLUGINS_DISABLE
    TN_PLUGIN_SHADOWED = 5, // another directory has a higher version
};

// One plugin as the search found it; once loaded, as it was when it was loaded, since an
// upgrade may have replaced its files in between. Filled by tn_plugin_get. Texts are
// borrowed until the runtime closes.
typedef struct tn_plugin_info {
    uint32_t struct_size;  // set by the caller; 0: that of ABI 1.0
    uint32_t state;        // TN_PLUGIN_...
    const char *id;        // this and the next texts are "" where a refused plugin has none
    const char *version;   // Semantic Versioning 2.0.0
    const char *vendor;    // for people
    const char *directory; // the plugin's folder
    const char *file;      // the shared object's path
    const char *reason; // a sentence with the remedy, for all but FOUND and LOADED; or ""
    const char *const *backends;   // names, ended by NULL
    const char *const *primitives; // ids, ended by NULL
    const char *const *kernels;    // "primitive family name", ended by NULL
} tn_plugin_info;

// The number of plugins in the order of search, refused ones included, and the description
// of plugin `index` among them: fills at most out->struct_size bytes.
TN_API uint64_t tn_plugin_count(const tn_runtime *runtime);
TN_API tn_status tn_plugin_get(const tn_runtime *runtime, uint64_t index,
                               tn_plugin_info *out);

// Loads a plugin by id now, to learn whether it can be. [loads code]
TN_API tn_status tn_plugin_load(tn_runtime *runtime, const char *id);

// Quarantines the installed plugin `id`: this runtime and later ones do not load the
// plugin, and show `reason`. For a program that saw the plugin crash or hang in a child
// process. The quarantine ends when one of the plugin's files changes, when the cache is
// cleared, or, for later runtimes, by a call with reason NULL. Only plugins with a backend
// can be quarantined. TN_ERR_IO: there is no cache folder to keep the reason in. Any
// thread.
TN_API tn_status tn_plugin_quarantine(tn_runtime *runtime, const char *id,
                                      const char *reason);

// Gives an interface that an installed plugin offers beside the standard ones, by id and
// revision ("org.tenon.ffi/1"), and the host table that the interface's functions take.
// Loads the plugin. Both results are borrowed until the runtime closes. Any thread.
TN_API tn_status tn_interface_find(tn_runtime *runtime, const char *id,
                                   const void **out_interface, const tn_host **out_host);

// One plugin among those that provide an interface. Texts are borrowed until the runtime
// closes.
typedef struct tn_provider {
    uint32_t struct_size;         // sizeof(tn_provider) as the core was compiled
    uint32_t flags;               // 0
    const char *plugin;           // id
    const char *const *selectors; // "tn.format/1 extension npy", ended by NULL: of this
                                  // interface and of the plugin's others
} tn_provider;

// The plugins that provide interface `id` ("tn.format/1") and can be used, by plugin id,
// from their manifests: loads nothing. Writes at most *count records, and sets *count to
// the number of plugins; `out` may be NULL. out[0].struct_size is the size of the caller's
// records; 0: that of ABI 1.0. Any thread.
TN_API tn_status tn_providers(tn_runtime *runtime, const char *id, tn_provider *out,
                              uint64_t *count);

// Gives the id of the one plugin that provides interface `id` for a selector, such as kind
// "extension" and value "npy". Loads nothing. Which plugin answers never depends on the
// order of folders: where two have the selector, TN_ERR_ARGUMENT names both.
// TN_ERR_NOT_FOUND: none has it; the message lists the values that are known. The text is
// borrowed until the runtime closes. Any thread.
TN_API tn_status tn_provider_find(tn_runtime *runtime, const char *id, const char *kind,
                                  const char *value, const char **out_plugin);

// As tn_provider_find, for the plugin with a selector of kind "magic" that the `size` bytes
// at `data`, the beginning of a file, match; the longest match counts. TN_ERR_NOT_FOUND
// when none does. Any thread.
TN_API tn_status tn_provider_match(tn_runtime *runtime, const char *id, const void *data,
                                   uint64_t size, const char **out_plugin);

// As tn_interface_find, for the interface of this plugin. Loads the plugin. Any thread.
TN_API tn_status tn_provider_load(tn_runtime *runtime, const char *id, const char *plugin,
                                  const void **out_interface, const tn_host **out_host);

// A folder, for all users, of the installation that this library belongs to: `name` is
// "plugins", or "trust", which holds keys. The folder is found from the library's own file,
// so an installation may be moved; where that fails, it is the folder that the build was
// configured for. Static text. NULL, with a failure recorded, for another name. Any thread.
TN_API const char *tn_installed_folder(const char *name);

// Gives the manifest (plugin.json) of the plugin in shared object `file` as text, for
// tn_text_free: loads the object, calls init with a host table of this runtime, reads the
// plugin's tables, and calls deinit. `file` need not be installed. Any thread.
TN_API tn_status tn_plugin_describe(tn_runtime *runtime, const char *file, char **out_json);

// As tn_plugin_describe, of the plugin's operators (ops.json): inputs, outputs, attributes
// with kinds and defaults, documentation. NULL where it has none. A plugin whose manifest
// lists the file is described by it, without being loaded (tn_plugin_read). Any thread.
TN_API tn_status tn_plugin_describe_ops(tn_runtime *runtime, const char *file,
                                        char **out_json);

// Gives a file that an installed plugin's manifest lists, checked against its hash there,
// for tn_text_free; a 0 stands behind it. Loads nothing. TN_ERR_NOT_FOUND where the
// manifest does not list it, TN_ERR_REFUSED where it is longer than `most` bytes or another
// file. `out_size` may be NULL. Any thread.
TN_API tn_status tn_plugin_read(tn_runtime *runtime, const char *id, const char *name,
                                uint64_t most, char **out_text, uint64_t *out_size);

// Checks a plugin's directory as loading would, without loading: manifest, owner, modes,
// hashes, ELF note. TN_OK, or a failure whose message says what is wrong.
TN_API tn_status tn_plugin_verify(const char *directory);

// The order of two versions of plugins by Semantic Versioning 2.0.0, section 11: negative,
// 0 or positive, as `a` is lower than, the same as or higher than `b`. A text that is no
// version, or NULL, is lower than every version. Any thread.
TN_API int32_t tn_version_compare(const char *a, const char *b);

// Flags of tn_text_printable(). Without them it keeps newlines as they are.
#define TN_TEXT_ONE_LINE ((uint32_t)1 << 0) // newlines and tabs are shown as \x0a and \x09
#define TN_TEXT_INDENT ((uint32_t)1 << 1)   // lines after the first begin with a space

// Writes `text` with escapes, so that a terminal shows it and executes nothing in it:
// control characters, characters that hide or reorder others, and bytes that are no UTF-8
// become \x1b, \u202e or \U000e0001. For texts from outside, such as names of plugins and
// files; messages of this library are escaped already.
//
// Writes at most `size` bytes, the NUL included, and cuts between characters. Returns the
// bytes that the whole text needs, without the NUL. `text` may be NULL, and `out` when
// `size` is 0; they do not overlap. Any thread.
TN_API uint64_t tn_text_printable(const char *text, uint32_t flags, char *out,
                                  uint64_t size);

// Frees a text that a function of this header gave; or NULL.
TN_API void tn_text_free(char *text);

// One device of an installed backend, or one backend that has none. Texts are borrowed
// until the runtime closes.
typedef struct tn_device_summary {
    uint32_t struct_size;
    uint32_t flags;       // of tn_device_info
    const char *backend;  // "vulkan"
    const char *plugin;   // id of the backend's plugin
    const char *reason;   // why the backend has no devices, with index 0; or ""
    uint32_t index;       // of the device within its backend
    uint32_t selected;    // position in the order of TENON_BACKEND, from 1; 0: not selected
    uint64_t memory_size; // bytes; 0: unknown
    char name[128];       // as in tn_device_info
    char driver[128];     // as in tn_device_info
    char features[256];   // as in tn_device_info
    char libraries[128];  // that the device computes with, beside its driver; or ""
    char warning[256];    // the reason why the device is slower than it could be, or ""
    char remedy[192];     // the remedy for that reason, or ""
} tn_device_summary;

// Every device of every installed backend. Writes at most *count records, and sets *count
// to the number of devices; `out` may be NULL. out[0].struct_size is the size of the
// caller's records; 0: that of ABI 1.0. Slow: the first call in a runtime loads all
// backends and asks their drivers; later calls give the same list.
TN_API tn_status tn_devices(tn_runtime *runtime, tn_device_summary *out, uint64_t *count);

// The record of a primitive, by a name as tn_op takes it. Loads the primitive's pack. NULL,
// with the reason in tn_last_error(), when no plugin has it. Borrowed as long as `runtime`.
TN_API const tn_primitive *tn_primitive_find(tn_runtime *runtime, const char *name);

// Checks that all is installed that a primitive needs beside its plugin, such as a foreign
// library: TN_OK, or a failure whose message says what to do. Loads the primitive's pack.
TN_API tn_status tn_primitive_check(tn_runtime *runtime, const char *name);

// The ids of installed primitives, sorted, ended by NULL, as long as `runtime`. Loads none.
TN_API const char *const *tn_primitive_names(tn_runtime *runtime);

// Prints attributes ("alpha=4, beta=2"), without those at their default unless `all` is not
// 0. Gives a text, for tn_text_free; NULL on failure.
TN_API char *tn_attrs_print(const tn_attr_table *table, const void *attrs, int32_t all);

// Explains how the graph of these arrays would run, as JSON: for each node its device and
// its kernel, and for every other candidate the reason why it was turned down. Gives a
// text, for tn_text_free. "types" are of all outputs, "type" is the first of these.
//
//   {"nodes": [{"id", "op", "type", "types", "device", "instead_of", "kernel", "plugin",
//     "depth", "rejected": [{"candidate", "reason"}]}],
//    "leaves": [{"id", "type", "device", "donated"}],
//    "segments": [{"id", "device", "arena_bytes",
//      "transfers": [{"id", "label", "from", "to", "bytes", "inputs"}],
//      "steps": [{"id", "label", "kernel", "plugin", "type", "types", "outputs",
//        "instructions", "inputs"}]}],
//    "outputs": [{"type", "source"}]}
//
// "inputs" and "source" say where values come from: {"leaf": id}, {"step": id, "output"},
// where the step may be a transfer, or {"number"}. Nodes, leaves and outputs have a "name"
// when tn_name gave one. "op" and "label" have at most 63 bytes; where they are shortened,
// "text" has the whole. "instead_of" is the preferred device of a node that runs on another
// one, because the preferred device turned the node down.
//
// A graph that cannot run has a "message" and no segments; its last node is the one that no
// device runs ("device" is ""), or that may not fall back to another device.
TN_API tn_status tn_explain(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                            char **out_json);

// The graph in Graphviz's language, DOT. `planned` not 0: as planned, coloured by device;
// 0: as built. Gives a text, for tn_text_free.
TN_API tn_status tn_graph_dot(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                              int32_t planned, char **out_dot);

// A configuration variable as this runtime sees it; NULL when unset. Borrowed.
TN_API const char *tn_config(const tn_runtime *runtime, const char *name);

#ifdef __cplusplus
}
#endif

#endif // TENON_TENON_H
