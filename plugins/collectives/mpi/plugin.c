// SPDX-License-Identifier: MIT
// org.tenon.mpi: collectives by an MPI library that is found when a group is opened: Open
// MPI 4 and 5, MPICH, and any with the standard ABI.
#include <string.h>
#include <tenon/plugin.h>
#include "group.h"

static const tn_collective collective = {
    .struct_size = sizeof(collective),
    .name = "mpi",
    .open = mpi_open,
    .close = mpi_close,
    .facts = mpi_facts,
    .set_deadline = mpi_set_deadline,
    .split = mpi_split,
    .start = mpi_start,
    .test = mpi_test,
    .wait = mpi_wait,
    .abort = mpi_abort,
    .shrink = mpi_shrink,
    .check = mpi_check,
};

static const void *mpi_query(const char *id)
{
    return strcmp(id, TN_IFACE_COLLECTIVE) == 0 ? &collective : NULL;
}

TN_PLUGIN("org.tenon.mpi", MPI_PLUGIN_VERSION, "Tenon", .query = mpi_query);
