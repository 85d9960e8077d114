//! Hashes that are integers (HAProxy manual §7.3.1). They are the same numbers that HAProxy gives, so that
//! a value spreads alike on both; none of them is fit for secrets.

use crc::{CRC_32_ISCSI, CRC_32_ISO_HDLC, Crc, Table};
use xxhash_rust::{xxh3::xxh3_64_with_seed, xxh32::xxh32, xxh64::xxh64};

use super::{Args, ConverterRow, Sample, TEXT, Type, bytes};
use crate::rule::args::{ArgKind, ArgSpec};

static CRC32: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);
static CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// The argument is the seed, or whether the hash is stirred once more.
const HASH: ConverterRow =
    ConverterRow { args: &[ArgSpec::may(ArgKind::Int)], input: Type::Bin, output: Type::Int, ..TEXT };

pub(super) const ROWS: &[ConverterRow] = &[
    ConverterRow {
        names: &["crc32"],
        apply: |args, sample, _| Some(stirred(args, CRC32.checksum(bytes(sample)?))),
        ..HASH
    },
    ConverterRow {
        names: &["crc32c"],
        apply: |args, sample, _| Some(stirred(args, CRC32C.checksum(bytes(sample)?))),
        ..HASH
    },
    ConverterRow { names: &["djb2"], apply: |args, sample, _| Some(stirred(args, djb2(bytes(sample)?))), ..HASH },
    ConverterRow { names: &["sdbm"], apply: |args, sample, _| Some(stirred(args, sdbm(bytes(sample)?))), ..HASH },
    ConverterRow { names: &["wt6"], apply: |args, sample, _| Some(stirred(args, wt6(bytes(sample)?))), ..HASH },
    ConverterRow {
        names: &["xxh32"],
        apply: |args, sample, _| {
            let [_, _, _, _, low @ ..] = seed(args).to_be_bytes();
            Some(Sample::Int(xxh32(bytes(sample)?, u32::from_be_bytes(low)).into()))
        },
        ..HASH
    },
    ConverterRow {
        names: &["xxh64"],
        apply: |args, sample, _| Some(Sample::Int(xxh64(bytes(sample)?, seed(args)).cast_signed())),
        ..HASH
    },
    ConverterRow {
        names: &["xxh3"],
        apply: |args, sample, _| Some(Sample::Int(xxh3_64_with_seed(bytes(sample)?, seed(args)).cast_signed())),
        ..HASH
    },
];

fn seed(args: &Args) -> u64 {
    args.int(0).unwrap_or_default().cast_unsigned()
}

fn stirred<'s>(args: &Args, hash: u32) -> Sample<'s> {
    let stir = args.int(0).is_some_and(|flag| flag != 0);
    Sample::Int((if stir { avalanche(hash) } else { hash }).into())
}

/// Bob Jenkins' integer hash with full avalanche, spread by a prime near 3/4 of the range.
pub(in crate::rule) const fn avalanche(hash: u32) -> u32 {
    let mut a = hash;
    a = a.wrapping_add(0x7ed5_5d16).wrapping_add(a << 12);
    a = (a ^ 0xc761_c23c) ^ (a >> 19);
    a = a.wrapping_add(0x1656_67b1).wrapping_add(a << 5);
    a = a.wrapping_add(0xd3a2_646c) ^ (a << 9);
    a = a.wrapping_add(0xfd70_46c5).wrapping_add(a << 3);
    a = (a ^ 0xb55a_4f09) ^ (a >> 16);
    a.wrapping_mul(3_221_225_473)
}

fn djb2(text: &[u8]) -> u32 {
    text.iter().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add((*byte).into()))
}

fn sdbm(text: &[u8]) -> u32 {
    text.iter().fold(0, |hash: u32, byte| hash.wrapping_mul(65_599).wrapping_add((*byte).into()))
}

/// Two halves that turn by amounts which depend on the text.
fn wt6(text: &[u8]) -> u32 {
    let (mut left, mut right): (u32, u32) = (0xa53c_965a, 0x5ca6_953a);
    let (mut turn_left, mut turn_right) = (6, 18);
    for byte in text {
        left = !(left ^ u32::from(*byte));
        right = !right.wrapping_add((*byte).into());
        let turned = right.rotate_left(turn_left);
        right = left.rotate_left(turn_right);
        left = turned;
        let mixed = ((left >> 16) ^ right) & 0xffff;
        turn_left = mixed & 31;
        turn_right = mixed >> 11;
    }
    left ^ right
}
