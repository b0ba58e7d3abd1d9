/* Time of day of a machine whose clock is ahead by CLOCK_AHEAD seconds; loaded with LD_PRELOAD. Clocks of durations stay. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *moment) {
    const char *ahead = getenv("CLOCK_AHEAD");
    int result = (int)syscall(SYS_clock_gettime, clock, moment);
    if (result == 0 && ahead != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        moment->tv_sec += atol(ahead);
    return result;
}

time_t time(time_t *seconds) {
    struct timespec moment;
    clock_gettime(CLOCK_REALTIME, &moment);
    if (seconds != NULL)
        *seconds = moment.tv_sec;
    return moment.tv_sec;
}

int gettimeofday(struct timeval *restrict moment, void *restrict zone) {
    struct timespec fine;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &fine);
    moment->tv_sec = fine.tv_sec;
    moment->tv_usec = fine.tv_nsec / 1000;
    return 0;
}
