/* What the provider does not have says so. */
#include "common.h"

#define MISSING(call) EXPECT(call, -FI_ENOSYS)

static void atomics(struct fid_ep *ep) {
    uint64_t a = 0, b = 0, c = 0;
    size_t count = 0;
    struct fi_ioc ioc = {&a, 1};
    struct fi_msg_atomic msg = {.msg_iov = &ioc, .iov_count = 1};
    const enum fi_datatype type = FI_UINT64;
    MISSING(fi_atomic(ep, &a, 1, NULL, 0, 0, 0, type, FI_SUM, NULL));
    MISSING(fi_atomicv(ep, &ioc, NULL, 1, 0, 0, 0, type, FI_SUM, NULL));
    MISSING(fi_atomicmsg(ep, &msg, 0));
    MISSING(fi_inject_atomic(ep, &a, 1, 0, 0, 0, type, FI_SUM));
    MISSING(fi_fetch_atomic(ep, &a, 1, NULL, &b, NULL, 0, 0, 0, type, FI_SUM, NULL));
    MISSING(fi_fetch_atomicv(ep, &ioc, NULL, 1, &ioc, NULL, 1, 0, 0, 0, type, FI_SUM, NULL));
    MISSING(fi_fetch_atomicmsg(ep, &msg, &ioc, NULL, 1, 0));
    MISSING(fi_compare_atomic(ep, &a, 1, NULL, &b, NULL, &c, NULL, 0, 0, 0, type, FI_CSWAP, NULL));
    MISSING(fi_compare_atomicv(ep, &ioc, NULL, 1, &ioc, NULL, 1, &ioc, NULL, 1, 0, 0, 0, type, FI_CSWAP, NULL));
    MISSING(fi_compare_atomicmsg(ep, &msg, &ioc, NULL, 1, &ioc, NULL, 1, 0));
    MISSING(fi_atomicvalid(ep, type, FI_SUM, &count));
    MISSING(fi_fetch_atomicvalid(ep, type, FI_SUM, &count));
    MISSING(fi_compare_atomicvalid(ep, type, FI_CSWAP, &count));
}

static void collectives(struct pair *pair) {
    uint64_t a = 0, b = 0;
    struct fid_ep *ep = pair->a.ep;
    struct fid_mc *group;
    struct fid_av_set *set;
    struct fi_av_set_attr set_attributes = {0};
    struct fi_collective_attr attributes = {0};
    const enum fi_datatype type = FI_UINT64;
    MISSING(fi_av_set(pair->av, &set_attributes, &set, NULL));
    MISSING(fi_query_collective(pair->domain, FI_BARRIER, &attributes, 0));
    MISSING(fi_join(ep, "x", 0, &group, NULL));
    MISSING(fi_barrier(ep, 0, NULL));
    MISSING(fi_barrier2(ep, 0, 0, NULL));
    MISSING(fi_broadcast(ep, &a, 1, NULL, 0, 0, type, 0, NULL));
    MISSING(fi_alltoall(ep, &a, 1, NULL, &b, NULL, 0, type, 0, NULL));
    MISSING(fi_allreduce(ep, &a, 1, NULL, &b, NULL, 0, type, FI_SUM, 0, NULL));
    MISSING(fi_allgather(ep, &a, 1, NULL, &b, NULL, 0, type, 0, NULL));
    MISSING(fi_reduce_scatter(ep, &a, 1, NULL, &b, NULL, 0, type, FI_SUM, 0, NULL));
    MISSING(fi_reduce(ep, &a, 1, NULL, &b, NULL, 0, 0, type, FI_SUM, 0, NULL));
    MISSING(fi_scatter(ep, &a, 1, NULL, &b, NULL, 0, 0, type, 0, NULL));
    MISSING(fi_gather(ep, &a, 1, NULL, &b, NULL, 0, 0, type, 0, NULL));
}

static void connections(struct pair *pair) {
    struct fid_ep *ep = pair->a.ep;
    struct fid_pep *passive;
    char address[ADDRESS];
    size_t length = sizeof address;
    MISSING(fi_passive_ep(pair->fabric, pair->info, &passive, NULL));
    MISSING(fi_setname(&ep->fid, address, length));
    MISSING(fi_getpeer(ep, address, &length));
    MISSING(fi_connect(ep, address, NULL, 0));
    MISSING(fi_accept(ep, NULL, 0));
    MISSING(fi_shutdown(ep, 0));
}

void case_missing(void) {
    struct pair pair = {0};
    open_pair(&pair);
    struct fid_ep *other, *ep = pair.a.ep;
    struct fid_stx *stx;
    struct fid_poll *poll;
    struct fid_wait *wait;
    struct fi_poll_attr poll_attributes = {0};
    struct fi_wait_attr wait_attributes = {.wait_obj = FI_WAIT_FD};
    struct fi_atomic_attr atomic_attributes = {0};
    size_t length = sizeof length;
    void *ops;
    MISSING(fi_scalable_ep(pair.domain, pair.info, &other, NULL));
    MISSING(fi_stx_context(pair.domain, NULL, &stx, NULL));
    MISSING(fi_srx_context(pair.domain, NULL, &other, NULL));
    MISSING(fi_tx_context(ep, 0, NULL, &other, NULL));
    MISSING(fi_rx_context(ep, 0, NULL, &other, NULL));
    MISSING(fi_poll_open(pair.domain, &poll_attributes, &poll));
    MISSING(fi_wait_open(pair.fabric, &wait_attributes, &wait));
    MISSING(fi_query_atomic(pair.domain, FI_UINT64, FI_SUM, &atomic_attributes, 0));
    MISSING(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &length, &length));
    MISSING(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &length, sizeof length));
    MISSING(fi_rx_size_left(ep));
    MISSING(fi_tx_size_left(ep));
    MISSING(fi_open_ops(&pair.domain->fid, "x", 0, &ops, NULL));
    MISSING(fi_ep_alias(ep, &other, 0));
    MISSING(fi_control(&pair.a.cq->fid, FI_GETWAIT, &length));
    atomics(ep);
    collectives(&pair);
    connections(&pair);
    close_pair(&pair);
}
