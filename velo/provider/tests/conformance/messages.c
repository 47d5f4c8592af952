/* Messages without tags: sizes, pieces, immediate data, injection, truncation, full mailboxes. */
#include "common.h"

static const size_t SIZES[] = {0, 1, 8, 63, 64, 65, 4096, 8192, 8193, 100000, LONGEST};
#define COUNT(list) (sizeof list / sizeof *list)

static unsigned char out[LONGEST], in[LONGEST + 8];

/* A message with a receive that waits for it, and one without. */
static void exchanged(struct pair *pair, size_t length, int early) {
    int context;
    fill(out, length, (unsigned)length + early);
    memset(in, 0, length + 8);
    if (early) EXPECT(fi_recv(pair->b.ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, &context), 0);
    EXPECT(fi_send(pair->a.ep, out, length, NULL, pair->a.peer, out), 0);
    if (!early) {
        nothing_in(&pair->b);
        EXPECT(fi_recv(pair->b.ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, &context), 0);
    }
    struct fi_cq_tagged_entry entry = next(&pair->b);
    CHECK(entry.op_context == &context && entry.len == length && entry.buf == in);
    EXPECT(entry.flags, FI_RECV | FI_MSG);
    CHECK(memcmp(in, out, length) == 0 && in[length] == 0);
    entry = next(&pair->a);
    CHECK(entry.op_context == out && entry.flags == (FI_SEND | FI_MSG));
}

void case_messages(void) {
    struct pair pair = {0};
    open_pair(&pair);
    for (size_t index = 0; index < COUNT(SIZES); index++) {
        exchanged(&pair, SIZES[index], 0);
        exchanged(&pair, SIZES[index], 1);
    }
    for (size_t index = 0; SIZES[index] <= INJECT; index++) {
        size_t length = SIZES[index];
        fill(out, length, 3);
        EXPECT(fi_inject(pair.a.ep, out, length, pair.a.peer), 0);
        EXPECT(fi_injectdata(pair.a.ep, out, length, 77, pair.a.peer), 0);
        memset(out, 0, length);
        EXPECT(fi_recv(pair.b.ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, NULL), 0);
        EXPECT(next(&pair.b).flags, FI_RECV | FI_MSG);
        fill(out, length, 3);
        CHECK(memcmp(in, out, length) == 0);
        EXPECT(fi_recv(pair.b.ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, NULL), 0);
        struct fi_cq_tagged_entry entry = next(&pair.b);
        CHECK(entry.data == 77 && entry.flags == (FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA));
    }
    EXPECT(fi_inject(pair.a.ep, out, INJECT + 1, pair.a.peer), -FI_EMSGSIZE);
    nothing_in(&pair.a);
    EXPECT(fi_senddata(pair.a.ep, out, 5, NULL, UINT64_MAX, pair.a.peer, &pair), 0);
    CHECK(next(&pair.a).op_context == &pair);
    EXPECT(fi_recv(pair.b.ep, in, 5, NULL, FI_ADDR_UNSPEC, NULL), 0);
    EXPECT(next(&pair.b).data, UINT64_MAX);
    /* To itself. */
    EXPECT(fi_send(pair.a.ep, out, 9, NULL, pair.b.peer, NULL), 0);
    EXPECT(next(&pair.a).flags, FI_SEND | FI_MSG);
    EXPECT(fi_recv(pair.a.ep, in, 9, NULL, FI_ADDR_UNSPEC, NULL), 0);
    EXPECT(next(&pair.a).len, 9);
    close_pair(&pair);
}

void case_messages_in_pieces(void) {
    struct pair pair = {0};
    open_pair(&pair);
    for (size_t index = 0; index < COUNT(SIZES); index++) {
        size_t length = SIZES[index], third = length / 3;
        struct iovec from[] = {{out, third}, {out + third, 0}, {out + third, third}, {out + 2 * third, length - 2 * third}};
        struct iovec to[] = {{in, length / 2}, {in + length / 2, sizeof in - length / 2}};
        fill(out, length, 9);
        memset(in, 0, sizeof in);
        EXPECT(fi_recvv(pair.b.ep, to, NULL, 2, FI_ADDR_UNSPEC, NULL), 0);
        EXPECT(fi_sendv(pair.a.ep, from, NULL, 4, pair.a.peer, NULL), 0);
        EXPECT(next(&pair.b).len, length);
        EXPECT(next(&pair.a).flags, FI_SEND | FI_MSG);
        CHECK(memcmp(in, out, length) == 0);
        memset(in, 0, sizeof in);
        struct fi_msg send = {.msg_iov = from, .iov_count = 4, .addr = pair.a.peer, .context = out, .data = 5};
        struct fi_msg receive = {.msg_iov = to, .iov_count = 2, .addr = FI_ADDR_UNSPEC, .context = in};
        EXPECT(fi_sendmsg(pair.a.ep, &send, FI_COMPLETION | FI_REMOTE_CQ_DATA), 0);
        EXPECT(fi_recvmsg(pair.b.ep, &receive, FI_COMPLETION), 0);
        struct fi_cq_tagged_entry entry = next(&pair.b);
        CHECK(entry.op_context == in && entry.data == 5 && entry.len == length);
        CHECK(next(&pair.a).op_context == out && memcmp(in, out, length) == 0);
    }
    struct iovec many[5] = {{out, 1}, {out, 1}, {out, 1}, {out, 1}, {out, 1}};
    EXPECT(fi_sendv(pair.a.ep, many, NULL, 5, pair.a.peer, NULL), -FI_EINVAL);
    EXPECT(fi_recvv(pair.a.ep, many, NULL, 5, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
    struct fi_msg msg = {.msg_iov = many, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
    EXPECT(fi_recvmsg(pair.b.ep, &msg, FI_MULTI_RECV), -FI_ENOSYS);
    EXPECT(fi_recvmsg(pair.b.ep, &msg, FI_PEEK), -FI_ENOSYS);
    msg.addr = pair.a.peer;
    EXPECT(fi_sendmsg(pair.a.ep, &msg, FI_MATCH_COMPLETE), -FI_ENOSYS);
    EXPECT(fi_sendmsg(pair.a.ep, &msg, FI_DELIVERY_COMPLETE), -FI_ENOSYS);
    close_pair(&pair);
}

void case_truncation(void) {
    struct pair pair = {0};
    open_pair(&pair);
    for (size_t index = 1; index < COUNT(SIZES); index++) {
        size_t length = SIZES[index], room = length / 2;
        fill(out, length, 1);
        memset(in, 0, sizeof in);
        EXPECT(fi_send(pair.a.ep, out, length, NULL, pair.a.peer, NULL), 0);
        EXPECT(fi_recv(pair.b.ep, in, room, NULL, FI_ADDR_UNSPEC, &pair), 0);
        struct fi_cq_err_entry error = next_error(&pair.b);
        CHECK(error.op_context == &pair && error.err == FI_ETRUNC && error.len == room);
        EXPECT(error.olen, length - room);
        CHECK(memcmp(in, out, room) == 0 && in[room] == 0);
        EXPECT(next(&pair.a).flags, FI_SEND | FI_MSG);
    }
    close_pair(&pair);
}

/* A sender is told to wait, loses nothing, and everything arrives in order. */
void case_full(void) {
    struct pair pair = {0};
    open_pair(&pair);
    uint64_t sent = 0, value = 0;
    ssize_t result;
    while ((result = fi_inject(pair.a.ep, &sent, sizeof sent, pair.a.peer)) == 0 && sent < 200000) sent++;
    CHECK(result == 0 || result == -FI_EAGAIN);
    for (uint64_t number = 0; number < sent; number++) {
        EXPECT(fi_recv(pair.b.ep, &value, sizeof value, NULL, FI_ADDR_UNSPEC, NULL), 0);
        EXPECT(next(&pair.b).len, sizeof value);
        EXPECT(value, number);
    }
    /* Sends whose entries nobody reads end in "try again", too. */
    for (sent = 0; sent < 1000000; sent++) {
        EXPECT(fi_recv(pair.b.ep, &value, sizeof value, NULL, FI_ADDR_UNSPEC, NULL), 0);
        if ((result = fi_send(pair.a.ep, &sent, sizeof sent, NULL, pair.a.peer, NULL)) != 0) break;
        EXPECT(next(&pair.b).len, sizeof value);
    }
    EXPECT(result, -FI_EAGAIN);
    for (uint64_t number = 0; number < sent; number++) next(&pair.a);
    nothing_in(&pair.a);
    EXPECT(fi_send(pair.a.ep, &sent, sizeof sent, NULL, pair.a.peer, NULL), 0);
    EXPECT(next(&pair.b).len, sizeof value);
    close_pair(&pair);
}
