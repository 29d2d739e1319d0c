/* The kernels on a processor, for tests: the threads of a group are contexts that take turns, and wait for each other where a GPU's do. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define MOST_THREADS 1024
#define STACK_BYTES (64 * 1024)

typedef struct { unsigned x; } Index;
typedef struct { uint32_t x, y, z, w; } uint4;
static Index threadIdx, blockIdx;

/* Values that lanes give each other: two sets, since some lanes may be at the next exchange already. */
static struct {
    unsigned arrived, turn;
    uint32_t given[2][32];
} warps[MOST_THREADS / 32];

static struct {
    ucontext_t begin;
    jmp_buf at;
    bool begun, ended;
    char *stack;
} threads[MOST_THREADS];

static unsigned group_size, group_arrived, group_turn, living, current;
static char dynamic_memory[256 * 1024] __attribute__((aligned(16)));
/* Memory of a group that lasts as long as it does. */
static char static_memory[64 * 1024] __attribute__((aligned(16)));
static void (*body)(void **);
static void **arguments;
static jmp_buf home;

static void run_next(void) {
    for (;;) {
        current = (current + 1) % group_size;
        if (threads[current].ended) continue;
        threadIdx.x = current;
        if (threads[current].begun) _longjmp(threads[current].at, 1);
        threads[current].begun = true;
        setcontext(&threads[current].begin);
    }
}

static __attribute__((noinline)) void yield(void) {
    if (_setjmp(threads[current].at) == 0) run_next();
}

static void thread_main(void) {
    body(arguments);
    threads[current].ended = true;
    if (--living == 0) _longjmp(home, 1);
    run_next();
}

static void __syncthreads(void) {
    unsigned turn = group_turn;
    if (++group_arrived == living) {
        group_arrived = 0;
        group_turn++;
        return;
    }
    while (group_turn == turn) yield();
}

/* Every lane's value, once all have come. A warp's lanes end together, so all 32 come. */
static const uint32_t *exchange(uint32_t value) {
    unsigned warp = current / 32, turn = warps[warp].turn;
    uint32_t *given = warps[warp].given[turn & 1];
    given[current % 32] = value;
    if (++warps[warp].arrived == 32) {
        warps[warp].arrived = 0;
        warps[warp].turn++;
        return given;
    }
    while (warps[warp].turn == turn) yield();
    return given;
}

static unsigned lane(void) { return current % 32; }
static void __syncwarp(void) { exchange(0); }
static uint32_t __shfl_sync(uint32_t all, uint32_t value, uint32_t from) { return (void)all, exchange(value)[from % 32]; }
static uint32_t __shfl_xor_sync(uint32_t all, uint32_t value, uint32_t with) { return (void)all, exchange(value)[lane() ^ with]; }
static uint32_t __shfl_up_sync(uint32_t all, uint32_t value, uint32_t step) {
    const uint32_t *given = exchange(value);
    (void)all;
    return lane() >= step ? given[lane() - step] : value;
}
static uint32_t __ballot_sync(uint32_t all, bool value) {
    const uint32_t *given = exchange(value);
    uint32_t mask = 0;
    (void)all;
    for (unsigned at = 0; at < 32; at++) mask |= (given[at] ? 1u : 0u) << at;
    return mask;
}
static uint32_t __match_any_sync(uint32_t all, uint32_t value) {
    const uint32_t *given = exchange(value);
    uint32_t mask = 0;
    (void)all;
    for (unsigned at = 0; at < 32; at++) mask |= (given[at] == value ? 1u : 0u) << at;
    return mask;
}
static uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift) {
    return (uint32_t)((((uint64_t)high << 32) | low) >> (shift & 31));
}
static int __ffs(int value) { return __builtin_ffs(value); }
static int __clz(int value) { return value ? __builtin_clz((unsigned)value) : 32; }
static int __popc(uint32_t value) { return __builtin_popcount(value); }
static uint32_t __brev(uint32_t value) {
    uint32_t reversed = 0;
    for (int bit = 0; bit < 32; bit++) reversed |= ((value >> bit) & 1) << (31 - bit);
    return reversed;
}
static uint32_t atomicAdd(uint32_t *at, uint32_t value) {
    uint32_t before = *at;
    *at += value;
    return before;
}
static uint32_t atomicOr(uint32_t *at, uint32_t value) {
    uint32_t before = *at;
    *at |= value;
    return before;
}

#define __device__
#define __constant__ static const
#define __launch_bounds__(...)
#define KERNEL static
#define SHARED_BYTES(name) char *name = dynamic_memory
#define SHARED_ARRAY(type, name, count) type *name = (type *)static_memory
#include "kernel.cu"

#define ARGUMENT(type, at) (*(type *)given[at])

static void match_body(void **given) {
    terse_match(ARGUMENT(const u8 *, 0), ARGUMENT(const Block *, 1), ARGUMENT(u32 *, 2), ARGUMENT(u32 *, 3));
}
static void code_body(void **given) {
    terse_code(ARGUMENT(const u8 *, 0), ARGUMENT(const Block *, 1), ARGUMENT(u32 *, 2), ARGUMENT(u8 *, 3), ARGUMENT(u32 *, 4));
}
static void gather_body(void **given) {
    terse_gather(ARGUMENT(const Block *, 0), ARGUMENT(const Body *, 1), ARGUMENT(const u8 *, 2), ARGUMENT(const u32 *, 3),
                 ARGUMENT(u32 *, 4));
}

/* Runs a kernel as cuLaunchKernel would; false for a name that is none's. One call at a time. */
bool terse_emulate(const char *kernel, unsigned grid, unsigned group, unsigned shared, void **kernel_arguments) {
    body = !strcmp(kernel, "terse_match")    ? match_body
           : !strcmp(kernel, "terse_code")   ? code_body
           : !strcmp(kernel, "terse_gather") ? gather_body
                                             : NULL;
    if (!body || group > MOST_THREADS || shared > sizeof dynamic_memory) return false;
    arguments = kernel_arguments;
    group_size = group;
    for (unsigned number = 0; number < grid; number++) {
        memset(warps, 0, sizeof warps);
        group_arrived = group_turn = 0;
        living = group;
        blockIdx.x = number;
        for (unsigned at = 0; at < group; at++) {
            if (!threads[at].stack) threads[at].stack = malloc(STACK_BYTES);
            if (!threads[at].stack) return false;
            threads[at].begun = threads[at].ended = false;
            getcontext(&threads[at].begin);
            threads[at].begin.uc_stack.ss_sp = threads[at].stack;
            threads[at].begin.uc_stack.ss_size = STACK_BYTES;
            threads[at].begin.uc_link = NULL;
            makecontext(&threads[at].begin, thread_main, 0);
        }
        current = group - 1;
        if (_setjmp(home) == 0) run_next();
    }
    return true;
}
