/* SPDX-License-Identifier: Apache-2.0 */
/* What only jobs with lanes have: pairs of devices, lanes, and how a batch is laid out and cut. */
#include <stdio.h>

#include "backend_facts.h"
#include "memory_kind.h"
#include "base/message.h"
#include "parse.h"

uint32_t job_list_length(const char *list) {
	uint32_t n = 1;

	for (; *list; list++)
		n += *list == ',';
	return n;
}

bool job_list_entry(const char *list, uint32_t index, char ret[JOB_NAME_MAX]) {
	size_t n;

	for (; index > 0; index--)
		list = strchr(list, ',') + 1;
	n = strcspn(list, ",");
	if (n >= JOB_NAME_MAX)
		return false;
	memcpy(ret, list, n);
	ret[n] = '\0';
	return true;
}

/* What an entry may name besides the device; as the job has it where it does not. */
struct rail {
	char name[JOB_NAME_MAX];
	uint32_t ib_port;
	int32_t gid_index;
};

/* "3", up to a limit, into `ret`; an empty text leaves it. */
static bool read_number(const char *text, uint64_t least, uint64_t most, int64_t *ret) {
	uint64_t n;

	if (!text[0])
		return true;
	if (parse_u64(text, &n) < 0 || n < least || n > most)
		return false;
	*ret = (int64_t) n;
	return true;
}

/* "mlx5_0", "mlx5_0:1" or "mlx5_0::3" where devices have ports and GIDs; elsewhere all of it is the name. */
static bool read_rail(const char *list, uint32_t index, bool has_gids, struct rail *ret) {
	int64_t port = ret->ib_port, gid = ret->gid_index;
	char *at, *second;
	bool good;

	if (!job_list_entry(list, index, ret->name))
		return false;
	at = has_gids ? strchr(ret->name, ':') : NULL;
	if (!at)
		return ret->name[0] != '\0';
	*at++ = '\0';
	second = strchr(at, ':');
	if (second)
		*second++ = '\0';
	good = ret->name[0] && read_number(at, 1, JOB_IB_PORT_MAX, &port) &&
	       read_number(second ? second : "", 0, JOB_GID_INDEX_MAX, &gid);
	ret->ib_port = (uint32_t) port;
	ret->gid_index = (int32_t) gid;
	return good;
}

static bool has_gids(const struct job *job) {
	const struct backend_facts *b = backend_facts_of(job->backend);

	return b && backend_is(b, BACKEND_VERBS);
}

uint32_t job_pairs(const struct job *job) {
	return MAX(job_list_length(job->devices), job_list_length(job->server_devices));
}

void job_for_lane(const struct job *job, uint32_t lane, struct job *ret) {
	uint32_t pairs = job_pairs(job), pair = lane % pairs;
	struct rail ours = { .ib_port = job->verbs.ib_port, .gid_index = job->verbs.gid_index };
	struct rail theirs = { .ib_port = job->verbs.server_ib_port, .gid_index = job->verbs.server_gid_index };

	*ret = *job;
	memory_of_pair(ret->tx_memory, pair);
	memory_of_pair(ret->rx_memory, pair);
	/* Validated: a side with fewer of them goes around. */
	if (job->devices[0] &&
	    read_rail(job->devices, pair % job_list_length(job->devices), has_gids(job), &ours)) {
		memcpy(ret->device, ours.name, sizeof(ours.name));
		ret->verbs.ib_port = ours.ib_port;
		ret->verbs.gid_index = ours.gid_index;
	}
	if (job->server_devices[0] &&
	    read_rail(job->server_devices, (pair + job->cross_rail) % pairs % job_list_length(job->server_devices),
		      has_gids(job), &theirs)) {
		memcpy(ret->server_device, theirs.name, sizeof(theirs.name));
		ret->verbs.server_ib_port = theirs.ib_port;
		ret->verbs.server_gid_index = theirs.gid_index;
	}
}

void shape_of(const struct job *job, uint64_t size, uint32_t batch, struct shape *ret) {
	uint64_t chunk = size;

	/* Never more than max_chunks pieces: then they are larger than asked. */
	if (job->chunk_bytes)
		chunk = MIN(MAX(job->chunk_bytes, (size + job->max_chunks - 1) / job->max_chunks), size);
	*ret = (struct shape) {
		.size = size,
		.places = { .n = batch, .factor = 1, .mask = UINT32_MAX,
			    .stride = job->stride_bytes ? job->stride_bytes : size },
		.chunk = chunk,
		.chunks = (uint32_t) ((size + chunk - 1) / chunk),
		.batch = batch,
		.turns = 1,
	};
	if (!job->footprint)
		return;
	places_scatter(job->footprint, size, JOB_PIECES_MAX / ret->chunks, &ret->places);
	ret->turns = MAX(ret->places.n / batch, 1u);
}

/* The most of something that any batch of the job has. */
static uint64_t most(const struct job *job, uint64_t (*of)(const struct shape *)) {
	uint64_t n = 0;
	struct shape s;

	for (size_t i = 0; i < job->n_sizes; i++)
		for (size_t k = 0; k < job->n_batches; k++) {
			shape_of(job, job->sizes[i], job->batches[k], &s);
			n = MAX(n, of(&s));
		}
	return n;
}

/*
 * As much as the messages of one queue pair lie in, so that a core's own cache holds it: of those that are to be had
 * the smallest second level has 1 MiB. A list takes more where it must.
 */
#define RATE_BUFFER (UINT64_C(1) << 20)

uint32_t job_rate_depth(const struct job *job) {
	return job->outstanding - job->outstanding % job->batch;
}

void job_rate_places(const struct job *job, struct places *ret) {
	const uint64_t size = job_largest_size(job);
	uint64_t lists = MAX(RATE_BUFFER / (job->batch * size), UINT64_C(1));

	if (job->footprint) {
		places_scatter(job->footprint / job->queue_pairs, size, JOB_PIECES_MAX / job->queue_pairs, ret);
		return;
	}
	*ret = (struct places) { .n = (uint32_t) MIN(lists * job->batch, (uint64_t) job_rate_depth(job)), .factor = 1,
				 .mask = UINT32_MAX, .stride = size };
	ret->region = ret->n * size;
}

uint32_t job_rate_slots(const struct job *job) {
	struct places p;

	job_rate_places(job, &p);
	/* Whole lists, as the depth: validate_lists() counts on them. What follows the last place goes round. */
	return MAX((p.n + job->batch - 1) / job->batch * job->batch, job_rate_depth(job));
}

uint64_t job_most_pieces(const struct job *job) {
	return job->kind == KIND_RATE ? (uint64_t) job_rate_slots(job) * job->queue_pairs : most(job, shape_all_pieces);
}

/* No overflow: 2^15 transfers, each at a distance of at most 2^40 (validate_buffer()). */
static uint64_t largest_span(const struct job *job) {
	return most(job, shape_span);
}

uint64_t job_buffer(const struct job *job) {
	struct places p;

	if (job->footprint)
		return job->footprint;
	if (job->kind == KIND_RATE) {
		job_rate_places(job, &p);
		return p.region * job->queue_pairs;
	}
	return job->buffer_bytes ? job->buffer_bytes : largest_span(job);
}

void job_complete_lanes(struct job *job) {
	if (!job->n_batches) {
		job->batches[0] = 1;
		job->n_batches = 1;
	}
	if (!job->threads)
		job->threads = job_pairs(job);
	if (!job->max_chunks)
		job->max_chunks = JOB_CHUNKS_MAX;
	/* One spelling in the job: then a lane's devices come from the same place. */
	if (job->device[0] && !job->devices[0])
		memcpy(job->devices, job->device, sizeof(job->device));
	if (job->server_device[0] && !job->server_devices[0])
		memcpy(job->server_devices, job->server_device, sizeof(job->server_device));
	job->device[0] = job->server_device[0] = '\0';
}

static int validate_list(const struct job *job, const char *option, const char *list) {
	uint32_t n = job_list_length(list);

	if (n > JOB_DEVICES_MAX)
		return failure(-EINVAL, EXIT_USAGE, "--%s names %u devices; %d at most", option, n, JOB_DEVICES_MAX);
	for (uint32_t i = 0; list[0] && i < n; i++) {
		struct rail rail = { 0 };

		if (!read_rail(list, i, has_gids(job), &rail))
			return failure(-EINVAL, EXIT_USAGE, "--%s '%.64s': entry %u of %u is not a device's name%s",
				       option, list, i + 1, n, has_gids(job) ? ", as in mlx5_0, mlx5_0:1 (its port) "
				       "or mlx5_0:1:3 (and its GID index)" : "");
	}
	return 0;
}

static int validate_pairs(const struct job *job, const struct backend_facts *b) {
	uint32_t ours = job_list_length(job->devices), theirs = job_list_length(job->server_devices);
	uint32_t pairs = MAX(ours, theirs);
	const char *list = job->devices[0] ? job->devices : job->server_devices;
	char others[BACKENDS_WITH_MAX];
	int r;

	if (list[0] && !(b->flags & BACKEND_DEVICES)) /* a list of one may come from -d */
		return failure(-EINVAL, EXIT_USAGE, "--%s%s %s: the %s backend has no devices to choose from%s",
			       job->devices[0] ? "device" : "server-device", strchr(list, ',') ? "s" : "", list,
			       b->name, backends_with(0, 0, BACKEND_DEVICES, others));
	r = validate_list(job, "devices", job->devices);
	if (r == 0)
		r = validate_list(job, "server-devices", job->server_devices);
	if (r < 0)
		return r;
	if (ours != theirs && (!job->devices[0] || !job->server_devices[0]))
		return failure(-EINVAL, EXIT_USAGE, "--%s names %u devices and --%s none; name those of both sides",
			       job->devices[0] ? "devices" : "server-devices", pairs,
			       job->devices[0] ? "server-devices" : "devices");
	if (job->cross_rail >= pairs)
		return failure(-EINVAL, EXIT_USAGE,
			       "--cross-rail %u with %u pairs of devices; it is below their number", job->cross_rail,
			       pairs);
	if (job->threads == 0 || job->threads > JOB_THREADS_MAX || (job->threads % pairs && pairs % job->threads))
		return failure(-EINVAL, EXIT_USAGE, "--threads %u with %u pairs of devices: 1 to %d, "
			       "and a multiple or a divisor of the pairs", job->threads, pairs, JOB_THREADS_MAX);
	return 0;
}

static int validate_batches(const struct job *job) {
	uint64_t pieces;

	if (job->n_batches == 0 || job->n_batches > JOB_BATCHES_MAX)
		return failure(-EINVAL, EXIT_USAGE, "a job has 1 to %d batch sizes", JOB_BATCHES_MAX);
	for (size_t i = 0; i < job->n_batches; i++)
		if (job->batches[i] < 1 || job->batches[i] > JOB_BATCH_MAX)
			return failure(-EINVAL, EXIT_USAGE, "--batch %u: 1 to %d transfers", job->batches[i],
				       JOB_BATCH_MAX);
	if (job->max_chunks < 1 || job->max_chunks > JOB_CHUNKS_MAX)
		return failure(-EINVAL, EXIT_USAGE, "--max-chunks %u: 1 to %d", job->max_chunks, JOB_CHUNKS_MAX);
	pieces = job_most_pieces(job);
	if (pieces > JOB_PIECES_MAX)
		return failure(-EINVAL, EXIT_USAGE, "the largest batch is cut into %llu pieces, and %d are possible; "
			       "raise --chunk, or lower --batch", (unsigned long long) pieces, JOB_PIECES_MAX);
	return 0;
}

/* Farther apart lie no two messages: 1 TiB, which no host that is tested has. */
#define SPAN_MAX (UINT64_C(1) << 40)

static int validate_buffer(const struct job *job) {
	uint64_t largest = job_largest_size(job), span;

	if (job->chunk_bytes > JOB_SIZE_MAX)
		return failure(-EINVAL, EXIT_USAGE, "--chunk %llu: at most %llu bytes",
			       (unsigned long long) job->chunk_bytes, (unsigned long long) JOB_SIZE_MAX);
	if (job->stride_bytes > SPAN_MAX || (job->stride_bytes && job->stride_bytes < largest))
		return failure(-EINVAL, EXIT_USAGE, "--stride %llu: "
			       "at least the largest --size, %llu, or transfers would overlap; 1 TiB at most",
			       (unsigned long long) job->stride_bytes, (unsigned long long) largest);
	span = largest_span(job);
	if (job->buffer_bytes && job->buffer_bytes < span)
		return failure(-EINVAL, EXIT_USAGE, "--buffer %llu is smaller than the largest batch, "
			       "which takes %llu bytes; raise it, or lower --size, --batch or --stride",
			       (unsigned long long) job->buffer_bytes, (unsigned long long) span);
	return 0;
}

/* All of a batch are under way at once, and each has memory of its own. */
static int validate_scattered(const struct job *job) {
	struct shape s;

	if (!job->footprint)
		return 0;
	if (job->buffer_bytes || job->stride_bytes)
		return failure(-EINVAL, EXIT_USAGE, "--footprint scatters transfers over a buffer of its own; "
			       "leave --buffer and --stride out");
	for (size_t i = 0; i < job->n_sizes; i++)
		for (size_t k = 0; k < job->n_batches; k++) {
			shape_of(job, job->sizes[i], job->batches[k], &s);
			if (job->footprint < place_bytes(s.size) || s.places.n < s.batch)
				return failure(-EINVAL, EXIT_USAGE, "--footprint %llu has no places for a --batch of "
					       "%u transfers of %llu bytes; raise it, or lower --size or --batch",
					       (unsigned long long) job->footprint, s.batch,
					       (unsigned long long) s.size);
		}
	return 0;
}

int job_validate_transfer(const struct job *job, const struct backend_facts *b) {
	int r;

	if (job->verbs.connection != CONNECTION_RC)
		return failure(-EINVAL, EXIT_USAGE, "transfers need a reliable connection, and %s is unreliable",
			       connection_name((int) job->verbs.connection));
	if (job->bidirectional || job->rate_unit != RATE_NONE || job->interval_ns || job->verbs.srq || job->bounce ||
	    job->batch != 1 || job->cq_moderation != 1)
		return failure(-EINVAL, EXIT_USAGE, "transfers go one way at full speed; --bidirectional, --rate, "
			       "--interval, --srq, --bounce and --cq-moderation belong to bw");
	r = validate_pairs(job, b);
	if (r == 0)
		r = validate_batches(job);
	if (r == 0)
		r = validate_scattered(job);
	return r < 0 ? r : validate_buffer(job);
}

/* What would never be full, or would be full of work requests of which none completes: lists are whole ones. */
static int validate_lists(const struct job *job) {
	uint64_t signalled = ((uint64_t) job->cq_moderation + job->batch - 1) / job->batch * job->batch;

	if (job->batch > job->outstanding)
		return failure(-EINVAL, EXIT_USAGE, "--batch %u needs --outstanding of at least as much, and it is %u; "
			       "raise it", job->batch, job->outstanding);
	if (signalled > job_rate_depth(job))
		return failure(-EINVAL, EXIT_USAGE, "--cq-moderation %u with lists of --batch %u needs --outstanding "
			       "of at least %llu, and it is %u; raise it", job->cq_moderation, job->batch,
			       (unsigned long long) signalled, job->outstanding);
	return job_validate_depth(job, job_rate_depth(job));
}

int job_validate_rate(const struct job *job, const struct backend_facts *b) {
	int r;

	if (job->verbs.connection != CONNECTION_RC)
		return failure(-EINVAL, EXIT_USAGE, "the message rate needs a reliable connection, and %s is "
			       "unreliable", connection_name((int) job->verbs.connection));
	if (job->bidirectional || job->rate_unit != RATE_NONE || job->interval_ns || job->verbs.srq || job->bounce ||
	    job->verify)
		return failure(-EINVAL, EXIT_USAGE, "the message rate is of one way at full speed; --bidirectional, "
			       "--rate, --interval, --srq, --bounce and --verify belong to bw");
	if (job_pairs(job) != 1 || job->cross_rail || job->n_batches != 1 || job->batches[0] != 1 ||
	    job->max_chunks != JOB_CHUNKS_MAX || job->chunk_bytes || job->stride_bytes || job->buffer_bytes ||
	    job->consecutive || job->no_session)
		return failure(-EINVAL, EXIT_USAGE, "the message rate is of whole messages between two devices; "
			       "several devices, batches, chunks and buffers belong to transfer");
	r = validate_pairs(job, b);
	return r < 0 ? r : validate_lists(job);
}
