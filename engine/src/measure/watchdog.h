/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last deadline: for calls that do not come back. A library may wait for its peer inside a call (libfabric's shm
 * provider spins on a lock in shared memory, which a killed peer may hold for ever), where no deadline of ours is
 * looked at. A thread that sleeps nearly always sees that the run's heart stands still, says so, and ends the process.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/util.h"

struct watchdog {
	pthread_t thread;
	bool running;
	const _Atomic uint64_t *heart;          /* grows while the watched code comes back */
	atomic_bool armed, stop;
	_Atomic uint64_t limit_ns;
	int stop_fd;                    /* an eventfd, to wake the thread for its end */
	int fd;                                 /* to the peer: once that has hung up, a second of patience is enough */
	void (*on_stall)(void *userdata);       /* in the watchdog's thread; ends the process */
	void *userdata;
};

/* Negative: said. The watchdog begins disarmed. */
int watchdog_start(struct watchdog *w, const _Atomic uint64_t *heart, uint64_t limit_ns, int fd,
		   void (*on_stall)(void *), void *userdata);
void watchdog_stop(struct watchdog *w);
