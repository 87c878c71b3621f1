//! What scripts compute with: cjson, cmsgpack, struct, bit, patterns, formats, and Lua's values as replies. Random
//! values, as text in the script and as bytes in its arguments. A table has one name at most: Valkey 9.1 hashes strings
//! in another way than Lua 5.1, so that it walks over several in another order. Not for Redis 7.0: its libraries are
//! older.

use super::{Group, no_places};
use crate::dice::Dice;

pub(crate) const GROUP: Group = Group { name: "libraries", templates: TEMPLATES, redis: false, places };

const NUMBERS: [&str; 38] = [
    "0",
    "1",
    "-1",
    "2",
    "7",
    "1.5",
    "-2.25",
    "0.1",
    "100",
    "127",
    "128",
    "-128",
    "-129",
    "255",
    "256",
    "65535",
    "65536",
    "-32768",
    "-32769",
    "2147483648",
    "4294967295",
    "4294967296",
    "2^53",
    "-2^31",
    "123456789012",
    "1e15",
    "1e100",
    "1e-7",
    "1/0",
    "-1/0",
    "0/0",
    "-(0/0)",
    "2^31",
    "2^32+1",
    "2^63",
    "-2^63",
    "2^64",
    "1e19",
];
const TEXTS: [&str; 16] = [
    "",
    "a",
    "b",
    "key",
    "10",
    "-0.5",
    "\\0",
    "a\\0b",
    "\\0\\0a",
    "nan",
    "\\\"",
    "\\\\/",
    "\\195\\169",
    "\\255\\254",
    "\\10\\9\\127",
    "twelve letters",
];
/// Pieces of patterns; few make sense together.
const PIECES: [&str; 34] = [
    "a", "b", ".", "%a", "%d", "%s", "%w", "[a-c]", "[^b]", "(", ")", "()", "*", "+", "-", "?", "%1", "$",
    "^", "%b()", "%f[a]", "%%", "%z", "%Z", "\\0", "[\\0]", "[a\\0b]", "%\\0", "%b\\0a", "%f[\\0]", "[", "]",
    "%", "[^",
];
const FORMATS: [&str; 28] = [
    "b", "B", "h", "H", "i4", "I2", "l", "L", "s", "f", "d", "c3", "c0", "x", ">", "<", "!4", "i3", "I1",
    "!8", "!3", "!0", "i33", "c-1", "\\0", "z", "T", "I8",
];
const DIRECTIVES: [&str; 14] =
    ["%d", "%5d", "%-5d|", "%i", "%u", "%x", "%X", "%o", "%s", "%.2s", "%q", "%5.2f", "%g", "%e"];
/// Where things stand, and where nothing does.
const INDICES: [&str; 9] = ["0", "1", "2", "3", "-1", "-2", "10", "-10", "1.7"];
/// The same, and those that C makes something else of; not for what would count up to there.
const FAR_INDICES: [&str; 14] =
    ["0", "1", "2", "-1", "1.7", "2^31", "-2^31", "2^32+2", "2^53", "2^63", "-1e100", "1/0", "0/0", "'2'"];
/// What is called with arguments of any kind and number, to see which error comes first and what it says.
const CALLS: [&str; 22] = [
    "bit.band",
    "bit.bxor",
    "bit.lshift",
    "bit.tohex",
    "table.concat",
    "string.rep",
    "string.sub",
    "string.byte",
    "string.gsub",
    "string.find",
    "string.format",
    "struct.pack",
    "struct.unpack",
    "struct.size",
    "cmsgpack.unpack",
    "cmsgpack.unpack_one",
    "cmsgpack.unpack_limit",
    "cjson.decode",
    "cjson.encode_sparse_array",
    "cjson.decode_invalid_numbers",
    "redis.set_repl",
    "tonumber",
];
/// JSON that no encoder writes, and what is nearly JSON.
const JSON: [&str; 24] = [
    "{}",
    "[]",
    "null",
    "true",
    "1",
    "-0",
    "1e5",
    "01",
    "0x1f",
    "nan",
    "-inf",
    "[1,2,",
    "{\"a\":}",
    "\"\\u00e9\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "[1 2]",
    "{\"a\" 1}",
    "tru",
    "\"open",
    " [ 1 , 2 ] ",
    "1.5.5",
    "+1",
    "[]]",
];

fn pieces(dice: &mut Dice, list: &[&str], most: usize) -> String {
    (0..=dice.below(most)).map(|_| dice.pick(list)).collect()
}

/// A value as Lua writes it.
fn literal(dice: &mut Dice, depth: usize) -> String {
    match dice.below(if depth == 0 { 8 } else { 12 }) {
        0 => dice.pick(&["nil", "true", "false", "cjson.null"]).to_owned(),
        1..4 => dice.pick(&NUMBERS).to_owned(),
        4..8 => format!("\"{}\"", dice.pick(&TEXTS)),
        8 | 9 => {
            let items: Vec<String> = (0..dice.below(5)).map(|_| literal(dice, depth - 1)).collect();
            format!("{{{}}}", items.join(","))
        }
        10 => {
            let fields: Vec<String> = (0..dice.below(2))
                .map(|_| format!("[\"{}\"]={}", dice.pick(&TEXTS), literal(dice, depth - 1)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        _ => format!("{{{},[{}]={}}}", literal(dice, 0), dice.pick(&NUMBERS), literal(dice, 0)),
    }
}

/// A text of JSON, now and then with a byte changed.
fn json(dice: &mut Dice, depth: usize) -> String {
    let mut text = match dice.below(if depth == 0 { 3 } else { 6 }) {
        0 => dice.pick(&JSON).to_owned(),
        1 => dice.pick(&["0", "1", "-17", "2.5", "1e3", "123456789012345", "0.1"]).to_owned(),
        2 => format!("\"{}\"", dice.pick(&["", "a", "\\n", "\\\"", "\\/", "\u{e9}", "x y"])),
        3 | 4 => {
            let items: Vec<String> = (0..dice.below(4)).map(|_| json(dice, depth - 1)).collect();
            format!("[{}]", items.join(","))
        }
        _ => {
            let fields: Vec<String> = (0..dice.below(2))
                .map(|_| format!("\"{}\":{}", dice.pick(&["a", "b", "", "1"]), json(dice, depth - 1)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
    };
    if dice.one_in(12) && text.is_ascii() && !text.is_empty() {
        let at = dice.below(text.len());
        text.replace_range(at..=at, dice.pick(&["", "]", "{", ",", "\"", "0", "\\"]));
    }
    text
}

fn script(dice: &mut Dice) -> String {
    let value = |dice: &mut Dice| literal(dice, 3);
    match dice.below(30) {
        24 | 25 => {
            let name = dice.pick(&CALLS);
            let args: Vec<String> = (0..dice.below(5)).map(|_| literal(dice, 1)).collect();
            format!("return {{{name}({})}}", args.join(","))
        }
        26 => {
            let name = dice.pick(&[
                "string.find",
                "string.match",
                "string.sub",
                "string.byte",
                "cmsgpack.unpack_one",
            ]);
            let with = if name.contains("match") || name.contains("find") { "'[a-z0%z]'," } else { "" };
            format!("return {{{name}(ARGV[1],{with}{})}}", dice.pick(&FAR_INDICES))
        }
        27 => {
            let (one, two) = (dice.pick(&FAR_INDICES), dice.pick(&FAR_INDICES));
            format!("return {{cmsgpack.unpack_limit(ARGV[1],{one},{two})}}")
        }
        28 => {
            let format = pieces(dice, &FORMATS, 3);
            format!("return {{struct.unpack('{format}',ARGV[1],{})}}", dice.pick(&FAR_INDICES))
        }
        29 => format!(
            "return {{string.gsub(ARGV[1],'{}','x',{})}}",
            pieces(dice, &PIECES, 3),
            dice.pick(&FAR_INDICES)
        ),
        0 => format!("return {}", value(dice)),
        1 | 2 => format!("return cjson.encode({})", value(dice)),
        3 => "return cjson.encode(cjson.decode(ARGV[1]))".to_owned(),
        4 => "return cjson.decode(ARGV[1])".to_owned(),
        5 => format!("return cmsgpack.pack({},{})", value(dice), value(dice)),
        6 => format!("return {{cmsgpack.unpack(cmsgpack.pack({},{}))}}", value(dice), value(dice)),
        7 => format!("return {{cmsgpack.unpack_limit(ARGV[1],{},{})}}", dice.below(3), dice.below(4)),
        8 => "return {cmsgpack.unpack(ARGV[1])}".to_owned(),
        9 => {
            let format = pieces(dice, &FORMATS, 4);
            format!("return struct.pack('{format}',{},{})", literal(dice, 0), literal(dice, 0))
        }
        10 => format!("return {{struct.unpack('{}',ARGV[1])}}", pieces(dice, &FORMATS, 4)),
        11 => format!("return struct.size('{}')", pieces(dice, &FORMATS, 4)),
        12 => {
            let name = dice.pick(&["band", "bor", "bxor", "lshift", "rshift", "arshift", "rol", "ror"]);
            format!("return bit.{name}({},{})", dice.pick(&NUMBERS), dice.below(40))
        }
        13 => {
            let name = dice.pick(&["tobit", "bnot", "bswap", "tohex"]);
            format!("return bit.{name}({})", dice.pick(&NUMBERS))
        }
        14 => format!("return {{string.find(ARGV[1],'{}')}}", pieces(dice, &PIECES, 4)),
        15 => {
            let with = dice.pick(&["", "x", "%0%0", "%1", "<%1>", "%"]);
            format!("return {{string.gsub(ARGV[1],'{}','{with}')}}", pieces(dice, &PIECES, 3))
        }
        16 => {
            let format = dice.pick(&DIRECTIVES);
            format!("return string.format('{format}',{})", literal(dice, 0))
        }
        17 => format!("return {{tostring({}),tonumber(ARGV[1])}}", dice.pick(&NUMBERS)),
        18 => format!("return table.concat({},'-')", value(dice)),
        19 => {
            let name = dice.pick(&["match", "gmatch"]);
            let pattern = pieces(dice, &PIECES, 4);
            match name {
                "match" => format!("return {{string.match(ARGV[1],'{pattern}',{})}}", dice.below(4)),
                _ => format!(
                    "local t={{}} for a,b in string.gmatch(ARGV[1],'{pattern}') do t[#t+1]=a if b then t[#t+1]=b end \
                     if #t>20 then break end end return t"
                ),
            }
        }
        20 => {
            let (from, to) = (dice.pick(&INDICES), dice.pick(&INDICES));
            match dice.below(5) {
                0 => format!("return string.sub(ARGV[1],{from},{to})"),
                1 => format!("return {{string.byte(ARGV[1],{from},{to})}}"),
                2 => format!("return string.char({from},{to},65)"),
                3 => format!("return string.rep(ARGV[1],{from})"),
                _ => "return {string.reverse(ARGV[1]),string.upper(ARGV[1]),string.lower(ARGV[1]),string.len(ARGV[1])}"
                    .to_owned(),
            }
        }
        21 => {
            let items: Vec<&str> = (0..dice.below(9)).map(|_| dice.pick(&NUMBERS)).collect();
            let less = dice.pick(&["", ",function(a,b) return a>b end", ",function(a,b) return true end"]);
            format!("local t={{{}}} table.sort(t{less}) return t", items.join(","))
        }
        22 => {
            let at = dice.pick(&INDICES);
            let call =
                dice.pick(&["table.insert(t,AT,'new')", "table.insert(t,'new')", "table.remove(t,AT)"]);
            let call = call.replace("AT", at);
            format!("local t={} local r={{pcall(function() return {call} end)}} return {{r,t}}", value(dice))
        }
        _ => format!(
            "local t={} if type(t)=='table' then return {{#t,unpack(t)}} end return type(t)",
            value(dice)
        ),
    }
}

fn places(dice: &mut Dice, name: &str) -> Option<Vec<u8>> {
    Some(match name {
        "script" if dice.one_in(6) => format!("redis.setresp(3) {}", script(dice)).into(),
        "script" => script(dice).into(),
        "json" => json(dice, 3).into(),
        // What begins like numbers, texts, lists and maps of msgpack.
        "packed" => (0..dice.below(12))
            .map(|_| {
                [
                    0x00, 0x7f, 0x81, 0x92, 0xa1, 0xc0, 0xc3, 0xca, 0xcb, 0xcc, 0xcd, 0xd0, 0xd9, 0xdc, 0xde,
                    0xe0, 0xcf, 0xcf, 0xd3, 0xff,
                ][dice.below(20)]
            })
            .collect(),
        _ => return no_places(dice, name),
    })
}

const TEMPLATES: &[&str] = &[
    "8 EVAL {script} 0 {json}",
    "4 EVAL {script} 0 {value}",
    "2 EVAL {script} 0 {packed}",
    "EVAL_RO {script} 0 {json}",
];
