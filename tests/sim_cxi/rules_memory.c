/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about memory regions. */
#include "rules.h"

static const struct wish plain = { 0 };
static const struct wish provider_keys = { .mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY };

static void bound_and_enabled(void) {
	struct end a, b, other;
	struct fid_mr *mr;

	open_pair(&a, &b, &plain, UINT64_MAX);
	SAME(fi_mr_reg(b.domain, b.area, AREA, FI_REMOTE_WRITE, 0, 7, 0, &b.mr, NULL), 0);
	SAME(write_to(&a, &b, 0, 8, 7), FI_EIO);                /* registered only */
	SAME(fi_mr_enable(b.mr), -FI_EINVAL);                   /* not bound */
	SAME(fi_mr_bind(b.mr, &a.ep->fid, 0), -FI_EINVAL);      /* to an endpoint of another domain */
	SAME(fi_mr_bind(b.mr, &b.ep->fid, 0), 0);
	SAME(write_to(&a, &b, 0, 8, 7), FI_EIO);                /* bound only */
	SAME(fi_mr_enable(b.mr), 0);
	memset(a.area, 0x5a, 8);
	SAME(write_to(&a, &b, 16, 8, 7), 0);
	CHECK(memcmp(a.area, b.area + 16, 8) == 0);
	SAME(fi_mr_bind(b.mr, &b.ep->fid, 0), -FI_EINVAL);      /* twice */
	SAME(fi_close(&b.ep->fid), -FI_EBUSY);                  /* its region goes first */
	/* enabled before its endpoint is */
	SAME(open_end(&other, &plain), 0);
	SAME(fi_mr_reg(other.domain, other.area, AREA, FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL), 0);
	SAME(fi_mr_bind(mr, &other.ep->fid, 0), 0);
	SAME(fi_mr_enable(mr), -FI_EOPBADSTATE);
	SAME(fi_close(&mr->fid), 0);
	close_end(&other);
	/* closed: gone */
	SAME(fi_close(&b.mr->fid), 0);
	b.mr = NULL;
	SAME(write_to(&a, &b, 0, 8, 7), FI_EIO);
	close_pair(&a, &b);
}

static void allocated(void) {
	size_t page = (size_t) sysconf(_SC_PAGESIZE);
	uint8_t *hole = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fid_mr *mr;
	struct end e;

	CHECK(hole != MAP_FAILED);
	SAME(open_end(&e, &plain), 0);
	SAME(fi_mr_reg(e.domain, hole, 2 * page, FI_REMOTE_READ, 0, 1, 0, &mr, NULL), 0);
	SAME(fi_close(&mr->fid), 0);
	SAME(munmap(hole + page, page), 0);
	SAME(fi_mr_reg(e.domain, hole, 2 * page, FI_REMOTE_READ, 0, 1, 0, &mr, NULL), -FI_EFAULT);
	close_end(&e);
}

static void offsets(void) {
	struct fi_cq_err_entry error;
	char text[64];
	struct end a, b;

	open_pair(&a, &b, &plain, 3);
	memset(a.area, 1, 64);
	SAME(write_to(&a, &b, 0, 64, 3), 0);
	SAME(b.area[0], 1);
	SAME(write_to(&a, &b, AREA - 64, 64, 3), 0);
	SAME(b.area[AREA - 1], 1);
	SAME(fi_write(a.ep, a.area, 64, NULL, a.peer, (uint64_t) (uintptr_t) b.area, 3, &a), 0);
	SAME(completion(&a, &b, NULL, &error), FI_EIO);
	CHECK(error.op_context == &a);
	CHECK(strstr(fi_cq_strerror(a.cq, error.prov_errno, NULL, text, sizeof(text)), "outside") != NULL);
	SAME(write_to(&a, &b, AREA - 63, 64, 3), FI_EIO);
	SAME(write_to(&a, &b, UINT64_MAX - 7, 64, 3), FI_EIO);
	close_pair(&a, &b);
}

static void rights(void) {
	struct end a, b;

	open_pair(&a, &b, &plain, UINT64_MAX);
	region(&b, 4, FI_REMOTE_READ, 0);
	SAME(write_to(&a, &b, 0, 8, 4), FI_EIO);
	SAME(fi_read(a.ep, a.area, 8, NULL, a.peer, 0, 4, NULL), 0);
	SAME(done(&a, &b), 0);
	SAME(fi_close(&b.mr->fid), 0);
	region(&b, 4, FI_REMOTE_WRITE, 0);
	SAME(fi_read(a.ep, a.area, 8, NULL, a.peer, 0, 4, NULL), 0);
	SAME(done(&a, &b), FI_EIO);
	SAME(write_to(&a, &b, 0, 8, 4), 0);
	close_pair(&a, &b);
}

static void client_keys(void) {
	struct fid_mr *mr, *second;
	struct end a, b;

	open_pair(&a, &b, &plain, UINT64_MAX);
	SAME(fi_mr_reg(b.domain, b.area, AREA, FI_REMOTE_WRITE, 0, 1ull << 32, 0, &mr, NULL), -FI_EKEYREJECTED);
	SAME(fi_mr_reg(b.domain, b.area, AREA, FI_REMOTE_WRITE, 0, UINT32_MAX, 0, &mr, NULL), 0);
	SAME(fi_mr_key(mr), UINT32_MAX);
	SAME(fi_mr_reg(b.domain, b.area, AREA, FI_REMOTE_WRITE, 0, UINT32_MAX, 0, &second, NULL), -FI_ENOKEY);
	SAME(fi_close(&mr->fid), 0);
	SAME(fi_write(a.ep, a.area, 8, NULL, a.peer, 0, 1ull << 32, NULL), -FI_EKEYREJECTED);
	SAME(write_to(&a, &b, 0, 8, 99), FI_EIO);       /* nobody's */
	region(&b, 99, FI_REMOTE_WRITE, 0);
	SAME(write_to(&a, &b, 0, 8, 99), 0);
	close_pair(&a, &b);
}

static void provider_mode(void) {
	struct end a, b;

	open_pair(&a, &b, &provider_keys, UINT64_MAX);
	SAME(fi_mr_reg(b.domain, b.area, AREA, FI_REMOTE_WRITE, 0, 5, 0, &b.mr, NULL), 0);
	SAME(fi_mr_key(b.mr), FI_KEY_NOTAVAIL);
	SAME(fi_mr_bind(b.mr, &b.ep->fid, 0), 0);
	SAME(fi_mr_enable(b.mr), 0);
	CHECK(key_of(&b) != 5 && key_of(&b) != FI_KEY_NOTAVAIL && key_of(&b) >> 63);
	SAME(write_to(&a, &b, 0, 8, 5), FI_EIO);
	memset(a.area, 9, 8);
	SAME(write_to(&a, &b, 0, 8, key_of(&b)), 0);
	SAME(b.area[7], 9);
	close_pair(&a, &b);
	CHECK(reported("\"restricted_write\":1"));
}

/* One write with this order and key: restricted or not, by the report. */
static void kind_of_write(const struct wish *w, uint64_t key, uint64_t flags, const char *expected) {
	const uint64_t all = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct end a, b;

	open_pair(&a, &b, w, UINT64_MAX);
	region(&b, key, all, flags);
	SAME(write_to(&a, &b, 0, 8, key_of(&b)), 0);
	close_pair(&a, &b);
	CHECK(reported(expected));
}

static void restricted(void) { kind_of_write(&plain, 99, 0, "\"restricted_write\":1"); }
static void unrestricted(void) { kind_of_write(&plain, 100, 0, "\"unrestricted_write\":1"); }
static void standard_regions(void) { kind_of_write(&plain, 1, 0, "\"unrestricted_write\":1"); }
static void with_events(void) { kind_of_write(&plain, 1, FI_RMA_EVENT, "\"unrestricted_write\":1"); }
static void provider_events(void) { kind_of_write(&provider_keys, 1, FI_RMA_EVENT, "\"unrestricted_write\":1"); }

static void ordered(void) {
	const struct wish w = { .order = FI_ORDER_RMA_WAW };

	kind_of_write(&w, 1, 0, "\"unrestricted_write\":1");
}

/* Two writes to one place: which value stays? */
static int last_of_two(const struct wish *w, uint64_t key, uint64_t flags) {
	struct end a, b;
	int value;

	open_pair(&a, &b, w, key);
	/* connects the inner endpoints: a second write that has to wait for that would let the first one go */
	SAME(write_to(&a, &b, 0, 8, key), 0);
	for (int n = 0; n < 2; n++) {
		struct iovec iov = { .iov_base = a.area + n, .iov_len = 1 };
		struct fi_rma_iov rma = { .addr = 40, .len = 1, .key = key };
		struct fi_msg_rma m = { .msg_iov = &iov, .iov_count = 1, .addr = a.peer, .rma_iov = &rma,
					.rma_iov_count = 1 };

		a.area[n] = (uint8_t) (n + 1);
		SAME(fi_writemsg(a.ep, &m, flags), 0);
	}
	SAME(done(&a, &b), 0);
	SAME(done(&a, &b), 0);
	value = b.area[40];
	close_pair(&a, &b);
	return value;
}

static void write_order(void) {
	const struct wish w = { .order = FI_ORDER_RMA_WAW };

	SAME(last_of_two(&plain, 1, 0), 1);             /* the second has overtaken the first */
	SAME(last_of_two(&w, 1, 0), 2);
	SAME(last_of_two(&plain, 100, 0), 2);
	SAME(last_of_two(&plain, 1, FI_FENCE), 2);
}

const struct rule rules_memory[] = {
	{ "regions: bound to the endpoint and enabled before use, closed before it", bound_and_enabled, { 0 } },
	{ "regions: memory that is not there cannot be registered (FI_MR_ALLOCATED)", allocated, { 0 } },
	{ "regions: offsets count from their start, and stay inside", offsets, { 0 } },
	{ "regions: what their access does not allow fails", rights, { 0 } },
	{ "client keys: 32 bits, each once", client_keys, { 0 } },
	{ "provider keys: known when enabled, and only these reach the region", provider_mode, { REPORT } },
	{ "writes to a client key below 100 are restricted", restricted, { REPORT } },
	{ "writes to a client key from 100 up are unrestricted", unrestricted, { REPORT } },
	{ "writes are unrestricted with FI_CXI_OPTIMIZED_MRS=0", standard_regions,
	  { REPORT, "FI_CXI_OPTIMIZED_MRS=0" } },
	{ "writes to a region that wants events are unrestricted", with_events, { REPORT } },
	{ "writes to a provider key that wants events are unrestricted", provider_events, { REPORT } },
	{ "writes are unrestricted with FI_ORDER_RMA_WAW", ordered, { REPORT } },
	{ "restricted writes overtake each other; ordered, standard and fenced ones do not", write_order,
	  { "SIM_CXI_REORDER=1" } },
	{ NULL, NULL, { 0 } },
};
