/* What the cases share: two endpoints of one domain, and checks that end the program with their line. */
#define _GNU_SOURCE
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ADDRESS 16
#define INJECT 8192
#define LONGEST (1 << 20)

#define CHECK(what)                                                                                             \
    do {                                                                                                        \
        if (!(what)) {                                                                                          \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #what);                                \
            _exit(1);                                                                                           \
        }                                                                                                       \
    } while (0)

#define EXPECT(call, wanted)                                                                                    \
    do {                                                                                                        \
        long long is_ = (long long)(call), wanted_ = (long long)(wanted);                                       \
        if (is_ != wanted_) {                                                                                   \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #call, is_, wanted_);           \
            _exit(1);                                                                                           \
        }                                                                                                       \
    } while (0)

/* An endpoint with its queue, and the number of the other one. */
struct side {
    struct fid_ep *ep;
    struct fid_cq *cq;
    fi_addr_t peer;
};

struct pair {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct side a, b;
};

/* Hints for the provider. */
struct fi_info *hints_of_velo(void);
/* Fabric, domain and address vector; no endpoints. */
void open_domain(struct pair *pair, int mr_mode, uint64_t caps);
/* An endpoint with a queue of whole entries, bound with these flags beside both directions. */
void open_side(struct pair *pair, struct side *side, uint64_t bind_flags);
/* Two endpoints that know each other. */
void open_pair(struct pair *pair);
void close_side(struct side *side);
void close_pair(struct pair *pair);
fi_addr_t inserted(struct pair *pair, struct fid_ep *ep);

/* The next entry of a queue, and the next error; both wait for it. */
struct fi_cq_tagged_entry next_at(struct side *side, const char *file, int line);
struct fi_cq_err_entry next_error_at(struct side *side, const char *file, int line);
#define next(side) next_at(side, __FILE__, __LINE__)
#define next_error(side) next_error_at(side, __FILE__, __LINE__)
/* Nothing is in a queue. */
void nothing_in(struct side *side);
void fill(unsigned char *bytes, size_t length, unsigned seed);
double now(void);

void case_getinfo(void);
void case_objects(void);
void case_addresses(void);
void case_messages(void);
void case_messages_in_pieces(void);
void case_truncation(void);
void case_tagged(void);
void case_matching(void);
void case_peek(void);
void case_cancel(void);
void case_queues(void);
void case_waiting(void);
void case_selective(void);
void case_counters(void);
void case_remote(void);
void case_remote_bounds(void);
void case_remote_data(void);
void case_full(void);
void case_threads(void);
void case_processes(void);
void case_ends(void);
void case_missing(void);
void case_hardware(void);
