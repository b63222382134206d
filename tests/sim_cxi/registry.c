/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fabric: a folder with one file for each enabled endpoint, NIC.VNI.PID.
 * It holds the inner provider's address and the endpoint's regions, and is locked as long as its process lives:
 * that makes PIDs unique, and a crash leaves no ghosts.
 */
#include "sim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void path_of(struct sim_address a, char *ret, size_t size) {
	(void) snprintf(ret, size, "%s/%05x.%u.%u", sim_variables.folder, a.nic, a.vni, a.pid);
}

static bool same_file(int fd, const char *path) {
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/*
 * 1: ours now; 0: somebody's. A file that its owner removed between our opening and locking
 * it is not the one there now.
 */
static int lock_path(const char *path, int *ret) {
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	for (;;) {
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

		if (fd < 0)
			return -errno;
		if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
			(void) close(fd);
			return 0;
		}
		if (same_file(fd, path)) {
			*ret = fd;
			return 1;
		}
		(void) close(fd);
	}
}

static bool is_locked(int fd) {
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static struct sim_card *map(int fd, int protection) {
	void *p = mmap(NULL, sizeof(struct sim_card), protection, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int seat_at(struct sim_address address, struct sim_seat *ret) {
	struct sim_seat seat = { .fd = -1 };
	int r;

	path_of(address, seat.path, sizeof(seat.path));
	r = lock_path(seat.path, &seat.fd);
	if (r <= 0)
		return r < 0 ? r : -FI_EADDRINUSE;
	/* what a crash left is cut off first: a card begins as zeros */
	if (ftruncate(seat.fd, 0) < 0 || ftruncate(seat.fd, sizeof(struct sim_card)) < 0 ||
	    !(seat.card = map(seat.fd, PROT_READ | PROT_WRITE))) {
		r = -errno;
		(void) unlink(seat.path);
		(void) close(seat.fd);
		return r;
	}
	seat.card->address = address;
	*ret = seat;
	return 0;
}

int sim_seat_take(struct sim_address address, struct sim_seat *ret) {
	int r = -FI_EADDRINUSE;

	if (mkdir(sim_variables.folder, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (address.pid != SIM_PID_ANY)
		return seat_at(address, ret);
	for (unsigned pid = 0; pid < SIM_PID_ANY && r == -FI_EADDRINUSE; pid++) {
		address.pid = pid & 0x1ff;
		r = seat_at(address, ret);
	}
	return r;
}

void sim_seat_leave(struct sim_seat *seat) {
	if (!seat->card)
		return;
	/* the name goes while the lock is held, so that it is surely ours */
	(void) unlink(seat->path);
	(void) munmap(seat->card, sizeof(*seat->card));
	(void) close(seat->fd);
	*seat = (struct sim_seat) { .fd = -1 };
}

static struct sim_card *card_at(struct sim_address address) {
	struct sim_card *card = NULL;
	char path[256];
	struct stat s;
	int fd;

	path_of(address, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &s) == 0 && s.st_size == sizeof(struct sim_card) && is_locked(fd))
		card = map(fd, PROT_READ);
	(void) close(fd);
	if (card && card->inner_length == 0) {
		sim_card_forget(card);
		card = NULL;
	}
	return card;
}

/* Why nobody answers: the hardware says whether the NIC is there, and whether it knows the VNI. */
static enum sim_rc why_absent(struct sim_address a) {
	unsigned nic, vni, pid;
	enum sim_rc why = RC_UNDELIVERABLE;
	struct dirent *entry;
	DIR *folder = opendir(sim_variables.folder);

	while (folder && (entry = readdir(folder))) {
		if (sscanf(entry->d_name, "%x.%u.%u", &nic, &vni, &pid) != 3 || nic != a.nic)
			continue;
		if (vni == a.vni)
			why = RC_PTLTE_NOT_FOUND;
		else if (why == RC_UNDELIVERABLE)
			why = RC_VNI_NOT_FOUND;
	}
	if (folder)
		(void) closedir(folder);
	return why;
}

struct sim_card *sim_card_find(struct sim_address address, enum sim_rc *ret_why) {
	struct sim_card *card = card_at(address);

	if (!card)
		*ret_why = why_absent(address);
	return card;
}

void sim_card_forget(struct sim_card *card) {
	if (card)
		(void) munmap(card, sizeof(*card));
}
