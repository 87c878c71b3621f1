//! Owns: the buffer of a compact form: how many elements there are, and they, one behind the other; a mark that its
//! owner may set. Does not own: what an element is (`crate::packed`, `crate::sorted_set::compact`), what the mark says
//! (`crate::hash_object`).

use std::marker::PhantomData;

/// Bytes of the head, a `u32` in little-endian: the count, and above it the mark.
pub(crate) const HEAD_BYTES: usize = 4;
/// Far above what any limit lets a count be.
const MARK: u32 = 1 << 31;

#[inline]
fn head(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |head| u32::from_le_bytes(*head))
}
/// The count of a buffer.
#[inline]
pub(crate) fn count(bytes: &[u8]) -> usize {
    (head(bytes) & !MARK) as usize
}
/// Whether a buffer is marked: never an empty one.
#[inline]
pub(crate) fn is_marked(bytes: &[u8]) -> bool {
    head(bytes) & MARK != 0
}

/// One allocation, which grows by what is needed and an eighth, and is empty when there are no elements; of this form.
#[derive(Clone, Debug)]
pub(crate) struct Counted<F>(pub(crate) Vec<u8>, PhantomData<F>);

impl<F> Default for Counted<F> {
    fn default() -> Self {
        Self::from_bytes(Vec::new())
    }
}

impl<F> Counted<F> {
    /// Takes over the buffer of another.
    pub(crate) const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes, PhantomData)
    }
    /// The buffer.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
    /// The buffer, to be read.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
    /// Bytes allocated.
    pub(crate) const fn capacity(&self) -> usize {
        self.0.capacity()
    }
    pub(crate) fn add_count(&mut self, by: i64) {
        let count = count(&self.0) as i64 + by;
        let mark = head(&self.0) & MARK;
        if let Some(head) = self.0.first_chunk_mut::<HEAD_BYTES>() {
            *head = (u32::try_from(count).unwrap_or(0) | mark).to_le_bytes();
        }
        if count <= 0 {
            self.0.clear();
        }
    }
    /// Marks a buffer that is not empty. It stays so until it is.
    pub(crate) fn mark(&mut self) {
        let marked = head(&self.0) | MARK;
        if let Some(head) = self.0.first_chunk_mut::<HEAD_BYTES>() {
            *head = marked.to_le_bytes();
        }
    }
    pub(crate) fn reserve(&mut self, more: usize) {
        if self.0.len() + more > self.0.capacity() {
            self.0.reserve_exact(more + self.0.len() / 8);
        }
    }
    /// Makes room of `more` bytes at `at`.
    pub(crate) fn open(&mut self, at: usize, more: usize) {
        self.reserve(more);
        let end = self.0.len();
        self.0.resize(end + more, 0);
        self.0.copy_within(at..end, at + more);
    }
    /// Makes room of an element's bytes in a buffer that may be empty.
    pub(crate) fn begin(&mut self, bytes: usize) {
        if self.0.is_empty() {
            self.reserve(HEAD_BYTES + bytes);
            self.0.extend_from_slice(&[0; HEAD_BYTES]);
        }
        self.reserve(bytes);
    }
    /// Gives memory back where more than half of it is not used.
    pub(crate) fn give_back(&mut self) {
        if self.0.capacity() > 64 && self.0.capacity() > 2 * self.0.len() {
            self.0.shrink_to_fit();
        }
    }
    /// Gives all back that is not used.
    pub(crate) fn fit(&mut self) {
        self.0.shrink_to_fit();
    }
    /// Removes up to `count` elements from a byte offset on; `behind` says where the one at an offset ends.
    pub(crate) fn take_out(
        &mut self,
        at: usize,
        count: usize,
        behind: impl Fn(&[u8], usize) -> Option<usize>,
    ) {
        let mut end = at;
        let mut gone = 0;
        while gone < count
            && let Some(next) = behind(&self.0, end)
        {
            end = next;
            gone += 1;
        }
        self.0.drain(at..end);
        self.add_count(-(gone as i64));
        self.give_back();
    }
}
