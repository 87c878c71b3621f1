//! Owns: the commands about positions: GEOADD, GEOPOS, GEODIST, GEOHASH; those that search are in `search`. Does not
//! own: where positions are kept, which is a sorted set of 52-bit hashes.

mod area;
mod search;

use weft_store::SortedSetRef;

use crate::args::Args;
use crate::commands::sorted_sets::sorted_set::{Options, add, read};
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::reply::ReplySink;
use area::{Point, STORED, distance_m, point_of, score_of, text_of};

pub(crate) const LIST: &[Entry] = &[
    ("GEOADD", Scope::Keys, geoadd),
    ("GEOPOS", Scope::Keys, geopos),
    ("GEODIST", Scope::Keys, geodist),
    ("GEOHASH", Scope::Keys, geohash),
    ("GEOSEARCH", Scope::Keys, search::geosearch),
    ("GEOSEARCHSTORE", Scope::Keys, search::geosearchstore),
    ("GEORADIUS", Scope::Keys, search::georadius),
    ("GEORADIUS_RO", Scope::Keys, search::georadius_ro),
    ("GEORADIUSBYMEMBER", Scope::Keys, search::georadiusbymember),
    ("GEORADIUSBYMEMBER_RO", Scope::Keys, search::georadiusbymember_ro),
];

/// Longitude and latitude from argument `at` on.
fn point(args: &Args<'_>, at: usize) -> Result<Point> {
    let point = Point { lon: args.double(at)?, lat: args.double(at + 1)? };
    if !STORED.contains(point) {
        let text = format!("invalid longitude,latitude pair {:.6},{:.6}", point.lon, point.lat);
        return Err(Error::err(text));
    }
    Ok(point)
}

/// Metres of a unit.
fn unit_m(args: &Args<'_>, at: usize) -> Result<f64> {
    const UNITS: [(&str, f64); 4] = [("M", 1.0), ("KM", 1000.0), ("FT", 0.3048), ("MI", 1609.34)];
    let found = UNITS.iter().find(|(name, _)| args.is(at, name));
    let text = "unsupported unit provided. please use M, KM, FT, MI";
    found.map(|(_, metres)| *metres).ok_or_else(|| Error::err(text))
}

/// A coordinate, with up to 17 digits behind the point.
fn show_coordinate(sink: &mut ReplySink<'_>, value: f64) {
    let text = format!("{value:.17}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    sink.double_text(text);
}

/// A distance: text with 4 digits behind the point on every wire.
fn show_distance(sink: &mut ReplySink<'_>, distance: f64) {
    let scaled = (distance * 10_000.0).round_ties_even();
    sink.bulk(format!("{}.{:04}", (scaled / 10_000.0).trunc(), (scaled % 10_000.0) as u64).as_bytes());
}

fn geoadd(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let mut options = Options::default();
    let mut first = 2;
    loop {
        match () {
            () if args.is(first, "NX") => options.nx = true,
            () if args.is(first, "XX") => options.xx = true,
            () if args.is(first, "CH") => options.ch = true,
            () => break,
        }
        first += 1;
    }
    let left = args.len().saturating_sub(first);
    if left == 0 || !left.is_multiple_of(3) || options.nx && options.xx {
        return Err(ErrorCode::Syntax.into());
    }
    let places = (first..args.len()).step_by(3);
    let pairs: Vec<(&[u8], f64)> =
        places.map(|at| Ok((args.bytes(at + 2), score_of(point(args, at)?)))).collect::<Result<_>>()?;
    add(context, args, sink, (options, &pairs))
}

/// The position of a member.
fn position(set: Option<SortedSetRef<'_>>, member: &[u8]) -> Option<Point> {
    set.and_then(|set| set.score(member)).map(point_of)
}

fn geopos(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let set = read(context, &key)?;
    sink.array(args.len() - 2);
    for member in args.rest(2) {
        match position(set, member) {
            Some(point) => {
                sink.array(2);
                show_coordinate(sink, point.lon);
                show_coordinate(sink, point.lat);
            }
            None => sink.null_array(),
        }
    }
    Ok(())
}

fn geodist(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let unit_m = match args.len() {
        5 => unit_m(args, 4)?,
        6.. => return Err(ErrorCode::Syntax.into()),
        _ => 1.0,
    };
    let key = context.key(args, 1);
    let set = read(context, &key)?;
    match position(set, args.bytes(2)).zip(position(set, args.bytes(3))) {
        Some((one, two)) => show_distance(sink, distance_m(one, two) / unit_m),
        None => sink.null(),
    }
    Ok(())
}

fn geohash(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let set = read(context, &key)?;
    sink.array(args.len() - 2);
    for member in args.rest(2) {
        match position(set, member) {
            Some(point) => sink.bulk(&text_of(point)),
            None => sink.null(),
        }
    }
    Ok(())
}
