/* Ranks of an MPI program over VELO: each part checks what it gets. With an argument, the last rank kills itself. */
#include "check.h"

/* More than a mailbox has slots. */
#define FLOOD 6000

static int ranks;

/* The value of element `index` of what `from` sends to `to`. */
static int value(int from, int to, int index) { return from * 1000003 + to * 10007 + index * 31; }

static int *room(size_t count) {
    int *place = malloc((count ? count : 1) * sizeof *place);
    CHECK(place != NULL);
    return place;
}

/* A segment of a device is mapped: the messages go through the provider. */
static void is_over_velo(void) {
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps)) found |= strstr(line, "memfd:evbvelo") != NULL;
    fclose(maps);
    CHECK(found);
}

static void ring(void) {
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks, token = 0;
    for (int turn = 0; turn < 1000; turn++) {
        if (rank == 0) MPI_Send(&token, 1, MPI_INT, right, turn, WORLD);
        MPI_Recv(&token, 1, MPI_INT, left, turn, WORLD, MPI_STATUS_IGNORE);
        CHECK(token == (rank ? turn * ranks + rank - 1 : (turn + 1) * ranks - 1));
        token++;
        if (rank) MPI_Send(&token, 1, MPI_INT, right, turn, WORLD);
    }
}

static void all_to_all(int count) {
    int *out = room((size_t)count * ranks), *in = room((size_t)count * ranks);
    for (int to = 0; to < ranks; to++)
        for (int index = 0; index < count; index++) out[to * count + index] = value(rank, to, index);
    MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, WORLD);
    for (int from = 0; from < ranks; from++)
        for (int index = 0; index < count; index++) CHECK(in[from * count + index] == value(from, rank, index));
    free(out), free(in);
}

static void reductions(int count) {
    int *out = room(count), *in = room(count), *all = room((size_t)count * ranks);
    for (int index = 0; index < count; index++) out[index] = index + rank;
    MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, WORLD);
    for (int index = 0; index < count; index++) CHECK(in[index] == index * ranks + ranks * (ranks - 1) / 2);
    MPI_Allgather(out, count, MPI_INT, all, count, MPI_INT, WORLD);
    for (int index = 0; index < count * ranks; index++) CHECK(all[index] == index % count + index / count);
    MPI_Bcast(out, count, MPI_INT, ranks - 1, WORLD);
    for (int index = 0; index < count; index++) CHECK(out[index] == index + ranks - 1);
    free(out), free(in), free(all);
}

/* Messages of lengths and tags that the receiver finds out: the first rank from all others. Open MPI 4.1 tells the sender
 * of a synchronous message nothing if it was matched by `MPI_Mprobe`, over any libfabric, so these two are not mixed. */
static void probes(int synchronous) {
    const int turns = 60;
    if (rank > 0) {
        for (int turn = 0; turn < turns; turn++) {
            int count = turn * turn, *out = room(count);
            for (int index = 0; index < count; index++) out[index] = value(rank, turn, index);
            if (synchronous) MPI_Ssend(out, count, MPI_INT, 0, turn, WORLD);
            else MPI_Send(out, count, MPI_INT, 0, turn, WORLD);
            free(out);
        }
        return;
    }
    for (int message = 0; message < turns * (ranks - 1); message++) {
        MPI_Status status;
        MPI_Message found = MPI_MESSAGE_NULL;
        int count, there = 0;
        switch (message % (synchronous ? 2 : 3)) {
            case 0: MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &status); break;
            case 1: while (!there) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &there, &status); break;
            case 2: MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &found, &status); break;
        }
        MPI_Get_count(&status, MPI_INT, &count);
        int from = status.MPI_SOURCE, tag = status.MPI_TAG, *in = room(count);
        CHECK(from > 0 && count == tag * tag);
        if (found != MPI_MESSAGE_NULL) MPI_Mrecv(in, count, MPI_INT, &found, &status);
        else MPI_Recv(in, count, MPI_INT, from, tag, WORLD, &status);
        for (int index = 0; index < count; index++) CHECK(in[index] == value(from, tag, index));
        free(in);
    }
}

/* Everybody sends to everybody at once, long messages and short ones, whole and in strides. */
static void large(int count) {
    MPI_Request requests[64];
    MPI_Datatype odd;
    int *out = room(count), *in = room((size_t)count * ranks), used = 0;
    MPI_Type_vector(count / 2, 1, 2, MPI_INT, &odd);
    MPI_Type_commit(&odd);
    for (int index = 0; index < count; index++) out[index] = value(rank, 0, index);
    memset(in, 0, sizeof *in * count * ranks);
    for (int from = 0; from < ranks; from++) {
        if (from != rank && from % 2) MPI_Irecv(in + (size_t)from * count, 1, odd, from, 1, WORLD, &requests[used++]);
        else if (from != rank) MPI_Irecv(in + (size_t)from * count, count, MPI_INT, from, 1, WORLD, &requests[used++]);
    }
    for (int to = 0; to < ranks; to++) {
        if (to != rank && rank % 2) MPI_Isend(out, 1, odd, to, 1, WORLD, &requests[used++]);
        else if (to != rank) MPI_Isend(out, count, MPI_INT, to, 1, WORLD, &requests[used++]);
    }
    MPI_Waitall(used, requests, MPI_STATUSES_IGNORE);
    for (int from = 0; from < ranks; from++)
        for (int index = 0; from != rank && index < count; index += from % 2 ? 2 : 1)
            CHECK(in[(size_t)from * count + index] == value(from, 0, index));
    MPI_Type_free(&odd);
    free(out), free(in);
}

/* More messages than a mailbox has slots, before anybody receives, in order; and a receive that is cancelled. */
static void flood(void) {
    MPI_Status status;
    MPI_Request request;
    int cancelled, never, number;
    MPI_Irecv(&never, 1, MPI_INT, (rank + 1) % ranks, 12345, WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled);
    for (int turn = 0; rank > 0 && turn < FLOOD; turn++) MPI_Send(&turn, 1, MPI_INT, 0, 7, WORLD);
    for (int from = 1; rank == 0 && from < ranks; from++) {
        for (int turn = 0; turn < FLOOD; turn++) {
            MPI_Recv(&number, 1, MPI_INT, from, 7, WORLD, MPI_STATUS_IGNORE);
            CHECK(number == turn);
        }
    }
}

/* The last rank ends without a word, while messages are under way to it, and the others wait for it. */
static void dies(void) {
    static int bytes[1 << 20];
    MPI_Request request;
    if (rank == ranks - 1) {
        MPI_Probe(0, 1, WORLD, MPI_STATUS_IGNORE);
        kill(getpid(), SIGKILL);
    }
    MPI_Isend(bytes, 1 << 20, MPI_INT, ranks - 1, 1, WORLD, &request);
    MPI_Recv(bytes, 1, MPI_INT, ranks - 1, 2, WORLD, MPI_STATUS_IGNORE);
}

int main(int count, char **arguments) {
    alarm(60);
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &ranks);
    ring();
    is_over_velo();
    if (count > 1) dies();
    for (int size = 1; size <= 100000; size *= 10) all_to_all(size), reductions(size);
    probes(0);
    MPI_Barrier(WORLD);
    probes(1);
    MPI_Barrier(WORLD);
    for (int size = 2; size <= 1 << 21; size *= 32) large(size);
    large(1 << 21);
    flood();
    MPI_Barrier(WORLD);
    if (rank == 0) puts("all right");
    MPI_Finalize();
    return 0;
}
