//! Positions: the GEO commands.

use super::Group;
use crate::dice::Dice;

pub(crate) const GROUP: Group = Group { name: "positions", templates: TEMPLATES, redis: false, places };

const TEMPLATES: &[&str] = &[
    "8 GEOADD {key} < [ ( NX | XX ) ] [ CH ] > ( {lon} {lat} {element} )+",
    "GEOADD {key} ( {double} {double} {element} )+",
    "GEOPOS {key} {element}+",
    "2 GEODIST {key} {element} {element} [ {unit} ]",
    "GEOHASH {key} {element}+",
    "2 exact: GEOSEARCH {key} FROMLONLAT {lon} {lat} BYRADIUS {size} {unit} \
     < ( ASC | DESC ) [ WITHDIST ] [ WITHHASH ] [ WITHCOORD ] >",
    "2 unordered: GEOSEARCH {key} FROMLONLAT {lon} {lat} BYRADIUS {size} {unit} [ WITHDIST ]",
    "2 exact: GEOSEARCH {key} FROMMEMBER {element} BYBOX {size} {size} {unit} ASC [ WITHDIST ]",
    "2 exact: GEOSEARCH {key} BYPOLYGON ( {east} {north} )# ASC [ WITHCOORD ]",
    "exact: GEOSEARCH {key} FROMLONLAT {lon} {lat} BYBOX {size} {size} {unit} DESC COUNT {count} [ ANY ]",
    "GEOSEARCH {key} < [ FROMMEMBER {element} ] [ FROMLONLAT {lon} {lat} ] [ BYRADIUS {size} {unit} ] \
     [ BYBOX {size} {size} {unit} ] [ COUNT {count} ] [ ANY ] ASC >",
    "2 GEOSEARCHSTORE {key} {key} FROMLONLAT {lon} {lat} BYRADIUS {size} {unit} < ASC [ COUNT {count} ] [ STOREDIST ] >",
    "GEOSEARCHSTORE {key} {key} FROMMEMBER {element} BYBOX {size} {size} {unit} [ WITHDIST ]",
    "exact: GEORADIUS {key} {lon} {lat} {size} {unit} < ASC [ WITHDIST ] [ WITHCOORD ] [ COUNT {count} ] >",
    "GEORADIUS {key} {lon} {lat} {size} {unit} ASC ( STORE | STOREDIST ) {key}",
    "GEORADIUS {key} {lon} {lat} {size} {unit} STORE {key} ASC ( STORE | STOREDIST ) {key}",
    "exact: GEORADIUS_RO {key} {lon} {lat} {size} {unit} < ASC [ WITHHASH ] >",
    "GEORADIUS_RO {key} {lon} {lat} {size} {unit} STORE {key}",
    "exact: GEORADIUSBYMEMBER {key} {element} {size} {unit} ASC",
    "GEORADIUSBYMEMBER {key} {element} {size} {unit} ASC ( STORE | STOREDIST ) {key}",
    "exact: GEORADIUSBYMEMBER_RO {key} {element} {size} {unit} DESC",
    "ZREM {key} {element}",
];

const LONGITUDES: [&str; 14] = [
    "0",
    "1",
    "13.361389",
    "15.087269",
    "179.9",
    "-179.9",
    "180",
    "-180",
    "2.5",
    "-70",
    "181",
    "0.0001",
    "x",
    "13.5",
];
const LATITUDES: [&str; 14] = [
    "0",
    "1",
    "38.115556",
    "37.502669",
    "85",
    "-85",
    "85.05112878",
    "-85.05112878",
    "66.5",
    "81",
    "86",
    "0.0001",
    "-20",
    "37",
];
const SIZES: [&str; 10] = ["0", "1", "100", "200", "5000", "50000", "-1", "x", "0.5", "20000"];

fn places(dice: &mut Dice, name: &str) -> Option<Vec<u8>> {
    Some(match name {
        "lon" => dice.pick(&LONGITUDES).into(),
        "lat" => dice.pick(&LATITUDES).into(),
        // Polygons whose middle is on the map: what Valkey does with others depends on what was in memory.
        "east" => dice.pick(&["0", "1", "13", "16", "2.5", "40", "-20", "x"]).into(),
        "north" => dice.pick(&["0", "1", "36", "39", "50", "-20", "2", "60"]).into(),
        "size" => dice.pick(&SIZES).into(),
        "unit" => dice.pick(&["m", "km", "km", "KM", "mi", "ft", "parsec"]).into(),
        _ => return None,
    })
}
