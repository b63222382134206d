/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The originals' layout: a summary at both ends, then the client's tables (and, of bandwidth, the server's).
 * What the summary says is what is so, as far as the session knows it, and not what was asked for.
 *
 * Figures are perch's own: rounded, where the originals cut off, and with the standard deviation of a sample.
 */
#include "job/memory_kind.h"
#include "base/message.h"
#include "personality.h"

enum { COUNT_WIDTH = 10, TIME_WIDTH = 10, TIME_ALL_WIDTH = 11, BANDWIDTH_WIDTH = 8 };

/* What the lines of a summary are made of. */
struct summary {
	const struct personality *tool;
	const struct run *run;
	const struct job *job;
	const struct session *session;
	const json_t *end;                      /* the other one, as the record has it */
	const char *remote;                     /* its address */
	uint64_t buffer_limit;
};

/* How wide a tool's table is: its rules are as long. */
static int table_width(const struct personality *p) {
	if (p->family & TOOL_LAT)
		return p->size_width + 2 + COUNT_WIDTH + 4 * (2 + TIME_WIDTH);
	return p->size_width + 2 + COUNT_WIDTH + 2 + BANDWIDTH_WIDTH + 2 + p->rate_width;
}

static void print_rule(const struct personality *p) {
	for (int i = table_width(p); i > 0; i--)
		(void) putchar('-');
	(void) putchar('\n');
}

static void print_label(const struct summary *s, const char *label) {
	(void) printf("%-*s: ", s->tool->label_width, label);
}

static void print_text(const struct summary *s, const char *label, const char *text) {
	print_label(s, label);
	(void) printf("%s\n", text);
}

static void print_number(const struct summary *s, const char *label, uint64_t number, const char *unit) {
	print_label(s, label);
	(void) printf("%ju%s\n", (uintmax_t) number, unit);
}

static void print_switch(const struct summary *s, const char *label, bool on) {
	print_text(s, label, on ? "Enabled" : "Disabled");
}

static const char *gpu_maker(enum memory_type type) {
	return type == MEMORY_CUDA ? "NVIDIA" : type == MEMORY_ROCM ? "AMD" : "INTEL";
}

static void print_place(const struct summary *s, const char *label, const struct memory_kind *k) {
	print_label(s, label);
	if (k->near || k->address[0])
		(void) printf("GPU %s\n", k->near ? "near" : k->address);
	else if (memory_is_gpu(k->type))
		(void) printf("GPU %u\n", k->ordinal);
	else
		(void) printf("System\n");
}

/* One type a side, as the originals have one -g; a line only where the side's lines above it name a GPU. */
static void print_gpu_type(const struct summary *s, const char *label, const struct memory_kind *first,
			   const struct memory_kind *other) {
	if (memory_is_gpu(first->type))
		print_text(s, label, gpu_maker(first->type));
	else if (s->job->bidirectional && memory_is_gpu(other->type))
		print_text(s, label, gpu_maker(other->type));
}

/* The client's transmit and the server's receive memory are what the measured way goes through; both ways, all four. */
static void print_memory(const struct summary *s) {
	const struct memory_kind tx = job_tx_memory(s->job), rx = job_rx_memory(s->job);

	print_place(s, "Client TX Mem", &tx);
	if (s->job->bidirectional)
		print_place(s, "Client RX Mem", &rx);
	print_gpu_type(s, "Client GPU Type", &tx, &rx);
	if (s->job->bidirectional)
		print_place(s, "Server TX Mem", &tx);
	print_place(s, "Server RX Mem", &rx);
	print_gpu_type(s, "Server GPU Type", &rx, &tx);
}

static void print_type(const struct summary *s) {
	const struct job *j = s->job;

	print_text(s, "Test Type", j->duration_ns ? "Duration" : "Iteration");
	if (j->duration_ns)
		print_number(s, "Duration", j->duration_ns / NSEC_PER_SEC, " seconds");
	else
		print_number(s, "Iterations", j->kind == KIND_LATENCY ? j->iterations : j->iterations / j->outstanding,
			     "");
}

static void print_sizes(const struct summary *s) {
	const struct job *j = s->job;
	char label[32];

	if (j->n_sizes == 1) {
		(void) snprintf(label, sizeof(label), "%s Size", s->tool->word);
		print_number(s, label, j->sizes[0], "");
		return;
	}
	(void) snprintf(label, sizeof(label), "Min %s Size", s->tool->word);
	print_number(s, label, j->sizes[0], "");
	(void) snprintf(label, sizeof(label), "Max %s Size", s->tool->word);
	print_number(s, label, j->sizes[j->n_sizes - 1], "");
}

/* perch's word for an operation or a type, in the originals' letters. */
static void print_upper(const char *word) {
	for (; *word; word++)
		(void) putchar(*word == '-' ? '_' : *word >= 'a' && *word <= 'z' ? *word - 'a' + 'A' : *word);
}

static void print_atomic(const struct summary *s) {
	static const char *const compares[] = { [ATOMIC_CSWAP] = "CSWAP EQ", [ATOMIC_CSWAP_NE] = "CSWAP NE",
						[ATOMIC_CSWAP_LE] = "CSWAP LE", [ATOMIC_CSWAP_LT] = "CSWAP LT",
						[ATOMIC_CSWAP_GE] = "CSWAP GE", [ATOMIC_CSWAP_GT] = "CSWAP GT",
						[ATOMIC_MSWAP] = "AXOR" };
	const struct job *j = s->job;

	print_label(s, "Atomic Op");
	(void) printf("%s ", j->op == OP_ATOMIC_OP ? "NON-FETCHING" : "FETCHING");
	if (j->op == OP_COMPARE_ATOMIC)
		(void) printf("%s", compares[j->atomic_op]);
	else
		print_upper(j->atomic_op == ATOMIC_WRITE ? "swap" : atomic_op_names[j->atomic_op]);
	(void) putchar('\n');
	print_label(s, "Atomic Type");
	print_upper(atomic_type_names[j->atomic_type]);
	(void) putchar('\n');
}

/* Huge pages of both directions' buffers: a region has whole ones. */
static uint64_t huge_pages(const struct run *r) {
	const struct memory_kind kinds[] = { job_tx_memory(r->job), job_rx_memory(r->job) };
	uint64_t n = 0;

	for (size_t i = 0; i < r->arena.n_regions; i++)
		if (kinds[i].huge)
			n += r->arena.regions[i].length / kinds[i].huge;
	return n;
}

static void print_huge(const struct summary *s) {
	uint64_t huge = job_huge(s->job);

	print_label(s, "Hugepages");
	if (huge)
		(void) printf("Enabled (%s - %ju pages)\n", huge == JOB_HUGE_2M ? "2M" : "1G",
			      (uintmax_t) huge_pages(s->run));
	else
		(void) printf("%s\n", job_uses_gpu(s->job) ? "Disabled - Not Applicable" : "Disabled");
}

/* Bytes of the buffers of one direction. */
static uint64_t buffer_used(const struct run *r) {
	return (uint64_t) r->arena.distinct * r->arena.stride;
}

static void print_buffer(const struct summary *s) {
	print_label(s, "Max RDMA Buf");
	(void) printf("%ju (%ju used)\n", (uintmax_t) (s->buffer_limit ? s->buffer_limit : JOB_SIZE_MAX + 1),
		      (uintmax_t) buffer_used(s->run));
	print_number(s, "RDMA Buf Align", PERSONALITY_ALIGN, "");
}

static void print_addresses(const struct summary *s) {
	bool server = s->run->role == ROLE_SERVER;

	print_label(s, server ? "Local (server)" : "Local (client)");
	(void) printf("%s", s->session->address);
	if (s->session->slingshot->vni >= 0)
		(void) printf(" VNI %d", s->session->slingshot->vni);
	(void) putchar('\n');
	print_text(s, server ? "Remote (client)" : "Remote (server)", s->remote ? s->remote : "unknown");
}

static void print_device(const struct summary *s) {
	print_text(s, "Device", s->session->device);
}

static void print_service(const struct summary *s) {
	if (s->session->slingshot->svc_id >= 0)
		print_number(s, "Service ID", (uint64_t) s->session->slingshot->svc_id, "");
	else
		print_text(s, "Service ID", "default (the provider's choice)");
}

static void print_warmup(const struct summary *s) {
	print_number(s, "Warmup Iters", s->job->warmup, "");
}

static void print_gap(const struct summary *s) {
	print_number(s, "Inter-Iter Gap", s->job->gap_ns / NSEC_PER_USEC, " microseconds");
}

static void print_list(const struct summary *s) {
	print_number(s, "List Size", s->job->outstanding, "");
}

/* None of a summary's sizes is a high-rate put where the smallest is too large for one. */
static void print_hrp(const struct summary *s) {
	print_switch(s, "HRP", s->session->slingshot->hrp_up_to >= s->job->sizes[0]);
}

static void print_idc(const struct summary *s) {
	print_switch(s, "IDC", exchange_agree(s->run, s->end, "idc", s->session->slingshot->idc));
}

static void print_matching(const struct summary *s) {
	print_switch(s, "Matching LEs", s->session->slingshot->keys == KEYS_MATCHING);
}

static void print_restricted(const struct summary *s) {
	print_switch(s, "Restricted", !s->session->slingshot->unrestricted);
}

static void print_ll(const struct summary *s) {
	print_switch(s, "LL Cmd Launch", exchange_agree(s->run, s->end, "ll", s->session->slingshot->ll));
}

/* The page has no line for it; whoever asks for it wants to see it. */
static void print_rdzv(const struct summary *s) {
	if (s->job->cxi.rdzv)
		print_switch(s, "Rendezvous PUTs", true);
}

static void print_bidirectional(const struct summary *s) {
	print_switch(s, "Bidirectional", s->job->bidirectional);
}

static void print_reported(const struct summary *s) {
	print_text(s, "Results Reported", s->job->report_all ? "All" : "Summary");
}

static void (*const line_printers[])(const struct summary *s) = {
	[LINE_DEVICE] = print_device,
	[LINE_SERVICE] = print_service,
	[LINE_MEMORY] = print_memory,
	[LINE_TYPE] = print_type,
	[LINE_WARMUP] = print_warmup,
	[LINE_GAP] = print_gap,
	[LINE_SIZE] = print_sizes,
	[LINE_ATOMIC] = print_atomic,
	[LINE_LIST] = print_list,
	[LINE_HRP] = print_hrp,
	[LINE_IDC] = print_idc,
	[LINE_MATCHING] = print_matching,
	[LINE_RESTRICTED] = print_restricted,
	[LINE_LL] = print_ll,
	[LINE_RDZV] = print_rdzv,
	[LINE_BIDIRECTIONAL] = print_bidirectional,
	[LINE_REPORTED] = print_reported,
	[LINE_BUFFER] = print_buffer,
	[LINE_HUGE] = print_huge,
	[LINE_ADDRESSES] = print_addresses,
};

static void print_summary(const struct summary *s) {
	print_rule(s->tool);
	(void) printf("    %s\n", s->tool->title);
	for (const enum summary_line *l = s->tool->lines; *l != LINE_END; l++)
		line_printers[*l](s);
	/* On standard error, so that the layout stays the page's; the client has said so already. */
	if (s->session->simulated && s->run->role == ROLE_SERVER)
		notice("%s: %s is a simulated device: these figures are no proof of hardware", s->tool->name,
		       s->session->device);
}

static struct summary summary_of(const struct personality *p, const struct run *r, const json_t *end,
				 uint64_t buffer_limit) {
	return (struct summary) {
		.tool = p,
		.run = r,
		.job = r->job,
		.session = r->session,
		.end = end,
		.remote = json_string_value(json_object_get(end, "address")),
		.buffer_limit = buffer_limit,
	};
}

static void print_table_header(const struct personality *p) {
	if (p->family & TOOL_LAT)
		(void) printf("%*s  %*s  %*s  %*s  %*s  %*s\n", p->size_width, p->size_header, COUNT_WIDTH,
			      p->count_header, TIME_WIDTH, "Min[us]", TIME_WIDTH, "Max[us]", TIME_WIDTH, "Mean[us]",
			      TIME_WIDTH, "StdDev[us]");
	else
		(void) printf("%*s  %*s  %*s  %*s\n", p->size_width, p->size_header, COUNT_WIDTH, p->count_header,
			      BANDWIDTH_WIDTH, "BW[MB/s]", p->rate_width, p->rate_header);
}

static void header(const struct options *o, const struct run *r, const json_t *server) {
	const struct summary s = summary_of(o->personality, r, server, o->buffer_limit);

	print_summary(&s);
	print_rule(o->personality);
	if (!r->job->report_all)
		print_table_header(o->personality);
	(void) fflush(stdout);
}

static void print_samples(const struct personality *p, const struct run *r, double us) {
	(void) printf("%*s  %*s\n", COUNT_WIDTH, p->number_header, TIME_ALL_WIDTH, "Latency[us]");
	for (uint64_t i = 0; i < r->outcome.messages; i++)
		(void) printf("%*ju  %*.3f\n", COUNT_WIDTH, (uintmax_t) i, TIME_ALL_WIDTH,
			      (double) r->outcome.samples[i] * us);
	print_rule(p);
	print_table_header(p);
}

static void print_latency(const struct personality *p, const struct result *result) {
	const struct run *r = result->run;
	const struct histogram *h = r->total;
	const double us = r->phase.half_round_trip ? 0.5e-3 : 1e-3;

	if (r->job->report_all) {
		/* A rule stands before the first size's already. */
		if (result->size != r->job->sizes[0])
			print_rule(p);
		print_samples(p, r, us);
	}
	(void) printf("%*ju  %*ju  %*.2f  %*.2f  %*.2f  %*.2f\n", p->size_width, (uintmax_t) result->size, COUNT_WIDTH,
		      (uintmax_t) h->count, TIME_WIDTH, (double) h->min * us, TIME_WIDTH, (double) h->max * us,
		      TIME_WIDTH, histogram_mean(h) * us, TIME_WIDTH, histogram_stddev(h) * us);
}

/* `own`: operations that this end started; UINT64_MAX: none. `all`: those of both ends, in the client's time. */
static void print_bandwidth(const struct personality *p, uint64_t size, uint64_t own, uint64_t all,
			    uint64_t elapsed_ns) {
	const double per_us = (double) all / (double) elapsed_ns * 1e3;
	const uint64_t packets = p->family & TOOL_ATOMIC ? 1 : (size + PERSONALITY_MTU - 1) / PERSONALITY_MTU;

	(void) printf("%*ju  ", p->size_width, (uintmax_t) size);
	if (own == UINT64_MAX)
		(void) printf("%*s", COUNT_WIDTH, "-");
	else
		(void) printf("%*ju", COUNT_WIDTH, (uintmax_t) own);
	(void) printf("  %*.2f  %*.6f\n", BANDWIDTH_WIDTH, per_us * (double) size, p->rate_width,
		      per_us * (double) packets);
}

/* A size that failed, or broke off, has no line: the layout has no word for it, and standard error says why. */
static void result(const struct options *o, const struct result *result) {
	const struct run *r = result->run;
	const struct personality *p = o->personality;

	if (result->code != EXIT_MEASURED)
		return;
	if (p->family & TOOL_LAT && r->total->count > 0)
		print_latency(p, result);
	else if (p->family & TOOL_BW && r->outcome.elapsed_ns > 0)
		print_bandwidth(p, result->size, r->outcome.messages, result->messages, r->outcome.elapsed_ns);
	(void) fflush(stdout);
}

static void end(const struct options *o) {
	print_rule(o->personality);
	(void) fflush(stdout);
}

/* The buffers are laid out before anybody can say what they take. */
static int check(const struct options *o, const struct run *r) {
	uint64_t used = buffer_used(r);

	if (o->buffer_limit == 0 || used <= o->buffer_limit)
		return 0;
	return failure(-EINVAL, EXIT_USAGE,
		       "%s: --buf-sz %ju: the buffers of one direction take %ju bytes here; raise it, or lower --size",
		       o->personality->name, (uintmax_t) o->buffer_limit, (uintmax_t) used);
}

const struct writer personality_writer = { .check = check, .header = header, .result = result, .end = end };

static bool op_fits(const struct personality *p, enum op op) {
	return ((p->family & TOOL_SEND) && op == OP_SEND) || ((p->family & TOOL_WRITE) && op == OP_WRITE) ||
	       ((p->family & TOOL_READ) && op == OP_READ) || ((p->family & TOOL_ATOMIC) && op_is_general_atomic(op));
}

/* The client's word counts for both ends: a server that was told of another GPU must not measure this one. */
static int check_memory(const char *own, const char *asked, char letter) {
	if (!own[0] || streq(own, asked))
		return 0;
	return failure(-EPERM, EXIT_PEER, "this server was started with -%c for %s, and the client asks for %s; "
		       "give both ends the same", letter, own, asked);
}

int personality_serve_check(const struct options *o, const struct job *job) {
	const struct personality *p = o->personality;
	int r;

	if (op_fits(p, job->op) && (job->kind == KIND_LATENCY) == ((p->family & TOOL_LAT) != 0) &&
	    streq(job->backend, "cxi")) {
		r = check_memory(o->job.tx_memory, job->tx_memory, 't');
		return r < 0 ? r : check_memory(o->job.rx_memory, job->rx_memory, 'r');
	}
	return failure(-EPERM, EXIT_PEER, "this server was started as %s, and the client wants %s %s over %s; "
		       "start the same program on both hosts, or perch serve", p->name, op_name((int) job->op),
		       kind_name((int) job->kind), job->backend);
}

void personality_serve_begin(const struct personality *p, const struct run *r, const struct peer *peer) {
	const struct summary s = summary_of(p, r, peer->end, 0);

	print_summary(&s);
	print_rule(p);
	if (p->family & TOOL_LAT)
		(void) printf("See client for results.\n");
	else
		print_table_header(p);
	(void) fflush(stdout);
}

void personality_serve_phase(const struct personality *p, const struct run *r) {
	bool receives = op_takes_receive(r->job->op), both = r->job->bidirectional;
	uint64_t theirs = receives ? r->outcome.received : r->peer_count;

	if (!(p->family & TOOL_BW) || r->phase.warmup || r->peer_elapsed_ns == 0)
		return;
	print_bandwidth(p, r->phase.size, both ? r->outcome.messages : UINT64_MAX,
			theirs + (both ? r->outcome.messages : 0), r->peer_elapsed_ns);
	(void) fflush(stdout);
}

void personality_serve_end(const struct personality *p) {
	print_rule(p);
	(void) fflush(stdout);
}
