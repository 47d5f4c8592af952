/* Half round trips of MPI itself: blocking sends and receives between two ranks, as the usual MPI benchmarks measure
 * them. Prints size, median and minimum in ns, over batches of round trips. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *first, const void *second) {
    double a = *(const double *)first, b = *(const double *)second;
    return (a > b) - (a < b);
}

int main(int argc, char **argv) {
    int rank, batches = argc > 1 ? atoi(argv[1]) : 50;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *times = malloc(sizeof *times * (size_t)batches);
    for (int at = 2; at < argc; at++) {
        int size = atoi(argv[at]), trips = size > 10000 ? 100 : 1000;
        char *bytes = calloc((size_t)size, 1);
        for (int batch = -2; batch < batches; batch++) { /* the first two warm up */
            MPI_Barrier(MPI_COMM_WORLD);
            double start = MPI_Wtime();
            for (int trip = 0; trip < trips; trip++) {
                if (rank == 0) {
                    MPI_Send(bytes, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
                    MPI_Recv(bytes, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                } else {
                    MPI_Recv(bytes, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    MPI_Send(bytes, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
                }
            }
            if (batch >= 0)
                times[batch] = (MPI_Wtime() - start) / trips / 2 * 1e9;
        }
        qsort(times, (size_t)batches, sizeof *times, compare);
        if (rank == 0)
            printf("%d %.1f %.1f\n", size, times[batches / 2], times[0]);
        free(bytes);
    }
    free(times);
    MPI_Finalize();
    return 0;
}
