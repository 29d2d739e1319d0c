// Deflate (RFC 1951) on a GPU. Bodies are cut into blocks of 32 KB, which are coded at the same time and joined.
//
//   terse_match   a group of warps a block: for every position, the longest match that a table of recent positions finds
//   terse_code    a warp a block: chooses matches and literals, makes Huffman codes, writes the block's bits
//   terse_gather  a group a block: copies the block's bytes behind those of the blocks before it
//
// Invariants:
// * A match lies in the same body, at most 32,768 bytes back, and ends within its block: blocks need nothing of each other.
// * A block ends at a byte: the last of a body by padding, every other by an empty stored block. So bytes are joined, not bits.
// * A block is never longer than stored: scratch memory has room for it whatever the body is.
// * What is made of a body depends on its bytes alone, not on its neighbours in a batch nor on the order in which warps run.
//
// The same text runs on a processor for tests (emulate.cpp), so it uses no more of CUDA than that file provides.

#ifdef __CUDACC__
#define SHARED_BYTES(name) extern __shared__ __align__(16) char name[]
#define SHARED_ARRAY(type, name, count) __shared__ type name[count]
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define BLOCK_BYTES 32768
// Bytes before a block that its matches may reach into. Twice as many gain 0.1 % and halve the groups that a multiprocessor holds.
#define HISTORY 16384
#define CODED_ROOM (BLOCK_BYTES + 512)
#define TOKEN_ROOM (BLOCK_BYTES + 32)
#ifndef MATCH_WARPS
#define MATCH_WARPS 8
#endif
#define MATCH_THREADS (32 * MATCH_WARPS)
#define TABLE_BITS 12
#define WINDOW_BYTES (HISTORY + BLOCK_BYTES)
#define WINDOW_ROOM (WINDOW_BYTES + 64)
#define MATCH_SHARED (WINDOW_ROOM + 8 * (1 << TABLE_BITS))
// terse_match measures no further; terse_code does so for the matches that it takes.
#define MEASURED 32
#define LONGEST 258
#define SHORTEST 4
#define CODE_WARPS 4
#define ALL 0xffffffffu

struct Block {
    u64 source;
    u32 bytes;
    u32 history;
    u32 body;
    u32 flags;
};
#define LAST_BLOCK 1u
#define ADLER 2u

struct Body {
    u64 target;
    u32 first_block;
    u32 blocks;
    u32 room;
    u32 unused;
};
#define NO_ROOM 0xffffffffu

// ---- terse_match

__device__ static u32 word_at(const u32* words, u32 at) {
    u32 index = at >> 2;
    return __funnelshift_r(words[index], words[index + 1], (at & 3) * 8);
}

// Bytes that are equal at both places, up to `most` and MEASURED.
__device__ static u32 measure(const u32* words, u32 here, u32 there, u32 most) {
    u32 length = 0;
    while (length < most) {
        u32 differs = word_at(words, here + length) ^ word_at(words, there + length);
        if (differs) {
            length += (__ffs((int)differs) - 1) >> 3;
            break;
        }
        length += 4;
    }
    return length < most ? length : most;
}

// CRC-32 (reflected, RFC 1952), by a nibble's table of 16.
__device__ static u32 crc_table(u32 nibble) {
    u32 crc = nibble;
    for (int bit = 0; bit < 4; bit++) crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320u : 0);
    return crc;
}

// Product of two polynomials modulo CRC-32's, all reflected.
__device__ static u32 crc_product(u32 a, u32 b) {
    u32 product = 0;
    for (int bit = 0; bit < 32; bit++) {
        product ^= (a & 0x80000000u) ? b : 0;
        a <<= 1;
        b = (b >> 1) ^ ((b & 1) ? 0xedb88320u : 0);
    }
    return product;
}

// The block's raw CRC-32, or its two sums of Adler-32. The block is taken as the end of 32 KB that begin with zeros, which change neither.
__device__ static void sum_up(const u8* bytes, u32 count, bool adler, u32* shared, u32* out) {
    const u32 share = BLOCK_BYTES / MATCH_THREADS;
    u32 thread = threadIdx.x;
    int begin = (int)(thread * share) - (int)(BLOCK_BYTES - count), end = begin + (int)share;
    u32 low = 0, high = 0;
    if (thread < 16) shared[thread] = crc_table(thread);
    __syncthreads();
    if (adler) {
        u64 weighed = 0;
        for (int at = begin < 0 ? 0 : begin; at < end; at++) {
            low += bytes[at];
            weighed += (u64)bytes[at] * (count - (u32)at);
        }
        high = (u32)(weighed % 65521);
    } else {
        for (int at = begin < 0 ? 0 : begin; at < end; at++) {
            low ^= bytes[at];
            low = (low >> 4) ^ shared[low & 15];
            low = (low >> 4) ^ shared[low & 15];
        }
    }
    __syncthreads();
    u32* lows = shared;
    u32* highs = shared + MATCH_THREADS;
    lows[thread] = low;
    highs[thread] = high;
    __syncthreads();
    // x to the power of a share's bits: x^8 squared so often. 0x00800000 is x^8.
    u32 shift = 0x00800000u;
    for (u32 bytes_of = 1; bytes_of < share; bytes_of *= 2) shift = crc_product(shift, shift);
    for (u32 stride = 1; stride < MATCH_THREADS; stride *= 2) {
        if (thread % (2 * stride) == 0) {
            if (adler) {
                lows[thread] = (lows[thread] + lows[thread + stride]) % 65521;
                highs[thread] = (highs[thread] + highs[thread + stride]) % 65521;
            } else {
                lows[thread] = crc_product(lows[thread], shift) ^ lows[thread + stride];
            }
        }
        shift = crc_product(shift, shift);
        __syncthreads();
    }
    if (thread == 0) {
        out[0] = adler ? lows[0] % 65521 : lows[0];
        out[1] = highs[0];
    }
}

// Match of each position of a block: its length in the low half, its distance in the high one; 0 where there is none.
extern "C" __global__ void __launch_bounds__(MATCH_THREADS, 2)
terse_match(const u8* input, const Block* blocks, u32* matches, u32* sums) {
    SHARED_BYTES(memory);
    u32* words = (u32*)memory;
    // The four latest positions of each hash, the latest lowest.
    u64* table = (u64*)(memory + WINDOW_ROOM);
    Block block = blocks[blockIdx.x];
    u32 thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    u32 end = block.history + block.bytes;
    const uint4* source = (const uint4*)(input + block.source - block.history);
    for (u32 at = thread; at < (end + 15) / 16; at += MATCH_THREADS) ((uint4*)words)[at] = source[at];
    __syncthreads();
    sum_up((const u8*)words + block.history, block.bytes, block.flags & ADLER, (u32*)table, sums + 2 * blockIdx.x);
    __syncthreads();
    for (u32 at = thread; at < (1 << TABLE_BITS); at += MATCH_THREADS) table[at] = ~0ull;
    __syncthreads();
    u32* out = matches + (u64)blockIdx.x * BLOCK_BYTES;
    for (u32 base = 0; base < end; base += MATCH_THREADS) {
        u32 here = base + thread;
        bool hashed = here + SHORTEST <= end;
        u32 first = hashed ? word_at(words, here) : 0;
        u32 hash = hashed ? (first * 2654435761u) >> (32 - TABLE_BITS) : (1 << TABLE_BITS) + lane;
        u32 peers = __match_any_sync(ALL, hash);
        u32 before = peers & ((1u << lane) - 1);
        bool latest = hashed && (peers >> lane) == 1;
        u64 found = ~0ull;
        // Positions enter the table in order, a warp after the other.
        for (u32 turn = 0; turn < MATCH_WARPS; turn++) {
            if (turn == warp) {
                if (hashed) found = table[hash];
                __syncwarp();
                if (latest) table[hash] = (found << 16) | here;
            }
            __syncthreads();
        }
        if (base + MATCH_THREADS <= block.history || !hashed || here < block.history) {
            if (here >= block.history && here < end) out[here - block.history] = 0;
            continue;
        }
        u32 most = end - here < MEASURED ? end - here : MEASURED;
        u32 length = 0, distance = 0;
        if (before) {
            u32 there = base + (warp * 32) + (31 - __clz((int)before));
            length = measure(words, here, there, most);
            distance = here - there;
        }
        for (int way = 0; way < 4 && length < most; way++, found >>= 16) {
            u32 there = (u32)(found & 0xffff);
            if (there == 0xffff) break;
            // What is not longer than the best differs at its end already, mostly.
            if (length && ((const u8*)words)[there + length] != ((const u8*)words)[here + length]) continue;
            u32 longer = measure(words, here, there, most);
            if (longer > length) {
                length = longer;
                distance = here - there;
            }
        }
        out[here - block.history] = length >= SHORTEST && distance <= 32768 ? length | (distance << 16) : 0;
    }
}

// ---- terse_code

#define LITERALS 286
#define DISTANCES 30
#define LENGTHS 19
#define SYMBOLS 320
#define END_OF_BLOCK 256

struct Coder {
    // Frequencies, then codes: bits in the low half, their number in the high one.
    u32 literals[288];
    u32 distances[32];
    u32 lengths[32];
    // Symbols by their frequency, the rarest first; then the tree.
    u32 keys[288];
    u32 tree[288];
    u32 counts[32];
    // Lengths of both codes, one after the other, as a block's head tells them.
    u8 told[SYMBOLS];
    u16 runs[SYMBOLS];
    u32 bits[64];
};

// Where a warp's bits go.
struct Writer {
    u32* words;
    u32* out;
    // Bits of the first word that are taken.
    u32 filled;
    // Words that are written.
    u32 written;
};

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

__device__ static u32 sum_of(u32 value) {
    for (u32 step = 16; step; step /= 2) value += __shfl_xor_sync(ALL, value, step);
    return value;
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
    if (lane < whole) writer->out[writer->written + lane] = one;
    if (lane + 32 < whole) writer->out[writer->written + lane + 32] = two;
    writer->words[lane] = lane == 0 ? rest : 0;
    writer->words[lane + 32] = 0;
    __syncwarp();
    writer->written += whole;
    writer->filled = filled % 32;
}

// Makes a code of at most `longest` bits for symbols of which `frequencies` tells the frequency; afterwards it holds the code.
__device__ static void make_code(Coder* coder, u32* frequencies, u32 symbols, u32 longest) {
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
        if (round < rounds) coder->tree[symbol] = mine[round];
    }
    __syncwarp();
    for (u32 at = 0; at < rounds * 32; at++) {
        u32 other = coder->tree[at];
        for (u32 round = 0; round < 9; round++) rank[round] += other < mine[round];
    }
    __syncwarp();
    for (u32 round = 0; round < 9; round++) {
        if (mine[round] != ALL) {
            coder->keys[rank[round]] = mine[round] & 511;
            coder->tree[rank[round]] = mine[round] >> 9;
        }
    }
    coder->counts[lane] = 0;
    __syncwarp();
    if (lane == 0) {
        // Moffat and Katajainen, "In-Place Calculation of Minimum-Redundancy Codes", 1995.
        u32* tree = coder->tree;
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
        u32* counts = coder->counts;
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
            coder->tree[bits] = first;
            coder->tree[32 + bits] = code;
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
        while (coder->tree[bits] > rank[round]) bits++;
        length[round] = bits;
    }
    __syncwarp();
    u32* next = coder->tree + 32;
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

// Chooses; returns the number of tokens. `extra` becomes the number of bits beside the codes.
__device__ static u32 choose(Coder* coder, const u8* bytes, u32 count, const u32* matches, u32* tokens, u32* extra) {
    u32 lane = lane_of(), made = 0, next = 0, beside = 0;
    u32 coming = lane < count ? matches[lane] : 0;
    for (u32 base = 0; base < count; base += 32) {
        u32 here = base + lane, match = coming;
        coming = here + 32 < count ? matches[here + 32] : 0;
        if (next >= base + 32) continue;
        u32 left = count - here, length = here < count ? match & 0xffff : 0;
        if (length > left) length = left;
        // A longer match at one of the next two bytes goes first.
        u32 after = coming & 0xffff;
        u32 one = __shfl_down_sync(ALL, length, 1), two = __shfl_down_sync(ALL, length, 2);
        u32 next0 = __shfl_sync(ALL, after, 0), next1 = __shfl_sync(ALL, after, 1);
        if (lane == 31) one = next0;
        if (lane == 31) two = next1;
        if (lane == 30) two = next0;
        if (length < 3 || one > length || two > length + 1) length = 0;
        u32 candidates = __ballot_sync(ALL, length != 0);
        u32 within = __ballot_sync(ALL, here < count);
        u32 literal = 0, taken = 0, at = next > base ? next - base : 0;
        while (at < 32) {
            u32 rest = candidates & (ALL << at);
            if (!rest) {
                literal |= ALL << at;
                at = 32;
                break;
            }
            u32 chosen = __ffs((int)rest) - 1;
            literal |= (ALL << at) & ((1u << chosen) - 1);
            taken |= 1u << chosen;
            u32 long_ = __shfl_sync(ALL, length, chosen);
            if (long_ >= MEASURED) {
                u32 distance = __shfl_sync(ALL, match, chosen) >> 16;
                long_ = measure_on(bytes, base + chosen, distance, count - base - chosen);
                if (lane == chosen) length = long_;
            }
            at = chosen + long_;
        }
        next = base + at;
        literal &= within;
        u32 tokens_here = literal | taken;
        if (tokens_here >> lane & 1) {
            u32 token;
            if (taken >> lane & 1) {
                u32 less1 = (match >> 16) - 1, bits_l, bits_d;
                token = IS_MATCH | ((length - 3) << 16) | less1;
                atomicAdd(&coder->literals[length_symbol(length - 3, &bits_l)], 1u);
                atomicAdd(&coder->distances[distance_symbol(less1, &bits_d)], 1u);
                beside += bits_l + bits_d;
            } else {
                token = bytes[here];
                atomicAdd(&coder->literals[token], 1u);
            }
            tokens[made + __popc(tokens_here & ((1u << lane) - 1))] = token;
        }
        made += __popc(tokens_here);
    }
    *extra = sum_of(beside);
    __syncwarp();
    return made;
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

// Bytes of a stored block (RFC 1951, 3.2.4).
__device__ static u32 store(const u8* bytes, u32 count, bool last, u8* out) {
    u32 lane = lane_of();
    if (lane == 0) {
        out[0] = last ? 1 : 0;
        out[1] = (u8)count;
        out[2] = (u8)(count >> 8);
        out[3] = (u8)~count;
        out[4] = (u8)(~count >> 8);
    }
    for (u32 at = lane; at < count; at += 32) out[5 + at] = bytes[at];
    return count + 5;
}

// Bits of a block; `sizes` becomes the bytes of each.
extern "C" __global__ void __launch_bounds__(32 * CODE_WARPS)
terse_code(const u8* input, const Block* blocks, const u32* matches, u32* tokens, u8* coded, u32* sizes, u32 count) {
    SHARED_ARRAY(Coder, coders, CODE_WARPS);
    const u8 order[LENGTHS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    u32 lane = lane_of(), warp = threadIdx.x / 32, number = blockIdx.x * CODE_WARPS + warp;
    if (number >= count) return;
    Coder* coder = &coders[warp];
    Block block = blocks[number];
    const u8* bytes = input + block.source;
    tokens += (u64)number * TOKEN_ROOM;
    coded += (u64)number * CODED_ROOM;
    bool last = block.flags & LAST_BLOCK;
    for (u32 at = lane; at < 288; at += 32) coder->literals[at] = 0;
    coder->distances[lane] = 0;
    coder->lengths[lane] = 0;
    coder->bits[lane] = 0;
    coder->bits[lane + 32] = 0;
    __syncwarp();
    if (lane == 0) coder->literals[END_OF_BLOCK] = 1;
    u32 extra;
    u32 made = choose(coder, bytes, block.bytes, matches + (u64)number * BLOCK_BYTES, tokens, &extra);
    // Frequencies are needed for the size; the code takes their place.
    u32 often[9], often_distance = coder->distances[lane];
    for (u32 round = 0; round < 9; round++) often[round] = coder->literals[round * 32 + lane];
    make_code(coder, coder->literals, LITERALS, 15);
    make_code(coder, coder->distances, DISTANCES, 15);
    u32 size = often_distance * (coder->distances[lane] >> 16);
    for (u32 round = 0; round < 9; round++) size += often[round] * (coder->literals[round * 32 + lane] >> 16);
    u32 literals = 257, distances = 1;
    for (u32 round = 8; round < 9; round++) {
        u32 used = __ballot_sync(ALL, coder->literals[round * 32 + lane] != 0);
        if (used >> 1) literals = round * 32 + 32 - __clz((int)used);
    }
    u32 used_distances = __ballot_sync(ALL, coder->distances[lane] != 0);
    if (used_distances) distances = 32 - __clz((int)used_distances);
    for (u32 at = lane; at < literals + distances; at += 32) {
        coder->told[at] = (u8)((at < literals ? coder->literals[at] : coder->distances[at - literals]) >> 16);
    }
    __syncwarp();
    u32 runs = make_runs(coder, literals + distances);
    make_code(coder, coder->lengths, LENGTHS, 7);
    for (u32 at = lane; at < runs; at += 32) {
        u32 symbol = coder->runs[at] & 255;
        size += (coder->lengths[symbol] >> 16) + run_bits(symbol);
    }
    size = sum_of(size) + extra;
    u32 ordered = __ballot_sync(ALL, lane < LENGTHS && coder->lengths[order[lane < LENGTHS ? lane : 0]] != 0);
    u32 lengths = 32 - __clz((int)ordered);
    if (lengths < 4) lengths = 4;
    size += 17 + 3 * lengths;
    u32 end_bytes = last ? 0 : 5;
    if ((size + 7) / 8 + end_bytes >= block.bytes + 5) {
        u32 stored = store(bytes, block.bytes, last, coded);
        if (lane == 0) sizes[number] = stored;
        return;
    }
    Writer writer = {coder->bits, (u32*)coded, 0, 0};
    u64 bits = (last ? 1u : 0u) | (2u << 1) | ((literals - 257) << 3) | ((distances - 1) << 8) | ((lengths - 4) << 13);
    put(&writer, bits, lane == 0 ? 17 : 0);
    put(&writer, lane < lengths ? coder->lengths[order[lane < LENGTHS ? lane : 0]] >> 16 : 0, lane < lengths ? 3 : 0);
    for (u32 base = 0; base < runs; base += 32) {
        u32 at = base + lane, run = at < runs ? coder->runs[at] : 0, code = at < runs ? coder->lengths[run & 255] : 0;
        put(&writer, (code & 0xffff) | ((run >> 8) << (code >> 16)), at < runs ? (code >> 16) + run_bits(run & 255) : 0);
    }
    u32 coming = lane < made ? tokens[lane] : 0;
    for (u32 base = 0; base < made; base += 32) {
        u32 token = coming;
        bool there = base + lane < made;
        coming = base + 32 + lane < made ? tokens[base + 32 + lane] : 0;
        u32 bits_l = 0, bits_d = 0, less3 = (token >> 16) & 255, less1 = token & 0x7fff;
        bool is_match = token & IS_MATCH;
        u32 code = coder->literals[is_match ? length_symbol(less3, &bits_l) : token & 255];
        u64 value = code & 0xffff;
        u32 width = code >> 16;
        if (is_match) {
            u32 far = coder->distances[distance_symbol(less1, &bits_d)];
            value |= (u64)(less3 == 255 ? 0 : less3 & ((1u << bits_l) - 1)) << width;
            width += bits_l;
            value |= (u64)(far & 0xffff) << width;
            width += far >> 16;
            value |= (u64)(less1 & ((1u << bits_d) - 1)) << width;
            width += bits_d;
        }
        put(&writer, value, there ? width : 0);
    }
    u32 end_code = coder->literals[END_OF_BLOCK];
    u32 end_bits = end_code >> 16;
    put(&writer, end_code & 0xffff, lane == 0 ? end_bits : 0);
    if (!last) {
        // An empty stored block: three bits of zero, zeros up to a byte, then 00 00 ff ff.
        u32 pad = (8 - ((writer.filled + 3) & 7)) & 7;
        put(&writer, lane == 0 ? 0 : 0xffff0000u, lane == 0 ? 3 + pad : lane == 1 ? 32 : 0);
    }
    u32 total = writer.written * 4 + (writer.filled + 7) / 8;
    if (lane == 0) {
        if (writer.filled) writer.out[writer.written] = coder->bits[0];
        sizes[number] = total;
    }
}

// ---- terse_gather

extern "C" __global__ void __launch_bounds__(256)
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
