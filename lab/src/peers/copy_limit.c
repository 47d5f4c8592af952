/* The limit of copying: the highest rate of an event builder in shared memory that copies each fragment once in and once
 * out. One process copies fragments from its own memory into a shared ring, another copies them out into its own memory, each
 * on its own core and at the same time. They neither write nor verify the fragments, and exchange only their positions.
 *
 *   copy_limit BYTES FRAGMENTS CORE CORE
 *
 * Prints fragments per second. The exit status is 1 if the last fragment is not the one that was sent. */

#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The number of slots of evb's builders; each process uses the same number of places in its own memory. */
enum { PLACES = 64 };

/* On separate cache lines, two each because of the prefetcher of adjacent lines. */
struct ring {
    _Alignas(128) atomic_ulong written;
    _Alignas(128) atomic_ulong read;
    _Alignas(128) char bytes[];
};

static void *must(void *memory) {
    if (!memory || memory == MAP_FAILED) {
        perror("no memory");
        exit(1);
    }
    return memory;
}

static void pin(const char *core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(core), &set);
    if (sched_setaffinity(0, sizeof set, &set)) {
        perror("sched_setaffinity");
        exit(1);
    }
}

static void copy_in(struct ring *ring, char *own, size_t bytes, unsigned long count) {
    for (unsigned long number = 0; number < count; number++) {
        while (number - atomic_load_explicit(&ring->read, memory_order_acquire) == PLACES)
            ;
        char *place = own + number % PLACES * bytes;
        memcpy(place, &number, sizeof number);
        memcpy(ring->bytes + number % PLACES * bytes, place, bytes);
        atomic_store_explicit(&ring->written, number + 1, memory_order_release);
    }
}

static void copy_out(struct ring *ring, char *own, size_t bytes, unsigned long count) {
    for (unsigned long number = 0; number < count; number++) {
        while (atomic_load_explicit(&ring->written, memory_order_acquire) == number)
            ;
        memcpy(own + number % PLACES * bytes, ring->bytes + number % PLACES * bytes, bytes);
        atomic_store_explicit(&ring->read, number + 1, memory_order_release);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    size_t bytes = argc == 5 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned long count = argc == 5 ? strtoul(argv[2], NULL, 10) : 0, last;
    if (bytes < sizeof last || count < PLACES) {
        fprintf(stderr, "usage: copy_limit BYTES FRAGMENTS CORE CORE\n");
        return 2;
    }
    struct ring *ring = must(mmap(NULL, sizeof *ring + PLACES * bytes, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    pid_t child = fork();
    pin(argv[child ? 4 : 3]);
    char *own = must(calloc(PLACES, bytes));
    /* A page that was never written is the shared page of zeros, which is cheap to read. */
    memset(own, 1, PLACES * bytes);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it would wait for good */
        copy_in(ring, own, bytes, count);
        return 0;
    }
    /* The first round of the ring brings in its pages; it is full then. */
    while (atomic_load_explicit(&ring->written, memory_order_acquire) < PLACES)
        ;
    double start = now();
    copy_out(ring, own, bytes, count);
    printf("%.0f\n", (double)count / (now() - start));
    memcpy(&last, own + (count - 1) % PLACES * bytes, sizeof last);
    waitpid(child, NULL, 0);
    return last != count - 1;
}
