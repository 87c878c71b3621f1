//! Owns: positions as 52-bit hashes, distances on the sphere, and the boxes that cover a searched shape. Does not own:
//! where the hashes stand (scores of a sorted set), arguments, replies.
//!
//! A hash of step n has n bits of latitude in its even bits and n of longitude in its odd ones, counted from the
//! lowest: positions near each other mostly have hashes near each other, so a box is a range of scores. A shape is
//! covered by the box that its centre is in and the eight around it, the step being chosen so that these are large
//! enough.
//!
//! Constants, order of operations and order of boxes are those of Redis and Valkey: scores are on disk, and which
//! element comes first without a sort order is what a client sees.

use std::f64::consts::PI;

/// Bits of each coordinate in a stored hash.
pub(super) const STEP_MAX: u8 = 26;
/// Radius of the earth: the quadratic mean of WGS-84.
const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
/// Half of the map's width in metres, which the step is estimated from.
const MERCATOR_MAX_M: f64 = 20_037_726.37;
/// Sine of half an angle below which two longitudes count as one: 6 nm on the ground.
const SAME_LONGITUDE: f64 = 1e-15;

/// A position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) lon: f64,
    pub(super) lat: f64,
}

/// The coordinates that hashes are made of.
#[derive(Clone, Copy)]
pub(super) struct World {
    lon: (f64, f64),
    lat: (f64, f64),
}

/// What is stored: no poles.
pub(super) const STORED: World = World { lon: (-180.0, 180.0), lat: (-85.051_128_78, 85.051_128_78) };
/// What the standard geohash text uses.
pub(super) const STANDARD: World = World { lon: (-180.0, 180.0), lat: (-90.0, 90.0) };

impl World {
    pub(super) fn contains(&self, point: Point) -> bool {
        (self.lon.0..=self.lon.1).contains(&point.lon) && (self.lat.0..=self.lat.1).contains(&point.lat)
    }
    /// The hash of a point with `step` bits a coordinate.
    pub(super) fn encode(&self, point: Point, step: u8) -> Hash {
        let cells = (1_u64 << step) as f64;
        let part = |value: f64, (min, max): (f64, f64)| ((value - min) / (max - min) * cells) as u32;
        Hash { lat: part(point.lat, self.lat), lon: part(point.lon, self.lon), step }
    }
    fn cell(&self, hash: Hash) -> Cell {
        let cells = (1_u64 << hash.step) as f64;
        let edge = |index: u32, (min, max): (f64, f64)| min + (f64::from(index) / cells) * (max - min);
        Cell {
            lon: (edge(hash.lon, self.lon), edge(hash.lon.wrapping_add(1), self.lon)),
            lat: (edge(hash.lat, self.lat), edge(hash.lat.wrapping_add(1), self.lat)),
        }
    }
}

/// A box, as the numbers of its row and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hash {
    lat: u32,
    lon: u32,
    step: u8,
}

/// A box's edges.
struct Cell {
    lon: (f64, f64),
    lat: (f64, f64),
}

/// Puts zeros between the bits of a number.
fn spread(value: u32) -> u64 {
    (0..32).fold(0, |bits, place| bits | u64::from(value >> place & 1) << (2 * place))
}

/// Takes every second bit, the lowest first.
fn gather(bits: u64) -> u32 {
    (0..32).fold(0, |value, place| value | ((bits >> (2 * place) & 1) as u32) << place)
}

/// A score that is no position as the number that Valkey takes it for: C leaves the conversion open, x86 wraps negative
/// numbers around and makes 2^63 or 0 of what is beyond 64 bits.
fn unsigned(score: f64) -> u64 {
    const TOP: u64 = 1 << 63;
    let signed = |score: f64| {
        let fits = (-(TOP as f64)..TOP as f64).contains(&score);
        if fits { score as i64 as u64 } else { TOP }
    };
    if score < TOP as f64 { signed(score) } else { signed(score - TOP as f64) ^ TOP }
}

impl Hash {
    /// From a score.
    pub(super) fn from_score(score: f64) -> Self {
        let bits = unsigned(score);
        Self { lat: gather(bits), lon: gather(bits >> 1), step: STEP_MAX }
    }
    /// All bits, latitude lowest.
    pub(super) fn bits(self) -> u64 {
        spread(self.lat) | spread(self.lon) << 1
    }
    /// The scores of what is in the box: from the first up to, but not, the second.
    pub(super) fn scores(self) -> (f64, f64) {
        let shift = 52 - 2 * u32::from(self.step);
        ((self.bits() << shift) as f64, ((self.bits() + 1) << shift) as f64)
    }
    /// The middle of the box.
    pub(super) fn point(self) -> Point {
        let cell = STORED.cell(self);
        Point {
            lon: ((cell.lon.0 + cell.lon.1) / 2.0).clamp(STORED.lon.0, STORED.lon.1),
            lat: ((cell.lat.0 + cell.lat.1) / 2.0).clamp(STORED.lat.0, STORED.lat.1),
        }
    }
    /// The box so many columns east and rows north, around the edge of the map. A point on the map's edge has a number
    /// one too high, which only a step away from it brings back.
    fn beside(self, east: i32, north: i32) -> Self {
        let mask = ((1_u64 << self.step) - 1) as u32;
        let step = |at: u32, by: i32| if by == 0 { at } else { at.wrapping_add_signed(by) & mask };
        Self { lon: step(self.lon, east), lat: step(self.lat, north), step: self.step }
    }
}

/// The position that a stored score stands for.
pub(super) fn point_of(score: f64) -> Point {
    Hash::from_score(score).point()
}

/// The score of a position.
pub(super) fn score_of(point: Point) -> f64 {
    STORED.encode(point, STEP_MAX).bits() as f64
}

const fn radians(degrees: f64) -> f64 {
    degrees * (PI / 180.0)
}
const fn degrees(radians: f64) -> f64 {
    radians / (PI / 180.0)
}

fn lat_distance_m(one: f64, two: f64) -> f64 {
    EARTH_RADIUS_M * (radians(two) - radians(one)).abs()
}

/// The distance of two points along a great circle, by the haversine formula.
pub(super) fn distance_m(one: Point, two: Point) -> f64 {
    let v = ((radians(two.lon) - radians(one.lon)) / 2.0).sin();
    if v.abs() <= SAME_LONGITUDE {
        return lat_distance_m(one.lat, two.lat);
    }
    let (lat_one, lat_two) = (radians(one.lat), radians(two.lat));
    let u = ((lat_two - lat_one) / 2.0).sin();
    let a = u * u + lat_one.cos() * lat_two.cos() * v * v;
    2.0 * EARTH_RADIUS_M * a.sqrt().asin()
}

/// What is searched.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// Radius in the unit of the request.
    Circle(f64),
    /// Width and height in the unit of the request.
    Rectangle(f64, f64),
    /// At least three corners.
    Polygon(Vec<Point>),
}

/// A shape in its place.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) shape: Shape,
    /// Of a polygon, this is found from its corners.
    pub(super) centre: Point,
    /// Metres of the request's unit.
    pub(super) unit_m: f64,
}

impl Search {
    /// The distance of a point from the centre, if it is inside.
    pub(super) fn distance_inside_m(&self, point: Point) -> Option<f64> {
        match &self.shape {
            Shape::Circle(radius) => {
                let distance = distance_m(self.centre, point);
                (distance <= radius * self.unit_m).then_some(distance)
            }
            Shape::Rectangle(width, height) => {
                let beside = Point { lon: self.centre.lon, lat: point.lat };
                let inside = lat_distance_m(point.lat, self.centre.lat) <= height * self.unit_m / 2.0
                    && distance_m(point, beside) <= width * self.unit_m / 2.0;
                inside.then(|| distance_m(self.centre, point))
            }
            Shape::Polygon(corners) => is_inside(corners, point).then(|| distance_m(self.centre, point)),
        }
    }

    /// The boxes to look through, in their order. The same box may come twice; only neighbours in the list are to be
    /// skipped.
    pub(super) fn boxes(&mut self) -> Vec<Hash> {
        if let Shape::Polygon(corners) = &self.shape {
            self.centre = middle(corners);
        }
        let bounds = self.bounds();
        let mut step = self.step(&bounds);
        let covers = |hash: Hash| {
            STORED.cell(hash.beside(0, 1)).lat.1 >= bounds.lat.1
                && STORED.cell(hash.beside(0, -1)).lat.0 <= bounds.lat.0
                && STORED.cell(hash.beside(1, 0)).lon.1 >= bounds.lon.1
                && STORED.cell(hash.beside(-1, 0)).lon.0 <= bounds.lon.0
        };
        let mut hash = STORED.encode(self.centre, step);
        if step > 1 && !covers(hash) {
            step -= 1;
            hash = STORED.encode(self.centre, step);
        }
        let own = STORED.cell(hash);
        // Small boxes that the shape does not reach into are left out.
        let left_out = |east: i32, north: i32| {
            step >= 2
                && (north < 0 && own.lat.0 < bounds.lat.0
                    || north > 0 && own.lat.1 > bounds.lat.1
                    || east < 0 && own.lon.0 < bounds.lon.0
                    || east > 0 && own.lon.1 > bounds.lon.1)
        };
        const AROUND: [(i32, i32); 9] =
            [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
        let kept = AROUND.iter().filter(|(east, north)| !left_out(*east, *north));
        kept.map(|(east, north)| hash.beside(*east, *north)).collect()
    }

    /// The shape's bounds in degrees.
    fn bounds(&self) -> Cell {
        let (width, height) = match &self.shape {
            Shape::Circle(radius) => (self.unit_m * radius, self.unit_m * radius),
            Shape::Rectangle(width, height) => (self.unit_m * width / 2.0, self.unit_m * height / 2.0),
            Shape::Polygon(corners) => return bounds_of(corners),
        };
        let Point { lon, lat } = self.centre;
        let north = degrees(height / EARTH_RADIUS_M);
        let east_at = |lat: f64| degrees(width / EARTH_RADIUS_M / radians(lat).cos());
        // The side nearer to the pole reaches further.
        let east = if lat < 0.0 { east_at(lat - north) } else { east_at(lat + north) };
        Cell { lon: (lon - east, lon + east), lat: (lat - north, lat + north) }
    }

    /// The step at which nine boxes are about as large as the shape.
    fn step(&self, bounds: &Cell) -> u8 {
        let mut radius_m = match &self.shape {
            Shape::Circle(radius) => *radius,
            Shape::Rectangle(width, height) => {
                ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt()
            }
            Shape::Polygon(_) => {
                let corners = [bounds.lon.0, bounds.lon.1]
                    .into_iter()
                    .flat_map(|lon| [bounds.lat.0, bounds.lat.1].map(|lat| Point { lon, lat }));
                corners.map(|corner| distance_m(self.centre, corner)).fold(0.0, f64::max)
            }
        } * self.unit_m;
        if radius_m == 0.0 {
            return STEP_MAX;
        }
        let mut step = 1_i32;
        while radius_m < MERCATOR_MAX_M {
            radius_m *= 2.0;
            step += 1;
        }
        step -= 2;
        // Columns are narrow near the poles.
        step -= i32::from(self.centre.lat.abs() > 66.0) + i32::from(self.centre.lat.abs() > 80.0);
        step.clamp(1, STEP_MAX.into()) as u8
    }
}

fn bounds_of(corners: &[Point]) -> Cell {
    let range = |coordinate: fn(&Point) -> f64, (low, high): (f64, f64)| {
        let values = corners.iter().map(coordinate);
        values.fold((high, low), |(min, max), value| (min.min(value), max.max(value)))
    };
    Cell { lon: range(|point| point.lon, STORED.lon), lat: range(|point| point.lat, STORED.lat) }
}

/// The direction of the sum of the corners as vectors from the earth's centre.
fn middle(corners: &[Point]) -> Point {
    let (mut x, mut y, mut z) = (0.0, 0.0, 0.0);
    for corner in corners {
        let (lon, lat) = (radians(corner.lon), radians(corner.lat));
        x += lat.cos() * lon.cos();
        y += lat.cos() * lon.sin();
        z += lat.sin();
    }
    Point { lon: degrees(y.atan2(x)), lat: degrees(z.atan2((x * x + y * y).sqrt())) }
}

/// Whether a ray from the point crosses the polygon's edges an odd number of times.
fn is_inside(corners: &[Point], point: Point) -> bool {
    let before = corners.iter().skip(corners.len() - 1).chain(corners);
    let edges = corners.iter().zip(before);
    let crossed = edges.filter(|(one, two)| {
        (one.lat > point.lat) != (two.lat > point.lat)
            && point.lon < (two.lon - one.lon) * (point.lat - one.lat) / (two.lat - one.lat) + one.lon
    });
    crossed.count() % 2 == 1
}

/// The standard geohash text of a position: 11 characters, of which 52 bits fill ten.
pub(super) fn text_of(point: Point) -> [u8; 11] {
    const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
    let bits = STANDARD.encode(point, STEP_MAX).bits();
    std::array::from_fn(|place| {
        let index = if place == 10 { 0 } else { bits >> (52 - 5 * (place + 1)) & 31 };
        ALPHABET[index as usize]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_that_are_no_positions() {
        for (score, bits) in [
            (0.0, 0),
            (4503599627370495.0, 4503599627370495),
            (-1.0, u64::MAX),
            (-0.5, 0),
            (9223372036854775808.0, 1 << 63),
            (18446744073709551616.0, 0),
            (f64::INFINITY, 0),
            (f64::NEG_INFINITY, 1 << 63),
            (-1e300, 1 << 63),
            (1e300, 0),
        ] {
            assert_eq!(unsigned(score), bits, "{score}");
        }
    }

    const PALERMO: Point = Point { lon: 13.361_389, lat: 38.115_556 };
    const CATANIA: Point = Point { lon: 15.087_269, lat: 37.502_669 };

    #[test]
    fn scores_and_positions() {
        assert_eq!(score_of(PALERMO), 3_479_099_956_230_698.0);
        assert_eq!(score_of(CATANIA), 3_479_447_370_796_909.0);
        let back = point_of(score_of(PALERMO));
        assert_eq!(format!("{:.17} {:.17}", back.lon, back.lat), "13.36138933897018433 38.11555639549629859");
        assert_eq!(&text_of(back), b"sqc8b49rny0");
    }

    #[test]
    fn distances() {
        let (one, two) = (point_of(score_of(PALERMO)), point_of(score_of(CATANIA)));
        assert_eq!(format!("{:.4}", distance_m(one, two)), "166274.1516");
        assert_eq!(distance_m(one, one), 0.0);
    }

    #[test]
    fn boxes_cover_what_is_inside() {
        for (lon, lat) in [(0.0, 0.0), (179.9, 10.0), (-179.9, -84.0), (13.0, 66.5), (-70.0, 80.5)] {
            for radius in [10.0, 5e3, 3e5] {
                let centre = Point { lon, lat };
                let mut search = Search { shape: Shape::Circle(radius), centre, unit_m: 1.0 };
                let boxes = search.boxes();
                for at in 0..64 {
                    let angle = f64::from(at) / 10.0;
                    let reach = degrees(radius * 0.99 / EARTH_RADIUS_M);
                    let point = Point {
                        lon: lon + reach * angle.cos() / radians(lat).cos(),
                        lat: lat + reach * angle.sin(),
                    };
                    if !STORED.contains(point) || search.distance_inside_m(point).is_none() {
                        continue;
                    }
                    let score = score_of(point);
                    let covered = boxes.iter().any(|hash| {
                        let (min, max) = hash.scores();
                        (min..max).contains(&score)
                    });
                    assert!(covered, "{point:?} around {centre:?} by {radius}");
                }
            }
        }
    }

    #[test]
    fn polygons() {
        let corners =
            [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0)].map(|(lon, lat)| Point { lon, lat });
        assert!(is_inside(&corners, Point { lon: 5.0, lat: 5.0 }));
        assert!(!is_inside(&corners, Point { lon: 11.0, lat: 5.0 }));
        let middle = middle(&corners);
        assert!((middle.lon - 5.0).abs() < 0.1 && (middle.lat - 5.0).abs() < 0.1);
    }
}
