/* SPDX-License-Identifier: Apache-2.0 */
/* Which core each thread of an end gets, over sysfs of machines that are directories. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/message.h"
#include "host/placement.h"

static char root[] = "/tmp/perch-place-XXXXXX";
static struct topology t;

static _printf_(2, 3) void put(const char *text, const char *format, ...) {
	char name[256], path[PATH_MAX];
	va_list ap;
	FILE *f;

	va_start(ap, format);
	(void) vsnprintf(name, sizeof(name), format, ap);
	va_end(ap);
	(void) snprintf(path, sizeof(path), "mkdir -p $(dirname %s/%s)", root, name);
	assert_int_equal(system(path), 0);
	(void) snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "we");
	assert_non_null(f);
	(void) fprintf(f, "%s\n", text);
	assert_int_equal(fclose(f), 0);
}

static void clear(void) {
	char command[128];

	(void) snprintf(command, sizeof(command), "rm -rf %s/*", root);
	assert_int_equal(system(command), 0);
}

/* Cores of two processors each: N and N + cores. */
static void make_cores(int cores) {
	char text[32];

	clear();
	(void) snprintf(text, sizeof(text), "0-%d", 2 * cores - 1);
	put(text, "devices/system/cpu/online");
	for (int cpu = 0; cpu < 2 * cores; cpu++) {
		(void) snprintf(text, sizeof(text), "%d,%d", cpu % cores, cpu % cores + cores);
		put(text, "devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
	}
}

/* Two nodes of four cores, eight processors each: node 0 has 0-3,8-11, node 1 has 4-7,12-15. */
static void make_two_nodes(const char *memory) {
	make_cores(8);
	put("0-1", "devices/system/node/online");
	put(memory, "devices/system/node/has_memory");
	put("0-3,8-11", "devices/system/node/node0/cpulist");
	put("4-7,12-15", "devices/system/node/node1/cpulist");
}

static void read_as(const char *cpus, const char *nodes) {
	cpu_set_t allowed, allowed_nodes;

	assert_int_equal(cpu_list_parse(cpus, &allowed), 0);
	assert_int_equal(cpu_list_parse(nodes, &allowed_nodes), 0);
	topology_read(root, &allowed, &allowed_nodes, &t);
}

static struct placement_wish wish(unsigned threads, int node) {
	struct placement_wish w = { .cpu = "", .numa = "", .peer_cpu = "", .threads = threads, .n_slots = 1 };

	for (unsigned i = 0; i < threads; i++)
		w.nodes[i] = node;
	return w;
}

static struct placement choose(const struct placement_wish *w) {
	struct placement p;

	failure_reset();
	assert_int_equal(placement_check(&t, w), 0);
	placement_choose(root, &t, w, &p);
	return p;
}

static void assert_refused(const struct placement_wish *w, const char *part) {
	failure_reset();
	assert_int_equal(placement_check(&t, w), -ENODEV);
	assert_int_equal(failure_code(), EXIT_HOST);
	if (!strstr(failure_text(), part))
		fail_msg("'%s' does not say '%s'", failure_text(), part);
}

static void test_lists_are_read_and_written(void **state) {
	static const struct { const char *text, *again; } good[] = {
		{ "0", "0" }, { "0-3,8", "0-3,8" }, { "3,1", "1,3" }, { "4,5", "4,5" }, { "1023", "1023" },
	};
	static const char *const bad[] = { "", "a", "1-", "-1", "3-1", "1,", ",1", "1 2", "0x1", "1;2" };
	char text[CPU_LIST_MAX];
	cpu_set_t set;

	(void) state;
	for (size_t i = 0; i < ELEMENTSOF(good); i++) {
		assert_int_equal(cpu_list_parse(good[i].text, &set), 0);
		assert_string_equal(cpu_list_format(&set, text), good[i].again);
	}
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(cpu_list_parse(bad[i], &set), -EINVAL);
	assert_int_equal(cpu_list_parse("1024", &set), -ERANGE);
	assert_int_equal(cpu_list_parse("99999999999999999999", &set), -ERANGE);
	/* as long as a list can be: every other processor */
	CPU_ZERO(&set);
	for (size_t i = 0; i < CPU_SETSIZE; i += 2)
		CPU_SET(i, &set);
	assert_int_equal(strlen(cpu_list_format(&set, text)), CPU_LIST_MAX - 1);
}

static void test_threads_are_on_cores_of_the_device_node(void **state) {
	struct placement_wish w = wish(3, 1);
	struct placement p;

	(void) state;
	make_two_nodes("0-1");
	read_as("0-15", "0-1");
	p = choose(&w);
	assert_int_equal(p.why, PLACED);
	assert_int_equal(p.cpus[0], 4);
	assert_int_equal(p.cpus[1], 5);
	assert_int_equal(p.cpus[2], 6);
	assert_int_equal(p.memory, MEMORY_NEAR);
	assert_true(CPU_ISSET(7, &p.aside));
	/* the sibling of a core that is taken is no place for others */
	assert_false(CPU_ISSET(4, &p.aside) || CPU_ISSET(12, &p.aside));
}

static void test_a_core_is_one_process_alone(void **state) {
	struct placement_wish w = wish(2, 0), named = wish(1, 0);
	struct placement p;

	(void) state;
	make_two_nodes("0-1");
	read_as("0-15", "0-1");
	/* of node 0's four cores the first is the kernel's */
	p = choose(&w);
	assert_int_equal(p.cpus[0], 1);
	assert_int_equal(p.cpus[1], 2);
	p = choose(&w);
	assert_int_equal(p.why, UNPLACED_FEW);
	/* what was taken before that was noticed is free again */
	w.threads = 1;
	p = choose(&w);
	assert_int_equal(p.cpus[0], 3);
	named.cpu = "9";
	p = choose(&named);
	assert_int_equal(p.cpus[0], 9);
}

/* Of a list, too, as long as it has another. */
static void test_a_named_core_of_another_process_is_the_last_choice(void **state) {
	struct placement_wish w = wish(1, 0);
	static const int cpus[] = { 2, 3, 4, 2 };
	struct placement p;

	(void) state;
	make_two_nodes("0-1");
	read_as("0-15", "0-1");
	w.cpu = "2-4,10";
	for (size_t i = 0; i < ELEMENTSOF(cpus); i++) {
		p = choose(&w);
		assert_int_equal(p.why, PLACED);
		assert_int_equal(p.cpus[0], cpus[i]);
	}
}

static void test_ends_of_several_rails_have_a_core_each_or_none_has(void **state) {
	struct placement_wish w = wish(1, 0);
	static const int cpus[] = { 1, 4, 2, 3 };
	static const unsigned order[] = { 3, 1, 0, 2 };
	struct placement p;

	(void) state;
	make_two_nodes("0-1");
	read_as("0-15", "0-1");
	w.n_rails = 4;
	w.rails[1] = 1;
	/* whichever comes first */
	for (size_t i = 0; i < ELEMENTSOF(order); i++) {
		w.rail = order[i];
		w.nodes[0] = w.rails[w.rail];
		p = choose(&w);
		assert_int_equal(p.why, PLACED);
		assert_int_equal(p.cpus[0], cpus[w.rail]);
		assert_false(CPU_ISSET((size_t) cpus[w.rail] + 8, &p.aside));
	}
	/* its core is another process's: there is one more on its node */
	w.rail = 1;
	w.nodes[0] = 1;
	p = choose(&w);
	assert_int_equal(p.cpus[0], 5);
	/* node 0 has three for four: nor is the one of node 1 pinned */
	w.n_rails = 5;
	p = choose(&w);
	assert_int_equal(p.why, UNPLACED_FEW);
}

static void test_ends_that_share_devices_have_a_core_each_or_none_has(void **state) {
	struct placement_wish w = wish(1, 0);
	static const int cpus[3][2] = { { 1, 4 }, { 2, 5 }, { 3, 6 } };
	struct placement p;

	(void) state;
	make_two_nodes("0-1");
	read_as("0-15", "0-1");
	w.n_rails = 2;
	w.rails[1] = 1;
	w.n_slots = 3;
	/* the last one comes first */
	for (w.slot = 3; w.slot-- > 0;)
		for (w.rail = 0; w.rail < 2; w.rail++) {
			p = choose(&w);
			assert_int_equal(p.why, PLACED);
			assert_int_equal(p.cpus[0], cpus[w.slot][w.rail]);
		}
	/* node 0 has three for four: nor are those of node 1 pinned */
	w.n_slots = 4;
	w.slot = 0;
	w.rail = 1;
	p = choose(&w);
	assert_int_equal(p.why, UNPLACED_FEW);
}

static void test_few_cores_are_left_alone(void **state) {
	struct placement_wish w = wish(4, 0);
	struct placement p;

	(void) state;
	make_two_nodes("0-1");
	read_as("0-15", "0-1");
	p = choose(&w);
	assert_int_equal(p.why, UNPLACED_FEW);
	assert_int_equal(p.memory, MEMORY_ANYWHERE);
	make_cores(1);
	read_as("0-1", "0");
	w = wish(1, -1);
	p = choose(&w);
	assert_int_equal(p.why, UNPLACED_FEW);
}

static void test_a_mask_without_the_node_leaves_no_core(void **state) {
	struct placement_wish w = wish(1, 1);
	struct placement p;

	(void) state;
	make_two_nodes("0-1");
	read_as("0-3,8-11", "0-1");
	p = choose(&w);
	assert_int_equal(p.why, UNPLACED_FORBIDDEN);
	/* within a mask, the cores of the mask */
	read_as("6,14,15", "0-1");
	w = wish(2, 1);
	p = choose(&w);
	assert_int_equal(p.cpus[0], 6);
	assert_int_equal(p.cpus[1], 15);
}

static void test_isolated_processors_are_taken_where_they_are_named(void **state) {
	struct placement_wish w = wish(1, 1);
	struct placement p;

	(void) state;
	make_two_nodes("0-1");
	put("4-6,12-14", "devices/system/cpu/isolated");
	read_as("0-15", "0-1");
	p = choose(&w);
	assert_int_equal(p.cpus[0], 7);
	/* as the kernel has it: they are in nobody's mask */
	read_as("0-3,7-11,15", "0-1");
	w.cpu = "5";
	p = choose(&w);
	assert_int_equal(p.cpus[0], 5);
	/* a mask of nothing else was made for them */
	read_as("4-6", "0-1");
	w.cpu = "auto";
	p = choose(&w);
	assert_int_equal(p.cpus[0], 4);
}

static void test_a_machine_without_nodes_has_cores_all_the_same(void **state) {
	struct placement_wish w = wish(1, -1);
	struct placement p;

	(void) state;
	make_cores(4);
	read_as("0-7", "0");
	p = choose(&w);
	assert_int_equal(p.cpus[0], 1);
	assert_int_equal(t.node[1], -1);
	w.numa = "0";
	assert_refused(&w, "has no NUMA nodes");
}

static void test_a_node_is_named_for_cores_and_memory(void **state) {
	struct placement_wish w = wish(1, 0);
	struct placement p;

	(void) state;
	make_two_nodes("0-1");
	read_as("0-15", "0-1");
	w.numa = "1";
	p = choose(&w);
	assert_int_equal(p.cpus[0], 4);
	assert_int_equal(p.memory, 1);
	w.numa = "off";
	p = choose(&w);
	assert_int_equal(p.cpus[0], 1);
	assert_int_equal(p.memory, MEMORY_ANYWHERE);
}

static void test_what_a_host_has_not_is_named(void **state) {
	struct placement_wish w = wish(2, 0);

	(void) state;
	make_two_nodes("0");
	read_as("0-7", "0");
	w.cpu = "14-17";
	assert_refused(&w, "--cpu 14-17: this host has CPUs 0-15 only");
	w.server = true;
	w.cpu = "7,8";
	assert_refused(&w, "--server-cpu 7,8: this process may use CPUs 0-7 only");
	read_as("0-15", "0");
	w.cpu = "3,11";
	assert_refused(&w, "2 threads on 1 core;");
	w.cpu = "auto";
	w.numa = "2";
	assert_refused(&w, "--server-numa 2: this host has NUMA nodes 0,1 only");
	w.numa = "1";
	assert_refused(&w, "--server-numa 1: this NUMA node has no memory; name one of 0");
	make_two_nodes("0-1");
	read_as("0-15", "0");
	assert_refused(&w, "may not use its memory");
}

static void test_ends_on_one_machine_are_placed_where_they_are_told(void **state) {
	struct placement_wish w = wish(1, 0);
	struct placement p;

	(void) state;
	make_two_nodes("0-1");
	read_as("0-15", "0-1");
	w.shared = true;
	p = choose(&w);
	assert_int_equal(p.why, UNPLACED_SHARED);
	w.cpu = "off";
	p = choose(&w);
	assert_int_equal(p.why, UNPLACED_OFF);
	w.cpu = "2";
	p = choose(&w);
	assert_int_equal(p.cpus[0], 2);
}

/* Two pollers on one core would measure each other. */
static void test_lists_of_both_ends_of_one_machine_share_no_core(void **state) {
	static const struct { const char *own, *peer; bool shared, refused; } cases[] = {
		{ "2", "2", true, true },       { "2", "10", true, true },      { "2-4", "4-6", true, true },
		{ "2", "3", true, false },      { "2", "2", false, false },     { "2", "auto", true, false },
		{ "2", "off", true, false },    { "2", "", true, false },       { "auto", "2", true, false },
	};
	struct placement_wish w = wish(1, 0);

	(void) state;
	make_two_nodes("0-1");
	read_as("0-15", "0-1");
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		w.cpu = cases[i].own;
		w.peer_cpu = cases[i].peer;
		w.shared = cases[i].shared;
		if (cases[i].refused)
			assert_refused(&w, "share the core of CPU ");
		else
			assert_int_equal(placement_check(&t, &w), 0);
	}
	w.server = true;
	w.cpu = "10";
	w.peer_cpu = "2";
	assert_refused(&w, "--cpu 2 and the server's --cpu 10 share the core of CPU 2; name other cores for one end");
}

static void test_a_place_survives_its_way_to_the_peer(void **state) {
	static const char *const bad[] = {
		"null", "{}", "{\"cpu\": null, \"node\": null, \"memory_node\": null, \"unplaced\": null}",
		"{\"cpu\": \"1\", \"node\": null, \"memory_node\": null, \"unplaced\": \"off\"}",
		"{\"cpu\": \"x\", \"node\": null, \"memory_node\": null, \"unplaced\": null}",
		"{\"cpu\": \"1\", \"node\": 1024, \"memory_node\": null, \"unplaced\": null}",
		"{\"cpu\": \"1\", \"node\": null, \"memory_node\": -1, \"unplaced\": null}",
		"{\"cpu\": null, \"node\": null, \"memory_node\": null, \"unplaced\": \"placed\"}",
		"{\"cpu\": \"1\", \"node\": null, \"memory_node\": null, \"unplaced\": null, \"gpu\": \"\"}",
		"{\"cpu\": \"1\", \"node\": null, \"memory_node\": null, \"unplaced\": null, "
		"\"gpu\": \"0000:3b:00.0,x\"}",
		"{\"cpu\": \"1\", \"node\": null, \"memory_node\": null, \"unplaced\": null, \"gpu\": null}",
	};
	struct placed a = { .why = PLACED, .node = 1, .memory_node = -1 }, b = { .why = PLACED }, back;
	json_t *json;

	(void) state;
	assert_int_equal(cpu_list_parse("4,6", &a.cpus), 0);
	placed_add_gpu(&a, "");
	placed_add_gpu(&a, "0000:3b:00.0");
	json = placed_to_json(&a);
	assert_int_equal(placed_from_json(json, &back), 0);
	assert_memory_equal(&a, &back, sizeof(a));
	json_decref(json);
	assert_int_equal(cpu_list_parse("5", &b.cpus), 0);
	placed_add_gpu(&b, "0000:86:00.0");
	placed_add_gpu(&b, "0000:3b:00.0");
	placed_add(&back, &b);
	assert_string_equal(back.gpus, "0000:3b:00.0,0000:86:00.0");
	assert_int_equal(CPU_COUNT(&back.cpus), 3);
	assert_int_equal(back.node, -1);
	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		json = json_loads(bad[i], JSON_DECODE_ANY, NULL);
		assert_non_null(json);
		assert_int_equal(placed_from_json(json, &back), -EBADMSG);
		json_decref(json);
	}
}

static void test_the_node_of_a_device_is_found_where_sysfs_says_it(void **state) {
	(void) state;
	clear();
	put("1", "class/infiniband/mlx5_0/device/numa_node");
	put("-1", "class/net/eth7/device/numa_node");
	put("1", "class/net/eth8/device/numa_node");
	put("eth8", "class/infiniband/rxe0/parent");
	assert_int_equal(device_node(root, "mlx5_0"), 1);
	assert_int_equal(device_node(root, "eth7"), -1);
	assert_int_equal(device_node(root, "rxe0"), 1);
	assert_int_equal(device_node(root, "none"), -1);
	assert_int_equal(device_node(root, "../infiniband/mlx5_0"), -1);
}

static int make_root(void **state) {
	(void) state;
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
	(void) state;
	clear();
	return rmdir(root);
}

int main(void) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_are_read_and_written),
		cmocka_unit_test(test_threads_are_on_cores_of_the_device_node),
		cmocka_unit_test(test_a_core_is_one_process_alone),
		cmocka_unit_test(test_a_named_core_of_another_process_is_the_last_choice),
		cmocka_unit_test(test_ends_of_several_rails_have_a_core_each_or_none_has),
		cmocka_unit_test(test_ends_that_share_devices_have_a_core_each_or_none_has),
		cmocka_unit_test(test_few_cores_are_left_alone),
		cmocka_unit_test(test_a_mask_without_the_node_leaves_no_core),
		cmocka_unit_test(test_isolated_processors_are_taken_where_they_are_named),
		cmocka_unit_test(test_a_machine_without_nodes_has_cores_all_the_same),
		cmocka_unit_test(test_a_node_is_named_for_cores_and_memory),
		cmocka_unit_test(test_what_a_host_has_not_is_named),
		cmocka_unit_test(test_ends_on_one_machine_are_placed_where_they_are_told),
		cmocka_unit_test(test_lists_of_both_ends_of_one_machine_share_no_core),
		cmocka_unit_test(test_a_place_survives_its_way_to_the_peer),
		cmocka_unit_test(test_the_node_of_a_device_is_found_where_sysfs_says_it),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_root, remove_root);
}
