/*
 * Prints the rate of this machine's time stamp counter in kHz, measured against its clock.
 * An emulated machine reads the same counter;
 * told its rate, it need not guess it while it shares the processor (and once guessed 14 times too little).
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int main(void)
{
	const struct timespec half_second = {.tv_nsec = 500000000};
	const int64_t begin_ns = now_ns();
	const uint64_t begin = __rdtsc();

	nanosleep(&half_second, NULL);
	printf("%.0f\n", (double)(__rdtsc() - begin) / (double)(now_ns() - begin_ns) * 1e6);
	return 0;
}
