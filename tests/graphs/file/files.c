// SPDX-License-Identifier: MIT
// Files of arrays through the public functions: opened, mapped, loaded and saved.
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <tenon/file.h>
#include <unistd.h>
#include "../support/common.h"

#define TEMPLATE "/tmp/tenon-arrays-XXXXXX"
static char folder[sizeof(TEMPLATE)];

static void begin(void)
{
    memcpy(folder, TEMPLATE, sizeof(TEMPLATE)); // tests may share a process
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
    cr_assert(eq(int, chdir(folder), 0));
    setup();
}

static int files_here(void)
{
    char text[64] = "";
    FILE *list = popen("ls -A | wc -l", "r");
    cr_assert(ne(ptr, fgets(text, sizeof(text), list), NULL));
    pclose(list);
    return atoi(text);
}

static void end(void)
{
    char command[128];
    teardown();
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    cr_assert(eq(int, system(command), 0));
}

TestSuite(files, .init = begin, .fini = end);

static void saved(const char *path, const char *const *names, uint64_t count,
                  const tn_save_options *options)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *arrays[2] = {ramp(s, 2, 3, 1, 1),
                           un(s, "base.transpose", ramp(s, 2, 2, 1, 1))};
    must(s, tn_save(s, path, arrays, names, count, options));
    tn_scope_close(s);
}

static double first(tn_array *array, tn_scope *s)
{
    const float *data = tn_data(s, array);
    if (!data)
        cr_fatal("%s", tn_scope_error(s));
    return (double)data[1];
}

static const char *const both[] = {"a", "b"};

Test(files, what_is_saved_is_loaded)
{
    saved("x.npy", NULL, 1, NULL);
    saved("x.SafeTensors", both, 2, NULL);
    tn_scope *s = tn_scope_open(runtime);
    cr_assert(first(tn_load(s, "x.npy", NULL), s) == 2);
    cr_assert(first(tn_load(s, "x.npy", ""), s) == 2);
    cr_assert(first(tn_load(s, "x.SafeTensors", "a"), s) == 2);
    cr_assert(first(tn_load(s, "x.SafeTensors", "b"), s) == 3); // row-major again
    tn_scope_close(s);
    cr_assert(eq(int, files_here(), 2));
}

Test(files, names_types_and_texts_are_known_without_the_elements)
{
    static const char *const keys[] = {"made by", "step"}, *const texts[] = {"me", "7"};
    const tn_save_options options = {
        .struct_size = sizeof(options), .keys = keys, .texts = texts, .num_texts = 2};
    saved("x.safetensors", both, 2, &options);
    tn_file *file = NULL;
    check_status(tn_file_open(runtime, "x.safetensors", NULL, &file), TN_OK);
    cr_assert(eq(str, tn_file_name(file, 0), "a"));
    cr_assert(eq(str, tn_file_name(file, 1), "b"));
    cr_assert(eq(ptr, (void *)(uintptr_t)tn_file_name(file, 2), NULL));
    cr_assert(eq(ptr, (void *)(uintptr_t)tn_file_type(file, 2), NULL));
    cr_assert(eq(int, tn_file_type(file, 0)->dtype, TN_F32));
    cr_assert(eq(i64, tn_file_type(file, 0)->extent[1], 3));
    cr_assert(eq(str, tn_file_text(file, "step"), "7"));
    cr_assert(eq(ptr, (void *)(uintptr_t)tn_file_text(file, "none"), NULL));
    tn_file_close(file);
    tn_file_close(NULL);
}

Test(files, a_format_is_known_by_the_first_bytes)
{
    saved("x.npy", NULL, 1, NULL);
    saved("x.safetensors", both, 2, NULL);
    cr_assert(eq(int, rename("x.npy", "x"), 0));
    cr_assert(eq(int, rename("x.safetensors", "y.old"), 0));
    tn_scope *s = tn_scope_open(runtime);
    cr_assert(first(tn_load(s, "x", NULL), s) == 2);
    cr_assert(first(tn_load(s, "y.old", "a"), s) == 2);
    tn_scope_close(s);
}

// Address ranges of the file in this process.
static bool is_within_map(const char *name, const void *at)
{
    char line[4400];
    unsigned long low, high;
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof(line), maps))
        if (strstr(line, name) && sscanf(line, "%lx-%lx", &low, &high) == 2)
            found |= (uintptr_t)at >= low && (uintptr_t)at < high;
    fclose(maps);
    return found;
}

Test(files, mapped_arrays_are_the_files_own_memory)
{
    static const tn_file_options map = {.struct_size = sizeof(map), .flags = TN_FILE_MAP};
    static const char *const names[] = {"x.npy", "x.safetensors"};
    saved(names[0], NULL, 1, NULL);
    saved(names[1], both, 2, NULL);
    for (int i = 0; i < 2; i++) {
        tn_file *file = NULL;
        tn_scope *s = tn_scope_open(runtime);
        check_status(tn_file_open(runtime, names[i], &map, &file), TN_OK);
        tn_array *x = tn_file_array(s, file, i ? "a" : NULL);
        tn_file_close(file); // the array stays
        cr_assert(is_within_map(names[i], tn_data(s, x)));
        cr_assert(tn_item(s, un(s, "base.sum", x)) == 21);
        saved(names[i], i ? both : NULL, i + 1,
              NULL); // replaced: the array is the old file
        cr_assert(tn_item(s, un(s, "base.max", x)) == 6);
        tn_array *read = tn_load(s, names[i], i ? "a" : NULL);
        cr_assert(not(is_within_map(names[i], tn_data(s, read))));
        tn_scope_close(s);
        cr_assert(not(is_within_map(names[i], NULL)));
    }
}

static void *feed(void *context)
{
    char bytes[4096];
    int from = open(context, O_RDONLY), to = open("pipe.npy", O_WRONLY);
    for (ssize_t n; (n = read(from, bytes, sizeof(bytes))) > 0;)
        cr_assert(eq(i64, write(to, bytes, (size_t)n), n));
    close(from);
    close(to);
    return NULL;
}

Test(files, a_pipe_is_read_to_its_end)
{
    pthread_t thread;
    saved("x.npy", NULL, 1, NULL);
    cr_assert(eq(int, mkfifo("pipe.npy", 0600), 0));
    cr_assert(eq(int, pthread_create(&thread, NULL, feed, "x.npy"), 0));
    tn_scope *s = tn_scope_open(runtime);
    cr_assert(first(tn_load(s, "pipe.npy", NULL), s) == 2);
    tn_scope_close(s);
    pthread_join(thread, NULL);
}

static void not_loaded(const char *path, const char *name, tn_status status,
                       const char *says)
{
    tn_scope *s = tn_scope_open(runtime);
    cr_assert(eq(ptr, tn_load(s, path, name), NULL));
    cr_assert(eq(int, tn_scope_status(s), status));
    check_says(tn_scope_error(s), says);
    tn_scope_close(s);
}

Test(files, what_cannot_be_loaded_says_why)
{
    saved("x.safetensors", both, 2, NULL);
    cr_assert(eq(int, mkdir("folder.npy", 0700), 0)); // its extension says nothing
    cr_assert(eq(int, system("echo text > x.npy; echo text > text; : > empty.npy"), 0));
    not_loaded("absent.npy", NULL, TN_ERR_IO, "cannot read absent.npy: No such file");
    not_loaded("folder.npy", NULL, TN_ERR_NOT_FOUND, "folder.npy: no installed plugin");
    not_loaded("x.npy", NULL, TN_ERR_REFUSED, "x.npy: not a .npy file");
    not_loaded("empty.npy", NULL, TN_ERR_REFUSED, "empty.npy: not a .npy file");
    not_loaded("text", NULL, TN_ERR_NOT_FOUND, "text: expected a name whose extension");
    not_loaded("x.safetensors", NULL, TN_ERR_ARGUMENT, "holds 2 arrays: name one of a, b");
    not_loaded("x.safetensors", "c", TN_ERR_NOT_FOUND,
               "holds no array 'c' (it holds a, b)");
    not_loaded(NULL, "c", TN_ERR_ARGUMENT, "the path is NULL");
}

static tn_status refuse(void *context, const void *data, uint64_t size)
{
    (void)context, (void)data, (void)size;
    return TN_ERR_IO;
}

static void not_saved(const char *path, const char *const *names, uint64_t count,
                      const tn_save_options *options, tn_status status, const char *says)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 3, 1, 1), *arrays[2] = {x, x};
    cr_assert(eq(int, tn_save(s, path, arrays, names, count, options), status));
    check_says(tn_scope_error(s), says);
    tn_scope_close(s);
}

Test(files, what_cannot_be_saved_leaves_the_old_file_alone)
{
    static const char *const twice[] = {"a", "a"}, *const reserved[] = {"__metadata__"};
    const tn_save_options failing = {.struct_size = sizeof(failing), .write = refuse};
    saved("x.npy", NULL, 1, NULL);
    not_saved("x.npy", both, 2, NULL, TN_ERR_ARGUMENT, "holds one array and no texts");
    not_saved("x.safetensors", twice, 2, NULL, TN_ERR_ARGUMENT, "two arrays named 'a'");
    not_saved("x.safetensors", reserved, 1, NULL, TN_ERR_ARGUMENT, "cannot be named");
    not_saved("no/x.npy", NULL, 1, NULL, TN_ERR_IO, "cannot write no/x.npy: No such file");
    not_saved("x.foo", NULL, 1, NULL, TN_ERR_NOT_FOUND, "for extension foo (known: ");
    not_saved("x.npy", NULL, 1, &failing, TN_ERR_IO, "writing x.npy");
    tn_scope *s = tn_scope_open(runtime);
    tn_array *half = tn_scalar(s, TN_BF16, 1);
    cr_assert(eq(int, tn_save(s, "x.npy", &half, NULL, 1, NULL), TN_ERR_UNSUPPORTED));
    check_says(tn_scope_error(s), "x.npy: NumPy has no name for bf16; cast before writing");
    tn_scope_close(s);
    s = tn_scope_open(runtime);
    cr_assert(first(tn_load(s, "x.npy", NULL), s) == 2);
    tn_scope_close(s);
    cr_assert(eq(int, files_here(), 1)); // no temporary file is left
}

// Elements in their turn: 6 floats each, in one buffer, as `*context` says.
struct turn {
    float values[6];
    uint64_t asked; // arrays so far
    uint64_t fails; // at this array
};

static tn_status give_elements(void *context, uint64_t index, const void **out_data)
{
    struct turn *turn = context;
    cr_assert(eq(u64, index, turn->asked++));
    if (index == turn->fails)
        return TN_ERR_MEMORY;
    for (int i = 0; i < 6; i++)
        turn->values[i] = (float)(index * 10 + (uint64_t)i);
    *out_data = turn->values;
    return TN_OK;
}

Test(files, arrays_are_given_in_their_turn)
{
    static const char *const paths[] = {"x.safetensors", "x.gguf"};
    const tn_type type = {.dtype = TN_F32, .rank = 2, .extent = {2, 3}};
    const tn_type types[2] = {type, type};
    struct turn turn = {.fails = 2};
    const tn_save_options options = {.struct_size = sizeof(options),
                                     .elements = give_elements,
                                     .context = &turn,
                                     .types = types};
    const tn_save_options untyped = {.struct_size = sizeof(options),
                                     .elements = give_elements};
    tn_scope *s = tn_scope_open(runtime);
    for (int i = 0; i < 2; i++) {
        turn.asked = 0;
        check_status(tn_save(s, paths[i], NULL, both, 2, &options), TN_OK);
        cr_assert(eq(u64, turn.asked, 2));
        cr_assert(first(tn_load(s, paths[i], "a"), s) == 1);
        cr_assert(first(tn_load(s, paths[i], "b"), s) == 11);
    }
    turn = (struct turn){.fails = 1};
    check_status(tn_save(s, "x.gguf", NULL, both, 2, &options), TN_ERR_MEMORY);
    check_says(tn_scope_error(s), "x.gguf: the elements of array 1 failed (memory)");
    tn_scope_close(s);
    s = tn_scope_open(runtime);
    cr_assert(first(tn_load(s, "x.gguf", "b"), s) == 11); // the old file
    cr_assert(eq(int, files_here(), 2));
    check_status(tn_save(s, "x.npy", NULL, NULL, 1, &options), TN_ERR_UNSUPPORTED);
    check_says(tn_scope_error(s), "x.npy: files of this format need all arrays");
    tn_scope_clear_error(s);
    check_status(tn_save(s, "x.gguf", NULL, both, 2, &untyped), TN_ERR_ARGUMENT);
    check_says(tn_scope_error(s), "elements, but no list of types");
    tn_scope_clear_error(s);
    check_status(tn_save(s, "x.gguf", NULL, both, 2, NULL), TN_ERR_ARGUMENT);
    check_says(tn_scope_error(s), "arrays is NULL, expected a list of 2");
    tn_scope_close(s);
}

Test(files, a_runtime_with_an_open_file_is_not_closed)
{
    tn_runtime *rt = open_with((const char *const[]){"TENON_LOG=off", NULL});
    tn_file *file = NULL;
    saved("x.npy", NULL, 1, NULL);
    check_status(tn_file_open(rt, "x.npy", NULL, &file), TN_OK);
    check_status(tn_runtime_close(rt), TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "in use by 1 open file:");
    tn_file_close(file);
    check_status(tn_runtime_close(rt), TN_OK);
}

// --- replacing a file --------------------------------------------------------------------

static void put(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
    cr_assert(eq(int, chmod(path, mode), 0));
}

static void check_file(const char *path, const char *text, mode_t mode)
{
    char got[64] = "";
    struct stat info;
    FILE *file = fopen(path, "r");
    cr_assert(ne(ptr, file, NULL), "%s", path);
    cr_assert(ne(ptr, fgets(got, sizeof(got), file), NULL));
    fclose(file);
    cr_assert(eq(int, lstat(path, &info), 0));
    cr_assert(eq(str, got, (char *)(uintptr_t)text));
    cr_assert(eq(uint, info.st_mode & 07777, mode), "%s", path);
}

// Writes "new" to the file.
static tn_status replace(const char *path, const tn_new_file_options *options)
{
    tn_new_file *file = NULL;
    tn_status status = tn_new_file_open(path, options, &file);
    if (status == TN_OK) {
        cr_assert(file->descriptor > 2);
        cr_assert(eq(i64, write(file->descriptor, "new", 3), 3));
        status = tn_new_file_commit(file);
    }
    tn_new_file_close(file);
    return status;
}

Test(files, a_file_that_is_replaced_keeps_its_mode)
{
    static const mode_t modes[] = {0600, 0640, 0444, 0755};
    const tn_new_file_options own = {.struct_size = sizeof(own), .mode = 0604};
    umask(022);
    check_status(replace("x", NULL), TN_OK);
    check_file("x", "new", 0644);
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
        put("x", "old", modes[i]);
        check_status(replace("x", NULL), TN_OK);
        check_file("x", "new", modes[i]);
    }
    check_status(replace("x", &own), TN_OK);
    check_file("x", "new", 0604);
    saved("x.npy", NULL, 1, NULL);
    cr_assert(eq(int, chmod("x.npy", 0600), 0));
    saved("x.npy", NULL, 1, NULL);
    struct stat info;
    cr_assert(eq(int, stat("x.npy", &info), 0));
    cr_assert(eq(uint, info.st_mode & 07777, 0600));
}

Test(files, a_link_is_followed_by_its_path_and_replaced_in_a_folder)
{
    put("x", "old", 0600);
    cr_assert(eq(int, symlink("x", "link"), 0));
    check_status(replace("link", NULL), TN_OK);
    check_file("x", "new", 0600);
    put("x", "old", 0600);
    int here = open(".", O_RDONLY | O_DIRECTORY);
    const tn_new_file_options named = {
        .struct_size = sizeof(named), .name = "link", .directory = here, .mode = 0640};
    check_status(replace("the link", &named), TN_OK);
    check_file("x", "old", 0600);
    check_file("link", "new", 0640);
    close(here);
}

Test(files, a_file_that_must_be_new_replaces_none)
{
    const tn_new_file_options only = {.struct_size = sizeof(only),
                                      .flags = TN_NEW_FILE_ONLY};
    check_status(replace("x", &only), TN_OK);
    put("x", "old", 0600);
    cr_assert(eq(int, symlink("nowhere", "link"), 0));
    cr_assert(eq(int, mkfifo("pipe", 0600), 0));
    for (int i = 0; i < 3; i++) {
        check_status(replace((const char *const[]){"x", "link", "pipe"}[i], &only),
                     TN_ERR_IO);
        check_says(tn_last_error(), "File exists; what was there before is unchanged");
    }
    check_file("x", "old", 0600);
    cr_assert(eq(int, files_here(), 3));
}

Test(files, what_was_left_behind_is_removed_and_what_is_held_is_not)
{
    put(".tenon-save-0", "left", 0600);
    put(".tenon-save-1", "held", 0600);
    cr_assert(eq(int, symlink(".tenon-save-1", ".tenon-save-2"), 0));
    int held = open(".tenon-save-1", O_RDONLY);
    cr_assert(eq(int, flock(held, LOCK_EX | LOCK_NB), 0));
    saved("x.npy", NULL, 1, NULL);
    cr_assert(eq(int, files_here(), 3));
    check_file(".tenon-save-1", "held", 0600);
    close(held);
    check_status(replace("x", NULL), TN_OK);
    cr_assert(eq(int, files_here(), 3)); // x.npy, x, the link
}

Test(files, what_is_not_committed_is_dropped)
{
    tn_new_file *file = NULL;
    const tn_new_file_options flags = {.struct_size = sizeof(flags), .flags = 2},
                              mode = {.struct_size = sizeof(mode), .mode = 04755};
    put("x", "old", 0600);
    check_status(tn_new_file_open("x", NULL, &file), TN_OK);
    cr_assert(eq(i64, write(file->descriptor, "new", 3), 3));
    tn_new_file_close(file);
    tn_new_file_close(NULL);
    check_file("x", "old", 0600);
    check_status(replace(NULL, NULL), TN_ERR_ARGUMENT);
    check_status(replace("x", &flags), TN_ERR_ARGUMENT);
    check_status(replace("x", &mode), TN_ERR_ARGUMENT);
    check_status(replace("no/x", NULL), TN_ERR_IO);
    check_says(tn_last_error(), "cannot write no/x: No such file");
    check_status(tn_new_file_commit(NULL), TN_ERR_ARGUMENT);
    cr_assert(eq(int, files_here(), 1));
}
