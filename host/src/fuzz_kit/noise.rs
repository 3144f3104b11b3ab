//! Inputs without end, the same in every run: pieces of known inputs, bent and joined, so that many get past the first
//! question that a target asks.

/// Bytes that mean something to one target or another.
const DELIMITERS: &[u8] = b"\0\t\n |/.-019\xff";

/// A source of numbers and of inputs. Splitmix64: small, and good enough to bend inputs with.
pub(crate) struct Noise(u64);

impl Noise {
    /// The source that belongs to `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound.max(1) as u64)).unwrap_or(0)
    }

    fn piece<'a>(&mut self, of: &'a [u8]) -> &'a [u8] {
        let from = self.below(of.len() + 1);
        let len = self.below(of.len() - from + 1);
        &of[from..from + len]
    }

    /// An input: one of `known`, changed in up to eight places.
    pub(crate) fn input(&mut self, known: &[Vec<u8>]) -> Vec<u8> {
        let mut input = known[self.below(known.len())].clone();
        for _ in 0..self.below(9) {
            let at = self.below(input.len() + 1);
            match self.below(6) {
                0 => input.insert(at, self.next().to_le_bytes()[0]),
                1 if at < input.len() => input[at] ^= 1 << self.below(8),
                2 => {
                    let end = at + self.below(input.len() - at + 1);
                    input.drain(at..end);
                }
                3 => {
                    let other = &known[self.below(known.len())];
                    let piece = self.piece(other);
                    input.splice(at..at, piece.iter().copied());
                }
                // What a delimiter or a digit does is of more interest than what most bytes do.
                4 if at < input.len() => input[at] = DELIMITERS[self.below(DELIMITERS.len())],
                _ => {
                    let piece = self.piece(&input).to_vec();
                    input.splice(at..at, piece);
                }
            }
            input.truncate(64 << 10);
        }
        input
    }
}
