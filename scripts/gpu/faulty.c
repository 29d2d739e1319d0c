/* A driver of CUDA's that fails: every call goes on to the one that REAL_CUDA names, but for
 *   FAIL_EVERY=N   each Nth wait for the device fails, as after a kernel's fault
 *   HANG_EVERY=N   each Nth wait does not return
 *   NO_MEMORY=1    the device has no memory
 * Built as libcuda.so.1: cc -shared -fPIC -o libcuda.so.1 faulty.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#define PASS(name)            \
    __attribute__((used, visibility("hidden"))) void *real_##name; \
    __attribute__((naked)) void name(void) { __asm__("jmp *real_" #name "(%rip)"); }

#define ALL(X)                                                                                                       \
    X(cuInit) X(cuDriverGetVersion) X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetAttribute)     \
    X(cuDevicePrimaryCtxSetFlags_v2) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuModuleLoadData)               \
    X(cuModuleGetFunction) X(cuFuncSetAttribute) X(cuMemFree_v2) X(cuMemHostAlloc) X(cuMemFreeHost)                   \
    X(cuMemHostRegister_v2) X(cuMemHostUnregister) X(cuMemHostGetDevicePointer_v2) X(cuMemcpyHtoDAsync_v2)            \
    X(cuStreamCreate) X(cuStreamDestroy_v2) X(cuLaunchKernel) X(cuGetErrorName) X(cuGetErrorString)

ALL(PASS)

static int (*real_wait)(void *);
static int (*real_take)(unsigned long long *, size_t);
static unsigned waits, fail_every, hang_every, no_memory;

static unsigned number(const char *name) {
    const char *text = getenv(name);
    return text ? (unsigned)atoi(text) : 0;
}

int cuStreamSynchronize(void *stream) {
    unsigned count = __sync_add_and_fetch(&waits, 1);
    if (hang_every && count % hang_every == 0)
        for (;;) pause();
    int code = real_wait(stream);
    return fail_every && count % fail_every == 0 ? 719 : code;
}

int cuMemAlloc_v2(unsigned long long *at, size_t bytes) { return no_memory ? 2 : real_take(at, bytes); }

__attribute__((constructor)) static void begin(void) {
    void *real = dlopen(getenv("REAL_CUDA"), RTLD_NOW | RTLD_LOCAL);
    if (!real) abort();
#define FIND(name) real_##name = dlsym(real, #name);
    ALL(FIND)
    real_wait = (int (*)(void *))dlsym(real, "cuStreamSynchronize");
    real_take = (int (*)(unsigned long long *, size_t))dlsym(real, "cuMemAlloc_v2");
    fail_every = number("FAIL_EVERY");
    hang_every = number("HANG_EVERY");
    no_memory = number("NO_MEMORY");
}
