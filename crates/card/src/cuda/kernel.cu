// Deflate (RFC 1951) on a GPU. Bodies are cut into blocks of 32 KB, which are coded at the same time and joined.
//
//   terse_match   a group of warps a block: for every position, the longest match that a table of recent positions finds
//   terse_code    four warps a block: each chooses among a quarter's matches; one code is made of it all; each writes its quarter's bits
//   terse_gather  a group a block: copies the block's bytes behind those of the blocks before it
//
// Invariants:
// * A match lies in the same body, at most 32,768 bytes back, and ends within its block: blocks need nothing of each other.
// * A block ends at a byte: the last of a body by padding, every other by an empty stored block. So bytes are joined, not bits.
// * A block is never longer than stored: scratch memory has room for it whatever the body is.
// * What is made of a body depends on its bytes alone, not on its neighbours in a batch nor on the order in which warps run.
//
// The same text runs on a processor for tests (emulate.c): it is C, and uses no more of CUDA than that file provides.

#ifdef __CUDACC__
#define KERNEL extern "C" __global__
#define SHARED_BYTES(name) extern __shared__ __align__(16) char name[]
#define SHARED_ARRAY(type, name, count) __shared__ type name[count]
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define BLOCK_BYTES 32768
// Bytes before a block that its matches may reach into: as many as let a group's memory fit 99 KB, which is all that some devices have.
#define HISTORY 14336
#define CODED_ROOM (BLOCK_BYTES + 512)
// Positions that are looked at together, so many by each of MEASURERS threads, which a warp for the table is beside.
#define SHARE 2
#define MEASURERS 512
#define ROUND (SHARE * MEASURERS)
#define MATCH_THREADS (MEASURERS + 32)
#define AHEAD 4
// Tiles that terse_code has in hand while it reads so many more.
#define TILES 2
#define TABLE_BITS 12
#define WINDOW_BYTES (HISTORY + BLOCK_BYTES)
#define WINDOW_ROOM (WINDOW_BYTES + 64)
#define MATCH_SHARED (WINDOW_ROOM + 8 * (1 << TABLE_BITS) + 20 * ROUND)
// Candidates are compared by so many bytes. The best is measured on by terse_match, and by terse_code if it is taken.
#define COMPARED 12
#define MEASURED 32
#define LONGEST 258
#define FARTHEST 32768
#define SHORTEST 4
#define PARTS 4
#define PART_BYTES (BLOCK_BYTES / PARTS)
#define CODE_THREADS (32 * PARTS)
#define ALL 0xffffffffu

typedef struct {
    u64 source;
    u32 bytes;
    u32 history;
    u32 body;
    u32 flags;
} Block;
#define LAST_BLOCK 1u
#define ADLER 2u

typedef struct {
    u64 target;
    u32 first_block;
    u32 blocks;
    u32 room;
    u32 unused;
} Body;
#define NO_ROOM 0xffffffffu

// ---- terse_match

__device__ static u32 word_at(const u32* words, u32 at) {
    u32 index = at >> 2;
    return __funnelshift_r(words[index], words[index + 1], (at & 3) * 8);
}

// Bytes of a block that a thread sums up.
#define SUMMED (BLOCK_BYTES / MEASURERS)

// x to the power of the bits behind a lane's share in its warp, and behind a warp's share in the block, modulo CRC-32's polynomial
// (RFC 1952, reflected).
__constant__ u32 lane_shifts[32] = {
    0xb58f9792, 0x34163bd1, 0xc7916f54, 0x118f848e, 0x5e665234, 0x3ea21cf9, 0xa52f4d76, 0xbf110f7e,
    0x36b74585, 0xb3a2be1c, 0x56c3cb9c, 0x5ef840e2, 0x7242d7fa, 0xb1436b58, 0x4a080ee0, 0x6427800e,
    0x979966f5, 0x3277f3e0, 0x6b85d8d7, 0x05616c82, 0x9b577d5c, 0x7e91368a, 0x54e00eef, 0x8e7ea170,
    0xb34988bb, 0xb72d2b3c, 0x7c69160d, 0xec447f11, 0x62b6ca4b, 0xd7bbfe6a, 0x88d14467, 0x80000000};
__constant__ u32 warp_shifts[MEASURERS / 32] = {
    0x3f2d3b68, 0xb8c9f94b, 0x70d4f062, 0xf27674ad, 0x80c95e61, 0x668145e1, 0x090e1204, 0x30362f1a,
    0x96a2a2f2, 0xe4b54665, 0x4e2f9ac3, 0x83852d0f, 0x552d4042, 0x09fe548f, 0x4d47bae0, 0x80000000};

__device__ static u32 crc_product(u32 a, u32 b) {
    u32 product = 0;
    for (int bit = 0; bit < 32; bit++) {
        product ^= (a & 0x80000000u) ? b : 0;
        a <<= 1;
        b = (b >> 1) ^ ((b & 1) ? 0xedb88320u : 0);
    }
    return product;
}

__device__ static u32 xor_of(u32 value) {
    for (u32 step = 16; step; step /= 2) value ^= __shfl_xor_sync(ALL, value, step);
    return value;
}

__device__ static u32 sum_of(u32 value) {
    for (u32 step = 16; step; step /= 2) value += __shfl_xor_sync(ALL, value, step);
    return value;
}

// The raw CRC-32 of a block that begins at `first` in the window, or its two sums of Adler-32. The block is taken as the end of 32 KB that
// begin with zeros, which change neither.
__device__ static void sum_up(const u32* words, u32 first, u32 count, bool adler, u32* shared, u32* out) {
    u32 thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    int begin = (int)(thread * SUMMED) - (int)(BLOCK_BYTES - count);
    u32* table = shared;
    u32* lows = shared + 128;
    u32* highs = lows + MEASURERS / 32;
    // What becomes of a nibble with so many nibbles behind it.
    if (thread < 128) {
        u32 crc = thread & 15;
        for (u32 bit = 0; bit < 4 * (thread / 16 + 1); bit++) crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320u : 0);
        table[thread] = crc;
    }
    __syncthreads();
    if (thread < MEASURERS) {
        u32 low = 0, high = 0;
        for (int at = begin; at < begin + SUMMED; at += 4) {
            if (at <= -4) continue;
            u32 word = at < 0 ? word_at(words, first) << (8 * -at) : word_at(words, first + at);
            if (adler) {
                for (int byte = 0; byte < 4; byte++) {
                    u32 value = (word >> (8 * byte)) & 255;
                    low += value;
                    high += value * (u32)((int)count - at - byte);
                }
            } else {
                low ^= word;
                u32 next = 0;
#pragma unroll
                for (int nibble = 0; nibble < 8; nibble++) next ^= table[16 * (7 - nibble) + ((low >> (4 * nibble)) & 15)];
                low = next;
            }
        }
        low = adler ? sum_of(low) % 65521 : xor_of(crc_product(low, lane_shifts[lane]));
        high = sum_of(high % 65521) % 65521;
        if (lane == 0) {
            lows[warp] = low;
            highs[warp] = high;
        }
    }
    __syncthreads();
    if (warp == 0) {
        bool one = lane < MEASURERS / 32;
        u32 low = one ? lows[lane] : 0, high = one ? highs[lane] : 0;
        low = adler ? sum_of(low) % 65521 : xor_of(one ? crc_product(low, warp_shifts[lane]) : 0);
        high = sum_of(high) % 65521;
        if (lane == 0) {
            out[0] = low;
            out[1] = high;
        }
    }
}

// Rounds on their way through a group. Positions that do not enter the table have NO_HASH.
typedef struct {
    // Hashes; LATEST says that no later position of the same tile has it.
    u16 hashes[2][ROUND];
    // The four latest positions of the hash before the tile, the latest lowest.
    u64 offers[2][ROUND];
} Rounds;
#define LATEST 0x8000u
#define NO_HASH 0x7fffu
#define NOWHERE 0xffffu

// Looks a position's hash up among those of its tile: stores it for the table's warp, returns the nearest position before that has it.
__device__ static u32 prepare(const u32* words, u32 here, u32 end, u16* entry) {
    u32 lane = threadIdx.x % 32;
    bool hashed = here + SHORTEST <= end;
    u32 hash = hashed ? (word_at(words, here) * 2654435761u) >> (32 - TABLE_BITS) : NO_HASH;
    u32 peers = __match_any_sync(ALL, hash), before = peers & ((1u << lane) - 1);
    *entry = (u16)(hash | ((peers >> lane) == 1 ? LATEST : 0));
    return hashed && before ? here - lane + 31 - __clz((int)before) : NOWHERE;
}

// Enters a round's positions into the table, tile by tile, and offers those that are there.
__device__ static void offer(u64* table, u32 begin, const u16* hashes, u64* offers) {
    u32 lane = threadIdx.x % 32;
    for (u32 tile = lane; tile < ROUND; tile += 32 * AHEAD) {
        u32 hash[AHEAD];
#pragma unroll
        for (u32 step = 0; step < AHEAD; step++) hash[step] = hashes[tile + 32 * step];
#pragma unroll
        for (u32 step = 0; step < AHEAD; step++) {
            u32 at = hash[step] & NO_HASH;
            u64 before = ~0ull;
            if (at != NO_HASH) before = table[at];
            __syncwarp();
            if (at != NO_HASH && (hash[step] & LATEST)) table[at] = (before << 16) | (begin + tile + 32 * step);
            offers[tile + 32 * step] = before;
            __syncwarp();
        }
    }
}

// Bytes that are the same as the three words, at most COMPARED.
__device__ static u32 measure(const u32* words, const u32* own, u32 there) {
    const u32* from = words + there / 4;
    u32 shift = (there & 3) * 8;
    u32 word[4];
#pragma unroll
    for (int at = 0; at < 4; at++) word[at] = from[at];
    u32 same_bits = 64, differs = own[2] ^ __funnelshift_r(word[2], word[3], shift);
#pragma unroll
    for (int at = 1; at >= 0; at--) {
        u32 other = own[at] ^ __funnelshift_r(word[at], word[at + 1], shift);
        if (other) {
            differs = other;
            same_bits = 32 * at;
        }
    }
    return (same_bits + __clz((int)__brev(differs))) / 8;
}

// The longest match at a position, the nearest of several: its length in the lowest byte, its distance in the high half.
__device__ static u32 longest(const u32* words, u32 here, u32 end, u64 offered, u32 near) {
    u32 own[3];
#pragma unroll
    for (int at = 0; at < 3; at++) own[at] = word_at(words, here + 4 * at);
    // Of two of the same length the later one is the nearer one.
    u32 best = 0;
#pragma unroll
    for (int way = -1; way < 4; way++) {
        u32 there = way < 0 ? near : (u32)(offered >> (16 * way)) & 0xffff;
        // NOWHERE is farther than that, too.
        bool is_one = here - there <= FARTHEST;
        // Lanes that have no candidate measure themselves: that costs less than to part from the others.
        u32 found = measure(words, own, is_one ? there : here) * 0x10000 + there;
        if (is_one && found > best) best = found;
    }
    u32 length = best >> 16, there = best & 0xffff, most = end - here < MEASURED ? end - here : MEASURED;
    if (length == COMPARED) {
        while (length < most) {
            u32 differs = word_at(words, here + length) ^ word_at(words, there + length);
            length += __clz((int)__brev(differs)) / 8;
            if (differs) break;
        }
    }
    if (length > most) length = most;
    return length >= SHORTEST ? length | ((here - there) << 16) : 0;
}

// Match of each position of a block: its length in the lowest byte, its distance in the high half; between them the position's byte.
KERNEL void __launch_bounds__(MATCH_THREADS, 2)
terse_match(const u8* input, const Block* blocks, u32* matches, u32* sums) {
    SHARED_BYTES(memory);
    u32* words = (u32*)memory;
    u64* table = (u64*)(memory + WINDOW_ROOM);
    Rounds* rounds = (Rounds*)(memory + WINDOW_ROOM + 8 * (1 << TABLE_BITS));
    Block block = blocks[blockIdx.x];
    u32 thread = threadIdx.x, end = block.history + block.bytes;
    bool enters = thread >= MEASURERS;
    const uint4* source = (const uint4*)(input + block.source - block.history);
    for (u32 at = thread; at < (end + 15) / 16; at += MATCH_THREADS) ((uint4*)words)[at] = source[at];
    __syncthreads();
    sum_up(words, block.history, block.bytes, block.flags & ADLER, (u32*)table, sums + 2 * blockIdx.x);
    __syncthreads();
    for (u32 at = thread; at < (1 << TABLE_BITS); at += MATCH_THREADS) table[at] = ~0ull;
    u32 near[SHARE], nearer[SHARE];
#pragma unroll
    for (u32 part = 0; part < SHARE; part++) {
        u32 at = part * MEASURERS + thread;
        near[part] = nearer[part] = NOWHERE;
        if (!enters) nearer[part] = prepare(words, at, end, &rounds->hashes[0][at]);
    }
    __syncthreads();
    u32* out = matches + (u64)blockIdx.x * BLOCK_BYTES;
    // Three rounds at a time: the last warp enters one into the table; the others prepare the next and measure the one before.
    for (u32 begin = 0, turn = 0; begin < end + ROUND; begin += ROUND, turn ^= 1) {
        if (enters) {
            if (begin < end) offer(table, begin, rounds->hashes[turn], rounds->offers[turn]);
        } else {
#pragma unroll
            for (u32 part = 0; part < SHARE; part++) {
                u32 at = part * MEASURERS + thread, here = begin - ROUND + at;
                if (begin > block.history && here >= block.history && here < end) {
                    u32 match = longest(words, here, end, rounds->offers[turn ^ 1][at], near[part]);
                    out[here - block.history] = match | ((u32)((const u8*)words)[here] << 8);
                }
                near[part] = nearer[part];
                if (begin + ROUND < end) nearer[part] = prepare(words, begin + ROUND + at, end, &rounds->hashes[turn ^ 1][at]);
            }
        }
        __syncthreads();
    }
}

// ---- terse_code

#define LITERALS 286
#define DISTANCES 30
#define LENGTHS 19
#define SYMBOLS 320
#define END_OF_BLOCK 256

// In which order a block's head tells the lengths of the code for lengths (RFC 1951, 3.2.7).
__constant__ u8 length_order[32] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

// What a code is made in.
typedef struct {
    // Symbols by their frequency, the rarest first; then the tree.
    u32 keys[288];
    u32 tree[288];
    u32 counts[32];
} Scratch;

typedef struct {
    // Frequencies, then codes: bits in the low half, their number in the high one.
    u32 literals[288];
    u32 distances[32];
    u32 lengths[32];
    Scratch scratch[2];
    // Lengths of both codes, one after the other, as a block's head tells them.
    u8 told[SYMBOLS];
    u16 runs[SYMBOLS];
    u32 words[PARTS][64];
    // Bits of the head and of the parts.
    u32 head_bits;
    u32 part_bits[PARTS];
    // Of the head: numbers of symbols of each code, and of runs.
    u32 counted[4];
} Coder;

// Where a warp's bits go. The first word and the last are its neighbours', too: they are zero before, and bits are added.
typedef struct {
    u32* words;
    u32* out;
    // Bits of the first word in hand that are taken.
    u32 filled;
    u32 first;
    u32 at;
} Writer;

__device__ static u32 lane_of() { return threadIdx.x % 32; }

__device__ static u32 sum_before(u32 value, u32* total) {
    u32 sum = value, lane = lane_of();
    for (u32 step = 1; step < 32; step *= 2) {
        u32 other = __shfl_up_sync(ALL, sum, step);
        if (lane >= step) sum += other;
    }
    *total = __shfl_sync(ALL, sum, 31);
    return sum - value;
}

// Writes each lane's bits, at most 48, in order of lanes.
__device__ static void put(Writer* writer, u64 bits, u32 count) {
    u32 total, lane = lane_of();
    u32 at = writer->filled + sum_before(count, &total);
    if (count) {
        u32 word = at / 32, shift = at % 32;
        u64 low = bits << shift;
        atomicOr(&writer->words[word], (u32)low);
        if (shift + count > 32) atomicOr(&writer->words[word + 1], (u32)(low >> 32));
        if (shift + count > 64) atomicOr(&writer->words[word + 2], (u32)(bits >> (64 - shift)));
    }
    __syncwarp();
    u32 filled = writer->filled + total, whole = filled / 32;
    u32 one = writer->words[lane], two = writer->words[lane + 32];
    u32 rest = writer->words[whole];
    __syncwarp();
    if (lane < whole) {
        if (lane == 0 && writer->at == writer->first) atomicOr(&writer->out[writer->at], one);
        else writer->out[writer->at + lane] = one;
    }
    if (lane + 32 < whole) writer->out[writer->at + lane + 32] = two;
    writer->words[lane] = lane == 0 ? rest : 0;
    writer->words[lane + 32] = 0;
    __syncwarp();
    writer->at += whole;
    writer->filled = filled % 32;
}

__device__ static Writer writer_at(u32* words, u32* out, u32 bits) {
    u32 lane = threadIdx.x % 32;
    words[lane] = words[lane + 32] = 0;
    __syncwarp();
    Writer writer = {words, out, bits % 32, bits / 32, bits / 32};
    return writer;
}

__device__ static void finish(Writer* writer) {
    if (threadIdx.x % 32 == 0 && writer->filled) atomicOr(&writer->out[writer->at], writer->words[0]);
}

// Makes a code of at most `longest` bits for symbols of which `frequencies` tells the frequency; afterwards it holds the code.
__device__ static void make_code(Scratch* scratch, u32* frequencies, u32 symbols, u32 longest) {
    u32 lane = lane_of();
    // Readers want two symbols at least.
    u32 used = 0;
    for (u32 at = lane; at < symbols; at += 32) used += frequencies[at] != 0;
    used = sum_of(used);
    if (used < 2) {
        if (lane == 0) {
            for (u32 at = 0; used < 2; at++) {
                if (!frequencies[at]) {
                    frequencies[at] = 1;
                    used++;
                }
            }
        }
        used = 2;
        __syncwarp();
    }
    // A key is a frequency and its symbol; its rank is its place. Frequencies are below 2^16.
    u32 mine[9], rank[9];
    u32 rounds = (symbols + 31) / 32;
    for (u32 round = 0; round < 9; round++) {
        u32 symbol = round * 32 + lane;
        u32 frequency = round < rounds && symbol < symbols ? frequencies[symbol] : 0;
        mine[round] = frequency ? (frequency << 9) | symbol : ALL;
        rank[round] = 0;
        if (round < rounds) scratch->tree[symbol] = mine[round];
    }
    __syncwarp();
    for (u32 at = 0; at < rounds * 32; at++) {
        u32 other = scratch->tree[at];
        for (u32 round = 0; round < 9; round++) rank[round] += other < mine[round];
    }
    __syncwarp();
    for (u32 round = 0; round < 9; round++) {
        if (mine[round] != ALL) {
            scratch->keys[rank[round]] = mine[round] & 511;
            scratch->tree[rank[round]] = mine[round] >> 9;
        }
    }
    scratch->counts[lane] = 0;
    __syncwarp();
    if (lane == 0) {
        // Moffat and Katajainen, "In-Place Calculation of Minimum-Redundancy Codes", 1995.
        u32* tree = scratch->tree;
        u32 root = 0, leaf = 2;
        tree[0] += tree[1];
        for (u32 next = 1; next + 1 < used; next++) {
            u32 sum;
            if (leaf >= used || tree[root] < tree[leaf]) {
                sum = tree[root];
                tree[root++] = next;
            } else {
                sum = tree[leaf++];
            }
            if (leaf >= used || (root < next && tree[root] < tree[leaf])) {
                sum += tree[root];
                tree[root++] = next;
            } else {
                sum += tree[leaf++];
            }
            tree[next] = sum;
        }
        tree[used - 2] = 0;
        for (int next = (int)used - 3; next >= 0; next--) tree[next] = tree[tree[next]] + 1;
        u32 available = 1, depth = 0, taken = 0;
        int inner = (int)used - 2;
        u32* counts = scratch->counts;
        while (available) {
            while (inner >= 0 && tree[inner] == depth) {
                taken++;
                inner--;
            }
            counts[depth < longest ? depth : longest] += available - taken;
            available = 2 * taken;
            taken = 0;
            depth++;
        }
        // Codes that were too long have been shortened: others become longer until all fit.
        u32 sum = 0;
        for (u32 bits = 1; bits <= longest; bits++) sum += counts[bits] << (longest - bits);
        while (sum > (1u << longest)) {
            counts[longest]--;
            u32 bits = longest - 1;
            while (!counts[bits]) bits--;
            counts[bits]--;
            counts[bits + 1] += 2;
            sum--;
        }
        // Where the codes of each length end among the symbols by frequency.
        u32 first = used, code = 0;
        for (u32 bits = 1; bits <= longest; bits++) {
            first -= counts[bits];
            scratch->tree[bits] = first;
            scratch->tree[32 + bits] = code;
            code = (code + counts[bits]) << 1;
        }
    }
    __syncwarp();
    // A symbol's length: the smallest whose first symbol is not behind it. `first` falls with the length.
    u32 length[9];
    for (u32 round = 0; round < 9; round++) {
        length[round] = 0;
        if (mine[round] == ALL) continue;
        u32 bits = 1;
        while (scratch->tree[bits] > rank[round]) bits++;
        length[round] = bits;
    }
    __syncwarp();
    u32* next = scratch->tree + 32;
    for (u32 round = 0; round < rounds; round++) {
        u32 symbol = round * 32 + lane, bits = length[round];
        u32 peers = __match_any_sync(ALL, bits);
        u32 code = next[bits] + __popc(peers & ((1u << lane) - 1));
        __syncwarp();
        if ((peers >> lane) == 1) next[bits] += __popc(peers);
        __syncwarp();
        frequencies[symbol] = bits ? (bits << 16) | (__brev(code) >> (32 - bits)) : 0;
    }
    __syncwarp();
}

__device__ static u32 length_symbol(u32 less3, u32* extra_bits) {
    if (less3 < 8) return *extra_bits = 0, 257 + less3;
    if (less3 == 255) return *extra_bits = 0, 285;
    u32 extra = 29 - __clz((int)less3);
    *extra_bits = extra;
    return 261 + 4 * extra + ((less3 >> extra) & 3);
}

__device__ static u32 distance_symbol(u32 less1, u32* extra_bits) {
    if (less1 < 4) return *extra_bits = 0, less1;
    u32 extra = 30 - __clz((int)less1);
    *extra_bits = extra;
    return 2 * extra + 2 + ((less1 >> extra) & 1);
}

// How long a match is that terse_match has not measured to its end.
__device__ static u32 measure_on(const u8* bytes, u32 here, u32 distance, u32 bytes_left) {
    u32 most = bytes_left < LONGEST ? bytes_left : LONGEST, lane = lane_of();
    u32 length = MEASURED;
    while (length < most) {
        u32 at = here + length + lane;
        bool differs = length + lane >= most || bytes[at] != bytes[(int)at - (int)distance];
        u32 ends = __ballot_sync(ALL, differs);
        if (ends) {
            length += __ffs((int)ends) - 1;
            break;
        }
        length += 32;
    }
    return length < most ? length : most;
}

#define IS_MATCH 0x80000000u

typedef struct {
    u32 tokens;
    // The first position that is neither chosen nor covered.
    u32 next;
} Choice;

// Chooses among the matches of 32 positions; `after` are those of the next 32.
__device__ static void choose_tile(Coder* coder, const u8* bytes, u32 end, u32 base, u32 match, u32 after, u32* tokens, Choice* choice) {
    if (choice->next >= base + 32) return;
    u32 lane = lane_of(), left = end - base - lane, length = base + lane < end ? match & 0xff : 0;
    // A longer match at one of the next two positions goes first.
    u32 one = __shfl_sync(ALL, lane == 0 ? after & 0xff : length, (lane + 1) % 32);
    u32 two = __shfl_sync(ALL, lane < 2 ? after & 0xff : length, (lane + 2) % 32);
    if (length > left) length = left;
    if (length < 3 || one > length || two > length + 1) length = 0;
    u32 candidates = __ballot_sync(ALL, length != 0);
    u32 begin = choice->next > base ? choice->next - base : 0, taken = 0, at = begin;
    while (at < 32) {
        u32 rest = candidates & (ALL << at);
        if (!rest) break;
        u32 chosen = __ffs((int)rest) - 1, reach = __shfl_sync(ALL, length, chosen);
        if (reach >= MEASURED) {
            reach = measure_on(bytes, base + chosen, __shfl_sync(ALL, match, chosen) >> 16, end - base - chosen);
            if (lane == chosen) length = reach;
        }
        taken |= 1u << chosen;
        at = chosen + reach;
    }
    u32 up_to_here = ALL >> (31 - lane), before = taken & up_to_here;
    u32 last = before ? 31 - __clz((int)before) : 0, covered = last + __shfl_sync(ALL, length, last);
    bool is_match = taken >> lane & 1;
    bool is_literal = !is_match && lane >= begin && base + lane < end && !(before && covered > lane);
    u32 made = __ballot_sync(ALL, is_match || is_literal);
    u32 token = 0;
    if (is_match) {
        u32 less1 = (match >> 16) - 1, length_bits, distance_bits;
        token = IS_MATCH | ((length - 3) << 16) | less1;
        atomicAdd(&coder->literals[length_symbol(length - 3, &length_bits)], 1u);
        atomicAdd(&coder->distances[distance_symbol(less1, &distance_bits)], 1u);
    } else if (is_literal) {
        token = (match >> 8) & 0xff;
        atomicAdd(&coder->literals[token], 1u);
    }
    if (is_match || is_literal) tokens[choice->tokens + __popc(made & (up_to_here >> 1))] = token;
    choice->tokens += __popc(made);
    choice->next = base + (at > 32 ? at : 32);
}

// Chooses among the matches of a part of a block; returns the number of tokens.
__device__ static u32 choose(Coder* coder, const u8* bytes, u32 begin, u32 end, const u32* matches, u32* tokens) {
    u32 lane = lane_of(), coming[TILES];
    Choice choice = {0, begin};
#pragma unroll
    for (u32 step = 0; step < TILES; step++) {
        u32 at = begin + step * 32 + lane;
        coming[step] = at < end ? matches[at] : 0;
    }
    for (u32 base = begin; base < end; base += 32 * TILES) {
        u32 tiles[TILES];
#pragma unroll
        for (u32 step = 0; step < TILES; step++) {
            u32 at = base + (TILES + step) * 32 + lane;
            tiles[step] = coming[step];
            coming[step] = at < end ? matches[at] : 0;
        }
#pragma unroll
        for (u32 step = 0; step < TILES; step++) {
            u32 after = step + 1 < TILES ? tiles[(step + 1) % TILES] : coming[0];
            if (base + 32 * step < end) choose_tile(coder, bytes, end, base + 32 * step, tiles[step], after, tokens, &choice);
        }
    }
    return choice.tokens;
}

// The lengths of both codes as runs (RFC 1951, 3.2.7): a symbol in the low byte, its extra bits in the high one. Returns their number.
__device__ static u32 make_runs(Coder* coder, u32 told) {
    u32 made = 0;
    if (lane_of() == 0) {
        u32 at = 0;
        while (at < told) {
            u32 length = coder->told[at], same = 1;
            while (at + same < told && coder->told[at + same] == length) same++;
            at += same;
            if (length == 0) {
                while (same >= 3) {
                    u32 run = same < 138 ? same : 138;
                    u32 symbol = run < 11 ? 17 : 18;
                    coder->runs[made++] = (u16)(symbol | ((run - (run < 11 ? 3 : 11)) << 8));
                    coder->lengths[symbol]++;
                    same -= run;
                }
            } else {
                coder->runs[made++] = (u16)length;
                coder->lengths[length]++;
                same--;
                while (same >= 3) {
                    u32 run = same < 6 ? same : 6;
                    coder->runs[made++] = (u16)(16 | ((run - 3) << 8));
                    coder->lengths[16]++;
                    same -= run;
                }
            }
            for (; same; same--) {
                coder->runs[made++] = (u16)length;
                coder->lengths[length]++;
            }
        }
    }
    __syncwarp();
    return __shfl_sync(ALL, made, 0);
}

__device__ static u32 run_bits(u32 symbol) { return symbol == 16 ? 2 : symbol == 17 ? 3 : symbol == 18 ? 7 : 0; }

// Makes a block's head: what it tells, and how many bits that takes.
__device__ static void make_head(Coder* coder) {
    u32 lane = lane_of(), literals = 257, distances = 1;
    u32 used = __ballot_sync(ALL, lane > 0 && coder->literals[256 + lane] != 0);
    if (used) literals = 256 + 32 - __clz((int)used);
    used = __ballot_sync(ALL, coder->distances[lane] != 0);
    if (used) distances = 32 - __clz((int)used);
    for (u32 at = lane; at < literals + distances; at += 32) {
        coder->told[at] = (u8)((at < literals ? coder->literals[at] : coder->distances[at - literals]) >> 16);
    }
    __syncwarp();
    u32 runs = make_runs(coder, literals + distances), bits = 0;
    make_code(&coder->scratch[0], coder->lengths, LENGTHS, 7);
    for (u32 at = lane; at < runs; at += 32) {
        u32 symbol = coder->runs[at] & 255;
        bits += (coder->lengths[symbol] >> 16) + run_bits(symbol);
    }
    used = __ballot_sync(ALL, lane < LENGTHS && coder->lengths[length_order[lane]] != 0);
    u32 lengths = 32 - __clz((int)used);
    if (lengths < 4) lengths = 4;
    bits = sum_of(bits) + 17 + 3 * lengths;
    if (lane == 0) {
        coder->head_bits = bits;
        coder->counted[0] = literals;
        coder->counted[1] = distances;
        coder->counted[2] = lengths;
        coder->counted[3] = runs;
    }
}

__device__ static void put_head(Coder* coder, Writer* writer, bool last) {
    u32 lane = lane_of(), lengths = coder->counted[2], runs = coder->counted[3];
    u32 bits = (last ? 1 : 0) | (2 << 1) | ((coder->counted[0] - 257) << 3) | ((coder->counted[1] - 1) << 8) | ((lengths - 4) << 13);
    put(writer, bits, lane == 0 ? 17 : 0);
    bool told = lane < lengths;
    put(writer, told ? coder->lengths[length_order[lane]] >> 16 : 0, told ? 3 : 0);
    for (u32 base = 0; base < runs; base += 32) {
        u32 at = base + lane, run = at < runs ? coder->runs[at] : 0, code = at < runs ? coder->lengths[run & 255] : 0;
        put(writer, (code & 0xffff) | ((run >> 8) << (code >> 16)), at < runs ? (code >> 16) + run_bits(run & 255) : 0);
    }
}

// A token's bits, and how many.
__device__ static u64 bits_of(const Coder* coder, u32 token, u32* count) {
    if (!(token & IS_MATCH)) {
        u32 code = coder->literals[token];
        *count = code >> 16;
        return code & 0xffff;
    }
    u32 less3 = (token >> 16) & 255, less1 = token & 0x7fff, length_bits, distance_bits;
    u32 length = coder->literals[length_symbol(less3, &length_bits)];
    u32 distance = coder->distances[distance_symbol(less1, &distance_bits)];
    u32 width = length >> 16;
    u64 bits = length & 0xffff;
    bits |= (u64)(less3 & ((1u << length_bits) - 1)) << width;
    width += length_bits;
    bits |= (u64)(distance & 0xffff) << width;
    width += distance >> 16;
    bits |= (u64)(less1 & ((1u << distance_bits) - 1)) << width;
    *count = width + distance_bits;
    return bits;
}

// A stored block (RFC 1951, 3.2.4).
__device__ static void store(const u8* bytes, u32 count, bool last, u8* out) {
    if (threadIdx.x == 0) {
        out[0] = last ? 1 : 0;
        out[1] = (u8)count;
        out[2] = (u8)(count >> 8);
        out[3] = (u8)~count;
        out[4] = (u8)(~count >> 8);
    }
    for (u32 at = threadIdx.x; at < count; at += CODE_THREADS) out[5 + at] = bytes[at];
}

// Bits of a block; `sizes` becomes its bytes.
KERNEL void __launch_bounds__(CODE_THREADS, 12)
terse_code(const u8* input, const Block* blocks, u32* matches, u8* coded, u32* sizes) {
    SHARED_ARRAY(Coder, coder, 1);
    u32 thread = threadIdx.x, lane = lane_of(), part = thread / 32, number = blockIdx.x;
    Block block = blocks[number];
    const u8* bytes = input + block.source;
    u32 begin = part * PART_BYTES, end = begin + PART_BYTES < block.bytes ? begin + PART_BYTES : block.bytes;
    // Tokens take the place of matches that have been read: there is a position for each, or more.
    matches += (u64)number * BLOCK_BYTES;
    u32* tokens = matches + begin;
    coded += (u64)number * CODED_ROOM;
    u32* out = (u32*)coded;
    bool last = block.flags & LAST_BLOCK;
    for (u32 at = thread; at < 288; at += CODE_THREADS) coder->literals[at] = at == END_OF_BLOCK;
    if (part == 0) coder->distances[lane] = coder->lengths[lane] = 0;
    __syncthreads();
    u32 made = choose(coder, bytes, begin, end, matches, tokens);
    __syncthreads();
    if (part == 0) make_code(&coder->scratch[0], coder->literals, LITERALS, 15);
    if (part == 1) make_code(&coder->scratch[1], coder->distances, DISTANCES, 15);
    __syncthreads();
    if (part == 0) make_head(coder);
    u32 bits = 0;
    for (u32 at = lane; at < made; at += 32) {
        u32 count;
        bits_of(coder, tokens[at], &count);
        bits += count;
    }
    bits = sum_of(bits);
    if (lane == 0) coder->part_bits[part] = bits;
    __syncthreads();
    // Where the part's bits begin, and where the block's end.
    u32 from = coder->head_bits, to = from;
    for (u32 of = 0; of < PARTS; of++) {
        if (of < part) from += coder->part_bits[of];
        to += coder->part_bits[of];
    }
    if (part == 0) from = 0;
    u32 end_code = coder->literals[END_OF_BLOCK], size = to + (end_code >> 16);
    // An empty stored block: three bits of zero, zeros up to a byte, then 00 00 ff ff.
    u32 pad = (8 - ((size + 3) & 7)) & 7;
    if (!last) size += 3 + pad + 32;
    if ((size + 7) / 8 >= block.bytes + 5) {
        store(bytes, block.bytes, last, coded);
        if (thread == 0) sizes[number] = block.bytes + 5;
        return;
    }
    if (lane == 0) out[from / 32] = 0;
    if (thread == 0) out[to / 32] = out[size / 32] = 0;
    __syncthreads();
    Writer writer = writer_at(coder->words[part], out, from);
    if (part == 0) put_head(coder, &writer, last);
    u32 coming = lane < made ? tokens[lane] : 0;
    for (u32 base = 0; base < made; base += 32) {
        u32 token = coming, count;
        coming = base + 32 + lane < made ? tokens[base + 32 + lane] : 0;
        u64 token_bits = bits_of(coder, token, &count);
        bool there = base + lane < made;
        put(&writer, there ? token_bits : 0, there ? count : 0);
    }
    if (part == PARTS - 1) {
        put(&writer, lane == 0 ? end_code & 0xffff : 0, lane == 0 ? end_code >> 16 : 0);
        if (!last) put(&writer, lane == 1 ? 0xffff0000u : 0, lane == 0 ? 3 + pad : lane == 1 ? 32 : 0);
    }
    finish(&writer);
    if (thread == 0) sizes[number] = (size + 7) / 8;
}

// ---- terse_gather

KERNEL void __launch_bounds__(256)
terse_gather(const Block* blocks, const Body* bodies, const u8* coded, const u32* sizes, u32* results) {
    SHARED_ARRAY(u32, sums, 2 * 8);
    u32 thread = threadIdx.x, number = blockIdx.x;
    u32 of = blocks[number].body;
    Body body = bodies[of];
    u32 before = 0, all = 0;
    for (u32 at = thread; at < body.blocks; at += 256) {
        u32 size = sizes[body.first_block + at];
        all += size;
        if (body.first_block + at < number) before += size;
    }
    before = sum_of(before);
    all = sum_of(all);
    if (thread % 32 == 0) {
        sums[thread / 32] = before;
        sums[8 + thread / 32] = all;
    }
    __syncthreads();
    before = all = 0;
    for (u32 at = 0; at < 8; at++) {
        before += sums[at];
        all += sums[8 + at];
    }
    bool fits = all <= body.room;
    if (number == body.first_block && thread == 0) results[of] = fits ? all : NO_ROOM;
    if (!fits) return;
    const u32* source = (const u32*)(coded + (u64)number * CODED_ROOM);
    u8* target = (u8*)body.target + before;
    u32 size = sizes[number];
    // Whole words of the target, each of two of the source's; bytes before and after them.
    u32 head = (u32)((16 - ((u64)target & 15)) & 15);
    if (head > size) head = size;
    u32 quads = (size - head) / 16;
    if (thread < head) target[thread] = ((const u8*)source)[thread];
    const u32* from = source + head / 4;
    u32 shift = (head & 3) * 8;
    for (u32 at = thread; at < quads; at += 256) {
        uint4 quad;
        const u32* word = from + 4 * at;
        quad.x = __funnelshift_r(word[0], word[1], shift);
        quad.y = __funnelshift_r(word[1], word[2], shift);
        quad.z = __funnelshift_r(word[2], word[3], shift);
        quad.w = __funnelshift_r(word[3], word[4], shift);
        ((uint4*)(target + head))[at] = quad;
    }
    for (u32 at = head + 16 * quads + thread; at < size; at += 256) target[at] = ((const u8*)source)[at];
}
