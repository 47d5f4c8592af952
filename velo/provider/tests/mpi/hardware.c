/* Ranks of an MPI program over simulated hardware, two unless a part says so: each part checks what it gets. The argument chooses
 * the parts. */
#include "check.h"

/* The longest message. */
#define MOST 8192
/* Messages of one rank under way at once. */
#define CROWD 300

static int other;
static unsigned char out[MOST], in[MOST + 1];

/* The byte at `index` of message `number` of a rank. */
static unsigned char value(int from, int number, int index) {
    return (unsigned char)(from * 97 + number * 31 + index * 7 + (index >> 8));
}

static void fill(unsigned char *place, int number, int length) {
    for (int index = 0; index < length; index++) place[index] = value(rank, number, index);
}

static int is_from_other(const unsigned char *place, int number, int length) {
    for (int index = 0; index < length; index++)
        if (place[index] != value(other, number, index)) return 0;
    return 1;
}

/* The segment of the hardware is mapped, and that of no device in shared memory. */
static void is_over_the_hardware(void) {
    char line[4096];
    int rack = 0, device = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        rack |= strstr(line, "memfd:evbvelo-rack") != NULL;
        device |= strstr(line, "memfd:evbvelo ") != NULL;
    }
    fclose(maps);
    CHECK(rack && !device);
}

static void send_one(int number, int length, int tag) {
    fill(out, number, length);
    MPI_Send(out, length, MPI_BYTE, other, tag, WORLD);
}

static void receive_one(int number, int length, int from, int tag, int expected_tag) {
    MPI_Status status;
    int count;
    memset(in, 0xee, sizeof in);
    MPI_Recv(in, sizeof in, MPI_BYTE, from, tag, WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == length && status.MPI_SOURCE == other && status.MPI_TAG == expected_tag);
    CHECK(is_from_other(in, number, length) && in[length] == 0xee);
}

static void ping_pong(void) {
    static const int lengths[] = {0, 1, 7, 8, 9, 39, 40, 41, 63, 64, 65, 104, 105, 1000, 4096, MOST - 1, MOST};
    for (int number = 0; number < (int)(sizeof lengths / sizeof *lengths); number++) {
        int length = lengths[number], first = number % 2;
        if (rank == first) send_one(number, length, number);
        receive_one(number, length, number % 3 ? other : MPI_ANY_SOURCE, number % 5 ? number : MPI_ANY_TAG, number);
        if (rank != first) send_one(number, length, number);
    }
}

/* Messages are taken by tag in another order than they were sent, and by probe. */
static void tags(void) {
    for (int tag = 0; tag < 20; tag++) send_one(tag, 10 * tag, tag);
    for (int tag = 19; tag >= 10; tag--) receive_one(tag, 10 * tag, MPI_ANY_SOURCE, tag, tag);
    for (int tag = 0; tag < 10; tag++) {
        MPI_Status status;
        int count, there = 0;
        if (tag % 2) MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &status);
        else while (!there) MPI_Iprobe(other, tag, WORLD, &there, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(status.MPI_TAG == tag && count == 10 * tag);
        receive_one(tag, 10 * tag, other, MPI_ANY_TAG, tag);
    }
    fill(out, 5, 100);
    if (rank == 0) MPI_Ssend(out, 100, MPI_BYTE, other, 5, WORLD);
    else receive_one(5, 100, other, 5, 5);
}

/* More messages than mailbox and queue of a node hold, in both directions at once. */
static void crowd(void) {
    static unsigned char to[CROWD][500], from[CROWD][500];
    static MPI_Request requests[2 * CROWD];
    for (int number = 0; number < CROWD; number++) {
        fill(to[number], number, 500);
        MPI_Isend(to[number], 500, MPI_BYTE, other, 9, WORLD, &requests[number]);
    }
    for (int number = 0; number < CROWD; number++)
        MPI_Irecv(from[number], 500, MPI_BYTE, MPI_ANY_SOURCE, 9, WORLD, &requests[CROWD + number]);
    MPI_Waitall(2 * CROWD, requests, MPI_STATUSES_IGNORE);
    for (int number = 0; number < CROWD; number++) CHECK(is_from_other(from[number], number, 500));
}

static void collectives(void) {
    for (int turn = 0; turn < 10; turn++) {
        int numbers[64], sums[64], all[128];
        MPI_Barrier(WORLD);
        for (int index = 0; index < 64; index++) numbers[index] = index * (rank + 1) + turn;
        MPI_Allreduce(numbers, sums, 64, MPI_INT, MPI_SUM, WORLD);
        for (int index = 0; index < 64; index++) CHECK(sums[index] == 3 * index + 2 * turn);
        MPI_Allgather(numbers, 64, MPI_INT, all, 64, MPI_INT, WORLD);
        for (int index = 0; index < 128; index++) CHECK(all[index] == index % 64 * (index / 64 + 1) + turn);
        MPI_Bcast(numbers, 64, MPI_INT, turn % 2, WORLD);
        for (int index = 0; index < 64; index++) CHECK(numbers[index] == index * (turn % 2 + 1) + turn);
    }
}

/* Any number of ranks, each with all others. */
static void together(void) {
    int ranks, to[16 * 16], from[16 * 16], sum;
    MPI_Comm_size(WORLD, &ranks);
    CHECK(ranks <= 16);
    for (int turn = 0; turn < 50; turn++) {
        for (int index = 0; index < 16 * ranks; index++) to[index] = rank * 10000 + index / 16 * 100 + index % 16 + turn;
        MPI_Alltoall(to, 16, MPI_INT, from, 16, MPI_INT, WORLD);
        for (int index = 0; index < 16 * ranks; index++)
            CHECK(from[index] == index / 16 * 10000 + rank * 100 + index % 16 + turn);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, WORLD);
        CHECK(sum == ranks * (ranks - 1) / 2);
    }
}

/* A rank sends to itself: that stays in its process. */
static void own(void) {
    MPI_Request request;
    int number = 17 + rank, got = 0;
    MPI_Irecv(&got, 1, MPI_INT, rank, 3, WORLD, &request);
    MPI_Send(&number, 1, MPI_INT, rank, 3, WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(got == number);
}

/* A message that is too long is an error of the call, and the next one arrives. */
static void too_long(void) {
    static unsigned char bytes[MOST + 1];
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) CHECK(MPI_Send(bytes, sizeof bytes, MPI_BYTE, other, 1, WORLD) != MPI_SUCCESS);
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_ARE_FATAL);
    if (rank == 0) send_one(1, MOST, 2);
    else receive_one(1, MOST, other, MPI_ANY_TAG, 2);
}

/* So many round trips of 8 B and nothing else: the cycles of two runs tell those of one trip. */
static void trips(int count) {
    for (int trip = 0; trip < count; trip++) {
        if (rank == 0) send_one(trip, 8, 1);
        receive_one(trip, 8, other, 1, 1);
        if (rank == 1) send_one(trip, 8, 1);
    }
}

/* Waits for a message that never comes. */
static void waits(void) {
    if (rank == 0) puts("both wait"), fflush(stdout);
    receive_one(1, 1, other, 77, 77);
}

int main(int count, char **arguments) {
    const char *part = count > 1 ? arguments[1] : "all";
    alarm(60);
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(WORLD, &rank);
    other = 1 - rank;
    is_over_the_hardware();
    if (strcmp(part, "all") == 0) {
        ping_pong(), tags(), collectives(), crowd(), own(), ping_pong();
    } else if (strcmp(part, "long") == 0) {
        too_long();
    } else if (strcmp(part, "together") == 0) {
        together();
    } else if (strcmp(part, "trips") == 0) {
        trips(atoi(arguments[2]));
    } else if (strcmp(part, "waits") == 0) {
        MPI_Barrier(WORLD);
        waits();
    } else if (strcmp(part, "dies") == 0) {
        MPI_Barrier(WORLD);
        if (rank == 1) kill(getpid(), SIGKILL);
        waits();
    }
    MPI_Barrier(WORLD);
    if (rank == 0) puts("all right");
    MPI_Finalize();
    return 0;
}
