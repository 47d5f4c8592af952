/* Threads and processes. */
#include "common.h"

#define MESSAGES 20000
#define LONG 20000

struct work {
    struct side side;
    uint64_t stream;
};

/* Sends to the other side and receives from it at the same time; every 500th message is long. */
static void *both_ways(void *argument) {
    struct work *work = argument;
    struct side *side = &work->side;
    uint64_t tag = work->stream, sent = 0, got = 0, done = 0, in[LONG / 8];
    static __thread uint64_t out[LONG / 8];
    int posted = 0;
    struct fi_context receive, send;
    while (got < MESSAGES || done < MESSAGES) {
        if (!posted && got < MESSAGES) {
            EXPECT(fi_trecv(side->ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, tag, 0, &receive), 0);
            posted = 1;
        }
        if (sent == done && sent < MESSAGES) {
            out[0] = sent;
            ssize_t result = fi_tsend(side->ep, out, sent % 500 ? 8 : LONG, NULL, side->peer, tag, &send);
            CHECK(result == 0 || result == -FI_EAGAIN);
            sent += result == 0;
        }
        struct fi_cq_tagged_entry entry;
        ssize_t count = fi_cq_read(side->cq, &entry, 1);
        if (count == -FI_EAGAIN) continue;
        EXPECT(count, 1);
        if (entry.flags & FI_RECV) {
            CHECK(entry.op_context == &receive && in[0] == got && entry.len == (got % 500 ? 8 : LONG));
            got++, posted = 0;
        } else {
            CHECK(entry.op_context == &send);
            done++;
        }
    }
    return NULL;
}

static void *only_sends(void *argument) {
    struct work *work = argument;
    for (uint64_t number = 0; number < MESSAGES; number++) {
        ssize_t result;
        while ((result = fi_tinject(work->side.ep, &number, sizeof number, work->side.peer, work->stream)) == -FI_EAGAIN)
            sched_yield();
        EXPECT(result, 0);
    }
    return NULL;
}

void case_threads(void) {
    struct pair pair = {0};
    pthread_t threads[2];
    open_pair(&pair);
    /* One endpoint for each thread. */
    struct work work[2] = {{pair.a, 1}, {pair.b, 1}};
    for (int index = 0; index < 2; index++) EXPECT(pthread_create(&threads[index], NULL, both_ways, &work[index]), 0);
    for (int index = 0; index < 2; index++) EXPECT(pthread_join(threads[index], NULL), 0);
    /* One endpoint for two threads that send, while this one receives. */
    struct work one[2] = {{pair.a, 2}, {pair.a, 3}};
    for (int index = 0; index < 2; index++) EXPECT(pthread_create(&threads[index], NULL, only_sends, &one[index]), 0);
    uint64_t got[2] = {0}, value;
    for (int turn = 0; turn < 2 * MESSAGES; turn++) {
        EXPECT(fi_trecv(pair.b.ep, &value, sizeof value, NULL, FI_ADDR_UNSPEC, 2, 1, NULL), 0);
        uint64_t stream = next(&pair.b).tag - 2;
        EXPECT(value, got[stream]++);
    }
    for (int index = 0; index < 2; index++) EXPECT(pthread_join(threads[index], NULL), 0);
    CHECK(got[0] == MESSAGES && got[1] == MESSAGES);
    close_pair(&pair);
}

/* One endpoint, whose address goes to the other process through a pipe, and back. */
static void met(struct pair *pair, int in, int out) {
    char address[ADDRESS];
    size_t length = sizeof address;
    open_domain(pair, 0, 0);
    open_side(pair, &pair->a, 0);
    EXPECT(fi_getname(&pair->a.ep->fid, address, &length), 0);
    EXPECT(write(out, address, ADDRESS), ADDRESS);
    EXPECT(read(in, address, ADDRESS), ADDRESS);
    EXPECT(fi_av_insert(pair->av, address, 1, &pair->a.peer, 0, NULL), 1);
}

/* A process that runs `body`, and this one's end of the pipes to it. */
static pid_t started(void (*body)(struct pair *), struct pair *pair) {
    int there[2], back[2];
    CHECK(pipe(there) == 0 && pipe(back) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        met(pair, there[0], back[1]);
        body(pair);
        _exit(0);
    }
    met(pair, back[0], there[1]);
    return child;
}

static void ended_well(pid_t child) {
    int status;
    EXPECT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static unsigned char shared[LONGEST], mine[LONGEST];

static void answers(struct pair *pair) {
    struct work work = {pair->a, 1};
    struct fid_mr *mr;
    fill(shared, LONGEST, 21);
    EXPECT(fi_mr_reg(pair->domain, shared, LONGEST, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 3, 0, &mr, NULL), 0);
    both_ways(&work);
    EXPECT(fi_tinject(pair->a.ep, "r", 1, pair->a.peer, 2), 0);
    EXPECT(next(&pair->a).data, 99);
    fill(mine, LONGEST, 22);
    CHECK(memcmp(shared, mine, LONGEST) == 0);
}

void case_processes(void) {
    struct pair pair = {0};
    pid_t child = started(answers, &pair);
    struct work work = {pair.a, 1};
    both_ways(&work);
    EXPECT(fi_trecv(pair.a.ep, mine, 1, NULL, FI_ADDR_UNSPEC, 2, 0, NULL), 0);
    EXPECT(next(&pair.a).len, 1);
    EXPECT(fi_read(pair.a.ep, mine, LONGEST, NULL, pair.a.peer, 0, 3, NULL), 0);
    EXPECT(next(&pair.a).flags, FI_RMA | FI_READ);
    fill(shared, LONGEST, 21);
    CHECK(memcmp(shared, mine, LONGEST) == 0);
    fill(mine, LONGEST, 22);
    EXPECT(fi_writedata(pair.a.ep, mine, LONGEST, NULL, 99, pair.a.peer, 0, 3, NULL), 0);
    ended_well(child);
    close_pair(&pair);
}

static void says_and_ends(struct pair *pair) {
    for (uint64_t number = 0; number < 10; number++) EXPECT(fi_tinject(pair->a.ep, &number, 8, pair->a.peer, 1), 0);
    EXPECT(fi_tsend(pair->a.ep, mine, 1000, NULL, pair->a.peer, 2, NULL), 0);
    close_side(&pair->a);
}

static void is_killed(struct pair *pair) {
    EXPECT(fi_tinject(pair->a.ep, "x", 1, pair->a.peer, 1), 0);
    pause();
}

/* Short messages of a process that has ended arrive. A process that is killed is an error, and nobody waits for it. */
void case_ends(void) {
    struct pair pair = {0};
    uint64_t value;
    pid_t child = started(says_and_ends, &pair);
    ended_well(child);
    for (uint64_t number = 0; number < 10; number++) {
        EXPECT(fi_trecv(pair.a.ep, &value, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
        EXPECT(next(&pair.a).len, 8);
        EXPECT(value, number);
    }
    /* The bytes of a longer one ended with its sender: this is no message of zeros. */
    EXPECT(fi_trecv(pair.a.ep, mine, 1000, NULL, FI_ADDR_UNSPEC, 2, 0, NULL), 0);
    EXPECT(next_error(&pair.a).err, FI_EHOSTUNREACH);
    EXPECT(fi_send(pair.a.ep, "x", 1, NULL, pair.a.peer, NULL), -FI_EHOSTUNREACH);
    close_pair(&pair);
    child = started(is_killed, &pair);
    EXPECT(fi_trecv(pair.a.ep, &value, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
    EXPECT(next(&pair.a).len, 1);
    EXPECT(fi_tsend(pair.a.ep, mine, LONGEST, NULL, pair.a.peer, 1, &value), 0);
    EXPECT(kill(child, SIGKILL), 0);
    EXPECT(waitpid(child, NULL, 0), child);
    struct fi_cq_err_entry error = next_error(&pair.a);
    CHECK(error.err == FI_EHOSTUNREACH && error.op_context == &value);
    ssize_t result;
    int turn = 0;
    while ((result = fi_tinject(pair.a.ep, "x", 1, pair.a.peer, 1)) == 0 && turn < 1 << 20) turn++;
    EXPECT(result, -FI_EHOSTUNREACH);
    close_pair(&pair);
}
