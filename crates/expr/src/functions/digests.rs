//! Digests and hexadecimal forms of bytes.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use arrow_array::types::Int64Type;

use super::build::texts;
use super::{BIGINT, BINARY, Function, Slot, function};

const TEXT: Slot = Slot::Text;

/// The group.
pub(super) const FUNCTIONS: &[Function] = &[
    function("crc32", &[BINARY], BIGINT, |input, _| {
        let bytes = input.bytes(0);
        Ok(Arc::new(input.map::<Int64Type>(|row| i64::from(crc32(bytes.get(row))))))
    }),
    function("md5", &[BINARY], TEXT, |input, _| {
        let bytes = input.bytes(0);
        texts(input, |row, out| push_hex(&md5(bytes.get(row)), false, out))
    }),
    function("sha256", &[BINARY], TEXT, |input, _| {
        let bytes = input.bytes(0);
        texts(input, |row, out| push_hex(&sha256(bytes.get(row)), false, out))
    }),
    function("hex", &[BINARY], TEXT, |input, _| {
        let bytes = input.bytes(0);
        texts(input, |row, out| push_hex(bytes.get(row), true, out))
    }),
    function("hex", &[BIGINT], TEXT, |input, _| {
        let number = input.operand::<Int64Type>(0);
        texts(input, |row, out| {
            let _ = write!(out, "{:X}", number.get(row)); // writing to a string cannot fail
        })
    }),
    function("bin", &[BIGINT], TEXT, |input, _| {
        let number = input.operand::<Int64Type>(0);
        texts(input, |row, out| {
            let _ = write!(out, "{:b}", number.get(row));
        })
    }),
];

fn push_hex(bytes: &[u8], upper: bool, out: &mut String) {
    let digits = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    for byte in bytes {
        out.push(char::from(digits[usize::from(byte >> 4)]));
        out.push(char::from(digits[usize::from(byte & 15)]));
    }
}

/// The check sum of ISO 3309.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { (value >> 1) ^ 0xEDB8_8320 } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |sum, &byte| TABLE[usize::from(sum as u8 ^ byte)] ^ (sum >> 8))
}

/// The message in blocks of 64 bytes: filled up by a one bit, zeros, and the number of bits.
fn blocks(bytes: &[u8], bits: [u8; 8]) -> Vec<[u8; 64]> {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend_from_slice(&bits);
    padded.as_chunks::<64>().0.to_vec()
}

/// RFC 1321.
fn md5(bytes: &[u8]) -> [u8; 16] {
    const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    static CONSTANTS: LazyLock<[u32; 64]> = LazyLock::new(|| {
        std::array::from_fn(|index| (((index + 1) as f64).sin().abs() * 4_294_967_296.0).floor() as u32)
    });
    let constants = &*CONSTANTS;
    let mut state: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in blocks(bytes, (bytes.len() as u64 * 8).to_le_bytes()) {
        let word = |index: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| block[4 * index + byte]));
        let [mut a, mut b, mut c, mut d] = state;
        for round in 0..64 {
            let (mixed, index) = match round / 16 {
                0 => ((b & c) | (!b & d), round),
                1 => ((d & b) | (!d & c), (5 * round + 1) % 16),
                2 => (b ^ c ^ d, (3 * round + 5) % 16),
                _ => (c ^ (b | !d), 7 * round % 16),
            };
            let sum = a.wrapping_add(mixed).wrapping_add(constants[round]).wrapping_add(word(index));
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(SHIFTS[round / 16][round % 4]));
        }
        for (old, new) in state.iter_mut().zip([a, b, c, d]) {
            *old = old.wrapping_add(new);
        }
    }
    let mut digest = [0; 16];
    digest.as_chunks_mut::<4>().0.iter_mut().zip(state).for_each(|(chunk, word)| *chunk = word.to_le_bytes());
    digest
}

/// FIPS 180-4.
fn sha256(bytes: &[u8]) -> [u8; 32] {
    static ROOTS: LazyLock<([u32; 64], [u32; 8])> = LazyLock::new(|| {
        let primes: Vec<u64> = (2..312).filter(|n| (2..*n).all(|d| n % d != 0)).collect();
        let cubes = std::array::from_fn(|index| root_fraction(primes[index], true));
        (cubes, std::array::from_fn(|index| root_fraction(primes[index], false)))
    });
    let (constants, mut state) = *ROOTS;
    for block in blocks(bytes, (bytes.len() as u64 * 8).to_be_bytes()) {
        let mut words = [0_u32; 64];
        for index in 0..64 {
            words[index] = if index < 16 {
                u32::from_be_bytes([0, 1, 2, 3].map(|byte| block[4 * index + byte]))
            } else {
                let (old, new) = (words[index - 15], words[index - 2]);
                let old = old.rotate_right(7) ^ old.rotate_right(18) ^ (old >> 3);
                let new = new.rotate_right(17) ^ new.rotate_right(19) ^ (new >> 10);
                words[index - 16].wrapping_add(old).wrapping_add(words[index - 7]).wrapping_add(new)
            };
        }
        let mut s = state;
        for round in 0..64 {
            let mixed = s[4].rotate_right(6) ^ s[4].rotate_right(11) ^ s[4].rotate_right(25);
            let choice = (s[4] & s[5]) ^ (!s[4] & s[6]);
            let one = s[7].wrapping_add(mixed).wrapping_add(choice);
            let one = one.wrapping_add(constants[round]).wrapping_add(words[round]);
            let mixed = s[0].rotate_right(2) ^ s[0].rotate_right(13) ^ s[0].rotate_right(22);
            let two = mixed.wrapping_add((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            s = [one.wrapping_add(two), s[0], s[1], s[2], s[3].wrapping_add(one), s[4], s[5], s[6]];
        }
        for (old, new) in state.iter_mut().zip(s) {
            *old = old.wrapping_add(new);
        }
    }
    let mut digest = [0; 32];
    digest.as_chunks_mut::<4>().0.iter_mut().zip(state).for_each(|(chunk, word)| *chunk = word.to_be_bytes());
    digest
}

/// The first 32 bits of the fraction of the square or cube root of a number.
fn root_fraction(number: u64, cube: bool) -> u32 {
    let wanted = u128::from(number) << if cube { 96 } else { 64 };
    let (mut low, mut high) = (0_u128, 1_u128 << 40);
    while high - low > 1 {
        let middle = u128::midpoint(low, high);
        let power = middle * middle * if cube { middle } else { 1 };
        if power <= wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    low as u32
}
