/* A micro-VM in plain C: the same memory, page table and ioctls as vmtax's, from opening /dev/kvm to the first exit.
   For each byte on standard input it makes one and prints the nanoseconds that took.

   first_exit ARENA_BYTES PAYLOAD_HEX */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x) do { if ((long)(x) < 0) { perror(#x); exit(1); } } while (0)
#define GIB (1ull << 30)
#define LOW (2ull << 20)
#define ARENA_GPA (4 * GIB)
#define CODE_GVA GIB
#define PML4 0x2000ull

static uint64_t nanos(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t next_frame;

static void map(char *low, uint64_t gva, uint64_t gpa, uint64_t bytes) {
    for (uint64_t offset = 0; offset < bytes;) {
        uint64_t frame = PML4;
        for (int depth = 0; depth < 3; depth++) {
            uint64_t *entry = (uint64_t *)(low + frame) + (((gva + offset) >> (39 - 9 * depth)) & 511);
            if (!(*entry & 1)) { *entry = next_frame | 0x27; next_frame += 4096; }
            frame = *entry & 0xffffffffff000ull;
        }
        for (uint64_t i = ((gva + offset) >> 12) & 511; i < 512 && offset < bytes; i++, offset += 4096)
            ((uint64_t *)(low + frame))[i] = (gpa + offset) | 0x67;
    }
}

static void *reserve(size_t bytes) {
    char *start = mmap(0, bytes + 3 * GIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *aligned = (char *)(((uintptr_t)start + (2 << 20) + GIB - 1) & ~(GIB - 1));
    void *got = mmap(aligned, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (got == MAP_FAILED) { perror("mmap"); exit(1); }
    madvise(aligned, bytes, MADV_NOHUGEPAGE);
    CHECK(madvise(aligned, bytes, 23 /* MADV_POPULATE_WRITE */));
    return aligned;
}

static uint64_t once(char *arena, size_t arena_bytes, const unsigned char *payload, size_t n) {
    uint64_t before = nanos();
    int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    CHECK(kvm);
    char *low = reserve(LOW);
    int vm = ioctl(kvm, KVM_CREATE_VM, 0);
    CHECK(vm);
    CHECK(ioctl(vm, KVM_SET_TSS_ADDR, 0xfffbd000));
    struct kvm_userspace_memory_region low_slot = {0, 0, 0, LOW, (uintptr_t)low};
    struct kvm_userspace_memory_region arena_slot = {1, 0, ARENA_GPA, arena_bytes, (uintptr_t)arena};
    CHECK(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &low_slot));
    CHECK(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &arena_slot));
    memcpy(low, payload, n);
    memcpy(low + 2048, "\xe6\xf4", 2);
    *(uint16_t *)(low + 4096 + 102) = 104;
    next_frame = PML4 + 4096;
    map(low, CODE_GVA, 0, 8192);
    map(low, (uintptr_t)arena, ARENA_GPA, arena_bytes);

    struct kvm_cpuid2 *cpuid = calloc(1, sizeof *cpuid + 256 * sizeof cpuid->entries[0]);
    cpuid->nent = 256;
    CHECK(ioctl(kvm, KVM_GET_SUPPORTED_CPUID, cpuid));
    int run_size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
    int vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
    CHECK(vcpu);
    struct kvm_run *run = mmap(0, run_size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0);
    CHECK(ioctl(vcpu, KVM_SET_CPUID2, cpuid));
    struct kvm_sregs s;
    CHECK(ioctl(vcpu, KVM_GET_SREGS, &s));
    struct kvm_segment code = {0, 0xffffffff, 0x33, 11, 1, 3, 0, 1, 1, 1, 0, 0, 0};
    struct kvm_segment data = {0, 0xffffffff, 0x2b, 3, 1, 3, 1, 1, 0, 1, 0, 0, 0};
    struct kvm_segment task = {CODE_GVA + 4096, 0xfff, 0x40, 11, 1, 0, 0, 0, 0, 0, 0, 0, 0};
    s.cs = code; s.ss = s.ds = s.es = s.fs = s.gs = data; s.tr = task;
    s.cr0 = 0x80010031; s.cr3 = PML4; s.cr4 = 0x20; s.efer = 0x500;
    CHECK(ioctl(vcpu, KVM_SET_SREGS, &s));
    struct kvm_regs r = {0};
    r.rip = CODE_GVA; r.rdi = r.rdx = (uintptr_t)arena; r.rsi = 1; r.r8 = arena_bytes; r.r15 = CODE_GVA + 2048;
    r.rflags = 0x3002;
    CHECK(ioctl(vcpu, KVM_SET_REGS, &r));
    CHECK(ioctl(vcpu, KVM_RUN, 0));
    if (run->exit_reason != KVM_EXIT_IO || run->io.port != 0xf4) {
        fprintf(stderr, "exit %u\n", run->exit_reason);
        exit(1);
    }
    CHECK(ioctl(vcpu, KVM_GET_REGS, &r));
    uint64_t took = nanos() - before;
    munmap(run, run_size); close(vcpu); close(vm); close(kvm); free(cpuid);
    munmap(low - (2 << 20), LOW + (2 << 20)); /* the rest of the reservation is address space only */
    return took;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    size_t bytes = strtoull(argv[1], 0, 0), n = strlen(argv[2]) / 2;
    unsigned char payload[2048];
    for (size_t i = 0; i < n && i < sizeof payload; i++) sscanf(argv[2] + 2 * i, "%2hhx", &payload[i]);
    char *arena = reserve(bytes);
    *(uint64_t *)arena = (uintptr_t)arena;
    while (getchar() != EOF) {
        printf("%llu\n", (unsigned long long)once(arena, bytes, payload, n));
        fflush(stdout);
    }
    return 0;
}
