//! Huffman codes with a longest length (RFC 1951 section 3.2.2).
//!
//! Symbols are sorted by how often they occur, and the tree is made in the sorted array itself (Moffat and Katajainen, "In-place
//! calculation of minimum-redundancy codes", 1995): a node's place first holds its weight, then its parent, then its depth. Codes that
//! come out too long are cut to the limit, and shorter ones made longer until Kraft's sum is 1 again; at limits of 14 and 15 that
//! happens to few bits in a million, so nothing better is needed.

/// The longest code that any limit allows.
pub(crate) const MAX_LENGTH: usize = 15;

/// Gives each symbol that occurs the length of its code, at most `limit`, and each other symbol 0.
///
/// A tree of fewer than two symbols gets a second one, of length 1 too: some decoders refuse an incomplete code.
pub(crate) fn lengths<const N: usize>(counts: &[u32; N], limit: usize, lengths: &mut [u8; N]) {
    const { assert!(N <= 288) };
    *lengths = [0; N];
    // The count above, the symbol below: sorting them sorts by count, and ties by symbol.
    let mut sorted = [0u64; 288];
    let mut used = 0;
    for (symbol, count) in counts.iter().enumerate() {
        // Nobody can guess which occur, so that is no branch: another takes the place of one that does not.
        sorted[used] = u64::from(*count) << 16 | symbol as u64;
        used += usize::from(*count != 0);
    }
    let sorted = &mut sorted[..used];
    if sorted.len() < 2 {
        let only = sorted.first().map_or(0, |entry| (entry & 0xffff) as usize);
        lengths[only] = 1;
        lengths[usize::from(only == 0)] = 1;
        return;
    }
    sorted.sort_unstable();
    let mut nodes = [0u32; 288];
    let nodes = &mut nodes[..sorted.len()];
    for (node, entry) in nodes.iter_mut().zip(sorted.iter()) {
        *node = (entry >> 16) as u32;
    }
    join(nodes);
    let of_length = count_lengths(nodes, limit);
    // The rarest symbols come first, with the longest codes.
    let mut rarest = sorted.iter();
    for length in (1..=limit).rev() {
        for entry in rarest.by_ref().take(usize::from(of_length[length])) {
            lengths[(entry & 0xffff) as usize] = length as u8;
        }
    }
}

/// Weights, ascending, become each inner node's depth; the last place is left over.
fn join(nodes: &mut [u32]) {
    let count = nodes.len();
    // The lightest two of the leaves left over and the inner nodes without a parent become a node, again and again.
    let (mut leaf, mut root) = (0, 0);
    for next in 0..count - 1 {
        let mut weight = 0;
        for _ in 0..2 {
            if leaf >= count || (root < next && nodes[root] < nodes[leaf]) {
                weight += nodes[root];
                nodes[root] = next as u32;
                root += 1;
            } else {
                weight += nodes[leaf];
                leaf += 1;
            }
        }
        nodes[next] = weight;
    }
    // From the root down.
    nodes[count - 2] = 0;
    for node in (0..count - 2).rev() {
        nodes[node] = nodes[nodes[node] as usize] + 1;
    }
}

/// Number of codes of each length, given the inner nodes' depths, which fall from first to last.
fn count_lengths(nodes: &[u32], limit: usize) -> [u16; MAX_LENGTH + 1] {
    let mut of_length = [0u16; MAX_LENGTH + 1];
    let (mut inner, mut leaves_over) = (nodes[..nodes.len() - 1].iter().rev().peekable(), 0u32);
    let mut places = 1u32;
    let mut depth = 0u32;
    // Places at a depth are twice the inner nodes above; those that are no inner node are leaves.
    while places > 0 {
        let mut here = 0;
        while inner.next_if(|node| **node == depth).is_some() {
            here += 1;
        }
        let leaves = places - here;
        if depth as usize <= limit {
            of_length[depth as usize] += leaves as u16;
        } else {
            of_length[limit] += leaves as u16;
            leaves_over += leaves;
        }
        places = 2 * here;
        depth += 1;
    }
    if leaves_over > 0 {
        cut(&mut of_length, limit);
    }
    of_length
}

/// Makes codes longer until Kraft's sum is 1 again.
fn cut(of_length: &mut [u16; MAX_LENGTH + 1], limit: usize) {
    // In units of the longest code.
    let mut sum: u32 = (1..=limit).map(|length| u32::from(of_length[length]) << (limit - length)).sum();
    while sum > 1 << limit {
        // The longest code below the limit gives its place to itself and one of those at the limit, one bit longer.
        let length = (1..limit).rev().find(|length| of_length[*length] > 0).unwrap_or(1);
        of_length[length] -= 1;
        of_length[length + 1] += 2;
        of_length[limit] -= 1;
        sum -= 1;
    }
}

/// The codes of these lengths, the first bit lowest; in the order of the symbols among those of one length. To be called in a work.
#[inline(always)]
pub(crate) fn codes<const N: usize>(lengths: &[u8; N]) -> [u16; N] {
    let next = first_codes(lengths);
    // Symbols without a length take their turns in places that mean nothing: each would wait for the one before.
    let mut places = [0u16; 2 * PLACES];
    places[..PLACES].copy_from_slice(&next);
    let mut codes = [0; N];
    for (at, (code, length)) in codes.iter_mut().zip(lengths).enumerate() {
        let place = if *length == 0 { PLACES + at % PLACES } else { usize::from(*length) % PLACES };
        *code = places[place];
        places[place] = places[place].wrapping_add(1);
    }
    // Many at once: one without a length gets zero.
    for (code, length) in codes.iter_mut().zip(lengths) {
        *code = (u32::from(code.reverse_bits()) >> (16 - u32::from(*length))) as u16;
    }
    codes
}

/// Lengths, with none at all.
const PLACES: usize = MAX_LENGTH + 1;

/// The first code of each length.
#[inline(always)]
fn first_codes<const N: usize>(lengths: &[u8; N]) -> [u16; PLACES] {
    // A count that follows another of its kind would wait for it.
    let mut counts = [[0u16; PLACES]; 4];
    let (fours, few) = lengths.as_chunks::<4>();
    for four in fours {
        counts.iter_mut().zip(four).for_each(|(counts, length)| counts[usize::from(*length) % PLACES] += 1);
    }
    few.iter().for_each(|length| counts[0][usize::from(*length) % PLACES] += 1);
    let mut first = [0; PLACES];
    let mut next = 0u16;
    for length in 1..PLACES {
        // Twice the end of the codes that are shorter by one.
        next = next.wrapping_mul(2);
        first[length] = next;
        next = next.wrapping_add(counts.iter().map(|counts| counts[length]).sum());
    }
    first
}
