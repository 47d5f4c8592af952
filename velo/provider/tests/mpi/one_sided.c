/* One-sided MPI between two ranks. Open MPI 4.1 makes it of messages, if it may not use shared memory of its own. */
#include "check.h"

enum { WORDS = 1 << 16, ADDITIONS = 200 };

static int window[WORDS], words[WORDS];

int main(int count, char **arguments) {
    alarm(60);
    setenv("OMPI_MCA_osc", "pt2pt", 1);
    setenv("OMPI_MCA_btl", "self", 1);
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Win win;
    MPI_Win_create(window, sizeof window, sizeof *window, MPI_INFO_NULL, WORLD, &win);
    for (int at = 0; at < WORDS; at++) words[at] = at * (rank + 1);
    MPI_Win_fence(0, win);
    MPI_Put(words, WORDS, MPI_INT, 1 - rank, 0, WORDS, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int at = 0; at < WORDS; at++) CHECK(window[at] == at * (2 - rank));
    memset(words, 0, sizeof words);
    MPI_Win_fence(0, win);
    MPI_Get(words, WORDS, MPI_INT, 1 - rank, 0, WORDS, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int at = 0; at < WORDS; at++) CHECK(words[at] == at * (rank + 1));
    memset(window, 0, sizeof window);
    MPI_Barrier(WORLD);
    MPI_Win_lock_all(0, win);
    for (int addition = 0; addition < ADDITIONS; addition++) {
        int one = 1, before;
        MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 0, MPI_SUM, win);
        MPI_Win_flush(0, win);
        CHECK(before >= addition && before < 2 * ADDITIONS);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(WORLD);
    if (rank == 0) {
        CHECK(window[0] == 2 * ADDITIONS);
        puts("all right");
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
