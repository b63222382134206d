/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purpose: with --rdma-cm, what the connection manager found of the path stays, unless an option says otherwise; the
 * record has what is in force. Over fakes of libibverbs and librdmacm: no proof of the verbs path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/verbs/verbs_sysfs.h"
#include "fake_verbs_internal.h"
#include "host/netdev.h"
#include "shell.h"
#include "verbs_traffic.h"

enum { FOUND_SL = 3, FOUND_CLASS = 106 };

static int setup_manager(void **state) {
	(void) setup(state);
	fake.cm_path = (struct ibv_ah_attr) {
		.is_global = 1, .port_num = 1, .sl = FOUND_SL,
		.grh = { .sgid_index = 1, .hop_limit = 64, .traffic_class = FOUND_CLASS },
	};
	return 0;
}

/* Opens a pair; both queue pairs, and both sessions, from which the record is made, have this level and class. */
static void check_in_force(const struct job *job, int sl, int traffic_class) {
	open_pair(job);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fake_queue_pairs[i]->path.sl, sl);
		assert_int_equal(fake_queue_pairs[i]->path.grh.traffic_class, traffic_class);
		assert_int_equal(verbs_session(pair.ends[i].session)->sl, sl);
		assert_int_equal(verbs_session(pair.ends[i].session)->traffic_class, traffic_class);
	}
	close_pair();
}

static void test_what_the_manager_found_stays(void **state) {
	struct job job = verbs_job(OP_WRITE);

	(void) state;
	job.verbs.rdma_cm = true;
	check_in_force(&job, FOUND_SL, FOUND_CLASS);
}

/* The first key of the table would be another one. */
static void test_the_record_has_the_managers_partition(void **state) {
	struct job job = verbs_job(OP_WRITE);
	json_t *record = json_pack("{s:{}}", "params");

	(void) state;
	job.verbs.rdma_cm = true;
	fake.cm_pkey_index = 1;
	for (unsigned i = 0; i < 2; i++)
		fake.devices[i].pkeys[0][1] = 0x8005;
	open_pair(&job);
	pair.backend->describe(pair.ends[ROLE_CLIENT].session, record);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(record, "params"), "pkey")), 0x8005);
	json_decref(record);
	close_pair();
}

/* Though the control connection is of IPv4. */
static void test_the_manager_listens_at_a_gid_of_ipv6(void **state) {
	struct job job = verbs_job(OP_WRITE);
	char text[INET6_ADDRSTRLEN] = "";

	(void) state;
	for (unsigned i = 0; i < 2; i++)
		fake_set_gid(&fake.devices[i], 1, 1, i ? "2001:db8::2" : "2001:db8::1", IBV_GID_TYPE_ROCE_V2, NULL);
	job.verbs.rdma_cm = true;
	(void) copy_string(job.server_device, sizeof(job.server_device), "right0");
	open_pair(&job);
	assert_int_equal(fake.cm_bound.ss_family, AF_INET6);
	(void) inet_ntop(AF_INET6, &((struct sockaddr_in6 *) &fake.cm_bound)->sin6_addr, text, sizeof(text));
	assert_string_equal(text, "2001:db8::2");
	close_pair();
}

/* Two ports of InfiniBand that require a GID. Its link-local one is no address of IPoIB, whose interface id differs. */
static void make_infiniband(struct job *job) {
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_port_attr *port = &fake.devices[i].ports[0];

		port->link_layer = IBV_LINK_LAYER_INFINIBAND;
		port->flags = IBV_QPF_GRH_REQUIRED;
		fake_set_gid(&fake.devices[i], 1, 1, "::", IBV_GID_TYPE_IB, NULL);
		fake_set_gid(&fake.devices[i], 1, 0, i ? "fe80::2:c903:0:2" : "fe80::2:c903:0:1", IBV_GID_TYPE_IB,
			     NULL);
		fake.devices[i].ipoib = i ? "10.0.0.2" : "10.0.0.1";
	}
	job->verbs.rdma_cm = true;
	(void) copy_string(job->device, sizeof(job->device), "left0");
	(void) copy_string(job->server_device, sizeof(job->server_device), "right0");
}

static void test_infiniband_binds_to_an_ip_address_and_never_to_a_gid(void **state) {
	struct job job = verbs_job(OP_WRITE);
	char text[INET6_ADDRSTRLEN] = "";

	(void) state;
	make_infiniband(&job);
	open_pair(&job);
	assert_int_equal(fake.cm_bound.ss_family, AF_INET);
	(void) inet_ntop(AF_INET, &((struct sockaddr_in *) &fake.cm_bound)->sin_addr, text, sizeof(text));
	assert_string_equal(text, "10.0.0.2");
	close_pair();
	/* A server that listens for both families has the client's IPv4 mapped into IPv6. */
	pair = (struct verbs_pair) { .backend = backend_find("verbs"), .job = job };
	pair.ends[ROLE_SERVER].address = address_of("::ffff:10.0.0.2");
	assert_int_equal(end_open(&pair, ROLE_SERVER), 0);
	assert_int_equal(fake.cm_bound.ss_family, AF_INET);
	close_pair();
	fake.devices[1].ipoib = NULL;
	refused(&job, "cannot listen from 10.0.0.2: Cannot assign requested address; "
		"give the IPoIB interface of port 1 an address");
}

static void check_ipoib(const char *root, unsigned port, const char *preferred, const char *wanted) {
	char name[IF_NAMESIZE];

	verbs_sysfs_ipoib(root, "mlx4_0", port, preferred, name);
	assert_string_equal(name, wanted);
}

static void test_each_port_of_infiniband_has_its_interface(void **state) {
	char root[] = "/tmp/perch-verbs-cm.XXXXXX";
	struct sockaddr_storage a;

	(void) state;
	assert_non_null(mkdtemp(root));
	shell("mkdir -p %s/sys/class/infiniband/mlx4_0/device/net && cd %s/sys/class/infiniband/mlx4_0/device/net && "
	      "while read -r name port type; do mkdir $name; echo $port >$name/dev_port; echo $type >$name/type; "
	      "done <<-'END'\nib0.8001 0 32\nib0 0 32\nib1 1 32\neth0 0 1\nEND", root, root);
	check_ipoib(root, 1, "", "ib0");
	check_ipoib(root, 1, "ib0.8001", "ib0.8001");
	check_ipoib(root, 1, "ib1", "ib0");
	check_ipoib(root, 2, "eth0", "ib1");
	check_ipoib(root, 3, "ib0", "");
	check_ipoib("", 1, "ib0", "");
	shell("rm -rf %s", root);
	assert_int_equal(netdev_address("lo", &a), 0);
	assert_true(address_is_loopback(&a));
	assert_int_equal(netdev_address("no-such", &a), -ENODEV);
}

static void test_an_option_replaces_only_what_it_names(void **state) {
	struct job job = verbs_job(OP_WRITE);

	(void) state;
	job.verbs.rdma_cm = true;
	job.verbs.sl = 0; /* asked for, though it is what others have without being asked */
	check_in_force(&job, 0, FOUND_CLASS);
	job.verbs.sl = 5;
	job.verbs.traffic_class = 40;
	check_in_force(&job, 5, 40);
	job.verbs.sl = -1;
	check_in_force(&job, FOUND_SL, 40);
}

static void test_what_was_not_asked_for_is_unknown_before_the_manager_has_found_it(void **state) {
	struct job job = verbs_job(OP_WRITE);

	(void) state;
	job.verbs.rdma_cm = true;
	job.verbs.traffic_class = 40;
	pair = (struct verbs_pair) { .backend = backend_find("verbs"), .job = job };
	pair.ends[ROLE_CLIENT].address = address_of("10.0.0.1");
	assert_int_equal(end_open(&pair, ROLE_CLIENT), 0);
	assert_int_equal(verbs_session(pair.ends[ROLE_CLIENT].session)->sl, -1);
	assert_int_equal(verbs_session(pair.ends[ROLE_CLIENT].session)->traffic_class, 40);
	close_pair();
}

/* Both queue pairs, and the record, have this MTU. */
static void check_mtu(const struct job *job, enum ibv_mtu mtu) {
	open_pair(job);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fake_queue_pairs[i]->path_mtu, mtu);
		assert_int_equal(pair.ends[i].session->mtu, verbs_mtu_bytes(mtu));
	}
	close_pair();
}

static void test_the_managers_mtu_stays_unless_one_was_asked_for(void **state) {
	struct job job = verbs_job(OP_WRITE);

	(void) state;
	job.verbs.rdma_cm = true;
	job.queue_pairs = 2; /* each has a connection of its own */
	job.outstanding = 8;
	fake.cm_mtu = IBV_MTU_1024;
	check_mtu(&job, IBV_MTU_1024);
	job.verbs.mtu = 2048;
	check_mtu(&job, IBV_MTU_2048);
	job.verbs.mtu = 0;
	fake.cm_mtu = IBV_MTU_4096;
	fake.devices[1].ports[0].active_mtu = IBV_MTU_512; /* a RoCE port that the client's manager does not see */
	check_mtu(&job, IBV_MTU_512);
}

/* A peer of another vendor may answer more reads than this device can begin, which the device would refuse. */
static void test_reads_are_bounded_by_both_devices(void **state) {
	struct job job = verbs_job(OP_SEND);

	(void) state;
	job.verbs.rdma_cm = true;
	fake.cm_reads = 128;
	open_pair(&job);
	assert_int_equal(fake_queue_pairs[0]->reads, 16);
	assert_int_equal(fake_queue_pairs[1]->reads, 16);
	close_pair();
	fake.cm_reads = 4;
	open_pair(&job);
	assert_int_equal(fake_queue_pairs[0]->reads, 4);
	close_pair();
}

static void test_without_the_manager_both_are_0(void **state) {
	struct job job = verbs_job(OP_WRITE);

	(void) state;
	check_in_force(&job, 0, 0);
	job.verbs.sl = 5;
	job.verbs.traffic_class = 40;
	check_in_force(&job, 5, 40);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_what_the_manager_found_stays, setup_manager),
		cmocka_unit_test_setup(test_the_record_has_the_managers_partition, setup_manager),
		cmocka_unit_test_setup(test_the_manager_listens_at_a_gid_of_ipv6, setup_manager),
		cmocka_unit_test_setup(test_infiniband_binds_to_an_ip_address_and_never_to_a_gid, setup_manager),
		cmocka_unit_test(test_each_port_of_infiniband_has_its_interface),
		cmocka_unit_test_setup(test_an_option_replaces_only_what_it_names, setup_manager),
		cmocka_unit_test_setup(test_what_was_not_asked_for_is_unknown_before_the_manager_has_found_it,
				       setup_manager),
		cmocka_unit_test_setup(test_the_managers_mtu_stays_unless_one_was_asked_for, setup_manager),
		cmocka_unit_test_setup(test_reads_are_bounded_by_both_devices, setup_manager),
		cmocka_unit_test_setup(test_without_the_manager_both_are_0, setup_manager),
	};

	return cmocka_run_group_tests_name("verbs connected by a fake manager", tests, NULL, NULL);
}
