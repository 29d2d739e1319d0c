//! Structures and sizes of the kernels: `kernel.cu` has the same.

/// Kernels, in the driver's assembly. `scripts/kernels` makes it of `kernel.cu`.
pub(super) const KERNELS: &str = include_str!("kernel.ptx");

/// Bytes of a deflate block.
pub(super) const BLOCK_BYTES: usize = 32_768;
/// Bytes before a block that its matches may reach into.
pub(super) const HISTORY: usize = 14_336;
/// Bytes for the coded form of a block.
pub(super) const CODED_ROOM: usize = BLOCK_BYTES + 512;
/// Threads of a group of `terse_match`, and the bytes of its memory.
pub(super) const MATCH_THREADS: u32 = 1024 / 2 + 32;
pub(super) const MATCH_SHARED: u32 = (HISTORY + BLOCK_BYTES + 64 + 8 * 4096 + 20 * 1024) as u32;
/// Threads of a group of `terse_code`.
pub(super) const CODE_THREADS: u32 = 128;
/// Threads of a group of `terse_gather`.
pub(super) const GATHER_THREADS: u32 = 256;
/// Alignment of bodies in the input, in bytes; [`INPUT_SPARE`] bytes after the last may be read.
pub(super) const BODY_ALIGNMENT: usize = 16;
pub(super) const INPUT_SPARE: usize = 64;
/// Result of `terse_gather` for a body that has no room.
pub(super) const NO_ROOM: u32 = u32::MAX;

/// A block, as the kernels read it.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Block {
    /// Offset in the input.
    pub(super) source: u64,
    /// Length, at most [`BLOCK_BYTES`].
    pub(super) bytes: u32,
    /// Bytes of the same body before it, at most [`HISTORY`].
    pub(super) history: u32,
    /// Index of the body in the batch.
    pub(super) body: u32,
    /// [`LAST`], [`ADLER`].
    pub(super) flags: u32,
}

/// Flag of the body's last block.
pub(super) const LAST: u32 = 1;
/// Flag of Adler-32 in place of CRC-32.
pub(super) const ADLER: u32 = 2;

/// A body, as the kernels read it.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Body {
    /// Address of its coded form, as the device sees it.
    pub(super) target: u64,
    /// Its blocks.
    pub(super) first_block: u32,
    pub(super) blocks: u32,
    /// Bytes available for its coded form.
    pub(super) room: u32,
    pub(super) unused: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number after `#define NAME`, where it is one.
    fn defined(name: &str) -> usize {
        let source = include_str!("kernel.cu");
        let line = source.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name}")).parse().unwrap_or_else(|_| panic!("{name}"))
    }

    #[test]
    fn the_kernels_say_the_same() {
        assert_eq!((defined("BLOCK_BYTES"), defined("HISTORY")), (BLOCK_BYTES, HISTORY));
        assert_eq!(defined("SHARE") * defined("MEASURERS"), 1024);
        assert_eq!(defined("MEASURERS") + 32, MATCH_THREADS as usize);
        assert_eq!(1 << defined("TABLE_BITS"), 4096);
        assert_eq!(32 * defined("PARTS"), CODE_THREADS as usize);
        assert_eq!((size_of::<Block>(), size_of::<Body>()), (24, 24));
        const { assert!(MATCH_SHARED <= 99 << 10, "some devices have no more") };
    }

    #[test]
    fn the_assembly_is_made_of_the_kernels_that_are_here() {
        let source = zlib_rs::crc32::crc32(0, include_bytes!("kernel.cu"));
        assert_eq!(KERNELS.lines().next(), Some(&*format!("// kernel.cu {source:08x}")), "scripts/kernels makes it anew");
    }

    #[test]
    fn the_assembly_has_the_kernels_parameters() {
        // A missing parameter would be read from memory outside of the array.
        for (kernel, parameters) in [("terse_match", 4), ("terse_code", 5), ("terse_gather", 5)] {
            assert!(KERNELS.contains(&format!("{kernel}_param_{}", parameters - 1)), "{kernel}");
            assert!(!KERNELS.contains(&format!("{kernel}_param_{parameters}")), "{kernel}");
        }
    }
}
