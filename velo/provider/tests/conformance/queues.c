/* Completion queues and counters. */
#include "common.h"

static char byte;

/* Entries have the length of their format, and what lies behind them stays as it is. */
static void format(struct pair *pair, enum fi_cq_format format, size_t bytes) {
    struct fi_cq_attr attributes = {.format = format, .wait_obj = FI_WAIT_NONE};
    struct side side;
    struct fid_cq *queue;
    EXPECT(fi_cq_open(pair->domain, &attributes, &queue, NULL), 0);
    EXPECT(fi_endpoint(pair->domain, pair->info, &side.ep, NULL), 0);
    EXPECT(fi_ep_bind(side.ep, &pair->av->fid, 0), 0);
    EXPECT(fi_ep_bind(side.ep, &queue->fid, FI_TRANSMIT | FI_RECV), 0);
    EXPECT(fi_enable(side.ep), 0);
    fi_addr_t number = inserted(pair, side.ep);
    struct fi_cq_tagged_entry entries[3], read;
    for (uint64_t turn = 0; turn < 2; turn++) {
        EXPECT(fi_trecv(side.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 9, 0, (void *)(turn + 1)), 0);
        EXPECT(fi_tinjectdata(pair->a.ep, "x", 1, 8, number, 9), 0);
    }
    EXPECT(fi_cq_read(queue, NULL, 0), 0);
    memset(entries, 0x55, sizeof entries);
    EXPECT(fi_cq_read(queue, entries, 2), 2);
    for (size_t turn = 0; turn < 2; turn++) {
        memset(&read, 0, sizeof read);
        memcpy(&read, (char *)entries + turn * bytes, bytes);
        EXPECT((uintptr_t)read.op_context, turn + 1);
        CHECK(bytes < 16 || read.flags == (FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA));
        CHECK(bytes < 24 || read.len == 1);
        CHECK(bytes < 40 || (read.buf == &byte && read.data == 8));
        CHECK(bytes < 48 || read.tag == 9);
    }
    CHECK(((unsigned char *)entries)[2 * bytes] == 0x55);
    EXPECT(fi_close(&side.ep->fid), 0);
    EXPECT(fi_close(&queue->fid), 0);
}

void case_queues(void) {
    struct pair pair = {0};
    open_pair(&pair);
    format(&pair, FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry));
    format(&pair, FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry));
    format(&pair, FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry));
    format(&pair, FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry));
    struct fi_cq_tagged_entry entries[4];
    struct fi_cq_err_entry error = {0};
    fi_addr_t from[4];
    EXPECT(fi_cq_read(pair.b.cq, entries, 4), -FI_EAGAIN);
    EXPECT(fi_cq_readerr(pair.b.cq, &error, 0), -FI_EAGAIN);
    for (int turn = 0; turn < 3; turn++) {
        EXPECT(fi_recv(pair.b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
        EXPECT(fi_inject(turn == 1 ? pair.b.ep : pair.a.ep, "x", 1, pair.a.peer), 0);
    }
    EXPECT(fi_cq_readfrom(pair.b.cq, entries, 2, from), 2);
    CHECK(from[0] == pair.b.peer && from[1] == pair.a.peer);
    EXPECT(fi_cq_sreadfrom(pair.b.cq, entries, 4, from, NULL, 1000), 1);
    EXPECT(from[0], pair.b.peer);
    /* An endpoint that is not in the vector has no number. */
    struct side stranger;
    open_side(&pair, &stranger, 0);
    EXPECT(fi_recv(pair.b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
    EXPECT(fi_inject(stranger.ep, "x", 1, pair.a.peer), 0);
    EXPECT(fi_cq_sreadfrom(pair.b.cq, entries, 4, from, NULL, 1000), 1);
    EXPECT(from[0], FI_ADDR_NOTAVAIL);
    close_side(&stranger);
    struct fid_cq *queue;
    struct fi_cq_attr waits = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};
    EXPECT(fi_cq_open(pair.domain, &waits, &queue, NULL), -FI_ENOSYS);
    waits.wait_obj = FI_WAIT_UNSPEC, waits.wait_cond = FI_CQ_COND_THRESHOLD;
    EXPECT(fi_cq_open(pair.domain, &waits, &queue, NULL), -FI_ENOSYS);
    close_pair(&pair);
}

static void *later(void *side) {
    usleep(50000);
    EXPECT(fi_inject(((struct side *)side)->ep, "x", 1, ((struct side *)side)->peer), 0);
    return NULL;
}

static void *signals(void *side) {
    usleep(50000);
    EXPECT(fi_cq_signal(((struct side *)side)->cq), 0);
    return NULL;
}

void case_waiting(void) {
    struct pair pair = {0};
    open_pair(&pair);
    struct fi_cq_tagged_entry entry;
    double start = now();
    EXPECT(fi_cq_sread(pair.b.cq, &entry, 1, NULL, 50), -FI_EAGAIN);
    CHECK(now() - start >= 0.05);
    pthread_t thread;
    EXPECT(fi_recv(pair.b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
    EXPECT(pthread_create(&thread, NULL, later, &pair.a), 0);
    EXPECT(fi_cq_sread(pair.b.cq, &entry, 1, NULL, -1), 1);
    EXPECT(pthread_join(thread, NULL), 0);
    EXPECT(pthread_create(&thread, NULL, signals, &pair.b), 0);
    EXPECT(fi_cq_sread(pair.b.cq, &entry, 1, NULL, -1), -FI_EAGAIN);
    EXPECT(pthread_join(thread, NULL), 0);
    close_pair(&pair);
}

/* Entries only for those who ask; errors always. */
void case_selective(void) {
    struct pair pair = {0};
    open_domain(&pair, 0, 0);
    open_side(&pair, &pair.a, FI_SELECTIVE_COMPLETION);
    open_side(&pair, &pair.b, FI_SELECTIVE_COMPLETION);
    pair.b.peer = inserted(&pair, pair.a.ep);
    pair.a.peer = inserted(&pair, pair.b.ep);
    struct iovec iov = {&byte, 1};
    struct fi_msg send = {.msg_iov = &iov, .iov_count = 1, .addr = pair.a.peer};
    struct fi_msg receive = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
    EXPECT(fi_recv(pair.b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
    EXPECT(fi_send(pair.a.ep, "q", 1, NULL, pair.a.peer, NULL), 0);
    nothing_in(&pair.a);
    nothing_in(&pair.b);
    EXPECT(byte, 'q');
    EXPECT(fi_recvmsg(pair.b.ep, &receive, FI_COMPLETION), 0);
    EXPECT(fi_sendmsg(pair.a.ep, &send, FI_COMPLETION), 0);
    EXPECT(next(&pair.a).flags, FI_SEND | FI_MSG);
    EXPECT(next(&pair.b).flags, FI_RECV | FI_MSG);
    EXPECT(fi_recv(pair.b.ep, &byte, 0, NULL, FI_ADDR_UNSPEC, NULL), 0);
    EXPECT(fi_send(pair.a.ep, "q", 1, NULL, pair.a.peer, NULL), 0);
    EXPECT(next_error(&pair.b).err, FI_ETRUNC);
    close_pair(&pair);
}

void case_counters(void) {
    struct pair pair = {0};
    open_domain(&pair, 0, 0);
    struct fi_cntr_attr attributes = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
    struct fid_cntr *sends, *receives, *writes, *other;
    EXPECT(fi_cntr_open(pair.domain, &attributes, &sends, NULL), 0);
    EXPECT(fi_cntr_open(pair.domain, &attributes, &receives, NULL), 0);
    EXPECT(fi_cntr_open(pair.domain, &attributes, &writes, NULL), 0);
    open_side(&pair, &pair.a, 0);
    open_side(&pair, &pair.b, 0);
    pair.a.peer = inserted(&pair, pair.b.ep);
    EXPECT(fi_ep_bind(pair.a.ep, &sends->fid, FI_SEND), 0);
    EXPECT(fi_ep_bind(pair.b.ep, &receives->fid, FI_RECV), 0);
    EXPECT(fi_ep_bind(pair.a.ep, &writes->fid, FI_READ | FI_WRITE), 0);
    EXPECT(fi_ep_bind(pair.b.ep, &writes->fid, FI_REMOTE_WRITE), -FI_ENOSYS);
    for (int turn = 0; turn < 5; turn++) {
        EXPECT(fi_recv(pair.b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
        EXPECT(turn % 2 ? fi_inject(pair.a.ep, "x", 1, pair.a.peer) : fi_send(pair.a.ep, "x", 1, NULL, pair.a.peer, NULL), 0);
    }
    EXPECT(fi_cntr_wait(sends, 5, 5000), 0);
    EXPECT(fi_cntr_wait(receives, 5, 5000), 0);
    EXPECT(fi_cntr_read(receives), 5);
    EXPECT(fi_cntr_wait(receives, 6, 20), -FI_ETIMEDOUT);
    EXPECT(fi_cntr_add(receives, 3), 0);
    EXPECT(fi_cntr_read(receives), 8);
    EXPECT(fi_cntr_set(receives, 1), 0);
    EXPECT(fi_cntr_read(receives), 1);
    EXPECT(fi_recv(pair.b.ep, &byte, 0, NULL, FI_ADDR_UNSPEC, NULL), 0);
    EXPECT(fi_inject(pair.a.ep, "x", 1, pair.a.peer), 0);
    EXPECT(fi_cntr_wait(receives, 2, 20), -FI_EAVAIL);
    EXPECT(fi_cntr_readerr(receives), 1);
    EXPECT(fi_cntr_adderr(receives, 2), 0);
    EXPECT(fi_cntr_readerr(receives), 3);
    EXPECT(fi_cntr_seterr(receives, 0), 0);
    EXPECT(fi_cntr_readerr(receives), 0);
    char here[8], there[8];
    struct fid_mr *mr;
    EXPECT(fi_mr_reg(pair.domain, there, sizeof there, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL), 0);
    EXPECT(fi_write(pair.a.ep, here, 8, NULL, pair.a.peer, 0, fi_mr_key(mr), NULL), 0);
    EXPECT(fi_read(pair.a.ep, here, 8, NULL, pair.a.peer, 0, fi_mr_key(mr), NULL), 0);
    EXPECT(fi_inject_write(pair.a.ep, here, 8, pair.a.peer, 0, fi_mr_key(mr)), 0);
    EXPECT(fi_cntr_wait(writes, 3, 5000), 0);
    EXPECT(fi_mr_bind(mr, &writes->fid, FI_REMOTE_WRITE), -FI_ENOSYS);
    EXPECT(fi_close(&mr->fid), 0);
    attributes.events = FI_CNTR_EVENTS_COMP + 1;
    EXPECT(fi_cntr_open(pair.domain, &attributes, &other, NULL), -FI_ENOSYS);
    attributes.events = FI_CNTR_EVENTS_COMP, attributes.wait_obj = FI_WAIT_FD;
    EXPECT(fi_cntr_open(pair.domain, &attributes, &other, NULL), -FI_ENOSYS);
    close_side(&pair.a);
    close_side(&pair.b);
    pair.a.ep = pair.b.ep = NULL;
    EXPECT(fi_close(&sends->fid), 0);
    EXPECT(fi_close(&receives->fid), 0);
    EXPECT(fi_close(&writes->fid), 0);
    close_pair(&pair);
}
