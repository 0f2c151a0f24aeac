// SPDX-License-Identifier: MIT
// Runs a target on the files of its corpus, for builds without libFuzzer: replay FOLDER...
// A finding ends the program; the file is the one named last.
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

enum { MAX_FILE = 1 << 20 };

static FILE *results; // standard output, to which what is tested may print, too

static void run(const char *path)
{
    static uint8_t buffer[MAX_FILE];
    FILE *file = fopen(path, "rb");
    FUZZ_CHECK(file, "%s: %s", path, strerror(errno));
    size_t size = fread(buffer, 1, sizeof(buffer), file);
    fclose(file);
    fprintf(results, "# %s\n", path);
    fflush(results);
    uint8_t *data = malloc(size + !size); // of this size, so that reading behind it is seen
    FUZZ_CHECK(data, "out of memory");
    memcpy(data, buffer, size);
    fuzz_one(data, size);
    free(data);
}

static size_t run_all(const char *folder)
{
    struct dirent **files;
    int count = scandir(folder, &files, NULL, alphasort);
    size_t ran = 0;
    FUZZ_CHECK(count >= 0, "%s: %s", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, files[i]->d_name);
        if (files[i]->d_name[0] != '.') {
            run(path);
            ran++;
        }
        free(files[i]);
    }
    free(files);
    return ran;
}

int main(int argc, char **argv)
{
    size_t ran = 0;
    results = fdopen(dup(STDOUT_FILENO), "w");
    FUZZ_CHECK(results && freopen("/dev/null", "w", stdout), "%s", strerror(errno));
    for (int i = 1; i < argc; i++)
        ran += run_all(argv[i]);
    fprintf(results, "%s 1 - %zu files of the corpus\n1..1\n", ran ? "ok" : "not ok", ran);
    fclose(results);
    return ran ? 0 : 1;
}
