/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perch under another program's name: the command line and the layout of HPE's cxi_send_lat(1) and its seven sisters.
 *
 * A front end and no more: the original's options are turned into perch's own words (personality_options.c), those are
 * parsed as any command line is, and the job is measured by the same code; only the lines that come out look otherwise
 * (personality_print.c). One table (personality.c) says what the eight tools have in common, and where they differ.
 *
 * It cannot talk to the originals: the two ends speak perch's control protocol, and the data goes through libfabric.
 */
#pragma once

#include "measure/exchange.h"
#include "options.h"
#include "writer.h"

enum {
	PERSONALITY_PORT = 49194,               /* the originals' default, as all defaults here (cxi_send_lat(1)) */
	/* bytes of a packet: the Portals MTU, by which the originals count packets (cxi_write_bw(1)) */
	PERSONALITY_MTU = 2048,
	/* bytes: how buffers lie here (memory.c); the originals' default is 64 */
	PERSONALITY_ALIGN = 128,
	PERSONALITY_VNI = 10,                   /* fi_cxi(7), FI_CXI_DEFAULT_VNI */
	PERSONALITY_SERVICE = 1,                /* CXI_DEFAULT_SVC_ID of libcxi: the originals' default of -v */
	PERSONALITY_LINES_MAX = 24,
};

/* As in the originals' names: what is measured. */
enum tool_family {
	TOOL_SEND = 1 << 0,
	TOOL_WRITE = 1 << 1,
	TOOL_READ = 1 << 2,
	TOOL_ATOMIC = 1 << 3,
	TOOL_LAT = 1 << 4,                      /* with one of those above; else bandwidth */
	TOOL_BW = 1 << 5,
};

/* The lines of a summary; a tool lists its own, in the order of its page. */
enum summary_line {
	LINE_END,
	LINE_DEVICE,
	LINE_SERVICE,
	LINE_MEMORY,
	LINE_TYPE,                              /* test type, and iterations or duration */
	LINE_WARMUP,
	LINE_GAP,
	LINE_SIZE,
	LINE_ATOMIC,                            /* operation and type */
	LINE_LIST,
	LINE_HRP,
	LINE_IDC,
	LINE_MATCHING,
	LINE_RESTRICTED,
	LINE_LL,
	LINE_RDZV,
	LINE_BIDIRECTIONAL,
	LINE_REPORTED,
	LINE_BUFFER,
	LINE_HUGE,
	LINE_ADDRESSES,
};

struct personality {
	const char *name;
	const char *page;                       /* version of the page whose layout this is */
	const char *title;
	unsigned family;                        /* enum tool_family: one operation, and LAT or BW */
	const char *word;                       /* "Send": as in "Min Send Size" */
	const char *size_header, *count_header, *number_header, *rate_header;
	/* columns; a count has 10, a time 10 and a bandwidth 8 in all of them */
	int size_width, rate_width;
	int label_width;                        /* of the summary, up to the colon */
	uint64_t iterations, size, list;        /* defaults; 0: it has none */
	enum summary_line lines[PERSONALITY_LINES_MAX];
};

/* A program's name, without its directory; NULL: it is none of the eight. */
const struct personality *personality_find(const char *name);

/*
 * Whether a command line is a personality's: by the program's name, or by `--personality NAME` as its first words.
 * >0: it is, and *ret and *ret_skip (words to leave out before what then stands as argv[0]) are set; 0: it is not.
 * -EINVAL, said: no such personality.
 */
int personality_asked(int argc, char **argv, const struct personality **ret, int *ret_skip);

/* Parses the original's command line into perch's options. Like options_parse(). */
int personality_parse(const struct personality *p, int argc, char **argv, struct options *ret);

/* What it says of itself; "--help" and "--version" of the original. */
void personality_print_help(FILE *f, const struct personality *p);
void personality_print_version(FILE *f, const struct personality *p);

/* personality_print.c: how the client writes. */
extern const struct writer personality_writer;

/*
 * The server's side of the same, in the process that runs the job. check: -EPERM, said, where the client wants
 * something else than the tool, or the GPUs, that this server was started with. phase: after each size. What they print
 * is flushed.
 */
int personality_serve_check(const struct options *o, const struct job *job);

/*
 * The originals name a service alone and find its VNI by libcxi, which is not needed here:
 * the VNI that goes with a service is then what fi_cxi(7) takes by default, FI_CXI_DEFAULT_VNI or 10.
 * -1: SLINGSHOT_VNIS names one, or that variable names none that there is.
 */
int32_t personality_vni(void);
void personality_serve_begin(const struct personality *p, const struct run *r, const struct peer *peer);
void personality_serve_phase(const struct personality *p, const struct run *r);
void personality_serve_end(const struct personality *p);
