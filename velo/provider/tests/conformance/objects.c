/* What is offered, objects, and address vectors. */
#include "common.h"

static int asked(struct fi_info *hints) {
    struct fi_info *info = NULL;
    int result = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
    if (info) fi_freeinfo(info);
    return result;
}

/* One wish that nobody fulfils at a time. */
#define REFUSED(wish)                                                                                           \
    do {                                                                                                        \
        struct fi_info *hints = hints_of_velo();                                                                \
        wish;                                                                                                   \
        EXPECT(asked(hints), -FI_ENODATA);                                                                      \
        fi_freeinfo(hints);                                                                                     \
    } while (0)

void case_getinfo(void) {
    struct fi_info *info, *hints = hints_of_velo();
    EXPECT(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
    CHECK(strcmp(info->fabric_attr->prov_name, "velo") == 0 && strcmp(info->fabric_attr->name, "velo") == 0);
    CHECK(strcmp(info->domain_attr->name, "velo") == 0 && info->next == NULL);
    CHECK((info->caps & (FI_MSG | FI_TAGGED | FI_RMA)) == (FI_MSG | FI_TAGGED | FI_RMA));
    EXPECT(info->ep_attr->type, FI_EP_RDM);
    EXPECT(info->domain_attr->threading, FI_THREAD_SAFE);
    EXPECT(info->tx_attr->inject_size, INJECT);
    EXPECT(info->mode, 0);
    struct fi_info *copy = fi_dupinfo(info);
    CHECK(copy != NULL && copy->caps == info->caps);
    fi_freeinfo(copy);
    /* Newer programs find it, too, and later fields of the attributes are there, and 0. */
    const unsigned char *end = (const unsigned char *)info->domain_attr + sizeof *info->domain_attr;
    for (int at = 0; at < 24; at++) EXPECT(end[at], 0);
    fi_freeinfo(info);
    EXPECT(fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, hints, &info), FI_VERSION_GE(fi_version(), FI_VERSION(1, 18)) ? 0 : -FI_ENOSYS);
    if (FI_VERSION_GE(fi_version(), FI_VERSION(1, 18))) fi_freeinfo(info);
    hints->caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV;
    EXPECT(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
    CHECK((info->caps & hints->caps) == hints->caps && !(info->caps & FI_RMA));
    fi_freeinfo(info);
    fi_freeinfo(hints);
    REFUSED(hints->caps = FI_ATOMIC);
    REFUSED(hints->caps = FI_MSG | FI_MULTI_RECV);
    REFUSED(hints->caps = FI_COLLECTIVE);
    REFUSED(hints->caps = FI_RMA | FI_RMA_EVENT);
    REFUSED(hints->ep_attr->type = FI_EP_MSG);
    REFUSED(hints->ep_attr->tx_ctx_cnt = 2);
    REFUSED(hints->ep_attr->msg_prefix_size = 8);
    REFUSED(hints->tx_attr->inject_size = INJECT + 1);
    REFUSED(hints->tx_attr->iov_limit = 5);
    REFUSED(hints->rx_attr->iov_limit = 5);
    REFUSED(hints->tx_attr->msg_order = FI_ORDER_RAW);
    REFUSED(hints->tx_attr->comp_order = FI_ORDER_STRICT);
    REFUSED(hints->tx_attr->op_flags = FI_MATCH_COMPLETE);
    REFUSED(hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE);
    REFUSED(hints->domain_attr->data_progress = FI_PROGRESS_AUTO);
    REFUSED(hints->domain_attr->cq_data_size = 16);
    REFUSED(hints->domain_attr->name = strdup("other"));
    REFUSED(hints->fabric_attr->name = strdup("other"));
    REFUSED(hints->addr_format = FI_SOCKADDR_IN);
}

void case_objects(void) {
    struct pair pair = {0};
    open_pair(&pair);
    char address[ADDRESS + 8];
    size_t length = 4;
    EXPECT(fi_getname(&pair.a.ep->fid, address, &length), -FI_ETOOSMALL);
    EXPECT(length, ADDRESS);
    length = sizeof address;
    EXPECT(fi_getname(&pair.a.ep->fid, address, &length), 0);
    EXPECT(length, ADDRESS);
    struct fid_ep *bare;
    EXPECT(fi_endpoint(pair.domain, pair.info, &bare, NULL), 0);
    EXPECT(fi_enable(bare), -FI_ENOAV);
    EXPECT(fi_ep_bind(bare, &pair.av->fid, 0), 0);
    EXPECT(fi_enable(bare), -FI_ENOCQ);
    EXPECT(fi_ep_bind(bare, &pair.domain->fid, 0), -FI_EINVAL);
    EXPECT(fi_close(&bare->fid), 0);
    struct fi_eq_attr attributes = {.wait_obj = FI_WAIT_NONE};
    struct fid_eq *events;
    EXPECT(fi_eq_open(pair.fabric, &attributes, &events, NULL), 0);
    uint32_t event;
    char entry[64];
    struct fi_eq_err_entry error = {0};
    EXPECT(fi_eq_read(events, &event, entry, sizeof entry, 0), -FI_EAGAIN);
    EXPECT(fi_eq_readerr(events, &error, 0), -FI_EAGAIN);
    EXPECT(fi_eq_sread(events, &event, entry, sizeof entry, 1, 0), -FI_EAGAIN);
    EXPECT(fi_ep_bind(pair.a.ep, &events->fid, 0), 0);
    EXPECT(fi_close(&events->fid), 0);
    struct fid *all[] = {&pair.a.cq->fid};
    EXPECT(fi_trywait(pair.fabric, all, 1), 0);
    close_pair(&pair);
    for (int turn = 0; turn < 50; turn++) {
        open_pair(&pair);
        close_pair(&pair);
    }
}

void case_addresses(void) {
    struct pair pair = {0};
    open_pair(&pair);
    char mine[2 * ADDRESS], found[ADDRESS], text[64];
    size_t length = ADDRESS;
    EXPECT(fi_getname(&pair.a.ep->fid, mine, &length), 0);
    EXPECT(fi_getname(&pair.b.ep->fid, mine + ADDRESS, &length), 0);
    fi_addr_t numbers[2] = {7, 7};
    EXPECT(fi_av_insert(pair.av, mine, 2, numbers, 0, NULL), 2);
    CHECK(numbers[0] == 2 && numbers[1] == 3);
    EXPECT(fi_av_insert(pair.av, mine, 1, NULL, 0, NULL), 1);
    EXPECT(fi_av_lookup(pair.av, numbers[1], found, &length), 0);
    CHECK(length == ADDRESS && memcmp(found, mine + ADDRESS, ADDRESS) == 0);
    length = 3;
    EXPECT(fi_av_lookup(pair.av, numbers[1], found, &length), -FI_ETOOSMALL);
    EXPECT(length, ADDRESS);
    EXPECT(fi_av_lookup(pair.av, 99, found, &length), -FI_EINVAL);
    length = sizeof text;
    CHECK(strncmp(fi_av_straddr(pair.av, mine, text, &length), "fi_velo://", 10) == 0);
    EXPECT(fi_send(pair.a.ep, "x", 1, NULL, numbers[1], NULL), 0);
    EXPECT(next(&pair.a).flags, FI_SEND | FI_MSG);
    EXPECT(fi_av_remove(pair.av, numbers, 2, 0), 0);
    EXPECT(fi_av_lookup(pair.av, numbers[1], found, &length), -FI_EINVAL);
    EXPECT(fi_send(pair.a.ep, "x", 1, NULL, numbers[1], NULL), -FI_EINVAL);
    EXPECT(fi_send(pair.a.ep, "x", 1, NULL, 99, NULL), -FI_EINVAL);
    memset(found, 0, ADDRESS);
    EXPECT(fi_av_insert(pair.av, found, 1, numbers, 0, NULL), 1);
    EXPECT(fi_send(pair.a.ep, "x", 1, NULL, numbers[0], NULL), -FI_EHOSTUNREACH);
    EXPECT(fi_av_insertsvc(pair.av, "localhost", "1", numbers, 0, NULL), -FI_ENOSYS);
    EXPECT(fi_av_insertsym(pair.av, "localhost", 1, "1", 1, numbers, 0, NULL), -FI_ENOSYS);
    struct fi_av_attr events = {.flags = FI_EVENT}, named = {.name = "shared"};
    struct fid_av *other;
    EXPECT(fi_av_open(pair.domain, &events, &other, NULL), -FI_ENOSYS);
    EXPECT(fi_av_open(pair.domain, &named, &other, NULL), -FI_ENOSYS);
    close_pair(&pair);
}
