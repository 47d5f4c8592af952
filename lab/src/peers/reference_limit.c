/* The limit by reference: what an event builder can reach if each fragment is written once, where its builder reads it, and
 * is read once. Two processes, each on its own core, are source and builder at the same time: each writes fragments with
 * pattern and checksum into a ring that the other reads, and verifies pattern and checksum of those of the other in place. So
 * both cores do the work of the cores of a 2 x 2 event builder, and every fragment moves from one cache to the other.
 *
 *   reference_limit BYTES FRAGMENTS CORE CORE
 *
 * Prints fragments per second, of both directions. The exit status is 1 if a fragment is wrong. It is compiled with
 * the folder of fragment.h as a folder of headers, and with DUTIES. */

#define _GNU_SOURCE
#include "fragment.h"
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The number of slots of evb's builders, and the most fragments before a process changes to its other task. */
enum { PLACES = 64, TURN = 16 };

/* From one process to the other. The counters are on separate cache lines, two each because of the prefetcher of adjacent
 * lines. */
struct ring {
    _Alignas(128) atomic_ulong written;
    _Alignas(128) atomic_ulong read;
    _Alignas(128) uint64_t words[];
};

static int64_t words, stride;

static void pin(const char *core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(core), &set);
    if (sched_setaffinity(0, sizeof set, &set)) {
        perror("sched_setaffinity");
        exit(1);
    }
}

/* Writes fragments while there is room. Returns the number of the next one. */
static unsigned long fill(struct ring *ring, unsigned long next, unsigned long count, int unit) {
    unsigned long end = atomic_load_explicit(&ring->read, memory_order_acquire) + PLACES;
    end = end > count ? count : end;
    end = end > next + TURN ? next + TURN : end;
    for (; next < end; next++) {
        write_fragment(ring->words + next % PLACES * (unsigned long)stride, words, (int64_t)next, unit);
        atomic_store_explicit(&ring->written, next + 1, memory_order_release);
    }
    return next;
}

/* Verifies the available fragments. Returns the number of the next one. */
static unsigned long check(struct ring *ring, unsigned long next, int unit) {
    unsigned long end = atomic_load_explicit(&ring->written, memory_order_acquire);
    end = end > next + TURN ? next + TURN : end;
    for (; next < end; next++) {
        if (verify_fragment(ring->words + next % PLACES * (unsigned long)stride, words, (int64_t)next, unit)) {
            fprintf(stderr, "fragment %lu is wrong\n", next);
            exit(1);
        }
        atomic_store_explicit(&ring->read, next + 1, memory_order_release);
    }
    return next;
}

static void work(struct ring *rings[2], int self, unsigned long count) {
    unsigned long filled = 0, checked = 0;
    while (filled < count || checked < count) {
        filled = fill(rings[self], filled, count, self);
        checked = check(rings[1 - self], checked, 1 - self);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    words = argc == 5 ? atoll(argv[1]) / 8 : 0;
    stride = (words + SEAL_WORDS + 7) / 8 * 8;
    unsigned long count = argc == 5 ? strtoul(argv[2], NULL, 10) / 2 : 0;
    if (words < 1 || count < PLACES) {
        fprintf(stderr, "usage: reference_limit BYTES FRAGMENTS CORE CORE\n");
        return 2;
    }
    struct ring *rings[2];
    for (int index = 0; index < 2; index++) {
        size_t bytes = sizeof **rings + PLACES * (size_t)stride * 8;
        rings[index] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (rings[index] == MAP_FAILED) {
            perror("no memory");
            return 1;
        }
    }
    pid_t child = fork();
    pin(argv[child ? 4 : 3]);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it would wait for good */
        work(rings, 1, count);
        return 0;
    }
    double start = now();
    work(rings, 0, count);
    int status = 0;
    waitpid(child, &status, 0);
    printf("%.0f\n", 2.0 * (double)count / (now() - start));
    return status != 0;
}
