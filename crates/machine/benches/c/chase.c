/* A pointer chase as anybody would write it, over memory that the benchmark made. For each byte on standard input it
   walks once and prints the nanoseconds it took.

   chase FD ADDRESS BYTES START LOADS */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static uint64_t nanos(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    int fd = atoi(argv[1]);
    void *address = (void *)strtoull(argv[2], 0, 0);
    size_t bytes = strtoull(argv[3], 0, 0);
    void *start = (void *)strtoull(argv[4], 0, 0);
    uint64_t loads = strtoull(argv[5], 0, 0);
    if (mmap(address, bytes, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) != address) return 1;
    void *volatile sink;
    while (getchar() != EOF) {
        uint64_t before = nanos();
        void *p = start;
        for (uint64_t i = loads; i; i--) p = *(void **)p;
        sink = p;
        printf("%llu\n", (unsigned long long)(nanos() - before));
        fflush(stdout);
    }
    (void)sink;
    return 0;
}
