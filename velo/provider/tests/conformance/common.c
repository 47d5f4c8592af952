/* Endpoints, and waiting for what they report. */
#include "common.h"

double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

void fill(unsigned char *bytes, size_t length, unsigned seed) {
    for (size_t at = 0; at < length; at++) bytes[at] = (unsigned char)(seed + at * 7 + (at >> 8));
}

struct fi_info *hints_of_velo(void) {
    struct fi_info *hints = fi_allocinfo();
    CHECK(hints != NULL);
    hints->fabric_attr->prov_name = strdup("velo");
    hints->ep_attr->type = FI_EP_RDM;
    return hints;
}

void open_domain(struct pair *pair, int mr_mode, uint64_t caps) {
    struct fi_info *hints = hints_of_velo();
    hints->domain_attr->mr_mode = mr_mode;
    hints->caps = caps;
    EXPECT(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &pair->info), 0);
    fi_freeinfo(hints);
    EXPECT(fi_fabric(pair->info->fabric_attr, &pair->fabric, NULL), 0);
    EXPECT(fi_domain(pair->fabric, pair->info, &pair->domain, NULL), 0);
    struct fi_av_attr attributes = {.type = FI_AV_TABLE};
    EXPECT(fi_av_open(pair->domain, &attributes, &pair->av, NULL), 0);
}

void open_side(struct pair *pair, struct side *side, uint64_t bind_flags) {
    struct fi_cq_attr attributes = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
    EXPECT(fi_endpoint(pair->domain, pair->info, &side->ep, side), 0);
    CHECK(side->ep->fid.context == side);
    EXPECT(fi_cq_open(pair->domain, &attributes, &side->cq, NULL), 0);
    EXPECT(fi_ep_bind(side->ep, &pair->av->fid, 0), 0);
    EXPECT(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV | bind_flags), 0);
    EXPECT(fi_enable(side->ep), 0);
}

fi_addr_t inserted(struct pair *pair, struct fid_ep *ep) {
    char address[ADDRESS];
    size_t length = sizeof address;
    fi_addr_t number = FI_ADDR_UNSPEC;
    EXPECT(fi_getname(&ep->fid, address, &length), 0);
    EXPECT(length, ADDRESS);
    EXPECT(fi_av_insert(pair->av, address, 1, &number, 0, NULL), 1);
    return number;
}

void open_pair(struct pair *pair) {
    open_domain(pair, 0, 0);
    open_side(pair, &pair->a, 0);
    open_side(pair, &pair->b, 0);
    pair->b.peer = inserted(pair, pair->a.ep);
    pair->a.peer = inserted(pair, pair->b.ep);
}

void close_side(struct side *side) {
    EXPECT(fi_close(&side->ep->fid), 0);
    EXPECT(fi_close(&side->cq->fid), 0);
}

void close_pair(struct pair *pair) {
    if (pair->a.ep) close_side(&pair->a);
    if (pair->b.ep) close_side(&pair->b);
    EXPECT(fi_close(&pair->av->fid), 0);
    EXPECT(fi_close(&pair->domain->fid), 0);
    EXPECT(fi_close(&pair->fabric->fid), 0);
    fi_freeinfo(pair->info);
}

/* Waits for something in a queue. */
static void reported(ssize_t found, ssize_t wanted, const char *file, int line) {
    if (found == wanted) return;
    fprintf(stderr, "%s:%d: the queue answers %zd, not %zd\n", file, line, found, wanted);
    _exit(1);
}

struct fi_cq_tagged_entry next_at(struct side *side, const char *file, int line) {
    struct fi_cq_tagged_entry entry;
    reported(fi_cq_sread(side->cq, &entry, 1, NULL, 10000), 1, file, line);
    return entry;
}

struct fi_cq_err_entry next_error_at(struct side *side, const char *file, int line) {
    struct fi_cq_err_entry error = {0};
    struct fi_cq_tagged_entry entry;
    reported(fi_cq_sread(side->cq, &entry, 1, NULL, 10000), -FI_EAVAIL, file, line);
    EXPECT(fi_cq_readerr(side->cq, &error, 0), 1);
    return error;
}

void nothing_in(struct side *side) {
    struct fi_cq_tagged_entry entry;
    for (int turn = 0; turn < 10; turn++) EXPECT(fi_cq_read(side->cq, &entry, 1), -FI_EAGAIN);
}
