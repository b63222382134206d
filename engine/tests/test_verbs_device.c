/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: the right device, port and GID are chosen, and whatever keeps one from being used is exit 3 with its name
 * and a remedy. Over the fake of libibverbs (fake_verbs.h): no proof of the verbs path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/verbs/verbs_sysfs.h"
#include "shell.h"
#include "verbs_pair.h"

static struct verbs_device device;

static struct job job_of(const char *name, uint32_t port, int gid_index) {
	struct job job = verbs_job(OP_SEND);

	(void) copy_string(job.device, sizeof(job.device), name);
	job.verbs.ib_port = port;
	job.verbs.gid_index = gid_index;
	return job;
}

static int open_as(const struct job *job, const char *local) {
	struct sockaddr_storage address = address_of(local);
	const struct open_arguments a = { .job = job, .role = ROLE_CLIENT, .local = &address, .peer = &address,
					  .wake_fd = -1 };

	failure_reset();
	device = (struct verbs_device) { .gid_index = 99 };
	return verbs_device_open(&a, &device);
}

static void chosen(const struct job *job, const char *local, const char *name, unsigned port, int gid_index) {
	int r = open_as(job, local);

	if (r < 0)
		fail_msg("%s", failure_text());
	assert_string_equal(device.name, name);
	assert_int_equal(device.port, port);
	assert_int_equal(device.gid_index, gid_index);
	assert_true(device.why[0] != '\0');
	verbs_device_close(&device);
	verbs_device_close(&device); /* once more does no harm */
	assert_int_equal(fake.live, 0);
}

static void refused(const struct job *job, const char *part) {
	assert_true(open_as(job, "10.0.0.1") < 0);
	assert_int_equal(failure_code(), EXIT_HOST);
	if (!strstr(failure_text(), part))
		fail_msg("'%s' does not say '%s'", failure_text(), part);
	assert_int_equal(device.gid_index, 99); /* untouched */
	assert_null(device.context);
	assert_int_equal(fake.live, 0);
}

static int setup(void **state) {
	(void) state;
	fake_reset();
	return 0;
}

static void test_the_address_that_reaches_the_peer_wins(void **state) {
	struct job any = job_of("", 0, -1);
	struct fake_device *a = fake_add("mlx5_0"), *b = fake_add("mlx5_1");

	(void) state;
	fake_set_gid(a, 1, 0, "fe80::1", IBV_GID_TYPE_ROCE_V1, NULL);
	fake_set_gid(a, 1, 1, "fe80::1", IBV_GID_TYPE_ROCE_V2, NULL);
	fake_set_gid(a, 1, 2, "10.0.0.1", IBV_GID_TYPE_ROCE_V1, NULL);
	fake_set_gid(a, 1, 3, "10.0.0.1", IBV_GID_TYPE_ROCE_V2, NULL);
	fake_set_gid(b, 1, 0, "10.0.1.1", IBV_GID_TYPE_ROCE_V2, NULL);
	fake_set_gid(b, 1, 5, "2001:db8::5", IBV_GID_TYPE_ROCE_V2, NULL);
	chosen(&any, "10.0.0.1", "mlx5_0", 1, 3);
	chosen(&any, "10.0.1.1", "mlx5_1", 1, 0);
	chosen(&any, "2001:db8::5", "mlx5_1", 1, 5);
	chosen(&any, "::ffff:10.0.1.1", "mlx5_1", 1, 0); /* IPv4 over an IPv6 socket */
	chosen(&any, "fe80::1", "mlx5_0", 1, 1);
	chosen(&any, "192.0.2.9", "mlx5_0", 1, 3); /* none reaches it: the first with IPv4 */
}

static void test_duplicates_and_kinds_have_an_order(void **state) {
	struct verbs_gid gids[4] = { { .index = 2 }, { .index = 4 }, { .index = 6 }, { .index = 8 } };
	static const char *const addresses[] = { "fe80::1", "2001:db8::1", "10.0.0.7", "10.0.0.7" };
	struct sockaddr_storage local = address_of("10.9.9.9");
	char why[VERBS_WHY_MAX];

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(gids); i++) {
		struct sockaddr_storage a = address_of(addresses[i]);

		gids[i].type = IBV_GID_TYPE_ROCE_V2;
		if (a.ss_family == AF_INET6)
			memcpy(gids[i].gid.raw, &((struct sockaddr_in6 *) &a)->sin6_addr, 16);
		else {
			gids[i].gid.raw[10] = gids[i].gid.raw[11] = 0xff;
			memcpy(gids[i].gid.raw + 12, &((struct sockaddr_in *) &a)->sin_addr, 4);
		}
	}
	assert_int_equal(verbs_gid_choose(gids, 1, &local, "", why), 0);
	assert_non_null(strstr(why, "link-local"));
	assert_int_equal(verbs_gid_choose(gids, 2, &local, "", why), 1); /* routable before link-local */
	assert_int_equal(verbs_gid_choose(gids, 4, &local, "", why), 2); /* IPv4; of equals the lower index */
	assert_non_null(strstr(why, "none belongs to the interface that reaches the peer"));
	(void) copy_string(gids[0].netdev, IF_NAMESIZE, "eth7");
	assert_int_equal(verbs_gid_choose(gids, 4, &local, "eth7", why), 0); /* the interface outranks the family */
	assert_non_null(strstr(why, "eth7"));
	local = address_of("2001:db8::1");
	assert_int_equal(verbs_gid_choose(gids, 4, &local, "eth7", why), 1); /* the address outranks the interface */
	assert_non_null(strstr(why, "has the address that reaches the peer"));
	for (size_t i = 0; i < ELEMENTSOF(gids); i++)
		gids[i].type = i % 2 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_IB;
	assert_int_equal(verbs_gid_choose(gids, 4, &local, "eth7", why), -ENOENT);
	assert_int_equal(verbs_gid_choose(gids, 0, &local, "eth7", why), -ENOENT);
}

/* Also the address that records name, and the reason that is said. */
static void chosen_because(const char *local, int gid_index, const char *address, const char *why) {
	struct job any = job_of("", 0, -1);

	chosen(&any, local, "mlx5_0", 1, gid_index);
	assert_string_equal(device.address, address);
	if (!strstr(device.why, why))
		fail_msg("'%s' does not say '%s'", device.why, why);
}

/* A fabric without IPv4, whether the control connection has IPv6 or another network's IPv4. */
static void test_ipv6_alone_is_enough(void **state) {
	struct fake_device *d = fake_add("mlx5_0");

	(void) state;
	fake_set_gid(d, 1, 0, "fe80::5", IBV_GID_TYPE_ROCE_V1, NULL);
	fake_set_gid(d, 1, 1, "fe80::5", IBV_GID_TYPE_ROCE_V2, NULL);
	chosen_because("fe80::5", 1, "fe80::5", "GID 1 (fe80::5, RoCE v2) has the address that reaches the peer");
	chosen_because("192.0.2.9", 1, "fe80::5", "GID 1 (fe80::5, RoCE v2) is the first with a link-local address");
	fake_set_gid(d, 1, 2, "2001:db8::5", IBV_GID_TYPE_ROCE_V1, NULL);
	fake_set_gid(d, 1, 3, "2001:db8::5", IBV_GID_TYPE_ROCE_V2, NULL);
	chosen_because("2001:db8::5", 3, "2001:db8::5",
		       "GID 3 (2001:db8::5, RoCE v2) has the address that reaches the peer");
	chosen_because("2001:db8::9", 3, "2001:db8::5",
		       "GID 3 (2001:db8::5, RoCE v2) is the first with an IPv6 address");
	chosen_because("192.0.2.9", 3, "2001:db8::5", "GID 3 (2001:db8::5, RoCE v2) is the first with an IPv6 address");
}

static void test_named_gid_is_taken_as_it_is(void **state) {
	struct job job = job_of("d0", 1, 2);
	struct fake_device *d = fake_add("d0");

	(void) state;
	fake_set_gid(d, 1, 0, "10.0.0.1", IBV_GID_TYPE_ROCE_V2, NULL);
	fake_set_gid(d, 1, 2, "fe80::2", IBV_GID_TYPE_ROCE_V1, NULL);
	fake_set_gid(d, 1, 15, "10.0.0.3", IBV_GID_TYPE_ROCE_V2, NULL);
	chosen(&job, "10.0.0.1", "d0", 1, 2);
	job.verbs.gid_index = 15;
	chosen(&job, "10.0.0.1", "d0", 1, 15);
	job.verbs.gid_index = 3;
	refused(&job, "d0 port 1: GID index 3 is empty; in use: 0, 2, 15");
	job.verbs.gid_index = 16;
	refused(&job, "d0 port 1 has no GID index 16: its table ends at 15; in use: 0, 2, 15");
}

static void test_infiniband_needs_no_gid(void **state) {
	struct job job = job_of("", 0, -1);
	struct fake_device *d = fake_add("ib0");

	(void) state;
	d->ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
	d->ports[0].lid = 17;
	fake_set_gid(d, 1, 0, "fe80::17", IBV_GID_TYPE_IB, NULL);
	assert_int_equal(open_as(&job, "10.0.0.1"), 0);
	assert_false(device.is_roce || device.use_grh);
	assert_int_equal(device.gid_index, -1);
	assert_string_equal(device.address, "lid 17");
	verbs_device_close(&device);
	job.verbs.gid_index = 0; /* asked for: a global route header, for a router between subnets */
	assert_int_equal(open_as(&job, "10.0.0.1"), 0);
	assert_true(device.use_grh && !device.is_roce);
	assert_string_equal(device.address, "fe80::17");
	verbs_device_close(&device);
	job.verbs.gid_index = -1; /* the port asks: it shares its LID with others */
	d->ports[0].flags = IBV_QPF_GRH_REQUIRED;
	assert_int_equal(open_as(&job, "10.0.0.1"), 0);
	assert_true(device.use_grh && !device.is_roce);
	assert_int_equal(device.gid_index, 0);
	verbs_device_close(&device);
	d->ports[0].flags = 0;
	/* A RoCE port whose address reaches the peer is the better answer; one that does not is none. */
	job.verbs.gid_index = -1;
	d = fake_add("roce0");
	fake_set_gid(d, 1, 0, "10.0.0.1", IBV_GID_TYPE_ROCE_V2, NULL);
	chosen(&job, "10.0.0.1", "roce0", 1, 0);
	d->ports[0].state = IBV_PORT_DOWN;
	chosen(&job, "10.0.0.1", "ib0", 1, -1);
}

static void test_the_active_port_is_chosen(void **state) {
	struct job job = job_of("", 0, -1);
	struct fake_device *d = fake_add("d0");

	(void) state;
	d->attr.phys_port_cnt = 2;
	fake_set_gid(d, 1, 0, "10.0.0.1", IBV_GID_TYPE_ROCE_V2, NULL);
	fake_set_gid(d, 2, 1, "10.0.0.2", IBV_GID_TYPE_ROCE_V2, NULL);
	chosen(&job, "10.0.0.2", "d0", 2, 1);
	chosen(&job, "10.0.0.1", "d0", 1, 0);
	d->ports[0].state = IBV_PORT_DOWN;
	chosen(&job, "10.0.0.1", "d0", 2, 1);
	job.verbs.ib_port = 1;
	refused(&job, "d0 port 1 is down; bring its interface up (ip link set ");
	job.verbs.ib_port = 3;
	refused(&job, "d0 has no port 3; it has ports 1 to 2");
	job.verbs.ib_port = 0;
	d->ports[1].state = IBV_PORT_INIT;
	d->ports[0].link_layer = d->ports[1].link_layer = IBV_LINK_LAYER_INFINIBAND;
	refused(&job, "d0 port 1 is down, not active; look at cable and switch, and at the subnet manager");
}

static void test_no_device(void **state) {
	struct job job = job_of("", 0, -1);

	(void) state;
	refused(&job, "RDMA device");
	fake_fail(FAKE_GET_DEVICE_LIST, ENOSYS, 0);
	refused(&job, "RDMA device");
	fake_fail(FAKE_GET_DEVICE_LIST, EPERM, 0);
	refused(&job, "cannot list RDMA devices");
	fake_fail(FAKE_GET_DEVICE_LIST, 0, 0);
	(void) fake_add("d0");
	(void) fake_add("d1");
	job = job_of("d2", 0, -1);
	refused(&job, "no RDMA device d2; this host has d0, d1");
}

/* The file is missing on this host, whatever the error: the message must name it and what to do. */
static void test_device_that_does_not_open(void **state) {
	struct job job = job_of("", 0, -1);
	struct fake_device *d = fake_add("d0");

	(void) state;
	(void) copy_string(d->device.dev_name, sizeof(d->device.dev_name), "uverbs987");
	fake_set_gid(d, 1, 0, "10.0.0.1", IBV_GID_TYPE_ROCE_V2, NULL);
	d->open_error = EACCES;
	refused(&job, "cannot open d0: Permission denied; /dev/infiniband/uverbs987 is missing: load ib_uverbs");
	d->open_error = 0;
	fake_fail(FAKE_QUERY_DEVICE, EIO, 0);
	refused(&job, "d0 cannot be read");
	fake_fail(FAKE_QUERY_DEVICE, 0, 0);
	fake_fail(FAKE_QUERY_PORT, EIO, 0);
	refused(&job, "d0 port 1 cannot be read");
	fake_fail(FAKE_QUERY_PORT, 0, 0);
	d->gids[0][0].error = EIO;
	refused(&job, "d0 port 1: cannot read the GID table");
	d->gids[0][0].error = 0;
	/* One that does not open does not keep the others from being used. */
	d->open_error = EACCES;
	d = fake_add("d1");
	fake_set_gid(d, 1, 0, "10.0.0.1", IBV_GID_TYPE_ROCE_V2, NULL);
	chosen(&job, "10.0.0.1", "d1", 1, 0);
}

static void test_open_remedy_names_the_missing_right(void **state) {
	struct ibv_device d = { .dev_name = "../null" }; /* a file that is there */
	char text[VERBS_WHY_MAX];

	(void) state;
	assert_int_equal(verbs_open_remedy(&d, EACCES, text, sizeof(text)), EACCES);
	if (access("/dev/infiniband", F_OK) < 0)
		/* nothing is reached through a folder that is not there */
		assert_non_null(strstr(text, "load ib_uverbs"));
	else
		assert_non_null(strstr(text, "no permission on /dev/infiniband/../null: join the group"));
	(void) copy_string(d.dev_name, sizeof(d.dev_name), "nothing");
	assert_int_equal(verbs_open_remedy(&d, EIO, text, sizeof(text)), EIO);
	assert_non_null(strstr(text, "/dev/infiniband/nothing is missing"));
}

static void test_device_without_a_usable_gid(void **state) {
	struct job job = job_of("", 0, -1);
	struct fake_device *d = fake_add("d0");

	(void) state;
	refused(&job, "d0 port 1 has no RoCE v2 GID (0 of other types); give its interface an address");
	fake_set_gid(d, 1, 0, "10.0.0.1", IBV_GID_TYPE_ROCE_V1, NULL);
	refused(&job, "d0 port 1 has no RoCE v2 GID (1 of other types)");
	(void) fake_add("d1");
	refused(&job, "no RDMA device of this host can be used: d0 port 1 has no RoCE v2 GID");
	job.verbs.gid_index = 0;
	chosen(&job, "10.0.0.1", "d0", 1, 0);
}

static void test_transports(void **state) {
	struct job job = job_of("", 0, -1);
	struct fake_device *d = fake_add("d0");

	(void) state;
	fake_set_gid(d, 1, 0, "10.0.0.1", IBV_GID_TYPE_ROCE_V2, NULL);
	d->device.transport_type = IBV_TRANSPORT_UNSPECIFIED;
	refused(&job, "d0 is neither an InfiniBand nor a RoCE device");
	d->device.transport_type = IBV_TRANSPORT_IWARP;
	refused(&job, "d0 is an iWARP device, which perch cannot use");
	job.verbs.rdma_cm = true;
	refused(&job, "d0 is an iWARP device, which perch cannot use");
}

static double rate_of(const char *root, uint8_t layer, uint8_t speed, uint8_t width) {
	const struct ibv_port_attr attr = { .link_layer = layer, .active_speed = speed, .active_width = width };

	return verbs_port_rate(root, &(struct verbs_port) { "d0", 1, &attr, "" }, 1);
}

static void test_mtu_and_rate(void **state) {
	(void) state;
	for (uint32_t bytes = 256; bytes <= 4096; bytes *= 2)
		assert_int_equal(verbs_mtu_bytes(verbs_mtu_from_bytes(bytes)), bytes);
	assert_int_equal(verbs_mtu_bytes(IBV_MTU_1024), 1024);
	assert_int_equal(verbs_mtu_bytes((enum ibv_mtu) 0), 0);
	assert_int_equal(verbs_mtu_bytes((enum ibv_mtu) 6), 0);
	assert_int_equal((int) verbs_mtu_from_bytes(1500), 0);
	assert_true(verbs_rate_gbit_s(32, 2) == 100);   /* EDR 4x */
	assert_true(verbs_rate_gbit_s(128, 2) == 400);  /* NDR 4x */
	assert_true(verbs_rate_gbit_s(4, 2) == 32);     /* QDR 4x: 40 less 8b/10b */
	assert_true(verbs_rate_gbit_s(64, 16) == 100);  /* HDR 2x */
	assert_true(verbs_rate_gbit_s(0, 2) == 0 && verbs_rate_gbit_s(32, 3) == 0);
	assert_true(verbs_rate_gbit_s(256, 2) == 800);  /* XDR 4x */
	/* What RoCE drivers say when they do not know is not believed. */
	assert_true(rate_of("", IBV_LINK_LAYER_ETHERNET, 1, 1) == 0);
	assert_true(rate_of("", IBV_LINK_LAYER_INFINIBAND, 1, 1) == 2);
}

/* libibverbs caps the speed at NDR; the kernel says what it is. */
static void test_xdr_is_told_from_ndr_by_the_kernel(void **state) {
	char root[] = "/tmp/perch-verbs-rate.XXXXXX";

	(void) state;
	assert_non_null(mkdtemp(root));
	shell("cd %s && mkdir -p sys/class/infiniband/d0/ports/1 && "
	      "echo '800 Gb/sec (4X XDR)' >sys/class/infiniband/d0/ports/1/rate", root);
	assert_true(rate_of(root, IBV_LINK_LAYER_INFINIBAND, 128, 2) == 800);
	assert_true(rate_of(root, IBV_LINK_LAYER_INFINIBAND, 64, 2) == 200);
	assert_true(rate_of("", IBV_LINK_LAYER_INFINIBAND, 128, 2) == 400);
	shell("rm -rf %s", root);
}

struct seen {
	unsigned n, gids;
	char text[1024];
};

static int see(const struct device *d, void *userdata) {
	struct seen *s = userdata;
	size_t n = strlen(s->text);

	s->n++;
	assert_string_equal(d->backend, "verbs");
	assert_non_null(d->rdma);
	s->gids += (unsigned) d->rdma->n_gids;
	(void) snprintf(s->text + n, sizeof(s->text) - n, "%s/%u %s %s %u %g %s %s;", d->name, d->rdma->port, d->layer,
			d->state, d->mtu, d->rate_gbit_s, d->address, d->remedy ? d->remedy : "-");
	return 0;
}

static void test_probe_lists_every_port(void **state) {
	struct fake_device *a = fake_add("a0"), *b = fake_add("b0"), *c = fake_add("c0"), *d = fake_add("d0");
	struct seen s = { 0 };

	(void) state;
	fake_set_gid(a, 1, 0, "fe80::1", IBV_GID_TYPE_ROCE_V1, NULL);
	fake_set_gid(a, 1, 3, "10.0.0.1", IBV_GID_TYPE_ROCE_V2, NULL);
	b->attr.phys_port_cnt = 2;
	b->ports[0].link_layer = b->ports[1].link_layer = IBV_LINK_LAYER_INFINIBAND;
	b->ports[0].lid = 3;
	b->ports[1].state = IBV_PORT_DOWN;
	(void) copy_string(c->device.dev_name, sizeof(c->device.dev_name), "uverbs987");
	c->open_error = EACCES;
	fake_set_gid(d, 1, 1, "fe80::4", IBV_GID_TYPE_ROCE_V2, NULL);
	fake_set_gid(d, 1, 3, "2001:db8::4", IBV_GID_TYPE_ROCE_V2, NULL);
	failure_reset();
	assert_int_equal(verbs_probe(see, &s), 0);
	assert_int_equal(s.n, 5);
	assert_int_equal(s.gids, 4);
	assert_non_null(strstr(s.text, "a0/1 ethernet up 4096 100 10.0.0.1 -;"));
	assert_non_null(strstr(s.text, "b0/1 infiniband up 4096 100 lid 3 -;"));
	assert_non_null(strstr(s.text, "b0/2 infiniband down 4096 100 lid 0 look at cable and switch"));
	assert_non_null(strstr(s.text, "c0/0  unknown 0 0  /dev/infiniband/uverbs987 is missing"));
	assert_non_null(strstr(s.text, "d0/1 ethernet up 4096 100 2001:db8::4 -;")); /* it has no IPv4 */
	assert_int_equal(fake.live, 0);
	assert_string_equal(failure_text(), ""); /* a listing that says what is wrong is no failure */
	fake_fail(FAKE_QUERY_PORT, EIO, 0);
	s = (struct seen) { 0 };
	assert_int_equal(verbs_probe(see, &s), 0);
	assert_non_null(strstr(s.text, "the port cannot be read"));
	assert_int_equal(fake.live, 0);
}

static int keep_capabilities(const struct device *d, void *userdata) {
	struct device_capabilities **at = userdata;

	assert_non_null(d->rdma->can);
	*(*at)++ = *d->rdma->can;
	return 0;
}

/* As the drivers refuse it: bnxt_re and irdma have no UC, E810 no atomics; they take 96 and 101 B inline. */
static void test_probe_asks_what_a_device_can_do(void **state) {
	struct fake_device *mlx5 = fake_add("mlx5_0"), *bnxt = fake_add("bnxt_re0"), *irdma = fake_add("irdma0");
	struct device_capabilities can[3], *at = can;

	(void) state;
	mlx5->max_inline = 1023;
	mlx5->inline_less = true;
	bnxt->no_uc = irdma->no_uc = true;
	bnxt->max_inline = 96;
	irdma->max_inline = 101;
	irdma->attr.atomic_cap = IBV_ATOMIC_NONE;
	irdma->attr.max_srq = 0;
	assert_int_equal(verbs_probe(keep_capabilities, &at), 0);
	assert_true(can[0].rc && can[0].uc && can[0].ud && can[0].atomics && can[0].srq && can[0].dmabuf);
	assert_int_equal(can[0].inline_bytes, 1023);
	assert_true(can[1].rc && !can[1].uc && can[1].ud && can[1].atomics);
	assert_int_equal(can[1].inline_bytes, 96);
	assert_true(can[2].rc && !can[2].uc && !can[2].atomics && !can[2].srq);
	assert_int_equal(can[2].inline_bytes, 101);
	assert_int_equal(fake.live, 0);
	fake_fail(FAKE_REG_DMABUF_MR, EOPNOTSUPP, 0);
	at = can;
	assert_int_equal(verbs_probe(keep_capabilities, &at), 0);
	assert_false(can[0].dmabuf);
}

static int know_nothing(const struct device *d, void *userdata) {
	assert_null(d->rdma->can);
	*(bool *) userdata = true;
	return 0;
}

static void test_a_device_that_cannot_be_asked_is_listed(void **state) {
	bool seen = false;

	(void) state;
	(void) fake_add("a0");
	fake_fail(FAKE_CREATE_CQ, ENOMEM, 0);
	assert_int_equal(verbs_probe(know_nothing, &seen), 0);
	assert_true(seen);
	assert_int_equal(fake.live, 0);
}

static int stop(const struct device *d, void *userdata) {
	(void) d;
	++*(unsigned *) userdata;
	return -ENOMEM;
}

static void test_probe_stops_where_the_caller_does(void **state) {
	unsigned n = 0;

	(void) state;
	(void) fake_add("a0");
	(void) fake_add("b0");
	assert_int_equal(verbs_probe(stop, &n), -ENOMEM);
	assert_int_equal(n, 1);
	assert_int_equal(fake.live, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_the_address_that_reaches_the_peer_wins, setup),
		cmocka_unit_test_setup(test_duplicates_and_kinds_have_an_order, setup),
		cmocka_unit_test_setup(test_ipv6_alone_is_enough, setup),
		cmocka_unit_test_setup(test_named_gid_is_taken_as_it_is, setup),
		cmocka_unit_test_setup(test_infiniband_needs_no_gid, setup),
		cmocka_unit_test_setup(test_the_active_port_is_chosen, setup),
		cmocka_unit_test_setup(test_no_device, setup),
		cmocka_unit_test_setup(test_device_that_does_not_open, setup),
		cmocka_unit_test_setup(test_open_remedy_names_the_missing_right, setup),
		cmocka_unit_test_setup(test_device_without_a_usable_gid, setup),
		cmocka_unit_test_setup(test_transports, setup),
		cmocka_unit_test_setup(test_mtu_and_rate, setup),
		cmocka_unit_test_setup(test_xdr_is_told_from_ndr_by_the_kernel, setup),
		cmocka_unit_test_setup(test_probe_lists_every_port, setup),
		cmocka_unit_test_setup(test_probe_asks_what_a_device_can_do, setup),
		cmocka_unit_test_setup(test_a_device_that_cannot_be_asked_is_listed, setup),
		cmocka_unit_test_setup(test_probe_stops_where_the_caller_does, setup),
	};

	return cmocka_run_group_tests_name("verbs devices, over a fake libibverbs", tests, NULL, NULL);
}
