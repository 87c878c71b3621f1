//! Code generation from `spec/` and checks of the repository, as a library so that each part can be tested.
//!
//! It owns nothing itself: `model` and `respb` are the command table as values; the other modules read or write it.

#![forbid(unsafe_code)]

pub mod annex;
pub mod arity;
pub mod c_table;
pub mod check;
pub mod check_respb;
pub mod citations;
pub mod compare;
pub mod compared;
pub mod cost;
pub mod csv;
pub mod r#gen;
pub mod go_helpers;
pub mod go_layouts;
pub mod go_results;
pub mod go_table;
pub mod lines;
pub mod model;
pub mod notation;
pub mod openapi;
mod openapi_resources;
pub mod reference;
pub mod resp2;
pub mod respb;
pub mod rust_arguments;
pub mod rust_docs;
pub mod rust_table;
pub mod sbom;
pub mod schema;
pub mod syntax;
pub mod tidy;
pub mod vectors;
pub mod wireshark;
