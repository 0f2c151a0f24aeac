// SPDX-License-Identifier: MIT
// Makes a pack during the build: ffi-make MANIFEST OUTPUT.so. Users have `tenon ffi make`.
#include <stdio.h>
#include "make.h"

int main(int argc, char **argv)
{
    struct problem problem = {0};
    char id[64];
    if (argc != 3) {
        fprintf(stderr, "usage: %s MANIFEST OUTPUT\n", argv[0]);
        return 2;
    }
    if (pack_write(argv[1], argv[2], false, id, &problem)) {
        fprintf(stderr, "%s\n", problem.text);
        return 1;
    }
    return 0;
}
