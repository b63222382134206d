/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The originals' command lines, from one table: parsing, help, and the words of perch that say the same.
 * What the originals take for granted is said there too: a gap, a barrier before each iteration,
 * a list of writes that is waited for as a whole.
 */
#include <ctype.h>
#include <getopt.h>

#include "backends/backend.h"
#include "memory/gpu.h"
#include "base/message.h"
#include "job/parse.h"
#include "personality.h"
#include "base/suggest.h"
#include "version.h"
#include "words.h"

enum {
	GETOPT_FIRST = 256,             /* what getopt_long() answers for the first entry: above any letter */
	ORIGINALS_MAX = 40,
	HELP_COLUMN = 26,               /* where the originals' helps begin their sentences */
};

/* Bounds of counts that are added up or multiplied later: far above what anybody measures, far below 2^63. */
#define COUNT_MAX UINT64_C(100000000000)
#define SECONDS_MAX (UINT64_C(365) * 24 * 3600 - 1)
#define LIST_MAX 16382 /* cxi_write_bw(1); below JOB_OUTSTANDING_MAX */
#define GAP_US_MAX (60 * UINT64_C(1000000)) /* what perch's --gap takes */
#define BUFFER_MAX (UINT64_C(1) << 62)

/* What a command line asked for, before it is turned into perch's words. */
struct request {
	const char *host;               /* NULL: be the server */
	const char *device, *gpu_type, *tx_gpu, *rx_gpu;
	uint64_t svc_id, port, iterations, duration, warmup, gap_us, list, buffer, align;
	uint64_t min, max;              /* sizes; max 0: one size */
	unsigned huge, clock, atomic_op, swap_op, atomic_type;
	bool svc, iterated, compared, no_idc, no_ll, rdzv, report_all, ignore_mismatch, bidirectional, unrestricted,
		no_hrp, fetching, matching;
};

enum original_type { ORIGINAL_FLAG, ORIGINAL_COUNT, ORIGINAL_TEXT, ORIGINAL_CHOICE, ORIGINAL_SIZES, ORIGINAL_HELP,
		     ORIGINAL_VERSION };

static const char *const huge_names[] = { "", "2M", "1G", NULL };
static const char *const clock_words[] = { "clock_gettime", "cycles", NULL };
static const char *const gpu_names[] = { "AMD", "NVIDIA", "INTEL", NULL };
/*
 * The originals' words, and what perch calls the same: fi_atomic(3)'s operations,
 * by what the cxi provider makes of them.
 */
static const char *const atomic_ops[] = { "SUM", "MIN", "MAX", "LOR", "LAND", "BOR", "BAND", "LXOR", "BXOR", "SWAP",
					  "CSWAP", "AXOR", NULL };
static const char *const atomic_words[] = { "sum", "min", "max", "lor", "land", "bor", "band", "lxor", "bxor", "write",
					    NULL, "mswap" };
static const char *const swap_ops[] = { "EQ", "NE", "LE", "LT", "GE", "GT", NULL };
static const char *const swap_words[] = { "cswap", "cswap-ne", "cswap-le", "cswap-lt", "cswap-ge", "cswap-gt" };
static const char *const atomic_types[] = { "UINT64", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64",
					    "FLOAT", "DOUBLE", "FLOAT_COMPLEX", "DOUBLE_COMPLEX", "UINT128", NULL };
enum { ATOMICS_SWAP = 9, ATOMICS_CSWAP, ATOMICS_AXOR };

#define LAT TOOL_LAT
#define BW TOOL_BW
#define SEND TOOL_SEND
#define WRITE TOOL_WRITE
#define READ TOOL_READ
#define ATOMIC TOOL_ATOMIC
#define BUFFERED (SEND | WRITE | READ)
#define ANY (BUFFERED | ATOMIC)
#define BOTH (LAT | BW)
#define INTO(member) .offset = offsetof(struct request, member), .size = sizeof(((struct request *) NULL)->member)

static const struct original {
	char letter;
	const char *name, *metavar;     /* metavar NULL: takes no value */
	const char *help;
	unsigned families;              /* enum tool_family: an operation and a kind that have it */
	bool own;                       /* the server takes it, too; all else is the client's to say */
	enum original_type type;
	size_t offset, size;
	uint64_t min, max;
	const char *const *choices;     /* in any case of letters, as the originals take them */
} originals[] = {
	{ 'd', "device", "DEV", "Device (default: cxi0)", ANY | BOTH, true, ORIGINAL_TEXT, INTO(device), 0, 0, NULL },
	{ 'v', "svc-id", "SVC_ID", "Service ID (default: the provider's choice)", ANY | BOTH, true, ORIGINAL_COUNT,
	  INTO(svc_id), 0, JOB_SVC_ID_MAX, NULL },
	{ 'p', "port", "PORT", "TCP port to listen on or connect to (default: 49194)", ANY | BOTH, true, ORIGINAL_COUNT,
	  INTO(port), 1, UINT16_MAX, NULL },
	{ 't', "tx-gpu", "GPU", "GPU whose memory is sent from, at both ends (default: system memory); turns IDC off",
	  BUFFERED | BOTH, true, ORIGINAL_TEXT, INTO(tx_gpu), 0, 0, NULL },
	{ 'r', "rx-gpu", "GPU", "GPU whose memory is received into, at both ends (default: system memory)",
	  BUFFERED | BOTH, true, ORIGINAL_TEXT, INTO(rx_gpu), 0, 0, NULL },
	{ 'g', "gpu-type", "TYPE", "AMD, NVIDIA or INTEL (default: by the device files here)", BUFFERED | BOTH, true,
	  ORIGINAL_TEXT, INTO(gpu_type), 0, 0, gpu_names },
	{ 'n', "iters", "ITERS", "Iterations for each size", ANY | BOTH, false, ORIGINAL_COUNT, INTO(iterations), 1,
	  COUNT_MAX, NULL },
	{ 'D', "duration", "SEC", "Seconds for each size; outranks --iters", ANY | BOTH, false, ORIGINAL_COUNT,
	  INTO(duration), 1, SECONDS_MAX, NULL },
	{ 0, "warmup", "WARMUP", "Iterations before the measurement, for each size (default: 10)", ANY | LAT, false,
	  ORIGINAL_COUNT, INTO(warmup), 0, COUNT_MAX, NULL },
	{ 0, "latency-gap", "USEC", "Microseconds between two iterations (default: 1000)", ANY | LAT, false,
	  ORIGINAL_COUNT, INTO(gap_us), 0, GAP_US_MAX, NULL },
	{ 's', "size", "MIN[:MAX]", "Size, or the powers of two from MIN to MAX; at most 4294967295", BUFFERED | BOTH,
	  false, ORIGINAL_SIZES, INTO(min), 0, 0, NULL },
	{ 'l', "list-size", "SIZE", "Operations of one iteration, which are waited for together", ANY | BW, false,
	  ORIGINAL_COUNT, INTO(list), 1, LIST_MAX, NULL },
	{ 'b', "bidirectional", NULL, "Measure both directions at once", ANY | BW, false, ORIGINAL_FLAG,
	  INTO(bidirectional), 0, 0, NULL },
	{ 'A', "atomic-op", "OP", "MIN, MAX, SUM, LOR, LAND, BOR, BAND, LXOR, BXOR, SWAP, CSWAP or AXOR (default: SUM)",
	  ATOMIC | BOTH, false, ORIGINAL_CHOICE, INTO(atomic_op), 0, 0, atomic_ops },
	{ 'C', "cswap-op", "OP", "Of CSWAP: EQ, NE, LE, LT, GE or GT (default: EQ)", ATOMIC | BOTH, false,
	  ORIGINAL_CHOICE, INTO(swap_op), 0, 0, swap_ops },
	{ 'T', "atomic-type", "TYPE", "INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FLOAT, DOUBLE, "
	  "FLOAT_COMPLEX, DOUBLE_COMPLEX or UINT128 (default: UINT64)", ATOMIC | BOTH, false, ORIGINAL_CHOICE,
	  INTO(atomic_type), 0, 0, atomic_types },
	{ 0, "fetching", NULL, "Fetching atomics (default: non-fetching)", ATOMIC | BOTH, false, ORIGINAL_FLAG,
	  INTO(fetching), 0, 0, NULL },
	{ 0, "matching", NULL, "Matching list entries at the target", ATOMIC | BOTH, false, ORIGINAL_FLAG,
	  INTO(matching), 0, 0, NULL },
	{ 0, "unrestricted", NULL, "Unrestricted operations", WRITE | READ | ATOMIC | BOTH, false, ORIGINAL_FLAG,
	  INTO(unrestricted), 0, 0, NULL },
	{ 0, "no-hrp", NULL, "No high-rate puts", WRITE | ATOMIC | BW, false, ORIGINAL_FLAG, INTO(no_hrp), 0, 0, NULL },
	{ 0, "no-idc", NULL, "No immediate data commands", SEND | WRITE | ATOMIC | BOTH, false, ORIGINAL_FLAG,
	  INTO(no_idc), 0, 0, NULL },
	{ 0, "no-ll", NULL, "No low-latency command issue", ANY | LAT, false, ORIGINAL_FLAG, INTO(no_ll), 0, 0, NULL },
	{ 'R', "rdzv", NULL, "Rendezvous transfers; turns IDC off", SEND | BOTH, false, ORIGINAL_FLAG, INTO(rdzv), 0, 0,
	  NULL },
	{ 0, "report-all", NULL, "Print each latency; without effect with --duration", ANY | LAT, false, ORIGINAL_FLAG,
	  INTO(report_all), 0, 0, NULL },
	{ 0, "buf-sz", "SIZE", "Bytes that the buffers of one direction may take", BUFFERED | BW, false, ORIGINAL_COUNT,
	  INTO(buffer), 1, BUFFER_MAX, NULL },
	{ 0, "buf-align", "ALIGN", "Bytes by which they are aligned: 1 to 128, a power of two", BUFFERED | BW, false,
	  ORIGINAL_COUNT, INTO(align), 1, PERSONALITY_ALIGN, NULL },
	{ 0, "use-hp", "SIZE", "Huge pages: 2M or 1G (default: ordinary pages)", BUFFERED | BOTH, false,
	  ORIGINAL_CHOICE, INTO(huge), 0, 0, huge_names },
	{ 'c', "clock", "TYPE", "clock_gettime or cycles (default: clock_gettime)", SEND | LAT, false, ORIGINAL_CHOICE,
	  INTO(clock), 0, 0, clock_words },
	{ 0, "ignore-cpu-freq-mismatch", NULL,
	  "With cycles: measure also where the counter does not prove to be a clock", SEND | LAT, false, ORIGINAL_FLAG,
	  INTO(ignore_mismatch), 0, 0, NULL },
	{ 'h', "help", NULL, "Print this help and exit", ANY | BOTH, true, ORIGINAL_HELP, 0, 0, 0, 0, NULL },
	{ 'V', "version", NULL, "Print the version and exit", ANY | BOTH, true, ORIGINAL_VERSION, 0, 0, 0, 0, NULL },
};

#undef LAT
#undef BW
#undef SEND
#undef WRITE
#undef READ
#undef ATOMIC

_Static_assert(ELEMENTSOF(originals) <= ORIGINALS_MAX, "raise ORIGINALS_MAX");
_Static_assert(ELEMENTSOF(atomic_ops) == ELEMENTSOF(atomic_words) + 1 &&
	       ELEMENTSOF(swap_ops) == ELEMENTSOF(swap_words) + 1, "one word each");

static bool has(const struct personality *p, const struct original *o) {
	return (o->families & p->family) == p->family;
}

static int bad_value(const struct personality *p, const struct original *o, const char *value, const char *accepts) {
	return failure(-EINVAL, EXIT_USAGE, "%s: --%s '%.64s': %s", p->name, o->name, value, accepts);
}

/* Joins choices for a message: "2M, 1G". */
static const char *join(const char *const *choices, char *ret, size_t size) {
	size_t n = 0;

	*ret = '\0';
	for (size_t i = 0; choices[i] && n < size; i++)
		if (choices[i][0])
			n += (size_t) snprintf(ret + n, size - n, "%s%s", n > 0 ? ", " : "", choices[i]);
	return ret;
}

static int store_choice(const struct personality *p, const struct original *o, const char *value, unsigned *ret) {
	const char *nearest = suggest_nearest(value, o->choices);
	char words[160] = "give one of ";

	for (unsigned i = 0; o->choices[i]; i++)
		if (o->choices[i][0] && strcasecmp(value, o->choices[i]) == 0) {
			if (ret)
				*ret = i;
			return 0;
		}
	if (nearest) {
		(void) snprintf(words, sizeof(words), "did you mean '%s'?", nearest);
		return bad_value(p, o, value, words);
	}
	(void) join(o->choices, words + strlen(words), sizeof(words) - strlen(words));
	return bad_value(p, o, value, words);
}

static int store_count(const struct personality *p, const struct original *o, const char *value, uint64_t *ret) {
	char words[96];
	uint64_t n;

	(void) snprintf(words, sizeof(words), "give a whole number from %ju to %ju", (uintmax_t) o->min,
			(uintmax_t) o->max);
	if (parse_u64(value, &n) < 0 || n < o->min || n > o->max)
		return bad_value(p, o, value, words);
	*ret = n;
	return 0;
}

/* Where a range is given, its powers of two: *ret_max stays 0 with one size. */
static int store_sizes(const struct personality *p, const struct original *o, const char *value, uint64_t *ret_min,
		       uint64_t *ret_max) {
	static const char accepts[] = "give MIN or MIN:MAX in bytes, from 1 to 4294967295";
	const char *colon = strchr(value, ':');
	size_t length = colon ? (size_t) (colon - value) : strlen(value);
	uint64_t min, max, first = 1, last = 1;
	char text[24];

	if (length >= sizeof(text))
		return bad_value(p, o, value, accepts);
	(void) snprintf(text, sizeof(text), "%.*s", (int) length, value);
	if (parse_u64(text, &min) < 0 || (colon && parse_u64(colon + 1, &max) < 0))
		return bad_value(p, o, value, accepts);
	if (!colon)
		max = min;
	if (min < 1 || max < min || max > JOB_SIZE_MAX)
		return bad_value(p, o, value, accepts);
	if (colon) {
		while (first < min)
			first *= 2;
		while (last * 2 <= max)
			last *= 2;
		if (first > last)
			return bad_value(p, o, value,
					 "there is no power of two in this range, and a range is its powers of two");
	}
	*ret_min = colon ? first : min;
	*ret_max = colon ? last : 0;
	return 0;
}

static int store(const struct personality *p, const struct original *o, const char *value, struct request *r) {
	void *field = (char *) r + o->offset;

	if (value && !*value)
		return bad_value(p, o, value, "an empty value says nothing");
	/* of these it matters, too, whether they were given */
	r->svc |= o->letter == 'v';
	r->iterated |= o->letter == 'n';
	r->compared |= o->letter == 'C';
	switch (o->type) {
	case ORIGINAL_FLAG:
		*(bool *) field = true;
		return 0;
	case ORIGINAL_COUNT:
		return store_count(p, o, value, field);
	case ORIGINAL_TEXT:
		*(const char **) field = value;
		return o->choices ? store_choice(p, o, value, NULL) : 0;
	case ORIGINAL_CHOICE:
		return store_choice(p, o, value, field);
	case ORIGINAL_SIZES:
		return store_sizes(p, o, value, &r->min, &r->max);
	default:
		return 0;
	}
}

static void build_getopt(const struct personality *p, struct option ret[ORIGINALS_MAX + 1],
			 char ret_letters[2 * ORIGINALS_MAX + 2]) {
	size_t n = 0, letters = 0;

	ret_letters[letters++] = ':'; /* tell a missing value from an unknown option */
	for (size_t i = 0; i < ELEMENTSOF(originals); i++) {
		const struct original *o = &originals[i];

		if (!has(p, o))
			continue;
		ret[n++] = (struct option) { .name = o->name, .has_arg = o->metavar ? required_argument : no_argument,
					     .val = GETOPT_FIRST + (int) i };
		if (o->letter)
			ret_letters[letters++] = o->letter;
		if (o->letter && o->metavar)
			ret_letters[letters++] = ':';
	}
	ret_letters[letters] = '\0';
	ret[n] = (struct option) { 0 };
}

static const struct original *original_of(int value) {
	if (value >= GETOPT_FIRST)
		return &originals[value - GETOPT_FIRST];
	for (size_t i = 0; value > 0 && i < ELEMENTSOF(originals); i++)
		if (originals[i].letter == value)
			return &originals[i];
	return NULL;
}

/* NULL: none of the tool's options is near. */
static const char *nearest_option(const struct personality *p, const char *word) {
	const char *names[ORIGINALS_MAX + 1];
	char name[SUGGEST_WORD_MAX];
	size_t n = 0;

	for (size_t i = 0; i < ELEMENTSOF(originals); i++)
		if (has(p, &originals[i]))
			names[n++] = originals[i].name;
	names[n] = NULL;
	if (strncmp(word, "--", 2) != 0 || strcspn(word, "=") >= sizeof(name))
		return NULL;
	(void) snprintf(name, sizeof(name), "%.*s", (int) strcspn(word, "=") - 2, word + 2);
	return suggest_nearest(name, names);
}

static int refuse(const struct personality *p, int answer, const char *word) {
	const struct original *o = original_of(optopt);
	const char *nearest = nearest_option(p, word);

	if (answer == ':' && o)
		return failure(-EINVAL, EXIT_USAGE, "%s: --%s needs a value (%s)", p->name, o->name, o->metavar);
	if (o && has(p, o) && optopt >= GETOPT_FIRST)
		return failure(-EINVAL, EXIT_USAGE, "%s: --%s takes no value, and '%s' gives one", p->name, o->name,
			       word);
	if (optopt > 0 && optopt < GETOPT_FIRST)
		return failure(-EINVAL, EXIT_USAGE, "%s: unknown option '-%c'; '%s --help' lists the options", p->name,
			       optopt, p->name);
	if (nearest)
		return failure(-EINVAL, EXIT_USAGE, "%s: unknown option '%s', did you mean '--%s'?", p->name, word,
			       nearest);
	return failure(-EINVAL, EXIT_USAGE, "%s: unknown option '%s'; '%s --help' lists the options", p->name, word,
		       p->name);
}

/*
 * >0: help or version was printed. Shortened names are taken as long as they are unique: the originals take them too.
 */
static int parse_request(const struct personality *p, int argc, char **argv, struct request *r, bool *ret_clients) {
	struct option longs[ORIGINALS_MAX + 1];
	char letters[2 * ORIGINALS_MAX + 2];
	int answer, e;

	build_getopt(p, longs, letters);
	opterr = 0;
	optind = 0; /* glibc: forget an earlier command line */
	while ((answer = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		const struct original *o = answer == '?' || answer == ':' ? NULL : original_of(answer);

		if (!o)
			return refuse(p, answer, argv[optind - 1]);
		if (o->type == ORIGINAL_HELP || o->type == ORIGINAL_VERSION) {
			(o->type == ORIGINAL_HELP ? personality_print_help : personality_print_version)(stdout, p);
			return 1;
		}
		e = store(p, o, optarg, r);
		if (e < 0)
			return e;
		*ret_clients |= !o->own;
	}
	if (argc - optind > 1)
		return failure(-EINVAL, EXIT_USAGE, "%s takes one server's address, and '%s' is a second operand",
			       p->name, argv[optind + 1]);
	r->host = optind < argc ? argv[optind] : NULL;
	return 0;
}

static void say_atomic(const struct personality *p, const struct request *r, struct words *w) {
	bool compares = r->atomic_op == ATOMICS_CSWAP || r->atomic_op == ATOMICS_AXOR;

	/* libfabric's compare operations answer what was there before, always */
	if (compares && !r->fetching)
		notice("%s: %s answers what was there before, whether it is asked to or not: "
		       "it is measured as --fetching", p->name, atomic_ops[r->atomic_op]);
	say(w, "--op");
	say(w, "%s", compares ? "compare-atomic" : r->fetching ? "fetch-atomic" : "atomic-op");
	say(w, "--atomic-op");
	say(w, "%s", r->atomic_op == ATOMICS_CSWAP ? swap_words[r->swap_op] : atomic_words[r->atomic_op]);
	say(w, "--atomic-type");
	say(w, "%s", atomic_types[r->atomic_type]);
	for (char *c = w->argv[w->argc - 1]; !w->full && *c; c++) {
		if (*c == '_')
			*c = '-';
		else
			*c = (char) tolower((unsigned char) *c);
	}
}

static void say_operation(const struct personality *p, const struct request *r, struct words *w) {
	if (p->family & TOOL_ATOMIC) {
		say_atomic(p, r, w);
		return;
	}
	say(w, "--op");
	say(w, "%s", p->family & TOOL_SEND ? "send" : p->family & TOOL_WRITE ? "write" : "read");
	say(w, "--size");
	if (r->max)
		say(w, "%ju:%ju", (uintmax_t) r->min, (uintmax_t) r->max);
	else
		say(w, "%ju", (uintmax_t) r->min);
	/* What cxi_write_lat times; the others have one definition each. */
	if (p->family == (TOOL_WRITE | TOOL_LAT)) {
		say(w, "--definition");
		say(w, "completion");
	}
}

/* Empty: no GPU was named. Negative: said. */
static int memory_of(const struct personality *p, const struct request *r, char letter, char ret[JOB_MEMORY_TEXT]) {
	const char *number = letter == 't' ? r->tx_gpu : r->rx_gpu;
	int e = 0;

	*ret = '\0';
	if (number)
		e = gpu_memory_kind(r->gpu_type, number, ret);
	return e != -EINVAL ? e : failure(e, EXIT_USAGE, "%s: -%c '%.64s': give the number of a GPU, from 0", p->name,
					  letter, number);
}

/* The memory of both ends: perch's words name what is sent from, and what is received into, wherever that is. */
static int say_memory(const struct personality *p, const struct request *r, struct words *w) {
	const struct {
		const char *option;
		char letter;
	} sides[] = { { "--tx-memory", 't' }, { "--rx-memory", 'r' } };
	char kind[JOB_MEMORY_TEXT];
	int e;

	for (size_t i = 0; i < ELEMENTSOF(sides); i++) {
		e = memory_of(p, r, sides[i].letter, kind);
		if (e < 0)
			return e;
		if (!kind[0] && r->huge > 0)
			(void) snprintf(kind, sizeof(kind), "huge:%s", huge_names[r->huge]);
		if (!kind[0])
			continue;
		say(w, "%s", sides[i].option);
		say(w, "%s", kind);
	}
	return 0;
}

static void say_pace(const struct personality *p, const struct request *r, struct words *w) {
	const uint64_t each = p->family & TOOL_BW ? r->list : 1;

	say(w, "%s", r->duration ? "--duration" : "--iterations");
	if (r->duration)
		say(w, "%jus", (uintmax_t) r->duration);
	else
		say(w, "%ju", (uintmax_t) (r->iterations * each));
	say(w, "--warmup");
	say(w, "%ju", (uintmax_t) (p->family & TOOL_BW ? 0 : r->warmup));
	if (p->family & TOOL_LAT) {
		say(w, "--gap");
		say(w, "%juus", (uintmax_t) r->gap_us);
		say(w, "--barrier");
		say_if(w, r->report_all && !r->duration, "--report-all");
		return;
	}
	/* A list that is waited for as a whole is a batch of all that may be under way. */
	say(w, "--outstanding");
	say(w, "%ju", (uintmax_t) r->list);
	say(w, "--batch");
	say(w, "%ju", (uintmax_t) r->list);
	say_if(w, r->bidirectional, "--bidirectional");
}

static int say_client(const struct personality *p, const struct request *r, struct words *w) {
	int e;

	say(w, "%s", p->family & TOOL_LAT ? "lat" : "bw");
	say(w, "--backend");
	say(w, "cxi");
	say_operation(p, r, w);
	say_pace(p, r, w);
	e = say_memory(p, r, w);
	if (e < 0)
		return e;
	say_if(w, r->no_idc || r->rdzv, "--no-idc"); /* the originals' -R turns it off */
	say_if(w, r->no_ll, "--no-ll");
	say_if(w, r->rdzv, "--rdzv");
	say_if(w, r->unrestricted, "--unrestricted");
	say_if(w, r->no_hrp, "--no-hrp");
	if (r->matching) {
		say(w, "--keys");
		say(w, "matching");
	}
	if (r->clock) {
		say(w, "--clock");
		say(w, "cycles");
	}
	say_if(w, r->ignore_mismatch && r->clock, "--ignore-frequency-mismatch");
	return 0;
}

int32_t personality_vni(void) {
	const char *text = getenv("FI_CXI_DEFAULT_VNI");
	uint64_t vni = PERSONALITY_VNI;

	if (getenv("SLINGSHOT_VNIS") || (text && (parse_u64(text, &vni) < 0 || vni > JOB_VNI_MAX)))
		return -1;
	return (int32_t) vni;
}

/* All of the command line. */
static int translate(const struct personality *p, const struct request *r, bool clients, struct words *w) {
	int e = 0;

	say(w, "perch");
	if (r->host) {
		e = say_client(p, r, w);
	} else {
		if (clients)
			notice("%s: without an address this is the server; it ignores all options but -d, -v, -p and "
			       "those of GPUs", p->name);
		say(w, "serve");
		say(w, "--once");
	}
	if (e < 0)
		return e;
	say(w, "--personality");
	say(w, "%s", p->name);
	say(w, "--device");
	say(w, "%s", r->device);
	say(w, "--port");
	say(w, "%ju", (uintmax_t) r->port);
	if (r->svc) {
		say(w, "--svc-id");
		say(w, "%ju", (uintmax_t) r->svc_id);
	}
	if (r->svc && r->host && personality_vni() >= 0) {
		say(w, "--vni");
		say(w, "%d", personality_vni());
	}
	if (r->host) {
		say(w, "--");
		say(w, "%s", r->host);
	}
	return w->full ? failure(-ENAMETOOLONG, EXIT_USAGE, "%s: the server's address or the device's name is too long",
				 p->name) : 0;
}

static int check(const struct personality *p, const struct request *r) {
	if (r->align & (r->align - 1))
		return failure(-EINVAL, EXIT_USAGE, "%s: --buf-align '%ju': give a power of two from 1 to %d", p->name,
			       (uintmax_t) r->align, PERSONALITY_ALIGN);
	if (r->ignore_mismatch && !r->clock)
		notice("%s: --ignore-cpu-freq-mismatch belongs to --clock=cycles, and changes nothing without it",
		       p->name);
	if (r->compared && r->atomic_op != ATOMICS_CSWAP)
		notice("%s: --cswap-op belongs to --atomic-op=CSWAP, and changes nothing without it", p->name);
	if (r->gpu_type && !r->tx_gpu && !r->rx_gpu)
		notice("%s: --gpu-type belongs to --tx-gpu and --rx-gpu, and changes nothing without them", p->name);
	if (r->iterated && r->duration)
		notice("%s: --duration outranks --iters", p->name);
	if (r->report_all && r->duration)
		notice("%s: --report-all is off with --duration", p->name);
	if (!r->duration && r->report_all && r->iterations > JOB_REPORT_ALL_MAX)
		return failure(-ERANGE, EXIT_USAGE,
			       "%s: --report-all keeps every latency, of at most %d iterations; lower --iters", p->name,
			       JOB_REPORT_ALL_MAX);
	return 0;
}

int personality_parse(const struct personality *p, int argc, char **argv, struct options *ret) {
	struct request r = {
		.device = "cxi0", .port = PERSONALITY_PORT, .iterations = p->iterations, .warmup = 10, .gap_us = 1000,
		.min = p->size,
		.list = p->list,
	};
	char tx_memory[JOB_MEMORY_TEXT] = "", rx_memory[JOB_MEMORY_TEXT] = "";
	struct words w = { .argc = 0 };
	bool clients = false;
	int e;

	e = parse_request(p, argc, argv, &r, &clients);
	if (e != 0)
		return e;
	/* Whoever reads this tool's output must not take it for the original's: reports look for these words. */
	notice("%s is perch in the place of HPE's tool: its figures come through libfabric; "
	       "the two cannot talk to each other", p->name);
	e = r.host ? check(p, &r) : memory_of(p, &r, 't', tx_memory);
	if (e == 0 && !r.host)
		e = memory_of(p, &r, 'r', rx_memory);
	if (e == 0)
		e = translate(p, &r, clients, &w);
	if (e == 0)
		e = options_parse(w.argc, w.argv, ret);
	if (e != 0)
		return e;
	ret->buffer_limit = r.buffer;
	/* perch's own servers have no option for it, as their clients name the memory of both ends. */
	if (!r.host) {
		memcpy(ret->job.tx_memory, tx_memory, sizeof(tx_memory));
		memcpy(ret->job.rx_memory, rx_memory, sizeof(rx_memory));
	}
	return 0;
}

static void print_original(FILE *f, const struct original *o) {
	char left[64];
	int n;

	if (o->letter)
		n = snprintf(left, sizeof(left), "  -%c, --%s", o->letter, o->name);
	else
		n = snprintf(left, sizeof(left), "      --%s", o->name);
	if (o->metavar)
		n += snprintf(left + n, sizeof(left) - (size_t) n, "=%s", o->metavar);
	fputs(left, f);
	if (n > HELP_COLUMN - 2) {
		fputc('\n', f);
		n = 0;
	}
	fprintf(f, "%*s", HELP_COLUMN - n, "");
	options_print_wrapped(f, o->help, HELP_COLUMN);
}

void personality_print_help(FILE *f, const struct personality *p) {
	char text[96];

	fprintf(f, "Usage:\n  %s [-d DEV] [-p PORT] [-v SVC_ID]\n%*sWait for one client and serve it\n", p->name,
		HELP_COLUMN, "");
	fprintf(f, "  %s ADDR [OPTIONS]\n%*sMeasure to the server at ADDR\n\nOptions:\n", p->name, HELP_COLUMN, "");
	for (size_t i = 0; i < ELEMENTSOF(originals); i++)
		if (has(p, &originals[i]))
			print_original(f, &originals[i]);
	fprintf(f, "\nDefaults of this tool: %ju iterations", (uintmax_t) p->iterations);
	if (p->size)
		fprintf(f, ", size %ju", (uintmax_t) p->size);
	if (p->list)
		fprintf(f, ", list size %ju", (uintmax_t) p->list);
	fputs(".\n\n", f);
	(void) snprintf(text, sizeof(text), "This is perch " PERCH_VERSION
			" with the command line and the layout of %s %s.", p->name, p->page);
	options_print_wrapped(f, text, 0);
	options_print_wrapped(f, "Its protocol is not the original's, so both ends must be perch. Without a token "
			      "it serves loopback only; PERCH_TOKEN_FILE names a file with the shared secret. "
			      "`perch lat --backend cxi` measures the same, with percentiles and JSON. "
			      "Exit status as in perch(1).", 0);
}

void personality_print_version(FILE *f, const struct personality *p) {
	fprintf(f, "%s version: %s\nperch %s: perch's personality of that name; the two cannot talk to each other\n",
		p->name, p->page, PERCH_VERSION);
}
