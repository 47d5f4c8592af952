/* Half of the round trip of 8 B between two ranks of MPI, in nanoseconds: rounds of 50 trips for three seconds. Low quantiles are
 * those of rounds that nothing interrupted. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 20000
#define TRIPS 50
#define WORLD MPI_COMM_WORLD

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void round_of_trips(int rank) {
    char bytes[8] = {0};
    for (int trip = 0; trip < TRIPS; trip++) {
        if (rank == 0) MPI_Send(bytes, 8, MPI_BYTE, 1, 1, WORLD);
        MPI_Recv(bytes, 8, MPI_BYTE, 1 - rank, 1, WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(bytes, 8, MPI_BYTE, 0, 1, WORLD);
    }
}

int main(int count, char **arguments) {
    static double times[ROUNDS];
    int rank, rounds = 0, ends = 0;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(WORLD, &rank);
    double end = MPI_Wtime() + 3;
    while (!ends && rounds < ROUNDS) {
        double start = MPI_Wtime();
        round_of_trips(rank);
        times[rounds++] = (MPI_Wtime() - start) / (2 * TRIPS) * 1e9;
        ends = MPI_Wtime() > end;
        MPI_Bcast(&ends, 1, MPI_INT, 0, WORLD);
    }
    qsort(times, rounds, sizeof *times, compare);
    if (rank == 0) printf("%.0f ns in the fastest 1 %%, median %.0f ns\n", times[rounds / 100], times[rounds / 2]);
    MPI_Finalize();
    return 0;
}
