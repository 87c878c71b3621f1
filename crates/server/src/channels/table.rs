//! Owns: finding a channel by its number with two loads. Does not own: what a channel is.
//!
//! A page holds the places of 256 numbers and is there only while one of them is used: 4 KiB for a connection and for
//! each page; a client that uses its numbers from 0 on pays for as many as it uses.

pub(super) const PAGE: usize = 256;

/// Places by number.
pub(super) struct Table<T> {
    pages: Vec<Option<Box<Page<T>>>>,
    /// Pages that are there.
    count: usize,
}

/// The places of neighbouring numbers.
struct Page<T> {
    places: [Option<T>; PAGE],
    /// How many are taken.
    used: u16,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { pages: Vec::new(), count: 0 }
    }
}

impl<T> Table<T> {
    #[inline]
    pub(super) fn get(&self, number: u16) -> Option<&T> {
        let page = self.pages.get(usize::from(number) / PAGE)?.as_ref()?;
        page.places[usize::from(number) % PAGE].as_ref()
    }
    #[inline]
    pub(super) fn get_mut(&mut self, number: u16) -> Option<&mut T> {
        let page = self.pages.get_mut(usize::from(number) / PAGE)?.as_mut()?;
        page.places[usize::from(number) % PAGE].as_mut()
    }
    pub(super) fn put(&mut self, number: u16, value: T) {
        let at = usize::from(number) / PAGE;
        if self.pages.len() <= at {
            self.pages.resize_with(at + 1, || None);
        }
        let page = self.pages[at].get_or_insert_with(|| {
            self.count += 1;
            Box::new(Page { places: std::array::from_fn(|_| None), used: 0 })
        });
        let before = page.places[usize::from(number) % PAGE].replace(value);
        page.used += u16::from(before.is_none());
    }
    pub(super) fn take(&mut self, number: u16) -> Option<T> {
        let place = self.pages.get_mut(usize::from(number) / PAGE)?;
        let page = place.as_mut()?;
        let value = page.places[usize::from(number) % PAGE].take()?;
        page.used -= 1;
        if page.used == 0 {
            *place = None;
            self.count -= 1;
        }
        Some(value)
    }
    /// Memory that the places take.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.count * size_of::<Page<T>>()
    }
    /// All places, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        (0..self.pages.len()).filter_map(move |page| self.page(page)).flatten()
    }
    /// The values of a page, with their numbers; nothing behind the last one.
    pub(super) fn page(&self, page: usize) -> Option<impl Iterator<Item = (u16, &T)>> {
        let places = self.pages.get(page)?.iter().flat_map(|places| places.places.iter().enumerate());
        Some(places.filter_map(move |(at, place)| Some(((page * PAGE + at) as u16, place.as_ref()?))))
    }
    /// Takes out the values of the last page, with their numbers; nothing when there is none.
    pub(super) fn take_page(&mut self) -> Option<impl Iterator<Item = (u16, T)> + use<T>> {
        let places = self.pages.pop()?;
        self.count -= usize::from(places.is_some());
        let first = self.pages.len() * PAGE;
        let places = places.into_iter().flat_map(|places| places.places.into_iter().enumerate());
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

    #[test]
    fn a_page_is_there_while_one_of_its_numbers_is_used() {
        let mut table = Table::default();
        for number in (0..=65_535).step_by(PAGE) {
            table.put(number, ());
            table.put(number, ());
            table.put(number + 1, ());
        }
        assert_eq!(table.memory_bytes(), PAGE * size_of::<Page<()>>());
        for number in (0..=65_535).step_by(PAGE).skip(1) {
            assert_eq!(
                [table.take(number), table.take(number + 1), table.take(number)],
                [Some(()), Some(()), None]
            );
        }
        assert_eq!(table.memory_bytes(), size_of::<Page<()>>());
        table.take_page();
        assert_eq!(table.memory_bytes(), size_of::<Page<()>>(), "the last page is not there");
    }
}
