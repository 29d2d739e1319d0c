// Times the kernels of the GPU engine, alone and with the bus, and checks nothing: tests do that.
//
//   nvcc -O3 -arch=native -I crates/card/src/cuda -o /tmp/kernels scripts/gpu/kernels.cu && /tmp/kernels FILE...
#include "kernel.cu"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

static void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}
#define CHECK(call) check(call, #call)

static double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Files again and again, until there are so many bytes.
struct Batch {
    cudaStream_t stream;
    size_t bytes = 0, made = 0;
    u32 blocks, bodies;
    u8 *host, *input, *coded, *out;
    Block* block;
    Body* body;
    u32 *matches, *sizes, *sums, *results;

    Batch(const std::vector<std::vector<u8>>& files, size_t wanted) {
        std::vector<Block> blocks_of;
        std::vector<Body> bodies_of;
        std::vector<u8> all;
        size_t room = 0;
        for (size_t at = 0; bytes < wanted; at++) {
            const std::vector<u8>& file = files[at % files.size()];
            u32 first = (u32)blocks_of.size(), number = (u32)bodies_of.size();
            for (size_t begin = 0; begin < file.size(); begin += BLOCK_BYTES) {
                u32 count = (u32)std::min<size_t>(BLOCK_BYTES, file.size() - begin), history = (u32)std::min<size_t>(HISTORY, begin);
                blocks_of.push_back({all.size() + begin, count, history, number, begin + count == file.size() ? LAST_BLOCK : 0});
            }
            u32 space = (u32)(file.size() + file.size() / 512 + 512);
            bodies_of.push_back({room, first, (u32)blocks_of.size() - first, space, 0});
            room += (space + 15) / 16 * 16;
            all.insert(all.end(), file.begin(), file.end());
            all.resize((all.size() + 15) / 16 * 16);
            bytes += file.size();
        }
        all.resize(all.size() + 64);
        made = all.size();
        blocks = (u32)blocks_of.size();
        bodies = (u32)bodies_of.size();
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK(cudaMallocHost(&host, made));
        memcpy(host, all.data(), made);
        CHECK(cudaHostAlloc(&out, room, cudaHostAllocMapped));
        for (Body& one : bodies_of) one.target += (u64)out;
        CHECK(cudaMalloc(&input, made));
        CHECK(cudaMalloc(&coded, (size_t)blocks * CODED_ROOM));
        CHECK(cudaMalloc(&matches, (size_t)blocks * BLOCK_BYTES * 4));
        CHECK(cudaMalloc(&sizes, blocks * 4));
        CHECK(cudaMalloc(&sums, blocks * 8));
        CHECK(cudaHostAlloc(&results, bodies * 4, cudaHostAllocMapped));
        CHECK(cudaMalloc(&block, blocks * sizeof(Block)));
        CHECK(cudaMalloc(&body, bodies * sizeof(Body)));
        CHECK(cudaMemcpy(block, blocks_of.data(), blocks * sizeof(Block), cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(body, bodies_of.data(), bodies * sizeof(Body), cudaMemcpyHostToDevice));
    }

    void copy() { CHECK(cudaMemcpyAsync(input, host, made, cudaMemcpyHostToDevice, stream)); }

    void launch(cudaEvent_t* events) {
        if (events) CHECK(cudaEventRecord(events[0], stream));
        terse_match<<<blocks, MATCH_THREADS, MATCH_SHARED, stream>>>(input, block, matches, sums);
        if (events) CHECK(cudaEventRecord(events[1], stream));
        terse_code<<<blocks, CODE_THREADS, 0, stream>>>(input, block, matches, coded, sizes);
        if (events) CHECK(cudaEventRecord(events[2], stream));
        terse_gather<<<blocks, 256, 0, stream>>>(block, body, coded, sizes, results);
        if (events) CHECK(cudaEventRecord(events[3], stream));
        CHECK(cudaGetLastError());
    }
};

int main(int count, char** names) {
    std::vector<std::vector<u8>> files;
    for (int at = 1; at < count; at++) {
        std::ifstream file(names[at], std::ios::binary);
        files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    if (files.empty()) return fprintf(stderr, "files to compress are missing\n"), 2;
    CHECK(cudaFuncSetAttribute(terse_match, cudaFuncAttributeMaxDynamicSharedMemorySize, MATCH_SHARED));
    CHECK(cudaFuncSetAttribute(terse_match, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
    cudaEvent_t events[4];
    for (cudaEvent_t& event : events) CHECK(cudaEventCreate(&event));
    printf("| batch | matching ms | coding ms | gathering ms | matching and coding, GB/s | ratio |\n|---|---|---|---|---|---|\n");
    for (size_t megabytes : {1, 4, 16, 64, 256}) {
        Batch batch(files, megabytes << 20);
        batch.copy();
        float best[3] = {1e9, 1e9, 1e9};
        for (int round = 0; round < 6; round++) {
            batch.launch(events);
            CHECK(cudaStreamSynchronize(batch.stream));
            for (int step = 0; step < 3; step++) {
                float took;
                CHECK(cudaEventElapsedTime(&took, events[step], events[step + 1]));
                best[step] = std::min(best[step], took);
            }
        }
        size_t out = 0;
        for (u32 at = 0; at < batch.bodies; at++) out += batch.results[at] + 18;
        printf("| %zu MB | %.3f | %.3f | %.3f | %.1f | %.3f |\n", megabytes, best[0], best[1], best[2],
               (double)batch.bytes / (best[0] + best[1]) / 1e6, (double)batch.bytes / (double)out);
    }
    printf("\n| batch | in flight | GB/s, there and back |\n|---|---|---|\n");
    for (size_t megabytes : {16, 64}) {
        for (size_t streams = 1; streams <= 4; streams++) {
            std::vector<Batch> batches;
            for (size_t at = 0; at < streams; at++) batches.emplace_back(files, megabytes << 20);
            double best = 0;
            for (int round = 0; round < 3; round++) {
                double begun = seconds();
                size_t total = 0;
                for (size_t turn = 0; turn < 1024 / megabytes; turn++) {
                    Batch& batch = batches[turn % streams];
                    CHECK(cudaStreamSynchronize(batch.stream));
                    batch.copy();
                    batch.launch(nullptr);
                    total += batch.bytes;
                }
                for (Batch& batch : batches) CHECK(cudaStreamSynchronize(batch.stream));
                best = std::max(best, (double)total / (seconds() - begun) / 1e9);
            }
            printf("| %zu MB | %zu | %.1f |\n", megabytes, streams, best);
        }
    }
}
