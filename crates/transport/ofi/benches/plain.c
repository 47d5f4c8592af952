/* Ping-pong in plain C, with the calls that the message layer makes: what the provider gives at its best.
 * Arguments: provider, interface or "-", bytes, round trips, and perhaps the core of each side.
 * Prints nanoseconds of one way: the mean of all, and the median of the means of batches. */
#define _GNU_SOURCE
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RECEIVES = 64, SLOTS = 64, BATCHES = 50 };

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *vector;
static struct fid_cq *queue;
static struct fid_ep *endpoint;
static fi_addr_t peer;
static char *receives, *slots;
static struct fi_context2 receive_contexts[RECEIVES], slot_contexts[SLOTS];
static size_t bytes;
static long sent, completed, received;
static int injects;

static void must(const char *what, long result)
{
	if (result < 0) {
		fprintf(stderr, "%s: %s\n", what, fi_strerror((int) -result));
		exit(1);
	}
}

static void post(int index)
{
	must("fi_trecv", fi_trecv(endpoint, receives + index * bytes, bytes, NULL, FI_ADDR_UNSPEC, 0, ~0ULL >> 1,
				  &receive_contexts[index]));
}

static void open_endpoint(const char *provider, const char *interface, int other)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av = { 0 };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE };
	char name[512], theirs[512];
	size_t length = sizeof(name);

	hints->caps = FI_TAGGED | FI_SEND | FI_RECV;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(provider);
	must("fi_getinfo", fi_getinfo(FI_VERSION(1, 14), interface, NULL, interface ? FI_SOURCE : 0, hints, &info));
	must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	must("fi_domain", fi_domain(fabric, info, &domain, NULL));
	av.type = info->domain_attr->av_type;
	must("fi_av_open", fi_av_open(domain, &av, &vector, NULL));
	cq.size = info->tx_attr->size + info->rx_attr->size;
	must("fi_cq_open", fi_cq_open(domain, &cq, &queue, NULL));
	must("fi_endpoint", fi_endpoint(domain, info, &endpoint, NULL));
	must("fi_ep_bind", fi_ep_bind(endpoint, &vector->fid, 0));
	must("fi_ep_bind", fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(endpoint));
	must("fi_getname", fi_getname(&endpoint->fid, name, &length));
	if (write(other, name, sizeof(name)) != sizeof(name) || read(other, theirs, sizeof(theirs)) != sizeof(theirs))
		exit(1);
	must("fi_av_insert", fi_av_insert(vector, theirs, 1, &peer, 0, NULL) - 1);
	receives = calloc(RECEIVES, bytes);
	slots = calloc(SLOTS, bytes);
	for (int index = 0; index < RECEIVES; index++)
		post(index);
}

static void poll_queue(void)
{
	struct fi_cq_tagged_entry done[16];
	ssize_t count = fi_cq_read(queue, done, 16);

	if (count < 0 && count != -FI_EAGAIN)
		must("fi_cq_read", count);
	for (ssize_t index = 0; index < count; index++) {
		struct fi_context2 *context = done[index].op_context;

		if (context >= receive_contexts && context < receive_contexts + RECEIVES) {
			post((int) (context - receive_contexts));
			received++;
		} else {
			completed++;
		}
	}
}

static void send_one(const char *message)
{
	ssize_t result;
	int slot = sent % SLOTS;

	do {
		if (injects && bytes <= info->tx_attr->inject_size) {
			result = fi_tinject(endpoint, message, bytes, peer, 1);
		} else {
			memcpy(slots + slot * bytes, message, bytes);
			result = fi_tsend(endpoint, slots + slot * bytes, bytes, NULL, peer, 1, &slot_contexts[slot]);
		}
		if (result == -FI_EAGAIN)
			poll_queue();
	} while (result == -FI_EAGAIN);
	must("fi_tsend", result);
	sent++;
}

static void play(long trips, int first, const char *message)
{
	for (long trip = 0; trip < trips; trip++) {
		long before = received;

		if (first)
			send_one(message);
		while (received == before)
			poll_queue();
		if (!first)
			send_one(message);
	}
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static void pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("sched_setaffinity");
		exit(1);
	}
}

static int compare(const void *first, const void *second)
{
	double a = *(const double *) first, b = *(const double *) second;

	return (a > b) - (a < b);
}

int main(int count, char **arguments)
{
	int pair[2], child;
	long trips;
	const char *interface;
	char *message;
	double start, sum = 0, batches[BATCHES];

	if ((count != 5 && count != 7) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 2;
	interface = strcmp(arguments[2], "-") ? arguments[2] : NULL;
	injects = !strcmp(arguments[1], "shm");
	bytes = strtoul(arguments[3], NULL, 10);
	trips = strtol(arguments[4], NULL, 10) / BATCHES + 1;
	message = calloc(1, bytes);
	child = fork();
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* it would wait for good */
	if (count == 7)
		pin(atoi(arguments[child ? 5 : 6]));
	open_endpoint(arguments[1], interface, pair[child == 0]);
	play(trips * BATCHES / 10 + 1, child != 0, message);
	for (int batch = 0; batch < BATCHES; batch++) {
		start = now();
		play(trips, child != 0, message);
		batches[batch] = (now() - start) / trips / 2;
		sum += batches[batch];
	}
	qsort(batches, BATCHES, sizeof(*batches), compare);
	if (child)
		printf("%.1f %.1f\n", sum / BATCHES, batches[BATCHES / 2]);
	/* What is still on the way leaves before the end. */
	for (int again = 0; again < 1000; again++)
		poll_queue();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	fi_close(&endpoint->fid);
	fi_close(&queue->fid);
	fi_close(&vector->fid);
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	return 0;
}
