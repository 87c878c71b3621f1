//! Owns the tests of sorted sets against a model, across the conversion.

use super::*;
use crate::clock::XorShift;
use crate::dict::tests::Ground;
use std::collections::{BTreeMap, BTreeSet};

type Model = BTreeMap<Vec<u8>, f64>;

fn sorted(model: &Model) -> Vec<(Vec<u8>, f64)> {
    let mut all: Vec<_> = model.iter().map(|(member, score)| (member.clone(), *score)).collect();
    all.sort_by(|one, two| one.1.partial_cmp(&two.1).unwrap().then_with(|| one.0.cmp(&two.0)));
    all
}

fn owned<'a>(elements: impl Iterator<Item = Scored<'a>>) -> Vec<(Vec<u8>, f64)> {
    elements.map(|element| (element.member.to_vec(), element.score)).collect()
}

fn visited(view: SortedSetRef<'_>, ranks: Range<usize>, back: bool) -> Vec<(Vec<u8>, f64)> {
    let mut seen = Vec::new();
    view.visit(ranks, back, |element| seen.push((element.member.to_vec(), element.score)));
    seen
}

fn score(rng: &mut XorShift) -> f64 {
    match rng.below(12) {
        0 => f64::INFINITY,
        1 => f64::NEG_INFINITY,
        2 => -0.0,
        3 => rng.next_u64() as f64 / 1e6,
        4 => f64::from(rng.below(100_000)),
        5 => 0.25 * f64::from(rng.below(10)),
        _ => f64::from(rng.below(20)) - 10.0,
    }
}

fn member(rng: &mut XorShift, kinds: u32) -> Vec<u8> {
    let number = rng.below(kinds);
    if number.is_multiple_of(97) {
        vec![b'x'; 60 + number as usize % 9]
    } else {
        format!("m{number}").into_bytes()
    }
}

fn check(set: &SortedSet, model: &Model, rng: &mut XorShift) {
    let view = set.view();
    if let Repr::Large(large) = &set.0 {
        large.tree.check();
        assert_eq!(large.dict.len(), large.tree.len());
    }
    let all = sorted(model);
    assert_eq!(view.len(), all.len());
    assert_eq!(owned(view.iter(0..usize::MAX)), all);
    let mut backwards = owned(view.iter_back(0..usize::MAX));
    backwards.reverse();
    assert_eq!(backwards, all);
    assert_eq!(visited(view, 0..usize::MAX, false), all);
    let reversed: Vec<_> = all.iter().rev().cloned().collect();
    assert_eq!(visited(view, 0..usize::MAX, true), reversed);
    for _ in 0..5 {
        let start = rng.below(all.len() as u32 + 2) as usize;
        let end = start + rng.below(20) as usize;
        let expected = all[start.min(all.len())..end.min(all.len())].to_vec();
        assert_eq!(owned(view.iter(start..end)), expected);
        assert_eq!(visited(view, start..end, false), expected);
        let mut backwards = owned(view.iter_back(start..end));
        assert_eq!(visited(view, start..end, true), backwards);
        backwards.reverse();
        assert_eq!(backwards, expected);
    }
    let (mut scanned, mut cursor) = (Model::new(), 0);
    loop {
        cursor = view.scan(cursor, 5, |element| {
            scanned.insert(element.member.to_vec(), element.score);
        });
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(scanned, *model);
}

fn check_ranges(set: &SortedSet, model: &Model, rng: &mut XorShift) {
    let (view, all) = (set.view(), sorted(model));
    let (min, max) = (score(rng), score(rng));
    let (min_exclusive, max_exclusive) = (rng.below(2) == 0, rng.below(2) == 0);
    let ranks = view.ranks_by_score(ScoreRange { min, min_exclusive, max, max_exclusive });
    let inside = |score: f64| {
        (if min_exclusive { score > min } else { score >= min })
            && (if max_exclusive { score < max } else { score <= max })
    };
    let expected: Vec<_> = all.iter().filter(|(_, score)| inside(*score)).cloned().collect();
    assert_eq!(ranks.len(), expected.len());
    assert_eq!(owned(view.iter(ranks)), expected);
    if let Some((member, score)) = all.get(rng.below(all.len().max(1) as u32) as usize) {
        let rank = all.iter().position(|(other, _)| other == member);
        assert_eq!(view.rank(member), rank.map(|rank| (rank, *score)));
        assert_eq!(view.score(member), Some(*score));
    }
    assert_eq!(view.rank(b"nobody"), None);
}

fn check_random(set: &SortedSet, model: &Model, rng: &mut XorShift) {
    let count = rng.below(50) as usize;
    let mut met = BTreeSet::new();
    set.view().random_distinct(count, rng, |element| {
        assert_eq!(model.get(element.member), Some(&element.score));
        assert!(met.insert(element.member.to_vec()));
    });
    assert_eq!(met.len(), count.min(model.len()));
    let mut rolls = 0;
    set.view().random_each(count, rng, |element| {
        assert!(model.contains_key(element.member));
        rolls += 1;
    });
    assert_eq!(rolls, if model.is_empty() { 0 } else { count });
}

#[test]
fn behaves_like_a_sorted_map() {
    for seed in 1..13 {
        println!("seed {seed}");
        let ground = Ground::new(seed);
        let backing = ground.backing();
        let mut rng = XorShift::new(seed);
        let limits = SortedSetLimits { entries_max: 30, value_bytes_max: 64 };
        let (mut set, mut model) = (SortedSet::default(), Model::new());
        let kinds = if seed % 4 == 0 { 20 } else { 3000 };
        for step in 0..4000 {
            let growing = step % 2000 < 1200;
            let name = member(&mut rng, kinds);
            let mut change = SortedSetMut::new(&mut set, limits, backing);
            match rng.below(24) {
                0..=13 if growing => {
                    let score = score(&mut rng);
                    assert_eq!(change.add(&name, score), !model.contains_key(&name));
                    model.insert(name, score);
                }
                14 => {
                    let old = model.get(&name).copied();
                    assert_eq!(
                        change.update(&name, |seen| {
                            assert_eq!(seen, old);
                            None
                        }),
                        (old, old)
                    );
                }
                15 if rng.below(5) == 0 => {
                    let start = rng.below(model.len() as u32 + 1) as usize;
                    let ranks = start..start + rng.below(60) as usize;
                    let expected = owned(change.view().iter(ranks.clone()));
                    let mut taken = Vec::new();
                    let count = change.remove_ranks(ranks, |element| {
                        taken.push((element.member.to_vec(), element.score));
                    });
                    assert_eq!((count, &taken), (expected.len(), &expected));
                    model.retain(|member, _| !taken.iter().any(|(gone, _)| gone == member));
                }
                16 => check_ranges(&set, &model, &mut rng),
                17 => check_random(&set, &model, &mut rng),
                _ => assert_eq!(change.remove(&name), model.remove(&name)),
            }
            if step % 60 == 0 {
                check(&set, &model, &mut rng);
                check(&set.view().duplicate(), &model, &mut rng);
            }
        }
        while !set.free_step(1) {}
    }
}

#[test]
fn lexical_ranges() {
    let ground = Ground::new(1);
    let backing = ground.backing();
    for count in [20_u32, 500] {
        let mut set = SortedSet::default();
        let mut names: Vec<Vec<u8>> = (0..count).map(|number| format!("{number}").into_bytes()).collect();
        for name in &names {
            SortedSetMut::new(&mut set, SortedSetLimits::default(), backing).add(name, 7.0);
        }
        names.sort();
        let bounds = [
            LexBound::Min,
            LexBound::Max,
            LexBound::Inclusive(b"11"),
            LexBound::Exclusive(b"11"),
            LexBound::Inclusive(b"6x"),
            LexBound::Exclusive(b""),
        ];
        for (min, max) in bounds.iter().flat_map(|min| bounds.map(|max| (*min, max))) {
            let inside = |name: &&Vec<u8>| !min.is_above(name) && !max.is_below(name);
            let expected: Vec<_> = names.iter().filter(inside).cloned().collect();
            let ranks = set.view().ranks_by_lex(min, max);
            let met: Vec<_> = set.view().iter(ranks).map(|element| element.member.to_vec()).collect();
            assert_eq!(met, expected, "{min:?} {max:?}");
        }
    }
}

#[test]
fn converts_at_the_limits() {
    let ground = Ground::new(1);
    let backing = ground.backing();
    let limits = SortedSetLimits { entries_max: 3, value_bytes_max: 5 };
    let mut set = SortedSet::default();
    for member in ["a", "b", "c", "c"] {
        SortedSetMut::new(&mut set, limits, backing).add(member.as_bytes(), 1.0);
    }
    assert_eq!(set.view().encoding(), "listpack");
    SortedSetMut::new(&mut set, limits, backing).add(b"d", 1.0);
    assert_eq!(set.view().encoding(), "skiplist");
    SortedSetMut::new(&mut set, limits, backing).remove_ranks(0..3, |_| ());
    assert_eq!((set.view().len(), set.view().encoding()), (1, "skiplist"));
    SortedSetMut::new(&mut set, limits, backing).settle();
    assert_eq!((set.view().len(), set.view().encoding()), (1, "listpack"));
    let mut set = SortedSet::default();
    SortedSetMut::new(&mut set, limits, backing).add(b"123456", 1.0);
    SortedSetMut::new(&mut set, limits, backing).settle();
    assert_eq!(set.view().encoding(), "skiplist");
    let mut set = SortedSet::default();
    SortedSetMut::new(&mut set, limits, backing).announce(4, 1);
    assert_eq!(set.view().encoding(), "skiplist");
}

#[test]
fn members_in_order_fill_their_leaves() {
    let ground = Ground::new(1);
    let backing = ground.backing();
    let mut set = SortedSet::default();
    for number in 0..50_000_u32 {
        let mut change = SortedSetMut::new(&mut set, SortedSetLimits::default(), backing);
        change.add(&number.to_be_bytes(), f64::from(number));
    }
    let Repr::Large(large) = &set.0 else { panic!("50,000 are many") };
    assert!(large.tree.memory_bytes() < 50_000 * 14, "{}", large.tree.memory_bytes());
}
