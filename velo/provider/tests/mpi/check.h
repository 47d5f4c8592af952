/* What the programs of the tests share: a condition that ends the job when it does not hold. */
#define _GNU_SOURCE
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(what)                                                                                             \
    do {                                                                                                        \
        if (!(what)) {                                                                                          \
            fprintf(stderr, "rank %d, line %d: not true: %s\n", rank, __LINE__, #what);                         \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                       \
        }                                                                                                       \
    } while (0)

#define WORLD MPI_COMM_WORLD

/* The rank of this process. */
static int rank;
