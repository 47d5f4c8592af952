/* Two ranks whose threads exchange messages at the same time, each on a communicator of its own. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, TURNS = 1000, LONGEST = 20000 };

static MPI_Comm worlds[THREADS];

/* Short messages, and now and then one that goes as a note. */
static void *exchange(void *place) {
    int thread = (MPI_Comm *)place - worlds;
    unsigned char *mine = malloc(LONGEST), *theirs = malloc(LONGEST);
    for (int turn = 0; turn < TURNS; turn++) {
        int length = turn % 100 ? 8 + (turn * 7 + thread) % 3000 : LONGEST;
        memset(mine, turn + thread + rank, length);
        memset(theirs, 0, length);
        MPI_Request both[2];
        MPI_Irecv(theirs, LONGEST, MPI_CHAR, 1 - rank, turn % 5, worlds[thread], &both[0]);
        MPI_Isend(mine, length, MPI_CHAR, 1 - rank, turn % 5, worlds[thread], &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        for (int at = 0; at < length; at++) CHECK(theirs[at] == (unsigned char)(turn + thread + 1 - rank));
    }
    free(mine);
    free(theirs);
    return NULL;
}

int main(int count, char **arguments) {
    alarm(60);
    int level;
    MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(WORLD, &rank);
    CHECK(level == MPI_THREAD_MULTIPLE);
    for (int thread = 0; thread < THREADS; thread++) MPI_Comm_dup(WORLD, &worlds[thread]);
    pthread_t threads[THREADS];
    for (int thread = 0; thread < THREADS; thread++)
        CHECK(pthread_create(&threads[thread], NULL, exchange, &worlds[thread]) == 0);
    for (int thread = 0; thread < THREADS; thread++) pthread_join(threads[thread], NULL);
    MPI_Barrier(WORLD);
    if (rank == 0) puts("all right");
    MPI_Finalize();
    return 0;
}
