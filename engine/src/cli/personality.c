/* SPDX-License-Identifier: Apache-2.0 */
/* The eight tools, as data: headers, widths, defaults and summary lines from their pages. */
#include "personality.h"

#include "base/message.h"

/* The lines that stand in all of a kind's summaries, in the order that the pages share. */
#define MEMORY_TOOL LINE_DEVICE, LINE_SERVICE, LINE_MEMORY, LINE_TYPE
#define ATOMIC_TOOL LINE_DEVICE, LINE_SERVICE, LINE_TYPE
#define LAT_LINES LINE_WARMUP, LINE_GAP
#define LAT_TAIL LINE_LL, LINE_RDZV, LINE_REPORTED
#define BUFFER_TAIL LINE_RDZV, LINE_BIDIRECTIONAL, LINE_BUFFER, LINE_HUGE, LINE_ADDRESSES

/*
 * cxi_send_lat is laid out as its page of version 2.1.0 has it. Its sisters' pages are only known in version 2.4.0,
 * which says more about restricted operations.
 */
static const struct personality tools[] = {
	{
		.name = "cxi_send_lat", .page = "2.1.0", .title = "CXI RDMA Send Latency Test",
		.family = TOOL_SEND | TOOL_LAT, .word = "Send",
		.size_header = "Bytes", .size_width = 10, .count_header = "Sends", .number_header = "SendNum",
		.label_width = 17, .iterations = 100, .size = 8,
		.lines = { MEMORY_TOOL, LAT_LINES, LINE_SIZE, LINE_IDC, LAT_TAIL, LINE_HUGE, LINE_ADDRESSES },
	},
	{
		.name = "cxi_write_lat", .page = "2.4.0", .title = "CXI RDMA Write Latency Test",
		.family = TOOL_WRITE | TOOL_LAT, .word = "Write",
		.size_header = "RDMA Size[B]", .size_width = 12, .count_header = "Writes", .number_header = "WriteNum",
		.label_width = 17, .iterations = 100, .size = 8,
		.lines = { MEMORY_TOOL, LAT_LINES, LINE_SIZE, LINE_IDC, LINE_RESTRICTED, LAT_TAIL, LINE_HUGE,
			   LINE_ADDRESSES },
	},
	{
		.name = "cxi_read_lat", .page = "2.4.0", .title = "CXI RDMA Read Latency Test",
		.family = TOOL_READ | TOOL_LAT, .word = "Read",
		.size_header = "RDMA Size[B]", .size_width = 12, .count_header = "Reads", .number_header = "ReadNum",
		.label_width = 17, .iterations = 100, .size = 8,
		.lines = { MEMORY_TOOL, LAT_LINES, LINE_SIZE, LINE_RESTRICTED, LAT_TAIL, LINE_HUGE, LINE_ADDRESSES },
	},
	{
		.name = "cxi_atomic_lat", .page = "2.4.0", .title = "CXI Atomic Memory Operation Latency Test",
		.family = TOOL_ATOMIC | TOOL_LAT,
		.word = "AMO", .size_header = "AMO Size[B]", .size_width = 11, .count_header = "Ops",
		.number_header = "OpNum",
		.label_width = 17, .iterations = 100,
		.lines = { ATOMIC_TOOL, LAT_LINES, LINE_ATOMIC, LINE_IDC, LINE_MATCHING, LINE_RESTRICTED, LAT_TAIL,
			   LINE_ADDRESSES },
	},
	{
		.name = "cxi_send_bw", .page = "2.4.0", .title = "CXI RDMA Send Bandwidth Test",
		.family = TOOL_SEND | TOOL_BW, .word = "Send",
		.size_header = "Send Size[B]", .size_width = 12, .count_header = "Sends",
		.rate_header = "PktRate[Mpkt/s]", .rate_width = 15,
		.label_width = 17, .iterations = 1000, .size = 65536, .list = 256,
		.lines = { MEMORY_TOOL, LINE_SIZE, LINE_LIST, LINE_IDC, BUFFER_TAIL },
	},
	{
		.name = "cxi_write_bw", .page = "2.4.0", .title = "CXI RDMA Write Bandwidth Test",
		.family = TOOL_WRITE | TOOL_BW, .word = "Write",
		.size_header = "RDMA Size[B]", .size_width = 12, .count_header = "Writes",
		.rate_header = "PktRate[Mpkt/s]", .rate_width = 15,
		.label_width = 17, .iterations = 1000, .size = 65536, .list = 256,
		.lines = { MEMORY_TOOL, LINE_SIZE, LINE_LIST, LINE_HRP, LINE_IDC, LINE_RESTRICTED, BUFFER_TAIL },
	},
	{
		.name = "cxi_read_bw", .page = "2.4.0", .title = "CXI RDMA Read Bandwidth Test",
		.family = TOOL_READ | TOOL_BW, .word = "Read",
		.size_header = "RDMA Size[B]", .size_width = 12, .count_header = "Reads",
		.rate_header = "PktRate[Mpkt/s]", .rate_width = 15,
		.label_width = 17, .iterations = 1000, .size = 65536, .list = 256,
		.lines = { MEMORY_TOOL, LINE_SIZE, LINE_LIST, LINE_RESTRICTED, BUFFER_TAIL },
	},
	{
		.name = "cxi_atomic_bw", .page = "2.4.0", .title = "CXI Atomic Memory Operation Bandwidth Test",
		.family = TOOL_ATOMIC | TOOL_BW,
		.word = "AMO", .size_header = "AMO Size[B]", .size_width = 11, .count_header = "Ops",
		.rate_header = "OpRate[M/s]", .rate_width = 13,
		.label_width = 16, .iterations = 10000, .list = 4096,
		.lines = { ATOMIC_TOOL, LINE_ATOMIC, LINE_LIST, LINE_HRP, LINE_IDC, LINE_MATCHING, LINE_RESTRICTED,
			   LINE_BIDIRECTIONAL, LINE_ADDRESSES },
	},
};

const struct personality *personality_find(const char *name) {
	const char *slash = strrchr(name, '/');

	for (size_t i = 0; i < ELEMENTSOF(tools); i++)
		if (streq(tools[i].name, slash ? slash + 1 : name))
			return &tools[i];
	return NULL;
}

int personality_asked(int argc, char **argv, const struct personality **ret, int *ret_skip) {
	static const char option[] = "--personality";
	const struct personality *p = argc > 0 ? personality_find(argv[0]) : NULL;
	const char *name = NULL;
	int skip = 0;

	if (!p && argc > 1 && strncmp(argv[1], option, strlen(option)) == 0) {
		if (argv[1][strlen(option)] == '=')
			name = argv[1] + strlen(option) + 1, skip = 1;
		else if (streq(argv[1], option) && argc > 2)
			name = argv[2], skip = 2;
		p = name ? personality_find(name) : NULL;
		if (!p)
			return failure(-EINVAL, EXIT_USAGE,
				       "--personality '%s': give cxi_send_lat, cxi_write_lat, cxi_read_lat, "
				       "cxi_atomic_lat, cxi_send_bw, cxi_write_bw, cxi_read_bw, cxi_atomic_bw or "
				       "mori_io_benchmark",
				       name ? name : "");
	}
	if (!p)
		return 0;
	*ret = p;
	*ret_skip = skip;
	return 1;
}
