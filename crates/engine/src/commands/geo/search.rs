//! Owns: GEOSEARCH, GEOSEARCHSTORE and the older GEORADIUS family: their arguments, the search, their answers. Does not
//! own: geometry (`area`).

use weft_store::{Object, ScoreRange, SortedSet, SortedSetMut, SortedSetRef};

use super::area::{Hash, Point, Search, Shape, point_of};
use super::{point, show_coordinate, show_distance, unit_m};
use crate::args::Args;
use crate::commands::sorted_sets::sorted_set::read;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::notify;
use crate::reply::ReplySink;

/// What a command's name says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// GEORADIUS; `store`: STORE and STOREDIST are options.
    Radius { member: bool, store: bool },
    /// GEOSEARCH.
    Search,
    /// GEOSEARCHSTORE.
    SearchStore,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    None,
    Ascending,
    Descending,
}

/// A request as its arguments say it.
struct Request {
    kind: Kind,
    /// The place of the key that the result goes to.
    target: Option<usize>,
    store_distance: bool,
    with_distance: bool,
    with_hash: bool,
    with_coordinates: bool,
    /// Elements at most; 0 for all.
    count: usize,
    any: bool,
    order: Order,
    /// FROMMEMBER or FROMLONLAT was said. The centre stays open when there is no key to look the member up in.
    from: Option<&'static str>,
    centre: Option<Point>,
    /// BYRADIUS, BYBOX or BYPOLYGON was said.
    by: Option<&'static str>,
    shape: Option<(Shape, f64)>,
}

/// An element that was found.
struct Found<'c> {
    member: &'c [u8],
    score: f64,
    point: Point,
    distance_m: f64,
}

fn radius(args: &Args<'_>, at: usize) -> Result<(Shape, f64)> {
    let radius = args.double(at).map_err(|_| Error::err("need numeric radius"))?;
    if radius < 0.0 {
        return Err(Error::err("radius cannot be negative"));
    }
    Ok((Shape::Circle(radius), unit_m(args, at + 1)?))
}

fn rectangle(args: &Args<'_>, at: usize) -> Result<(Shape, f64)> {
    let width = args.double(at).map_err(|_| Error::err("need numeric width"))?;
    let height = args.double(at + 1).map_err(|_| Error::err("need numeric height"))?;
    if width < 0.0 || height < 0.0 {
        return Err(Error::err("height or width cannot be negative"));
    }
    Ok((Shape::Rectangle(width, height), unit_m(args, at + 2)?))
}

/// A polygon, and how many arguments it takes.
fn polygon(args: &Args<'_>, at: usize) -> Result<((Shape, f64), usize)> {
    let corners = args.int(at).ok().and_then(|corners| i32::try_from(corners).ok());
    let corners = corners.ok_or_else(|| Error::err("invalid number of vertices"))?;
    let corners = usize::try_from(corners).unwrap_or(0);
    if corners < 3 || (args.len() - at - 1) / 2 < corners {
        return Err(Error::err("GEOSEARCH BYPOLYGON must have at least 3 vertices"));
    }
    let places = (at + 1..).step_by(2).take(corners);
    let points = places.map(|at| point(args, at)).collect::<Result<Vec<_>, _>>()?;
    Ok(((Shape::Polygon(points), 1.0), 1 + 2 * corners))
}

/// The position of a member that must be there.
fn member_point(set: SortedSetRef<'_>, member: &[u8]) -> Result<Point> {
    let score = set
        .score(member)
        .ok_or_else(|| Error::err(format!("member {} does not exist", String::from_utf8_lossy(member))))?;
    Ok(point_of(score))
}

impl Request {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            target: (kind == Kind::SearchStore).then_some(1),
            store_distance: false,
            with_distance: false,
            with_hash: false,
            with_coordinates: false,
            count: 0,
            any: false,
            order: Order::None,
            from: None,
            centre: None,
            by: None,
            shape: None,
        }
    }

    fn parse(args: &Args<'_>, kind: Kind, set: Option<SortedSetRef<'_>>) -> Result<Self> {
        let mut request = Self::new(kind);
        let first = match kind {
            Kind::Radius { member: false, .. } => {
                request.centre = Some(point(args, 2)?);
                request.shape = Some(radius(args, 4)?);
                6
            }
            Kind::Radius { member: true, .. } => {
                if let Some(set) = set {
                    request.centre = Some(member_point(set, args.bytes(2))?);
                    request.shape = Some(radius(args, 3)?);
                }
                5
            }
            Kind::Search => 2,
            Kind::SearchStore => 3,
        };
        let mut at = first;
        while at < args.len() {
            at += 1 + request.option(args, at, set)?;
        }
        request.check(args)?;
        Ok(request)
    }

    /// Reads the option at `at`; gives the number of its arguments.
    fn option(&mut self, args: &Args<'_>, at: usize, set: Option<SortedSetRef<'_>>) -> Result<usize> {
        let left = args.len() - at - 1;
        let stores = matches!(self.kind, Kind::Radius { store: true, .. });
        match () {
            () if args.is(at, "WITHDIST") => self.with_distance = true,
            () if args.is(at, "WITHHASH") => self.with_hash = true,
            () if args.is(at, "WITHCOORD") => self.with_coordinates = true,
            () if args.is(at, "ANY") => self.any = true,
            () if args.is(at, "ASC") => self.order = Order::Ascending,
            () if args.is(at, "DESC") => self.order = Order::Descending,
            () if args.is(at, "COUNT") && left >= 1 => {
                let count = args.int(at + 1)?;
                if count <= 0 {
                    return Err(Error::err("COUNT must be > 0"));
                }
                self.count = usize::try_from(count).unwrap_or(usize::MAX);
                return Ok(1);
            }
            () if stores && left >= 1 && (args.is(at, "STORE") || args.is(at, "STOREDIST")) => {
                self.target = Some(at + 1);
                self.store_distance = args.is(at, "STOREDIST");
                return Ok(1);
            }
            () if self.kind == Kind::SearchStore && args.is(at, "STOREDIST") => self.store_distance = true,
            () if !matches!(self.kind, Kind::Radius { .. }) => return self.place(args, at, set),
            () => return Err(ErrorCode::Syntax.into()),
        }
        Ok(0)
    }

    /// Where GEOSEARCH looks: FROM… and BY….
    fn place(&mut self, args: &Args<'_>, at: usize, set: Option<SortedSetRef<'_>>) -> Result<usize> {
        let left = args.len() - at - 1;
        let is_polygon = self.by == Some("BYPOLYGON");
        let free_from = |word| self.from.is_none_or(|other| other == word) && !is_polygon;
        let free_by = |word| self.by.is_none_or(|other| other == word);
        if args.is(at, "FROMMEMBER") && left >= 1 && free_from("FROMMEMBER") {
            if let Some(set) = set {
                self.centre = Some(member_point(set, args.bytes(at + 1))?);
            }
            self.from = Some("FROMMEMBER");
            Ok(1)
        } else if args.is(at, "FROMLONLAT") && left >= 2 && free_from("FROMLONLAT") {
            self.centre = Some(point(args, at + 1)?);
            self.from = Some("FROMLONLAT");
            Ok(2)
        } else if args.is(at, "BYRADIUS") && left >= 2 && free_by("BYRADIUS") {
            self.shape = Some(radius(args, at + 1)?);
            self.by = Some("BYRADIUS");
            Ok(2)
        } else if args.is(at, "BYBOX") && left >= 3 && free_by("BYBOX") {
            self.shape = Some(rectangle(args, at + 1)?);
            self.by = Some("BYBOX");
            Ok(3)
        } else if args.is(at, "BYPOLYGON") && left >= 2 && free_by("BYPOLYGON") && self.from.is_none() {
            let (shape, taken) = polygon(args, at + 1)?;
            self.shape = Some(shape);
            self.by = Some("BYPOLYGON");
            Ok(taken)
        } else {
            Err(ErrorCode::Syntax.into())
        }
    }

    fn check(&self, args: &Args<'_>) -> Result {
        let name = String::from_utf8_lossy(args.bytes(0)).into_owned();
        if self.target.is_some() && (self.with_distance || self.with_hash || self.with_coordinates) {
            let what =
                if self.kind == Kind::SearchStore { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            let text = format!("{what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options");
            return Err(Error::err(text));
        }
        if !matches!(self.kind, Kind::Radius { .. }) {
            if self.from.is_none() && self.by != Some("BYPOLYGON") {
                let text = format!("exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}");
                return Err(Error::err(text));
            }
            if self.by.is_none() {
                let text =
                    format!("exactly one of BYRADIUS, BYBOX and BYPOLYGON can be specified for {name}");
                return Err(Error::err(text));
            }
        }
        if self.any && self.count == 0 {
            return Err(Error::err("the ANY argument requires COUNT argument"));
        }
        Ok(())
    }

    /// What is found, sorted and cut, and the metres of the unit.
    fn find<'c>(&self, set: SortedSetRef<'c>) -> (Vec<Found<'c>>, f64) {
        let Some((shape, unit_m)) = self.shape.clone() else { return (Vec::new(), 1.0) };
        let centre = self.centre.unwrap_or(Point { lon: 0.0, lat: 0.0 });
        let mut search = Search { shape, centre, unit_m };
        let boxes = search.boxes();
        let limit = if self.any { self.count } else { usize::MAX };
        let mut found = Vec::new();
        let mut last: Option<(usize, Hash)> = None;
        for (index, hash) in boxes.into_iter().enumerate() {
            // With huge shapes neighbours are the same; Redis compares with all but the first.
            if last.is_some_and(|(at, other)| at > 0 && other == hash) {
                continue;
            }
            if found.len() >= limit {
                break;
            }
            collect(set, hash, &search, (&mut found, limit));
            last = Some((index, hash));
        }
        // A count without an order means the nearest ones.
        let order = if self.count > 0 && self.order == Order::None && !self.any {
            Order::Ascending
        } else {
            self.order
        };
        match order {
            Order::None => {}
            Order::Ascending => found.sort_by(|one, two| one.distance_m.total_cmp(&two.distance_m)),
            Order::Descending => found.sort_by(|one, two| two.distance_m.total_cmp(&one.distance_m)),
        }
        if self.count > 0 {
            found.truncate(self.count);
        }
        (found, unit_m)
    }
}

/// Adds what a box has inside the shape.
fn collect<'c>(
    set: SortedSetRef<'c>,
    hash: Hash,
    search: &Search,
    (found, limit): (&mut Vec<Found<'c>>, usize),
) {
    let (min, max) = hash.scores();
    let range = ScoreRange { min, min_exclusive: false, max, max_exclusive: true };
    for element in set.iter(set.ranks_by_score(range)) {
        let point = point_of(element.score);
        if let Some(distance_m) = search.distance_inside_m(point) {
            found.push(Found { member: element.member, score: element.score, point, distance_m });
            if found.len() >= limit {
                return;
            }
        }
    }
}

fn run(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>, kind: Kind) -> Result {
    let source = context.key(args, if kind == Kind::SearchStore { 2 } else { 1 });
    let (limits, backing) = (context.sorted_set_limits(), context.engine.keyspace.backing());
    let set = read(context, &source)?;
    let request = Request::parse(args, kind, set)?;
    let (found, unit_m) = set.map_or((Vec::new(), 1.0), |set| request.find(set));
    let Some(target) = request.target else {
        show(sink, &request, &found, unit_m);
        return Ok(());
    };
    let mut result = SortedSet::default();
    let mut change = SortedSetMut::new(&mut result, limits, backing);
    change.announce(usize::MAX, 0);
    for each in &found {
        let score = if request.store_distance { each.distance_m / unit_m } else { each.score };
        change.add(each.member, score);
    }
    change.settle();
    sink.count(found.len());
    let target = context.key(args, target);
    let event = if matches!(kind, Kind::Radius { .. }) { "georadiusstore" } else { "geosearchstore" };
    context.store(&target, (notify::ZSET, event), Object::SortedSet(result))?;
    Ok(())
}

fn show(sink: &mut ReplySink<'_>, request: &Request, found: &[Found<'_>], unit_m: f64) {
    let more = usize::from(request.with_distance)
        + usize::from(request.with_hash)
        + usize::from(request.with_coordinates);
    sink.array(found.len());
    for each in found {
        if more > 0 {
            sink.array(1 + more);
        }
        sink.bulk(each.member);
        if request.with_distance {
            show_distance(sink, each.distance_m / unit_m);
        }
        if request.with_hash {
            sink.int(each.score as i64);
        }
        if request.with_coordinates {
            sink.array(2);
            show_coordinate(sink, each.point.lon);
            show_coordinate(sink, each.point.lat);
        }
    }
}

pub(super) fn geosearch(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    run(context, args, sink, Kind::Search)
}

pub(super) fn geosearchstore(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result {
    run(context, args, sink, Kind::SearchStore)
}

pub(super) fn georadius(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    run(context, args, sink, Kind::Radius { member: false, store: true })
}

pub(super) fn georadius_ro(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result {
    run(context, args, sink, Kind::Radius { member: false, store: false })
}

pub(super) fn georadiusbymember(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result {
    run(context, args, sink, Kind::Radius { member: true, store: true })
}

pub(super) fn georadiusbymember_ro(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result {
    run(context, args, sink, Kind::Radius { member: true, store: false })
}
