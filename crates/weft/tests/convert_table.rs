//! RESP to RESPB to RESP, for random commands of the whole table: every byte comes back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Random, good, resp};
use weft_protocol::table::{COMMANDS, Field, Kind, Layout, Options};

/// Arguments that the layout can say, mostly.
fn arguments(fields: &[Field], random: &mut Random, argv: &mut Vec<Vec<u8>>) {
    for field in fields {
        argv.extend(field.token.iter().map(|word| word.as_bytes().to_vec()));
        match &field.kind {
            Kind::List(list) => {
                let count = usize::from(list.min) + random.below(4);
                if list.counted {
                    argv.push(count.to_string().into_bytes());
                }
                let rows: Vec<Vec<Vec<u8>>> = (0..count)
                    .map(|_| list.items.iter().map(|item| scalar(item, random).concat()).collect())
                    .collect();
                match list.transposed {
                    true => (0..list.items.len()).for_each(|column| {
                        argv.extend(rows.iter().map(|row| row[column].clone()));
                    }),
                    false => argv.extend(rows.into_iter().flatten()),
                }
            }
            Kind::Options(options) => chosen(options, random, argv),
            _ => argv.extend(scalar(field, random)),
        }
    }
}

/// Some options, usually in the order of the table and few enough not to exclude each other.
fn chosen(options: &Options, random: &mut Random, argv: &mut Vec<Vec<u8>>) {
    for bit in options.bits {
        if !random.one_in(3) {
            continue;
        }
        argv.extend(bit.token.iter().map(|word| word.as_bytes().to_vec()));
        bit.fields.iter().for_each(|field| argv.extend(scalar(field, random)));
    }
}

fn scalar(field: &Field, random: &mut Random) -> Vec<Vec<u8>> {
    let number = random.next() as i64 >> random.below(64);
    let text = match &field.kind {
        Kind::Enum(values) => {
            let words = values[random.below(values.len())];
            return words.iter().map(|word| word.as_bytes().to_vec()).collect();
        }
        Kind::I64 => number.to_string(),
        Kind::U16 => (number as u16).to_string(),
        Kind::U8 => (number as u8).to_string(),
        Kind::F64 => match random.below(4) {
            0 => number.to_string(),
            1 => "inf".into(),
            2 => format!("{}.5", number % 1000),
            _ => f64::from_bits(random.next()).to_string(),
        },
        _ => {
            let len_max = if random.one_in(50) { 300 } else { 12 };
            return vec![random.bytes(len_max)];
        }
    };
    vec![text.into_bytes()]
}

/// Makes a command into one that the layout may not say.
fn disturb(random: &mut Random, argv: &mut Vec<Vec<u8>>) {
    let at = random.below(argv.len());
    match random.below(9) {
        0 => argv[0].make_ascii_lowercase(),
        1 => argv[at].make_ascii_lowercase(),
        2 => argv[at] = random.bytes(9),
        3 => argv.push(argv[at].clone()),
        4 if argv.len() > 1 => drop(argv.pop()),
        5 => argv[at] = ["+1", "01", "-0", "1.", "0x", "nan"][random.below(6)].into(),
        6 => argv.swap(0, at),
        7 => argv[at].clear(),
        _ => argv[at] = vec![b'k'; 65_536],
    }
}

#[test]
fn commands_of_the_whole_table_come_back() {
    let mut random = Random::new("commands_of_the_whole_table_come_back");
    let (mut stream, mut commands) = (Vec::new(), 0u64);
    for spec in COMMANDS {
        for round in 0..24 {
            let mut argv = vec![spec.name.as_bytes().to_vec()];
            match spec.layout {
                Layout::Fields { fields, .. } if spec.container.is_none() => {
                    arguments(fields, &mut random, &mut argv);
                }
                _ => (0..random.below(5)).for_each(|_| argv.push(random.bytes(8))),
            }
            if round % 3 == 2 {
                disturb(&mut random, &mut argv);
            }
            stream.extend(resp(&argv));
            commands += 1;
        }
    }
    let respb = good(&["convert", "--to", "respb", "--channel", "9"], &stream);
    let back = good(&["convert", "--to", "resp"], &respb);
    let differs = back.iter().zip(&stream).position(|(a, b)| a != b);
    assert_eq!((differs, back.len()), (None, stream.len()), "{} commands", commands);

    let stats = good(&["convert", "--to", "resp", "--dry-run", "--json"], &respb);
    let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
    assert_eq!(stats["total"]["count"], commands);
    assert_eq!(stats["total"]["bytes_before"], respb.len());
    assert_eq!(stats["total"]["bytes_after"], stream.len());
    let typed = stats["total"]["typed"].as_u64().unwrap();
    assert!(
        typed > commands / 3 && typed < commands,
        "{typed} of {commands} are typed: the generator is not worth much"
    );
}

#[test]
fn any_bytes_come_back() {
    let mut random = Random::new("any_bytes_come_back");
    let mut stream = Vec::new();
    for _ in 0..20_000 {
        let mut argv: Vec<Vec<u8>> = (0..1 + random.below(6)).map(|_| random.bytes(20)).collect();
        if random.one_in(2) {
            argv[0] = COMMANDS[random.below(COMMANDS.len())].name.as_bytes().to_vec();
        }
        stream.extend(resp(&argv));
    }
    let respb = good(&["convert", "--to", "respb"], &stream);
    assert!(good(&["convert", "--to", "resp"], &respb) == stream);
}
