/* Millions of messages per second that rank 0 receives from all other ranks at once, by size. */
#include <mpi.h>
#include <stdio.h>

#define WORLD MPI_COMM_WORLD
#define MOST_BYTES 8192

static const int SIZES[] = {8, 64, 1024, MOST_BYTES}, MESSAGES[] = {1000000, 1000000, 1000000, 200000};

int main(int count, char **arguments) {
    static char bytes[MOST_BYTES];
    int rank, ranks;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &ranks);
    for (int turn = 0; turn < 4; turn++) {
        long messages = MESSAGES[turn], all = messages * (ranks - 1);
        MPI_Barrier(WORLD);
        double start = MPI_Wtime();
        for (long number = 0; number < (rank == 0 ? all : messages); number++) {
            if (rank == 0) MPI_Recv(bytes, SIZES[turn], MPI_BYTE, MPI_ANY_SOURCE, 1, WORLD, MPI_STATUS_IGNORE);
            if (rank != 0) MPI_Send(bytes, SIZES[turn], MPI_BYTE, 0, 1, WORLD);
        }
        if (rank == 0) printf("%d B: %.2f M/s\n", SIZES[turn], all / (MPI_Wtime() - start) / 1e6);
    }
    MPI_Finalize();
    return 0;
}
