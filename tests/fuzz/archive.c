// SPDX-License-Identifier: MIT
// Archives of plugins: whatever one holds, nothing but plain files and folders comes to be,
// below the target alone. What is no zstd is put into a frame of it uncompressed, so that
// the tar within is searched too.
#include "fuzz.h"
#include "plugins/tnp.h"
#include "files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_BLOCK = 1 << 16 };

static const uint8_t magic[4] = {0x28, 0xb5, 0x2f, 0xfd};

// A frame of one segment whose blocks are stored. Gives its size.
static size_t frame(const uint8_t *data, size_t size, uint8_t *out)
{
    size_t at = 0;
    memcpy(out, magic, 4);
    out[4] = 0xa0; // the content's size in 4 bytes, one segment
    for (at = 5; at < 9; at++)
        out[at] = (uint8_t)(size >> 8 * (at - 5));
    do {
        size_t part = size < MAX_BLOCK ? size : MAX_BLOCK;
        uint32_t block = (uint32_t)part << 3 | (part == size); // stored, last
        for (int i = 0; i < 3; i++)
            out[at++] = (uint8_t)(block >> 8 * i);
        memcpy(out + at, data, part);
        at += part, data += part, size -= part;
    } while (size);
    return at;
}

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    FUZZ_CHECK(file && fwrite(data, 1, size, file) == size && fclose(file) == 0, "%s",
               strerror(errno));
}

static void put(const char *path, const uint8_t *data, size_t size)
{
    if (size >= 4 && memcmp(data, magic, 4) == 0) {
        write_file(path, data, size);
        return;
    }
    uint8_t *framed = malloc(size + 16 + size / MAX_BLOCK * 3);
    FUZZ_CHECK(framed, "out of memory");
    write_file(path, framed, frame(data, size, framed));
    free(framed);
}

// What was unpacked is listed without fault: no links, no devices, no hidden files.
static void check_unpacked(const struct folder *target)
{
    struct file_tree tree = {0};
    FUZZ_CHECK(tree_list(target, &tree) == 0, "%s", tenon_archive.failure());
    FUZZ_CHECK(tree.count > 0, "an archive that is not empty");
    tree_finish(&tree);
}

static void open_folder(const char *path, struct folder *out)
{
    mkdir(path, 0700);
    FUZZ_CHECK(folder_open(path, out) == 0, "%s", oops_text());
}

void fuzz_one(const uint8_t *data, size_t size)
{
    char path[96], base_path[96], target_path[160];
    struct folder base, target;
    snprintf(path, sizeof(path), "%s/in.tnp", fuzz_folder());
    snprintf(base_path, sizeof(base_path), "%s/base", fuzz_folder());
    snprintf(target_path, sizeof(target_path), "%s/target", base_path);
    forget_oops();
    put(path, data, size);
    open_folder(base_path, &base);
    open_folder(target_path, &target);
    if (tenon_archive.unpack(path, &target, "plugin") == 0)
        check_unpacked(&target);
    else
        FUZZ_CHECK(tenon_archive.failure()[0], "a failure has a text");
    folder_close(&target);
    folder_remove(&base, "target");
    folder_close(&base);
    FUZZ_CHECK(rmdir(base_path) == 0, "nothing lies beside the target: %s",
               strerror(errno));
}
