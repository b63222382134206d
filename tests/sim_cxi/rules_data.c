/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about messages, writes with notice, sizes, queues and what the variables change. */
#include "rules.h"

static const struct wish plain = { 0 };

static void receive(struct end *e, size_t length) {
	SAME(fi_recv(e->ep, e->area, length, NULL, FI_ADDR_UNSPEC, NULL), 0);
}

static void inject_size(void) {
	struct iovec iov;
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1 };
	struct end a, b;

	open_pair(&a, &b, &plain, 1);
	SAME(fi_inject(a.ep, a.area, 193, a.peer), -FI_EMSGSIZE);
	SAME(fi_inject_write(a.ep, a.area, 193, a.peer, 0, 1), -FI_EMSGSIZE);
	iov = (struct iovec) { .iov_base = a.area, .iov_len = 193 };
	m.addr = a.peer;
	SAME(fi_sendmsg(a.ep, &m, FI_INJECT), -FI_EMSGSIZE);
	/* 192 go, and the buffer is free at once */
	receive(&b, AREA);
	memset(a.area, 7, 192);
	SAME(fi_inject(a.ep, a.area, 192, a.peer), 0);
	memset(a.area, 8, 192);
	SAME(done(&b, &a), 0);
	SAME(b.area[191], 7);
	receive(&b, AREA);
	iov.iov_len = 192;
	m.context = &iov;
	SAME(fi_sendmsg(a.ep, &m, FI_INJECT), 0);
	memset(a.area, 9, 192);
	SAME(done(&b, &a), 0);
	SAME(b.area[0], 8);
	{
		struct fi_cq_tagged_entry entry;

		/* the one completion is of the message that had a context */
		SAME(completion(&a, &b, &entry, NULL), 0);
		CHECK(entry.op_context == &iov);
		SAME(fi_cq_read(a.cq, &entry, 1), -FI_EAGAIN);
	}
	SAME(fi_inject_write(a.ep, a.area, 192, a.peer, 1000, 1), 0);
	memset(a.area, 3, 192);
	SAME(write_to(&a, &b, 2000, 8, 1), 0);
	SAME(b.area[1191], 9);
	close_pair(&a, &b);
}

static void message_size(void) {
	struct end a, b;

	open_pair(&a, &b, &plain, 1);
	SAME(fi_send(a.ep, a.area, 4294967296, NULL, a.peer, NULL), -FI_EMSGSIZE);
	SAME(fi_write(a.ep, a.area, 4294967296, NULL, a.peer, 0, 1, NULL), -FI_EMSGSIZE);
	SAME(fi_read(a.ep, a.area, 4294967296, NULL, a.peer, 0, 1, NULL), -FI_EMSGSIZE);
	receive(&b, AREA);
	memset(a.area, 0x33, AREA);
	SAME(fi_send(a.ep, a.area, AREA, NULL, a.peer, NULL), 0);
	SAME(done(&b, &a), 0);
	SAME(done(&a, &b), 0);
	SAME(b.area[AREA - 1], 0x33);
	close_pair(&a, &b);
}

static void one_buffer(void) {
	struct iovec iov[2];
	struct end a, b;

	open_pair(&a, &b, &plain, 1);
	iov[0] = iov[1] = (struct iovec) { .iov_base = a.area, .iov_len = 4 };
	SAME(fi_sendv(a.ep, iov, NULL, 2, a.peer, NULL), -FI_EINVAL);
	SAME(fi_writev(a.ep, iov, NULL, 2, a.peer, 0, 1, NULL), -FI_EINVAL);
	SAME(fi_recvv(b.ep, iov, NULL, 2, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
	SAME(fi_writev(a.ep, iov, NULL, 1, a.peer, 0, 1, NULL), 0);
	SAME(done(&a, &b), 0);
	close_pair(&a, &b);
}

static void tagged(void) {
	const struct wish w = { .caps = FI_TAGGED };
	struct fi_cq_tagged_entry entry;
	struct end a, b;

	open_pair(&a, &b, &w, UINT64_MAX);
	SAME(fi_send(a.ep, a.area, 8, NULL, a.peer, NULL), -FI_ENOSYS);         /* FI_MSG was not asked for */
	SAME(fi_trecv(b.ep, b.area, 64, NULL, FI_ADDR_UNSPEC, 42, 0, NULL), 0);
	SAME(fi_tsenddata(a.ep, a.area, 8, NULL, 0x1122334455667788, a.peer, 42, NULL), 0);
	SAME(completion(&b, &a, &entry, NULL), 0);
	SAME(entry.tag, 42);
	SAME(entry.data, 0x1122334455667788);
	close_pair(&a, &b);
}

static void strangers(void) {
	const struct cxi_auth_key key = { .svc_id = 1, .vni = 77 };
	const struct wish other = { .key = &key, .device = "sim_cxi1" };
	struct cxi_addr nobody = { .nic = 0x999, .pid = 1 };
	struct fi_cq_err_entry error;
	struct end a, b, c;
	fi_addr_t to;

	open_pair(&a, &b, &plain, 1);
	SAME(open_end(&c, &other), 0);
	enable_end(&c);
	/* nobody has that PID on the NIC, in our VNI */
	nobody.nic = b.name.nic;
	nobody.pid = 499;
	SAME(fi_av_insert(a.av, &nobody, 1, &to, 0, NULL), 1);
	SAME(fi_send(a.ep, a.area, 8, NULL, to, &nobody), 0);
	SAME(completion(&a, &b, NULL, &error), FI_EIO);
	CHECK(error.op_context == &nobody);
	SAME(fi_send(a.ep, a.area, 8, NULL, 4711, NULL), -FI_EINVAL);           /* no such entry */
	close_end(&b);
	/* the NIC is there, but only in another VNI */
	SAME(fi_av_insert(a.av, &c.name, 1, &to, 0, NULL), 1);
	SAME(fi_send(a.ep, a.area, 8, NULL, to, NULL), 0);
	SAME(completion(&a, NULL, NULL, &error), FI_ENOTCONN);
	SAME(fi_write(a.ep, a.area, 8, NULL, to, 0, 1, NULL), 0);
	SAME(completion(&a, NULL, NULL, &error), FI_ENOTCONN);
	/* no such NIC */
	nobody.nic = 0x999;
	SAME(fi_av_insert(a.av, &nobody, 1, &to, 0, NULL), 1);
	SAME(fi_inject(a.ep, a.area, 8, to), 0);
	SAME(completion(&a, NULL, NULL, &error), FI_EHOSTUNREACH);
	CHECK(strcmp(fi_cq_strerror(a.cq, error.prov_errno, NULL, NULL, 0), "UNDELIVERABLE") == 0);
	close_pair(&a, &c);
}

static void no_notice(void) {
	struct end a, b;

	open_pair(&a, &b, &plain, 1);
	SAME(fi_writedata(a.ep, a.area, 8, NULL, 5, a.peer, 0, 1, NULL), -FI_ENOSYS);
	SAME(fi_inject_writedata(a.ep, a.area, 8, 5, a.peer, 0, 1), -FI_ENOSYS);
	SAME(write_to(&a, &b, 0, 8, 1), 0);
	close_pair(&a, &b);
}

static void notice(void) {
	const uint64_t all = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	const struct wish w = { .mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY };
	struct fi_cq_tagged_entry entry;
	struct end a, b;

	open_pair(&a, &b, &plain, 1);
	SAME(fi_writedata(a.ep, a.area, 8, NULL, 5, a.peer, 0, 1, NULL), -FI_EINVAL);           /* a client key */
	close_pair(&a, &b);
	open_pair(&a, &b, &w, UINT64_MAX);
	region(&b, 0, all, 0);
	/* its region wants no events */
	SAME(fi_writedata(a.ep, a.area, 8, NULL, 5, a.peer, 0, key_of(&b), NULL), -FI_EINVAL);
	SAME(fi_close(&b.mr->fid), 0);
	region(&b, 0, all, FI_RMA_EVENT);
	SAME(fi_writedata(a.ep, a.area, 8, NULL, 0xfedcba9876543210, a.peer, 0, key_of(&b), NULL), 0);
	SAME(completion(&b, &a, &entry, NULL), 0);
	CHECK(entry.flags & FI_REMOTE_CQ_DATA);
	CHECK(entry.data == 0xfedcba9876543210);
	SAME(done(&a, &b), 0);
	close_pair(&a, &b);
}

static ssize_t flagged(struct end *a, uint64_t key, uint64_t flags) {
	struct iovec iov = { .iov_base = a->area, .iov_len = 8 };
	struct fi_rma_iov rma = { .addr = 0, .len = 8, .key = key };
	struct fi_msg_rma m = { .msg_iov = &iov, .iov_count = 1, .addr = a->peer, .rma_iov = &rma, .rma_iov_count = 1 };

	return fi_writemsg(a->ep, &m, flags);
}

static void high_rate(void) {
	struct fid_mr *restricted;
	struct end a, b;

	open_pair(&a, &b, &plain, 1);
	restricted = b.mr;
	region(&b, 100, FI_REMOTE_WRITE, 0);
	SAME(flagged(&a, 1, FI_CXI_HRP | FI_COMPLETION), 0);
	SAME(done(&a, &b), 0);
	SAME(flagged(&a, 100, FI_CXI_HRP), 0);
	SAME(done(&a, &b), 0);
	SAME(flagged(&a, 1, FI_MULTI_RECV), -FI_EBADFLAGS);
	SAME(flagged(&a, 1, FI_DELIVERY_COMPLETE), 0);
	SAME(done(&a, &b), 0);
	SAME(fi_close(&restricted->fid), 0);
	close_pair(&a, &b);
	CHECK(reported("\"hrp_write\":1,\"hrp_ignored\":1"));
	CHECK(reported("{\"call\":\"fi_writemsg\",\"count\":1,\"flags\":[\"FI_COMPLETION\",\"FI_CXI_HRP\"]}"));
	CHECK(reported("\"fi_writemsg\":3"));
	CHECK(reported("\"refused\":{\"fi_writemsg\":1}"));
}

static void exchange(struct end *a, struct end *b, size_t length, bool inject) {
	receive(b, AREA);
	if (inject)
		SAME(fi_inject(a->ep, a->area, length, a->peer), 0);
	else {
		SAME(fi_send(a->ep, a->area, length, NULL, a->peer, NULL), 0);
		SAME(done(a, b), 0);
	}
	SAME(done(b, a), 0);
}

static void immediate(void) {
	struct end a, b;

	open_pair(&a, &b, &plain, 1);
	exchange(&a, &b, 192, false);
	exchange(&a, &b, 193, false);
	SAME(write_to(&a, &b, 0, 224, 1), 0);   /* restricted ones carry more */
	SAME(write_to(&a, &b, 0, 225, 1), 0);
	close_pair(&a, &b);
	CHECK(reported("\"modelled\":{\"idc_message\":1,\"idc_rma\":1,\"dma_message_eager\":1,\"dma_write\":1,"
		       "\"restricted_write\":2}"));
	CHECK(reported("\"calls\":{\"fi_recv\":2,\"fi_send\":2,\"fi_write\":2,"));
}

static void no_immediate(void) {
	struct end a, b;

	open_pair(&a, &b, &plain, 1);
	exchange(&a, &b, 8, false);
	SAME(write_to(&a, &b, 0, 8, 1), 0);
	exchange(&a, &b, 8, true);              /* the variables are about what is not injected */
	close_pair(&a, &b);
	CHECK(reported("\"modelled\":{\"idc_message\":1,\"dma_message_eager\":1,\"dma_write\":1,"
		       "\"restricted_write\":1}"));
	CHECK(reported("\"fi_inject\":1"));
}

static void rendezvous(void) {
	struct end a, b;

	open_pair(&a, &b, &plain, 1);
	exchange(&a, &b, 192, false);
	exchange(&a, &b, 193, false);
	close_pair(&a, &b);
	CHECK(reported("\"modelled\":{\"dma_message_eager\":1,\"dma_message_rendezvous\":1}"));
}

static void sleeping(void) {
	const struct wish w = { .wait = FI_WAIT_FD };
	struct end a, b;
	struct fid *fid;
	struct pollfd p = { .events = POLLIN };

	open_pair(&a, &b, &w, 1);
	SAME(fi_control(&b.cq->fid, FI_GETWAIT, &p.fd), 0);
	receive(&b, AREA);
	fid = &b.cq->fid;
	SAME(fi_send(a.ep, a.area, 8, NULL, a.peer, NULL), 0);
	for (;;) {
		struct fi_cq_tagged_entry entry;

		(void) fi_cq_read(a.cq, &entry, 1);
		if (fi_cq_read(b.cq, &entry, 1) == 1)
			break;
		if (fi_trywait(b.fabric, &fid, 1) == 0)
			(void) poll(&p, 1, 100);
	}
	/* an error of the simulation is nothing to sleep over */
	SAME(fi_write(a.ep, a.area, 8, NULL, a.peer, 0, 55, NULL), 0);
	fid = &a.cq->fid;
	SAME(fi_trywait(a.fabric, &fid, 1), -FI_EAGAIN);
	SAME(done(&a, &b), FI_EIO);
	close_pair(&a, &b);
}

static void sleepless(void) {
	struct fi_cq_attr fd = { .size = 16, .wait_obj = FI_WAIT_FD }, none = { .size = 16, .wait_obj = FI_WAIT_NONE };
	struct fi_cq_entry entry;
	struct fid_cq *cq;
	struct end e;

	SAME(open_end(&e, &plain), 0);
	SAME(fi_cq_open(e.domain, &fd, &cq, NULL), -FI_ENOSYS);
	SAME(fi_cq_open(e.domain, &none, &cq, NULL), 0);
	SAME(fi_cq_sread(cq, &entry, 1, NULL, 0), -FI_ENOSYS);
	SAME(fi_close(&cq->fid), 0);
	close_end(&e);
}

/* The address travels as a program would send it: as the bytes of fi_getname(). */
static void swap_names(struct end *e, int in, int out) {
	SAME(write(out, &e->name, sizeof(e->name)), sizeof(e->name));
	struct cxi_addr other;

	SAME(read(in, &other, sizeof(other)), sizeof(other));
	SAME(fi_av_insert(e->av, &other, 1, &e->peer, 0, NULL), 1);
}

static void one_process(bool server, int in, int out) {
	const struct wish w = { .device = server ? "sim_cxi0" : "sim_cxi1" };
	const uint64_t all = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct end e;

	SAME(open_end(&e, &w), 0);
	enable_end(&e);
	region(&e, 1, all, 0);
	memset(e.area, server ? 0x11 : 0x22, 64);
	SAME(fi_recv(e.ep, e.area + 4096, 64, NULL, FI_ADDR_UNSPEC, NULL), 0);
	swap_names(&e, in, out);
	if (!server) {
		SAME(fi_write(e.ep, e.area, 64, NULL, e.peer, 1024, 1, NULL), 0);
		SAME(done(&e, NULL), 0);
		SAME(fi_read(e.ep, e.area + 512, 64, NULL, e.peer, 0, 1, NULL), 0);
		SAME(done(&e, NULL), 0);
		SAME(e.area[575], 0x11);
		SAME(fi_send(e.ep, e.area, 64, NULL, e.peer, NULL), 0);
		SAME(done(&e, NULL), 0);
		SAME(done(&e, NULL), 0);        /* the answer */
		SAME(e.area[4096], 0x33);
	} else {
		SAME(done(&e, NULL), 0);
		SAME(e.area[1024 + 63], 0x22);
		SAME(e.area[4096 + 63], 0x22);
		memset(e.area, 0x33, 64);
		SAME(fi_send(e.ep, e.area, 64, NULL, e.peer, NULL), 0);
		SAME(done(&e, NULL), 0);
		/* until the other has closed: its last completion may need our answer */
		for (struct pollfd p = { .fd = in, .events = POLLIN }; poll(&p, 1, 1) == 0;)
			(void) drive();
	}
	(void) close(out);
	close_end(&e);
}

static void two_processes(void) {
	int there[2], back[2], status;
	pid_t child;

	SAME(pipe(there), 0);
	SAME(pipe(back), 0);
	child = fork();
	if (child == 0) {
		(void) alarm(60); /* fork() does not pass it on */
		(void) close(there[1]);
		(void) close(back[0]);
		one_process(true, there[0], back[1]);
		exit(0);
	}
	(void) close(there[0]);
	(void) close(back[1]);
	one_process(false, back[0], there[1]);
	SAME(waitpid(child, &status, 0), child);
	SAME(status, 0);
}

#define NO_IDC "FI_CXI_DISABLE_NON_INJECT_MSG_IDC=1", "FI_CXI_DISABLE_NON_INJECT_RMA_IDC=1"

const struct rule rules_data[] = {
	{ "send, write and read between two processes", two_processes, { 0 } },
	{ "at most 192 bytes are injected, and their buffer is free at once", inject_size, { 0 } },
	{ "messages end at 4 GiB - 1", message_size, { 0 } },
	{ "one buffer a call", one_buffer, { 0 } },
	{ "tagged messages with data; plain ones only where FI_MSG was asked for", tagged, { 0 } },
	{ "another VNI, PID or NIC that is not there: error completions, each its own", strangers, { 0 } },
	{ "writes carry no notice: fi_writedata() is not there", no_notice, { 0 } },
	{ "writes with notice, where they are: provider keys whose region wants events", notice,
	  { "SIM_CXI_WRITEDATA=1" } },
	{ "high-rate puts: for restricted writes; unknown flags are refused", high_rate, { REPORT } },
	{ "immediate commands: 192 bytes of a message, 224 of a restricted write; calls are counted", immediate,
	  { REPORT } },
	{ "immediate commands: FI_CXI_DISABLE_NON_INJECT_*_IDC", no_immediate, { REPORT, NO_IDC } },
	{ "rendezvous begins above FI_CXI_RDZV_THRESHOLD, which is at least 192", rendezvous,
	  { REPORT, NO_IDC, "FI_CXI_RDZV_THRESHOLD=8", "FI_CXI_RDZV_GET_MIN=0" } },
	{ "wait objects: a file descriptor", sleeping, { 0 } },
	{ "wait objects: none, as in older releases", sleepless, { "SIM_CXI_WAIT=0" } },
	{ NULL, NULL, { 0 } },
};
