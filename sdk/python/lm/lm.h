// SPDX-License-Identifier: MIT
// Shared by the files of module tenon._lm: libtenon-lm for Python, a type for each kind of
// object that the library opens. Convenient but not hot functions (options, conversations)
// are Python, in tenon.lm.
//
// Threads. All functions hold the GIL, or the guard (base.h), but while work runs. Work
// that may last runs on a thread of its own, which never calls Python, so that Python
// handles signals meanwhile. When a handler raises, as that of Ctrl-C does, the work runs
// on, and the next call that uses its model or sequence waits for its end.
#ifndef TENON_PYTHON_LM_H
#define TENON_PYTHON_LM_H

#include "../base/base.h"

#include <pthread.h>
#include <tenon/lm.h>
#include <tenon/lm_adapter.h>
#include <tenon/lm_image.h>

extern const struct py_host *py_host; // what tenon._core gives

// --- work.c: work on a thread of its own ---

enum work_state { WORK_IDLE, WORK_RUNS, WORK_YIELDS, WORK_DONE };

struct lm_model;
struct lm_work {
    void (*run)(struct lm_work *work);  // on the thread; sets `status`
    void (*free)(struct lm_work *work); // frees the members behind this struct
    tn_status status;
    char *error;            // message of a failure, owned; NULL: none
    PyObject *kept;         // objects whose memory the work uses, a reference
    struct lm_work *next;   // in a list `left` of interrupted work
    struct lm_model *model; // the model that the work has entered
    bool is_alone;          // entered alone: nothing else uses the model meanwhile
    enum work_state state;
    bool is_stopped;
    pid_t process;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
};

// Allocates `size` zeroed bytes that begin with a struct lm_work. NULL with an exception.
void *work_new(size_t size, void (*run)(struct lm_work *), void (*free)(struct lm_work *));
// Waits for the end of work and frees it. NULL is fine.
void work_free(struct lm_work *work);
// Runs work to its end. False with an exception set: the work failed, and is still the
// caller's; or a signal's handler raised, *work is NULL and the work is in `left`.
bool work_do(struct lm_work **work, struct lm_work **left);
// Waits for all interrupted work of a list and frees it. False: a signal's handler raised.
bool work_settle(struct lm_work **left);
// Starts or resumes work, and waits until it yields or ends. False with an exception set;
// after a signal the work runs on.
bool work_next(struct lm_work *work);
// Makes the work's next work_yield(), or the one in which it waits, return false.
void work_stop(struct lm_work *work);
// Waits for the end of work that was stopped. False: a signal's handler raised.
bool work_end(struct lm_work *work);
// On the work's thread: wakes the caller of work_next(), and waits. False: stopped, the
// work has to end.
bool work_yield(struct lm_work *work);
// On the work's thread: sets `status`, and `error` to the library's message.
void work_set(struct lm_work *work, tn_status status);
PyObject *work_raise(const struct lm_work *work);

// --- model.c ---

// A model, with its open sequences, images, streams and interrupted work.
struct lm_model {
    PyObject ob_base;
    tn_lm *lm; // NULL: closed
    struct lm_sequence *sequences;
    struct lm_image *images;
    struct lm_stream *streams;
    struct lm_work *left;
    uint32_t uses; // number of calls and works that share the model
    bool is_alone; // a call or work has the model to itself
    pid_t process;
    struct py_held held;
};
extern PyTypeObject *model_type;
bool model_init(PyObject *module);
// From model_enter() to model_leave() the model stays open. `alone`: nothing else may use
// it meanwhile. False with an exception set.
bool model_enter(struct lm_model *model, bool alone);
void model_leave(struct lm_model *model, bool alone);
// As model_enter, for work, whose work_free() leaves. False: failed, the work is freed.
bool model_enter_for(struct lm_model *model, bool alone, struct lm_work *work);
// Raises the failure of the last call on this thread. Returns NULL.
PyObject *lm_raise(tn_status status);

// --- adapter.c: methods of models that change them ---

PyObject *model_load_adapter(PyObject *self, PyObject *args);
PyObject *model_save_adapter(PyObject *self, PyObject *args);
PyObject *model_train(PyObject *self, PyObject *args);
PyObject *model_shard(PyObject *self, PyObject *args);
PyObject *model_importance(PyObject *self, PyObject *args);

// --- text.c: methods of models on texts and tokens ---

PyObject *model_tokenize(PyObject *self, PyObject *args);
PyObject *model_detokenize(PyObject *self, PyObject *ids);
PyObject *model_is_end(PyObject *self, PyObject *id);
PyObject *model_chat(PyObject *self, PyObject *args);

// --- sequence.c ---

struct lm_sequence {
    PyObject ob_base;
    tn_lm_sequence *sequence; // NULL: closed
    struct lm_model *model;   // a reference
    struct lm_sequence *next; // in the model's list
    struct lm_work *left;     // interrupted work
    struct lm_stream *stream; // the running generation, borrowed; NULL: none
    bool is_used;
};
extern PyTypeObject *sequence_type;
bool sequence_init(PyObject *module);
PyObject *model_sequence(PyObject *self, PyObject *unused);
// From sequence_enter() to sequence_leave() only the caller uses the sequence. False with
// an exception set.
bool sequence_enter(struct lm_sequence *s);
void sequence_leave(struct lm_sequence *s);
// Waits for interrupted work, and closes the sequence.
void sequence_drop(struct lm_sequence *s);
PyObject *infer_batch(PyObject *module, PyObject *list);

// --- image.c ---

struct lm_image {
    PyObject ob_base;
    tn_lm_image *image;
    struct lm_model *model; // a reference
    struct lm_image *next;  // in the model's list
    uint32_t uses;
};
bool image_init(PyObject *module);
PyObject *model_image(PyObject *self, PyObject *args);
PyObject *model_image_mark(PyObject *self, PyObject *unused);
PyObject *model_vision(PyObject *self, PyObject *args);
PyObject *model_expand(PyObject *self, PyObject *args);
void image_drop(struct lm_image *image);
// Gives the images of a Python sequence, which all have to be the model's; free() *out.
// False with an exception set.
bool images_take(struct lm_model *model, PyObject *images, const tn_lm_image ***out,
                 uint64_t *out_count);

// --- grammar.c ---

bool grammar_init(PyObject *module);
const tn_lm_grammar *grammar_get(PyObject *object); // NULL with an exception set

// --- sampler.c ---

// Sampling options, with the memory that they point to.
struct lm_drawing {
    tn_lm_sampling sampling;
    tn_lm_bias *biases; // for free()
};
// Reads a dict of options by name. False with an exception set, also for an unknown name.
bool drawing_read(PyObject *options, struct lm_drawing *out);
bool sampler_init(PyObject *module);

// --- stream.c: generation and training, item by item ---

bool stream_init(PyObject *module);
// An iterator over what work yields. Takes the work, which has entered the model, and
// `sequence` unless that is NULL. `item` gives the object of the present yield; `result`,
// or NULL, the object of the work's outcome. NULL with an exception set: the work is freed.
PyObject *stream_new(struct lm_work *work, struct lm_sequence *sequence,
                     PyObject *(*item)(struct lm_work *work),
                     PyObject *(*result)(struct lm_work *work));
// Waits for a stream that a signal has stopped. False: another signal's handler raised.
bool stream_settle(struct lm_stream *stream);
// Ends a stream, also one that a thread waits for.
void stream_shut(struct lm_stream *stream);

// --- generate.c ---

PyObject *sequence_generate(PyObject *self, PyObject *request);
PyObject *model_batch(PyObject *self, PyObject *args);

// --- read.c: Python's objects to C's ---

// Gives the tokens of a sequence of numbers or of a buffer of int32; free() *out_ids. False
// with an exception set.
bool ids_read(PyObject *object, int32_t **out_ids, int64_t *out_count);
PyObject *ids_list(const int32_t *ids, uint64_t count);
PyObject *floats_bytes(const float *values, int64_t count);
// A field of a struct that is set from a dict's value of this name. Kind 'i': int64_t, 'u':
// uint64_t, 'd': double.
struct lm_field {
    const char *name;
    char kind;
    size_t offset;
};
// Reads one value into the struct `out`. 1: done; 0: no field has the name; -1 with an
// exception set.
int field_read(const struct lm_field *fields, size_t count, PyObject *name, PyObject *value,
               void *out);
// Raises a TypeError for a name that `what` does not have.
PyObject *raise_unknown(const char *what, PyObject *name);
// The type of a spec, in the module under its last name; NULL with an exception set.
PyTypeObject *type_add(PyObject *module, PyType_Spec *spec);

#endif // TENON_PYTHON_LM_H
