// SPDX-License-Identifier: MIT
// Tells the version of the OpenBLAS that a process would open by a name: teller NAME
#include <stdio.h>
#include "openblas/version.h"

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    printf("%x\n", (unsigned)blas_version_find(argv[1]));
    return 0;
}
