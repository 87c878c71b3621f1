//! Owns the tests of lists against a model.

use super::*;
use crate::clock::{Rng, XorShift};
use std::collections::VecDeque;

fn check(list: &List, model: &VecDeque<Vec<u8>>) {
    assert_eq!(list.len(), model.len());
    assert!(list.iter().eq(model.iter().map(Vec::as_slice)));
    assert!(list.iter_back_from(list.len()).eq(model.iter().rev().map(Vec::as_slice)));
    let chunk_bytes: usize = (0..list.chunk_count()).map(|at| list.chunk(at).capacity()).sum();
    assert_eq!(chunk_bytes, list.chunk_bytes);
}

fn element(rng: &mut XorShift) -> Vec<u8> {
    let len = match rng.below(40) {
        0 => 200 + rng.below(400),
        1 => 127,
        2 => 126,
        3 => 0,
        _ => rng.below(6),
    };
    let letter = b'a' + rng.below(3) as u8;
    vec![letter; len as usize]
}

fn step(list: &mut List, model: &mut VecDeque<Vec<u8>>, rng: &mut XorShift, limit: ListLimit) {
    let value = element(rng);
    let index = rng.below(model.len() as u32 + 1) as usize;
    match rng.below(22) {
        0..=4 => {
            list.push(End::Front, &value, limit);
            model.push_front(value);
        }
        5..=9 => {
            list.push(End::Back, &value, limit);
            model.push_back(value);
        }
        10..=12 => assert_eq!(list.pop(End::Front, limit, <[u8]>::to_vec), model.pop_front()),
        13..=15 => assert_eq!(list.pop(End::Back, limit, <[u8]>::to_vec), model.pop_back()),
        16 => {
            list.insert(index, &value, limit);
            model.insert(index, value);
        }
        17 => {
            assert_eq!(list.set(index, &value, limit), index < model.len());
            if index < model.len() {
                model[index] = value;
            }
        }
        18 => {
            let count = i64::from(rng.below(7)) - 3;
            let expected = model_remove(model, count, &value);
            assert_eq!(list.remove(count, &value, limit), expected);
        }
        19 if rng.below(8) == 0 => {
            let end = index + rng.below(model.len() as u32 + 1) as usize;
            list.trim(index / 4, end, limit);
            let kept = model.iter().skip(index / 4).take(end.saturating_sub(index / 4)).cloned();
            *model = kept.collect();
        }
        20 => {
            assert!(list.iter_from(index).eq(model.iter().skip(index).map(Vec::as_slice)));
            let count = index / 2 + 1;
            let mut seen = Vec::new();
            list.view().visit(index, count, |element| seen.push(element.to_vec()));
            assert!(seen.iter().eq(model.iter().skip(index).take(count)));
        }
        _ => assert_eq!(list.get(index), model.get(index).map(Vec::as_slice)),
    }
}

fn model_remove(model: &mut VecDeque<Vec<u8>>, count: i64, value: &[u8]) -> usize {
    let mut indexes: Vec<usize> = (0..model.len()).filter(|&at| model[at] == value).collect();
    if count < 0 {
        indexes.reverse();
    }
    if count != 0 {
        indexes.truncate(count.unsigned_abs() as usize);
    }
    indexes.sort_unstable();
    for &at in indexes.iter().rev() {
        model.remove(at);
    }
    indexes.len()
}

#[test]
fn behaves_like_a_deque() {
    for seed in 1..40 {
        println!("seed {seed}");
        let mut rng = XorShift::new(seed);
        let limit = match seed % 4 {
            0 => ListLimit { chunk_bytes_max: 64, chunk_count_max: u32::MAX },
            1 => ListLimit { chunk_bytes_max: 8192, chunk_count_max: 4 },
            2 => ListLimit { chunk_bytes_max: 600, chunk_count_max: 16 },
            _ => ListLimit::default(),
        };
        let (mut list, mut model) = (List::default(), VecDeque::new());
        for _ in 0..1500 {
            step(&mut list, &mut model, &mut rng, limit);
            check(&list, &model);
        }
    }
}

#[test]
fn limit_is_exact() {
    let limit = ListLimit::from_config(3);
    let mut list = List::default();
    for _ in 0..3 {
        list.push(End::Back, b"x", limit);
    }
    assert_eq!(list.encoding(), "listpack");
    list.push(End::Back, b"x", limit);
    assert_eq!(list.encoding(), "quicklist");
    for encoding in ["quicklist"; 3] {
        assert_eq!(list.encoding(), encoding);
        list.pop(End::Back, limit, |_| ());
    }
    assert_eq!(list.encoding(), "listpack");
    list.expect(0, 2, limit);
    assert_eq!(list.encoding(), "listpack", "one element and two to come");
    list.expect(0, 3, limit);
    assert_eq!(list.encoding(), "quicklist", "one element and three to come");
    let bytes = ListLimit { chunk_bytes_max: 7 + 18 + 16, chunk_count_max: u32::MAX };
    let mut list = List::default();
    list.push(End::Front, &[b'k'; 16], bytes);
    list.push(End::Front, &[b'k'; 16], bytes);
    assert_eq!(list.encoding(), "listpack");
    list.push(End::Front, b"", bytes);
    assert_eq!(list.encoding(), "quicklist");
    let mut list = List::default();
    list.push(End::Front, &[b'k'; 34], bytes);
    assert_eq!(list.encoding(), "listpack");
    list.set(0, &[b'k'; 35], bytes);
    assert_eq!(list.encoding(), "listpack");
    let mut list = List::default();
    list.push(End::Front, &[b'k'; 35], bytes);
    assert_eq!(list.encoding(), "quicklist", "one element alone");
}

#[test]
fn config_sizes() {
    assert_eq!(ListLimit::from_config(-1).chunk_bytes_max, 4096);
    assert_eq!(ListLimit::from_config(-2).chunk_bytes_max, 8192);
    assert_eq!(ListLimit::from_config(-5).chunk_bytes_max, 65536);
    assert_eq!(ListLimit::from_config(128).chunk_count_max, 128);
}
