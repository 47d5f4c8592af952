/* The MPI calls that evb needs, behind types that are the same for every MPI.
 *
 * Each MPI has its own types and constants, so a binary fits one MPI only. This file is compiled by the mpicc of the MPI that
 * is there and opened at run time. Requests and communicators cross as 64-bit numbers without a meaning outside.
 *
 * Calls must not overlap: either one thread makes them all, or the caller holds a lock, and MPI is told which. An error of
 * MPI ends the job: that is the default of MPI, and nothing here changes it. */

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the longest frame of evb, by measurement: of 4, 8 and 16 KiB, MPICH builds most events with 8 and fewest with 16.
 * Open MPI is told to send a frame at once, without asking the receiver; what it is told includes its header. */
#ifdef OPEN_MPI
enum { FRAME_BYTES = (16 << 10) + 64 };
#define EAGER_BYTES "16640"
#else
enum { FRAME_BYTES = (8 << 10) - 64 };
#endif

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a request fits 64 bits");
_Static_assert(sizeof(MPI_Comm) <= sizeof(uint64_t), "a communicator fits 64 bits");

static uint64_t pack_request(MPI_Request request) {
    uint64_t packed = 0;
    memcpy(&packed, &request, sizeof request);
    return packed;
}

static MPI_Request request_of(uint64_t packed) {
    MPI_Request request;
    memcpy(&request, &packed, sizeof request);
    return request;
}

static uint64_t pack_comm(MPI_Comm comm) {
    uint64_t packed = 0;
    memcpy(&packed, &comm, sizeof comm);
    return packed;
}

static MPI_Comm comm_of(uint64_t packed) {
    MPI_Comm comm;
    memcpy(&comm, &packed, sizeof comm);
    return comm;
}

/* `threads` is 0 if one thread at a time makes calls, and 1 if any thread does, with a lock around each call. Gives 0, or 1
 * if MPI was started or ended before, or 2 if it does not bear this. */
int32_t evb_mpi_init(int32_t threads, int32_t *rank, int32_t *size, int32_t *most_tag, int32_t *frame) {
    int wanted = threads ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE;
    int started = 0, provided = 0, is_set = 0, value = 0;
    int *limit = NULL;
    MPI_Initialized(&started);
    if (started)
        return 1;
    /* With more processes than cores, Open MPI gives the core away in each call that finds nothing, also when there is other
     * work to do. The caller knows better when it has nothing to do. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 0);
#ifdef OPEN_MPI
    /* By default it asks the receiver before it sends more than 4096 bytes. The name is that of version 4, then that of 5. */
    setenv("OMPI_MCA_btl_vader_eager_limit", EAGER_BYTES, 0);
    setenv("OMPI_MCA_btl_sm_eager_limit", EAGER_BYTES, 0);
#endif
    MPI_Init_thread(NULL, NULL, wanted, &provided);
    if (provided < wanted)
        return 2;
    MPI_Comm_rank(MPI_COMM_WORLD, &value);
    *rank = value;
    MPI_Comm_size(MPI_COMM_WORLD, &value);
    *size = value;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &is_set);
    *frame = FRAME_BYTES;
    *most_tag = is_set ? *limit : 32767; /* what the standard guarantees */
    return 0;
}

/* The name of the MPI, in at most `room` bytes with the final 0. */
void evb_mpi_version(char *text, int32_t room) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    strncpy(text, version, (size_t)room - 1);
    text[room - 1] = 0;
}

void evb_mpi_finalize(void) {
    MPI_Finalize();
}

void evb_mpi_abort(int32_t status) {
    MPI_Abort(MPI_COMM_WORLD, status);
}

/* A communicator of all ranks in which no message of another one is seen. All ranks call it together. */
uint64_t evb_mpi_duplicate(void) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    return pack_comm(comm);
}

/* A communicator of some ranks of the world, in this order; exactly these call it together. */
uint64_t evb_mpi_subset(const int32_t *ranks, int32_t count, int32_t tag) {
    MPI_Group world, some;
    MPI_Comm comm;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, count, (const int *)ranks, &some);
    MPI_Comm_create_group(MPI_COMM_WORLD, some, tag, &comm);
    MPI_Group_free(&some);
    MPI_Group_free(&world);
    return pack_comm(comm);
}

/* Returns when all ranks have called it. */
void evb_mpi_barrier(void) {
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Lets MPI work: any call that looks for something does. */
void evb_mpi_progress(void) {
    int there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
}

/* Bytes of rank 0 to all ranks, which call it together. It blocks. */
void evb_mpi_share(void *bytes, int32_t length) {
    MPI_Bcast(bytes, length, MPI_BYTE, 0, MPI_COMM_WORLD);
}

/* Starts to send. 1 if the bytes are needed no more, else 0 and `request` is active. */
int32_t evb_mpi_send(const void *bytes, int32_t length, int32_t rank, int32_t tag, uint64_t comm, uint64_t *request) {
    MPI_Request started;
    int done = 0;
    MPI_Isend(bytes, length, MPI_BYTE, rank, tag, comm_of(comm), &started);
    MPI_Test(&started, &done, MPI_STATUS_IGNORE);
    *request = pack_request(started);
    return done;
}

/* Starts to receive, from any rank or with any tag if it is negative. */
uint64_t evb_mpi_receive(void *bytes, int32_t length, int32_t rank, int32_t tag, uint64_t comm) {
    MPI_Request started;
    MPI_Irecv(bytes, length, MPI_BYTE, rank < 0 ? MPI_ANY_SOURCE : rank, tag < 0 ? MPI_ANY_TAG : tag, comm_of(comm),
              &started);
    return pack_request(started);
}

/* Starts to take part in a broadcast of the first rank of `comm`. */
uint64_t evb_mpi_broadcast(void *bytes, int32_t length, uint64_t comm) {
    MPI_Request started;
    MPI_Ibcast(bytes, length, MPI_BYTE, 0, comm_of(comm), &started);
    return pack_request(started);
}

/* What a receive has received. */
struct evb_mpi_status {
    int32_t length, rank, tag;
};

/* 1 if the request is over; then `received` is set. */
int32_t evb_mpi_test(uint64_t *request, struct evb_mpi_status *received) {
    MPI_Request active = request_of(*request);
    MPI_Status status;
    int done = 0, count = 0;
    MPI_Test(&active, &done, &status);
    if (!done)
        return 0;
    *request = pack_request(active);
    MPI_Get_count(&status, MPI_BYTE, &count);
    received->length = count;
    received->rank = status.MPI_SOURCE;
    received->tag = status.MPI_TAG;
    return 1;
}

/* Wants an active receive to end without a message. It is over when a test says so. */
void evb_mpi_cancel(uint64_t *request) {
    MPI_Request active = request_of(*request);
    MPI_Cancel(&active);
    *request = pack_request(active);
}
