/* What differs if messages go through simulated hardware: they have a longest length, and there is no remote memory. */
#include "common.h"

#define MOST 8192

static unsigned char out[MOST + 1], in[MOST + 1];

static void offered(int is_hardware) {
    struct fi_info *hints = hints_of_velo(), *info;
    EXPECT(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
    EXPECT(info->ep_attr->max_msg_size, is_hardware ? (size_t)MOST : (size_t)1 << 62);
    EXPECT(info->caps & FI_RMA, is_hardware ? 0 : FI_RMA);
    EXPECT(info->caps & (FI_MSG | FI_TAGGED | FI_SOURCE), FI_MSG | FI_TAGGED | FI_SOURCE);
    fi_freeinfo(info);
    hints->caps = FI_RMA;
    EXPECT(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), is_hardware ? -FI_ENODATA : 0);
    if (!is_hardware) fi_freeinfo(info);
    fi_freeinfo(hints);
}

/* A message with tag and immediate data from one side to the other, in two pieces. */
static void exchanged(struct side *from, struct side *to, size_t length) {
    struct iovec pieces[] = {{out, length / 3}, {out + length / 3, length - length / 3}};
    struct fi_msg_tagged message = {.msg_iov = pieces, .iov_count = 2, .addr = from->peer, .tag = length, .data = ~length};
    fill(out, length, (unsigned)length);
    memset(in, 0, sizeof in);
    EXPECT(fi_trecv(to->ep, in, sizeof in, NULL, to->peer, length, 0, in), 0);
    EXPECT(fi_tsendmsg(from->ep, &message, FI_REMOTE_CQ_DATA | FI_COMPLETION), 0);
    struct fi_cq_tagged_entry entry = next(to);
    CHECK(entry.op_context == in && entry.len == length && entry.tag == length && entry.data == ~length);
    EXPECT(entry.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
    CHECK(memcmp(in, out, length) == 0 && in[length] == 0);
    EXPECT(next(from).flags, FI_SEND | FI_TAGGED);
}

static void refused(struct pair *pair) {
    struct fid_mr *region;
    struct side *a = &pair->a;
    EXPECT(fi_send(a->ep, out, MOST + 1, NULL, a->peer, NULL), -FI_EMSGSIZE);
    EXPECT(fi_tsend(a->ep, out, MOST + 1, NULL, a->peer, 1, NULL), -FI_EMSGSIZE);
    EXPECT(fi_tinject(a->ep, out, MOST + 1, a->peer, 1), -FI_EMSGSIZE);
    EXPECT(fi_read(a->ep, in, 8, NULL, a->peer, 0, 0, NULL), -FI_ENOSYS);
    EXPECT(fi_write(a->ep, out, 8, NULL, a->peer, 0, 0, NULL), -FI_ENOSYS);
    EXPECT(fi_mr_reg(pair->domain, in, sizeof in, FI_REMOTE_WRITE, 0, 1, 0, &region, NULL), -FI_ENOSYS);
    EXPECT(fi_mr_reg(pair->domain, in, sizeof in, FI_SEND | FI_RECV, 0, 1, 0, &region, NULL), 0);
    EXPECT(fi_close(&region->fid), 0);
}

void case_hardware(void) {
    int is_hardware = getenv("FI_VELO_HARDWARE") != NULL;
    struct pair pair = {0};
    offered(is_hardware);
    open_pair(&pair);
    for (size_t length = 0; length <= MOST; length += length < 200 ? 1 : 999) {
        exchanged(&pair.a, &pair.b, length);
        exchanged(&pair.b, &pair.a, length);
    }
    exchanged(&pair.a, &pair.b, MOST);
    if (is_hardware) refused(&pair);
    exchanged(&pair.b, &pair.a, 8);
    close_pair(&pair);
}
