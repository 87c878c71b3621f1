//! Owns: pages that are the same for everybody, as they are and compressed: each is made once and lies in memory once,
//! whoever is being sent it. Does not own: which pages there are (`super::routes`, `super::console`).
//!
//! They are for whoever asks, without credentials: so a request for one costs no more than its head.

use std::sync::{PoisonError, RwLock};

use weft_store::SharedBytes;

use super::gzip;

/// What is shorter is copied, and compressed for nobody.
pub(super) const BYTES_MIN: usize = 1 << 10;

/// A page.
#[derive(Clone)]
struct Page {
    of: &'static [u8],
    plain: SharedBytes,
    /// Where that is shorter.
    zipped: Option<SharedBytes>,
}

/// Those that somebody has asked for: a handful.
static PAGES: RwLock<Vec<Page>> = RwLock::new(Vec::new());

/// A page that the program has in it, and whether it is compressed.
pub(super) fn page(of: &'static [u8], gzip: bool) -> (SharedBytes, bool) {
    let find = |pages: &[Page]| pages.iter().find(|page| std::ptr::eq(page.of, of)).cloned();
    let found = find(&PAGES.read().unwrap_or_else(PoisonError::into_inner));
    let page = found.unwrap_or_else(|| {
        let mut pages = PAGES.write().unwrap_or_else(PoisonError::into_inner);
        find(&pages).unwrap_or_else(|| {
            let zipped = gzip::compressed(of).map(SharedBytes::new);
            let page = Page { of, plain: SharedBytes::new(of.to_vec()), zipped };
            pages.push(page.clone());
            page
        })
    });
    match page.zipped.filter(|_| gzip) {
        Some(zipped) => (zipped, true),
        None => (page.plain, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_made_once() {
        static PAGE: [u8; 4096] = [b'x'; 4096];
        for gzip in [false, true] {
            let (one, is_zipped) = page(&PAGE, gzip);
            let (again, _) = page(&PAGE, gzip);
            assert!(is_zipped == gzip && one.as_slice().as_ptr() == again.as_slice().as_ptr());
        }
        assert_eq!(page(&PAGE, false).0.as_slice(), PAGE);
    }
}
