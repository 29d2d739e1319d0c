// The kernels on a processor, for tests: the threads of a group are contexts that take turns, and wait for each other where a GPU's do.
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>

namespace {

struct Index { unsigned x; };
struct uint4 { uint32_t x, y, z, w; };
Index threadIdx, blockIdx;

// Values that lanes give each other: two sets, since some lanes may be at the next exchange already.
struct Warp {
    unsigned arrived = 0, turn = 0;
    uint32_t given[2][32];
};

struct Thread {
    ucontext_t begin;
    jmp_buf at;
    bool begun = false, ended = false;
    std::vector<char> stack;
};

std::vector<Thread> threads;
std::vector<Warp> warps;
unsigned group_arrived, group_turn, living, current;
alignas(16) char dynamic_memory[256 * 1024];
// Memory of a group that lasts as long as it does.
alignas(16) char static_memory[64 * 1024];
void (*body)(void**);
void** arguments;
jmp_buf home;
ucontext_t home_context;

void run_next() {
    for (;;) {
        current = (current + 1) % threads.size();
        Thread& next = threads[current];
        if (next.ended) continue;
        threadIdx.x = current;
        if (next.begun) _longjmp(next.at, 1);
        next.begun = true;
        setcontext(&next.begin);
    }
}

void yield() {
    if (_setjmp(threads[current].at) == 0) run_next();
}

void thread_main() {
    body(arguments);
    threads[current].ended = true;
    if (--living == 0) _longjmp(home, 1);
    run_next();
}

void __syncthreads() {
    unsigned turn = group_turn;
    if (++group_arrived == living) {
        group_arrived = 0;
        group_turn++;
        return;
    }
    while (group_turn == turn) yield();
}

// Every lane's value, once all have come. A warp's lanes end together, so all 32 come.
const uint32_t* exchange(uint32_t value) {
    Warp& warp = warps[current / 32];
    unsigned turn = warp.turn;
    uint32_t* given = warp.given[turn & 1];
    given[current % 32] = value;
    if (++warp.arrived == 32) {
        warp.arrived = 0;
        warp.turn++;
        return given;
    }
    while (warp.turn == turn) yield();
    return given;
}

unsigned lane() { return current % 32; }
void __syncwarp() { exchange(0); }
uint32_t __shfl_sync(uint32_t, uint32_t value, uint32_t from) { return exchange(value)[from % 32]; }
uint32_t __shfl_xor_sync(uint32_t, uint32_t value, uint32_t with) { return exchange(value)[lane() ^ with]; }
uint32_t __shfl_up_sync(uint32_t, uint32_t value, uint32_t step) {
    const uint32_t* given = exchange(value);
    return lane() >= step ? given[lane() - step] : value;
}
uint32_t __shfl_down_sync(uint32_t, uint32_t value, uint32_t step) {
    const uint32_t* given = exchange(value);
    return lane() + step < 32 ? given[lane() + step] : value;
}
uint32_t __ballot_sync(uint32_t, bool value) {
    const uint32_t* given = exchange(value);
    uint32_t all = 0;
    for (unsigned at = 0; at < 32; at++) all |= (given[at] ? 1u : 0u) << at;
    return all;
}
uint32_t __match_any_sync(uint32_t, uint32_t value) {
    const uint32_t* given = exchange(value);
    uint32_t all = 0;
    for (unsigned at = 0; at < 32; at++) all |= (given[at] == value ? 1u : 0u) << at;
    return all;
}
uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift) {
    return (uint32_t)((((uint64_t)high << 32) | low) >> (shift & 31));
}
int __ffs(int value) { return __builtin_ffs(value); }
int __clz(int value) { return value ? __builtin_clz((unsigned)value) : 32; }
int __popc(uint32_t value) { return __builtin_popcount(value); }
uint32_t __brev(uint32_t value) {
    uint32_t reversed = 0;
    for (int bit = 0; bit < 32; bit++) reversed |= ((value >> bit) & 1) << (31 - bit);
    return reversed;
}
uint32_t atomicAdd(uint32_t* at, uint32_t value) {
    uint32_t before = *at;
    *at += value;
    return before;
}
uint32_t atomicOr(uint32_t* at, uint32_t value) {
    uint32_t before = *at;
    *at |= value;
    return before;
}

}  // namespace

#define __device__
#define __constant__ static const
#define __global__
#define __launch_bounds__(...)
#define SHARED_BYTES(name) char* name = dynamic_memory
#define SHARED_ARRAY(type, name, count) type* name = (type*)static_memory
#include "kernel.cu"

template <class T>
static T argument(void** arguments, int at) {
    T value;
    memcpy(&value, arguments[at], sizeof(T));
    return value;
}

static void match_body(void** a) {
    terse_match(argument<const u8*>(a, 0), argument<const Block*>(a, 1), argument<u32*>(a, 2), argument<u32*>(a, 3));
}
static void code_body(void** a) {
    terse_code(argument<const u8*>(a, 0), argument<const Block*>(a, 1), argument<u32*>(a, 2), argument<u8*>(a, 3), argument<u32*>(a, 4));
}
static void gather_body(void** a) {
    terse_gather(argument<const Block*>(a, 0), argument<const Body*>(a, 1), argument<const u8*>(a, 2), argument<const u32*>(a, 3),
                 argument<u32*>(a, 4));
}

// Runs a kernel as cuLaunchKernel would; false for a name that is none's. One call at a time.
extern "C" bool terse_emulate(const char* kernel, unsigned grid, unsigned group, unsigned, void** kernel_arguments) {
    body = !strcmp(kernel, "terse_match") ? match_body : !strcmp(kernel, "terse_code") ? code_body
         : !strcmp(kernel, "terse_gather") ? gather_body : nullptr;
    if (!body) return false;
    arguments = kernel_arguments;
    threads.resize(group);
    for (unsigned number = 0; number < grid; number++) {
        warps.assign((group + 31) / 32, Warp());
        group_arrived = group_turn = 0;
        living = group;
        blockIdx.x = number;
        for (Thread& thread : threads) {
            thread.begun = thread.ended = false;
            thread.stack.resize(64 * 1024);
            getcontext(&thread.begin);
            thread.begin.uc_stack.ss_sp = thread.stack.data();
            thread.begin.uc_stack.ss_size = thread.stack.size();
            thread.begin.uc_link = nullptr;
            makecontext(&thread.begin, thread_main, 0);
        }
        current = group - 1;
        if (_setjmp(home) == 0) run_next();
    }
    return true;
}
