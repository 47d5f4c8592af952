/* Reads and writes of lent memory. */
#include "common.h"

#define BOTH (FI_REMOTE_READ | FI_REMOTE_WRITE)

static unsigned char own[LONGEST], lent[LONGEST];

static void written(struct side *side, size_t length) {
    struct fi_cq_tagged_entry entry = next(side);
    CHECK(entry.flags == (FI_RMA | FI_WRITE) && entry.op_context == own);
    CHECK(memcmp(own, lent + 8, length) == 0);
    memset(lent, 0, sizeof lent);
}

static void read_back(struct side *side, size_t length) {
    struct fi_cq_tagged_entry entry = next(side);
    CHECK(entry.flags == (FI_RMA | FI_READ) && entry.op_context == own);
    CHECK(memcmp(own, lent + 8, length) == 0);
    memset(own, 0, sizeof own);
}

/* Every call, in the mode in which `base` is the place of the memory. */
static void all(struct pair *pair, size_t length, uint64_t base, uint64_t key) {
    struct side *a = &pair->a;
    uint64_t place = base + 8;
    struct iovec pieces[] = {{own, length / 2}, {own + length / 2, length - length / 2}};
    struct fi_rma_iov target = {place, length, key};
    struct fi_msg_rma msg = {.msg_iov = pieces, .iov_count = 2, .addr = a->peer, .rma_iov = &target, .rma_iov_count = 1, .context = own};
    fill(own, length, 1);
    EXPECT(fi_write(a->ep, own, length, NULL, a->peer, place, key, own), 0);
    written(a, length);
    fill(own, length, 2);
    EXPECT(fi_writev(a->ep, pieces, NULL, 2, a->peer, place, key, own), 0);
    written(a, length);
    fill(own, length, 3);
    EXPECT(fi_writemsg(a->ep, &msg, FI_COMPLETION), 0);
    written(a, length);
    fill(own, length, 4);
    size_t most = length < INJECT ? length : INJECT;
    EXPECT(fi_inject_write(a->ep, own, most, a->peer, place, key), 0);
    nothing_in(a);
    CHECK(memcmp(own, lent + 8, most) == 0 && lent[7] == 0);
    fill(lent + 8, length, 5);
    EXPECT(fi_read(a->ep, own, length, NULL, a->peer, place, key, own), 0);
    read_back(a, length);
    fill(lent + 8, length, 6);
    EXPECT(fi_readv(a->ep, pieces, NULL, 2, a->peer, place, key, own), 0);
    read_back(a, length);
    fill(lent + 8, length, 7);
    EXPECT(fi_readmsg(a->ep, &msg, FI_COMPLETION), 0);
    read_back(a, length);
    msg.rma_iov_count = 2;
    EXPECT(fi_writemsg(a->ep, &msg, 0), -FI_EINVAL);
    memset(lent, 0, sizeof lent);
}

static struct fid_mr *registered(struct pair *pair, int way, uint64_t access, uint64_t key) {
    struct fid_mr *mr;
    struct iovec iov = {lent, sizeof lent};
    struct fi_mr_attr attributes = {.mr_iov = &iov, .iov_count = 1, .access = access, .requested_key = key};
    if (way == 0) EXPECT(fi_mr_reg(pair->domain, lent, sizeof lent, access, 0, key, 0, &mr, NULL), 0);
    if (way == 1) EXPECT(fi_mr_regv(pair->domain, &iov, 1, access, 0, key, 0, &mr, NULL), 0);
    if (way == 2) EXPECT(fi_mr_regattr(pair->domain, &attributes, 0, &mr), 0);
    return mr;
}

static void in_mode(int mode) {
    struct pair pair = {0};
    open_domain(&pair, mode, 0);
    EXPECT(pair.info->domain_attr->mr_mode, mode);
    open_side(&pair, &pair.a, 0);
    for (int way = 0; way < 3; way++) {
        struct fid_mr *mr = registered(&pair, way, BOTH, 40 + way);
        if (mode != FI_MR_BASIC) EXPECT(fi_mr_key(mr), 40 + way);
        /* An endpoint that is opened later has the memory, too. */
        open_side(&pair, &pair.b, 0);
        pair.a.peer = inserted(&pair, pair.b.ep);
        uint64_t base = mode == FI_MR_BASIC ? (uint64_t)(uintptr_t)lent : 0;
        const size_t sizes[] = {0, 1, 64, 8192, LONGEST - 8};
        for (size_t index = 0; index < 5; index++) all(&pair, sizes[index], base, fi_mr_key(mr));
        EXPECT(fi_close(&mr->fid), 0);
        close_side(&pair.b);
    }
    pair.b.ep = NULL;
    close_pair(&pair);
}

void case_remote(void) {
    in_mode(0);
    in_mode(FI_MR_SCALABLE);
    in_mode(FI_MR_BASIC);
}

/* What was not lent, not for this, not so far, or not any more, is neither read nor written. */
void case_remote_bounds(void) {
    struct pair pair = {0};
    open_pair(&pair);
    struct side *a = &pair.a;
    struct fid_mr *readable = registered(&pair, 0, FI_REMOTE_READ, 1), *writable = registered(&pair, 0, FI_REMOTE_WRITE, 2);
    struct fid_mr *local = registered(&pair, 0, FI_SEND | FI_RECV, 1), *second;
    memset(own, 1, sizeof own);
    EXPECT(fi_write(a->ep, own, 1, NULL, a->peer, 0, 1, NULL), -FI_ENOKEY);
    EXPECT(fi_read(a->ep, own, 1, NULL, a->peer, 0, 2, NULL), -FI_ENOKEY);
    EXPECT(fi_write(a->ep, own, 1, NULL, a->peer, 0, 3, NULL), -FI_ENOKEY);
    EXPECT(fi_write(a->ep, own, 1, NULL, a->peer, sizeof lent, 2, NULL), -FI_ENOKEY);
    EXPECT(fi_write(a->ep, own, 2, NULL, a->peer, sizeof lent - 1, 2, NULL), -FI_ENOKEY);
    EXPECT(fi_write(a->ep, own, 1, NULL, a->peer, UINT64_MAX, 2, NULL), -FI_ENOKEY);
    EXPECT(fi_inject_write(a->ep, own, INJECT + 1, a->peer, 0, 2), -FI_EMSGSIZE);
    EXPECT(fi_write(a->ep, own, 1, NULL, 99, 0, 2, NULL), -FI_EINVAL);
    nothing_in(a);
    for (size_t at = 0; at < sizeof lent; at++) CHECK(lent[at] == 0);
    EXPECT(fi_mr_reg(pair.domain, lent, 8, BOTH, 0, 1, 0, &second, NULL), -FI_ENOKEY);
    /* The end of memory that was never lent takes nothing back. */
    EXPECT(fi_close(&local->fid), 0);
    EXPECT(fi_read(a->ep, own, 1, NULL, a->peer, 0, 1, NULL), 0);
    EXPECT(next(a).flags, FI_RMA | FI_READ);
    EXPECT(fi_close(&readable->fid), 0);
    EXPECT(fi_read(a->ep, own, 1, NULL, a->peer, 0, 1, NULL), -FI_ENOKEY);
    EXPECT(fi_close(&writable->fid), 0);
    struct iovec two[2] = {{lent, 8}, {lent + 8, 8}};
    EXPECT(fi_mr_regv(pair.domain, two, 2, BOTH, 0, 1, 0, &second, NULL), -FI_EINVAL);
    /* As many regions as there is room for, and again after their end. */
    static struct fid_mr *many[1 << 11];
    for (int turn = 0; turn < 2; turn++) {
        int count = 0, result = 0;
        while (count < 1 << 11 && !(result = fi_mr_reg(pair.domain, lent, 8, BOTH, 0, count, 0, &many[count], NULL))) count++;
        EXPECT(result, -FI_ENOSPC);
        EXPECT(count, pair.info->domain_attr->mr_cnt);
        while (count > 0) EXPECT(fi_close(&many[--count]->fid), 0);
    }
    close_pair(&pair);
}

/* Data that come with a write arrive behind its bytes. */
void case_remote_data(void) {
    struct pair pair = {0};
    open_pair(&pair);
    struct side *a = &pair.a;
    struct fid_mr *mr = registered(&pair, 0, BOTH, 5);
    struct iovec iov = {own, 100};
    struct fi_rma_iov target = {8, 100, 5};
    struct fi_msg_rma msg = {.msg_iov = &iov, .iov_count = 1, .addr = a->peer, .rma_iov = &target, .rma_iov_count = 1, .data = 13};
    for (uint64_t way = 11; way <= 13; way++) {
        fill(own, 100, (unsigned)way);
        if (way == 11) EXPECT(fi_writedata(a->ep, own, 100, NULL, way, a->peer, 8, 5, own), 0);
        if (way == 12) EXPECT(fi_inject_writedata(a->ep, own, 100, way, a->peer, 8, 5), 0);
        if (way == 13) EXPECT(fi_writemsg(a->ep, &msg, FI_COMPLETION | FI_REMOTE_CQ_DATA), 0);
        struct fi_cq_tagged_entry entry = next(&pair.b);
        EXPECT(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
        CHECK(entry.data == way && entry.len == 100 && memcmp(own, lent + 8, 100) == 0);
        if (way != 12) EXPECT(next(a).flags, FI_RMA | FI_WRITE);
        nothing_in(a);
    }
    EXPECT(fi_writedata(a->ep, own, 1, NULL, 1, a->peer, 8, 6, own), -FI_ENOKEY);
    nothing_in(&pair.b);
    EXPECT(fi_close(&mr->fid), 0);
    close_pair(&pair);
}
