/* SPDX-License-Identifier: Apache-2.0 */
/* Where devices lie, over composed trees of sysfs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "host/device_facts.h"
#include "host/netdev.h"
#include "shell.h"

static char root[] = "/tmp/perch-device-facts.XXXXXX";

static void make(const char *path) {
	shell("mkdir -p %s/%s", root, path);
}

static void put(const char *path, const char *text) {
	shell("mkdir -p $(dirname %s/%s) && printf '%%s\\n' '%s' >%s/%s", root, path, text, root, path);
}

/* A device of sysfs is a link to where it hangs. */
static void hang(const char *path, const char *place) {
	shell("mkdir -p $(dirname %s/%s) && ln -s %s/%s %s/%s", root, path, root, place, root, path);
}

static int make_host(void **state) {
	(void) state;
	if (!mkdtemp(root))
		return -1;
	make("sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0/net/ens1f0np0");
	hang("sys/class/infiniband/mlx5_0/device", "sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0");
	hang("sys/class/net/ens1f0np0/device", "sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0");
	make("sys/devices/pci0000:40/0000:41:00.0/net/hsn0");
	hang("sys/class/cxi/cxi0/device", "sys/devices/pci0000:40/0000:41:00.0");
	make("sys/class/net/eth1");
	put("sys/class/infiniband/rxe0/parent", "ens1f0np0");
	put("sys/class/infiniband/rxe1/parent", "eth1");
	make("sys/class/net/bond0/lower_eno1");
	make("sys/class/net/bond0.7/lower_bond0/lower_eno2");
	return 0;
}

static int remove_host(void **state) {
	(void) state;
	shell("rm -rf %s", root);
	return 0;
}

static void expect_pci(const char *device, const char *expected) {
	char found[PCI_ADDRESS_MAX];

	device_pci_address(root, device, found);
	assert_string_equal(found, expected);
}

static void expect_netdev(const char *device, const char *expected) {
	char found[IF_NAMESIZE];

	device_netdev(root, device, found);
	assert_string_equal(found, expected);
}

static void test_pci_addresses(void **state) {
	(void) state;
	expect_pci("mlx5_0", "0000:17:00.0");
	expect_pci("cxi0", "0000:41:00.0");
	expect_pci("ens1f0np0", "0000:17:00.0");
	expect_pci("rxe0", "0000:17:00.0");
	expect_pci("rxe1", "");
	expect_pci("none", "");
	expect_pci("../net/ens1f0np0", "");
	expect_pci("", "");
}

static void test_netdevs(void **state) {
	(void) state;
	expect_netdev("mlx5_0", "ens1f0np0");
	expect_netdev("cxi0", "hsn0");
	expect_netdev("eth1", "eth1");
	expect_netdev("rxe1", "eth1");
	expect_netdev("none", "");
	expect_netdev("../net/eth1", "");
}

static void test_the_way_out_of_a_host(void **state) {
	static const char head[] = "Iface Destination Gateway Flags RefCnt Use Metric Mask";

	(void) state;
	assert_false(netdev_has_default_route(root, "eno1"));
	put("proc/net/route", head);
	assert_false(netdev_has_default_route(root, "eno1"));
	put("proc/net/route", "eth1\t00000000\t0100000A\t0003\t0\t0\t0\t00000000");
	assert_true(netdev_has_default_route(root, "eth1"));
	assert_false(netdev_has_default_route(root, "eth10"));
	put("proc/net/route", "eth1\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF");
	assert_false(netdev_has_default_route(root, "eth1"));
	/* half of all addresses is no default route */
	put("proc/net/route", "eth1\t00000000\t0100000A\t0003\t0\t0\t0\t00000080");
	assert_false(netdev_has_default_route(root, "eth1"));
	put("proc/net/route", "bond0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000");
	assert_true(netdev_has_default_route(root, "eno1"));
	assert_false(netdev_has_default_route(root, "eno2"));
	put("proc/net/route", "bond0.7\t00000000\t0100000A\t0003\t0\t0\t0\t00000000");
	assert_true(netdev_has_default_route(root, "eno2"));
	assert_false(netdev_has_default_route(root, ""));
}

static void test_ipv6_has_a_way_out_too(void **state) {
#define ZERO "00000000000000000000000000000000"
	(void) state;
	put("proc/net/route", "");
	put("proc/net/ipv6_route", ZERO " 00 " ZERO " 00 " ZERO " 00000400 1 0 00000003 eth1");
	assert_true(netdev_has_default_route(root, "eth1"));
	put("proc/net/ipv6_route", ZERO " 00 " ZERO " 00 " ZERO " ffffffff 1 0 00200200 lo");
	assert_false(netdev_has_default_route(root, "lo"));
	put("proc/net/ipv6_route", ZERO " 80 " ZERO " 00 " ZERO " 00000400 1 0 00000003 eth1");
	assert_false(netdev_has_default_route(root, "eth1"));
}

static void expect_rate(const char *name, double one, double two, double all) {
	struct netdev n;

	netdev_read(root, name, &n);
	assert_true(netdev_rate(&n, 1) == one);
	assert_true(netdev_rate(&n, 2) == two);
	assert_true(netdev_rate(&n, UINT32_MAX) == all);
}

/* One flow over a bond of two uses one of its links; its ceiling is that link's rate. */
static void test_one_flow_takes_one_link_of_a_bond(void **state) {
	(void) state;
	for (int i = 0; i < 2; i++) {
		const char *speeds[] = { "sys/class/net/lag0/lower_p0/speed", "sys/class/net/lag0/lower_p1/speed" };
		const char *devices[] = { "sys/class/net/lag0/lower_p0/device", "sys/class/net/lag0/lower_p1/device" };

		put(speeds[i], "200000");
		make(devices[i]);
	}
	put("sys/class/net/lag0/speed", "400000");
	put("sys/class/net/lag0/bonding/mode", "802.3ad 4");
	expect_rate("lag0", 200, 400, 400);
	put("sys/class/net/lag0/bonding/mode", "balance-rr 0");
	expect_rate("lag0", 400, 400, 400);
	put("sys/class/net/lag0/bonding/mode", "active-backup 1");
	put("sys/class/net/lag0/speed", "200000");
	expect_rate("lag0", 200, 200, 200);
}

static void test_other_interfaces_have_one_rate(void **state) {
	(void) state;
	put("sys/class/net/hw0/speed", "100000");
	put("sys/class/net/hw0/device/x", "");
	expect_rate("hw0", 100, 100, 100);
	put("sys/class/net/hw0.7/speed", "100000");
	hang("sys/class/net/hw0.7/lower_hw0", "sys/class/net/hw0");
	expect_rate("hw0.7", 100, 100, 100);
	put("sys/class/net/veth0/speed", "10000");
	expect_rate("veth0", 0, 0, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pci_addresses),
		cmocka_unit_test(test_netdevs),
		cmocka_unit_test(test_the_way_out_of_a_host),
		cmocka_unit_test(test_ipv6_has_a_way_out_too),
		cmocka_unit_test(test_one_flow_takes_one_link_of_a_bond),
		cmocka_unit_test(test_other_interfaces_have_one_rate),
	};

	return cmocka_run_group_tests_name("facts of devices", tests, make_host, remove_host);
}
