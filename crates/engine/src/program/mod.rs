//! Owns: programs: conditional, computed, looping changes as JSON, from the text to the form that runs, by name, and
//! with what a request gives them. Does not own: running them, all or nothing, and the commands that store them
//! (`crate::logic`).
//!
//! | module | owns |
//! |---|---|
//! | [`json`] | JSON texts as trees |
//! | [`parse`] | from a tree to a program, and what is wrong with it and where |
//! | [`steps`], [`expr`] | a program in the form that it runs in; the values of expressions |
//! | [`members`] | which members of a trigger's event an expression reads |
//! | [`functions`], `arithmetic`, `text` | the functions of expressions |
//! | [`value`], `bytes`, `reply`, `params` | values, and where they come from and go |
//! | [`keys`] | which keys a program will come to |
//! | [`budget`], `ends` | what it may do; when its time is over |
//! | `quick` | which commands are not asked about, and need not be taken back |
//! | `short` | GET, SET and INCR in a shorter form than their handlers have |
//! | `effects` | what it would change |
//! | `prepared` | the program of a request, between its locks and its run |
//! | [`stored`], `weight` | programs by name, what has come of them; the memory that they take |

pub(crate) mod arithmetic;
pub mod budget;
mod bytes;
pub(crate) mod effects;
pub(crate) mod ends;
pub mod expr;
pub mod functions;
pub mod json;
pub mod keys;
pub mod members;
pub(crate) mod params;
pub mod parse;
pub(crate) mod prepared;
pub(crate) mod quick;
pub(crate) mod reply;
pub(crate) mod short;
pub mod steps;
pub mod stored;
pub(crate) mod text;
pub mod value;
mod weight;

pub use parse::Problem;
pub use steps::Program;
