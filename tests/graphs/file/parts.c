// SPDX-License-Identifier: MIT
// Files of several parts: other files of a folder, folders, metadata, elements in blocks.
// The format is a fixture's, whose files say in words what it tells the core (parts.c).
#include <fcntl.h>
#include <sys/stat.h>
#include <tenon/file.h>
#include <unistd.h>
#include "../support/common.h"

#define TEMPLATE "/tmp/tenon-parts-XXXXXX"
static char folder[sizeof(TEMPLATE)];

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert(ne(ptr, file, NULL));
    fputs(text, file);
    fclose(file);
}

static void begin(void)
{
    static const float numbers[] = {1, 2, 3, 4, 5, 6};
    memcpy(folder, TEMPLATE, sizeof(TEMPLATE));
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
    cr_assert(eq(int, chdir(folder), 0));
    cr_assert(eq(int, mkdir("model", 0700), 0));
    FILE *file = fopen("model/a.bin", "w");
    fwrite(numbers, sizeof(numbers), 1, file);
    fclose(file);
    write_text("model/b.bin", "\1\2\3\4\5\6\7\10");
    setup();
    // From here on the plugin is loaded, and holds what it holds.
    const void *table;
    const tn_host *host;
    must(NULL, tn_provider_load(runtime, "tn.format/1", "com.acme.parts", &table, &host));
    tn_scope *s = tn_scope_open(runtime); // devices, too
    (void)tn_item(s, tn_scalar(s, TN_F32, 1));
    tn_scope_close(s);
}

static void end(void)
{
    char command[128];
    teardown();
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    cr_assert(eq(int, system(command), 0));
}

TestSuite(parts, .init = begin, .fini = end);

#define INDEX                                                                              \
    "open a.bin\nopen b.bin\nopen a.bin\n"                                                 \
    "array w 1 8 16 12 - 0 2 2\narray q 2 2 6 6 q9 32 2 3\n"                               \
    "integer layers 3\ntext name small\n"

static int descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

// What INDEX says, from `path`.
static void expect_index(const char *path, uint32_t flags)
{
    const tn_file_options options = {.struct_size = sizeof(options), .flags = flags};
    tn_file *file = NULL;
    int before = descriptors();
    tn_scope *s = tn_scope_open(runtime);
    check_status(tn_file_open(runtime, path, &options, &file), TN_OK);
    cr_assert(eq(ptr, (void *)(uintptr_t)tn_file_format(file, 0), NULL));
    cr_assert(eq(str, tn_file_format(file, 1), "q9"));
    cr_assert(eq(ptr, (void *)(uintptr_t)tn_file_format(file, 2), NULL));
    cr_assert(eq(i64, tn_file_columns(file, 0), 2));
    cr_assert(eq(i64, tn_file_columns(file, 1), 32));
    cr_assert(eq(i64, tn_file_columns(file, 2), -1));
    const tn_metadata_list *list = tn_file_metadata(file);
    int64_t layers = 0;
    cr_assert(eq(u64, list->count, 2));
    cr_assert(eq(str, list->name, path));
    cr_assert(tn_metadata_integer(tn_metadata_find(list, "layers"), &layers));
    cr_assert(eq(i64, layers, 3));
    cr_assert(eq(str, tn_file_text(file, "name"), "small"));
    cr_assert(eq(ptr, (void *)(uintptr_t)tn_file_text(file, "layers"), NULL));
    tn_array *w = tn_file_array(s, file, "w"), *q = tn_file_array(s, file, "q");
    tn_file_close(file);
    const float *floats = tn_data(s, w);
    const uint8_t *bytes = tn_data(s, q);
    must(s, tn_scope_status(s));
    cr_assert(floats[0] == 3 && floats[3] == 6);
    cr_assert(bytes[0] == 3 && bytes[5] == 8);
    tn_scope_close(s);
    cr_assert(eq(int, descriptors(), before));
}

Test(parts, arrays_lie_in_several_files)
{
    write_text("model/index.parts", INDEX);
    expect_index("model/index.parts", 0);
    expect_index("model/index.parts", TN_FILE_MAP);
    cr_assert(eq(int, chdir("model"), 0));
    expect_index("index.parts", TN_FILE_MAP);
    cr_assert(eq(int, chdir(".."), 0));
}

Test(parts, a_folder_is_known_by_a_file_in_it)
{
    write_text("model/index.parts", INDEX);
    expect_index("model", 0);
    expect_index("model/", TN_FILE_MAP);
    cr_assert(eq(int, chdir("model"), 0));
    expect_index(".", 0);
    cr_assert(eq(int, chdir(".."), 0));
}

static void refused(const char *text, const char *path, tn_status status, const char *says)
{
    tn_file *file = NULL;
    int before = descriptors();
    write_text("model/index.parts", text);
    check_status(tn_file_open(runtime, path, NULL, &file), status);
    cr_assert(eq(ptr, file, NULL));
    check_says(tn_last_error(), says);
    cr_assert(eq(int, descriptors(), before));
}

Test(parts, only_files_of_the_folder_are_opened)
{
    static const char *const others[] = {"../a.bin", "..", ".", "/etc/passwd", "x/y", ""};
    char text[64], says[128];
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        snprintf(text, sizeof(text), "open a.bin\nopen %s\n", others[i]);
        snprintf(says, sizeof(says), "model/index.parts: it names the file '%s', expected",
                 others[i]);
        refused(text, "model/index.parts", TN_ERR_REFUSED, says);
    }
    cr_assert(eq(int, mkfifo("model/pipe", 0600), 0));
    cr_assert(eq(int, mkdir("model/within", 0700), 0));
    refused("open pipe\n", "model", TN_ERR_REFUSED, "model/pipe: expected a regular file");
    refused("open within\n", "model", TN_ERR_REFUSED, "within: expected a regular file");
    refused("open none\n", "model", TN_ERR_NOT_FOUND,
            "cannot read model/none: No such file");
    cr_assert(eq(int, symlink("loop", "model/loop"), 0));
    refused("open loop\n", "model", TN_ERR_IO, "cannot read model/loop: Too many");
}

Test(parts, what_a_format_says_is_checked)
{
    refused("array w 1 0 4 12 - 0 1\n", "model", TN_ERR_INTERNAL,
            "model: the format's plugin is at fault: array 'w' ends behind the file");
    refused("open a.bin\narray w 1 24 4 12 - 0 1\n", "model", TN_ERR_INTERNAL,
            "array 'w' ends behind the file");
    refused("open a.bin\narray w 1 0 8 12 - 0 1\n", "model", TN_ERR_INTERNAL,
            "array 'w' has 8 bytes, expected 4");
    refused("open a.bin\narray w 1 0 4 12 q9 1 1\n", "model", TN_ERR_INTERNAL,
            "array 'w' of q9 is no u8 of rows");
    refused("open a.bin\narray w 1 0 4 6 q9 -1 4\n", "model", TN_ERR_INTERNAL,
            "array 'w' of q9 is no u8 of rows");
    refused("shifted depth 1\n", "model", TN_ERR_INTERNAL, "metadata 'depth'");
    refused("empty depth 1\n", "model", TN_ERR_INTERNAL, "metadata 'depth'");
}

Test(parts, a_folder_without_a_format_says_what_is_known)
{
    tn_file *file = NULL;
    cr_assert(eq(int, mkdir("model/deep", 0700), 0));
    write_text("model/index.parts", INDEX); // above: "../index.parts" is no file of `deep`
    check_status(tn_file_open(runtime, "model/deep", NULL, &file), TN_ERR_NOT_FOUND);
    check_says(tn_last_error(), "model/deep: ");
    check_says(tn_last_error(), "for folder (by a file in it) (known: ");
    check_says(tn_last_error(), "index.parts");
}

Test(parts, files_are_opened_while_a_file_is_listed)
{
    tn_file *file = NULL;
    write_text("model/index.parts", "array ~w 0 0 0 12 - 0 2\n");
    check_status(tn_file_open(runtime, "model/index.parts", NULL, &file), TN_OK);
    tn_scope *s = tn_scope_open(runtime);
    cr_assert(eq(ptr, tn_file_array(s, file, "~w"), NULL));
    check_says(tn_scope_error(s), "other files are opened by `list` alone");
    tn_scope_close(s);
    tn_file_close(file);
}

Test(parts, formats_without_metadata_or_blocks_refuse_them)
{
    const int64_t one = 1;
    const tn_metadata pair = {.key = "n", .data = &one, .count = 1, .kind = 2};
    const tn_metadata_list list = {.struct_size = sizeof(list),
                                   .entry_size = sizeof(pair),
                                   .entries = &pair,
                                   .count = 1};
    const char *format = "q4_0";
    const tn_save_options wants[] = {
        {.struct_size = sizeof(wants[0]), .metadata = &list},
        {.struct_size = sizeof(wants[0]), .block_formats = &format}};
    static const char *const paths[] = {"x.npy", "x.safetensors"},
                             *const says[] = {"carry no metadata", "carry no arrays of"};
    for (int i = 0; i < 4; i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = ramp(s, 2, 2, 1, 1);
        check_status(
            tn_save(s, paths[i / 2], &x, (const char *const[]){"x"}, 1, &wants[i % 2]),
            TN_ERR_UNSUPPORTED);
        check_says(tn_scope_error(s), says[i % 2]);
        tn_scope_close(s);
    }
}
