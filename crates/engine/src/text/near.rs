//! Owns which of several names is meant by one that is misspelt. Does not own any names.

/// The name that is most like a misspelt one, if one is near: half of its letters are right at least. Two letters that
/// have changed places count as one mistake.
#[must_use]
pub fn nearest<'n>(misspelt: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let misspelt = misspelt.to_ascii_lowercase();
    let mistakes_max = (2 + misspelt.len() / 8).min(misspelt.len() / 2);
    let measured = names.into_iter().map(|name| (distance(&misspelt, &name.to_ascii_lowercase()), name));
    measured.filter(|(mistakes, _)| *mistakes <= mistakes_max).min().map(|(_, name)| name)
}

/// Letters to add, remove, change or swap with their neighbour to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut above: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut next = vec![at + 1];
        for (place, same) in other.iter().enumerate() {
            let changed = row[place] + usize::from(same != letter);
            let mut least = changed.min(row[place + 1] + 1).min(next[place] + 1);
            if at > 0 && place > 0 && one[at - 1] == *same && other[place - 1] == *letter {
                least = least.min(above[place - 1] + 1);
            }
            next.push(least);
        }
        above = std::mem::replace(&mut row, next);
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_guessed_and_a_strange_one_is_not() {
        let names = ["bench", "cli", "get", "log", "set", "version"];
        let of = |word| nearest(word, names);
        for (word, meant) in [("gte", "get"), ("BENHC", "bench"), ("benchh", "bench"), ("versoin", "version")]
        {
            assert_eq!(of(word), Some(meant), "{word}");
        }
        for strange in ["", "x", "nosuch", "colour", "lo-g-s"] {
            assert_eq!(of(strange), None, "{strange}");
        }
        assert_eq!(of("lgo"), Some("log"), "a swap is nearer than a letter that is changed");
    }

    #[test]
    fn distances_count_mistakes() {
        for (one, other, mistakes) in
            [("", "abc", 3), ("abc", "abc", 0), ("abc", "acb", 1), ("kitten", "sitting", 3), ("ab", "", 2)]
        {
            assert_eq!(distance(one, other), mistakes, "{one} {other}");
            assert_eq!(distance(other, one), mistakes, "{other} {one}");
        }
    }
}
