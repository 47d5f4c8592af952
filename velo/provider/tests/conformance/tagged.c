/* Messages with tags: all calls, matching, peek and claim, cancelling. */
#include "common.h"

static unsigned char out[LONGEST], in[LONGEST];

static void received(struct side *side, uint64_t tag, uint64_t ignore, size_t length, uint64_t found) {
    memset(in, 0, length);
    EXPECT(fi_trecv(side->ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, tag, ignore, in), 0);
    struct fi_cq_tagged_entry entry = next(side);
    CHECK(entry.op_context == in && (entry.flags & ~FI_REMOTE_CQ_DATA) == (FI_RECV | FI_TAGGED));
    EXPECT(entry.tag, found);
    EXPECT(entry.len, length);
    CHECK(memcmp(in, out, length) == 0);
}

void case_tagged(void) {
    struct pair pair = {0};
    open_pair(&pair);
    struct side *a = &pair.a, *b = &pair.b;
    const size_t sizes[] = {0, 8, 64, 65, INJECT, INJECT + 1, LONGEST};
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++) {
        size_t length = sizes[index];
        fill(out, length, 11);
        EXPECT(fi_tsend(a->ep, out, length, NULL, a->peer, 1, out), 0);
        received(b, 1, 0, length, 1);
        struct fi_cq_tagged_entry entry = next(a);
        CHECK(entry.op_context == out && entry.flags == (FI_SEND | FI_TAGGED));
        struct iovec from[] = {{out, length / 2}, {out + length / 2, length - length / 2}};
        struct iovec to[] = {{in, length / 3}, {in + length / 3, sizeof in - length / 3}};
        memset(in, 0, length);
        EXPECT(fi_trecvv(b->ep, to, NULL, 2, FI_ADDR_UNSPEC, 2, 0, NULL), 0);
        EXPECT(fi_tsendv(a->ep, from, NULL, 2, a->peer, 2, NULL), 0);
        EXPECT(next(b).len, length);
        EXPECT(next(a).flags, FI_SEND | FI_TAGGED);
        CHECK(memcmp(in, out, length) == 0);
        struct fi_msg_tagged send = {.msg_iov = from, .iov_count = 2, .addr = a->peer, .tag = 3, .data = 4};
        struct fi_msg_tagged receive = {.msg_iov = to, .iov_count = 2, .addr = FI_ADDR_UNSPEC, .tag = 3, .context = in};
        memset(in, 0, length);
        EXPECT(fi_trecvmsg(b->ep, &receive, FI_COMPLETION), 0);
        EXPECT(fi_tsendmsg(a->ep, &send, FI_COMPLETION | FI_REMOTE_CQ_DATA), 0);
        entry = next(b);
        CHECK(entry.len == length && entry.data == 4 && entry.op_context == in && (entry.flags & FI_REMOTE_CQ_DATA));
        EXPECT(next(a).flags, FI_SEND | FI_TAGGED);
        CHECK(memcmp(in, out, length) == 0);
        EXPECT(fi_tsenddata(a->ep, out, length, NULL, 5, a->peer, 6, NULL), 0);
        received(b, 6, 0, length, 6);
        EXPECT(next(a).flags, FI_SEND | FI_TAGGED);
        ssize_t wanted = length > INJECT ? -FI_EMSGSIZE : 0;
        EXPECT(fi_tinject(a->ep, out, length, a->peer, 7), wanted);
        EXPECT(fi_tinjectdata(a->ep, out, length, 9, a->peer, 8), wanted);
        if (wanted == 0) received(b, 7, 0, length, 7), received(b, 8, 0, length, 8);
        nothing_in(a);
    }
    close_pair(&pair);
}

void case_matching(void) {
    struct pair pair = {0};
    open_pair(&pair);
    struct side *a = &pair.a, *b = &pair.b;
    /* The first message that fits, in the order of sending; ignored bits are ignored. */
    for (uint64_t tag = 0; tag < 8; tag++) {
        out[0] = (unsigned char)tag;
        EXPECT(fi_tinject(a->ep, out, 1, a->peer, tag << 32 | 5), 0);
    }
    nothing_in(b);
    out[0] = 6, received(b, 6ull << 32 | 5, 0, 1, 6ull << 32 | 5);
    out[0] = 1, received(b, 1ull << 32, 6ull << 32 | 0xff, 1, 1ull << 32 | 5);
    out[0] = 3, received(b, 1ull << 32, 6ull << 32 | 0xff, 1, 3ull << 32 | 5);
    out[0] = 0, received(b, 0, UINT64_MAX, 1, 5);
    /* Receives get messages in the order of posting, and messages without tag pass them by. */
    char first[1], second[1], plain[1];
    EXPECT(fi_trecv(b->ep, first, 1, NULL, FI_ADDR_UNSPEC, 100, 3, first), 0);
    EXPECT(fi_trecv(b->ep, second, 1, NULL, FI_ADDR_UNSPEC, 100, 0, second), 0);
    EXPECT(fi_inject(a->ep, "p", 1, a->peer), 0);
    EXPECT(fi_tinject(a->ep, "1", 1, a->peer, 100), 0);
    EXPECT(fi_tinject(a->ep, "2", 1, a->peer, 100), 0);
    CHECK(next(b).op_context == first && *first == '1');
    CHECK(next(b).op_context == second && *second == '2');
    EXPECT(fi_recv(b->ep, plain, 1, NULL, FI_ADDR_UNSPEC, plain), 0);
    CHECK(next(b).op_context == plain && *plain == 'p');
    /* A receive from one source waits for that one. */
    EXPECT(fi_trecv(b->ep, first, 1, NULL, a->peer, 200, 0, first), 0);
    EXPECT(fi_trecv(b->ep, second, 1, NULL, b->peer, 200, 0, second), 0);
    EXPECT(fi_tinject(a->ep, "a", 1, a->peer, 200), 0);
    CHECK(next(b).op_context == second && *second == 'a');
    EXPECT(fi_tinject(b->ep, "b", 1, a->peer, 200), 0);
    CHECK(next(b).op_context == first && *first == 'b');
    close_pair(&pair);
}

static ssize_t looked(struct side *side, uint64_t tag, uint64_t flags, struct fi_context *context) {
    struct iovec to = {in, sizeof in};
    struct fi_msg_tagged msg = {.msg_iov = &to, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = tag, .context = context};
    return fi_trecvmsg(side->ep, &msg, flags);
}

void case_peek(void) {
    struct pair pair = {0};
    open_pair(&pair);
    struct side *a = &pair.a, *b = &pair.b;
    struct fi_context context;
    const size_t sizes[] = {0, 20, 2000, 20000};
    EXPECT(looked(b, 1, FI_PEEK, &context), 0);
    struct fi_cq_err_entry error = next_error(b);
    CHECK(error.err == FI_ENOMSG && error.op_context == &context);
    for (size_t index = 0; index < 4; index++) {
        size_t length = sizes[index];
        fill(out, length, 5);
        for (uint64_t tag = 1; tag <= 4; tag++) EXPECT(fi_tsend(a->ep, out, length, NULL, a->peer, tag, NULL), 0);
        for (int turn = 0; turn < 2; turn++) {
            EXPECT(looked(b, 1, FI_PEEK, &context), 0);
            struct fi_cq_tagged_entry entry = next(b);
            CHECK(entry.len == length && entry.tag == 1 && entry.op_context == &context);
        }
        EXPECT(looked(b, 2, FI_PEEK | FI_DISCARD, &context), 0);
        EXPECT(next(b).tag, 2);
        EXPECT(looked(b, 2, FI_PEEK, &context), 0);
        EXPECT(next_error(b).err, FI_ENOMSG);
        EXPECT(looked(b, 3, FI_PEEK | FI_CLAIM, &context), 0);
        EXPECT(next(b).tag, 3);
        EXPECT(looked(b, 3, FI_PEEK, &context), 0);
        EXPECT(next_error(b).err, FI_ENOMSG);
        memset(in, 0, length);
        EXPECT(looked(b, 3, FI_CLAIM, &context), 0);
        EXPECT(next(b).len, length);
        CHECK(memcmp(in, out, length) == 0);
        EXPECT(looked(b, 3, FI_CLAIM, &context), -FI_EINVAL);
        EXPECT(looked(b, 4, FI_PEEK | FI_CLAIM, &context), 0);
        EXPECT(next(b).tag, 4);
        EXPECT(looked(b, 4, FI_CLAIM | FI_DISCARD, &context), 0);
        EXPECT(next(b).tag, 4);
        received(b, 1, 0, length, 1);
        for (int turn = 0; turn < 4; turn++) EXPECT(next(a).flags, FI_SEND | FI_TAGGED);
    }
    close_pair(&pair);
}

void case_cancel(void) {
    struct pair pair = {0};
    open_pair(&pair);
    struct fi_context tagged, plain;
    EXPECT(fi_trecv(pair.b.ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &tagged), 0);
    EXPECT(fi_recv(pair.b.ep, in, 8, NULL, FI_ADDR_UNSPEC, &plain), 0);
    EXPECT(fi_cancel(&pair.b.ep->fid, &tagged), 0);
    struct fi_cq_err_entry error = next_error(&pair.b);
    CHECK(error.err == FI_ECANCELED && error.op_context == &tagged && error.flags == (FI_RECV | FI_TAGGED));
    EXPECT(fi_cancel(&pair.b.ep->fid, &plain), 0);
    error = next_error(&pair.b);
    CHECK(error.err == FI_ECANCELED && error.op_context == &plain && error.flags == (FI_RECV | FI_MSG));
    CHECK(strstr(fi_cq_strerror(pair.b.cq, error.prov_errno, NULL, NULL, 0), "cancel") != NULL);
    EXPECT(fi_cancel(&pair.b.ep->fid, &plain), -FI_ENOENT);
    nothing_in(&pair.b);
    /* What was cancelled takes no message. */
    EXPECT(fi_tinject(pair.a.ep, out, 8, pair.a.peer, 1), 0);
    nothing_in(&pair.b);
    received(&pair.b, 1, 0, 8, 1);
    close_pair(&pair);
}
