//! Owns: finding a channel by its number with two loads. Does not own: what a channel is.
//!
//! A page holds the places of 256 numbers and is there only if one of them is used: 2 KiB for a connection and for each
//! page; a client that uses its numbers from 0 on pays for as many as it uses.

const PAGE: usize = 256;

/// Places by number.
pub(super) struct Table<T> {
    pages: Vec<Option<Box<[Option<T>; PAGE]>>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { pages: Vec::new() }
    }
}

impl<T> Table<T> {
    #[inline]
    pub(super) fn get(&self, number: u16) -> Option<&T> {
        let page = self.pages.get(usize::from(number) / PAGE)?.as_ref()?;
        page[usize::from(number) % PAGE].as_ref()
    }
    #[inline]
    pub(super) fn get_mut(&mut self, number: u16) -> Option<&mut T> {
        let page = self.pages.get_mut(usize::from(number) / PAGE)?.as_mut()?;
        page[usize::from(number) % PAGE].as_mut()
    }
    pub(super) fn put(&mut self, number: u16, value: T) {
        let at = usize::from(number) / PAGE;
        if self.pages.len() <= at {
            self.pages.resize_with(at + 1, || None);
        }
        let page = self.pages[at].get_or_insert_with(|| Box::new(std::array::from_fn(|_| None)));
        page[usize::from(number) % PAGE] = Some(value);
    }
    pub(super) fn take(&mut self, number: u16) -> Option<T> {
        let page = self.pages.get_mut(usize::from(number) / PAGE)?.as_mut()?;
        page[usize::from(number) % PAGE].take()
    }
    /// All places, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        self.pages.iter().enumerate().flat_map(|(page, places)| {
            places.iter().flat_map(move |places| {
                let number = move |at: usize| (page * PAGE + at) as u16;
                places.iter().enumerate().filter_map(move |(at, place)| Some((number(at), place.as_ref()?)))
            })
        })
    }
    /// The values of a page; nothing behind the last one.
    pub(super) fn page(&self, page: usize) -> Option<impl Iterator<Item = &T>> {
        Some(self.pages.get(page)?.iter().flat_map(|places| places.iter().flatten()))
    }
    /// Takes out the values of the last page, with their numbers; nothing when there is none.
    pub(super) fn take_page(&mut self) -> Option<impl Iterator<Item = (u16, T)> + use<T>> {
        let places = self.pages.pop()?;
        let first = self.pages.len() * PAGE;
        let places = places.into_iter().flat_map(|places| places.into_iter().enumerate());
        Some(places.filter_map(move |(at, place)| Some(((first + at) as u16, place?))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_places() {
        let mut table = Table::default();
        for number in [0, 1, 255, 256, 65_535] {
            assert!(table.get(number).is_none());
            table.put(number, u32::from(number) + 7);
        }
        *table.get_mut(256).unwrap() += 1;
        assert_eq!(table.get(256), Some(&264));
        assert_eq!(table.take(255), Some(262));
        assert_eq!(table.take(255), None);
        let all: Vec<u16> = table.iter().map(|(number, _)| number).collect();
        assert_eq!(all, [0, 1, 256, 65_535]);
        assert_eq!(table.page(0).map(Iterator::count), Some(2));
        assert!(table.page(256).is_none());
        let mut taken = Vec::new();
        while let Some(page) = table.take_page() {
            taken.extend(page);
        }
        taken.sort_unstable();
        assert_eq!(taken, [(0, 7), (1, 8), (256, 264), (65_535, 65_542)]);
    }
}
