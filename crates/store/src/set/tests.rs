//! Owns the tests of sets against a model, across conversions.

use super::*;
use crate::clock::XorShift;
use crate::dict::tests::Ground;
use std::collections::BTreeSet;

type Model = BTreeSet<Vec<u8>>;

fn member(rng: &mut XorShift, only_ints: bool) -> Vec<u8> {
    let int = (rng.next_u64() as i64 >> [57, 57, 57, 20][rng.below(4) as usize]).to_string();
    match rng.below(300) {
        0 if !only_ints => vec![b'x'; 65],
        1..=150 if !only_ints => format!("m{}", rng.below(150)).into_bytes(),
        _ => int.into_bytes(),
    }
}

fn check(set: &Set, model: &Model) {
    let view = set.view();
    assert_eq!(view.len(), model.len());
    let all: Vec<Vec<u8>> = view.iter().map(|member| member.to_vec()).collect();
    assert_eq!(all.iter().cloned().collect::<Model>(), *model);
    let mut visited = Vec::new();
    view.visit(|member| visited.push(member.to_vec()));
    assert_eq!(visited, all);
    if view.is_ints() {
        assert!(all.iter().map(|member| parse_int(member).unwrap()).is_sorted());
    }
    let (mut scanned, mut cursor) = (Model::new(), 0);
    loop {
        cursor = view.scan(cursor, 5, |member| {
            scanned.insert(member.to_vec());
        });
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(scanned, *model);
}

fn check_random(set: &Set, model: &Model, rng: &mut XorShift) {
    let (view, count) = (set.view(), rng.below(50) as usize);
    let mut met = Model::new();
    view.random_distinct(count, rng, |member| assert!(met.insert(member.to_vec())));
    assert!(met.is_subset(model));
    assert_eq!(met.len(), count.min(model.len()));
    let mut rolls = 0;
    view.random_each(count, rng, |member| {
        assert!(model.contains(member));
        rolls += 1;
    });
    assert_eq!(rolls, if model.is_empty() { 0 } else { count });
}

#[test]
fn behaves_like_a_set() {
    for seed in 1..13 {
        println!("seed {seed}");
        let ground = Ground::new(seed);
        let backing = ground.backing();
        let mut rng = XorShift::new(seed);
        let limits = SetLimits { ints_max: 60, entries_max: 50, value_bytes_max: 64 };
        let (mut set, mut model) = (Set::default(), Model::new());
        let mut forms = BTreeSet::new();
        for step in 0..3000 {
            let member = member(&mut rng, seed % 3 == 0 || step < 100);
            let mut change = SetMut::new(&mut set, limits, backing);
            match rng.below(20) {
                0..=9 => assert_eq!(change.add(&member), model.insert(member)),
                10..=14 => assert_eq!(change.remove(&member), model.remove(&member)),
                15 => {
                    let taken = change.pop(&mut rng, <[u8]>::to_vec);
                    assert_eq!(taken.is_some(), !model.is_empty());
                    assert!(taken.is_none_or(|member| model.remove(&member)));
                }
                16 => check_random(&set, &model, &mut rng),
                _ => assert_eq!(change.view().contains(&member), model.contains(&member)),
            }
            if step % 40 == 0 {
                check(&set, &model);
                check(&set.view().duplicate(), &model);
            }
            forms.insert(set.view().encoding());
        }
        println!("{forms:?}");
        assert!(forms.len() >= 2);
    }
}

fn encoding_after(limits: SetLimits, members: &[&str]) -> &'static str {
    let ground = Ground::new(1);
    let backing = ground.backing();
    let mut set = Set::default();
    for member in members {
        SetMut::new(&mut set, limits, backing).add(member.as_bytes());
    }
    set.view().encoding()
}

#[test]
fn converts_as_valkey_does() {
    let limits = SetLimits { ints_max: 3, entries_max: 4, value_bytes_max: 5 };
    assert_eq!(encoding_after(limits, &["1", "2", "3", "3"]), "intset");
    assert_eq!(encoding_after(limits, &["1", "2", "3", "4"]), "hashtable");
    assert_eq!(encoding_after(limits, &["1", "2", "3", "a"]), "listpack");
    assert_eq!(encoding_after(limits, &["a", "2", "3", "4"]), "listpack");
    assert_eq!(encoding_after(limits, &["a", "2", "3", "4", "5"]), "hashtable");
    assert_eq!(encoding_after(limits, &["1", "abcdef"]), "hashtable");
    assert_eq!(encoding_after(limits, &["123456", "a"]), "hashtable");
    assert_eq!(encoding_after(limits, &["01"]), "listpack");
}

#[test]
fn announced_sets_take_their_form_at_once() {
    let ground = Ground::new(1);
    let backing = ground.backing();
    let limits = SetLimits { ints_max: 3, entries_max: 5, value_bytes_max: 64 };
    for (first, members, form) in
        [("1", 3, "intset"), ("1", 4, "listpack"), ("1", 6, "hashtable"), ("a", 5, "listpack")]
    {
        let mut set = Set::default();
        SetMut::new(&mut set, limits, backing).announce(first.as_bytes(), members);
        assert_eq!(set.view().encoding(), form, "{first} {members}");
    }
    let mut set = Set::default();
    let mut change = SetMut::new(&mut set, limits, backing);
    for member in ["a", "7"] {
        change.add(member.as_bytes());
    }
    change.settle_ints();
    assert_eq!(change.view().encoding(), "listpack");
    change.remove(b"a");
    change.settle_ints();
    assert_eq!(set.view().encoding(), "intset");
    SetMut::new(&mut set, limits, backing).announce(b"9", 4);
    assert_eq!(set.view().encoding(), "hashtable");
}

#[test]
fn intersection_is_that_of_the_models() {
    for seed in 1..20 {
        println!("seed {seed}");
        let ground = Ground::new(seed);
        let backing = ground.backing();
        let mut rng = XorShift::new(seed);
        let (mut sets, mut models) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let (mut set, mut model) = (Set::default(), Model::new());
            let only_ints = rng.below(2) == 0;
            for _ in 0..rng.below(400) {
                let member = member(&mut rng, only_ints);
                SetMut::new(&mut set, SetLimits::default(), backing).add(&member);
                model.insert(member);
            }
            sets.push(set);
            models.push(model);
        }
        let views: Vec<SetRef<'_>> = sets.iter().map(Set::view).collect();
        let mut met = Model::new();
        intersect(&views, |member| {
            assert!(met.insert(member.to_vec()));
            ControlFlow::Continue(())
        });
        let expected =
            models[0].iter().filter(|member| models[1].contains(*member) && models[2].contains(*member));
        assert_eq!(met, expected.cloned().collect());
    }
}
