/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules [PATTERN]: breaks each rule of the simulated provider by raw libfabric calls,
 * and shows the good case beside it. TAP on standard output; with a pattern, only tests whose name contains it.
 */
#include "rules.h"

#include <libgen.h>
#include <limits.h>

/* Longer than a test may take on a busy machine; what hangs is killed, and fails. */
enum { LIMIT_S = 60 };

void check(bool ok, const char *what, const char *file, int line) {
	if (ok)
		return;
	(void) fprintf(stderr, "# %s:%d: %s does not hold\n", file, line, what);
	exit(1);
}

void same(long long value, long long expected, const char *what, const char *file, int line) {
	if (value == expected)
		return;
	(void) fprintf(stderr, "# %s:%d: %s is %lld (%s), expected %lld (%s)\n", file, line, what, value, value < 0
		       ? fi_strerror((int) -value) : "", expected, expected < 0 ? fi_strerror((int) -expected) : "");
	exit(1);
}

static struct end *ends[8];

bool drive(void) {
	/* zero entries: nothing is taken */
	for (size_t i = 0; i < ELEMENTSOF(ends); i++)
		if (ends[i] && ends[i]->cq)
			(void) fi_cq_read(ends[i]->cq, NULL, 0);
	return true;
}

static void remember(struct end *e, bool there) {
	for (size_t i = 0; i < ELEMENTSOF(ends); i++)
		if (ends[i] == (there ? NULL : e)) {
			ends[i] = there ? e : NULL;
			return;
		}
}

struct fi_info *hints_of(const struct wish *w) {
	struct fi_info *h = fi_allocinfo();

	CHECK(h != NULL);
	h->caps = w->caps ? w->caps : FI_MSG | FI_RMA | FI_ATOMIC;
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->ep_attr->type = FI_EP_RDM;
	h->domain_attr->mr_mode = w->mr_mode ? w->mr_mode : FI_MR_ENDPOINT | FI_MR_ALLOCATED;
	h->domain_attr->name = w->device ? strdup(w->device) : NULL;
	h->domain_attr->tclass = w->tclass;
	h->tx_attr->msg_order = h->rx_attr->msg_order = w->order;
	h->tx_attr->op_flags = w->op_flags;
	h->tx_attr->size = h->rx_attr->size = 64; /* ofi_rxm has a buffer for each */
	h->fabric_attr->prov_name = strdup("cxi");
	if (w->key) {
		h->domain_attr->auth_key = malloc(sizeof(*w->key));
		memcpy(h->domain_attr->auth_key, w->key, sizeof(*w->key));
		h->domain_attr->auth_key_size = sizeof(*w->key);
	}
	return h;
}

int info_of(const struct wish *w, struct fi_info **ret) {
	struct fi_info *h = hints_of(w);
	int r = fi_getinfo(FI_VERSION(1, 15), w->pid ? (w->device ? w->device : "cxi0") : NULL, w->pid,
			   w->pid ? FI_SOURCE : 0, h, ret);

	fi_freeinfo(h);
	return r;
}

int open_end(struct end *e, const struct wish *w) {
	struct fi_cq_attr cq = { .size = 1024, .format = FI_CQ_FORMAT_TAGGED,
				 .wait_obj = w->wait ? w->wait : FI_WAIT_NONE };
	struct fi_av_attr av = { .type = FI_AV_TABLE, .count = 4 };
	int r;

	*e = (struct end) { 0 };
	remember(e, true);
	SAME(info_of(w, &e->info), 0);
	SAME(fi_fabric(e->info->fabric_attr, &e->fabric, NULL), 0);
	r = fi_domain(e->fabric, e->info, &e->domain, NULL);
	if (r)
		return r;
	SAME(fi_av_open(e->domain, &av, &e->av, NULL), 0);
	SAME(fi_cq_open(e->domain, &cq, &e->cq, NULL), 0);
	SAME(fi_endpoint(e->domain, e->info, &e->ep, NULL), 0);
	SAME(fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	SAME(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	e->area = aligned_alloc(64, AREA);
	CHECK(e->area != NULL);
	memset(e->area, 0, AREA);
	return 0;
}

void enable_end(struct end *e) {
	size_t length = sizeof(e->name);

	SAME(fi_enable(e->ep), 0);
	SAME(fi_getname(&e->ep->fid, &e->name, &length), 0);
	SAME(length, sizeof(e->name));
}

void region(struct end *e, uint64_t key, uint64_t access, uint64_t flags) {
	SAME(fi_mr_reg(e->domain, e->area, AREA, access, 0, key, flags, &e->mr, NULL), 0);
	SAME(fi_mr_bind(e->mr, &e->ep->fid, 0), 0);
	SAME(fi_mr_enable(e->mr), 0);
}

void close_end(struct end *e) {
	struct fid *fids[] = {
		e->mr ? &e->mr->fid : NULL, e->ep ? &e->ep->fid : NULL, e->cq ? &e->cq->fid : NULL,
		e->av ? &e->av->fid : NULL, e->domain ? &e->domain->fid : NULL, e->fabric ? &e->fabric->fid : NULL,
	};

	remember(e, false);
	for (size_t i = 0; i < ELEMENTSOF(fids); i++)
		if (fids[i])
			SAME(fi_close(fids[i]), 0);
	fi_freeinfo(e->info);
	free(e->area);
}

void meet(struct end *a, struct end *b) {
	SAME(fi_av_insert(a->av, &b->name, 1, &a->peer, 0, NULL), 1);
	SAME(fi_av_insert(b->av, &a->name, 1, &b->peer, 0, NULL), 1);
}

void open_pair(struct end *a, struct end *b, const struct wish *w, uint64_t key) {
	const uint64_t all = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct wish wa = *w, wb = *w;

	wa.device = w->device ? w->device : "sim_cxi0";
	wb.device = w->device ? w->device : "sim_cxi1";
	SAME(open_end(a, &wa), 0);
	SAME(open_end(b, &wb), 0);
	enable_end(a);
	enable_end(b);
	if (key != UINT64_MAX) {
		region(a, key, all, 0);
		region(b, key, all, 0);
	}
	meet(a, b);
}

void close_pair(struct end *a, struct end *b) {
	close_end(a);
	close_end(b);
}

int completion(struct end *a, struct end *b, struct fi_cq_tagged_entry *ret, struct fi_cq_err_entry *error) {
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry e = { 0 };
	ssize_t n;

	for (;;) {
		n = fi_cq_read(a->cq, ret ? ret : &entry, 1);
		if (n == 1)
			return 0;
		if (n == -FI_EAVAIL) {
			SAME(fi_cq_readerr(a->cq, &e, 0), 1);
			if (error)
				*error = e;
			return e.err;
		}
		SAME(n, -FI_EAGAIN);
		if (b)
			(void) drive();
	}
}

int done(struct end *a, struct end *b) {
	return completion(a, b, NULL, NULL);
}

int write_to(struct end *a, struct end *b, uint64_t offset, size_t length, uint64_t key) {
	SAME(fi_write(a->ep, a->area, length, NULL, a->peer, offset, key, NULL), 0);
	return done(a, b);
}

uint64_t key_of(const struct end *e) {
	return fi_mr_key(e->mr);
}

bool reported(const char *text) {
	char path[64], content[8192] = { 0 };
	FILE *f;

	(void) snprintf(path, sizeof(path), "/dev/shm/sim_cxi_rules.%ld", (long) getpid());
	f = fopen(path, "re");
	CHECK(f != NULL);
	(void) fread(content, 1, sizeof(content) - 1, f);
	(void) fclose(f);
	if (!strstr(content, text)) {
		(void) fprintf(stderr, "# not in the report: %s\n# %s", text, content);
		return false;
	}
	return true;
}

/* 0 if the test passed. */
static int run(const struct rule *rule, const char *folder) {
	char report[64];
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		(void) setenv("FI_PROVIDER_PATH", folder, 1);
		/* the other providers' looking for hardware costs more than the tests */
		(void) setenv("FI_PROVIDER", "cxi,tcp,ofi_rxm", 1);
		for (size_t i = 0; i < ELEMENTSOF(rule->environment) && rule->environment[i]; i++)
			(void) putenv((char *) (uintptr_t) rule->environment[i]);
		(void) alarm(LIMIT_S);
		rule->run();
		exit(0);
	}
	(void) waitpid(child, &status, 0);
	(void) snprintf(report, sizeof(report), "/dev/shm/sim_cxi_rules.%ld", (long) child);
	(void) unlink(report);
	if (WIFSIGNALED(status))
		(void) fprintf(stderr, "# ended by signal %d\n", WTERMSIG(status));
	return status;
}

int main(int argc, char **argv) {
	static const struct rule *const parts[] = { rules_setup, rules_memory, rules_data, rules_atomics };
	char path[PATH_MAX], *folder = dirname(realpath(argv[0], path));
	unsigned number = 0, failed = 0;

	(void) setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t p = 0; p < ELEMENTSOF(parts); p++)
		for (const struct rule *r = parts[p]; r->name; r++) {
			int status;

			if (argc > 1 && !strstr(r->name, argv[1]))
				continue;
			status = run(r, folder);
			failed += status != 0;
			(void) printf("%s %u - sim_cxi: %s\n", status ? "not ok" : "ok", ++number, r->name);
		}
	(void) printf("1..%u\n", number);
	return failed > 0;
}
