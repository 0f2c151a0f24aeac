// SPDX-License-Identifier: MIT
// Files of arrays, for applications: opening, mapping, loading and saving.
//
//   #include <tenon/file.h> // link with -ltenon
//
//   tn_array *w = tn_load(s, "model.safetensors", "layer0.weight");
//   ...
//   tn_save(s, "out.npy", &w, NULL, 1, NULL);
//
// Which formats there are is up to plugins, see <tenon/format.h>: npy, safetensors, GGUF
// and folders of Hugging Face come with Tenon. A file's name says by its extension which
// one is meant; where no plugin has that extension, the file's first bytes do. A folder of
// files that belong together, such as a model's, is opened as a file is, and chosen by the
// files in it.
//
// Threads. A tn_file is constant, and may be used by any thread until it is closed; scopes
// as <tenon/tenon.h> says.
#ifndef TENON_FILE_H
#define TENON_FILE_H

#include <tenon/metadata.h>
#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

// A file of arrays, opened.
typedef struct tn_file tn_file;

// Flags of tn_file_options.
enum {
    // Arrays are the file's own memory, mapped, where it holds their elements as they are:
    // used in place on the CPU, read as they are used, shared with all who map the file.
    // The file must then stay as it is until the arrays are gone: replacing it, as tn_save
    // does, is fine; writing into it changes the arrays. Shortening it, and a disk that
    // fails, raise SIGBUS in the thread that reads an array, which ends the program: the
    // library installs no handler. A host that cannot rule this out leaves the flag out, so
    // that elements are read and a failure is TN_ERR_IO, or installs a handler that says
    // which file it was and ends the process; nothing that was being computed can go on.
    TN_FILE_MAP = 1,
};

// Options of tn_file_open. All zero is the default.
typedef struct tn_file_options {
    uint32_t struct_size; // sizeof(tn_file_options); 0: that of ABI 1.0
    uint32_t flags;       // TN_FILE_...
    const char *plugin;   // the id of the plugin that knows the format; NULL: see above
} tn_file_options;

// Gives a file, which tn_file_close takes back; reads what is in it, not the elements.
// `options` may be NULL. On failure *out_file is left alone, and tn_last_error() says why.
// A file that is not closed counts as in use when the runtime is closed. Any thread.
TN_API tn_status tn_file_open(tn_runtime *runtime, const char *path,
                              const tn_file_options *options, tn_file **out_file);
TN_API void tn_file_close(tn_file *file); // NULL is fine; arrays of the file stay

// Names and types of the file's arrays, in the file's order: array `index`, or NULL behind
// the last one. A file of one array without a name has the name "". Borrowed until the file
// is closed. Any thread.
TN_API const char *tn_file_name(const tn_file *file, uint64_t index);
TN_API const tn_type *tn_file_type(const tn_file *file, uint64_t index);

// How the bytes of array `index` are to be read: NULL for elements of its type, and for
// elements in blocks, as quantised weights are, the format's name in small letters
// ("q4_0"). Such an array is one of TN_U8, its last axis the bytes of a row. Borrowed until
// the file is closed. Any thread.
TN_API const char *tn_file_format(const tn_file *file, uint64_t index);

// The elements of a row of array `index`: the last extent that it has as a mathematical
// array, 4096 for 2304 bytes of "q4_0"; the other extents are those of tn_file_type. Of an
// array that is not in blocks the last extent itself, 1 for a scalar; -1 behind the last
// array. Any thread.
TN_API int64_t tn_file_columns(const tn_file *file, uint64_t index);

// The text under `key` that the file carries beside its arrays, as a text of its own or as
// metadata of one text; NULL when there is none. Borrowed until the file is closed. Any
// thread.
TN_API const char *tn_file_text(const tn_file *file, const char *key);

// The metadata of the file, an empty list where it has none; NULL for no file. Borrowed
// until the file is closed. Any thread.
TN_API const tn_metadata_list *tn_file_metadata(const tn_file *file);

// Gives an array of the file by its name; NULL: the file's only array. Uses the file for
// the call alone, so that it can be closed before the array is used.
TN_API tn_array *tn_file_array(tn_scope *scope, const tn_file *file, const char *name);

// tn_file_open, tn_file_array and tn_file_close in one call.
TN_API tn_array *tn_load(tn_scope *scope, const char *path, const char *name);

// Options of tn_save. All zero is the default.
typedef struct tn_save_options {
    uint32_t struct_size;     // sizeof(tn_save_options); 0: that of ABI 1.0
    uint32_t flags;           // 0
    const char *plugin;       // the id of the plugin that writes; NULL: by the extension
    const char *const *keys;  // num_texts keys, and
    const char *const *texts; // texts that the file carries under them
    uint64_t num_texts;
    // Where to write instead of to the file `path`, which is then for messages alone:
    // called with the bytes in order. Returns TN_OK, or a failure that ends tn_save.
    tn_status (*write)(void *context, const void *data, uint64_t size);
    void *context; // of `write` and of `elements`
    // Metadata of the file; NULL: none. TN_ERR_UNSUPPORTED for formats that have no place
    // for them, such as npy and safetensors.
    const tn_metadata_list *metadata;
    // num_arrays names of formats, as tn_file_format gives them: the array is one of TN_U8
    // and of at least one axis, whose bytes are blocks. NULL, or NULL for an array:
    // elements as they are. TN_ERR_UNSUPPORTED for formats of files that know no blocks.
    const char *const *block_formats;
    // Arrays that need not be in memory together: with this function, `arrays` of tn_save
    // is NULL, array i has the type types[i], and its elements are asked for when their
    // turn to be written has come, once, in order: row-major without gaps, borrowed until
    // the next call and the end of tn_save. It may use other scopes, not this one. A
    // failure, which tn_last_error() says, ends tn_save, and the file stays as it was.
    // TN_ERR_UNSUPPORTED for formats of files that need all at once, such as npy.
    tn_status (*elements)(void *context, uint64_t index, const void **out_data);
    const tn_type *types; // num_arrays
} tn_save_options;

// Evaluates the arrays, and writes them to a file under their names; `names` may be NULL
// for one array without a name, `options` too. The file appears at `path` complete, or what
// was there is unchanged, as tn_new_file_open() below says.
// Returns the scope's first failure.
TN_API tn_status tn_save(tn_scope *scope, const char *path, tn_array *const *arrays,
                         const char *const *names, uint64_t num_arrays,
                         const tn_save_options *options);

// --- replacing a file --------------------------------------------------------------------

// A file of the application's own bytes that appears at its path complete or not at all.
typedef struct tn_new_file {
    uint32_t struct_size; // sizeof(tn_new_file)
    int32_t descriptor;   // open for writing; the application leaves it open
} tn_new_file;

// Flags of tn_new_file_options.
enum {
    // tn_new_file_commit fails where there is a file of the name.
    TN_NEW_FILE_ONLY = 1,
};

// Options of tn_new_file_open. All zero is the default.
typedef struct tn_new_file_options {
    uint32_t struct_size; // sizeof(tn_new_file_options); 0: that of ABI 1.0
    uint32_t flags;       // TN_NEW_FILE_...
    // The name of the file in the folder that is open as `directory`, which the call
    // borrows; `path` is for messages then. A link of this name is replaced, not followed.
    // NULL: the file is at `path`.
    const char *name;
    int32_t directory;
    // Permissions of the file, such as 0600; 0: those of the file that it replaces, with
    // its owner and group as far as the process may give them, or those that new files
    // have.
    uint32_t mode;
} tn_new_file_options;

// Gives a file to write to, which tn_new_file_close takes back. Its bytes go to a file
// without a name in the folder of `path`, which the kernel drops however the process ends.
// Where the file system has no such files, or /proc is not mounted, they go to a file named
// .tenon-save-..., which a process that is killed leaves behind; it is locked (flock) while
// it is written, and the next writer to the folder, of any process, removes those of its
// user that nobody has locked. A path that is no file, a pipe say, is written to directly;
// of a symbolic link, the file that it names is meant. On failure *out_file is left alone,
// and tn_last_error() says why. Any thread; a file is used by one thread at a time.
TN_API tn_status tn_new_file_open(const char *path, const tn_new_file_options *options,
                                  tn_new_file **out_file);
// Brings the written bytes to the disk, and gives the file its name by one rename; called
// once. On failure, which tn_last_error() says, what was there before is unchanged.
TN_API tn_status tn_new_file_commit(tn_new_file *file);
// Drops what was not committed. NULL is fine.
TN_API void tn_new_file_close(tn_new_file *file);

#ifdef __cplusplus
}
#endif

#endif // TENON_FILE_H
